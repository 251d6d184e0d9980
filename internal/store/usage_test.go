package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func priced(nano int64) *int64 { return &nano }

func TestACallIsCountedOnceWhereverItIsSeen(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	a, b := mustCreate(t, s, NewSession{Directory: "/d"}), mustCreate(t, s, NewSession{})
	call := session.Call{SessionID: a.ID, ExternalID: "resp_1", Model: "m", InputTokens: 10, OutputTokens: 5, CostNanoUSD: priced(7)}
	first := testkit.Must(s.AddCall(ctx, call))(t)
	before := testkit.Must(s.Session(ctx, a.ID))(t)
	call.SessionID, call.InputTokens, call.OutputTokens, call.Source = b.ID, 9, 0, session.SourceSessiond
	again := testkit.Must(s.AddCall(ctx, call))(t)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("not given back as it was:\n%s", diff)
	}
	testkit.Equal(t, before, testkit.Must(s.Session(ctx, a.ID))(t))
	if got := testkit.Must(s.Session(ctx, b.ID))(t); got.InputTokens != 0 || got.Revision != b.Revision {
		t.Errorf("%+v", got)
	}
	if first.Directory != "/d" || first.Purpose != session.PurposeChat || *first.CostUSD != 7e-9 {
		t.Errorf("%+v", first)
	}
	_, err := s.AddCall(ctx, session.Call{SessionID: "20200101_001"})
	wants(t, err, session.NotFound, "")
	testkit.Must(s.AddCall(ctx, session.Call{Purpose: session.PurposeTitle}))(t) // of no session
	mustBeHealthy(t, s)
}

func TestKnownCallRisesToTheGreaterReport(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	owner, fork := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	first := session.Call{SessionID: owner.ID, ExternalID: "msg_1", Model: "m", InputTokens: 10, CacheWriteTokens: 50, OutputTokens: 1}
	testkit.Must(s.AddCall(ctx, first))(t)
	later := first
	later.SessionID, later.InputTokens, later.CacheWrite1h, later.OutputTokens, later.CostNanoUSD = fork.ID, 3, 40, 412, priced(9)
	testkit.Must(s.AddCall(ctx, later))(t)
	testkit.Must(s.AddCall(ctx, first))(t) // what is smaller lowers nothing

	calls, _, err := s.Calls(ctx, owner.ID, Page{})
	if err != nil || len(calls) != 1 {
		t.Fatalf("%+v %v", calls, err)
	}
	got := calls[0]
	if got.InputTokens != 10 || got.CacheWriteTokens != 50 || got.CacheWrite1h != 40 || got.OutputTokens != 412 || *got.CostNanoUSD != 9 {
		t.Errorf("%+v", got)
	}
	if sess := testkit.Must(s.Session(ctx, owner.ID))(t); sess.OutputTokens != 412 || sess.UnpricedCalls != 0 || *sess.CostNanoUSD != 9 {
		t.Errorf("the session counts %d tokens, %d unpriced", sess.OutputTokens, sess.UnpricedCalls)
	}
	if sess := testkit.Must(s.Session(ctx, fork.ID))(t); sess.OutputTokens != 0 {
		t.Errorf("the fork counts %d tokens of its origin's call", sess.OutputTokens)
	}
	mustBeHealthy(t, s) // compares the roll-up with the ledger
}

func TestAnUnknownCostIsNotFree(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for i, c := range []struct {
		cost     *int64
		sum      *int64
		unpriced int64
	}{{nil, nil, 1}, {priced(0), priced(0), 1}, {priced(5), priced(5), 1}, {nil, priced(5), 2}} {
		testkit.Must(s.AddCall(ctx, session.Call{SessionID: sess.ID, CostNanoUSD: c.cost}))(t)
		got := testkit.Must(s.Session(ctx, sess.ID))(t)
		if diff := cmp.Diff(c.sum, got.CostNanoUSD); diff != "" || got.UnpricedCalls != c.unpriced || (c.sum == nil) != (got.CostUSD == nil) {
			t.Errorf("after call %d: %s %d unpriced", i, diff, got.UnpricedCalls)
		}
	}
	mustBeHealthy(t, s)
}

func TestTheCallOfAnAppendBelongsToItsReply(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	out := testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Messages: []session.Message{says(session.User, "q"), says(session.Assistant, "a"), says(session.User, "q2")},
		Call: &session.Call{Provider: "p", Model: "m", InputTokens: 3},
	}))(t)
	calls, next, err := s.Calls(ctx, sess.ID, Page{})
	if err != nil || next != "" || len(calls) != 1 || *calls[0].MessageID != out.Messages[1].RowID {
		t.Fatalf("%+v %v", calls, err)
	}
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.Provider != "p" || got.Model != "m" || got.InputTokens != 3 {
		t.Errorf("%+v", got)
	}
	testkit.Must(s.Append(ctx, Append{Session: sess.ID, Call: &session.Call{InputTokens: 1}}))(t) // a call without a message
	mustBeHealthy(t, s)
}

func TestCallsArePaged(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for i := range 7 {
		testkit.Must(s.AddCall(ctx, session.Call{SessionID: sess.ID, InputTokens: int64(i)}))(t)
	}
	var got []int64
	p := Page{Limit: 3}
	for {
		calls, next, err := s.Calls(ctx, sess.ID, p)
		testkit.Check(t, err)
		for _, c := range calls {
			got = append(got, c.InputTokens)
		}
		if p.Cursor = next; next == "" {
			break
		}
	}
	if fmt.Sprint(got) != "[0 1 2 3 4 5 6]" {
		t.Errorf("%v", got)
	}
	_, _, err := s.Calls(ctx, sess.ID, Page{Cursor: "x"})
	wants(t, err, session.Invalid, "cursor")
	_, _, err = s.Calls(ctx, "20200101_001", Page{})
	wants(t, err, session.NotFound, "")
}

