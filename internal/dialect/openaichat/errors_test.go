package openaichat_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	for _, c := range []struct {
		name, message string
		code          session.Code
		path          string
	}{
		{"no JSON", `{"role":`, session.Malformed, "messages[1]"},
		{"bytes that are not UTF-8", "{\"role\":\"user\",\"content\":\"\xff\"}", session.Malformed, "messages[1]"},
		{"nested beyond reading", `{"role":"user","x":` + nested(20_000) + `}`, session.TooLarge, "messages[1]"},
		{"no object", `"hi"`, session.Invalid, "messages[1]"},
		{"a null", `null`, session.Invalid, "messages[1]"},
		{"no role", `{"content":"x"}`, session.Invalid, "messages[1].role"},
		{"role is no string", `{"role":1}`, session.Invalid, "messages[1].role"},
		{"role of another provider", `{"role":"model","content":"x"}`, session.Invalid, "messages[1].role"},
		{"role in other letters", `{"Role":"user"}`, session.Invalid, "messages[1].role"},
		{"a field twice", `{"role":"user","content":"a","content":"b"}`, session.Invalid, "messages[1].content"},
		{"content is a number", `{"role":"user","content":7}`, session.Invalid, "messages[1].content"},
		{"content is an object", `{"role":"user","content":{}}`, session.Invalid, "messages[1].content"},
		{"element is a string", `{"role":"user","content":["x"]}`, session.Invalid, "messages[1].content[0]"},
		{"element without type", `{"role":"user","content":[{"type":"text","text":"x"},{"text":"x"}]}`, session.Invalid, "messages[1].content[1].type"},
		{"element with a null type", `{"role":"user","content":[{"type":null}]}`, session.Invalid, "messages[1].content[0].type"},
		{"text is missing", `{"role":"user","content":[{"type":"text"}]}`, session.Invalid, "messages[1].content[0].text"},
		{"text is null", `{"role":"user","content":[{"type":"text","text":null}]}`, session.Invalid, "messages[1].content[0].text"},
		{"picture without URL", `{"role":"user","content":[{"type":"image_url","image_url":{}}]}`, session.Invalid, "messages[1].content[0].image_url.url"},
		{"picture is a number", `{"role":"user","content":[{"type":"image_url","image_url":1}]}`, session.Invalid, "messages[1].content[0].image_url"},
		{"sound is missing", `{"role":"user","content":[{"type":"input_audio"}]}`, session.Invalid, "messages[1].content[0].input_audio"},
		{"file is an array", `{"role":"user","content":[{"type":"file","file":[]}]}`, session.Invalid, "messages[1].content[0].file"},
		{"deep field of an element", `{"role":"user","content":[{"type":"text","text":"x","deep":` + nested(1000) + `}]}`, session.TooLarge, "messages[1].content[0].deep"},
		{"name is a number", `{"role":"user","name":1}`, session.Invalid, "messages[1].name"},
		{"result without its call", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].tool_call_id"},
		{"result of a null", `{"role":"tool","tool_call_id":null,"content":"x"}`, session.Invalid, "messages[1].tool_call_id"},
		{"a user's calls", `{"role":"user","content":"x","tool_calls":[{}]}`, session.Invalid, "messages[1].tool_calls"},
		{"calls are an object", `{"role":"assistant","tool_calls":{}}`, session.Invalid, "messages[1].tool_calls"},
		{"call is a string", `{"role":"assistant","tool_calls":["x"]}`, session.Invalid, "messages[1].tool_calls[0]"},
		{"call without id", `{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`, session.Invalid, "messages[1].tool_calls[0].id"},
		{"call of type null", `{"role":"assistant","tool_calls":[{"id":"a","type":null}]}`, session.Invalid, "messages[1].tool_calls[0].type"},
		{"call without function", `{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]}`, session.Invalid, "messages[1].tool_calls[0].function"},
		{"function without name", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"arguments":"{}"}}]}`, session.Invalid, "messages[1].tool_calls[0].function.name"},
		{"arguments are a number", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":7}}]}`, session.Invalid, "messages[1].tool_calls[0].function.arguments"},
		{"custom input is a boolean", `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":true}}]}`, session.Invalid, "messages[1].tool_calls[0].custom.input"},
		{"function_call is a string", `{"role":"assistant","function_call":"f"}`, session.Invalid, "messages[1].function_call"},
		{"refusal is a boolean", `{"role":"assistant","refusal":true}`, session.Invalid, "messages[1].refusal"},
		{"audio is a string", `{"role":"assistant","audio":"x"}`, session.Invalid, "messages[1].audio"},
		{"message of a choice is null", `{"message":null,"finish_reason":"stop"}`, session.Invalid, "messages[1].message"},
		{"message of a choice is wrong", `{"message":{"role":"assistant","content":7},"finish_reason":"stop"}`, session.Invalid, "messages[1].message.content"},
		{"too many parts", `{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 1024) + `{"type":"text","text":"x"}]}`, session.Invalid, "messages[1].content"},
		{"too many parts together", `{"role":"assistant","reasoning":"x","content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 1023) + `{"type":"text","text":"x"}]}`, session.Invalid, "messages[1]"},
		{"too many calls", `{"role":"assistant","tool_calls":[` + strings.Repeat(`{},`, 1024) + `{}]}`, session.Invalid, "messages[1].tool_calls"},
		{"large field without a name", `{"role":"user","content":"x","":"` + strings.Repeat("x", 70_000) + `"}`, session.TooLarge, "messages[1]."},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := openaichat.Decode([]json.RawMessage{json.RawMessage(`{"role":"user","content":"fine"}`), json.RawMessage(c.message)})
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
	roundTrip(t, []json.RawMessage{json.RawMessage(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 1023) + `{"type":"text","text":"x"}]}`)})
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	decoded, err := openaichat.Decode(list(t, `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"video_url"}]},{"role":"user","content":"fine"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(decoded.Warnings) != 2 || !strings.HasPrefix(decoded.Warnings[0], "messages[0].content ") || !strings.HasPrefix(decoded.Warnings[1], "messages[1].content[0] ") {
		t.Errorf("warnings: %q", decoded.Warnings)
	}
	if got := decoded.Messages[0].Text(); got != "cut �" {
		t.Errorf("text for reading: %q", got)
	}
}
