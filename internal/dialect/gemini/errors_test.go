package gemini_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sessiond/internal/dialect/dialecttest"
	"sessiond/internal/dialect/gemini"
	"sessiond/internal/session"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	for _, c := range []struct {
		name, content string
		code          session.Code
		path          string
	}{
		{"no JSON", `{"role":`, session.Malformed, "messages[1]"},
		{"bytes that are not UTF-8", "{\"role\":\"user\",\"parts\":[{\"text\":\"\xff\"}]}", session.Malformed, "messages[1]"},
		{"nested beyond reading", `{"role":"user","x":` + nested(20_000) + `}`, session.TooLarge, "messages[1]"},
		{"no object", `"hi"`, session.Invalid, "messages[1]"},
		{"a null", `null`, session.Invalid, "messages[1]"},
		{"nothing", `{}`, session.Invalid, "messages[1].parts"},
		{"role is no string", `{"role":1,"parts":[]}`, session.Invalid, "messages[1].role"},
		{"role of another provider", `{"role":"assistant","parts":[]}`, session.Invalid, "messages[1].role"},
		{"content of another provider", `{"role":"user","content":"hi"}`, session.Invalid, "messages[1].content"},
		{"choice of another provider", `{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}`, session.Invalid, "messages[1].parts"},
		{"a field twice", `{"role":"user","parts":[],"parts":[]}`, session.Invalid, "messages[1].parts"},
		{"parts are an object", `{"role":"user","parts":{}}`, session.Invalid, "messages[1].parts"},
		{"parts are a text", `{"role":"user","parts":"hi"}`, session.Invalid, "messages[1].parts"},
		{"part is a text", `{"role":"user","parts":["hi"]}`, session.Invalid, "messages[1].parts[0]"},
		{"text is a number", `{"role":"user","parts":[{"text":"x"},{"text":7}]}`, session.Invalid, "messages[1].parts[1].text"},
		{"a field of a part twice", `{"role":"user","parts":[{"text":"x","text":"y"}]}`, session.Invalid, "messages[1].parts[0].text"},
		{"a user's call", `{"role":"user","parts":[{"functionCall":{"name":"f"}}]}`, session.Invalid, "messages[1].parts[0].functionCall"},
		{"a user's call in Python's spelling", `{"role":"user","parts":[{"function_call":{"name":"f"}}]}`, session.Invalid, "messages[1].parts[0].function_call"},
		{"call without name", `{"role":"model","parts":[{"functionCall":{"args":{}}}]}`, session.Invalid, "messages[1].parts[0].functionCall.name"},
		{"call's name is null", `{"role":"model","parts":[{"functionCall":{"name":null}}]}`, session.Invalid, "messages[1].parts[0].functionCall.name"},
		{"call's id is a number", `{"role":"model","parts":[{"functionCall":{"name":"f","id":7}}]}`, session.Invalid, "messages[1].parts[0].functionCall.id"},
		{"response without name", `{"role":"user","parts":[{"functionResponse":{"response":{}}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.name"},
		{"a response's field twice", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1,"a":2}}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.response.a"},
		{"a response's part is a text", `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":["x"]}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.parts[0]"},
		{"deep field of a part", `{"role":"user","parts":[{"text":"x","deep":` + nested(1000) + `}]}`, session.TooLarge, "messages[1].parts[0].deep"},
		{"deep field of a medium", `{"role":"user","parts":[{"inlineData":{"deep":` + nested(1000) + `}}]}`, session.TooLarge, "messages[1].parts[0].inlineData.deep"},
		{"too many parts", `{"role":"user","parts":[` + strings.Repeat(`{"text":"x"},`, 1024) + `{"text":"x"}]}`, session.Invalid, "messages[1].parts"},
		{"too many parts within", `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":[` + strings.Repeat(`{"inlineData":{}},`, 1023) + `{"inlineData":{}}]}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.parts"},
		{"too many parts together", `{"role":"user","parts":[` + strings.Repeat(`{"functionResponse":{"name":"f","parts":[{"inlineData":{}}]}},`, 600) + `{"functionResponse":{"name":"f"}}]}`, session.Invalid, "messages[1]"},
		{"large field without a name", `{"role":"user","parts":[],"":"` + strings.Repeat("x", 70_000) + `"}`, session.TooLarge, "messages[1]."},
		{"several candidates", `{"candidates":[{},{}]}`, session.Invalid, "messages[1].candidates"},
		{"candidates are an object", `{"candidates":{}}`, session.Invalid, "messages[1].candidates"},
		{"a candidate is a text", `{"candidates":["x"]}`, session.Invalid, "messages[1].candidates[0]"},
		{"a candidate's content is a text", `{"candidates":[{"content":"x"}]}`, session.Invalid, "messages[1].candidates[0].content"},
		{"a candidate's part is wrong", `{"candidates":[{"content":{"parts":[{"text":7}]}}]}`, session.Invalid, "messages[1].candidates[0].content.parts[0].text"},
		{"a candidate of the user", `{"content":{"role":"user","parts":[]}}`, session.Invalid, "messages[1].content.role"},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := gemini.Decode([]json.RawMessage{json.RawMessage(`{"role":"user","parts":[{"text":"fine"}]}`), json.RawMessage(c.content)})
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
	raw := list(t, `[{"role":"user","parts":[`+strings.Repeat(`{"text":"x"},`, 1023)+`{"text":"x"}]}]`)
	decoded, err := gemini.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	exported, err := gemini.Export(dialecttest.Stored(t, decoded.Messages))
	if err != nil || !dialecttest.EqualJSON(dialecttest.Array(raw), dialecttest.Array(exported)) {
		t.Errorf("did not come back (%v)", err)
	}
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	decoded, err := gemini.Decode(list(t, `[{"role":"user","parts":[{"text":"cut \ud83d"}]},{"role":"model","parts":[{"hologram":1}]},{"role":"user","parts":[{"text":"fine"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(decoded.Warnings) != 2 || !strings.HasPrefix(decoded.Warnings[0], "messages[0].parts[0].text ") || !strings.HasPrefix(decoded.Warnings[1], "messages[1].parts[0] ") {
		t.Errorf("warnings: %q", decoded.Warnings)
	}
	if got := decoded.Messages[0].Text(); got != "cut �" {
		t.Errorf("text for reading: %q", got)
	}
}
