package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// A conversation that began with OpenAI goes on with Anthropic and comes back: its texts, calls,
// results and pictures are what they were.
func TestAConversationCrossesToAnthropicAndBack(t *testing.T) {
	for _, c := range []struct{ name, in, back string }{
		{"texts", `[{"role":"system","content":"Be short."},{"role":"user","content":"hi <&> 你好"},{"role":"assistant","content":"Hello!"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`, ""},
		{"calls", `[{"role":"user","content":"x"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"n\": 1.0}"}},{"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_2","content":"2"},{"role":"tool","tool_call_id":"call_1","content":"1"},{"role":"user","content":"y"}]`, ""},
		{"pictures", `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}]`, ""},
		{
			"a picture of a result", `[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"1"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}]`, "",
		},
		{
			"arguments that are no object stand in one", `[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\""}}]},{"role":"tool","tool_call_id":"a","content":"1"}]`,
			`[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"input\":\"{\\\"n\\\"\"}"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.back == "" {
				c.back = c.in
			}
			sent := sendChat(t, there(t, dialect.OpenAIChat, dialect.Anthropic, c.in))
			direct := sendChat(t, decoded(t, dialect.OpenAIChat, c.back))
			if !dialecttest.EqualJSON(direct, sent) {
				t.Errorf("by way of anthropic\n%s\ndirectly\n%s", sent, direct)
			}
		})
	}
}

// there decodes messages of one form, exports them in another and decodes that.
func there(t *testing.T, from, to, in string) dialect.Decoded {
	t.Helper()
	first := decoded(t, from, in)
	exported := testkit.Must(dialect.Export(to, dialecttest.Stored(t, first.Messages)))(t)
	second, err := dialect.Decode(to, exported)
	if err != nil {
		t.Fatalf("%v\n%s", err, dialecttest.Array(exported))
	}
	return second
}

func decoded(t *testing.T, form, in string) dialect.Decoded {
	t.Helper()
	return testkit.Must(dialect.Decode(form, list(t, in)))(t)
}

func sendChat(t *testing.T, d dialect.Decoded) []byte {
	t.Helper()
	sent := testkit.Must(dialect.Send(dialect.OpenAIChat, dialect.Request{Messages: dialecttest.Stored(t, d.Messages)}))(t)
	if err := dialecttest.ValidateOpenAIChat(sent.Request); err != nil {
		t.Errorf("%v\n%s", err, sent.Request)
	}
	return sent.Request
}

// What Anthropic's form says in any number of turns, OpenAI's chat says with the same texts,
// calls and results, and each provider accepts it.
func TestAnyTurnsCrossFromAnthropic(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b <&>", "你好", "x\\ny"})
	rapid.Check(t, func(r *rapid.T) {
		anthropic, chat := `[`, `[`
		for turn := range rapid.IntRange(1, 3).Draw(r, "turns") {
			if turn > 0 {
				anthropic, chat = anthropic+",", chat+","
			}
			says, thinks, looks := word.Draw(r, "says"), word.Draw(r, "thinks"), word.Draw(r, "looks")
			anthropic += fmt.Sprintf(`{"role":"user","content":"%s"},{"role":"assistant","content":[{"type":"thinking","thinking":"%s","signature":"s"},{"type":"text","text":"%s"}`, says, thinks, looks)
			chat += fmt.Sprintf(`{"role":"user","content":"%s"},{"role":"assistant","content":"%s"`, says, looks)
			uses, results, calls, tools := "", "", "", ""
			for n := range rapid.IntRange(0, 2).Draw(r, "calls") {
				id, result := fmt.Sprintf("toolu_%d_%d", turn, n), word.Draw(r, "result")
				uses += fmt.Sprintf(`,{"type":"tool_use","id":"%s","name":"f","input":{"n":%d}}`, id, n)
				results += fmt.Sprintf(`,{"type":"tool_result","tool_use_id":"%s","content":[{"type":"text","text":"%s"}]}`, id, result)
				calls += fmt.Sprintf(`,{"id":"%s","type":"function","function":{"name":"f","arguments":"{\"n\":%d}"}}`, id, n)
				tools += fmt.Sprintf(`,{"role":"tool","tool_call_id":"%s","content":"%s"}`, id, result)
			}
			anthropic += uses + `]}`
			if calls != "" {
				anthropic += `,{"role":"user","content":[` + results[1:] + `]}`
				chat += `,"tool_calls":[` + calls[1:] + `]}` + tools
				continue
			}
			chat += `}`
		}
		want := sendChat(t, decoded(t, dialect.OpenAIChat, chat+"]"))
		d := decoded(t, dialect.Anthropic, anthropic+"]")
		if got := sendChat(t, d); !dialecttest.EqualJSON(want, got) {
			r.Fatalf("got  %s\nwant %s", got, want)
		}
		sent := testkit.Must(dialect.Send(dialect.Anthropic, dialect.Request{Messages: d.Messages}))(r)
		if err := dialecttest.ValidateAnthropic(sent.Request); err != nil {
			r.Fatalf("%v\n%s", err, sent.Request)
		}
	})
}

// What sessions of Codex say at any of their moments is a context that Anthropic takes, and
// so is what Gemini said.
func TestOtherFormsAreSentToAnthropic(t *testing.T) {
	codex := histories(t, "codex", func(line []byte) jsontext.Value {
		var l struct {
			Type    string
			Payload jsontext.Value
		}
		if json.Unmarshal(line, &l) != nil || l.Type != "response_item" {
			return nil
		}
		return l.Payload
	})
	for name, raw := range codex {
		t.Run(name, func(t *testing.T) {
			d, err := dialect.Decode(dialect.OpenAIResponses, raw)
			if err != nil {
				t.Skipf("not the plain form of %s: %v", dialect.OpenAIResponses, err)
			}
			prefixesToAnthropic(t, numbered(d.Messages))
		})
	}
	t.Run("gemini", func(t *testing.T) {
		prefixesToAnthropic(t, numbered(decoded(t, dialect.Gemini, `[{"role":"user","parts":[{"text":"x"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]},
			{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Looking.","thoughtSignature":"c2ln"},{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"f","args":{"n":2}}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":1}}},{"functionResponse":{"name":"f","response":{"r":2}}}]},
			{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"print(3)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"3\n"}},{"text":"3"}]},
			{"role":"user","parts":[{"text":"y"}]}]`).Messages))
	})
}

func prefixesToAnthropic(t *testing.T, msgs []session.Message) {
	t.Helper()
	for _, n := range dialecttest.Prefixes(len(msgs)) {
		in := dialect.Request{System: "Be short.", Model: "claude-opus-4-8"}
		for _, item := range contextmgr.Repair(msgs[:n], nil, true).Items {
			in.Messages = append(in.Messages, item.Message)
		}
		sent := testkit.Must(dialect.Send(dialect.Anthropic, in))(t)
		if err := dialecttest.ValidateFor(dialect.Anthropic, in.Model, sent.Request); err != nil {
			t.Fatalf("of the first %d messages: %v\n%.3000s", n, err, sent.Request)
		}
		for _, loss := range sent.Losses {
			if strings.Contains(loss, "answers no call") || strings.Contains(loss, "has no result behind it") {
				t.Errorf("of the first %d messages: %s", n, loss)
			}
		}
	}
}
