package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/tokens"
	"sessiond/internal/usage"
)

// Sessions whose turns are measured beside compactions, in tokens: the window makes the threshold
// 24,000, below which a compaction keeps 7,200.
const (
	compactWindow = 32_000
	afterCompact  = 9_000
	beforeCompact = 24_000
)

// compact measures what compactions cost: the turns beside them, the plan, the digest.
func (b *bench) compact(ctx context.Context) error {
	if err := b.turnsBesideCompactions(ctx); err != nil {
		return err
	}
	return b.plansAndDigests(ctx)
}

// hangs is a summary server that answers nothing until it is closed.
func hangs() (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
	go s.Serve(l) //nolint:errcheck // ends with Close
	return "http://" + l.Addr().String(), s.Close, nil
}

// chat takes turns over HTTP, each with a reply and the next question.
type chat struct {
	name    string
	turn    []byte // the request
	fresh   func() error
	renewed bool // a fresh session whenever this one is as large as before a compaction
	line    *line
	tokens  int64
	took    []float64
}

// turnsBesideCompactions measures turns over HTTP in sessions of the same sizes: without
// compactions, with digests, and with a summary server that hangs.
func (b *bench) turnsBesideCompactions(ctx context.Context) (err error) {
	url, stop, err := hangs()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	chats := []*chat{{name: "none", renewed: true}, {name: "digests"}, {name: "hung"}}
	for i, environ := range [][]string{nil, nil, {
		"SESSIOND_SUMMARIZER_PROVIDER=openai", "SESSIOND_SUMMARIZER_MODEL=m", "SESSIOND_SUMMARIZER_TIMEOUT=10m", "SESSIOND_SUMMARIZER_BASE_URL=" + url,
	}} {
		d, err := b.serve(ctx, filepath.Join(b.work, "compact-"+chats[i].name, "sessions.db"), environ...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		if chats[i].line, err = d.dial(); err != nil {
			return err
		}
		if err := b.converse(chats[i]); err != nil {
			return err
		}
	}
	for range b.rounds {
		for _, c := range chats {
			if err := c.take(b.count(100)); err != nil {
				return fmt.Errorf("turns with %s: %w", c.name, err)
			}
		}
	}
	at := func(c *chat, share float64) timing {
		sorted := slices.Sorted(slices.Values(c.took))
		return timing{wall: series{sorted[int(share*float64(len(sorted)-1))]}}
	}
	for _, c := range chats[1:] {
		what := map[string]string{"digests": "compactions by digests", "hung": "a summary server that hangs"}[c.name]
		for _, q := range []struct {
			name  string
			share float64
			aims  []aim
		}{{"median", 0.5, nil}, {"p99", 0.99, []aim{{ratio: 1.5}}}} {
			b.add(row{
				name: fmt.Sprintf("POST turns with %s: %s of %d", what, q.name, len(c.took)), product: at(c, q.share), baseline: at(chats[0], q.share),
				against: "turns without compactions in sessions of the same sizes", aims: q.aims,
			})
		}
	}
	return nil
}

// converse prepares a session and the turn that is taken in it.
func (b *bench) converse(c *chat) error {
	write := newAuthor(11)
	pair := func(n int) []any {
		return []any{
			map[string]any{"role": "assistant", "content": write.sentence(n)},
			map[string]any{"role": "user", "content": write.sentence(n / 3)},
		}
	}
	body, err := json.Marshal(map[string]any{"dialect": "openai.chat", "messages": pair(90)})
	if err != nil {
		return err
	}
	var before []any
	for range 60 {
		before = append(before, pair(90)...)
	}
	begin, err := json.Marshal(map[string]any{"messages": before})
	if err != nil {
		return err
	}
	c.fresh = func() error {
		var made struct {
			ID string `json:"id"`
		}
		if err := c.line.decode(request("POST", "/v1/sessions", fmt.Sprintf(`{"title":"t","window":%d}`, compactWindow)), &made); err != nil {
			return err
		}
		c.turn = request("POST", "/v1/sessions/"+made.ID+"/turns", string(body))
		c.tokens = 0
		return c.line.send(request("POST", "/v1/sessions/"+made.ID+"/messages", string(begin)), nil)
	}
	return c.fresh()
}

// take takes n turns and keeps what each took.
func (c *chat) take(n int) error {
	for range n {
		if c.renewed && c.tokens > beforeCompact {
			if err := c.fresh(); err != nil {
				return err
			}
		}
		var got struct {
			Context struct {
				Tokens struct {
					Total int64 `json:"total"`
					Error int64 `json:"error"`
				} `json:"tokens"`
			} `json:"context"`
		}
		start := time.Now()
		if err := c.line.decode(c.turn, &got); err != nil {
			return err
		}
		c.took = append(c.took, float64(time.Since(start)))
		c.tokens = got.Context.Tokens.Total + got.Context.Tokens.Error + 400 // with the next turn
	}
	return nil
}

// plansAndDigests measures, in process, what stands between a turn and its compaction.
func (b *bench) plansAndDigests(ctx context.Context) (err error) {
	catalogue, err := usage.Load(nil)
	if err != nil {
		return err
	}
	var plans, digests []variant
	for _, size := range b.sizes() {
		o, err := b.open(ctx, size)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.close()) }()
		m := manager(o.store, catalogue)
		plans = append(plans, variant{name: "plan", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				_, _, err := m.Compact(ctx, o.wide, contextmgr.CompactInput{DryRun: true, Strategy: session.StrategyTruncate})
				return err
			})
		}})
		msgs, _, err := o.store.Messages(ctx, o.wide, store.MessagePage{Limit: keptWide, Descending: true})
		if err != nil {
			return err
		}
		slices.Reverse(msgs)
		digest := summarize.NewExtractive(tokens.Reference().Text)
		digests = append(digests, variant{name: "digest", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				_, err := digest.Summarize(ctx, session.SummaryRequest{Messages: msgs, MaxTokens: 2000, Purpose: session.PurposeSummary})
				return err
			})
		}})
	}
	for _, group := range []struct {
		name     string
		most     time.Duration
		variants []variant
	}{
		{"reading and planning a compaction of a full window", time.Millisecond, plans},
		{fmt.Sprintf("digest of a full window (%d messages)", keptWide), 20 * time.Millisecond, digests},
	} {
		times, err := race(ctx, b.rounds, b.count(20), group.variants...)
		if err != nil {
			return err
		}
		last := len(times) - 1
		b.add(row{
			name: group.name + ", history of " + thousands(b.sizes()[last]), product: times[last], baseline: times[0],
			against: "the same in a history of " + thousands(b.sizes()[0]), aims: []aim{{atMost: float64(group.most)}},
		})
	}
	return nil
}
