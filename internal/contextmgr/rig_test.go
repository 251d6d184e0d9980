package contextmgr

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"

	"github.com/rs/zerolog"
)

// runes counts a token for four runes and four for each message, so that sizes in tests can
// be computed by hand.
type runes struct{}

func (runes) Text(s string) int64 { return int64(utf8.RuneCountInString(s)+3) / 4 }

func (c runes) Measure(m *session.Message) {
	m.Tokens = 4
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Tokens = c.Text(p.Content()) + c.Text(p.Arguments)
		m.Tokens += p.Tokens
	}
}

// heads is a digest of the beginning of each message, newest last, within budget.
type heads struct{ name string }

func (d heads) Summarize(_ context.Context, in session.SummaryRequest) (session.Summary, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d messages. Before: %.200s\n", d.name, len(in.Messages), in.Previous)
	for i := range in.Messages {
		fmt.Fprintf(&b, "%.20s\n", in.Messages[i].Text())
	}
	text := b.String()
	if most := int(in.MaxTokens) * 3; len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return session.Summary{Text: text, Provider: d.name, Model: "m"}, nil
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rig is a session in a real store with a manager over it.
type rig struct {
	t     testing.TB
	ctx   context.Context
	store *store.Store
	clock *clock
	mgr   *Manager
	id    session.ID
	n     int
}

// defaultRemote configures one model.
func defaultRemote(s Summarizer) map[string]Remote { return map[string]Remote{"": {Summarizer: s}} }

func newRig(t testing.TB, window int64, change ...func(*Config)) *rig {
	t.Helper()
	c := &clock{now: time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)}
	st := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")), store.Options{
		Now: c.Now, Zone: time.UTC, Log: zerolog.Nop(), Measure: runes{}.Measure,
	}))(t)
	t.Cleanup(func() { _ = st.Close() })
	cfg := Config{
		Digest: heads{"extractive"},
		Models: func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Family: "runes", Window: window}, true
		},
		Counter:   func(string) Counter { return runes{} },
		Reference: "runes",
		Dialects:  dialect.Providers{},
		Now:       c.Now,
	}
	for _, f := range change {
		f(&cfg)
	}
	r := &rig{t: t, ctx: t.Context(), store: st, clock: c, mgr: New(st, cfg)}
	r.fresh()
	return r
}

// fresh creates another session.
func (r *rig) fresh() {
	r.t.Helper()
	sess := testkit.Must(r.store.CreateSession(r.ctx, store.NewSession{Model: "m"}))(r.t)
	r.id = sess.ID
}

func text(role session.Role, s string) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: role, Origin: session.Person, InContext: true, Display: true,
		Parts: []session.Part{session.TextPart(s)},
	}
	switch role {
	case session.Assistant:
		m.Origin, m.Finish = session.Model, session.FinishStop
	case session.System:
		m.Origin = session.Program
	}
	return m
}

func calling(ids ...string) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true,
		Display: true, Finish: session.FinishToolCalls,
	}
	for _, id := range ids {
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartToolCall, CallID: id, ToolName: "bash",
			Arguments: `{"command":"ls"}`,
		})
	}
	return m
}

func answering(id, s string) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: session.Tool, Origin: session.ByTool, InContext: true, Display: true,
		Parts: []session.Part{{Kind: session.PartToolResult, CallID: id, ToolName: "bash", Text: s}},
	}
}

// append stores messages and returns them as stored.
func (r *rig) append(msgs ...session.Message) []session.Message {
	r.t.Helper()
	out := testkit.Must(r.store.Append(r.ctx, store.Append{Session: r.id, Messages: msgs}))(r.t)
	return out.Messages
}

// talk appends turns of a question and an answer with about this many tokens each.
func (r *rig) talk(turns, tokens int) {
	r.t.Helper()
	var msgs []session.Message
	for range turns {
		r.n++
		msgs = append(msgs,
			text(session.User, fmt.Sprintf("Question %d. %s", r.n, filler(tokens))),
			text(session.Assistant, fmt.Sprintf("Answer %d. %s", r.n, filler(tokens))))
	}
	r.append(msgs...)
}

