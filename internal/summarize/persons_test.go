package summarize_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/session"
)

// What a person put in from a terminal or a diff is no wish of theirs, wherever it stands; what
// they typed before and behind it is.
func TestPastedOutputIsNoConstraint(t *testing.T) {
	text := digest(t, session.SummaryRequest{MaxTokens: 900, Messages: []session.Message{
		person("Port the theme to the new editor."), model("I begin with the colours."),
		person("hm, it crashed when I picked a theme, that should never happen.\n\n" +
			"➜ ui git:(main) ✗ npx tsx src/cli.ts -r\nDebugger attached.\nat hexToRgb (/srv/ui/src/theme.ts:148:9)\nat bgAnsi (/srv/ui/src/theme.ts:191:24)\n\n" +
			"invalid themes must fall back to the dark one"),
		model("It falls back now."),
		person("'/var/tmp/shots/Screenshot 2026-02-11.png'"), model("I see the picture."),
		person("rename src/theme.ts to src/palette.ts"), model("Renamed."),
		person("配色表はここです。\n[theme] mode=256 (TERM=xterm)\n{\"a\":1}\n配色は変えないでください"), model("分かりました。"),
	}})
	wishes := between(text, "## Constraints & preferences\n", "\n## ")
	for _, want := range []string{"that should never happen", "must fall back to the dark one", "rename src/theme.ts to src/palette.ts", "配色は変えないでください"} {
		if !strings.Contains(wishes, want) {
			t.Errorf("%q is not among the wishes:\n%s", want, text)
		}
	}
	for _, paste := range []string{"hexToRgb", "Debugger attached", "npx tsx", "Screenshot", "TERM=xterm"} {
		if strings.Contains(wishes, paste) {
			t.Errorf("%q is among the wishes:\n%s", paste, wishes)
		}
	}
}

// A digest of many spans says once what all is for. What later ones began with are wishes that
// give way to others by what they say, and not a heap that nothing may take from.
func TestMergedSpansHaveOneGoal(t *testing.T) {
	var spans []string
	for i := range 24 {
		spans = append(spans, digest(t, session.SummaryRequest{MaxTokens: 600, Messages: []session.Message{
			person(fmt.Sprintf("Begin part %c of the move with the shelves of hall %d.", 'a'+i, 310+i)), model("I begin."),
			person(fmt.Sprintf("Crate K%d stays closed.", 7100+i)), model("It stays closed."),
		}}))
	}
	text := digest(t, session.SummaryRequest{MaxTokens: 1600, Spans: spans, Messages: []session.Message{person("Go on with the cellar now."), model("I go on.")}})
	if goal := between(text, "## Goal\n", "\n## "); strings.Count(goal, "\n- ")+1 > 2 || !strings.Contains(goal, "hall 310") {
		t.Errorf("the goal is\n%s", goal)
	}
	for i := range 24 {
		if want := fmt.Sprintf("Crate K%d stays closed.", 7100+i); !strings.Contains(text, want) {
			t.Errorf("%q was lost:\n%s", want, text)
		}
	}
}

func TestDigestPrefersWordsOfInstructions(t *testing.T) {
	var msgs []session.Message
	for i := range 200 {
		name := fmt.Sprintf("%c%c", 'a'+i%26, 'a'+i/26)
		if i == 60 {
			name = "quince"
		}
		msgs = append(msgs, call("bash", "{}"), result("bash", fmt.Sprintf("pump %s of the plant ran for %d hours and stopped", name, 40+i), false))
	}
	req := session.SummaryRequest{MaxTokens: 260, Messages: msgs}
	if text := digest(t, req); strings.Contains(text, "quince") {
		t.Fatalf("it stands there unasked:\n%s", text)
	}
	req.Instructions = "mind what quince did"
	if text := digest(t, req); !strings.Contains(text, "quince") || strings.Contains(text, "mind what") {
		t.Errorf("the instructions had no effect, or stand there as if they had been said:\n%s", text)
	}
}
