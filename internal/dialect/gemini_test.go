package dialect_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/samples"
)

// histories reads the sessions of a program: of each line, what pick gives of it, if anything.
func histories(t *testing.T, program string, pick func(line []byte) jsontext.Value) map[string][]jsontext.Value {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samples.Dir(t), program, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples of %s (%v)", program, err)
	}
	found := map[string][]jsontext.Value{}
	for _, f := range files {
		data := testkit.Must(os.ReadFile(f))(t)
		for line := range bytes.Lines(data) {
			if raw := pick(line); raw != nil {
				found[filepath.Base(f)] = append(found[filepath.Base(f)], raw)
			}
		}
	}
	return found
}

// What another program's session says at any of its moments is a context that Gemini takes.
func TestEveryPrefixOfOtherProgramsIsSentToGemini(t *testing.T) {
	anthropic := histories(t, "claude-code", func(line []byte) jsontext.Value {
		var l struct {
			Type    string
			Message jsontext.Value
		}
		if json.Unmarshal(line, &l) != nil || l.Type != "user" && l.Type != "assistant" {
			return nil
		}
		return l.Message
	})
	responses := histories(t, "codex", func(line []byte) jsontext.Value {
		var l struct {
			Type    string
			Payload jsontext.Value
		}
		if json.Unmarshal(line, &l) != nil || l.Type != "response_item" {
			return nil
		}
		return l.Payload
	})
	for form, files := range map[string]map[string][]jsontext.Value{
		dialect.Anthropic:       anthropic,
		dialect.OpenAIResponses: responses,
	} {
		for name, raw := range files {
			t.Run(form+" "+name, func(t *testing.T) {
				decoded, err := dialect.Decode(form, raw)
				if err != nil {
					t.Skipf("not the plain form of %s: %v", form, err)
				}
				everyPrefix(t, numbered(decoded.Messages))
			})
		}
	}
}

// numbered gives messages the names that a store would.
func numbered(msgs []session.Message) []session.Message {
	for i := range msgs {
		msgs[i].RowID = int64(i + 1)
		msgs[i].ID = session.MessageRef{Session: "20260211_001", Seq: int64(i + 1)}
	}
	return msgs
}

func everyPrefix(t *testing.T, msgs []session.Message) {
	t.Helper()
	for _, n := range dialecttest.Prefixes(len(msgs)) {
		var context []session.Message
		for _, item := range contextmgr.Repair(msgs[:n], nil, true).Items {
			context = append(context, item.Message)
		}
		if len(context) == 0 {
			continue
		}
		sent := testkit.Must(dialect.Send(dialect.Gemini,
			dialect.Request{System: "Be short.", Messages: context, Model: "gemini-3-pro-preview"}))(t)
		if err := dialecttest.ValidateGemini3(sent.Request); err != nil {
			t.Fatalf("of the first %d messages: %v\n%.3000s", n, err, sent.Request)
		}
	}
}

// A conversation that goes to Gemini and comes back says what it said.
func TestAConversationGoesToGeminiAndBack(t *testing.T) {
	const chat = `[{"role":"user","content":"see"},
		{"role":"assistant","content":"Looking.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}},{"id":"call_2","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"call_2","content":"two"},{"role":"tool","tool_call_id":"call_1","content":"one"},
		{"role":"assistant","content":"Done."},{"role":"user","content":[{"type":"text","text":"and this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}]`
	first := testkit.Must(dialect.Decode(dialect.OpenAIChat, list(t, chat)))(t)
	there := testkit.Must(dialect.Export(dialect.Gemini, first.Messages))(t)
	second := testkit.Must(dialect.Decode("", there))(t)
	back := testkit.Must(dialect.Send(dialect.OpenAIChat, dialect.Request{Messages: second.Messages}))(t)
	// The ids are as Gemini takes them, the results in the order of the calls.
	one, two := `{"role":"tool","tool_call_id":"call_1","content":"one"}`,
		`{"role":"tool","tool_call_id":"call_2","content":"two"}`
	want := strings.Replace(`{"messages":`+chat+`}`, two+","+one, one+","+two, 1)
	want = strings.NewReplacer("call_1", "call1", "call_2", "call2").Replace(want)
	if !dialecttest.EqualJSON([]byte(want), back.Request) {
		t.Errorf("came back as %s\nwant %s", back.Request, want)
	}
	if err := dialecttest.ValidateOpenAIChat(back.Request); err != nil {
		t.Error(err)
	}
}

