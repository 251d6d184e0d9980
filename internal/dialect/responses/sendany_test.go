package responses_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// accepted sends a context, and asks the validator.
func accepted(t testing.TB, in wire.Request) wire.Sent {
	t.Helper()
	return dialecttest.Accepted(t, responses.Form(), in)
}

// anyRepaired generates items of the wire, of every kind and in every shape that decodes, as a
// repaired context has them.
func anyRepaired(t testing.TB) func(*rapid.T) []session.Message {
	return func(r *rapid.T) []session.Message {
		raw := []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}
		raw = append(raw, rapid.SliceOfN(rapid.Custom(anyInput), 1, 8).Draw(r, "items")...)
		decoded, err := responses.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", dialecttest.Array(raw), err)
		}
		return repaired(dialecttest.Stored(t, decoded.Messages))
	}
}

// repaired returns messages as a context holds them, with calls that nothing answered closed.
func repaired(msgs []session.Message) []session.Message {
	var out []session.Message
	for _, item := range contextmgr.Repair(msgs, nil, true).Items {
		out = append(out, item.Message)
	}
	return out
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.AcceptsAny(t, responses.Form(), dialecttest.AnyConversation, "")
	})
	t.Run("of this form", func(t *testing.T) { dialecttest.AcceptsAny(t, responses.Form(), anyRepaired(t), "") })
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.StaysAPrefix(t, responses.Form(), dialecttest.AnyConversation, "")
	})
	t.Run("of this form", func(t *testing.T) {
		dialecttest.StaysAPrefix(t, responses.Form(), func(r *rapid.T) []session.Message {
			msgs := anyRepaired(t)(r)
			return slices.DeleteFunc(msgs, asksApproval) // it is sent from when it is answered on
		}, "")
	})
}

func asksApproval(m session.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p session.Part) bool { return bytes.Contains(p.Extra, []byte("mcp_approval_request")) })
}

// FuzzSend: whatever decodes, once repaired, is accepted.
func FuzzSend(f *testing.F) {
	dialecttest.FuzzSend(f, responses.Form(), cases, func(msgs []session.Message) []session.Message {
		hi := session.Message{Kind: session.KindMessage, Role: session.User, InContext: true, Parts: []session.Part{session.TextPart("hi")}}
		return repaired(append([]session.Message{hi}, msgs...))
	})
}

func TestSendOfEveryCaseIsAccepted(t *testing.T) {
	for _, c := range wireCases() {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(responses.Decode(append(list(t, `[{"role":"user","content":"hi"}]`), list(t, c.items)...)))(t)
			accepted(t, wire.Request{Messages: repaired(dialecttest.Stored(t, decoded.Messages))})
		})
	}
}
