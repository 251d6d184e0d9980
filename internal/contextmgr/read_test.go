package contextmgr

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func (r *rig) report(v View, reply string, input, output int64) session.Message {
	r.t.Helper()
	call := &session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK, Model: "m", InputTokens: input,
		OutputTokens: output, CreatedAt: session.At(r.clock.Now()),
	}
	if v.ID != "" {
		n := testkit.Must(session.ParseName("ctx", v.ID))(r.t)
		call.ContextID = &n
	}
	out := testkit.Must(r.store.Append(r.ctx, store.Append{
		Session:  r.id,
		Messages: []session.Message{text(session.Assistant, reply)}, Call: call,
	}))(r.t)
	return out.Messages[0]
}

func TestReportBelowTheTextIsNotUsed(t *testing.T) {
	taught := 0
	r := newRig(t, 20000, func(c *Config) {
		c.Learned = func(context.Context, string, int64, int64) error { taught++; return nil }
	})
	r.talk(50, 150) // about 16,000 tokens
	r.report(r.read(Budget{}), "Done.", 150, 20)
	v := r.turn(TurnInput{})
	if v.Compaction == nil || v.Tokens.Method != MethodEstimate {
		t.Errorf("150 reported tokens count for 16,000: %+v", v.Tokens)
	}

	r = newRig(t, 200_000, func(c *Config) {
		c.Learned = func(context.Context, string, int64, int64) error { taught++; return nil }
	})
	r.talk(40, 150)
	r.report(r.turn(TurnInput{}), "Done.", 1500, 20)
	v = r.turn(TurnInput{})
	said := slices.IndexFunc(v.Warnings, func(w string) bool {
		return strings.Contains(w, "the provider reported 1500 tokens")
	})
	if v.Tokens.Method != MethodEstimate || v.Tokens.Total < 12_000 || said < 0 {
		t.Errorf("%+v %q", v.Tokens, v.Warnings)
	}
	r.talk(1, 20)
	r.report(r.turn(TurnInput{}), "Done.", 1600, 20)
	testkit.Check(t, r.mgr.Learn(r.ctx, r.id))
	if calls := testkit.Must(r.store.Reports(r.ctx, r.id, 2))(t); taught != 0 || calls[1].InputTokens != 1500 {
		t.Errorf("learned %d times; the ledger has %d", taught, calls[1].InputTokens)
	}

	// A report that other tokenizers may give is used.
	r = newRig(t, 200_000)
	r.talk(40, 150)
	v = r.turn(TurnInput{})
	r.report(v, "Done.", v.Tokens.Total/2, 20)
	if got := r.turn(TurnInput{}); got.Tokens.Method != MethodAnchor {
		t.Errorf("half as many tokens were not believed: %+v", got.Tokens)
	}
}

func TestSumOfSeveralRequestsIsNotUsed(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(10, 150)
	v := r.turn(TurnInput{})
	r.report(v, "Done.", 600_000, 20)
	got := r.turn(TurnInput{})
	said := slices.IndexFunc(got.Warnings, func(w string) bool {
		return strings.Contains(w, "the provider reported 600020 tokens")
	})
	if got.Compaction != nil || got.Tokens.Method != MethodEstimate || got.Tokens.Total > 2*v.Tokens.Total || said < 0 {
		t.Errorf("600,000 reported tokens count for %d: %+v %q", v.Tokens.Total, got.Tokens, got.Warnings)
	}

	for name, tc := range map[string]struct{ exchanges, reported int }{
		"large tools":                        {10, 15_000},
		"a window that is larger than known": {40, 25_000},
	} {
		r := newRig(t, 20_000)
		r.talk(tc.exchanges, 150)
		r.report(r.read(Budget{}), "Done.", int64(tc.reported), 20)
		if got := r.read(Budget{}); got.Compaction == nil {
			t.Errorf("%s: a report of %d was not believed: %+v", name, tc.reported, got.Tokens)
		}
	}
}

