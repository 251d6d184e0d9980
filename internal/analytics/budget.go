package analytics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sessiond/internal/folders"
)

// Budget is what models may cost in a calendar month, in US dollars. It limits nothing: it is compared with what was
// used. The zero value is none.
type Budget struct {
	Month    float64            // of all projects; 0: none
	Projects map[string]float64 // by a project's path, its name in lists, or the end of its path
}

// IsSet reports whether there is a budget.
func (b *Budget) IsSet() bool { return b.Month > 0 || len(b.Projects) > 0 }

// Spent is what was used of a budget in a month.
type Spent struct {
	Month         string  `json:"month" doc:"2026-02"`
	Project       string  `json:"project,omitempty" doc:"As the budget names it; left out: all projects"`
	USD           float64 `json:"usd" doc:"US dollars of the calls with a price"`
	LimitUSD      float64 `json:"limit_usd"`
	UnpricedCalls int64   `json:"unpriced_calls,omitempty" doc:"Calls without a known price, which are not in usd"`
}

// Percent is the used share of the budget, rounded down.
func (s *Spent) Percent() int { return int(100 * s.USD / s.LimitUSD) }

// Title says whose budget it is: the month's name, or the project.
func (s *Spent) Title() string { return cmp.Or(s.Project, "all projects") }

// String says what was used: $161.20 of $200.00 (80 %).
func (s *Spent) String() string {
	least := ""
	if s.UnpricedCalls > 0 {
		least = "+"
	}
	return fmt.Sprintf("$%.2f%s of $%.2f (%d %%)", s.USD, least, s.LimitUSD, s.Percent())
}

// Spent compares a budget with the usage of now's month: of all projects first, then by their names. Codes: Busy.
func (r *Reports) Spent(ctx context.Context, b Budget, now time.Time) (all []Spent, err error) {
	if !b.IsSet() {
		return nil, nil
	}
	now = now.In(r.zone)
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	buckets, err := r.Usage(ctx, Filter{
		Since: first.Format(time.DateOnly), Until: first.AddDate(0, 1, -1).Format(time.DateOnly),
	}, ByProject)
	if err != nil {
		return nil, err
	}
	spent := func(project string, limit float64) {
		s := Spent{Month: first.Format("2006-01"), Project: project, LimitUSD: limit}
		for i := range buckets {
			if bucket := &buckets[i]; project == "" || folders.EndsIn(bucket.Project, project) {
				s.USD += float64(bucket.nanoUSD) / 1e9
				s.UnpricedCalls += bucket.UnpricedCalls
			}
		}
		all = append(all, s)
	}
	if b.Month > 0 {
		spent("", b.Month)
	}
	for _, project := range slices.Sorted(maps.Keys(b.Projects)) {
		spent(project, b.Projects[project])
	}
	return all, nil
}