func filler(tokens int) string { return strings.Repeat("lorem ip", tokens/2) }

func (r *rig) turn(in TurnInput) View {
	r.t.Helper()
	v, err := r.mgr.Turn(r.ctx, r.id, in)
	if err != nil {
		r.t.Fatalf("turn: %v", err)
	}
	r.sound(v)
	return v
}

func (r *rig) read(b Budget) View {
	r.t.Helper()
	v, err := r.mgr.Assemble(r.ctx, r.id, b)
	if err != nil {
		r.t.Fatalf("assemble: %v", err)
	}
	r.sound(v)
	return v
}

func (r *rig) session() session.Session {
	r.t.Helper()
	return testkit.Must(r.store.Session(r.ctx, r.id))(r.t)
}

func (r *rig) compactions() []session.Compaction {
	r.t.Helper()
	return testkit.Must(r.store.Compactions(r.ctx, r.id))(r.t)
}

// undo undoes a compaction and returns the warning.
func (r *rig) undo(compaction int64) string {
	r.t.Helper()
	testkit.Must(r.mgr.Undo(r.ctx, r.id, compaction))(r.t)
	return testkit.Must(r.mgr.SizeWarning(r.ctx, r.id))(r.t)
}

// redo redoes a compaction and returns the warning.
func (r *rig) redo(compaction int64) string {
	r.t.Helper()
	testkit.Must(r.mgr.Redo(r.ctx, r.id, compaction))(r.t)
	return testkit.Must(r.mgr.SizeWarning(r.ctx, r.id))(r.t)
}

func (r *rig) compact(in CompactInput) (session.Compaction, Preview) {
	r.t.Helper()
	c, p, err := r.mgr.Compact(r.ctx, r.id, in)
	if err != nil {
		r.t.Fatalf("compact: %v", err)
	}
	return c, p
}

// sound checks invariant 4 on a context.
func (r *rig) sound(v View) {
	r.t.Helper()
	if limit := v.Tokens.Window - v.Tokens.Reserve; v.Tokens.Total > limit && len(v.Pending) == 0 {
		r.t.Fatalf("the context has %d tokens, its limit is %d", v.Tokens.Total, limit)
	}
	var sum int64
	for _, p := range v.Provenance {
		sum += p.Tokens
	}
	if sum != v.Tokens.Estimate {
		r.t.Fatalf("the provenance adds up to %d tokens, the estimate is %d", sum, v.Tokens.Estimate)
	}
	waiting := map[string]bool{}
	for i, m := range v.Messages {
		if m.Role != session.Tool && len(waiting) > 0 {
			r.t.Fatalf("message %d (%s) stands between calls and their results %v", i, m.Role, waiting)
		}
		for _, p := range m.Calls() {
			waiting[p.CallID] = true
		}
		for _, p := range m.Results() {
			if !waiting[p.CallID] {
				r.t.Fatalf("message %d answers %q, which nothing before it called", i, p.CallID)
			}
			delete(waiting, p.CallID)
		}
	}
	if len(waiting) > 0 && len(v.Messages) > 0 {
		r.t.Fatalf("calls without a result: %v", waiting)
	}
}

// wire returns the model's input as one string.
func wire(v View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[system] %s\n", v.System)
	for i := range v.Messages {
		fmt.Fprintf(&b, "%s\n", flat(&v.Messages[i]))
	}
	return b.String()
}

func flat(m *session.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]", m.Role)
	for i := range m.Parts {
		p := &m.Parts[i]
		fmt.Fprintf(&b, " %s(%s%s%s)", p.Kind, p.CallID, p.Arguments, p.Content())
	}
	return b.String()
}

func wantCode(t testing.TB, err error, code session.Code, words ...string) {
	t.Helper()
	if session.CodeOf(err) != code {
		t.Fatalf("error is %v (code %q), want code %q", err, session.CodeOf(err), code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func wantHas(t testing.TB, v View, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(wire(v), p) {
			t.Errorf("the context lacks %q:\n%.3000s", p, wire(v))
		}
	}
}

func wantLacks(t testing.TB, v View, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(wire(v), p) {
			t.Errorf("the context has %q", p)
		}
	}
}
