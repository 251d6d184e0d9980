package anthropic_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	user := func(block string) string { return `{"role":"user","content":[` + block + `]}` }
	reply := func(block string) string { return `{"role":"assistant","content":[` + block + `]}` }
	at := dialecttest.WrongAt
	dialecttest.Refuses(
		t, anthropic.Form(), `{"role":"user","content":"fine"}`,
		at("no role", `{"content":"x"}`, session.Invalid, "messages[1].role"),
		at("role of another provider", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].role"),
		at("role in other letters", `{"Role":"user"}`, session.Invalid, "messages[1].role"),
		at("content is a number", `{"role":"user","content":7}`, session.Invalid, "messages[1].content"),
		at("content is an object", `{"role":"user","content":{}}`, session.Invalid, "messages[1].content"),
		at("block is a string", user(`"x"`), session.Invalid, "messages[1].content[0]"),
		at("block without type", user(`{"type":"text","text":"x"},{"text":"x"}`), session.Invalid, "messages[1].content[1].type"),
		at("block with a null type", user(`{"type":null}`), session.Invalid, "messages[1].content[0].type"),
		at("text is missing", user(`{"type":"text"}`), session.Invalid, "messages[1].content[0].text"),
		at("text is null", user(`{"type":"text","text":null}`), session.Invalid, "messages[1].content[0].text"),
		at("picture without source", user(`{"type":"image"}`), session.Invalid, "messages[1].content[0].source"),
		at("document of a string", user(`{"type":"document","source":"x"}`), session.Invalid, "messages[1].content[0].source"),
		at("deep field of a source", user(`{"type":"image","source":{"type":"x","deep":`+nested(1000)+`}}`), session.TooLarge, "messages[1].content[0].source.deep"),
		at("deep field of a block", user(`{"type":"text","text":"x","deep":`+nested(1000)+`}`), session.TooLarge, "messages[1].content[0].deep"),
		at("thinking is missing", reply(`{"type":"thinking","signature":"s"}`), session.Invalid, "messages[1].content[0].thinking"),
		at("a user's call", user(`{"type":"tool_use","id":"a","name":"f","input":{}}`), session.Invalid, "messages[1].content[0]"),
		at("call without id", reply(`{"type":"tool_use","name":"f","input":{}}`), session.Invalid, "messages[1].content[0].id"),
		at("call without name", reply(`{"type":"tool_use","id":"a","input":{}}`), session.Invalid, "messages[1].content[0].name"),
		at("call of a number", reply(`{"type":"tool_use","id":7,"name":"f"}`), session.Invalid, "messages[1].content[0].id"),
		at("a reply's result", reply(`{"type":"tool_result","tool_use_id":"a"}`), session.Invalid, "messages[1].content[0]"),
		at("result without its call", user(`{"type":"tool_result","content":"x"}`), session.Invalid, "messages[1].content[0].tool_use_id"),
		at("result of a null", user(`{"type":"tool_result","tool_use_id":null}`), session.Invalid, "messages[1].content[0].tool_use_id"),
		at("content of a result is an object", user(`{"type":"tool_result","tool_use_id":"a","content":{}}`), session.Invalid, "messages[1].content[0].content"),
		at("block of a result is a string", user(`{"type":"tool_result","tool_use_id":"a","content":["x"]}`), session.Invalid, "messages[1].content[0].content[0]"),
		at("text of a result is null", user(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":null}]}`), session.Invalid, "messages[1].content[0].content[0].text"),
		at("failure is a string", user(`{"type":"tool_result","tool_use_id":"a","is_error":"yes"}`), session.Invalid, "messages[1].content[0].is_error"),
		at("result of a search without its call", reply(`{"type":"web_search_tool_result","content":[]}`), session.Invalid, "messages[1].content[0].tool_use_id"),
		at("too many blocks", user(strings.Repeat(`{"type":"text","text":"x"},`, 1024)+`{"type":"text","text":"x"}`), session.Invalid, "messages[1].content"),
		at("too many blocks of a result", user(`{"type":"tool_result","tool_use_id":"a","content":[`+strings.Repeat(`{},`, 1024)+`{}]}`), session.Invalid, "messages[1].content[0].content"),
		at("too many parts together", user(strings.TrimSuffix(strings.Repeat(`{"type":"tool_result","tool_use_id":"a","content":[`+strings.TrimSuffix(strings.Repeat(`{"type":"image","source":{}},`, 40), ",")+`]},`, 25), ",")), session.Invalid, "messages[1]"),
		at("large field without a name", `{"role":"user","content":"x","":"`+strings.Repeat("x", 70_000)+`"}`, session.TooLarge, "messages[1]."),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, anthropic.Form(), `{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, anthropic.Form(), `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"video"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"hologram"},{"type":"tool_reference","tool_name":"f"}]}]},{"role":"user","content":"fine"}]`, "messages[0].content", "messages[1].content[0]", "messages[2].content[0].content[0]")
}
