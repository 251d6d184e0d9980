package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

func list(t *testing.T, messages string) []jsontext.Value {
	t.Helper()
	var raw []jsontext.Value
	testkit.Check(t, json.Unmarshal([]byte(messages), &raw))
	return raw
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name, messages string
		want           string // a dialect, or what the error says
		code           session.Code
	}{
		{"nothing", `[]`, dialect.Native, ""},
		{"what all forms say alike", `[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]`, dialect.Native, ""},
		{"parts with kinds", `[{"role":"user","parts":[{"kind":"text","text":"x"}]}]`, dialect.Native, ""},
		{"an origin", `[{"role":"user","content":"hi"},{"role":"user","content":"tick","origin":"program"}]`, dialect.Native, ""},
		{"a typo stays native, which refuses it", `[{"role":"user","content":"hi","orign":"program"}]`, dialect.Native, ""},
		{"calls", `[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[]}]`, dialect.OpenAIChat, ""},
		{"a null content", `[{"role":"assistant","content":null}]`, dialect.OpenAIChat, ""},
		{"an answer of a tool", `[{"role":"tool","tool_call_id":"a","content":"x"}]`, dialect.OpenAIChat, ""},
		{"a developer", `[{"role":"developer","content":"x"}]`, dialect.OpenAIChat, ""},
		{"a choice", `[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]`, dialect.OpenAIChat, ""},
		{"texts in an array", `[{"role":"user","content":[{"type":"text","text":"x"}]}]`, dialect.OpenAIChat, ""},
		{"a picture by URL", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`, dialect.OpenAIChat, ""},

		{"Anthropic's call", `[{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{}}]}]`, dialect.Anthropic, ""},
		{"Anthropic's result", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`, dialect.Anthropic, ""},
		{"Anthropic's search", `[{"role":"assistant","content":[{"type":"server_tool_use"},{"type":"web_search_tool_result"}]}]`, dialect.Anthropic, ""},
		{"Anthropic's thinking", `[{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":""}]}]`, dialect.Anthropic, ""},
		{"Anthropic's picture", `[{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]}]`, dialect.Anthropic, ""},
		{"Anthropic's reply", `[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}]`, dialect.Anthropic, ""},
		{"Gemini's parts", `[{"role":"user","parts":[{"text":"x"}]}]`, dialect.Gemini, ""},
		{"Gemini's model", `[{"role":"model","parts":[{"functionCall":{"name":"f"}}]}]`, dialect.Gemini, ""},
		{"Gemini's parts in Python's spelling", `[{"parts":[{"function_response":{"name":"f"}}]}]`, dialect.Gemini, ""},
		{"Gemini's reply", `[{"role":"user","content":"hi"},{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{}}]`, dialect.Gemini, ""},
		{"Gemini's candidate", `[{"content":{"parts":[{"text":"x"}],"role":"model"},"finishReason":"STOP"}]`, dialect.Gemini, ""},
		{"Gemini's blocked candidate", `[{"finishReason":"SAFETY","index":0}]`, dialect.Gemini, ""},
		{"parts of nothing stay native", `[{"role":"user","parts":[]}]`, dialect.Native, ""},
		{"Gemini's parts and native ones", `[{"role":"user","parts":[{"text":"x"}]},{"role":"user","parts":[{"kind":"text","text":"x"}]}]`, "messages[0].parts[0] looks like gemini, messages[1].parts[0] like native: name the dialect", session.Invalid},
		{"Responses' call", `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]`, dialect.OpenAIResponses, ""},
		{"Responses' result", `[{"type":"function_call_output","call_id":"a","output":"7"}]`, dialect.OpenAIResponses, ""},
		{"Responses' message", `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]`, dialect.OpenAIResponses, ""},
		{"Responses' input", `[{"role":"user","content":[{"type":"input_text","text":"x"}]}]`, dialect.OpenAIResponses, ""},
		{"Responses' reasoning", `[{"type":"reasoning","summary":[],"content":null,"encrypted_content":"x"}]`, dialect.OpenAIResponses, ""},
		{"Responses' message of a string", `[{"type":"message","role":"user","content":"x"}]`, dialect.OpenAIResponses, ""},
		{"Responses' approval", `[{"type":"mcp_approval_response","approval_request_id":"a","approve":true}]`, dialect.OpenAIResponses, ""},
		{"a response", `[{"role":"user","content":"hi"},{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}]`, dialect.OpenAIResponses, ""},
		{"a developer of Responses", `[{"role":"developer","content":"x"},{"role":"user","content":[{"type":"input_text","text":"x"}]},{"role":"developer","content":"y"},{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}],"status":"completed"}]`, dialect.OpenAIResponses, ""},
		{"both of OpenAI's forms", `[{"role":"developer","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"},{"type":"function_call_output","call_id":"a","output":"7"}]`, "messages[1].tool_call_id looks like openai.chat, messages[2] like openai.responses: name the dialect", session.Invalid},
		{"two at once", `[{"role":"assistant","content":null},{"role":"user","content":[{"type":"tool_result"}]}]`, "messages[0].content looks like openai.chat, messages[1].content[0] like anthropic: name the dialect", session.Invalid},
		{"native and a provider's at once", `[{"role":"user","content":"x","origin":"program"},{"role":"tool","tool_call_id":"a","content":"x"}]`, "name the dialect", session.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := dialect.Detect(list(t, c.messages))
			if session.CodeOf(err) != c.code {
				t.Fatalf("got %q and %v, want the code %q", got, err, c.code)
			}
			if err != nil {
				got = err.Error()
			}
			if c.code == "" && got != c.want || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAWrongBodyIsNotDetectedButRefused(t *testing.T) {
	for _, body := range []string{"{", "\"\xff\"", ""} {
		if _, err := dialect.Decode("", []jsontext.Value{jsontext.Value(body)}); session.CodeOf(err) != session.Malformed {
			t.Errorf("%q: %v", body, err)
		}
	}
	for _, body := range []string{"7", `"x"`, "null", "[]"} {
		if _, err := dialect.Decode("", []jsontext.Value{jsontext.Value(body)}); session.CodeOf(err) != session.Invalid {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestAnUnknownDialectIsToldWhichAreKnown(t *testing.T) {
	for name, says := range map[string]string{"openai": "unknown dialect", "Gemini": "unknown dialect"} {
		_, decode := dialect.Decode(name, nil)
		_, export := dialect.Export(name, nil)
		_, send := dialect.Send(name, dialect.Request{})
		for _, err := range []error{decode, export, send} {
			if session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "native, openai.chat") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := dialect.Send(dialect.Native, dialect.Request{}); session.CodeOf(err) != session.Invalid ||
		!strings.Contains(err.Error(), "openai.chat") {
		t.Errorf("native is sent to nobody: %v", err)
	}
	if dialect.Sendable(dialect.Native) || !dialect.Sendable(dialect.OpenAIChat) || dialect.Sendable("openai") {
		t.Error("Sendable must say what Send does")
	}
}

// A message goes from one form into the other and is still understood.
func TestAMessageCrossesForms(t *testing.T) {
	in := `[{"role":"user","content":"see"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"7"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}]`
	chat := testkit.Must(dialect.Decode("", list(t, in)))(t)
	for i := range chat.Messages {
		chat.Messages[i].ID = session.MessageRef{Session: "20260211_001", Seq: int64(i + 1)}
	}
	native := testkit.Must(dialect.Export(dialect.Native, dialecttest.Stored(t, chat.Messages)))(t)
	back := testkit.Must(dialect.Decode("", native))(t)
	sent := testkit.Must(dialect.Send(dialect.OpenAIChat, dialect.Request{Messages: back.Messages}))(t)
	first := testkit.Must(dialect.Send(dialect.OpenAIChat, dialect.Request{Messages: chat.Messages}))(t)
	if !dialecttest.EqualJSON(sent.Request, first.Request) {
		t.Errorf("by way of native\n%s\ndirectly\n%s", sent.Request, first.Request)
	}
	if err := dialecttest.ValidateOpenAIChat(sent.Request); err != nil {
		t.Error(err)
	}
}
