package contextmgr

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// held is a rig whose model answers only when released.
func held(t *testing.T) (*rig, hung) {
	h := hung{make(chan struct{}), make(chan session.Summary)}
	r := newRig(t, 20000, func(c *Config) { c.Remote = h })
	r.talk(30, 150)
	return r, h
}

var modelSays = session.Summary{Text: "MODEL", Provider: "gemini", Model: "flash", Calls: []session.Call{{Purpose: session.PurposeSummary, Status: session.CallOK, Model: "flash"}}}

type answered struct {
	c   session.Compaction
	err error
}

// finish runs Finish in the background.
func finish(ctx context.Context, b *Begun) chan answered {
	done := make(chan answered, 1)
	go func() {
		c, err := b.Finish(ctx)
		done <- answered{c, err}
	}()
	return done
}

func (r *rig) begin(in CompactInput) *Begun {
	r.t.Helper()
	return testkit.Must(r.mgr.Begin(r.ctx, r.id, in))(r.t)
}

func (r *rig) calls() []session.Call {
	r.t.Helper()
	calls, _, err := r.store.Calls(r.ctx, r.id, store.Page{Limit: 10})
	testkit.Check(r.t, err)
	return calls
}

func TestConcurrentCompactionsShareOneRecord(t *testing.T) {
	r, h := held(t)
	first := r.begin(CompactInput{Model: true})
	a := finish(r.ctx, first)
	<-h.asked
	b := finish(r.ctx, r.begin(CompactInput{Model: true, Idem: &session.Idempotency{Key: "b", Route: "r"}}))
	h.free <- modelSays
	one, two := <-a, <-b
	if one.err != nil || two.err != nil || one.c.ID != two.c.ID || one.c.Status != session.StatusDone || one.c.Provider != "gemini" {
		t.Errorf("%+v and %+v", one, two)
	}
	if c, err := r.store.ReplayedCompaction(r.ctx, &session.Idempotency{Key: "b", Route: "r"}); err != nil || c == nil || c.ID != one.c.ID {
		t.Errorf("the second request's retry is answered with %v, %v", c, err)
	}
	if n := len(r.compactions()); n != 1 || len(r.calls()) != 1 || r.session().CompactionCount != 1 {
		t.Errorf("%d records, %d calls", n, len(r.calls()))
	}
}

// If the leading caller goes away, the one that waits for the same result still gets it.
func TestWaitingCallerIsServedWhenTheLeadingOneLeaves(t *testing.T) {
	r, h := held(t)
	ctx, leave := context.WithCancel(r.ctx)
	a := finish(ctx, r.begin(CompactInput{Model: true}))
	<-h.asked
	b := make(chan answered, 1)
	go func() {
		c, _, err := r.mgr.Compact(r.ctx, r.id, CompactInput{Model: true})
		b <- answered{c, err}
	}()
	leave()
	if got := <-a; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the leader got %v", got.err)
	}
	<-h.asked
	h.free <- modelSays
	if got := <-b; got.err != nil || got.c.Status != session.StatusDone || got.c.Provider != "gemini" {
		t.Errorf("%+v", got)
	}
	all := r.compactions()
	if len(all) != 2 || all[0].Status != session.StatusFailed || all[0].Reason != session.ReasonBrokenOff {
		t.Errorf("%d records, the first %s: %s", len(all), all[0].Status, all[0].Reason)
	}
}

func TestCancelStopsTheModelAndChangesNothing(t *testing.T) {
	r, h := held(t)
	before := wire(r.read(Budget{}))
	b := r.begin(CompactInput{Model: true})
	done := finish(r.ctx, b)
	<-h.asked
	testkit.Must(r.mgr.Cancel(r.ctx, r.id, b.Record.RowID))(t)
	got := <-done // the model has not answered yet
	wantCode(t, got.err, session.Conflict, "was cancelled")
	if c := r.compactions()[0]; c.Status != session.StatusFailed || c.Reason != session.ReasonCancelled {
		t.Errorf("%s: %s", c.Status, c.Reason)
	}
	if wire(r.read(Budget{})) != before {
		t.Error("a cancelled compaction changed the context")
	}
	_, err := r.mgr.Cancel(r.ctx, r.id, b.Record.RowID)
	wantCode(t, err, session.Conflict, "only a running one")
	if c, _ := r.compact(CompactInput{}); c.Status != session.StatusDone {
		t.Errorf("the next one is %s", c.Status)
	}
}

func TestCancelInAnotherProcessStopsTheModel(t *testing.T) {
	r, h := held(t)
	b := r.begin(CompactInput{Model: true})
	done := finish(r.ctx, b)
	<-h.asked
	if err := r.mgr.DropCancelled(r.ctx); err != nil || !r.mgr.running.asksModel(r.id) {
		t.Fatalf("dropped unasked: %v", err)
	}
	other := New(r.store, r.mgr.cfg)
	testkit.Must(other.Cancel(r.ctx, r.id, b.Record.RowID))(t)
	testkit.Check(t, r.mgr.DropCancelled(r.ctx))
	wantCode(t, (<-done).err, session.Conflict, "was cancelled")
}

