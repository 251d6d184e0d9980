package eval_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// The talks in testdata/turns.json were written before recall was tuned on the half "tune"; of the half "held" read
// only figures.

// asking is a turn in which a person asks for something and calls of tools stand between the request and the reply,
// which does not tell what they found.
type asking struct {
	ID       string   `json:"id"`
	Half     string   `json:"half"` // tune or held
	Ask      string   `json:"ask"`
	Steps    []step   `json:"steps"`
	Answer   string   `json:"answer"`
	Question string   `json:"question"` // of a later turn
	Needs    []string `json:"needs"`    // strings that an answer needs, together
}

// step is a call with its result.
type step struct {
	Tool string            `json:"tool"`
	Args map[string]string `json:"args"`
	Form string            `json:"form"` // of the text around the fact: prose, code, log, table or json
	Size int               `json:"size"` // characters of the result, about
	Fact []string          `json:"fact"` // lines in the result
	At   float64           `json:"at"`   // their place, as a share of it
}

// UnmarshalJSON accepts numbers as arguments, too.
func (s *step) UnmarshalJSON(raw []byte) error {
	type plain step
	in := struct {
		*plain
		Args map[string]any `json:"args"`
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	s.Args = map[string]string{}
	for name, value := range in.Args {
		s.Args[name] = fmt.Sprint(value)
	}
	return nil
}

func readAskings(t *testing.T, half string) (all []asking) {
	testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile("testdata/turns.json"))(t), &all))
	return slices.DeleteFunc(all, func(a asking) bool { return a.Half != half })
}

// in reports whether a text holds all that the answer needs.
func (a *asking) in(text string) bool { return (&planted{Needs: a.Needs}).in(text) }

// messages returns the messages of the turn.
func (a *asking) messages(f *otherWork) []session.Message {
	msgs := []session.Message{newMessage(session.User, session.Person, session.TextPart(a.Ask))}
	for i := range a.Steps {
		s, id := &a.Steps[i], fmt.Sprintf("%s-%d", a.ID, i)
		call := newMessage(session.Assistant, session.Model,
			session.Part{Kind: session.PartToolCall, ToolName: s.Tool, CallID: id, Arguments: string(encode(s.Args))})
		call.Finish = session.FinishToolCalls
		msgs = append(msgs, call, newMessage(session.Tool, session.ByTool,
			session.Part{Kind: session.PartToolResult, ToolName: s.Tool, CallID: id, Text: s.result(f)}))
	}
	reply := newMessage(session.Assistant, session.Model, session.TextPart(a.Answer))
	reply.Finish = session.FinishStop
	return append(msgs, reply)
}

func encode(v any) []byte {
	raw, _ := json.Marshal(v) // of strings
	return raw
}

// result returns the lines of the fact among others of the same form.
func (s *step) result(f *otherWork) string {
	lines, size := []string{}, len(strings.Join(s.Fact, "\n"))
	for size < s.Size-40 {
		var line string
		switch s.Form {
		case "log":
			line = f.line(f.Logs)
		case "code":
			line = f.line(f.Code)
		case "table":
			line = f.line([]string{"| {w} {n} | {n} | {w} {x} |"})
		case "json":
			line = f.line([]string{`{"name":"{w}-{n}","count":{n},"note":"{w} {x}"},`})
		default:
			line = f.line(f.Prose)
		}
		lines, size = append(lines, line), size+len(line)+1
	}
	return strings.Join(slices.Insert(lines, int(s.At*float64(len(lines))), s.Fact...), "\n")
}

// askedLater is what contexts hold of turns with calls, asked for a hundred turns later.
type askedLater struct {
	all, inContext, recalled, inSequence, silent, tokens int
}

// askLater holds a conversation with the turns and a hundred others behind them. It asks for each on a fork of its own,
// then for one after the other, as a person would.
func (r *rig) askLater(t *testing.T, askings []asking, half string, window int64, turnsBehind int) (out askedLater) {
	_, fill := readWorlds(t, half)
	id := testkit.Must(r.store.CreateSession(t.Context(), store.NewSession{Model: "m", Window: &window}))(t).ID
	hold := func(n int, msgs []session.Message) {
		for i, part := range [][]session.Message{msgs[:1], msgs[1 : len(msgs)-1], msgs[len(msgs)-1:]} {
			testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: part}))(t)
			testkit.Must(r.index.CatchUp(t.Context()))(t)
			if i < 2 {
				r.contextOf(t, id, nil)
			}
		}
	}
	for i := range askings {
		hold(i, askings[i].messages(&fill))
		hold(i, fill.turn(2*i+1, nil))
	}
	for n := range turnsBehind {
		hold(n, fill.turn(n, nil))
	}
	for i := range askings {
		a, m := &askings[i], remembered{}
		lines := m.ask(t, r, id, a.Question, nil)
		out.all++
		if slices.ContainsFunc(lines, func(l spokenLine) bool { return a.in(l.text) }) {
			out.inContext++
		} else if *lost && half == "tune" {
			fmt.Printf("lost at %d: %s %q\n%s\n", window, a.ID, a.Needs, m.block)
		}
		if a.in(m.block) {
			out.recalled++
		}
		out.tokens += int(m.recalled)
	}
	for _, q := range fill.Unrelated {
		m := remembered{}
		m.ask(t, r, id, q, nil)
		out.silent += int(m.unrecalled)
	}
	for i := range askings {
		a := &askings[i]
		testkit.Must(r.store.Append(t.Context(), store.Append{
			Session:  id,
			Messages: []session.Message{newMessage(session.User, session.Person, session.TextPart(a.Question))},
		}))(t)
		testkit.Must(r.index.CatchUp(t.Context()))(t)
		v := r.contextOf(t, id, nil)
		if slices.ContainsFunc(linesOf(v.Messages, -1, a.Question), func(l spokenLine) bool { return a.in(l.text) }) {
			out.inSequence++
		}
		reply := newMessage(session.Assistant, session.Model, session.TextPart("It is as I said."))
		reply.Finish = session.FinishStop
		testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{reply}}))(t)
	}
	return out
}