// A reply whose calls have no ids, and responses that are posted after it, find one another.
func TestResponsesWithoutIDsFindTheirCallsAppendedBefore(t *testing.T) {
	var msgs []session.Message
	for _, appended := range []string{
		`[{"role":"user","parts":[{"text":"q"}]}]`,
		`[{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f","args":{"n":2}}}]},"finishReason":"STOP"}]}]`,
		`[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"g","response":{"output":"G"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}]`,
		`[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":3}}}]}]`,
		`[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"3"}}}]}]`,
	} {
		decoded := testkit.Must(dialect.Decode("", list(t, appended)))(t)
		msgs = append(msgs, decoded.Messages...)
	}
	repaired := contextmgr.Repair(numbered(msgs), nil, false)
	if len(repaired.Pending)+len(repaired.Synthetic)+len(repaired.Adjustments)+len(repaired.Losses) > 0 ||
		len(repaired.Items) != len(msgs) {
		t.Fatalf("repair found something to do: %+v", repaired)
	}
	for _, form := range []string{dialect.Gemini, dialect.OpenAIChat} {
		sent := testkit.Must(dialect.Send(form, dialect.Request{Messages: msgs}))(t)
		validate := map[string]func([]byte) error{
			dialect.Gemini:     dialecttest.ValidateGemini,
			dialect.OpenAIChat: dialecttest.ValidateOpenAIChat,
		}[form]
		if err := validate(sent.Request); err != nil {
			t.Errorf("%s: %v\n%s", form, err, sent.Request)
		}
	}
}

// What Gemini gave is sent elsewhere: its ids are made up and come again, its provider runs
// code, its signatures are nobody else's.
func TestWhatGeminiGaveIsSentElsewhere(t *testing.T) {
	decoded, err := dialect.Decode("", list(t, `[{"parts":[{"text":"q"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}},{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/v"}}]},
		{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Running.","thoughtSignature":"QUJD"},{"executableCode":{"language":"PYTHON","code":"6*7"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42"}},{"functionCall":{"name":"mcp.files:read","args":{"p":"a"}},"thoughtSignature":"QUJD"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"mcp.files:read","response":{"output":"1"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}},{"text":"and?"}]},
		{"role":"model","parts":[{"functionCall":{"name":"mcp.files:read","args":{"p":"b"}}},{"functionCall":{"name":"mcp.files:read","args":{"p":"c"}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"mcp.files:read","response":{"error":"no"}}},{"functionResponse":{"name":"mcp.files:read","response":{"a":[1.0]}}}]},
		{"role":"model","parts":[{"toolCall":{"id":"q","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"toolResponse":{"id":"q","toolType":"GOOGLE_SEARCH_WEB","response":{}}},{"text":"Done."},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}]`))
	testkit.Check(t, err)
	var context []session.Message
	for _, item := range contextmgr.Repair(numbered(dialecttest.Stored(t, decoded.Messages)), nil, false).Items {
		context = append(context, item.Message)
	}
	for form, validate := range map[string]func([]byte) error{
		dialect.Gemini: dialecttest.ValidateGemini, dialect.Anthropic: dialecttest.ValidateAnthropic,
		dialect.OpenAIResponses: dialecttest.ValidateResponses,
	} {
		sent, err := dialect.Send(form, dialect.Request{Messages: context})
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if err := validate(sent.Request); err != nil {
			t.Errorf("%s: %v\n%s", form, err, sent.Request)
		}
		for _, said := range []string{"Running.", "and?", "Done."} {
			if !strings.Contains(string(sent.Request), said) {
				t.Errorf("%s: %q is missing in %s", form, said, sent.Request)
			}
		}
	}
}

