package contextmgr

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
)

// wide is a person's message with a part of 600 tokens and five of 360. In a window of 3,000, with a
// limit of 2,250, the large part is cut.
func wide() session.Message {
	m := text(session.User, "large: "+filler(600))
	for range 5 {
		m.Parts = append(m.Parts, session.TextPart(filler(360)))
	}
	return m
}

// A part that was cut to fit stays cut, even if the provider's report would let the next context fit
// as a whole.
func TestPartsCutToFitStayCut(t *testing.T) {
	r := newRig(t, 3000)
	r.append(wide())
	first := r.turn(TurnInput{})
	wantHas(t, first, "characters left out")
	r.report(first, "reply", first.Tokens.Total, 10)
	r.append(text(session.User, "next"))
	second := r.turn(TurnInput{})
	if !strings.HasPrefix(wire(second), wire(first)) || second.Prefix.BrokenBy != "" ||
		second.Prefix.StableTokens < 2000 || second.Tokens.Method != MethodAnchor {
		t.Errorf("prefix %+v, tokens %+v:\n%.2000s", second.Prefix, second.Tokens, wire(second))
	}
	again := r.read(Budget{})
	if wire(again) != wire(second) || again.Prefix.BrokenBy != "" {
		t.Errorf("read once more it is another, broken by %q", again.Prefix.BrokenBy)
	}
}

// Changed numbers change the cuts. The answer says that the prefix is broken, but only if a part
// differs.
func TestChangedCutsBreakThePrefixByName(t *testing.T) {
	r := newRig(t, 3000)
	r.append(text(session.User, "task "+filler(200)), calling("c"), answering("c", filler(600)),
		text(session.User, "go on"))
	first := r.turn(TurnInput{})
	for _, c := range []struct {
		name string
		most int64
		want string
	}{
		{"more than any part has", 700, ""},
		{"less", 300, "trimmed"},
	} {
		b := Budget{Settings: Settings{PartMaxTokens: &c.most}}
		v := r.read(b)
		if v.Prefix.BrokenBy != c.want || (wire(v) == wire(first)) != (c.want == "") {
			t.Errorf("%s: broken by %q:\n%.1500s", c.name, v.Prefix.BrokenBy, wire(v))
		}
	}
	less := Budget{Settings: Settings{PartMaxTokens: ptr[int64](300)}}
	r.turn(TurnInput{Budget: less})
	if v := r.read(less); v.Prefix.BrokenBy != "" {
		t.Errorf("as it was sent, and broken by %q", v.Prefix.BrokenBy)
	}
	if v := r.read(Budget{}); v.Prefix.BrokenBy != "trimmed" || wire(v) != wire(first) {
		t.Errorf("whole again, and broken by %q", v.Prefix.BrokenBy)
	}
	if c, p := r.compact(keeping(1)); c.Status != session.StatusDone {
		t.Fatalf("%+v", p)
	}
	if v := r.turn(TurnInput{}); v.Prefix.BrokenBy != "epoch" {
		t.Errorf("in a new epoch, and broken by %q", v.Prefix.BrokenBy)
	}
}

// New messages are cut first, so that the provider's cached prefix stays.
func TestNewMessagesAreCutFirst(t *testing.T) {
	r := newRig(t, 3000)
	r.append(text(session.User, filler(700)))
	sent := r.turn(TurnInput{})
	m := text(session.User, filler(700))
	m.Parts = append(m.Parts, session.TextPart(filler(700)), session.TextPart(filler(700)))
	r.append(m)
	none := Settings{Strategy: ptr(session.StrategyClear)} // hides no unanswered message
	v := r.turn(TurnInput{Budget: Budget{Settings: none}})
	if !strings.HasPrefix(wire(v), wire(sent)) || v.Prefix.BrokenBy != "" {
		t.Errorf("broken by %q:\n%.500s", v.Prefix.BrokenBy, wire(v))
	}
	wantHas(t, v, "characters left out")
}

