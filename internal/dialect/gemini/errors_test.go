package gemini_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"
)

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	at := dialecttest.WrongAt
	dialecttest.Refuses(
		t, gemini.Form(), `{"role":"user","parts":[{"text":"fine"}]}`,
		at("nothing", `{}`, session.Invalid, "messages[1].parts"),
		at("role of another provider", `{"role":"assistant","parts":[]}`, session.Invalid, "messages[1].role"),
		at("content of another provider", `{"role":"user","content":"hi"}`, session.Invalid, "messages[1].content"),
		at("choice of another provider", `{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}`, session.Invalid, "messages[1].parts"),
		at("parts are an object", `{"role":"user","parts":{}}`, session.Invalid, "messages[1].parts"),
		at("parts are a text", `{"role":"user","parts":"hi"}`, session.Invalid, "messages[1].parts"),
		at("part is a text", `{"role":"user","parts":["hi"]}`, session.Invalid, "messages[1].parts[0]"),
		at("text is a number", `{"role":"user","parts":[{"text":"x"},{"text":7}]}`, session.Invalid, "messages[1].parts[1].text"),
		at("a field of a part twice", `{"role":"user","parts":[{"text":"x","text":"y"}]}`, session.Invalid, "messages[1].parts[0].text"),
		at("a user's call", `{"role":"user","parts":[{"functionCall":{"name":"f"}}]}`, session.Invalid, "messages[1].parts[0].functionCall"),
		at("a user's call in Python's spelling", `{"role":"user","parts":[{"function_call":{"name":"f"}}]}`, session.Invalid, "messages[1].parts[0].function_call"),
		at("call without name", `{"role":"model","parts":[{"functionCall":{"args":{}}}]}`, session.Invalid, "messages[1].parts[0].functionCall.name"),
		at("call's name is null", `{"role":"model","parts":[{"functionCall":{"name":null}}]}`, session.Invalid, "messages[1].parts[0].functionCall.name"),
		at("call's id is a number", `{"role":"model","parts":[{"functionCall":{"name":"f","id":7}}]}`, session.Invalid, "messages[1].parts[0].functionCall.id"),
		at("response without name", `{"role":"user","parts":[{"functionResponse":{"response":{}}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.name"),
		at("a response's field twice", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1,"a":2}}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.response.a"),
		at("a response's part is a text", `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":["x"]}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.parts[0]"),
		at("deep field of a part", `{"role":"user","parts":[{"text":"x","deep":`+nested(1000)+`}]}`, session.TooLarge, "messages[1].parts[0].deep"),
		at("deep field of a medium", `{"role":"user","parts":[{"inlineData":{"deep":`+nested(1000)+`}}]}`, session.TooLarge, "messages[1].parts[0].inlineData.deep"),
		at("too many parts", `{"role":"user","parts":[`+strings.Repeat(`{"text":"x"},`, 1024)+`{"text":"x"}]}`, session.Invalid, "messages[1].parts"),
		at("too many parts within", `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":[`+strings.Repeat(`{"inlineData":{}},`, 1023)+`{"inlineData":{}}]}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.parts"),
		at("too many parts together", `{"role":"user","parts":[`+strings.Repeat(`{"functionResponse":{"name":"f","parts":[{"inlineData":{}}]}},`, 600)+`{"functionResponse":{"name":"f"}}]}`, session.Invalid, "messages[1]"),
		at("large field without a name", `{"role":"user","parts":[],"":"`+strings.Repeat("x", 70_000)+`"}`, session.TooLarge, "messages[1]."),
		at("several candidates", `{"candidates":[{},{}]}`, session.Invalid, "messages[1].candidates"),
		at("candidates are an object", `{"candidates":{}}`, session.Invalid, "messages[1].candidates"),
		at("a candidate is a text", `{"candidates":["x"]}`, session.Invalid, "messages[1].candidates[0]"),
		at("a candidate's content is a text", `{"candidates":[{"content":"x"}]}`, session.Invalid, "messages[1].candidates[0].content"),
		at("a candidate's part is wrong", `{"candidates":[{"content":{"parts":[{"text":7}]}}]}`, session.Invalid, "messages[1].candidates[0].content.parts[0].text"),
		at("a candidate of the user", `{"content":{"role":"user","parts":[]}}`, session.Invalid, "messages[1].content.role"),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, gemini.Form(), `{"role":"user","parts":[`, `{"text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, gemini.Form(), `[{"role":"user","parts":[{"text":"cut \ud83d"}]},{"role":"model","parts":[{"hologram":1}]},{"role":"user","parts":[{"text":"fine"}]}]`, "messages[0].parts[0].text", "messages[1].parts[0]")
}