func TestTheLastReportIsOfThePathAndTheEpoch(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	sess := mustCreate(t, s, NewSession{})
	turn := func(parent *session.MessageRef, input int64, contextID *int64) {
		t.Helper()
		now = now.Add(time.Second)
		testkit.Must(s.Append(ctx, Append{
			Session: sess.ID, Parent: parent, Messages: []session.Message{says(session.User, "question"), says(session.Assistant, "answer")},
			Call: &session.Call{InputTokens: input, ContextID: contextID},
		}))(t)
	}
	report := func() int64 {
		t.Helper()
		r := testkit.Must(s.LastReport(ctx, testkit.Must(s.Session(ctx, sess.ID))(t)))(t)
		if r == nil {
			return 0
		}
		return r.InputTokens
	}
	if report() != 0 {
		t.Error("a report of nothing")
	}
	turn(nil, 10, nil)
	turn(nil, 20, nil)
	if got := report(); got != 20 {
		t.Error(got)
	}
	turn(ref(sess.ID, 2), 0, nil) // a branch whose call reported nothing
	if got := report(); got != 10 {
		t.Error(got)
	}
	now = now.Add(time.Second)
	testkit.Must(s.AddCompaction(ctx, overlay(t, s, sess.ID, 2, session.StatusDone, 1)))(t)
	if got := report(); got != 0 {
		t.Errorf("%d is of the epoch before", got)
	}
	c := testkit.Must(s.SaveContext(ctx, session.Context{SessionID: sess.ID, Epoch: testkit.Must(s.Session(ctx, sess.ID))(t).Epoch}, nil, nil))(t)
	turn(nil, 30, &c.RowID)
	if got := report(); got != 30 {
		t.Error(got)
	}
}

func TestCountersAndRollUpsEqualARecount(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) {
		o.Now, o.Zone = func() time.Time { return now }, time.FixedZone("west", -7*3600)
	})
	rapid.Check(t, func(rt *rapid.T) {
		var ids []session.ID
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-600, 1500).Draw(rt, "minutes")) * time.Minute)
			var call *session.Call
			if rapid.Bool().Draw(rt, "call") {
				call = &session.Call{
					Model: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "model"), ExternalID: rapid.SampledFrom([]string{"", "1", "2"}).Draw(rt, "external"),
					InputTokens: rapid.Int64Range(0, 9).Draw(rt, "input"), OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4,
				}
				if rapid.Bool().Draw(rt, "priced") {
					call.CostNanoUSD = priced(rapid.Int64Range(0, 9).Draw(rt, "cost"))
				}
			}
			var err error
			switch kind := rapid.IntRange(0, 4).Draw(rt, "step"); {
			case kind == 0 || len(ids) == 0:
				var sess session.Session
				sess, err = s.CreateSession(ctx, NewSession{Draft: rapid.Bool().Draw(rt, "draft"), Source: rapid.SampledFrom([]session.Source{"pi", "goose"}).Draw(rt, "source")})
				ids = append(ids, sess.ID)
			case kind == 1 && call != nil:
				call.SessionID = rapid.SampledFrom(ids).Draw(rt, "session")
				_, err = s.AddCall(ctx, *call)
			default:
				role := rapid.SampledFrom([]session.Role{session.User, session.Assistant, session.Tool}).Draw(rt, "role")
				_, err = s.Append(ctx, Append{Session: rapid.SampledFrom(ids).Draw(rt, "session"), Messages: []session.Message{says(role, "x"), says(role, "y")}, Call: call})
			}
			testkit.Check(rt, err)
		}
		checks := testkit.Must(s.Doctor(ctx, true))(rt)
		for _, c := range checks {
			if !c.OK {
				rt.Fatalf("%s: %s", c.Name, c.Detail)
			}
		}
	})
}

func TestTheCatalogueIsWrittenOnce(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	models := []session.ModelInfo{{ID: "m", Provider: "p", Window: 10, MaxOutput: 5, Modalities: []string{"text"}, Origin: "catalogue"}}
	prices := []session.Price{{Model: "m", ValidFrom: "2026-01-01", Input: 3, Origin: "catalogue"}}
	for range 2 {
		testkit.Check(t, s.SetCatalogue(ctx, models, prices))
	}
	models[0].Window, prices[0].Input = 20, 4
	testkit.Check(t, s.SetCatalogue(ctx, models, prices))
	if n := count(t, s, `SELECT window * 100 + input_nanousd * 10 + (SELECT COUNT(*) FROM prices) FROM models JOIN prices ON model = models.id`); n != 2041 {
		t.Errorf("%d", n)
	}
	if c := testkit.Must(s.Calibration(ctx, "m"))(t); c != nil {
		t.Errorf("%+v", c)
	}
	for _, scale := range []float64{1.5, 1.25} {
		testkit.Check(t, s.SetCalibration(ctx, Calibration{Model: "m", Scale: scale, Weight: 2}))
		if c := testkit.Must(s.Calibration(ctx, "m"))(t); c.Scale != scale || c.Weight != 2 {
			t.Errorf("%+v", c)
		}
	}
}
