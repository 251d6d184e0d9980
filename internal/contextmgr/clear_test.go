package contextmgr_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// A caller with the strategy ask is given a choice and clears: what the model has to answer is in the next request of
// each dialect, in a loop of tools also the call and its result, and nothing else.
func TestClearKeepsTheOpenTurn(t *testing.T) {
	call := newText(session.Assistant, session.Model, "")
	call.Finish = session.FinishToolCalls
	call.Parts = []session.Part{{
		Kind: session.PartToolCall, CallID: "call_1", ToolName: "read",
		Arguments: `{"path":"zebra.go"}`,
	}}
	result := newText(session.Tool, session.ByTool, "")
	result.Parts = []session.Part{{
		Kind: session.PartToolResult, CallID: "call_1", ToolName: "read",
		Text: "func stripes() int { return 4711 }",
	}}
	failed := newText(session.Assistant, session.Model, "The zebra")
	failed.Finish = session.FinishError
	done := newText(session.Assistant, session.Model, "It has 4711 stripes.")
	done.Finish = session.FinishStop
	question := newText(session.User, session.Person, "How many stripes has the zebra?")
	for name, c := range map[string]struct {
		open  []session.Message
		holds []string
	}{
		"a question": {[]session.Message{question}, []string{"How many stripes"}},
		"two questions": {[]session.Message{
			question,
			newText(session.User, session.Person, "And the okapi?"),
		}, []string{"How many stripes", "okapi"}},
		"a loop of tools": {
			[]session.Message{question, call, result},
			[]string{"How many stripes", "zebra.go", "4711"},
		},
		"a question in a loop of tools": {[]session.Message{
			question, call, result,
			newText(session.User, session.Person, "And the okapi?"),
		}, []string{"How many stripes", "zebra.go", "4711", "okapi"}},
		"a question whose reply failed":  {[]session.Message{question, failed}, []string{"How many stripes"}},
		"nothing is open, and then more": {[]session.Message{question, call, result, done}, nil},
	} {
		for _, form := range dialecttest.Forms() {
			for _, trigger := range []session.Trigger{session.TriggerManual, session.TriggerThreshold} {
				t.Run(name+", "+form+", "+string(trigger), func(t *testing.T) {
					d := newDesk(t)
					id := d.begin()
					for n := range 60 {
						d.follow(id, newText(session.User, session.Person,
							fmt.Sprintf("Old question %d. %s", n, strings.Repeat("lorem ", 150))), done)
					}
					d.follow(id, c.open...)
					budget := contextmgr.Budget{Window: 8000, Dialect: form, CloseCalls: true}
					strategy := session.StrategyClear
					if trigger == session.TriggerManual {
						strategy = contextmgr.StrategyAsk
					}
					budget.Settings.Strategy = &strategy
					if trigger == session.TriggerManual {
						in := contextmgr.CompactInput{Budget: budget, Strategy: session.StrategyClear}
						if record, _, err := d.mgr.Compact(t.Context(), id, in); err != nil || record.Status != session.StatusDone {
							t.Fatalf("%+v, %v", record, err)
						}
					}
					holds := c.holds
					if holds == nil {
						d.follow(id, newText(session.User, session.Person, "Next."))
						holds = []string{"Next."}
					}
					v := testkit.Must(d.mgr.Turn(t.Context(), id, contextmgr.TurnInput{Budget: budget}))(t)
					sent := string(d.accepted(name, v))
					for _, text := range holds {
						if !strings.Contains(sent, text) {
							t.Errorf("the request lacks %q: %.500s", text, sent)
						}
					}
					for _, text := range []string{"Old question", "no content"} {
						if strings.Contains(sent, text) {
							t.Errorf("the request holds %q: %.500s", text, sent)
						}
					}
				})
			}
		}
	}
}

// Where the context holds nothing but a summary and the open turn, clearing hides the summary, and an undo brings it
// back.
func TestClearHidesASummaryBeforeTheOpenTurn(t *testing.T) {
	d := newDesk(t)
	id := d.begin()
	reply := newText(session.Assistant, session.Model, "Yes.")
	reply.Finish = session.FinishStop
	d.follow(id, newText(session.User, session.Person, "The zebra has 4711 stripes. "+strings.Repeat("lorem ", 99)), reply,
		newText(session.User, session.Person, "How many has it?"))
	in := contextmgr.CompactInput{Summary: "A SUMMARY", KeepTokens: new(int64)}
	in.Settings.KeepRecentMessages = new(int64)
	if c, _, err := d.mgr.Compact(t.Context(), id, in); err != nil || c.Status != session.StatusDone {
		t.Fatalf("%+v, %v", c, err)
	}
	before := d.text(testkit.Must(d.mgr.Assemble(t.Context(), id, contextmgr.Budget{}))(t))
	c, _, err := d.mgr.Compact(t.Context(), id, contextmgr.CompactInput{Strategy: session.StrategyClear})
	testkit.Check(t, err)
	after := d.text(testkit.Must(d.mgr.Assemble(t.Context(), id, contextmgr.Budget{}))(t))
	if c.Status != session.StatusDone || strings.Contains(after, "SUMMARY") ||
		!strings.Contains(after, "How many has it?") {
		t.Errorf("%s %s: the context was\n%s\nand is\n%s", c.Status, c.Reason, before, after)
	}
	if again, _, err := d.mgr.Compact(t.Context(), id,
		contextmgr.CompactInput{Strategy: session.StrategyClear}); err != nil || again.Status != session.StatusSkipped {
		t.Errorf("once more: %+v, %v", again, err)
	}
	testkit.Must(d.mgr.Undo(t.Context(), id, c.RowID))(t)
	if undone := d.text(testkit.Must(d.mgr.Assemble(t.Context(), id, contextmgr.Budget{}))(t)); undone != before {
		t.Errorf("undone it is\n%s", undone)
	}
}