func TestReportAnchorsTheCount(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(10, 150)
	v := r.turn(TurnInput{})
	r.report(v, "reply", 9000, 10)
	r.append(text(session.User, filler(100)))
	anchored := r.turn(TurnInput{})
	if anchored.Tokens.Method != MethodAnchor || anchored.Tokens.Total != 9010+104 || anchored.Tokens.Error != 7 {
		t.Errorf("tokens %+v", anchored.Tokens)
	}
	// with other tools the report is of another context
	if other := r.read(Budget{Tools: jsontext.Value(`[{"name":"t"}]`)}); other.Tokens.Method != MethodEstimate {
		t.Errorf("with other tools: %+v", other.Tokens)
	}
	if other := r.read(Budget{System: ptr("another")}); other.Tokens.Method != MethodEstimate {
		t.Errorf("with another system text: %+v", other.Tokens)
	}
	if other := r.read(Budget{Model: "x"}); other.Tokens.Method != MethodEstimate {
		t.Errorf("with another model: %+v", other.Tokens)
	}
	// in a new epoch the report is of the context before the compaction
	r.compact(CompactInput{KeepTokens: new(int64)})
	if after := r.read(Budget{OverheadTokens: new(int64)}); after.Tokens.Method != MethodEstimate ||
		after.Tokens.Total > 1000 {
		t.Errorf("after a compaction: %+v", after.Tokens)
	}
}

func TestReportAboveTheThresholdCompacts(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(20, 150)
	r.report(r.turn(TurnInput{}), "reply", 15500, 10)
	r.append(text(session.User, "next"))
	if v := r.turn(TurnInput{}); v.Compaction == nil {
		t.Errorf("tokens %+v", v.Tokens)
	}
}

func TestToolsAndOverheadAreCounted(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(1, 20)
	tools := jsontext.Value(`[{"name":"` + strings.Repeat("x", 400) + `"}]`)
	plain := r.read(Budget{}).Tokens.Total
	if v := r.turn(TurnInput{Budget: Budget{Tools: tools}}); v.Tokens.Total != plain+(int64(len(tools))+3)/4 {
		t.Errorf("%d tokens with tools, %d without", v.Tokens.Total, plain)
	}
	if v := r.read(Budget{OverheadTokens: ptr[int64](5000)}); v.Tokens.Total != plain+5000 {
		t.Errorf("%d tokens with a given overhead", v.Tokens.Total)
	}
	_, err := r.mgr.Assemble(r.ctx, r.id, Budget{OverheadTokens: ptr[int64](-1)})
	wantCode(t, err, session.Invalid)
}

func TestScaleAndFamilyApplyOnReading(t *testing.T) {
	r := newRig(t, 20000, func(c *Config) {
		c.Scale = func(_ context.Context, model string) (float64, float64, error) {
			if model == "big" {
				return 1.5, Doubt, nil
			}
			return 1, Doubt, nil
		}
	})
	r.append(text(session.User, filler(100)))
	if a, b := r.read(Budget{}).Tokens.Total, r.read(Budget{Model: "big"}).Tokens.Total; a != 104 || b != 156 {
		t.Errorf("%d tokens, scaled %d", a, b)
	}
	other := newRig(t, 20000, func(c *Config) { c.Reference = "another" })
	other.append(text(session.User, filler(100)))
	if a := other.read(Budget{}).Tokens.Total; a != 104 {
		t.Errorf("counted anew: %d", a)
	}
}

func TestUnknownModelGetsADefaultWindowAndAWarning(t *testing.T) {
	r := newRig(t, 0, func(c *Config) {
		c.Models = func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Window: DefaultWindow}, false
		}
	})
	r.talk(1, 20)
	v := r.turn(TurnInput{Budget: Budget{Model: "my-own"}})
	if v.Tokens.Window != 128000 || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], `"my-own"`) {
		t.Errorf("window %d, warnings %v", v.Tokens.Window, v.Warnings)
	}
	if v = r.read(Budget{Model: "my-own", Window: 9000}); v.Tokens.Window != 9000 || len(v.Warnings) != 0 {
		t.Errorf("window %d, warnings %v", v.Tokens.Window, v.Warnings)
	}
}

