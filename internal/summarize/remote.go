package summarize

import (
	"context"
	"errors"
	"fmt"
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
}

// Name gives the provider and the model as the ledger holds them.
func (r *Remote) Name() (provider, model string) { return r.provider, r.model }

// Close releases the connections.
func (r *Remote) Close() error { return r.asker.close() }

// Summarize asks the model for a summary of req and appends the index. It tries again where
// that can help, within the configured time. The error is a *Failure unless ctx was
// cancelled; the Summary then still holds the Calls.
func (r *Remote) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	out := session.Summary{Provider: r.provider, Model: r.model}
	budget, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()

	limit := req.MaxTokens
	if limit <= 0 {
		limit = DefaultMaxTokens
	}
	indexBudget := int64(float64(limit) * indexShare)
	limits := answerLimits{replaced: r.replaced(&req), budget: limit - indexBudget}
	text, err := r.retry(ctx, budget, newPrompt(&req, limits.budget), limits.budget, &req, &out.Calls)
	if err != nil {
		return out, err
	}
	text, kind := checkAnswer(text, limits, r.deps.Count)
	if kind == FailTooLongOutput {
		text, kind = r.shorten(ctx, budget, text, limits, &req, &out.Calls)
	}
	if kind != "" {
		return out, &Failure{Kind: kind, Message: "the answer of " + r.model + " cannot stand as a summary"}
	}
	old := parseOutline(req.Previous)
	room := limit - r.deps.Count(text) - r.deps.Count("\n\n"+indexHeading+"\n- ")
	out.Index = scan(req.Messages).index(old.index, text, min(indexBudget, room), r.deps.Count)
	out.Text = withIndex(text, &out.Index, limit, r.deps.Count)
	return out, nil
}

// shorten asks once for fewer words; what is still too long loses its oldest finished work.
func (r *Remote) shorten(ctx, budget context.Context, text string, limits answerLimits, req *session.SummaryRequest, calls *[]session.Call) (string, FailureKind) {
	target := max(min(limits.budget, limits.replaced-1)*9/10, 1)
	if again, err := r.once(ctx, budget, shortenPrompt(text, target), limits.budget, req, calls); err == nil {
		switch shorter, kind := checkAnswer(again.text, limits, r.deps.Count); kind {
		case "":
			return shorter, ""
		case FailTooLongOutput:
			if r.deps.Count(shorter) < r.deps.Count(text) {
				text = shorter
			}
		}
	}
	if text = trimAnswer(text, limits, r.deps.Count); text == "" {
		return "", FailTooLongOutput
	}
	return text, ""
}

// replaced counts what the summary will stand for: the span and the summary before.
func (r *Remote) replaced(req *session.SummaryRequest) int64 {
	n := r.deps.Count(req.Previous)
	for i := range req.Messages {
		if t := req.Messages[i].Tokens; t > 0 {
			n += t
			continue
		}
		n += r.deps.Count(req.Messages[i].Text())
	}
	return n
}

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

// withIndex writes the index behind the text and shortens it until both are within limit.
func withIndex(text string, index *[]string, limit int64, count func(string) int64) string {
	for len(*index) > 0 {
		if whole := text + "\n\n" + indexSection(*index); count(whole) <= limit {
			return whole
		}
		*index = (*index)[:len(*index)-1]
	}
	return text
}
