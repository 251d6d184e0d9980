package models

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
)

// Breaker stops requests to a model that keeps failing: after threshold failures in a row it returns
// FailOpen until the cool-down has passed, then lets one request try.
type Breaker struct {
	inner     Summarizer
	threshold int
	coolDown  time.Duration
	now       func() time.Time
	log       zerolog.Logger

	mu       sync.Mutex
	failures int
	openTill time.Time
	trying   bool
	refused  bool // a request, since the breaker opened
}

// NewBreaker returns a breaker before inner. It logs when it opens and closes.
func NewBreaker(inner Summarizer, threshold int, coolDown time.Duration, deps Deps) *Breaker {
	return &Breaker{inner: inner, threshold: threshold, coolDown: coolDown, now: deps.Now, log: deps.Log}
}

// Name returns the inner summariser's names.
func (b *Breaker) Name() (provider, model string) { return b.inner.Name() }

// Summarize asks the inner summariser unless the breaker is open.
func (b *Breaker) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	if failure := b.enter(); failure != nil {
		return session.Summary{}, failure
	}
	made, err := b.inner.Summarize(ctx, req)
	b.leave(err)
	return made, err
}

// enter returns the failure of a request that may not pass, nil if it may.
func (b *Breaker) enter() *Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.threshold {
		b.refused = false
		return nil
	}
	if b.trying || b.now().Before(b.openTill) {
		f := &Failure{
			Kind: FailOpen, repeated: b.refused,
			Message: "the model failed too often; the next request is possible after " + b.openTill.UTC().Format(time.RFC3339),
		}
		b.refused = true
		return f
	}
	b.trying = true
	return nil
}

// leave counts the outcome of a request. Failures caused by the span or by the caller do not count
// against the model.
func (b *Breaker) leave(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	var f *Failure
	switch {
	case err == nil:
		b.close()
	case errors.Is(err, context.Canceled) || !errors.As(err, &f):
	case f.Kind == FailRefusal, f.Kind == FailTooLongInput, f.Kind == FailTooLongOutput, f.Kind == FailEmpty:
		b.close() // it answered
	default:
		if b.failures++; b.failures >= b.threshold {
			b.openTill = b.now().Add(b.coolDown)
		}
		if b.failures == b.threshold {
			_, model := b.inner.Name()
			b.log.Warn().Str("model", model).Time("until", b.openTill.UTC()).Str("kind",
				string(f.Kind)).Msg("the model failed too often: circuit breaker open, digests serve")
		}
	}
}

// close lets all requests pass again. The caller holds the mutex.
func (b *Breaker) close() {
	if b.failures >= b.threshold {
		_, model := b.inner.Name()
		b.log.Info().Str("model", model).Msg("the model answers again: circuit breaker closed")
	}
	b.failures = 0
}

// Close releases the inner summariser's connections.
func (b *Breaker) Close() error {
	if c, ok := b.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
