package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"sessiond/internal/session"
)

// Attempts and pauses of one summary.
const (
	maxAttempts  = 5
	firstPause   = time.Second
	longestPause = 20 * time.Second
)

// reply is a model's answer to one prompt.
type reply struct {
	text  string
	usage session.JSON // the provider's usage object, as it came
}

// asker sends one prompt once. Its error is a *Failure or that of ctx. It returns the provider's
// usage also beside an error.
type asker interface {
	ask(ctx context.Context, p prompt, maxTokens int64) (reply, error)
	close() error
}

// Remote makes summaries with a model. It is safe for concurrent use.
type Remote struct {
	provider string
	model    string
	timeout  time.Duration
	asker    asker
	deps     Deps
	room     atomic.Int64 // tokens of a record that fit the model; 0: unknown
}

func makeRemote(cfg Config, deps Deps, a asker) *Remote {
	r := &Remote{provider: cfg.Provider, model: cfg.ModelName(), timeout: cfg.Timeout, asker: a, deps: deps}
	if r.timeout <= 0 {
		r.timeout = DefaultTimeout
	}
	if cfg.Window > 0 {
		r.room.Store(max(leastRoom, cfg.Window*9/10-aroundRecord))
	}
	return r
}

// Name returns the provider and the model as the ledger stores them.
func (r *Remote) Name() (provider, model string) { return r.provider, r.model }

// Close closes the connections.
func (r *Remote) Close() error { return r.asker.close() }

// retry asks until the model answers, a failure is permanent, or the time is over.
func (r *Remote) retry(ctx, budget context.Context, p prompt, maxTokens int64, req *session.SummaryRequest,
	calls *[]session.Call,
) (string, error) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	for attempt := 1; ; attempt++ {
		answer, err := r.once(ctx, budget, p, maxTokens, req, calls)
		if err == nil {
			return answer.text, nil
		}
		var f *Failure
		if !errors.As(err, &f) || !f.retry || attempt == maxAttempts {
			return "", err
		}
		pause := max(pauses.NextBackOff(), f.wait)
		if end, ok := budget.Deadline(); ok && time.Until(end) < pause {
			return "", err // too late for another attempt
		}
		if r.deps.Wait(budget, pause) != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("asking for a summary: %w", ctx.Err())
			}
			return "", err
		}
	}
}

// once asks once and adds the ledger row. One attempt has half of the whole time, so that there are
// two with a server that hangs.
func (r *Remote) once(ctx, budget context.Context, p prompt, maxTokens int64, req *session.SummaryRequest,
	calls *[]session.Call,
) (reply, error) {
	attempt, cancel := context.WithTimeout(budget, r.timeout/2)
	defer cancel()
	began := r.deps.Now()
	// A thinking model spends part of its output on thoughts.
	answer, err := r.asker.ask(attempt, p, 2*maxTokens+1024)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = fmt.Errorf("asking for a summary: %w", ctx.Err())
	case attempt.Err() != nil:
		err = &Failure{
			Kind: FailTimeout, Message: fmt.Sprintf("no answer within %s", r.timeout/2), cause: attempt.Err(),
			retry: budget.Err() == nil,
		}
	}
	*calls = append(*calls, r.ledger(req, answer.usage, began, err))
	return answer, err
}

// ledger returns the row of one attempt.
func (r *Remote) ledger(req *session.SummaryRequest, raw session.JSON, began time.Time, err error) session.Call {
	var call session.Call
	if len(raw) > 0 {
		if counted, err := r.deps.Usage(r.provider, raw); err == nil {
			call = counted
		}
	}
	latency := r.deps.Now().Sub(began).Milliseconds()
	call.Purpose = cmp.Or(req.Purpose, session.PurposeSummary)
	call.Provider, call.Model, call.Source = r.provider, r.model, session.SourceSessiond
	call.Status, call.LatencyMS, call.CreatedAt = session.CallOK, &latency, session.At(began)
	if err != nil {
		call.Status, call.Error = session.CallFailed, ledgerText(err)
	}
	return call
}
