package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// turns measures contexts as a client sees them, from a daemon for each size of the history:
// with recall, and as turns that append, make the context and record it.
func (b *bench) turns(ctx context.Context) (err error) {
	var contexts, turns []variant
	for _, size := range b.sizes() {
		h, err := b.copied(ctx, size)
		if err != nil {
			return err
		}
		d, err := b.serve(ctx, h.db)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		l, err := d.dial()
		if err != nil {
			return err
		}
		get := request("GET", fmt.Sprintf("/v1/sessions/%s/context?dialect=openai.chat", h.long), "")
		if err := recalled(l, get); err != nil {
			return fmt.Errorf("history of %d: %w", size, err)
		}
		contexts = append(contexts, variant{name: "context", used: d.processorTime, run: func(_ context.Context, n int) error {
			return each(n, func(int) error { return l.send(get, nil) })
		}})
		body, err := json.Marshal(map[string]any{
			"dialect": "openai.chat", "settings": map[string]any{"recall_tokens": 0},
			"messages": []any{map[string]any{"role": "user", "content": "Go on."}, map[string]any{"role": "assistant", "content": "Done."}},
		})
		if err != nil {
			return err
		}
		post := request("POST", fmt.Sprintf("/v1/sessions/%s/turns", h.long), string(body))
		turns = append(turns, variant{name: "turn", used: d.processorTime, run: func(_ context.Context, n int) error {
			return each(n, func(int) error { return l.send(post, nil) })
		}})
	}
	last := len(contexts) - 1
	// Few turns, for each makes the next one's context longer.
	for _, group := range []struct {
		name     string
		n        int
		variants []variant
		aims     []aim
	}{
		{fmt.Sprintf("GET context of %d messages with recall", keptShort), b.count(40), contexts, []aim{{atMost: float64(10 * time.Millisecond)}, {ratio: 1.2}}},
		{"POST turns: append two messages, then the context", b.count(10), turns, []aim{{ratio: 1.2}}},
	} {
		times, err := race(ctx, b.rounds, group.n, group.variants...)
		if err != nil {
			return err
		}
		sizes := b.sizes()
		b.add(row{
			name: group.name + ", history of " + thousands(sizes[last]), product: times[last], baseline: times[0],
			against: "the same in a history of " + thousands(sizes[0]), aims: group.aims,
		})
	}
	return nil
}

// recalled checks that a context holds what was recalled. Recall has 5 ms by the clock, which
// may be too little for it on a busy machine: then the context says so, which is right, too.
func recalled(l *line, get []byte) error {
	const tries = 20
	var answer bytes.Buffer
	for range tries {
		if err := l.send(get, &answer); err != nil {
			return err
		}
		if bytes.Contains(answer.Bytes(), []byte("recalled_messages")) {
			return nil
		}
	}
	if bytes.Contains(answer.Bytes(), []byte("recall stopped")) {
		return nil
	}
	return fmt.Errorf("nothing was recalled: %.1000s", answer.Bytes())
}
