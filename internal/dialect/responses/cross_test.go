package responses_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/samples"
)

// said is what must survive every change of form: texts, calls and results, in order.
type said struct{ Role, Text, Call, Arguments, Result string }

func whatWasSaid(msgs []session.Message) []said {
	var all []said
	for i := range msgs {
		m := &msgs[i]
		for j := range m.Parts {
			p := &m.Parts[j]
			switch {
			case p.Kind == session.PartText && p.Content() != "":
				all = append(all, said{Role: string(m.Role), Text: p.Content()})
			case p.Kind == session.PartToolCall:
				all = append(all, said{Call: p.CallID + " " + p.ToolName, Arguments: p.Arguments})
			case p.Kind == session.PartToolResult:
				all = append(all, said{Call: p.CallID, Result: p.Content()})
			}
		}
	}
	return all
}

// again decodes what one form exports of another's messages.
func again(t *rapid.T, form wire.Form, msgs []session.Message) []session.Message {
	raw := testkit.Must(form.Export(msgs))(t)
	decoded, err := form.Decode(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, dialecttest.Array(raw))
	}
	return decoded.Messages
}

func TestChatCrossesToResponsesAndBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := chatConversation(r)
		decoded := testkit.Must(openaichat.Decode(raw))(r)
		crossed := again(r, responses.Form(), decoded.Messages)
		if diff := cmp.Diff(whatWasSaid(decoded.Messages), whatWasSaid(crossed)); diff != "" {
			r.Fatalf("there: %s", diff)
		}
		back := again(r, openaichat.Form(), crossed)
		if diff := cmp.Diff(whatWasSaid(decoded.Messages), whatWasSaid(back)); diff != "" {
			r.Fatalf("back: %s", diff)
		}
		dialecttest.Accepted(r, responses.Form(), wire.Request{Messages: crossed})
		dialecttest.Accepted(r, responses.Form(), wire.Request{Messages: back})
	})
}

// chatConversation generates a conversation on openai.chat's wire whose calls have results.
func chatConversation(r *rapid.T) []jsontext.Value {
	var raw []jsontext.Value
	add := func(text string) { raw = append(raw, jsontext.Value(text)) }
	add(`{"role":"system","content":"Be short."}`)
	word := rapid.SampledFrom([]string{
		`"hi"`, `"a\nb"`, `"你好 <&>"`,
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`,
	})
	for turn := range rapid.IntRange(1, 4).Draw(r, "turns") {
		add(`{"role":"user","content":` + word.Draw(r, "user") + `}`)
		ids := []string{"a", "b"}[:rapid.IntRange(0, 2).Draw(r, "calls")]
		if len(ids) > 0 {
			var list []byte
			for _, id := range ids {
				list = append(list, `,{"id":"call_`+id+string(rune('0'+turn))+`","type":"function","function":{"name":"f","arguments":"{\"x\": 1.0}"}}`...)
			}
			add(`{"role":"assistant","content":` + rapid.OneOf(word, rapid.Just("null")).Draw(r, "reply") + `,"tool_calls":[` +
				string(list[1:]) + `]}`)
			for _, id := range ids {
				add(`{"role":"tool","tool_call_id":"call_` + id + string(rune('0'+turn)) + `","content":` + word.Draw(r, "result") +
					`}`)
			}
		}
		add(`{"role":"assistant","content":` + word.Draw(r, "reply") + `}`)
	}
	return raw
}

// Whatever came in this form goes on in another.
func TestEveryCaseGoesOnElsewhere(t *testing.T) {
	for _, c := range wireCases() {
		t.Run(c.Name, func(t *testing.T) {
			decoded := testkit.Must(responses.Decode(append(dialecttest.List(t, `[{"role":"user","content":"hi"}]`),
				dialecttest.List(t, c.Entries)...)))(t)
			in := wire.Request{Messages: repaired(dialecttest.Stored(t, decoded.Messages))}
			for _, other := range []struct {
				form     wire.Form
				validate func([]byte) error
			}{{anthropic.Form(), dialecttest.ValidateAnthropic}, {gemini.Form(), dialecttest.ValidateGemini}} {
				sent := testkit.Must(other.form.Send(in))(t)
				if err := other.validate(sent.Request); err != nil {
					t.Errorf("%s: %v", other.form.Name, err)
				}
			}
		})
	}
}

// What Claude Code wrote, each line a message in Anthropic's form, goes on in Responses.
func TestClaudeCodesMessagesAreAcceptedByResponses(t *testing.T) {
	files := testkit.Must(filepath.Glob(filepath.Join(samples.Dir(t), "claude-code", "*.jsonl")))(t)
	checked := 0
	for _, file := range files {
		msgs := claudeMessages(t, file)
		for n := 1; n <= len(msgs); n += 1 + len(msgs)/20 {
			if whole := repaired(dialecttest.Stored(t, msgs[:n])); len(whole) > 0 {
				sent := accepted(t, wire.Request{Messages: whole})
				if len(whatWasSaid(whole)) == 0 && len(sent.Losses) == 0 {
					t.Errorf("%s: %d messages say nothing and lose nothing", file, n)
				}
				checked++
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d contexts were checked", checked)
	}
}

func claudeMessages(t *testing.T, file string) []session.Message {
	t.Helper()
	raw := testkit.Must(os.ReadFile(file))(t)
	var msgs []session.Message
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var line struct {
			Type    string
			Message jsontext.Value
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Type != "user" && line.Type != "assistant" {
			continue
		}
		// fixtures hold values that no provider gives
		if decoded, err := anthropic.Decode([]jsontext.Value{line.Message}); err == nil {
			msgs = append(msgs, decoded.Messages...)
		}
	}
	return msgs
}
