package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, gemini.Form(), wireCases())
}

func TestAnyContentComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, gemini.Form(), anyContent)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, gemini.Form(), wireCases())
}

func wireCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"plain turns", `[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"Hello!"}]}]`},
		{"several texts", `[{"role":"user","parts":[{"text":"one"},{"text":"two"},{"text":""}]}]`},
		{"without a role", `[{"parts":[{"text":"hi"}]}]`},
		{"role null", `[{"parts":[{"text":"hi"}],"role":null}]`},
		{"system content", `[{"role":"system","parts":[{"text":"Be short."}]}]`},
		{"no parts", `[{"role":"model"},{"role":"model","parts":null},{"role":"model","parts":[]}]`},
		{"a part that says nothing", `[{"role":"model","parts":[{}]}]`},
		{"call without id", `[{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Köln","days":1.0}}}]},{"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"output":"7 degrees"}}}]}]`},
		{"call with id", `[{"role":"model","parts":[{"functionCall":{"id":"esrym5y5","name":"ls","args":{}},"thoughtSignature":"CpwC+/=="}]},{"role":"user","parts":[{"functionResponse":{"id":"esrym5y5","name":"ls","response":{"result":["a","b"]}}}]}]`},
		{"id that only the call has", `[{"role":"model","parts":[{"functionCall":{"id":"x1","name":"ls","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":""}}}]}]`},
		{"ids empty and null", `[{"role":"model","parts":[{"functionCall":{"id":"","name":"ls","args":{}}},{"functionCall":{"id":null,"name":"ls"}}]},{"role":"user","parts":[{"functionResponse":{"id":"","name":"ls","response":{}}},{"functionResponse":{"id":null,"name":"ls","response":{"a":1,"b":2}}}]}]`},
		{"parallel calls of one name", `[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1}},"thoughtSignature":"QUJD"},{"functionCall":{"name":"f","args":{"n":2}}},{"functionCall":{"name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"3"}}},{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}]`},
		{"the same id twice", `[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"a","name":"f","args":{}}}]}]`},
		{"call beside text and thought", `[{"role":"model","parts":[{"text":"Let me think","thought":true},{"text":"Looking."},{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"QUJD"}]}]`},
		{"arguments absent, null and odd", `[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f","args":null}},{"functionCall":{"name":"f","args":"{\"a\":1}"}},{"functionCall":{"name":"f","args":[1.0]}},{"functionCall":{"name":"f","args":7}},{"functionCall":{"name":"f","args":""}}]}]`},
		{"arguments with halves and numbers", `[{"role":"model","parts":[{"functionCall":{"name":"f","args":{ "x":"\ud83d\u0000<&>\n", "n" : 1.50, "big":12345678901234567890 }}}]}]`},
		{"results before calls", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}]`},
		{"responses of every shape", `[{"role":"user","parts":[{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"f","response":null}},{"functionResponse":{"name":"f","response":"text"}},{"functionResponse":{"name":"f","response":[1,2]}},{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"f","response":{"error":"no such file"}}},{"functionResponse":{"name":"f","response":{"output":{"deep":[1.0]}}}},{"functionResponse":{"name":"f","response":{"":"empty key"}}},{"functionResponse":{"name":"f","response":false}},{"functionResponse":{"name":"f","response":""}}]}]`},
		{"response of role function", `[{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"name":"f","content":"x"}}}]}]`},
		{"response of role tool", `[{"role":"tool","parts":[{"functionResponse":{"name":"f","response":{"content":"x"}}}]}]`},
		{"text of role function", `[{"role":"function","parts":[{"text":"x"}]}]`},
		{"response with media within", `[{"role":"user","parts":[{"functionResponse":{"id":"a","name":"shot","response":{"image":{"$ref":"s.png"}},"parts":[{"inlineData":{"mimeType":"image/png","displayName":"s.png","data":"` + dialecttest.PNG + `"}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/a.pdf"}},{"strange":1}]}},{"functionResponse":{"name":"g","response":{},"parts":[]}}]}]`},
		{"response with media behind", `[{"role":"user","parts":[{"functionResponse":{"name":"shot","response":{"output":"done"}}},{"inlineData":{"mimeType":"image/png","data":"` + dialecttest.PNG + `"}},{"functionResponse":{"name":"g","response":{"output":"x"}}}]}]`},
		{"responses mixed with text", `[{"role":"user","parts":[{"text":"before"},{"functionResponse":{"name":"f","response":{"output":"1"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}},{"text":"between"},{"functionResponse":{"name":"g","response":{"output":"2"}}},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}],"x":1}]`},
		{"mixed twice in a row", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"text":"a"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"2"}}},{"text":"b"}]},{"role":"user","parts":[{"text":"c"}]}]`},
		{"scheduling", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"},"willContinue":true,"scheduling":"WHEN_IDLE"}}]}]`},
		{"thought summary", `[{"role":"model","parts":[{"thought":true,"text":"**Plan**\n\nAdd."},{"text":"4","thoughtSignature":"Co8BAdHtim+/8=="}]}]`},
		{"thought false and null", `[{"role":"model","parts":[{"thought":false,"text":"a"},{"thought":null,"text":"b"},{"thought":"yes","text":"c"}]}]`},
		{"signature on an empty text", `[{"role":"model","parts":[{"text":"4"},{"text":"","thoughtSignature":"QUJD"}]}]`},
		{"signature alone", `[{"role":"model","parts":[{"text":"4"},{"thoughtSignature":"QUJD"},{"thoughtSignature":"QUJD","thought":true}]}]`},
		{"a large signature", `[{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"` + dialecttest.PNG + `"},"thoughtSignature":"` + strings.Repeat("QUJD", 30_000) + `"}]}]`},
		{"code and its output", `[{"role":"model","parts":[{"text":"Let me run it."},{"executableCode":{"language":"PYTHON","code":"print(6*7)\n"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n"}},{"text":"It is 42."}]}]`},
		{"code that failed, with ids", `[{"role":"model","parts":[{"executableCode":{"id":"c1","language":"PYTHON","code":"1/0"},"thoughtSignature":"QUJD"},{"codeExecutionResult":{"id":"c1","outcome":"OUTCOME_FAILED","output":"ZeroDivisionError"}}]}]`},
		{"code twice, output once empty and once absent", `[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"a"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}},{"executableCode":{"language":"PYTHON","code":"b"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":""}}]}]`},
		{"code without its output", `[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"while 1: pass"}}]},{"role":"model","parts":[{"codeExecutionResult":{"outcome":"OUTCOME_DEADLINE_EXCEEDED"}}]}]`},
		{"code in a user's turn", `[{"role":"user","parts":[{"executableCode":{"language":"PYTHON","code":"a"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}]}]`},
		{"tools of the provider", `[{"role":"model","parts":[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["northernmost city"]},"id":"q1"},"thoughtSignature":"QUJD"},{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"<div>"},"id":"q1"}},{"functionCall":{"id":"f1","name":"getWeather","args":{"city":"Utqiaġvik, Alaska"}},"thoughtSignature":"QUJE"}]}]`},
		{"picture, sound, film and document", `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + dialecttest.PNG + `"}},{"inlineData":{"mimeType":"audio/mp3","data":"UklGRg=="}},{"inlineData":{"mimeType":"video/mp4","data":"UklGRg=="},"videoMetadata":{"startOffset":"10s","endOffset":"20s","fps":1.0}},{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="},"mediaResolution":{"level":"MEDIA_RESOLUTION_HIGH"}},{"text":"What is this?"}]}]`},
		{"files by address", `[{"role":"user","parts":[{"fileData":{"mimeType":"image/jpeg","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc-123"}},{"fileData":{"fileUri":"https://www.youtube.com/watch?v=9hE5-98ZeCg"}},{"fileData":{"mimeType":"audio/wav","fileUri":"gs://bucket/a.wav"}},{"fileData":{"mimeType":"","fileUri":""}}]}]`},
		{"base64 that is none, or not canonical, or of the other alphabet", `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"@@"}},{"inlineData":{"mimeType":"image/png","data":"QQ"}},{"inlineData":{"mimeType":"image/png","data":"QR=="}},{"inlineData":{"mimeType":"image/png","data":"_-8="}},{"inlineData":{"mimeType":"image/png","data":""}},{"inlineData":{"mimeType":"image/png"}},{"inlineData":{"data":"QUJD"}},{"inlineData":{"mimeType":null,"data":7}}]}]`},
		{"a picture that the model made", `[{"role":"model","parts":[{"text":"Here:"},{"inlineData":{"mimeType":"image/png","data":"` + dialecttest.PNG + `"},"thoughtSignature":"QUJD"},{"inlineData":{"mimeType":"image/png","data":"QUJD"},"thought":true}]}]`},
		{"snake case of Python", `[{"role":"user","parts":[{"text":"see"},{"inline_data":{"mime_type":"image/png","data":"QUJD"}},{"file_data":{"file_uri":"gs://b/x.pdf","mime_type":"application/pdf","display_name":"x.pdf"}}]},{"role":"model","parts":[{"function_call":{"id":null,"name":"f","args":{"a":1}},"thought_signature":"QUJD"}]},{"role":"user","parts":[{"function_response":{"will_continue":null,"name":"f","response":{"result":"1"}}}]}]`},
		{"a dump of Python with all its nulls", `[{"parts":[{"video_metadata":null,"thought":null,"inline_data":null,"file_data":null,"thought_signature":null,"function_call":null,"code_execution_result":null,"executable_code":null,"function_response":null,"text":"Hello"},{"text":null,"functionCall":null,"function_call":{"name":"f","args":{}}}],"role":"model"}]`},
		{"both spellings at once", `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","mime_type":"image/jpeg","data":"QUJD"},"inline_data":{"x":1}},{"fileData":{"fileUri":"gs://a","file_uri":"gs://b","displayName":"a","display_name":"b"}}]}]`},
		{"a whole response", `[{"candidates":[{"content":{"parts":[{"text":"Paris."}],"role":"model"},"finishReason":"STOP","index":0,"avgLogprobs":-0.0321}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"totalTokenCount":6,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4}]},"modelVersion":"gemini-2.5-flash","responseId":"abc"}]`},
		{"a whole response with calls", `[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP"}],"modelVersion":"gemini-3-pro"}]`},
		{"a response of Python", `[{"sdk_http_response":{"headers":{"x":"1"}},"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"},"finish_reason":"MAX_TOKENS","token_count":null}],"model_version":"gemini-2.5-pro","prompt_feedback":null,"usage_metadata":{}}]`},
		{"a candidate with its grounding", `[{"content":{"role":"model","parts":[{"text":"Spain won."}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["who won euro 2024"],"searchEntryPoint":{"renderedContent":"<!-- HTML -->"},"groundingChunks":[{"web":{"uri":"https://x/y","title":"z"}}],"groundingSupports":[{"segment":{"startIndex":0,"endIndex":10,"text":"Spain won."},"groundingChunkIndices":[0]}]},"citationMetadata":{"citationSources":[{"startIndex":1,"uri":"https://x"}]},"urlContextMetadata":{"urlMetadata":[]}}]`},
		{"a candidate blocked", `[{"finishReason":"SAFETY","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH","blocked":true}]},{"content":null,"finishReason":"RECITATION"}]`},
		{"a candidate cut short while thinking", `[{"content":{"role":"model"},"finishReason":"MAX_TOKENS","index":0},{"content":{},"finishReason":"MAX_TOKENS"},{"content":{"parts":[{"text":"x"}]},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(x)"}]`},
		{"a prompt blocked", `[{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}},{"candidates":[],"promptFeedback":{"blockReason":"SAFETY"}},{"candidates":null,"modelVersion":"x"}]`},
		{"computer use", `[{"role":"model","parts":[{"text":"I will click."},{"functionCall":{"name":"click_at","args":{"x":371,"y":470,"safety_decision":{"explanation":"cookie banner","decision":"require_confirmation"}}},"thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"functionResponse":{"name":"click_at","response":{"url":"https://x","safety_acknowledgement":"true"},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + dialecttest.PNG + `"}}]}}]}]`},
		{"cache mark of a gateway", `[{"role":"user","parts":[{"text":"long","cache_control":{"type":"ephemeral"}}],"cachePoint":true}]`},
		{"metadata of a part", `[{"role":"user","parts":[{"text":"x","partMetadata":{"a":1}}]}]`},
		{"unknown part", `[{"role":"model","parts":[{"hologram":{"x":1e400},"thought":true},{"functionCall":"text"},{"text":"a","functionCall":{"name":"f"}},{"text":"","functionCall":{"name":"f","args":{}}}]}]`},
		{"unknown fields with numbers as written", `[{"role":"user","parts":[{"text":"x","weight":1.0,"":[]}],"big":123456789012345678901234567890,"tiny":-0.0e-7,"":{},"Role":"other"}]`},
		{"halves and NUL everywhere", `[{"role":"model","parts":[{"text":"cut \ud83d","thoughtSignature":"\u0000"},{"functionCall":{"id":"\u0000","name":"\ud800","args":{"a":"\udc00"}}},{"executableCode":{"id":"\ud800","code":"\u0000"}},{"codeExecutionResult":{"outcome":"\ud800","output":"\u0000"}},{"\ud800":1},{"inlineData":{"mimeType":"\u0000","data":"\ud800"}}],"\ud800":"\u0000"},{"role":"user","parts":[{"functionResponse":{"id":"\u0000","name":"\ud800","response":{"output":"\ud800"}}},{"functionResponse":{"name":"f","response":"\u0000"}},{"fileData":{"fileUri":"\u0000"}}]}]`},
		{"a pair that is whole", `[{"role":"user","parts":[{"text":"\ud83d\ude00 \uFFFD \u00e9 �"}]}]`},
		{
			"escaped names and spaces",
			" [ { \"r\\u006fle\" : \"us\\u0065r\" ,\n" +
				" \"p\\u0061rts\" : [ { \"t\\u0065xt\" : \"x\" } , { \"functi\\u006fnResponse\" : { \"name\" : \"f\" , " +
				"\"response\" : { \"output\" : \"x\" } } } ] } ] ",
		},
		{"a text over the size of a blob", `[{"role":"user","parts":[{"text":"` + strings.Repeat("word ", 20_000) +
			`"},{"functionResponse":{"name":"f","response":{"output":"` + strings.Repeat("line\\n", 20_000) +
			`"}}},{"functionResponse":{"name":"f","response":{"a":"` + strings.Repeat("line\\n", 20_000) + `","b":1}}}]}]`},
		{"large arguments", `[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":"` + strings.Repeat("A", 70_000) + `"}}},{"executableCode":{"code":"` + strings.Repeat("a", 70_000) + `"}},{"codeExecutionResult":{"output":"` + strings.Repeat("a", 70_000) + `"}}]}]`},
		{"large unknown things", `[{"content":{"role":"model","parts":[{"video":"` + strings.Repeat("A", 70_000) +
			`"}],"memo":"` + strings.Repeat("B", 70_000) + `"},"finishReason":"STOP","groundingMetadata":"` +
			strings.Repeat("C", 70_000) + `"}]`},
		{"deep things", `[{"role":"model","parts":[{"tree":` + dialecttest.Nested(1500) + `},{"functionCall":{"name":"f","args":{"t":` + dialecttest.Nested(1500) + `}}}],"tree":` + dialecttest.Nested(1500) + `,"shallow":` + dialecttest.Nested(899) + `},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"t":` + dialecttest.Nested(1500) + `,"u":1}}}]}]`},
	}
}

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
		at("text is a number", `{"role":"user","parts":[{"text":"x"},{"text":7}]}`, session.Invalid,
			"messages[1].parts[1].text"),
		at("a field of a part twice", `{"role":"user","parts":[{"text":"x","text":"y"}]}`, session.Invalid,
			"messages[1].parts[0].text"),
		at("a user's call", `{"role":"user","parts":[{"functionCall":{"name":"f"}}]}`, session.Invalid,
			"messages[1].parts[0].functionCall"),
		at("a user's call in Python's spelling", `{"role":"user","parts":[{"function_call":{"name":"f"}}]}`, session.Invalid,
			"messages[1].parts[0].function_call"),
		at("call without name", `{"role":"model","parts":[{"functionCall":{"args":{}}}]}`, session.Invalid,
			"messages[1].parts[0].functionCall.name"),
		at("call's name is null", `{"role":"model","parts":[{"functionCall":{"name":null}}]}`, session.Invalid,
			"messages[1].parts[0].functionCall.name"),
		at("call's id is a number", `{"role":"model","parts":[{"functionCall":{"name":"f","id":7}}]}`, session.Invalid, "messages[1].parts[0].functionCall.id"),
		at("response without name", `{"role":"user","parts":[{"functionResponse":{"response":{}}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.name"),
		at("a response's field twice", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1,"a":2}}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.response.a"),
		at("a response's part is a text", `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":["x"]}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.parts[0]"),
		at("deep field of a part", `{"role":"user","parts":[{"text":"x","deep":`+dialecttest.Nested(1000)+`}]}`,
			session.TooLarge, "messages[1].parts[0].deep"),
		at("deep field of a medium", `{"role":"user","parts":[{"inlineData":{"deep":`+dialecttest.Nested(1000)+`}}]}`,
			session.TooLarge, "messages[1].parts[0].inlineData.deep"),
		at("too many parts", `{"role":"user","parts":[`+strings.Repeat(`{"text":"x"},`, 1024)+`{"text":"x"}]}`,
			session.Invalid, "messages[1].parts"),
		at("too many parts within", `{"role":"user","parts":[{"functionResponse":{"name":"f","parts":[`+strings.Repeat(`{"inlineData":{}},`, 1023)+`{"inlineData":{}}]}}]}`, session.Invalid, "messages[1].parts[0].functionResponse.parts"),
		at("too many parts together", `{"role":"user","parts":[`+strings.Repeat(`{"functionResponse":{"name":"f","parts":[{"inlineData":{}}]}},`, 600)+`{"functionResponse":{"name":"f"}}]}`, session.Invalid, "messages[1]"),
		at("large field without a name", `{"role":"user","parts":[],"":"`+strings.Repeat("x", 70_000)+`"}`, session.TooLarge,
			"messages[1]."),
		at("several candidates", `{"candidates":[{},{}]}`, session.Invalid, "messages[1].candidates"),
		at("candidates are an object", `{"candidates":{}}`, session.Invalid, "messages[1].candidates"),
		at("a candidate is a text", `{"candidates":["x"]}`, session.Invalid, "messages[1].candidates[0]"),
		at("a candidate's content is a text", `{"candidates":[{"content":"x"}]}`, session.Invalid,
			"messages[1].candidates[0].content"),
		at("a candidate's part is wrong", `{"candidates":[{"content":{"parts":[{"text":7}]}}]}`, session.Invalid,
			"messages[1].candidates[0].content.parts[0].text"),
		at("a candidate of the user", `{"content":{"role":"user","parts":[]}}`, session.Invalid, "messages[1].content.role"),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, gemini.Form(), `{"role":"user","parts":[`, `{"text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, gemini.Form(), `[{"role":"user","parts":[{"text":"cut \ud83d"}]},{"role":"model","parts":[{"hologram":1}]},{"role":"user","parts":[{"text":"fine"}]}]`, "messages[0].parts[0].text", "messages[1].parts[0]")
}

// anyContent generates a content, a candidate or a response that must decode.
func anyContent(r *rapid.T) jsontext.Value {
	role := rapid.SampledFrom([]string{"user", "user", "model", "model", "function", "tool", "system"}).Draw(r, "role")
	reply := rapid.IntRange(0, 4).Draw(r, "around")
	if reply < 2 {
		role = "model"
	}
	fields := []string{`"role":"` + role + `"`}
	switch rapid.IntRange(0, 8).Draw(r, "parts") {
	case 0:
	case 1:
		fields = append(fields, `"parts":null`)
	default:
		fields = append(fields, `"parts":`+dialecttest.AnyArray(rapid.Custom(anyPart(role))).Draw(r, "parts"))
	}
	if rapid.Bool().Draw(r, "more") {
		fields = append(fields, `"x":`+dialecttest.AnyValue(3).Draw(r, "x"))
	}
	content := "{" + strings.Join(fields, ",") + "}"
	if reply > 1 {
		return jsontext.Value(content)
	}
	reason := rapid.SampledFrom([]string{"STOP", "MAX_TOKENS", "SAFETY", "OTHER", "NOVEL"}).Draw(r, "reason")
	candidate := fmt.Sprintf(`{"content":%s,"finishReason":"%s","groundingMetadata":%s}`, content, reason,
		dialecttest.AnyValue(2).Draw(r, "grounding"))
	if reply > 0 {
		return jsontext.Value(candidate)
	}
	return jsontext.Value(fmt.Sprintf(`{"candidates":[%s],"usageMetadata":%s,"modelVersion":%s}`, candidate,
		dialecttest.AnyValue(2).Draw(r, "usage"), dialecttest.AnyValue(0).Draw(r, "version")))
}

func anyPart(role string) func(*rapid.T) string {
	return func(r *rapid.T) string {
		beside := ""
		for _, f := range []string{"thought", "thoughtSignature", "thought_signature", "videoMetadata", "y"} {
			if rapid.IntRange(0, 5).Draw(r, "has "+f) == 0 {
				beside += `,"` + f + `":` + dialecttest.AnyValue(1).Draw(r, f)
			}
		}
		snake := rapid.Bool().Draw(r, "snake")
		pick := func(camel, other string) string {
			if snake {
				return other
			}
			return camel
		}
		name := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + beside + "}" }
		most := 9
		if role != "model" {
			most = 8
		}
		switch rapid.IntRange(0, most).Draw(r, "part") {
		case 0:
			return name(`{"%s":%s`, pick("inlineData", "inline_data"), anyInline(r, snake))
		case 1:
			return name(`{"%s":{"%s":%s,"%s":%s,"z":%s}`, pick("fileData", "file_data"), pick("mimeType", "mime_type"),
				dialecttest.AnyValue(0).Draw(r, "type"), pick("fileUri", "file_uri"), dialecttest.AnyValue(0).Draw(r, "uri"),
				dialecttest.AnyValue(1).Draw(r, "z"))
		case 2:
			return name(`{"%s":%s`, pick("executableCode", "executable_code"), dialecttest.AnyValue(2).Draw(r, "code"))
		case 3:
			return name(`{"executableCode":{"language":"PYTHON","code":%s,"id":%s}`, dialecttest.AnyText().Draw(r, "code"),
				anyID().Draw(r, "id"))
		case 4:
			return name(`{"codeExecutionResult":{"outcome":%s,"output":%s,"id":%s}`, dialecttest.AnyValue(0).Draw(r, "outcome"),
				dialecttest.AnyValue(0).Draw(r, "output"), anyID().Draw(r, "id"))
		case 5:
			return name(`{"%s":{"name":%s,"id":%s,"response":%s,"parts":[{"inlineData":%s}]}`, pick("functionResponse", "function_response"), dialecttest.AnyText().Draw(r, "name"), anyID().Draw(r, "id"), dialecttest.AnyValue(2).Draw(r, "response"), anyInline(r, snake))
		case 6:
			return name(`{"functionResponse":{"name":"f","response":{"%s":%s}}`,
				rapid.SampledFrom([]string{"output", "error", "", "k"}).Draw(r, "key"), dialecttest.AnyValue(1).Draw(r, "value"))
		case 7:
			return name(`{"other":%s`, dialecttest.AnyValue(3).Draw(r, "other"))
		case 8:
			return name(`{"text":%s`, dialecttest.AnyText().Draw(r, "text"))
		}
		return name(`{"%s":{"name":%s,"id":%s,"args":%s}`, pick("functionCall", "function_call"),
			dialecttest.AnyText().Draw(r, "name"), anyID().Draw(r, "id"), dialecttest.AnyValue(2).Draw(r, "args"))
	}
}

func anyInline(r *rapid.T, snake bool) string {
	field := "mimeType"
	if snake {
		field = "mime_type"
	}
	return fmt.Sprintf(`{"%s":%s,"data":"%s"}`, field, rapid.SampledFrom([]string{
		`"image/png"`, `"audio/wav"`,
		`"video/mp4"`, `""`, "null", `"\ud800"`,
	}).Draw(r, "type"), dialecttest.AnyBase64().Draw(r, "data"))
}

func anyID() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"null", `""`, `"a"`, `"b"`, `"\u0000"`, `"made_f_1"`})
}

// A part in both spellings is none that its columns give back: it keeps its own JSON, but not
// the bytes in it.
func TestAPartThatDoesNotComeBackKeepsItsOwnJSONWithoutBytes(t *testing.T) {
	contents := dialecttest.List(t, `[{"role":"user","parts":[{"inline_data":{"mimeType":"image/png","data":"QUJD"}}]}]`)
	decoded := testkit.Must(gemini.Decode(contents))(t)
	p := &decoded.Messages[0].Parts[0]
	if extra := string(p.Extra); !strings.Contains(extra,
		`"raw":{"inline_data":{"mimeType":"image/png","data":"blob:`+p.Blob.SHA256) || strings.Contains(extra, "QUJD") {
		t.Errorf("extra %s", extra)
	}
	dialecttest.RoundTrip(t, gemini.Form(), contents)
}