func TestExplainShowsHowTokensWereCounted(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(10, 150)
	v := r.turn(TurnInput{Budget: Budget{Explain: true}})
	want := &Counting{
		Method: MethodEstimate, Estimated: v.Tokens.Total, Error: v.Tokens.Error, Low: v.Tokens.Total - v.Tokens.Error,
		High:   v.Tokens.Upper(),
		Family: "runes", Scale: 1, Estimate: v.Tokens.Estimate, Excess: 1, Overhead: Overhead{Method: OverheadNone},
	}
	if diff := cmp.Diff(want, v.Counting); diff != "" {
		t.Errorf("before any report: want -, got +\n%s", diff)
	}
	reply := r.report(v, "reply", 9000, 10)
	r.append(text(session.User, filler(100)))
	v = r.read(Budget{Explain: true})
	a := v.Counting.Anchor
	if a == nil || a.Message != reply.ID || a.Context != "ctx_1" || a.Input != 9000 || a.Output != 10 ||
		a.Tokens != 9010 || a.Since != 104 || a.Messages != 1 || a.At.IsZero() {
		t.Fatalf("anchor %+v", a)
	}
	if c := v.Counting; c.Method != MethodAnchor || c.Estimated != 104 || c.Error != 7 || c.Low != 9114-7 ||
		c.High != 9114+7 {
		t.Errorf("counting %+v", c)
	}
	if v = r.read(Budget{}); v.Counting != nil {
		t.Errorf("without being asked: %+v", v.Counting)
	}
}

// A context that was cut to fit has no report of its own. Its size includes the provider's excess
// over sessiond's count of the whole parts, and explain shows the factor.
func TestExplainAddsUpForACutContext(t *testing.T) {
	r := newRig(t, 4000)
	r.append(text(session.User, filler(400)))
	r.report(r.turn(TurnInput{}), "reply", 2200, 10)
	r.append(text(session.User, "look: "+filler(990)))
	v := r.read(Budget{Explain: true, At: &Position{HeadID: r.session().HeadID}}) // nothing is compacted here
	c := v.Counting
	if len(v.Losses) == 0 || v.Prefix.BrokenBy != "" || c.Anchor != nil || c.Excess <= 1 {
		t.Fatalf("broken by %q, counting %+v, tokens %+v", v.Prefix.BrokenBy, c, v.Tokens)
	}
	if off := float64(c.Estimate)*c.Excess - float64(v.Tokens.Total); off > 0 || off <= -1 {
		t.Errorf("%d tokens times %g are not %d", c.Estimate, c.Excess, v.Tokens.Total)
	}
	if want := (v.Tokens.Total*6 + 99) / 100; c.Error != want || c.High != v.Tokens.Total+want ||
		c.Low != v.Tokens.Total-want {
		t.Errorf("the error of %d is %d: %+v", v.Tokens.Total, want, c)
	}
}

// While calls are pending nothing is sent, so a context over the limit is no error yet.
func TestPendingContextMayExceedTheLimit(t *testing.T) {
	r := newRig(t, 3000)
	r.append(text(session.User, "the task"))
	v := r.turn(TurnInput{})
	r.report(v, "reply", 9000, 10)
	r.append(calling("a", "b"), answering("a", "one"))
	if v = r.turn(TurnInput{}); len(v.Pending) != 1 || v.Pending[0] != "b" {
		t.Errorf("pending %v", v.Pending)
	}
}

