package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// standing rules that a person says between requests, in words that the digest was not tuned on.
var plantedRules = []string{
	"Never touch the vendor folder.",
	"All timestamps are UTC, no exceptions.",
	"No panics in library code.",
	"Please keep every line under 100 characters.",
	"We call customers members, never users.",
	"Ask me before you install anything.",
	"Tests must not sleep.",
	"Don't squash my commits, ever.",
	"Only Postgres 15 features are allowed.",
	"Every endpoint needs a rate limit.",
}

// What the person said about how work is done is in the context of an unrelated question, a hundred turns and some
// compactions later, in small and large windows.
func TestRulesSurviveCompactions(t *testing.T) {
	for _, c := range []struct{ window, least int64 }{{8_000, 9}, {16_000, 10}, {32_000, 10}} {
		t.Run(fmt.Sprint(c.window), func(t *testing.T) {
			turns := 110
			if effort.Long() {
				turns = 400
			}
			r := openRig(t)
			text, compactions := r.afterWork(t, c.window, turns)
			held := int64(0)
			for _, rule := range plantedRules {
				if strings.Contains(text, rule) {
					held++
				} else {
					t.Logf("lost: %s", rule)
				}
			}
			t.Logf("window %d: %d of %d rules after %d compactions", c.window, held, len(plantedRules), compactions)
			if held < c.least || compactions == 0 {
				t.Errorf("%d of %d rules are in the context after %d compactions", held, len(plantedRules), compactions)
			}
			if made := rulesSectionOf(text); len(made) > len(plantedRules) {
				t.Errorf("the section has more than the rules: %q", made)
			}
		})
	}
}

// afterWork holds a conversation of coding with the rules in its first half, and returns the context of a question
// about something else, as text.
func (r *rig) afterWork(t *testing.T, window int64, turns int) (text string, compactions int64) {
	random := rand.New(rand.NewPCG(5, 6))
	files := []string{"parser", "ledger", "router", "cache", "mailer", "report"}
	id := testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Model: "m", Window: &window}))(t).ID
	for n := range turns {
		file := files[random.IntN(len(files))]
		said := fmt.Sprintf("Please look at %s_%d.go and rename the helper %d in it.", file, random.IntN(40), n)
		if n%10 == 4 && n/10 < len(plantedRules) {
			said = plantedRules[n/10] + " " + said
		}
		msgs := []session.Message{newMessage(session.User, session.Person, session.TextPart(said))}
		call := newMessage(session.Assistant, session.Model,
			session.Part{
				Kind: session.PartToolCall, ToolName: "read", CallID: fmt.Sprint("c", n),
				Arguments: fmt.Sprintf(`{"path":"src/%s_%d.go"}`, file, n),
			})
		result := newMessage(session.Tool, session.ByTool, session.Part{
			Kind: session.PartToolResult, ToolName: "read",
			CallID: fmt.Sprint("c", n), Text: filling(random, n, file),
		})
		reply := newMessage(session.Assistant, session.Model,
			session.TextPart(fmt.Sprintf("I renamed helper %d in %s. The build passes and nothing else uses it.", n, file)))
		reply.Finish = session.FinishStop
		msgs = append(msgs, call, result, reply)
		testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: msgs}))(t)
		testkit.Must(r.contexts.Turn(t.Context(), id, contextmgr.TurnInput{Budget: contextmgr.Budget{CloseCalls: true}}))(t)
	}
	testkit.Must(r.index.CatchUp(t.Context()))(t)
	ask := newMessage(session.User, session.Person, session.TextPart("What is the weather like in Lisbon?"))
	testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{ask}}))(t)
	v := testkit.Must(r.contexts.Turn(t.Context(), id,
		contextmgr.TurnInput{Budget: contextmgr.Budget{CloseCalls: true}}))(t)
	for i := range v.Messages {
		text += v.Messages[i].Text() + "\n"
	}
	return text, testkit.Must(r.store.Session(t.Context(), id))(t).CompactionCount
}

// filling is what a tool gives back: code, a log, or prose.
func filling(random *rand.Rand, n int, file string) string {
	var b strings.Builder
	for i := range 12 + random.IntN(20) {
		switch n % 3 {
		case 0:
			fmt.Fprintf(&b,
				"// helper%d always returns the %s of the %d-th row and must not be called twice.\n"+
					"func helper%d(x uint64) error { return %s.Do(x, %d) }\n", i, file, i, i, file, random.IntN(9999))
		case 1:
			fmt.Fprintf(&b, "2026-02-11T10:%02d:00Z INFO %s: request %d took %d ms\n", i, file, random.IntN(99999),
				random.IntN(900))
		default:
			fmt.Fprintf(&b,
				"The %s keeps every row that it has read and never forgets the order of row %d. "+
					"You must read it before you go on.\n", file, random.IntN(999))
		}
	}
	return b.String()
}

// rulesSectionOf returns the lines under the heading of the rules.
func rulesSectionOf(text string) (lines []string) {
	_, section, _ := strings.Cut(text, "## Standing rules\n")
	section, _, _ = strings.Cut(section, "\n\n")
	for line := range strings.SplitSeq(section, "\n") {
		if strings.HasPrefix(line, "- ") {
			lines = append(lines, line)
		}
	}
	return lines
}
