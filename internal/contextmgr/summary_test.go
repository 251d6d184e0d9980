package contextmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// scribe is a summarizer that numbers its summaries and records its requests.
type scribe struct {
	name  string
	asked []session.SummaryRequest
	fails int // from this request on; 0: never
}

func (s *scribe) Summarize(_ context.Context, in session.SummaryRequest) (session.Summary, error) {
	s.asked = append(s.asked, in)
	n := len(s.asked)
	if s.fails > 0 && n >= s.fails {
		return session.Summary{Calls: []session.Call{{Purpose: in.Purpose, Status: session.CallFailed, Error: "500"}}},
			errors.New("the model is out")
	}
	out := session.Summary{
		Text: fmt.Sprintf("%s running %d", s.name, n), Span: fmt.Sprintf("%s span %d", s.name, n),
		Index:    []string{fmt.Sprintf("$%d", n)},
		Provider: s.name, Model: "m", Calls: []session.Call{{Purpose: in.Purpose, Status: session.CallOK}},
	}
	if in.First() {
		out.Span = out.Text
	}
	return out, nil
}

// keeping keeps so little that a compaction always hides something.
func keeping(tokens int64) CompactInput {
	none := int64(0)
	return CompactInput{KeepTokens: &tokens, Budget: Budget{Settings: Settings{KeepRecentMessages: &none}}}
}

func TestEveryFourthSummaryMergesAllSpans(t *testing.T) {
	s := &scribe{name: "extractive"}
	r := newRig(t, 20000, func(c *Config) { c.Digest = s })
	for n := 1; n <= 9; n++ {
		r.talk(6, 100)
		c, _ := r.compact(keeping(300))
		asked := s.asked[n-1]
		var spans []string
		for i := 1; i < n; i++ {
			name := "extractive span %d"
			if i == 1 {
				name = "extractive running %d" // the first is of its span alone, too
			}
			spans = append(spans, fmt.Sprintf(name, i))
		}
		if n%4 != 0 {
			spans = nil
		}
		if !slices.Equal(asked.Spans, spans) {
			t.Errorf("summary %d is merged from %q, want %q", n, asked.Spans, spans)
		}
		if n > 1 && asked.Previous != fmt.Sprintf("extractive running %d", n-1) {
			t.Errorf("summary %d is asked to update %q", n, asked.Previous)
		}
		var d session.CompactionDetails
		if decode(c.Details, &d); c.Summary != fmt.Sprintf("extractive running %d", n) || c.SpanSummary == "" ||
			!slices.Equal(d.Index, []string{fmt.Sprintf("$%d", n)}) {
			t.Errorf("record %d says %q, of its span %q, with the index %q", n, c.Summary, c.SpanSummary, d.Index)
		}
	}
}

func TestMergeInputIsBounded(t *testing.T) {
	var all []session.Compaction
	for i := range 40 {
		c := session.Compaction{
			RowID: int64(i + 1), Strategy: session.StrategySummarize, Status: session.StatusDone, ThroughID: ptr(int64(100 + i)),
			SpanSummary: fmt.Sprintf("span %d %s", i, strings.Repeat("x", 4*8000)), Summary: fmt.Sprintf("running %d", i),
		}
		if i > 0 {
			c.PreviousID = ptr(int64(i))
		}
		all = append(all, c)
	}
	p := collectPast(all, &all[39], runes{}.Text)
	if p.depth != 40 || len(p.spans) != 25 || p.spans[0] != "running 15" || !strings.HasPrefix(p.spans[24], "span 39 ") {
		t.Errorf("depth %d, %d spans, the first %.20q, the last %.20q", p.depth, len(p.spans), p.spans[0],
			p.spans[len(p.spans)-1])
	}
}

