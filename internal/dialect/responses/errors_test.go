package responses_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	at := dialecttest.WrongAt
	dialecttest.Refuses(
		t, responses.Form(), `{"role":"user","content":"fine"}`,
		at("neither type nor role", `{"content":"x"}`, session.Invalid, "messages[1].role"),
		at("a type that is a number", `{"type":7}`, session.Invalid, "messages[1].type"),
		at("a type that is empty", `{"type":"","role":"user"}`, session.Invalid, "messages[1].type"),
		at("role of another form", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].role"),
		at("content is a number", `{"role":"user","content":7}`, session.Invalid, "messages[1].content"),
		at("content is an object", `{"role":"user","content":{}}`, session.Invalid, "messages[1].content"),
		at("element is a string", `{"role":"user","content":["x"]}`, session.Invalid, "messages[1].content[0]"),
		at("element without type", `{"role":"user","content":[{"type":"input_text","text":"x"},{"text":"x"}]}`, session.Invalid, "messages[1].content[1].type"),
		at("element with a null type", `{"role":"user","content":[{"type":null}]}`, session.Invalid, "messages[1].content[0].type"),
		at("text is missing", `{"role":"user","content":[{"type":"input_text"}]}`, session.Invalid, "messages[1].content[0].text"),
		at("text is null", `{"role":"user","content":[{"type":"output_text","text":null}]}`, session.Invalid, "messages[1].content[0].text"),
		at("refusal is a boolean", `{"role":"assistant","content":[{"type":"refusal","refusal":true}]}`, session.Invalid, "messages[1].content[0].refusal"),
		at("deep field of an element", `{"role":"user","content":[{"type":"input_text","text":"x","deep":`+nested(1000)+`}]}`, session.TooLarge, "messages[1].content[0].deep"),
		at("summary of numbers", `{"type":"reasoning","summary":[7]}`, session.Invalid, "messages[1].summary[0]"),
		at("call without id", `{"type":"function_call","name":"f","arguments":"{}"}`, session.Invalid, "messages[1].call_id"),
		at("call of a null", `{"type":"function_call","call_id":null,"name":"f","arguments":"{}"}`, session.Invalid, "messages[1].call_id"),
		at("call without name", `{"type":"function_call","call_id":"a","arguments":"{}"}`, session.Invalid, "messages[1].name"),
		at("arguments are a number", `{"type":"function_call","call_id":"a","name":"f","arguments":7}`, session.Invalid, "messages[1].arguments"),
		at("custom input is a boolean", `{"type":"custom_tool_call","call_id":"a","name":"f","input":true}`, session.Invalid, "messages[1].input"),
		at("MCP call without name", `{"type":"mcp_call","id":"a"}`, session.Invalid, "messages[1].name"),
		at("result without its call", `{"type":"function_call_output","output":"x"}`, session.Invalid, "messages[1].call_id"),
		at("result of a number", `{"type":"function_call_output","call_id":7,"output":"x"}`, session.Invalid, "messages[1].call_id"),
		at("result of strings", `{"type":"function_call_output","call_id":"a","output":["x"]}`, session.Invalid, "messages[1].output[0]"),
		at("screenshot without type", `{"type":"computer_call_output","call_id":"a","output":{"image_url":"x"}}`, session.Invalid, "messages[1].output.type"),
		at("output of a response is of strings", `{"object":"response","output":["x"]}`, session.Invalid, "messages[1].output[0]"),
		at("item of a response is wrong", `{"object":"response","output":[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":7}]}]}`, session.Invalid, "messages[1].output[1].content[0].text"),
		at("too many parts", `{"role":"user","content":[`+strings.Repeat(`{"type":"input_text","text":"x"},`, 1024)+`{"type":"input_text","text":"x"}]}`, session.Invalid, "messages[1].content"),
		at("too many parts together", `{"type":"reasoning","summary":[`+strings.Repeat(`{"type":"summary_text","text":"x"},`, 600)+`{"type":"summary_text","text":"x"}],"content":[`+strings.Repeat(`{"type":"reasoning_text","text":"x"},`, 600)+`{"type":"reasoning_text","text":"x"}]}`, session.Invalid, "messages[1]"),
		at("large field without a name", `{"role":"user","content":"x","":"`+strings.Repeat("x", 70_000)+`"}`, session.TooLarge, "messages[1]."),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, responses.Form(), `{"role":"user","content":[`, `{"type":"input_text","text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, responses.Form(), `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"input_video"}]},{"role":"user","content":"fine"},{"type":"item_reference","id":"a"}]`, "messages[0].content", "messages[1].content[0]", "messages[3]")
}
