package transcript

import (
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

const drawn = session.ID("20260211_002")

func msg(seq int64) session.MessageRef { return session.MessageRef{Session: drawn, Seq: seq} }

// seg is a segment of user's messages that say what is given.
func seg(from, to, parent int64, onPath bool, says string, children ...int64) session.Segment {
	s := session.Segment{
		First: session.TreeMessage{ID: msg(from), Role: session.User, Preview: says},
		Last:  session.TreeMessage{ID: msg(to), Role: session.Assistant, Preview: "re: " + says},
		Count: to - from + 1, OnPath: onPath,
	}
	if from == to {
		s.Last = s.First
	}
	if parent > 0 {
		p := msg(parent)
		s.Parent = &p
	}
	for _, c := range children {
		s.Children = append(s.Children, msg(c))
	}
	return s
}

func draw(t *testing.T, segments []session.Segment, opt TerminalOptions) string {
	t.Helper()
	var b strings.Builder
	testkit.Check(t, Tree(&b, drawn, segments, opt))
	return "\n" + b.String()
}

func TestTheTreeIsDrawnWithThePathStraightDown(t *testing.T) {
	segments := []session.Segment{
		seg(1, 5, 0, true, "begin", 6, 8),
		seg(6, 7, 5, false, "left"),
		seg(8, 9, 5, true, "goes on", 10, 12),
		seg(10, 10, 9, true, "head"),
		seg(12, 12, 9, false, "newer"),
	}
	segments[0].Labels = []session.Label{{Message: msg(3), Text: "here\x1b[31m"}}
	segments[1].Overlays = []session.TreeCut{{ID: "cmp_1", Through: msg(7), Undone: true}}
	segments[2].Hanging = []session.Link{
		{Session: "20260211_003", Kind: session.ParentFork, Title: "Plan (fork #1)", Message: ptr(segments[2].Last.ID)},
		{Session: "20260211_004", Kind: session.ParentChild, Message: ptr(segments[2].Last.ID)},
	}
	segments[3].Head = true
	segments[3].Overlays = []session.TreeCut{{
		ID: "cmp_2", Strategy: session.StrategySummarize, Through: msg(10),
		InForce: true,
	}}
	want := `
● user #1 · begin
⋮ 1 more
● #3  [here]
⋮ 1 more
● assistant #5 · re: begin
├─○ user #6 · left
│ ○ assistant #7 · re: left
│ ┄ cmp_1, undone
● user #8 · goes on
● assistant #9 · re: goes on
⑂ fork 20260211_003 Plan (fork #1)
↳ started 20260211_004
├─○ user #12 · newer
● user #10 · head  ◀ head
┄ cmp_2, in force: the model sees a summary of what is above
`
	if got := draw(t, segments, TerminalOptions{}); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}

func TestADeepTreeFitsANarrowTerminal(t *testing.T) {
	var segments []session.Segment
	const deep = 40
	for i := int64(1); i <= deep; i++ { // each branch is left twice, and what goes on is the second
		segments = append(segments, seg(2*i-1, 2*i-1, max(0, 2*i-3), false, strings.Repeat("long words ", 9), 2*i+1, 1000+i),
			seg(1000+i, 1000+i, 2*i-1, false, "end"))
	}
	for line := range strings.Lines(draw(t, segments, TerminalOptions{Width: 30})) {
		if w := Width(strings.TrimSuffix(line, "\n")); w > 30 {
			t.Fatalf("%d columns: %s", w, line)
		}
	}
	if got := draw(t, segments, TerminalOptions{Width: 30}); strings.Count(got, "○") != 2*deep {
		t.Errorf("%d messages are drawn", strings.Count(got, "○"))
	}
}

func TestRootsAndForeignPartsOfATree(t *testing.T) {
	shared := seg(1, 2, 0, true, "theirs")
	shared.First.ID.Session, shared.Last.ID.Session = "20260211_001", "20260211_001"
	mine := seg(1, 1, 0, true, "mine")
	mine.Parent, shared.Children = &shared.Last.ID, []session.MessageRef{mine.First.ID}
	lost := seg(5, 5, 99, false, "its parent is not here")
	got := draw(t, []session.Segment{shared, mine, seg(3, 3, 0, false, "another root"), lost}, TerminalOptions{})
	want := `
○ user #3 · another root

○ user #5 · its parent is not here

● user 20260211_001.1 · theirs
● assistant 20260211_001.2 · re: theirs
● user #1 · mine
`
	if got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}

func ptr(ref session.MessageRef) *session.MessageRef { return &ref }

func TestATreeSaysWhatStandsForWhatIsHidden(t *testing.T) {
	for strategy, want := range map[session.Strategy]string{
		session.StrategySummarize: "the model sees a summary of what is above",
		session.StrategyPrune:     "pieces of what is above are hidden from the model",
		session.StrategyTruncate:  "what is above is hidden from the model",
		session.StrategyClear:     "what is above is hidden from the model",
	} {
		segments := []session.Segment{seg(1, 1, 0, true, "begin")}
		segments[0].Overlays = []session.TreeCut{{
			ID: "cmp_1", Strategy: strategy, Through: segments[0].First.ID,
			InForce: true,
		}}
		if got := draw(t, segments, TerminalOptions{}); !strings.Contains(got, "┄ cmp_1, in force: "+want+"\n") {
			t.Errorf("%s: %s", strategy, got)
		}
	}
}