// The overhead that a provider counts is learned if the caller does not say it, and is used when no
// report is valid: after a compaction, and for the session's next context.
func TestOverheadIsLearnedFromReports(t *testing.T) {
	r := newRig(t, 40000)
	r.talk(2, 100)
	v := r.turn(TurnInput{})
	base := v.Tokens.Total
	r.report(v, "reply", base+3000, 10)
	r.talk(20, 200)
	r.report(r.turn(TurnInput{}), "reply", base+9000+3500, 10)
	r.compact(keeping(500))
	explain := TurnInput{Budget: Budget{Explain: true}}
	v = r.turn(explain)
	if v.Counting.Method != MethodEstimate || v.Counting.Overhead != (Overhead{3000, OverheadLearned}) ||
		v.Provenance[0].Kind != ItemTools || v.Provenance[0].Tokens != 3000 {
		t.Errorf("%+v", v.Counting)
	}
	if last, _, err := r.store.LastContext(r.ctx, r.id); err != nil || last.OverheadTokens != 0 ||
		last.Tokens != v.Tokens.Estimate-3000 {
		t.Errorf("what was learned is recorded as given: %+v %v", last, err)
	}
	if again := r.turn(explain); again.Counting.Overhead != v.Counting.Overhead {
		t.Errorf("%+v", again.Counting.Overhead)
	}
	for _, c := range []struct {
		name string
		b    Budget
		want string
	}{
		{"given", Budget{OverheadTokens: ptr[int64](7)}, OverheadGiven},
		{"counted", Budget{Tools: jsontext.Value(`[{"name":"t"}]`)}, OverheadCounted},
		{"of another model", Budget{Model: "x"}, OverheadNone},
	} {
		c.b.Explain = true
		if got := r.read(c.b).Counting.Overhead.Method; got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	r.fresh()
	r.talk(1, 20)
	if got := r.read(Budget{Explain: true}).Counting.Overhead; got.Method != OverheadNone {
		t.Errorf("of another session: %+v", got)
	}
}

func TestExplainNamesEachNumbersSource(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(1, 20)
	v := r.read(Budget{Explain: true, Settings: Settings{Fraction: ptr(0.5)}})
	i := slices.IndexFunc(v.Settings, func(s Setting) bool { return s.Name == "fraction" })
	if i < 0 || v.Settings[i].Source != "request" || v.Settings[i].Value != 0.5 || v.Tokens.Threshold != 10000 {
		t.Errorf("settings %+v", v.Settings)
	}
	if r.read(Budget{}).Settings != nil {
		t.Error("settings without being asked")
	}
	_, err := r.mgr.Assemble(r.ctx, r.id, Budget{Settings: Settings{Fraction: ptr(1.5)}})
	wantCode(t, err, session.Invalid, "fraction")
}

// counting counts the messages that walks read.
type counting struct {
	*store.Store
	walked int
}

func (c *counting) WalkDownTo(ctx context.Context, head, lowest int64, yield func(session.Message) bool) error {
	return c.Store.WalkDownTo(ctx, head, lowest, func(m session.Message) bool {
		c.walked++
		return yield(m)
	})
}

func TestAssembleReadsOnlyKeptMessages(t *testing.T) {
	r := newRig(t, 20000)
	r.append(text(session.System, "Stored."))
	r.talk(300, 60)
	r.turn(TurnInput{})
	c := &counting{Store: r.store}
	v, err := New(c, r.mgr.cfg).Assemble(r.ctx, r.id, Budget{})
	if err != nil || c.walked > len(v.Messages)+1 || v.System != "Stored." {
		t.Errorf("%d messages read for a context of %d: %v", c.walked, len(v.Messages), err)
	}
}

func TestRepeatedRequestReturnsTheFirstContext(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(20, 150)
	v := r.turn(TurnInput{})
	at := &Position{HeadID: r.session().HeadID}
	r.talk(30, 150)
	if now := r.turn(TurnInput{}); now.Compaction == nil {
		t.Fatal("nothing was compacted meanwhile")
	}
	if again := r.read(Budget{At: at}); wire(again) != wire(v) {
		t.Error("the context of then is another now")
	}
}

func TestFilesAccumulateOverCompactions(t *testing.T) {
	// touched files come from the calls' ids here
	r := newRig(t, 20000)
	touching := func(op session.FileOp) func(*session.Message, string) []session.TouchedFile {
		return func(m *session.Message, _ string) []session.TouchedFile {
			var all []session.TouchedFile
			for _, p := range m.Calls() {
				all = append(all, session.TouchedFile{Path: p.CallID, Op: op})
			}
			return all
		}
	}
	op := session.OpRead
	st, err := store.Open(t.Context(), storetest.New(t, t.TempDir()+"/s.db"),
		store.Options{
			Measure: runes{}.Measure, Now: r.clock.Now,
			Touched: func(m *session.Message, d string) []session.TouchedFile {
				return touching(op)(m, d)
			},
		})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = st.Close() })
	r.store, r.mgr = st, New(st, r.mgr.cfg)
	r.fresh()
	r.append(text(session.User, "u"), calling("b.go", "a.go"), answering("b.go", "x"), answering("a.go", "y"))
	r.talk(20, 150)
	first, _ := r.compact(CompactInput{KeepTokens: new(int64)})
	op = session.OpEdit
	r.append(text(session.User, "u"), calling("a.go"), answering("a.go", "x"))
	r.talk(20, 150)
	second, _ := r.compact(CompactInput{KeepTokens: new(int64)})
	for i, want := range []session.CompactionDetails{
		{ReadFiles: []string{"a.go", "b.go"}, ModifiedFiles: []string{}},
		{ReadFiles: []string{"b.go"}, ModifiedFiles: []string{"a.go"}},
	} {
		var got session.CompactionDetails
		if !decode([]session.Compaction{first, second}[i].Details, &got) {
			t.Fatal("no details")
		}
		got.TurnStart, got.Shown = "", 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("compaction %d: want -, got +\n%s", i+1, diff)
		}
	}
}

