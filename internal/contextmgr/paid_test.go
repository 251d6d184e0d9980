package contextmgr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// pacedModel answers when its gate opens.
type pacedModel struct {
	asked chan struct{} // a request has begun
	gate  chan struct{}
	n     int
}

func (m *pacedModel) Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error) {
	select {
	case m.asked <- struct{}{}:
	default: // a split turn asks twice
	}
	select {
	case <-m.gate:
	case <-ctx.Done():
		return session.Summary{}, ctx.Err()
	}
	m.n++
	return session.Summary{
		Text: fmt.Sprintf("MODEL %d. %.300s", m.n, in.Previous), Span: fmt.Sprintf("MODEL SPAN %d", m.n),
		Provider: "gemini", Model: "flash",
		Calls: []session.Call{{Purpose: session.PurposeSummary, Status: session.CallOK, Provider: "gemini", Model: "flash"}},
	}, nil
}

// pacedRig plays an agent whose model for summaries takes as long as the test says.
type pacedRig struct {
	*rig
	model   *pacedModel
	runs    chan error // of the request under way; nil: none
	readyAt time.Time
	soft    bool
}

func newPacedRig(t *testing.T, window int64) *pacedRig {
	p := &pacedRig{model: &pacedModel{asked: make(chan struct{}, 1)}}
	p.rig = newRig(t, window, func(c *Config) {
		c.Remotes = defaultRemote(p.model)
		c.OnSoft = func(session.ID) { p.soft = true }
	})
	return p
}

// stage does what the daemon's jobs do after a turn above the soft threshold.
func (p *pacedRig) stage(latency time.Duration) {
	p.t.Helper()
	if !p.soft {
		return
	}
	p.soft = false
	due := testkit.Must(p.mgr.StageDigest(p.ctx, p.id))(p.t)
	if !due || p.runs != nil {
		return
	}
	runs := make(chan error, 1)
	p.model.gate = make(chan struct{})
	go func() { runs <- p.mgr.StageModel(p.ctx, p.id) }()
	select {
	case <-p.model.asked:
		p.runs, p.readyAt = runs, p.clock.Now().Add(latency)
	case err := <-runs:
		testkit.Check(p.t, err)
	}
}

// pass lets time pass, in which the model may answer.
func (p *pacedRig) pass(d time.Duration) {
	p.t.Helper()
	until := p.clock.Now().Add(d)
	if p.runs != nil && !p.readyAt.After(until) {
		p.clock.advance(p.readyAt.Sub(p.clock.Now()))
		close(p.model.gate)
		testkit.Check(p.t, <-p.runs)
		select {
		case <-p.model.asked:
		default:
		}
		p.runs = nil
	}
	p.clock.advance(max(0, until.Sub(p.clock.Now())))
}

// A summary that takes four seconds is used in a window of 16,000, however fast the agent is, and no turn waits for
// it: the model is held while the turns run.
func TestPaidSummariesAreUsed(t *testing.T) {
	const latency = 4 * time.Second
	for _, c := range []struct {
		name   string
		turn   time.Duration // from one request to the next
		tokens int           // of a person's question and what follows
		calls  int
		atOnce int // so many of ten take effect themselves
	}{
		{"slow agent, short turns", 20 * time.Second, 200, 0, 9},
		{"slow agent, long turns", 20 * time.Second, 1500, 0, 9},
		{"fast agent, short turns", time.Second, 200, 0, 9},
		{"fast agent, long turns", time.Second, 1500, 0, 0},
		{"fast agent, huge turns", time.Second, 3000, 0, 0},
		{"slow agent, calls", 5 * time.Second, 600, 6, 9},
		{"fast agent, calls", time.Second / 2, 600, 6, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPacedRig(t, 16000)
			for n := range min(60000/c.tokens, 120) {
				p.append(text(session.User, fmt.Sprintf("Question %d. %s", n, filler(c.tokens/10))))
				left := c.tokens * 9 / 10
				for i := range c.calls + 1 {
					if v := p.turn(TurnInput{}); v.Prefix.BrokenBy != "" && (v.Prefix.BrokenBy != "epoch" || v.Compaction == nil) {
						t.Fatalf("the prefix is broken by %s", v.Prefix.BrokenBy) // a late summary never breaks it
					}
					if i < c.calls {
						id := fmt.Sprintf("c%d_%d", n, i)
						p.append(calling(id), answering(id, filler(left/(c.calls+1))))
					} else {
						p.append(text(session.Assistant, fmt.Sprintf("Answer %d. %s", n, filler(left/(c.calls+1)))))
					}
					p.pass(c.turn / 2)
					p.stage(latency)
					p.pass(c.turn / 2)
				}
			}
			p.wantUsed(c.atOnce)
		})
	}
}