func TestCancelledStagedSummaryIsNotRetriedAtOnce(t *testing.T) {
	h := hung{make(chan struct{}), make(chan session.Summary)}
	r := newRig(t, 10000, func(c *Config) { c.Remote = h })
	r.talk(21, 150)
	r.turn(TurnInput{})
	staged := make(chan error, 1)
	go func() { staged <- r.mgr.Stage(r.ctx, r.id) }()
	<-h.asked
	testkit.Must(r.mgr.Cancel(r.ctx, r.id, r.compactions()[1].RowID))(t)
	if err := <-staged; err != nil {
		t.Errorf("staging: %v", err)
	}
	if due, err := r.mgr.StageDigest(r.ctx, r.id); err != nil || due || len(r.compactions()) != 2 {
		t.Errorf("due %v, %v, %d records", due, err, len(r.compactions()))
	}
}

// A staged summary that a stop interrupted is retried for the same messages.
func TestInterruptedStagedSummaryIsRetried(t *testing.T) {
	h := hung{make(chan struct{}), make(chan session.Summary)}
	r := newRig(t, 10000, func(c *Config) { c.Remote = h })
	r.talk(21, 150)
	r.turn(TurnInput{})
	ctx, stop := context.WithCancel(r.ctx)
	staged := make(chan error, 1)
	go func() { staged <- r.mgr.Stage(ctx, r.id) }()
	<-h.asked
	stop()
	<-staged
	r.talk(1, 20)
	go func() { staged <- r.mgr.Stage(r.ctx, r.id) }()
	<-h.asked
	h.free <- modelSays
	if err := <-staged; err != nil {
		t.Fatal(err)
	}
	all := r.compactions()
	if len(all) != 3 || all[0].Status != session.StatusStaged || all[1].Reason != session.ReasonBrokenOff || all[2].Status != session.StatusStaged || all[2].Provider != "gemini" {
		t.Fatalf("%+v", all)
	}
	if *all[0].ThroughID != *all[2].ThroughID {
		t.Errorf("the model tells of other messages than the digest: through %s and %s", all[2].Through, all[0].Through)
	}
}

// A failed model is asked again once the path has grown, not at each turn.
func TestFailingModelIsRetriedAfterGrowth(t *testing.T) {
	asks := 0
	r := newRig(t, 100000, func(c *Config) { c.Remote = counted{&asks} })
	r.talk(215, 150)
	for range 12 {
		r.talk(1, 250)
		r.turn(TurnInput{})
		_ = r.mgr.Stage(r.ctx, r.id) // it fails, and its record says so
	}
	if asks != 2 {
		t.Errorf("asked %d times while the path grew by %d tokens; 5 %% of the window are 5000", asks, 12*508)
	}
}

// counted is a model that fails and counts how often.
type counted struct{ n *int }

func (c counted) Summarize(context.Context, session.SummaryRequest) (session.Summary, error) {
	*c.n++
	return session.Summary{}, errors.New("no answer")
}

// While the model works, a turn compacts with a digest of the same messages: the summary replaces
// it. After a compaction of other messages it is not needed.
func TestCompactionFinishesAfterAnotherTookEffect(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile CompactInput
		status    session.Status
		context   string
	}{
		"by the same span": {CompactInput{}, session.StatusDone, "MODEL"},
		"by another span":  {CompactInput{KeepTokens: new(int64)}, session.StatusSkipped, "extractive of"},
	} {
		t.Run(name, func(t *testing.T) {
			r, h := held(t)
			done := finish(r.ctx, r.begin(CompactInput{Model: true}))
			<-h.asked
			if c, _ := r.compact(c.meanwhile); c.Status != session.StatusDone {
				t.Fatalf("meanwhile: %s %s", c.Status, c.Reason)
			}
			h.free <- modelSays
			got := <-done
			if got.err != nil || got.c.Status != c.status || got.c.Summary != "MODEL" {
				t.Errorf("%+v", got)
			}
			wantHas(t, r.read(Budget{}), c.context)
			if calls := r.calls(); len(calls) != 1 || *calls[0].CompactionID != got.c.RowID {
				t.Errorf("ledger: %+v", calls)
			}
		})
	}
}

// A starting daemon fails every running record. The result of a command that still runs counts.
func TestRunningSummarySurvivesADaemonStart(t *testing.T) {
	r, h := held(t)
	done := finish(r.ctx, r.begin(CompactInput{Model: true}))
	<-h.asked
	testkit.Must(r.store.FailRunning(r.ctx, session.ReasonBrokenOff))(t)
	h.free <- modelSays
	if got := <-done; got.err != nil || got.c.Status != session.StatusDone || got.c.ID != "cmp_2" {
		t.Errorf("%+v", got)
	}
	wantHas(t, r.read(Budget{}), "MODEL")
}

// halfway is a model that summarises the span and fails at the update.
type halfway struct{}

func (halfway) Summarize(context.Context, session.SummaryRequest) (session.Summary, error) {
	return session.Summary{Span: "WHAT WAS PAID FOR"}, errors.New("no update")
}

func TestFailedSummaryKeepsItsSpanSummary(t *testing.T) {
	r := newRig(t, 10000, func(c *Config) { c.Remote = halfway{} })
	r.talk(21, 150)
	if err := r.mgr.Stage(r.ctx, r.id); err == nil {
		t.Error("no error")
	}
	if c := r.compactions()[1]; c.Status != session.StatusFailed || c.SpanSummary != "WHAT WAS PAID FOR" || !strings.Contains(c.Reason, "no update") {
		t.Errorf("%s %q: %s", c.Status, c.SpanSummary, c.Reason)
	}
}
