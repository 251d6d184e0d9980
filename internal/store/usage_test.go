package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func priced(nano int64) *int64 { return &nano }

func TestACallIsCountedOnceWhereverItIsSeen(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	a, b := mustCreate(t, s, NewSession{Directory: "/d"}), mustCreate(t, s, NewSession{})
	call := session.Call{
		SessionID: a.ID, ExternalID: "resp_1", Model: "m", InputTokens: 10, OutputTokens: 5,
		CostNanoUSD: priced(7),
	}
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
	first := session.Call{
		SessionID: owner.ID, ExternalID: "msg_1", Model: "m", InputTokens: 10, CacheWriteTokens: 50,
		OutputTokens: 1,
	}
	testkit.Must(s.AddCall(ctx, first))(t)
	later := first
	later.SessionID, later.InputTokens, later.CacheWrite1h, later.OutputTokens, later.CostNanoUSD = fork.ID, 3, 40, 412,
		priced(9)
	testkit.Must(s.AddCall(ctx, later))(t)
	testkit.Must(s.AddCall(ctx, first))(t) // what is smaller lowers nothing

	calls, _, err := s.Calls(ctx, owner.ID, Page{})
	if err != nil || len(calls) != 1 {
		t.Fatalf("%+v %v", calls, err)
	}
	got := calls[0]
	if got.InputTokens != 10 || got.CacheWriteTokens != 50 || got.CacheWrite1h != 40 || got.OutputTokens != 412 ||
		*got.CostNanoUSD != 9 {
		t.Errorf("%+v", got)
	}
	if sess := testkit.Must(s.Session(ctx, owner.ID))(t); sess.OutputTokens != 412 || sess.UnpricedCalls != 0 ||
		*sess.CostNanoUSD != 9 {
		t.Errorf("the session counts %d tokens, %d unpriced", sess.OutputTokens, sess.UnpricedCalls)
	}
	if sess := testkit.Must(s.Session(ctx, fork.ID))(t); sess.OutputTokens != 0 {
		t.Errorf("the fork counts %d tokens of its origin's call", sess.OutputTokens)
	}
	mustBeHealthy(t, s) // compares the roll-up with the ledger
}

// A price that the catalogue learned, or that was wrong in it, counts for the calls that are stored.
func TestNewPricesCountForStoredCalls(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	nano := map[string]int64{"wrong": 5, "new": 7, "reported": 9, "zero": 11}
	price := func(c *session.Call) {
		if n, ok := nano[c.Model]; ok && (c.CostNanoUSD == nil || *c.CostNanoUSD == 0) {
			c.CostNanoUSD, c.PriceSource = priced(n*c.InputTokens), "catalogue"
		}
	}
	add := func(source session.Source, model string, cost *int64, from string) {
		testkit.Must(s.AddCall(ctx, session.Call{
			SessionID: sess.ID, Source: source, ExternalID: string(source) + model, Model: model, InputTokens: 10,
			CostNanoUSD: cost, PriceSource: from,
		}))(t)
	}
	add("pi", "wrong", priced(1), "catalogue")
	add("pi", "new", nil, "")
	add("pi", "reported", priced(3), "reported")
	add("pi", "zero", priced(0), "reported")
	add("pi", "unknown", nil, "")
	add("pi", "gone", priced(4), "catalogue") // has no price any more
	add("sessiond", "zero", priced(0), "reported")
	testkit.Must(s.AddCall(ctx, session.Call{Model: "new", InputTokens: 2}))(t) // of no session
	models, prices := []session.ModelInfo(nil),
		[]session.Price{{Model: "new", ValidFrom: "2026-01-01", Input: 7, Origin: "catalogue"}}
	for _, want := range []int64{4, 0} { // with the same prices nothing is done
		if n := testkit.Must(s.SetCatalogue(ctx, models, prices, price))(t); n != want {
			t.Errorf("%d costs changed, want %d", n, want)
		}
	}
	calls, _, err := s.Calls(ctx, sess.ID, Page{})
	testkit.Check(t, err)
	costs := map[string]int64{}
	for i := range calls {
		if c := &calls[i]; c.CostNanoUSD != nil {
			costs[string(c.Source)+" "+c.Model+" "+c.PriceSource] = *c.CostNanoUSD
		}
	}
	testkit.Equal(t, map[string]int64{
		"pi wrong catalogue": 50, "pi new catalogue": 70, "pi reported reported": 3, "pi zero catalogue": 110,
		"pi gone catalogue": 4, "sessiond zero reported": 0,
	}, costs)
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); *got.CostNanoUSD != 237 || got.UnpricedCalls != 1 {
		t.Errorf("the session costs %d, %d unpriced", *got.CostNanoUSD, got.UnpricedCalls)
	}
	mustBeHealthy(t, s)
}