// wantUsed compares the query's numbers with the records: four of five paid summaries are used, so many of ten at
// once, and the rest feed a later compaction.
func (p *pacedRig) wantUsed(atOnce int) {
	p.t.Helper()
	all := p.compactions()
	var paid, direct, fed, waiting int
	for i := range all {
		c := &all[i]
		if !byModel(c) {
			continue
		}
		paid++
		switch use := useOf(all, c); {
		case c.Status == session.StatusDone:
			direct++
		case use == summaryUsed:
			fed++
			p.wantFed(all, c)
		case use == summaryWaits:
			waiting++
		}
	}
	table := testkit.Must(analytics.New(p.store.Reader(), time.UTC).Run(p.ctx, "paid-summaries",
		map[string]string{"session": string(p.id)}))(p.t)
	want := []any{string(p.id), int64(paid), int64(direct + fed), int64(direct), int64(fed), int64(waiting), nil}
	if len(table.Rows) != 1 || fmt.Sprint(table.Rows[0]) != fmt.Sprint(want) {
		p.t.Errorf("the query says %v, the records %v", table.Rows, want)
	}
	p.t.Logf("paid %d, used %d: %d took effect, %d fed the next; %d wait", paid, direct+fed, direct, fed, waiting)
	if settled := paid - waiting; paid < 3 || (direct+fed)*5 < settled*4 || waiting > 1 || direct*10 < atOnce*settled {
		p.t.Errorf("too few summaries are used, or too few at once")
	}
}

// wantFed checks that the compaction after a late summary builds on its text.
func (p *pacedRig) wantFed(all []session.Compaction, late *session.Compaction) {
	p.t.Helper()
	for i := range all {
		c := &all[i]
		if c.Status == session.StatusDone && sameRow(c.PreviousID, late.PreviousID) && !c.CreatedAt.Before(finishedAt(late)) {
			if name, _, _ := strings.Cut(late.Summary, "."); !strings.Contains(c.Summary, name) {
				p.t.Errorf("%s does not build on %s: %.100s", c.ID, name, c.Summary)
			}
		}
	}
}

