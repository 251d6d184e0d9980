package anthropic_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/session"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	user := func(block string) string { return `{"role":"user","content":[` + block + `]}` }
	reply := func(block string) string { return `{"role":"assistant","content":[` + block + `]}` }
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
		{"role of another provider", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].role"},
		{"role in other letters", `{"Role":"user"}`, session.Invalid, "messages[1].role"},
		{"a field twice", `{"role":"user","content":"a","content":"b"}`, session.Invalid, "messages[1].content"},
		{"content is a number", `{"role":"user","content":7}`, session.Invalid, "messages[1].content"},
		{"content is an object", `{"role":"user","content":{}}`, session.Invalid, "messages[1].content"},
		{"block is a string", user(`"x"`), session.Invalid, "messages[1].content[0]"},
		{"block without type", user(`{"type":"text","text":"x"},{"text":"x"}`), session.Invalid, "messages[1].content[1].type"},
		{"block with a null type", user(`{"type":null}`), session.Invalid, "messages[1].content[0].type"},
		{"text is missing", user(`{"type":"text"}`), session.Invalid, "messages[1].content[0].text"},
		{"text is null", user(`{"type":"text","text":null}`), session.Invalid, "messages[1].content[0].text"},
		{"picture without source", user(`{"type":"image"}`), session.Invalid, "messages[1].content[0].source"},
		{"document of a string", user(`{"type":"document","source":"x"}`), session.Invalid, "messages[1].content[0].source"},
		{"deep field of a source", user(`{"type":"image","source":{"type":"x","deep":` + nested(1000) + `}}`), session.TooLarge, "messages[1].content[0].source.deep"},
		{"deep field of a block", user(`{"type":"text","text":"x","deep":` + nested(1000) + `}`), session.TooLarge, "messages[1].content[0].deep"},
		{"thinking is missing", reply(`{"type":"thinking","signature":"s"}`), session.Invalid, "messages[1].content[0].thinking"},
		{"a user's call", user(`{"type":"tool_use","id":"a","name":"f","input":{}}`), session.Invalid, "messages[1].content[0]"},
		{"call without id", reply(`{"type":"tool_use","name":"f","input":{}}`), session.Invalid, "messages[1].content[0].id"},
		{"call without name", reply(`{"type":"tool_use","id":"a","input":{}}`), session.Invalid, "messages[1].content[0].name"},
		{"call of a number", reply(`{"type":"tool_use","id":7,"name":"f"}`), session.Invalid, "messages[1].content[0].id"},
		{"a reply's result", reply(`{"type":"tool_result","tool_use_id":"a"}`), session.Invalid, "messages[1].content[0]"},
		{"result without its call", user(`{"type":"tool_result","content":"x"}`), session.Invalid, "messages[1].content[0].tool_use_id"},
		{"result of a null", user(`{"type":"tool_result","tool_use_id":null}`), session.Invalid, "messages[1].content[0].tool_use_id"},
		{"content of a result is an object", user(`{"type":"tool_result","tool_use_id":"a","content":{}}`), session.Invalid, "messages[1].content[0].content"},
		{"block of a result is a string", user(`{"type":"tool_result","tool_use_id":"a","content":["x"]}`), session.Invalid, "messages[1].content[0].content[0]"},
		{"text of a result is null", user(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":null}]}`), session.Invalid, "messages[1].content[0].content[0].text"},
		{"failure is a string", user(`{"type":"tool_result","tool_use_id":"a","is_error":"yes"}`), session.Invalid, "messages[1].content[0].is_error"},
		{"result of a search without its call", reply(`{"type":"web_search_tool_result","content":[]}`), session.Invalid, "messages[1].content[0].tool_use_id"},
		{"too many blocks", user(strings.Repeat(`{"type":"text","text":"x"},`, 1024) + `{"type":"text","text":"x"}`), session.Invalid, "messages[1].content"},
		{"too many blocks of a result", user(`{"type":"tool_result","tool_use_id":"a","content":[` + strings.Repeat(`{},`, 1024) + `{}]}`), session.Invalid, "messages[1].content[0].content"},
		{"too many parts together", user(strings.TrimSuffix(strings.Repeat(`{"type":"tool_result","tool_use_id":"a","content":[`+strings.TrimSuffix(strings.Repeat(`{"type":"image","source":{}},`, 40), ",")+`]},`, 25), ",")), session.Invalid, "messages[1]"},
		{"large field without a name", `{"role":"user","content":"x","":"` + strings.Repeat("x", 70_000) + `"}`, session.TooLarge, "messages[1]."},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded, err := anthropic.Decode([]json.RawMessage{json.RawMessage(`{"role":"user","content":"fine"}`), json.RawMessage(c.message)})
			var known *session.Error
			if !errors.As(err, &known) {
				t.Fatalf("got %+v and error %v", decoded, err)
			}
			if known.Code != c.code || len(known.Fields) != 1 || known.Fields[0].Path != c.path {
				t.Errorf("got %s at %+v: %.300s; want %s at %s", known.Code, known.Fields, known, c.code, c.path)
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
	decoded, err := anthropic.Decode(list(t, `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"video"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"hologram"},{"type":"tool_reference","tool_name":"f"}]}]},{"role":"user","content":"fine"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"messages[0].content ", "messages[1].content[0] ", "messages[2].content[0].content[0] "}
	if len(decoded.Warnings) != len(want) {
		t.Fatalf("warnings: %q", decoded.Warnings)
	}
	for i, w := range want {
		if !strings.HasPrefix(decoded.Warnings[i], w) {
			t.Errorf("warning %d: %q, want %q…", i, decoded.Warnings[i], w)
		}
	}
	if got := decoded.Messages[0].Text(); got != "cut �" {
		t.Errorf("text for reading: %q", got)
	}
}