// A later report names the mode that the first did not: the call has the price of that.
func TestKnownCallGetsItsServiceTier(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	call := session.Call{
		SessionID: sess.ID, ExternalID: "msg_1", InputTokens: 10, CostNanoUSD: priced(20),
		PriceSource: "catalogue",
	}
	testkit.Must(s.AddCall(ctx, call))(t)
	call.Model, call.ServiceTier, call.Requests, call.CostNanoUSD = "m", "flex", 2, priced(10)
	testkit.Must(s.AddCall(ctx, call))(t)
	call.ServiceTier, call.Requests, call.CostNanoUSD = "", 1, priced(5)
	got := testkit.Must(s.AddCall(ctx, call))(t)
	if got.ServiceTier != "flex" || got.Requests != 2 || *got.CostNanoUSD != 10 || got.Model != "m" {
		t.Errorf("%+v", got)
	}
	mustBeHealthy(t, s)
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
		if diff := cmp.Diff(c.sum, got.CostNanoUSD); diff != "" || got.UnpricedCalls != c.unpriced ||
			(c.sum == nil) != (got.CostUSD == nil) {
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
		Session: sess.ID, Messages: []session.Message{
			says(session.User, "q"), says(session.Assistant, "a"),
			says(session.User, "q2"),
		},
		Call: &session.Call{Provider: "p", Model: "m", InputTokens: 3},
	}))(t)
	calls, next, err := s.Calls(ctx, sess.ID, Page{})
	if err != nil || next != "" || len(calls) != 1 || *calls[0].MessageID != out.Messages[1].RowID {
		t.Fatalf("%+v %v", calls, err)
	}
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.Provider != "p" || got.Model != "m" || got.InputTokens != 3 {
		t.Errorf("%+v", got)
	}
	// a call without a message
	testkit.Must(s.Append(ctx, Append{Session: sess.ID, Call: &session.Call{InputTokens: 1}}))(t)
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
			Session: sess.ID, Parent: parent, Messages: []session.Message{
				says(session.User, "question"),
				says(session.Assistant, "answer"),
			},
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
	c := testkit.Must(s.SaveContext(ctx, session.Context{
		SessionID: sess.ID,
		Epoch:     testkit.Must(s.Session(ctx, sess.ID))(t).Epoch,
	}, nil, nil))(t)
	turn(nil, 30, &c.RowID)
	if got := report(); got != 30 {
		t.Error(got)
	}
}

func TestCountersAndRollUpsEqualARecount(t *testing.T) {
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) {
		o.Now, o.Zone = func() time.Time { return now }, time.FixedZone("west", -7*3600)
	})
	rapid.Check(t, func(rt *rapid.T) {
		c := counting{t: rt, s: s}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-600, 1500).Draw(rt, "minutes")) * time.Minute)
			testkit.Check(rt, c.step(t.Context()))
		}
		checks := testkit.Must(s.Doctor(t.Context(), true))(rt)
		for _, c := range checks {
			if !c.OK {
				rt.Fatalf("%s: %s", c.Name, c.Detail)
			}
		}
		var want []CallTotal
		testkit.Check(rt, s.Reader().SelectContext(t.Context(), &want, `SELECT purpose, status, COUNT(*) AS n, COALESCE(SUM(cost_nanousd), 0) AS cost
			FROM calls GROUP BY purpose, status ORDER BY purpose, status`))
		got := testkit.Must(s.CallTotals(t.Context()))(rt)
		slices.SortFunc(got, func(a, b CallTotal) int {
			return strings.Compare(string(a.Purpose)+a.Status, string(b.Purpose)+b.Status)
		})
		testkit.Equal(rt, want, got)
	})
}