// A compaction may keep no message but those that are shown again: their parts are cut, too.
func TestMessagesShownAgainAreCut(t *testing.T) {
	var s snapshot
	s.Person = &session.Message{RowID: 1, Role: session.User, PathTokens: 4000}
	s.TurnStart = &session.Message{RowID: 9, Role: session.User, PathTokens: 9000}
	s.numbers.Window = 4000
	all, part := s.tighterLimits(), session.TextPart("said")
	for _, m := range []*session.Message{s.Person, s.TurnStart} {
		if got := all[len(all)-1].partLimits(m).of(m, &part); got <= 0 || got >= 2*minPart {
			t.Errorf("row %d: the smallest limit is %d tokens", m.RowID, got)
		}
	}
}

func TestPartLimitFollowsTheCuts(t *testing.T) {
	at := func(tokens int64) *session.Message { return &session.Message{PathTokens: tokens} }
	usual := limits{Output: 1000}
	first := usual.cutNew(100, 200, 500, 0)
	second := first.cutNew(200, 300, 250, 250)
	for _, c := range []struct {
		name         string
		l            limits
		output, said [4]int64 // at 100, 200, 300, 400 tokens of the path
	}{
		{"the usual", usual, [4]int64{1000, 1000, 1000, 1000}, [4]int64{}},
		{"outputs that came since", first, [4]int64{1000, 500, 1000, 1000}, [4]int64{}},
		{"and then what was said", second, [4]int64{1000, 500, 250, 1000}, [4]int64{0, 0, 250, 0}},
		{"all outputs", second.cutAll(400, 300, 0), [4]int64{300, 300, 250, 300}, [4]int64{0, 0, 250, 0}},
		{"all of it, smaller", second.cutAll(400, 100, 100), [4]int64{100, 100, 100, 100}, [4]int64{100, 100, 100, 100}},
	} {
		for i := range c.output {
			want := partLimits{output: c.output[i], said: c.said[i], calls: c.said[i] > 0}
			if got := c.l.partLimits(at(int64(i+1) * 100)); got != want {
				t.Errorf("%s: at %d tokens %+v, want %+v", c.name, (i+1)*100, got, want)
			}
		}
		if c.l.isCut() != (c.name != "the usual") {
			t.Errorf("%s: is cut: %t", c.name, c.l.isCut())
		}
	}
	if all := second.cutAll(400, 100, 100); len(all.Cuts) != 1 {
		t.Errorf("alike, and not joined: %+v", all.Cuts)
	}
}

// Records of older versions have one limit for outputs and for what was said. After an update, the answer says that a
// long text which was shortened is whole now.
func TestOlderRecordsOfCutsAreRead(t *testing.T) {
	var l limits
	if !decode(session.JSON(`{"part":1000,"shown":500,"cuts":[{"through":10},{"through":20,"part":60}]}`), &l) {
		t.Fatal("cannot be read")
	}
	for row, want := range map[int64]partLimits{5: {1000, 1000, false}, 15: {60, 60, true}, 25: {1000, 1000, false}} {
		if got := l.partLimits(&session.Message{PathTokens: row}); got != want {
			t.Errorf("at %d tokens of the path: %+v, want %+v", row, got, want)
		}
	}
	for _, now := range []limits{
		{},
		{Output: 7, Shown: 9, Cuts: []cut{{Through: 3, Output: 4, Said: 5}}},
		{Cuts: []cut{{Through: 3, Output: 4}}},
	} {
		var again limits
		if !decode(session.JSONOf(now), &again) || !reflect.DeepEqual(again, now) {
			t.Errorf("%+v is read as %+v", now, again)
		}
	}
	long := Item{Message: text(session.User, filler(3000))}
	runes{}.Measure(&long.Message)
	if now := (limits{Output: 1000, Shown: 500}); !now.cutsDifferently(&l, &long) {
		t.Error("a text that was shortened is whole, and nothing says so")
	}
}

