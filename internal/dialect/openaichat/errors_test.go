package openaichat_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	at := dialecttest.WrongAt
	dialecttest.Refuses(
		t, openaichat.Form(), `{"role":"user","content":"fine"}`,
		at("no role", `{"content":"x"}`, session.Invalid, "messages[1].role"),
		at("role of another provider", `{"role":"model","content":"x"}`, session.Invalid, "messages[1].role"),
		at("role in other letters", `{"Role":"user"}`, session.Invalid, "messages[1].role"),
		at("content is a number", `{"role":"user","content":7}`, session.Invalid, "messages[1].content"),
		at("content is an object", `{"role":"user","content":{}}`, session.Invalid, "messages[1].content"),
		at("element is a string", `{"role":"user","content":["x"]}`, session.Invalid, "messages[1].content[0]"),
		at("element without type", `{"role":"user","content":[{"type":"text","text":"x"},{"text":"x"}]}`, session.Invalid, "messages[1].content[1].type"),
		at("element with a null type", `{"role":"user","content":[{"type":null}]}`, session.Invalid, "messages[1].content[0].type"),
		at("text is missing", `{"role":"user","content":[{"type":"text"}]}`, session.Invalid, "messages[1].content[0].text"),
		at("text is null", `{"role":"user","content":[{"type":"text","text":null}]}`, session.Invalid, "messages[1].content[0].text"),
		at("picture without URL", `{"role":"user","content":[{"type":"image_url","image_url":{}}]}`, session.Invalid, "messages[1].content[0].image_url.url"),
		at("picture is a number", `{"role":"user","content":[{"type":"image_url","image_url":1}]}`, session.Invalid, "messages[1].content[0].image_url"),
		at("sound is missing", `{"role":"user","content":[{"type":"input_audio"}]}`, session.Invalid, "messages[1].content[0].input_audio"),
		at("file is an array", `{"role":"user","content":[{"type":"file","file":[]}]}`, session.Invalid, "messages[1].content[0].file"),
		at("deep field of an element", `{"role":"user","content":[{"type":"text","text":"x","deep":`+nested(1000)+`}]}`, session.TooLarge, "messages[1].content[0].deep"),
		at("name is a number", `{"role":"user","name":1}`, session.Invalid, "messages[1].name"),
		at("result without its call", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].tool_call_id"),
		at("result of a null", `{"role":"tool","tool_call_id":null,"content":"x"}`, session.Invalid, "messages[1].tool_call_id"),
		at("a user's calls", `{"role":"user","content":"x","tool_calls":[{}]}`, session.Invalid, "messages[1].tool_calls"),
		at("calls are an object", `{"role":"assistant","tool_calls":{}}`, session.Invalid, "messages[1].tool_calls"),
		at("call is a string", `{"role":"assistant","tool_calls":["x"]}`, session.Invalid, "messages[1].tool_calls[0]"),
		at("call without id", `{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`, session.Invalid, "messages[1].tool_calls[0].id"),
		at("call of type null", `{"role":"assistant","tool_calls":[{"id":"a","type":null}]}`, session.Invalid, "messages[1].tool_calls[0].type"),
		at("call without function", `{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]}`, session.Invalid, "messages[1].tool_calls[0].function"),
		at("function without name", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"arguments":"{}"}}]}`, session.Invalid, "messages[1].tool_calls[0].function.name"),
		at("arguments are a number", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":7}}]}`, session.Invalid, "messages[1].tool_calls[0].function.arguments"),
		at("custom input is a boolean", `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":true}}]}`, session.Invalid, "messages[1].tool_calls[0].custom.input"),
		at("function_call is a string", `{"role":"assistant","function_call":"f"}`, session.Invalid, "messages[1].function_call"),
		at("refusal is a boolean", `{"role":"assistant","refusal":true}`, session.Invalid, "messages[1].refusal"),
		at("audio is a string", `{"role":"assistant","audio":"x"}`, session.Invalid, "messages[1].audio"),
		at("message of a choice is null", `{"message":null,"finish_reason":"stop"}`, session.Invalid, "messages[1].message"),
		at("message of a choice is wrong", `{"message":{"role":"assistant","content":7},"finish_reason":"stop"}`, session.Invalid, "messages[1].message.content"),
		at("too many parts", `{"role":"user","content":[`+strings.Repeat(`{"type":"text","text":"x"},`, 1024)+`{"type":"text","text":"x"}]}`, session.Invalid, "messages[1].content"),
		at("too many parts together", `{"role":"assistant","reasoning":"x","content":[`+strings.Repeat(`{"type":"text","text":"x"},`, 1023)+`{"type":"text","text":"x"}]}`, session.Invalid, "messages[1]"),
		at("too many calls", `{"role":"assistant","tool_calls":[`+strings.Repeat(`{},`, 1024)+`{}]}`, session.Invalid, "messages[1].tool_calls"),
		at("large field without a name", `{"role":"user","content":"x","":"`+strings.Repeat("x", 70_000)+`"}`, session.TooLarge, "messages[1]."),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, openaichat.Form(), `{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, openaichat.Form(), `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"video_url"}]},{"role":"user","content":"fine"}]`, "messages[0].content", "messages[1].content[0]")
}