// counting writes at random what counters and the roll-up count: sessions, sub-agents and forks in several
// projects, messages, calls, imports that set a folder or a parent later, purges.
type counting struct {
	t   *rapid.T
	s   *Store
	ids []session.ID
}

func (c *counting) any() session.ID { return rapid.SampledFrom(c.ids).Draw(c.t, "session") }

func (c *counting) call() *session.Call {
	call := session.Call{
		Model:       rapid.SampledFrom([]string{"a", "b"}).Draw(c.t, "model"),
		ExternalID:  rapid.SampledFrom([]string{"", "1", "2"}).Draw(c.t, "external"),
		Status:      rapid.SampledFrom([]string{session.CallOK, session.CallFailed}).Draw(c.t, "status"),
		Purpose:     rapid.SampledFrom([]session.Purpose{"", session.PurposeTitle}).Draw(c.t, "purpose"),
		InputTokens: rapid.Int64Range(0, 9).Draw(c.t, "input"), OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4,
	}
	if rapid.Bool().Draw(c.t, "priced") {
		call.CostNanoUSD = priced(rapid.Int64Range(0, 9).Draw(c.t, "cost"))
	}
	return &call
}

func (c *counting) step(ctx context.Context) error {
	kind := rapid.IntRange(0, 9).Draw(c.t, "step")
	if len(c.ids) == 0 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		in := NewSession{
			Draft:     rapid.Bool().Draw(c.t, "draft"),
			Source:    rapid.SampledFrom([]session.Source{"pi", "goose"}).Draw(c.t, "source"),
			Directory: rapid.SampledFrom([]string{"", "/a", "/b"}).Draw(c.t, "directory"),
		}
		if kind == 1 {
			in.ParentID, in.Kind = c.any(), session.KindSubagent
		}
		sess, err := c.s.CreateSession(ctx, in)
		c.ids = append(c.ids, sess.ID)
		return err
	case 2:
		sess, err := c.s.Fork(ctx, Fork{Session: c.any()})
		c.ids = append(c.ids, sess.ID)
		return err
	case 3:
		call := c.call()
		call.SessionID = c.any()
		_, err := c.s.AddCall(ctx, *call)
		return err
	case 4:
		_, err := c.s.Import(ctx, ImportBatch{ID: c.any(), Fields: &ImportFields{Directory: "/late"}})
		return err
	case 5:
		_, err := c.s.Import(ctx, ImportBatch{
			ID:     c.any(),
			Fields: &ImportFields{ParentID: c.any(), ParentKind: session.ParentChild},
		})
		if session.CodeOf(err) == session.Invalid {
			return nil // a cycle
		}
		return err
	case 6:
		id := c.any()
		c.ids = slices.DeleteFunc(c.ids, func(other session.ID) bool { return other == id })
		return c.purge(ctx, id)
	}
	role := rapid.SampledFrom([]session.Role{session.User, session.Assistant, session.Tool}).Draw(c.t, "role")
	in := Append{Session: c.any(), Messages: []session.Message{says(role, "x"), says(role, "y")}}
	if rapid.Bool().Draw(c.t, "call") {
		in.Call = c.call()
	}
	_, err := c.s.Append(ctx, in)
	return err
}

func (c *counting) purge(ctx context.Context, id session.ID) error {
	p, _, err := c.s.BeginPurge(ctx, PurgeRequest{Session: id})
	if err != nil {
		return err
	}
	for rows, err := p.Doomed(ctx); len(rows) > 0 || err != nil; rows, err = p.Doomed(ctx) {
		if err != nil {
			return err
		}
		if err := p.Delete(ctx, rows); err != nil {
			return err
		}
	}
	_, err = p.Finish(ctx)
	return err
}