func TestChainEndsAtAnOverlayWithoutASpanSummary(t *testing.T) {
	span := func(id, previous int64, c session.Compaction) session.Compaction {
		c.RowID, c.Status, c.ThroughID = id, session.StatusDone, ptr(100+id)
		if c.Strategy == "" {
			c.Strategy = session.StrategySummarize
		}
		if previous > 0 {
			c.PreviousID = &previous
		}
		return c
	}
	all := []session.Compaction{
		span(1, 0, session.Compaction{Summary: "old", SpanSummary: "old"}),
		span(2, 1, session.Compaction{Summary: "another program's"}),
		span(3, 2, session.Compaction{Summary: "running 3", SpanSummary: "span 3", PrefixSummary: "prefix 3"}),
		span(4, 3, session.Compaction{Strategy: session.StrategyPrune, Summary: "running 3", PrefixSummary: "prefix 3"}),
		span(5, 4, session.Compaction{Summary: "running 5", SpanSummary: "span 5", Provider: digestProvider}),
	}
	late := session.Compaction{
		RowID: 6, Strategy: session.StrategySummarize, Status: session.StatusStaged,
		PreviousID: ptr[int64](5), ThroughID: all[4].ThroughID, Summary: "model 5", SpanSummary: "model span 5",
	}
	chain := []string{"another program's", "span 3\n\n---\n\nprefix 3", "span 5"}
	// nothing but the beginning of a turn
	split := span(5, 4, session.Compaction{Summary: "running 3", PrefixSummary: "prefix 5"})
	for name, c := range map[string]struct {
		all  []session.Compaction
		want pastSummaries
	}{
		"a chain": {all, pastSummaries{running: "running 5", depth: 4, spans: chain}},
		"a model's summary that came late": {
			append(slices.Clone(all), late),
			pastSummaries{running: "model 5", depth: 4, spans: append(slices.Clone(chain[:2]), "model span 5")},
		},
		"everything was cleared": {[]session.Compaction{
			all[0],
			span(5, 1, session.Compaction{Strategy: session.StrategyClear}),
		}, pastSummaries{}},
		"only the beginning of a turn": {
			append(slices.Clone(all[:4]), split),
			pastSummaries{running: "running 3\n\n---\n\nprefix 5", depth: 4, spans: append(slices.Clone(chain[:2]), "prefix 5")},
		},
		"another program's with the beginning of a turn": {
			[]session.Compaction{all[0], span(5, 1, session.Compaction{
				Trigger: session.TriggerImport, Summary: "theirs",
				PrefixSummary: "recent",
			})},
			pastSummaries{running: "theirs\n\n---\n\nrecent", depth: 2, spans: []string{"theirs\n\n---\n\nrecent"}},
		},
		"another program's that keeps messages and no summary": {
			[]session.Compaction{
				all[0], span(2, 1, session.Compaction{Trigger: session.TriggerImport}),
				span(5, 2, session.Compaction{Summary: "running 5", SpanSummary: "span 5"}),
			},
			pastSummaries{running: "running 5", depth: 1, spans: []string{"span 5"}},
		},
		"the one before is gone": {
			[]session.Compaction{span(5, 4, session.Compaction{Summary: "running 5", SpanSummary: "span 5"})},
			pastSummaries{running: "running 5", depth: 1, spans: []string{"running 5"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			effective := c.all[slices.IndexFunc(c.all, func(o session.Compaction) bool { return o.RowID == 5 })]
			got := collectPast(c.all, &effective, runes{}.Text)
			if got.running != c.want.running || got.depth != c.want.depth || got.anew || !slices.Equal(got.spans, c.want.spans) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A merge once dropped everything before an overlay that hid only the beginning of a turn. The next compaction, of
// whatever strategy, merges the running summary anew from all spans; the one after that updates it as usual.
func TestDroppedRunningSummaryIsMadeAnew(t *testing.T) {
	for _, strategy := range []session.Strategy{session.StrategySummarize, session.StrategyTruncate} {
		t.Run(string(strategy), func(t *testing.T) {
			s := &scribe{name: digestProvider}
			r := newRig(t, 20000, func(c *Config) { c.Digest = s })
			var previous *int64
			for i, c := range []session.Compaction{
				{Summary: "running 1", SpanSummary: "span 1"},
				{Summary: "running 1", PrefixSummary: "prefix 2"},
				{Summary: "running 3", SpanSummary: "span 3"},
				{Summary: "what is left", SpanSummary: "span 4"}, // merged from prefix 2 and span 3 alone
			} {
				last := r.append(text(session.User, fmt.Sprintf("q%d", i)), text(session.Assistant, "a"))[1]
				c.SessionID, c.Strategy, c.Trigger, c.Status = r.id, session.StrategySummarize, session.TriggerThreshold,
					session.StatusDone
				c.ThroughID, c.PreviousID = &last.RowID, previous
				previous = ptr(testkit.Must(r.store.AddCompaction(r.ctx, c))(t).RowID)
			}
			spans := []string{"span 1", "prefix 2", "span 3", "span 4"}
			for n, want := range [][]string{spans, nil} {
				r.talk(6, 100)
				in := keeping(300)
				if in.Strategy = session.StrategySummarize; n == 0 {
					in.Strategy = strategy
				}
				c, _ := r.compact(in)
				asked := s.asked[len(s.asked)-1]
				if !slices.Equal(asked.Spans, want) || want != nil && asked.Previous != "what is left\n\nrunning 1" {
					t.Errorf("%d: merged from %q, before it %q", n, asked.Spans, asked.Previous)
				}
				var d session.CompactionDetails
				if decode(c.Details, &d); d.Spans != len(want) || !strings.HasPrefix(c.Summary, digestProvider) {
					t.Errorf("%d: the record says %q and details %s", n, c.Summary, c.Details)
				}
			}
		})
	}
}

// A model's summary that comes after further compactions is not lost: the next running summary is
// merged with it instead of the digest of the same messages, once.
func TestLateSummaryFeedsTheNextAfterFurtherCompactions(t *testing.T) {
	for _, further := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(further), func(t *testing.T) {
			h, s := hung{make(chan struct{}), make(chan session.Summary)}, &scribe{name: digestProvider}
			r := newRig(t, 10000, func(c *Config) { c.Remotes, c.Digest = defaultRemote(h), s })
			r.talk(21, 150)
			r.turn(TurnInput{})
			done := make(chan error)
			go func() { done <- r.mgr.Stage(r.ctx, r.id) }()
			<-h.asked
			r.talk(2, 150)
			r.turn(TurnInput{})
			for range further {
				r.talk(3, 150)
				r.compact(keeping(400))
			}
			late := session.Summary{Text: "MODEL", Span: "MODEL'S SPAN", Provider: "gemini", Model: "flash"}
			h.free <- late
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			spans := []string{late.Span}
			for _, c := range r.compactions()[1:] {
				if c.Status == session.StatusDone {
					spans = append(spans, c.SpanSummary)
				}
			}
			if len(spans) != 1+further {
				t.Fatalf("%+v", r.compactions())
			}
			for n := range 2 {
				if (further+n+2)%mergeEvery != 0 && n > 0 {
					spans = nil // it is in the running summary
				}
				r.talk(3, 150)
				c, _ := r.compact(keeping(400))
				if asked := s.asked[len(s.asked)-1]; !slices.Equal(asked.Spans, spans) {
					t.Errorf("%d: merged from %q, want %q", n, asked.Spans, spans)
				}
				spans = append(spans, c.SpanSummary)
				if _, err := r.mgr.StageDigest(r.ctx, r.id); err != nil { // retires staged records
					t.Fatal(err)
				}
			}
		})
	}
}

// split is a session whose last turn is only partly kept.
func split(t *testing.T, s *scribe, turnsBefore int) (*rig, CompactInput) {
	r := newRig(t, 20000, func(c *Config) { c.Digest = s })
	if turnsBefore > 0 {
		r.talk(turnsBefore, 100)
	}
	r.append(text(session.User, "Find the leak. "+filler(50)))
	for i := range 8 {
		id := fmt.Sprintf("c%d", i)
		r.append(calling(id), answering(id, filler(100)))
	}
	return r, keeping(250)
}

func TestSplitTurnHasItsOwnSummary(t *testing.T) {
	t.Run("beside that of the turns before", func(t *testing.T) {
		s := &scribe{name: "extractive"}
		r, in := split(t, s, 4)
		in.Instructions = "mind the leak"
		c, _ := r.compact(in)
		if len(s.asked) != 2 || s.asked[0].TurnPrefix || !s.asked[1].TurnPrefix ||
			s.asked[1].Instructions != "mind the leak" {
			t.Fatalf("asked %+v", s.asked)
		}
		if a, b := s.asked[0].MaxTokens, s.asked[1].MaxTokens; a+b != r.numbers().SummaryMax || b == 0 || b > a {
			t.Errorf("they may have %d and %d tokens", a, b)
		}
		if c.Summary != "extractive running 1" || c.PrefixSummary != "extractive running 2" {
			t.Errorf("the record says %q and %q", c.Summary, c.PrefixSummary)
		}
		wantHas(t, r.read(Budget{}), "extractive running 1\n\n---\n\nextractive running 2", "[user] text(Find the leak.")
	})
	t.Run("alone, where it is the first turn", func(t *testing.T) {
		s := &scribe{name: "extractive"}
		r, in := split(t, s, 0)
		if c, _ := r.compact(in); len(s.asked) != 1 || !s.asked[0].TurnPrefix || c.Summary != "" ||
			c.PrefixSummary != "extractive running 1" || s.asked[0].MaxTokens != r.numbers().SummaryMax {
			t.Errorf("asked %d times; the record says %q and %q", len(s.asked), c.Summary, c.PrefixSummary)
		}
	})
	t.Run("beside the summary before, carried over word for word", func(t *testing.T) {
		s := &scribe{name: "extractive"}
		r, in := split(t, s, 0)
		r.fresh()
		r.talk(4, 100)
		last := *r.session().HeadID
		r.imported(&last, nil, "SUMMARY of before")
		r.append(text(session.User, "Find the leak. "+filler(50)))
		for i := range 8 {
			id := fmt.Sprintf("c%d", i)
			r.append(calling(id), answering(id, filler(100)))
		}
		if c, _ := r.compact(in); len(s.asked) != 1 || c.Summary != "SUMMARY of before" ||
			c.PrefixSummary != "extractive running 1" {
			t.Errorf("asked %d times; the record says %q and %q", len(s.asked), c.Summary, c.PrefixSummary)
		}
	})
	t.Run("and where the model fails in the middle, nothing of it is used", func(t *testing.T) {
		s, m := &scribe{name: "extractive"}, &scribe{name: "gemini", fails: 2}
		r, in := split(t, s, 4)
		r.mgr.cfg.Remotes = defaultRemote(m)
		in.Model = true
		c, _ := r.compact(in)
		if c.Provider != "extractive" || c.Summary != "extractive running 1" || c.PrefixSummary != "extractive running 2" {
			t.Errorf("by %s: %q and %q", c.Provider, c.Summary, c.PrefixSummary)
		}
	})
}

func (r *rig) numbers() Numbers {
	r.t.Helper()
	read := testkit.Must(r.mgr.read(r.ctx, r.id, Budget{}))(r.t)
	return read.numbers
}

func TestSessionInstructionsReachEachSummary(t *testing.T) {
	s := &scribe{name: "extractive"}
	r := newRig(t, 4000, func(c *Config) { c.Digest = s; c.File.Instructions = ptr("keep the prices") })
	r.talk(16, 100)
	r.turn(TurnInput{}) // compacts automatically
	r.talk(8, 100)
	in := keeping(200)
	in.Instructions = "and the names"
	r.compact(in)
	if len(s.asked) != 2 || s.asked[0].Instructions != "keep the prices" ||
		s.asked[1].Instructions != "keep the prices\n\nand the names" {
		t.Errorf("asked %+v", s.asked)
	}
	long := Settings{Instructions: ptr(strings.Repeat("x", maxInstructions+1))}
	wantCode(t, long.Check(), session.Invalid, "instructions")
}
