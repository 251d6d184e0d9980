package store

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// CounterStep is something that changed what is known of a context's size: a call's report,
// or a compaction that took effect.
type CounterStep struct {
	At         session.Time
	Call       *session.Call
	Compaction *session.Compaction
}

// counterCalls bounds how far back a call is looked for that tells of its prompt.
const counterCalls = 20

// Counters gives the steps that say how full a session's context is, oldest first: its
// compactions, and of its calls for chat the newest back to one that tells of its prompt.
func (s *Store) Counters(ctx context.Context, id session.ID) ([]CounterStep, error) {
	var steps []CounterStep
	err := each(ctx, s, func(row *session.Call) error {
		c := *row
		steps = append(steps, CounterStep{At: c.CreatedAt, Call: &c})
		if c.InputTokens+c.CacheReadTokens+c.CacheWriteTokens > 0 {
			return errEnough
		}
		return nil
	}, callsThatCount, id, counterCalls)
	if err != nil {
		return nil, fmt.Errorf("calls of %s: %w", id, err)
	}
	err = each(ctx, s, func(row *session.Compaction) error {
		if c := *row; c.ActivatedAt != nil {
			steps = append(steps, CounterStep{At: *c.ActivatedAt, Compaction: &c})
		}
		return nil
	}, compactionsThatCount, id)
	if err != nil {
		return nil, fmt.Errorf("compactions of %s: %w", id, err)
	}
	slices.SortStableFunc(steps, func(a, b CounterStep) int { return a.At.Compare(b.At.Time) })
	return steps, nil
}

const (
	callsThatCount = `SELECT created_at, provider, model, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens
		FROM calls WHERE session_id = ? AND session_id <> '' AND purpose = 'chat' AND status = 'ok' ORDER BY id DESC LIMIT +?`
	compactionsThatCount = `SELECT activated_at, tokens_after FROM compactions WHERE session_id = ? AND status = 'done' ORDER BY id`
)
