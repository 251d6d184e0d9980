package anthropic_test

import (
	"testing"

	"pgregory.net/rapid"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

// anyContext generates conversations of this form and of others, mixed.
func anyContext(t *testing.T) func(*rapid.T) []session.Message {
	return func(r *rapid.T) []session.Message {
		if rapid.Bool().Draw(r, "foreign") {
			return dialecttest.AnyConversation(r)
		}
		raw := rapid.SliceOfN(rapid.Custom(anyMessage), 1, 6).Draw(r, "messages")
		decoded, err := anthropic.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", dialecttest.Array(raw), err)
		}
		return append(dialecttest.Stored(t, decoded.Messages), dialecttest.AnyConversation(r)...)
	}
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	dialecttest.AcceptsAny(t, anthropic.Form(), anyContext(t), "", "claude-opus-4-8", "kimi-k2")
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	dialecttest.StaysAPrefix(t, anthropic.Form(), dialecttest.AnyConversation, "", "claude-opus-4-8")
}

// Whatever decodes can be sent, repaired or not.
func FuzzSend(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_","name":"0"}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"0"}]},{"role":"user"},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result"}}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"text","text":"0","citations":[{"type":"page_location"}]}]}]`))
	dialecttest.FuzzSend(f, anthropic.Form(), cases, func(msgs []session.Message) []session.Message { return msgs })
}