func TestSubagentsCountForTheProjectOfTheirParent(t *testing.T) {
	s := openTest(t)
	projects := func() string {
		t.Helper()
		mustBeHealthy(t, s)
		return testkit.Must(engine.Get[string](t.Context(), s, `SELECT string_agg(counted, ' ') FROM (
			SELECT project || ':' || SUM(sessions) || '/' || SUM(subagents) || '/' || SUM(messages) || '/' || SUM(calls) AS counted FROM daily_usage
			GROUP BY project HAVING SUM(sessions + messages + calls) > 0 ORDER BY project) AS all_counts`))(t)
	}
	parent := mustCreate(t, s, NewSession{Directory: "/shop"})
	child := mustCreate(t, s, NewSession{ParentID: parent.ID, Directory: "/shop/worktree", Kind: session.KindSubagent})
	below := mustCreate(t, s, NewSession{ParentID: child.ID, Directory: "/elsewhere", Kind: session.KindSubagent})
	for _, id := range []session.ID{parent.ID, child.ID, below.ID} {
		testkit.Must(s.Append(t.Context(), Append{
			Session:  id,
			Messages: []session.Message{says(session.User, "x"), says(session.Assistant, "y")},
			Call:     &session.Call{Model: "m"},
		}))(t)
	}
	testkit.Equal(t, "/shop:3/2/6/3", projects())
	purge(t, s, parent.ID)
	testkit.Equal(t, ":1/0/2/1 /shop/worktree:2/2/4/2", projects())
	purge(t, s, child.ID)
	testkit.Equal(t, ":2/1/4/2 /elsewhere:1/1/2/1", projects())
}

// A file whose roll-up was kept by source and model alone gets the same numbers as one that began with this schema.
func TestMigrationCountsTheUsageByProject(t *testing.T) {
	onFile(t)
	s := openTest(t)
	rapid.MakeCheck(func(rt *rapid.T) {
		c := counting{t: rt, s: s}
		for range 10 {
			testkit.Check(rt, c.step(t.Context()))
		}
	})(t)
	rows := func(s *Store) (all []string) {
		return testkit.Must(engine.List[string](t.Context(), s, `SELECT concat_ws(' ', day, project, source, model, purpose, `+usageColumns+`) FROM daily_usage
			WHERE sessions + messages + calls > 0 AND project <> '' ORDER BY 1`))(t)
	}
	want := rows(s)
	testkit.Check(t, s.Close())
	rewind(t, s.File(), 109,
		`DROP TABLE daily_usage`, `CREATE TABLE daily_usage (day TEXT, source TEXT, model TEXT, calls INTEGER)`)
	s = testkit.Must(Open(t.Context(), s.File(), Options{Measure: measure, Zone: time.UTC}))(t)
	defer s.Close() //nolint:errcheck // a test
	mustBeHealthy(t, s)
	testkit.Equal(t, want, rows(s))
	if len(want) < 3 { // with -short, few steps are made
		t.Errorf("only %d rows of the roll-up", len(want))
	}
}

func TestTheCatalogueIsWrittenOnce(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	models := []session.ModelInfo{{
		ID: "m", Provider: "p", Window: 10, MaxOutput: 5, Modalities: []string{"text", "image"},
		Origin: "catalogue",
	}}
	prices := []session.Price{{Model: "m", ValidFrom: "2026-01-01", Input: 3, Origin: "catalogue"}}
	written := func() int64 {
		testkit.Must(s.SetCatalogue(ctx, models, prices, func(*session.Call) {}))(t)
		return count(t, s, `SELECT MAX(id) FROM (SELECT 0 AS id UNION ALL SELECT COUNT(*) FROM models) AS counted`)
	}
	for range 2 {
		if n := written(); n != 1 {
			t.Errorf("%d models", n)
		}
	}
	models[0].Window, prices[0].Input = 20, 4
	written()
	if n := count(t, s, `SELECT "window" * 100 + input_nanousd * 10 + (SELECT COUNT(*) FROM prices) FROM models JOIN prices ON model = models.id`); n != 2041 {
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
