package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
)

// Budget posts to a webhook when 80 % of a budget are used, and when all of it is: each once a month.
type Budget struct {
	Webhook string // gets a POST with a BudgetNotice
	Told    string // the file in which the job keeps which notices it posted
	Spent   func(ctx context.Context) ([]analytics.Spent, error)
	Log     zerolog.Logger

	failed string // the last error that was logged
}

// BudgetNotice is the body of a POST to the webhook. It has sums alone.
type BudgetNotice struct {
	analytics.Spent
	Percent int `json:"percent"` // that is reached: 80 or 100
}

// How often the job compares, and how long a POST may take.
const (
	budgetEvery = time.Minute
	webhookTime = 10 * time.Second
)

// budgetSteps are the shares that the job posts, in percent, the highest first.
var budgetSteps = [...]int{100, 80}

// runBudget looks at the budget until the daemon stops.
func (r *Runner) runBudget() {
	ticker := time.NewTicker(budgetEvery)
	defer ticker.Stop()
	for {
		r.cfg.Budget.Look(r.ctx)
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Look posts the shares that were reached since the last look. A POST that failed is tried again at the next one.
func (b *Budget) Look(ctx context.Context) {
	if err := b.look(ctx); err != nil && ctx.Err() == nil {
		if err.Error() != b.failed { // every minute would fill the log
			b.Log.Error().Err(err).Msg("the budget's webhook was not told; sessiond tries again each minute")
		}
		b.failed = err.Error()
		return
	}
	b.failed = ""
}

func (b *Budget) look(ctx context.Context) error {
	all, err := b.Spent(ctx)
	if err != nil {
		return err
	}
	told, err := b.read()
	if err != nil {
		return err
	}
	var failed error
	for i := range all {
		s := &all[i]
		key := s.Month + " " + s.Project
		at := slices.IndexFunc(budgetSteps[:], func(step int) bool { return s.Percent() >= step })
		if at < 0 || told[key] >= budgetSteps[at] {
			continue
		}
		if err := b.post(ctx, &BudgetNotice{Spent: *s, Percent: budgetSteps[at]}); err != nil {
			failed = cmp.Or(failed, err) // the other notices do not wait for this one
			continue
		}
		told[key] = budgetSteps[at]
		if err := b.write(told, s.Month); err != nil {
			return err
		}
	}
	return failed
}

func (b *Budget) post(ctx context.Context, notice *BudgetNotice) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	body, err := json.Marshal(notice)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.Webhook, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it was not read
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: %s", req.URL.Redacted(), res.Status)
	}
	return nil
}

// read returns the highest share that was posted, by month and project.
func (b *Budget) read() (map[string]int, error) {
	told := map[string]int{}
	raw, err := os.ReadFile(b.Told)
	if errors.Is(err, fs.ErrNotExist) {
		return told, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was told of the budget: %w (delete the file, and it is told once more)", err)
	}
	return told, nil
}

// write keeps which shares were posted in a month.
func (b *Budget) write(told map[string]int, month string) error {
	for key := range told {
		if !strings.HasPrefix(key, month) {
			delete(told, key)
		}
	}
	raw, err := json.Marshal(told)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.Told+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(b.Told+".new", b.Told)
}
