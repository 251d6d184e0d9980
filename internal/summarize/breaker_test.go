package summarize_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/summarize"
)

// scripted returns the given errors and counts the requests.
type scripted struct {
	asked int
	err   error
}

func (s *scripted) Name() (provider, model string) { return "test", "test" }

func (s *scripted) Summarize(context.Context, session.SummaryRequest) (session.Summary, error) {
	s.asked++
	return session.Summary{Text: "x"}, s.err
}

func TestBreakerRetriesAfterCoolDown(t *testing.T) {
	now := time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)
	inner := &scripted{err: &summarize.Failure{Kind: summarize.FailServer, Message: "down"}}
	b := summarize.NewBreaker(inner, 3, time.Minute, func() time.Time { return now })
	ask := func() summarize.FailureKind {
		_, err := b.Summarize(context.Background(), session.SummaryRequest{})
		var f *summarize.Failure
		if errors.As(err, &f) {
			return f.Kind
		}
		return ""
	}
	steps := []struct {
		name  string
		after time.Duration
		works bool
		want  summarize.FailureKind
		asked int
	}{
		{"first failure", 0, false, summarize.FailServer, 1},
		{"second", 0, false, summarize.FailServer, 2},
		{"third opens it", 0, false, summarize.FailServer, 3},
		{"an open breaker asks no model", 0, false, summarize.FailOpen, 3},
		{"nor shortly before the end", 59 * time.Second, false, summarize.FailOpen, 3},
		{"one may try, and fails", time.Second, false, summarize.FailServer, 4},
		{"so it is open again", 30 * time.Second, true, summarize.FailOpen, 4},
		{"one may try, and succeeds", 30 * time.Second, true, "", 5},
		{"so it is closed", 0, true, "", 6},
		{"and one failure does not open it", 0, false, summarize.FailServer, 7},
		{"as this shows", 0, true, "", 8},
	}
	for _, s := range steps {
		now = now.Add(s.after)
		inner.err = &summarize.Failure{Kind: summarize.FailServer, Message: "down"}
		if s.works {
			inner.err = nil
		}
		if got := ask(); got != s.want || inner.asked != s.asked {
			t.Fatalf("%s: got %q after asking %d times, want %q after %d", s.name, got, inner.asked, s.want, s.asked)
		}
	}
}

func TestBreakerIgnoresFailuresOfSpanAndCaller(t *testing.T) {
	for name, err := range map[string]error{
		"refusal":   &summarize.Failure{Kind: summarize.FailRefusal},
		"too long":  &summarize.Failure{Kind: summarize.FailTooLongInput},
		"cancelled": context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			inner := &scripted{err: err}
			b := summarize.NewBreaker(inner, 1, time.Hour, time.Now)
			for range 3 {
				_, _ = b.Summarize(context.Background(), session.SummaryRequest{})
			}
			if inner.asked != 3 {
				t.Errorf("it was asked %d times, want 3", inner.asked)
			}
		})
	}
}
