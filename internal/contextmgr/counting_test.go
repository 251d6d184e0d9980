package contextmgr

import (
	"strings"
	"testing"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
)

// Reasoning in OpenAI's chat form is sent again: it counts in the context's size. A report that
// leaves that of a reply with calls out cannot be of the whole context. DeepSeek ignores the
// reasoning of a reply without calls, so such a report is plausible.
func TestReasoningThatIsSentAgainCounts(t *testing.T) {
	for _, c := range []struct {
		name, dialect string
		calls         bool
		plausible     bool
	}{
		{"of a reply with calls", dialect.OpenAIChat, true, false},
		{"of a reply without calls", dialect.OpenAIChat, false, true},
		{"of another form", "anthropic", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 100_000)
			reply := text(session.Assistant, filler(40))
			if c.calls {
				reply = calling("a")
			}
			reply.Parts = append([]session.Part{{Kind: session.PartReasoning, Text: filler(4000)}}, reply.Parts...)
			reply.Dialect = c.dialect
			r.append(text(session.User, filler(40)), reply)
			if c.calls {
				r.append(answering("a", "1"))
			} else {
				r.append(text(session.User, "and?"))
			}
			in := TurnInput{Budget: Budget{Dialect: c.dialect}}
			view := r.turn(in)
			if view.Tokens.Total < 4000 {
				t.Errorf("the context has %d tokens", view.Tokens.Total)
			}
			r.reported(view, 200) // of everything but the reasoning
			view = r.turn(in)
			refused := strings.Contains(strings.Join(view.Warnings, " "), "the provider reported 200 tokens")
			if refused == c.plausible || (view.Tokens.Method == MethodAnchor) != c.plausible {
				t.Errorf("counted by %s, warnings %q", view.Tokens.Method, view.Warnings)
			}
		})
	}
}