// TestTurnsWithCalls measures how many results of calls are in the context a hundred turns later.
func TestTurnsWithCalls(t *testing.T) {
	if !*measured {
		t.Skip("scripts/eval memory measures it")
	}
	fmt.Println("\n" +
		"| half | window | asked | in the context | recalled | asked one after the other | tokens of a recall | silent at " +
		"unrelated questions |\n|" + strings.Repeat(" --- |", 8))
	for _, h := range []string{"tune", "held"} {
		for _, window := range []int64{8_000, 16_000, 32_000} {
			if *half != "" && *half != h || *oneWindow != 0 && *oneWindow != window {
				continue
			}
			got := openRig(t).askLater(t, readAskings(t, h), h, window, 100)
			fmt.Printf("| %s | %d | %d | %d | %d | %d | %d | %d of 10 |\n", h, window, got.all, got.inContext, got.recalled,
				got.inSequence, got.tokens/got.all, got.silent)
		}
	}
}

// Forty turns later, at least as many results of calls are found as when this test was written.
func TestResultsOfCallsAreFoundLater(t *testing.T) {
	effort.NotShort(t, "it holds conversations of seventy turns")
	for half, least := range map[string]int{"tune": 14, "held": 13} {
		got := openRig(t).askLater(t, readAskings(t, half), half, 16_000, 40)
		t.Logf("%s: %+v", half, got)
		if got.inContext < least {
			t.Errorf("of %s, %d of %d are in the context", half, got.inContext, got.all)
		}
	}
}

// Twelve results of calls, whose replies do not name them, are in the context when a person asks for one after the
// other fifty turns later; scripts/eval memory asks after a hundred.
func TestTwelveResultsOfCallsAskedInARow(t *testing.T) {
	effort.NotShort(t, "it holds conversations of seventy turns and more")
	turnsBehind := 50
	if *measured {
		turnsBehind = 100
	}
	subjects := []string{
		"competitor pricing", "delivery times", "support hours", "warranty terms", "team sizes", "storage quotas",
		"upload limits", "refund periods", "server regions", "contract lengths", "discount levels", "trial periods",
	}
	var askings []asking
	for i, subject := range subjects {
		company := func(k int) string { return fmt.Sprintf("Company%c", 'A'+(3*i+k)%26) + string(rune('a'+i)) }
		value := fmt.Sprintf("$%d", 1129+37*i)
		askings = append(askings, asking{
			ID: subject, Ask: fmt.Sprintf("Research %s for %s, %s and %s.", subject, company(0), company(1), company(2)),
			Steps: []step{{
				Tool: "web_search", Args: map[string]string{"query": subject}, Form: "prose", Size: 100,
				Fact: []string{fmt.Sprintf("%s=$%d %s=%s %s=$%d", company(0), 2003+i, company(1), value, company(2), 3001+i)},
			}},
			Answer:   "I found the " + subject + " of all three.",
			Question: fmt.Sprintf("What was %s's %s again?", company(1), subject),
			Needs:    []string{company(1) + "=" + value},
		})
	}
	for window, least := range map[int64]int{8_000: 8, 16_000: 12, 32_000: 12} {
		got := openRig(t).askLater(t, askings, "held", window, turnsBehind)
		t.Logf("%d: %+v", window, got)
		if got.inContext < least || got.inSequence < least {
			t.Errorf("at a window of %d %d of %d are in the context, %d if asked in a row; at least %d should be", window,
				got.inContext, got.all, got.inSequence, least)
		}
	}
}

// No talk answers the question of another one, and neither a question nor a filler holds what it asks for.
func TestAskingsAreFair(t *testing.T) {
	for _, half := range []string{"tune", "held"} {
		askings := readAskings(t, half)
		_, fill := readWorlds(t, half)
		theirs := slices.Concat(fill.Words, fill.Verbs, fill.Tails, fill.Asks, fill.Prose, fill.Code, fill.Logs, fill.Calls)
		if len(askings) != 15 {
			t.Errorf("%s has %d talks", half, len(askings))
		}
		for i := range askings {
			a := &askings[i]
			if a.in(a.Ask) || a.in(a.Answer) || a.in(a.Question) || slices.ContainsFunc(theirs, a.in) {
				t.Errorf("%s: the request, the reply, the question or a filler holds %q", a.ID, a.Needs)
			}
			for k := range askings {
				text := ""
				for _, m := range askings[k].messages(&fill) {
					text += m.Text() + "\n"
					for _, p := range m.Calls() {
						text += p.Arguments + "\n"
					}
				}
				if a.in(text) != (k == i) {
					t.Errorf("%s: its answer is in the talk %s: %v", a.ID, askings[k].ID, k != i)
				}
			}
		}
	}
}