// A call of a tool without parameters has no arguments. Servers that parse them refuse an empty string.
func TestCallWithoutArgumentsIsSentAsAnEmptyObject(t *testing.T) {
	for from, call := range map[string]string{
		dialect.Gemini:     `{"role":"model","parts":[{"functionCall":{"name":"now"}}]}`,
		dialect.OpenAIChat: `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"now","arguments":""}}]}`,
	} {
		decoded := testkit.Must(dialect.Decode(from, list(t, "["+call+"]")))(t)
		for _, to := range []string{dialect.OpenAIChat, dialect.OpenAIResponses} {
			sent := testkit.Must(dialect.Send(to, dialect.Request{Messages: dialecttest.Stored(t, decoded.Messages)}))(t)
			if !strings.Contains(string(sent.Request), `"arguments":"{}"`) {
				t.Errorf("%s to %s: %s", from, to, sent.Request)
			}
		}
	}
}

// Gemini's responses need no ids. Each comes in a request of its own, and finds its call by
// its tool's name and its place, whatever form the context is then sent in.
func TestResponsesWithoutIDsInLaterAppends(t *testing.T) {
	var log []session.Message
	for _, request := range []string{
		`[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"g","args":{}}},{"functionCall":{"id":"own","name":"f","args":{"n":2}}}]}]`,
		`[{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"of g"}}}]}]`,
		`[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"of f 1"}}}]}]`,
		`[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"of f 2"}}}]}]`,
	} {
		log = append(log, decoded(t, dialect.Gemini, request).Messages...)
	}
	repaired := contextmgr.Repair(numbered(log), nil, false)
	if len(repaired.Pending)+len(repaired.Losses)+len(repaired.Synthetic) > 0 {
		t.Errorf("pending %v, losses %v, made up %v", repaired.Pending, repaired.Losses, repaired.Synthetic)
	}
	var context []session.Message
	for _, item := range repaired.Items {
		context = append(context, item.Message)
	}
	for _, form := range dialecttest.Forms() {
		sent := testkit.Must(dialect.Send(form, dialect.Request{Messages: context}))(t)
		if err := dialecttest.Validate(form, sent.Request); err != nil {
			t.Errorf("%s: %v\n%s", form, err, sent.Request)
		}
		at := -1
		for _, text := range []string{"of f 1", "of g", "of f 2"} { // the order of the calls
			next := strings.Index(string(sent.Request), text)
			if next < at {
				t.Errorf("%s: %q stands at %d: %s", form, text, next, sent.Request)
			}
			at = next
		}
	}
}

// The output of a local shell may name its call by the id of the call's item, in a later append.
func TestLocalShellOutputsInLaterAppends(t *testing.T) {
	var log []session.Message
	for _, request := range []string{
		`[{"type":"message","role":"user","content":"x"},{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}]`,
		`[{"type":"local_shell_call_output","id":"lsh_1","output":"a.go"}]`,
	} {
		log = append(log, decoded(t, dialect.OpenAIResponses, request).Messages...)
	}
	repaired := contextmgr.Repair(numbered(log), nil, false)
	if len(repaired.Pending)+len(repaired.Losses) > 0 || len(repaired.Items) != 3 ||
		repaired.Items[2].Message.Parts[0].CallID != "call_1" {
		t.Errorf("%+v", repaired)
	}
	exported, err := dialect.Export(dialect.OpenAIResponses, log[2:])
	if err != nil || !strings.Contains(string(exported[0]), `"id":"lsh_1"`) ||
		strings.Contains(string(exported[0]), "made_") {
		t.Errorf("%s: %v", exported, err)
	}
}