// What a person or the model said is sent whole wherever it fits, in every preset, also in a request that compacts and
// after the beginning of its turn is hidden. Outputs of tools keep their limit.
func TestWhatWasSaidIsWholeWhereItFits(t *testing.T) {
	for _, window := range []int64{16000, 128000, 1000000} {
		for _, preset := range PresetNames() {
			t.Run(fmt.Sprint(preset, " ", window), func(t *testing.T) {
				r := newRig(t, window)
				in := TurnInput{Budget: Budget{Settings: Settings{Preset: &preset}}}
				size := min(67289, int(r.numbers().Threshold*45/100))
				said := func(mark string) string {
					return mark + " begins " + strings.Repeat("lorem ip", size/2) + " ends " + mark
				}
				whole := func(at string, texts ...string) {
					t.Helper()
					v := r.turn(in)
					wantHas(t, v, texts...)
					if strings.Contains(wire(v), "characters left out") || len(v.Losses) > 0 {
						t.Errorf("%s: losses %q", at, v.Losses)
					}
				}
				r.append(text(session.User, said("QUESTION")))
				whole("alone", said("QUESTION"))
				r.append(text(session.Assistant, said("ANSWER")), text(session.User, "And?"))
				whole("with the answer", "And?")
				r.append(text(session.Assistant, "So."), text(session.User, said("TASK")))
				whole("as a task", said("TASK"))
				for n := range 30 {
					id := fmt.Sprintf("c%d", n)
					r.append(calling(id), answering(id, filler(size*2/25)))
					if whole(fmt.Sprintf("after %d calls", n+1), said("TASK")); t.Failed() {
						return
					}
				}
				if r.session().CompactionCount == 0 && window < 1000000 {
					t.Error("nothing was compacted")
				}
			})
		}
	}
}

// Where a context does not fit, outputs of tools are cut before anything that was said, and losses name what was.
func TestOutputsAreCutBeforeWhatWasSaid(t *testing.T) {
	r := newRig(t, 3000) // a limit of 2,250, and of 750 for an output
	r.append(text(session.User, "QUESTION "+filler(1200)), calling("c", "d"), answering("c", filler(700)),
		answering("d", filler(700)))
	v := r.turn(TurnInput{})
	wantHas(t, v, "QUESTION "+filler(1200))
	if len(v.Losses) != 1 || !strings.Contains(v.Losses[0], "outputs of tools") {
		t.Errorf("losses %q", v.Losses)
	}
	r.fresh()
	asked := r.append(text(session.User, "QUESTION "+filler(2600)), calling("c"), answering("c", filler(700)))[0]
	v = r.turn(TurnInput{})
	wantLacks(t, v, filler(2600))
	if !slices.ContainsFunc(v.Losses, func(l string) bool {
		return strings.Contains(l, asked.ID.String()) && strings.Contains(l, "does not fit")
	}) {
		t.Errorf("losses %q do not name %s", v.Losses, asked.ID)
	}
}

// A context in a tiny window fits by the count of a provider that counts many times as much as
// sessiond: keeping and cutting go by that count.
func TestContextFitsByAProviderThatCountsFarMore(t *testing.T) {
	for _, factor := range []float64{1.5, 2.5, 8, 20} {
		t.Run(fmt.Sprint(factor), func(t *testing.T) {
			t.Parallel()
			r, rnd := newRig(t, 3000), rand.New(rand.NewPCG(1, 2))
			for n := range 25 {
				words := fmt.Sprintf("P%d", n)
				r.append(text(session.User, words+" "+filler(10+rnd.IntN(90))))
				for call := range rnd.IntN(3) {
					id := fmt.Sprintf("c%d-%d", n, call)
					r.append(calling(id), answering(id, filler(10+rnd.IntN(600))))
					v := r.turn(TurnInput{})
					r.report(v, filler(10+rnd.IntN(60)), int64(float64(v.Tokens.Estimate)*factor), 20)
				}
				v := r.turn(TurnInput{})
				if !strings.Contains(wire(v), words) {
					t.Fatalf("turn %d lacks its words", n)
				}
				r.report(v, filler(10+rnd.IntN(200)), int64(float64(v.Tokens.Estimate)*factor), 50)
			}
		})
	}
}

// If cutting does not help, the error names the likely cause.
func TestErrorMentionsTextBesideTheMessages(t *testing.T) {
	r := newRig(t, 3000)
	r.append(text(session.User, "the task"))
	r.report(r.turn(TurnInput{}), "reply", 9000, 10)
	var err error
	for range maxOverflows + 1 {
		_, _, err = r.mgr.Compact(r.ctx, r.id, CompactInput{Trigger: session.TriggerOverflow, ReportedTokens: 9000})
	}
	wantCode(t, err, session.DoesNotFit, "times as much as sessiond", "overhead_tokens")
}
