package summarize

import (
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

// asker sends one prompt once. Its error is a *Failure or that of ctx. The reply's usage is
// set whenever the provider sent one, also beside an error.
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
	room     atomic.Int64 // tokens of a record that the model takes at once, once that is known; 0: not known
}

// Name gives the provider and the model as the ledger holds them.
func (r *Remote) Name() (provider, model string) { return r.provider, r.model }

// Close releases the connections.
func (r *Remote) Close() error { return r.asker.close() }

// retry asks until there is an answer, a failure that no waiting helps, or no time left.
func (r *Remote) retry(ctx, budget context.Context, p prompt, maxTokens int64, req *session.SummaryRequest, calls *[]session.Call) (string, error) {
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
			return "", err // it would not be answered in time
		}
		if r.deps.Wait(budget, pause) != nil {
			return "", firstError(ctx.Err(), err)
		}
	}
}

// firstError prefers that the caller gave up.
func firstError(cancelled, err error) error {
	if cancelled != nil {
		return fmt.Errorf("asking for a summary: %w", cancelled)
	}
	return err
}

// once asks one time and writes the ledger row. One attempt gets half of the whole time, so
// that a server that hangs is asked twice.
func (r *Remote) once(ctx, budget context.Context, p prompt, maxTokens int64, req *session.SummaryRequest, calls *[]session.Call) (reply, error) {
	attempt, cancel := context.WithTimeout(budget, r.timeout/2)
	defer cancel()
	began := r.deps.Now()
	// A thinking model spends part of its output where nobody sees it.
	answer, err := r.asker.ask(attempt, p, 2*maxTokens+1024)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = fmt.Errorf("asking for a summary: %w", ctx.Err())
	case attempt.Err() != nil:
		err = &Failure{Kind: FailTimeout, Message: fmt.Sprintf("no answer within %s", r.timeout/2), cause: attempt.Err(), retry: budget.Err() == nil}
	}
	*calls = append(*calls, r.ledger(req, answer.usage, began, err))
	return answer, err
}

// ledger makes the row of one attempt.
func (r *Remote) ledger(req *session.SummaryRequest, raw session.JSON, began time.Time, err error) session.Call {
	var call session.Call
	if len(raw) > 0 {
		if counted, err := r.deps.Usage(r.provider, raw); err == nil {
			call = counted
		}
	}
	latency := r.deps.Now().Sub(began).Milliseconds()
	call.Purpose = req.Purpose
	if call.Purpose == "" {
		call.Purpose = session.PurposeSummary
	}
	call.Provider, call.Model, call.Source = r.provider, r.model, session.SourceSessiond
	call.Status, call.LatencyMS, call.CreatedAt = session.CallOK, &latency, session.At(began)
	if err != nil {
		call.Status, call.Error = session.CallFailed, err.Error()
	}
	return call
}
