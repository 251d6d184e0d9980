package responses_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/session"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	for _, c := range []struct {
		name, item string
		code       session.Code
		path       string
	}{
		{"no JSON", `{"role":`, session.Malformed, "messages[1]"},
		{"bytes that are not UTF-8", "{\"role\":\"user\",\"content\":\"\xff\"}", session.Malformed, "messages[1]"},
		{"nested beyond reading", `{"role":"user","x":` + nested(20_000) + `}`, session.TooLarge, "messages[1]"},
		{"no object", `"hi"`, session.Invalid, "messages[1]"},
		{"a null", `null`, session.Invalid, "messages[1]"},
		{"neither type nor role", `{"content":"x"}`, session.Invalid, "messages[1].role"},
		{"a type that is a number", `{"type":7}`, session.Invalid, "messages[1].type"},
		{"a type that is empty", `{"type":"","role":"user"}`, session.Invalid, "messages[1].type"},
		{"role is no string", `{"role":1}`, session.Invalid, "messages[1].role"},
		{"role of another form", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].role"},
		{"a field twice", `{"role":"user","content":"a","content":"b"}`, session.Invalid, "messages[1].content"},
		{"content is a number", `{"role":"user","content":7}`, session.Invalid, "messages[1].content"},
		{"content is an object", `{"role":"user","content":{}}`, session.Invalid, "messages[1].content"},
		{"element is a string", `{"role":"user","content":["x"]}`, session.Invalid, "messages[1].content[0]"},
		{"element without type", `{"role":"user","content":[{"type":"input_text","text":"x"},{"text":"x"}]}`, session.Invalid, "messages[1].content[1].type"},
		{"element with a null type", `{"role":"user","content":[{"type":null}]}`, session.Invalid, "messages[1].content[0].type"},
		{"text is missing", `{"role":"user","content":[{"type":"input_text"}]}`, session.Invalid, "messages[1].content[0].text"},
		{"text is null", `{"role":"user","content":[{"type":"output_text","text":null}]}`, session.Invalid, "messages[1].content[0].text"},
		{"refusal is a boolean", `{"role":"assistant","content":[{"type":"refusal","refusal":true}]}`, session.Invalid, "messages[1].content[0].refusal"},
		{"deep field of an element", `{"role":"user","content":[{"type":"input_text","text":"x","deep":` + nested(1000) + `}]}`, session.TooLarge, "messages[1].content[0].deep"},
		{"summary of numbers", `{"type":"reasoning","summary":[7]}`, session.Invalid, "messages[1].summary[0]"},
		{"call without id", `{"type":"function_call","name":"f","arguments":"{}"}`, session.Invalid, "messages[1].call_id"},
		{"call of a null", `{"type":"function_call","call_id":null,"name":"f","arguments":"{}"}`, session.Invalid, "messages[1].call_id"},
		{"call without name", `{"type":"function_call","call_id":"a","arguments":"{}"}`, session.Invalid, "messages[1].name"},
		{"arguments are a number", `{"type":"function_call","call_id":"a","name":"f","arguments":7}`, session.Invalid, "messages[1].arguments"},
		{"custom input is a boolean", `{"type":"custom_tool_call","call_id":"a","name":"f","input":true}`, session.Invalid, "messages[1].input"},
		{"MCP call without name", `{"type":"mcp_call","id":"a"}`, session.Invalid, "messages[1].name"},
		{"result without its call", `{"type":"function_call_output","output":"x"}`, session.Invalid, "messages[1].call_id"},
		{"result of a number", `{"type":"function_call_output","call_id":7,"output":"x"}`, session.Invalid, "messages[1].call_id"},
		{"result of strings", `{"type":"function_call_output","call_id":"a","output":["x"]}`, session.Invalid, "messages[1].output[0]"},
		{"screenshot without type", `{"type":"computer_call_output","call_id":"a","output":{"image_url":"x"}}`, session.Invalid, "messages[1].output.type"},
		{"output of a response is of strings", `{"object":"response","output":["x"]}`, session.Invalid, "messages[1].output[0]"},
		{"item of a response is wrong", `{"object":"response","output":[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":7}]}]}`, session.Invalid, "messages[1].output[1].content[0].text"},
		{"too many parts", `{"role":"user","content":[` + strings.Repeat(`{"type":"input_text","text":"x"},`, 1024) + `{"type":"input_text","text":"x"}]}`, session.Invalid, "messages[1].content"},
		{"too many parts together", `{"type":"reasoning","summary":[` + strings.Repeat(`{"type":"summary_text","text":"x"},`, 600) + `{"type":"summary_text","text":"x"}],"content":[` + strings.Repeat(`{"type":"reasoning_text","text":"x"},`, 600) + `{"type":"reasoning_text","text":"x"}]}`, session.Invalid, "messages[1]"},
		{"large field without a name", `{"role":"user","content":"x","":"` + strings.Repeat("x", 70_000) + `"}`, session.TooLarge, "messages[1]."},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := responses.Decode([]json.RawMessage{json.RawMessage(`{"role":"user","content":"fine"}`), json.RawMessage(c.item)})
			var known *session.Error
			if !errors.As(err, &known) {
				t.Fatalf("got %+v and error %v", decoded, err)
			}
			if known.Code != c.code || len(known.Fields) != 1 || known.Fields[0].Path != c.path {
				t.Errorf("got %s at %+v: %s; want %s at %s", known.Code, known.Fields, known, c.code, c.path)
			}
			if !strings.HasPrefix(known.Message, c.path) || len(known.Message) > 300 {
				t.Errorf("the message must begin with the path and be short: %.400s", known.Message)
			}
		})
	}
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	roundTrip(t, []json.RawMessage{json.RawMessage(`{"role":"user","content":[` + strings.Repeat(`{"type":"input_text","text":"x"},`, 1023) + `{"type":"input_text","text":"x"}]}`)})
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	decoded, err := responses.Decode(list(t, `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"input_video"}]},{"role":"user","content":"fine"},{"type":"item_reference","id":"a"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(decoded.Warnings) != 3 || !strings.HasPrefix(decoded.Warnings[0], "messages[0].content ") || !strings.HasPrefix(decoded.Warnings[1], "messages[1].content[0] ") || !strings.HasPrefix(decoded.Warnings[2], "messages[3] ") {
		t.Errorf("warnings: %q", decoded.Warnings)
	}
	if got := decoded.Messages[0].Text(); got != "cut �" {
		t.Errorf("text for reading: %q", got)
	}
}
