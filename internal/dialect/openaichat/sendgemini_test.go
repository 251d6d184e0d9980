package openaichat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

// Google's API in OpenAI's form takes a call's thought signature back where it gave it; any
// other API would refuse the field.
func TestAGeminiGetsItsThoughtSignaturesBack(t *testing.T) {
	const (
		skips = "20260211_001.2: calls without a thought signature are sent with the one that skips its check"
		chat  = `{"rest":{"extra_content":{"google":{"thought_signature":"QUJD"}}}}`
	)
	for _, c := range []struct {
		name, model string
		first       string   // the extra of the first call; the second has none
		want        []string // the signatures that are sent
		losses      []string
	}{
		{"as it came", "gemini-3-pro-preview", chat, []string{"QUJD"}, nil},
		{"by way of OpenRouter's name", "google/gemini-2.5-pro", chat, []string{"QUJD"}, nil},
		{"of Gemini's own form", "gemini-2.5-pro", `{"thoughtSignature":"QUJD"}`, []string{"QUJD"}, nil},
		{"of pi", "gemini-2.5-pro", `{"thoughtSignature":"QUJD"}`, []string{"QUJD"}, nil},
		{"none, to a model that asks for one", "gemini-flash-latest", "", []string{wire.NoSignature}, []string{skips}},
		{"none, to a model that does not ask", "gemini-2.5-pro", "", nil, nil},
		{"of another maker", "gemini-2.5-pro", `{"thoughtSignature":"msg_1!"}`, nil, []string{"20260211_001.2: a thought signature that is no base64"}},
		{"to another model", "gpt-5", chat, nil, nil},
		{"to a model that is not named", "", chat, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply := message(
				session.Assistant,
				session.Part{Kind: session.PartToolCall, CallID: "a", ToolName: "f", Arguments: "{}", Extra: session.JSON(c.first)},
				session.Part{Kind: session.PartToolCall, CallID: "b", ToolName: "f", Arguments: "{}"},
			)
			results := message(session.Tool, session.Part{Kind: session.PartToolResult, CallID: "a"}, session.Part{Kind: session.PartToolResult, CallID: "b"})
			in := wire.Request{Messages: ref([]session.Message{message(session.User, session.TextPart("hi")), reply, results}), Model: c.model}
			sent := dialecttest.Accepted(t, openaichat.Form(), in)
			var got []string
			for _, piece := range strings.Split(string(sent.Request), `"extra_content":{"google":{"thought_signature":"`)[1:] {
				signature, _, _ := strings.Cut(piece, `"`)
				got = append(got, signature)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n%s", d, sent.Request)
			}
			if d := cmp.Diff(c.losses, sent.Losses); d != "" {
				t.Errorf("losses: %s", d)
			}
		})
	}
}