func TestConcurrentTurnsMakeOneOverlay(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(30, 150)
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := r.mgr.Turn(r.ctx, r.id, TurnInput{})
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(r.compactions()); n != 1 {
		t.Errorf("%d overlays", n)
	}
}

// An overlay's report is small, and the overlay is undone: the report must not count for the path
// that is whole again.
func TestReportFromBeforeAnUndoDoesNotAnchor(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(20, 150)
	whole := r.read(Budget{}).Tokens.Total
	c, _ := r.compact(CompactInput{KeepTokens: new(int64)})
	r.report(View{}, "reply", 400, 10) // without a context
	if v := r.read(Budget{}); v.Tokens.Method != MethodAnchor {
		t.Fatalf("before the undo: %+v", v.Tokens)
	}
	r.undo(c.RowID)
	if v := r.read(Budget{}); v.Tokens.Total < whole {
		t.Errorf("%+v, and the path has %d tokens", v.Tokens, whole)
	}
}

func TestReportOfAFailedReplyDoesNotAnchor(t *testing.T) {
	r := newRig(t, 20000)
	r.talk(10, 150)
	failed := text(session.Assistant, "half a")
	failed.Finish = session.FinishAborted
	testkit.Must(r.store.Append(r.ctx, store.Append{
		Session: r.id, Messages: []session.Message{failed},
		Call: &session.Call{
			Purpose: session.PurposeChat, Status: session.CallOK, Model: "m", InputTokens: 40, OutputTokens: 5,
			CreatedAt: session.At(r.clock.Now()),
		},
	}))(t)
	if v := r.read(Budget{}); v.Tokens.Method != MethodEstimate {
		t.Errorf("tokens %+v", v.Tokens)
	}
}

// A provider counts a third more than sessiond. If nothing can be hidden, parts are cut until the
// context fits by the provider's count.
func TestFitGoesByTheProvidersCount(t *testing.T) {
	r := newRig(t, 20000)
	r.append(text(session.User, filler(4900)))
	r.append(text(session.User, filler(4900)))
	v := r.turn(TurnInput{})
	r.report(v, "reply", v.Tokens.Total*3/2, 10)
	plain := r.read(Budget{Model: "another"}).Tokens.Total
	v = r.turn(TurnInput{Budget: Budget{Window: 12500, Settings: Settings{Strategy: ptr(session.StrategySummarize)}}})
	if limit := v.Tokens.Window - v.Tokens.Reserve; v.Tokens.Estimate*3/2 > limit {
		t.Errorf("%d tokens by its own count (%d before), which the provider counts as half as much again; the limit is %d",
			v.Tokens.Estimate, plain, limit)
	}
}

