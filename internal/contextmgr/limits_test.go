package contextmgr

import (
	"fmt"
	"math/rand/v2"
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
	if !strings.HasPrefix(wire(second), wire(first)) || second.Prefix.BrokenBy != "" || second.Prefix.StableTokens < 2000 || second.Tokens.Method != MethodAnchor {
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
	r.append(text(session.User, "task "+filler(200)), text(session.Assistant, filler(600)), text(session.User, "go on"))
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

func TestPartLimitFollowsTheCuts(t *testing.T) {
	at := func(tokens int64) *session.Message { return &session.Message{PathTokens: tokens} }
	usual := limits{Part: 1000}
	first := usual.cutNew(100, 200, 500)
	second := first.cutNew(200, 300, 250)
	for _, c := range []struct {
		name string
		l    limits
		want [4]int64 // at 100, 200, 300, 400 tokens of the path
	}{
		{"the usual", usual, [4]int64{1000, 1000, 1000, 1000}},
		{"what came since", first, [4]int64{1000, 500, 1000, 1000}},
		{"and again", second, [4]int64{1000, 500, 250, 1000}},
		{"all of it", second.cutAll(400, 300), [4]int64{300, 300, 250, 300}},
		{"all of it, smaller", second.cutAll(400, 100), [4]int64{100, 100, 100, 100}},
	} {
		for i, want := range c.want {
			if got, calls := c.l.partLimit(at(int64(i+1) * 100)); got != want || calls != (want < 1000) {
				t.Errorf("%s: at %d tokens %d, calls %t, want %d", c.name, (i+1)*100, got, calls, want)
			}
		}
		if c.l.isCut() != (c.name != "the usual") {
			t.Errorf("%s: is cut: %t", c.name, c.l.isCut())
		}
	}
	if all := second.cutAll(400, 100); len(all.Cuts) != 1 {
		t.Errorf("alike, and not joined: %+v", all.Cuts)
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