func TestSmallWindowStagesThreeTurnsAhead(t *testing.T) {
	path := func(turns int, tokens int64) (out []Entry) {
		for range turns {
			out = append(out, Entry{Role: session.User, InContext: true, Tokens: tokens / 4},
				Entry{Role: session.Assistant, InContext: true, Tokens: tokens / 2},
				Entry{Role: session.Tool, InContext: true, Tokens: tokens / 4}, Entry{Role: session.Assistant, Tokens: 1 << 30})
		}
		return out
	}
	for name, c := range map[string]struct {
		window int64
		path   []Entry
		want   int64
	}{
		"no path yet":            {16000, nil, 9000},
		"short turns":            {16000, path(20, 400), 9000},
		"turns of a twelfth":     {16000, path(5, 1000), 9000},
		"turns of an eighth":     {16000, path(5, 1600), 7200},
		"turns of a quarter":     {16000, path(2, 3000), 6000},
		"one turn of everything": {16000, path(1, 11000), 6000},
		"no reply yet":           {16000, []Entry{{Role: session.User, InContext: true, Tokens: 1500}}, 7500},
		"just below 32k":         {31999, path(5, 400), 18000},
		"32k":                    {32000, path(5, 4000), 21600},
		"200k":                   {200000, path(5, 40000), 144000},
	} {
		n := testkit.Must(Resolve(nil, c.window, 0))(t)
		if got := softThreshold(&n, c.path); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// wasted is a record of a model's summary that nothing uses.
func wasted(id, hidden int64) session.Compaction {
	return session.Compaction{
		RowID: id, SessionID: "s", Strategy: session.StrategySummarize, Trigger: session.TriggerThreshold,
		Status: session.StatusSkipped, Provider: "gemini", ThroughID: ptr(100 + id), HiddenTokens: hidden,
		SpanSummary: "span",
	}
}

func TestModelRestsAfterTwoUnusedSummaries(t *testing.T) {
	used, failed, manual, others := wasted(9, 900), wasted(2, 200), wasted(2, 200), wasted(2, 200)
	used.Status, failed.Status, manual.Trigger, others.SessionID = session.StatusDone, session.StatusFailed,
		session.TriggerManual, "fork"
	digest, next := wasted(3, 200), wasted(4, 300)
	digest.Provider, digest.Status, digest.ThroughID = digestProvider, session.StatusDone, ptr[int64](102)
	next.Provider, next.Status, next.PreviousID = digestProvider, session.StatusDone, ptr[int64](3)
	waits := wasted(5, 300)
	waits.Status = session.StatusStaged
	for name, c := range map[string]struct {
		all  []session.Compaction
		grew int64 // the staged digest hides so much
		want bool
	}{
		"none":                            {nil, 0, false},
		"one":                             {[]session.Compaction{wasted(1, 100)}, 100, false},
		"two":                             {[]session.Compaction{wasted(1, 100), wasted(2, 200)}, 300, true},
		"two, and almost a window since":  {[]session.Compaction{wasted(1, 100), wasted(2, 200)}, 16199, true},
		"two, and a window since":         {[]session.Compaction{wasted(1, 100), wasted(2, 200)}, 16200, false},
		"a paid answer that was no use":   {[]session.Compaction{wasted(1, 100), failed}, 300, true},
		"a used one since":                {[]session.Compaction{wasted(1, 100), wasted(2, 200), used}, 300, false},
		"a used one between":              {[]session.Compaction{wasted(1, 100), used, wasted(2, 200)}, 300, false},
		"one that may still be used":      {[]session.Compaction{wasted(1, 100), wasted(2, 200), waits}, 300, true},
		"one that fed a later compaction": {[]session.Compaction{wasted(1, 100), wasted(2, 200), digest, next}, 300, false},
		"one that may still feed one":     {[]session.Compaction{wasted(1, 100), wasted(2, 200), digest}, 300, false},
		"one that a person asked for":     {[]session.Compaction{wasted(1, 100), manual}, 300, false},
		"one of another session":          {[]session.Compaction{wasted(1, 100), others}, 300, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &staging{snapshot: &snapshot{sess: session.Session{ID: "s"}, numbers: Numbers{Window: 16000}}, all: c.all}
			s.staged = &session.Compaction{HiddenTokens: c.grew}
			if got := modelRests(s); got != c.want {
				t.Errorf("rests: %v", got)
			}
		})
	}
}

// A model whose answers are paid for and are no summaries is asked twice, then again after a window.
func TestModelWhosePaidAnswersAreUselessRests(t *testing.T) {
	asks := 0
	r := newRig(t, 16000, func(c *Config) { c.Remotes = defaultRemote(useless{&asks}) })
	grown := func(tokens int) int {
		asks = 0
		for range tokens / 1000 {
			r.talk(1, 500)
			r.turn(TurnInput{})
			_ = r.mgr.Stage(r.ctx, r.id) // its record says that it failed
		}
		return asks
	}
	if n := grown(24000); n != mostUnused {
		t.Errorf("asked %d times", n)
	}
	if n := grown(20000); n != 1 {
		t.Errorf("asked %d times after a window", n)
	}
	if c := r.compactions()[1]; c.Status != session.StatusFailed || c.Provider != "gemini" || c.Model != "flash" {
		t.Errorf("the record of a paid answer: %s by %q %q", c.Status, c.Provider, c.Model)
	}
}

// useless is a model whose answers are no summaries.
type useless struct{ n *int }

func (u useless) Summarize(context.Context, session.SummaryRequest) (session.Summary, error) {
	*u.n++
	call := session.Call{Purpose: session.PurposeSummary, Status: session.CallOK, Provider: "gemini", Model: "flash"}
	return session.Summary{Calls: []session.Call{call}}, errors.New("the answer is not a valid summary")
}