// The caller's initial pictures stay, although they are sent once.
func TestInitialBlocksKeepTheirBytes(t *testing.T) {
	r := newRig(t, 20000)
	r.append(text(session.User, "hello"))
	picture := session.Part{
		Kind: session.PartImage, Extra: session.JSON(`{"media":{}}`),
		Blob: &session.Blob{MediaType: "image/png", Data: []byte("\x89PNG")},
	}
	first := r.turn(TurnInput{Budget: Budget{Initial: &[]session.Part{session.TextPart("see"), picture}}})
	again := r.turn(TurnInput{})
	if diff := cmp.Diff(first.Messages[0].Parts, again.Messages[0].Parts); diff != "" || again.Prefix.BrokenBy != "" {
		t.Errorf("broken by %q: %s", again.Prefix.BrokenBy, diff)
	}
}

// A context was cut to fit, so its report is small. The next context must be cut, too: the report
// does not cover its whole parts.
func TestReportOfACutContextDoesNotAnchorTheWholeOne(t *testing.T) {
	r := newRig(t, 10000)
	call := calling("w")
	call.Parts[0].Arguments = string(session.JSONOf(map[string]string{"content": filler(15000)}))
	r.append(text(session.User, "Write it."), call, answering("w", "written"))
	v := r.turn(TurnInput{})
	r.report(v, "done", v.Tokens.Total, 10)
	r.append(text(session.User, "and now?"))
	v = r.turn(TurnInput{})
	var sum int64
	for i := range v.Messages {
		m := v.Messages[i]
		runes{}.Measure(&m)
		sum += m.Tokens
	}
	if limit := v.Tokens.Window - v.Tokens.Reserve; sum > limit {
		t.Errorf("%d tokens go out and %+v are stated", sum, v.Tokens)
	}
}

// A scale learned between two turns moves no cut of a large part: that would break the prefix
// silently.
func TestLearnedScaleMovesNoCut(t *testing.T) {
	scale := 1.0
	r := newRig(t, 20000, func(c *Config) {
		c.Scale = func(context.Context, string) (float64, float64, error) { return scale, Doubt / 3, nil }
	})
	r.append(text(session.User, filler(8000)))
	first := r.turn(TurnInput{})
	if want := int64(math.Ceil(float64(first.Tokens.Total) * Doubt / 3)); first.Tokens.Error != want {
		t.Errorf("%d of %d are in doubt, not %d: the scale is known well", first.Tokens.Error, first.Tokens.Total, want)
	}
	scale = 1.1
	again := r.turn(TurnInput{})
	if again.Prefix.BrokenBy == "" && wire(first) != wire(again) {
		t.Error("the prefix is broken and nothing says so")
	}
}

// walks counts the messages that a manager reads.
type walks struct {
	Store
	messages int
}

func (w *walks) WalkDownTo(ctx context.Context, head, lowest int64, yield func(session.Message) bool) error {
	return w.Store.WalkDownTo(ctx, head, lowest, func(m session.Message) bool {
		w.messages++
		return yield(m)
	})
}

func TestReadOfALongSessionReadsOnlyWhatItsStagedDigestKeeps(t *testing.T) {
	r := newRig(t, 10000)
	r.talk(100, 150)
	r.report(View{}, "the end", 30_000, 10) // the program counted what the digest hides, too
	ephemeral := r.read(Budget{})
	if err := r.mgr.Stage(r.ctx, r.id); err != nil {
		t.Fatal(err)
	}
	counted := &walks{Store: r.store}
	r.mgr = New(counted, r.mgr.cfg)
	staged := r.read(Budget{})
	if ephemeral.Compaction.Status != StatusEphemeral || staged.Compaction.Status != session.StatusStaged {
		t.Errorf("%s before, %s after staging", ephemeral.Compaction.Status, staged.Compaction.Status)
	}
	if a, b := wire(ephemeral), wire(staged); a != b {
		t.Errorf("the staged digest gives another context:\n%s\n\n%s", a, b)
	}
	if counted.messages >= 100 {
		t.Errorf("read %d of 200 messages", counted.messages)
	}
	r.turn(TurnInput{})
	if all := r.compactions(); len(all) != 1 || all[0].Status != session.StatusDone {
		t.Errorf("a turn left %+v", all)
	}
}
