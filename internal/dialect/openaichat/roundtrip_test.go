package openaichat_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, openaichat.Form(), wireCases())
}

func TestAnyMessageComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, openaichat.Form(), anyMessage)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, openaichat.Form(), wireCases())
}

func wireCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"plain turns", `[{"role":"system","content":"Be short."},{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}]`},
		{"developer", `[{"role":"developer","content":"Be short."}]`},
		{"developer in parts", `[{"role":"developer","content":[{"type":"text","text":"Be"},{"type":"text","text":" short."}]}]`},
		{"named users of a group", `[{"role":"user","name":"ann_lee","content":"hi"},{"role":"user","name":"张三","content":"你好"}]`},
		{"reply of the SDK", `[{"role":"assistant","content":"Paris.","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":null}]`},
		{"reply of the SDK with empty calls", `[{"role":"assistant","content":"Paris.","tool_calls":[]}]`},
		{"choice", `[{"index":0,"message":{"role":"assistant","content":"Paris.","refusal":null},"logprobs":null,"finish_reason":"stop"}]`},
		{"completion", `[{"id":"chatcmpl-1","object":"chat.completion","created":1770000000,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Paris."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11},"system_fingerprint":null}]`},
		{"choice cut short", `[{"index":0,"message":{"role":"assistant","content":"Par"},"finish_reason":"length"}]`},
		{"choice without anything around", `[{"message":{"role":"assistant","content":"x"}}]`},
		{"web citations", `[{"role":"assistant","content":"See it.","annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":7,"url":"https://example.com/?a=1&b=<2>","title":"T"}}]}]`},
		{"call and result", `[{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Köln\",  \"days\":1.0}"}}]},{"role":"tool","tool_call_id":"call_1","content":"{\"t\": 7}"}]`},
		{"call beside text", `[{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"ls","arguments":"{}"}}]}]`},
		{"call with content absent", `[{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"ls","arguments":""}}]}]`},
		{"call with content empty", `[{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"ls","arguments":"{}"}}]}]`},
		{"call with content an empty array", `[{"role":"assistant","content":[],"tool_calls":[{"id":"call_1","type":"function","function":{"name":"ls","arguments":"{}"}}]}]`},
		{"parallel calls", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"a","content":"1"}]`},
		{"the same id twice", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]`},
		{"arguments that are no JSON", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"city\": \"K"}}]}]`},
		{"arguments with escapes of escapes", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":\"\\ud83d\\u0000<&>\\n\"}"}}]}]`},
		{"arguments as an object (Ollama)", `[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{"n":1.50, "big":12345678901234567890}}}]}]`},
		{"arguments null or absent", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":null}},{"id":"b","type":"function","function":{"name":"f"}}]}]`},
		{"call with a vendor's fields", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","index":0,"type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"CpwC+/=="}}}]}]`},
		{"custom tool", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"code_exec","input":"print(\"hi\")"}}]},{"role":"tool","tool_call_id":"a","content":"hi"}]`},
		{"call of an unknown type", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"mcp","mcp":{"x":1e400}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}]`},
		{"function_call of old", `[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"7"}]`},
		{"function_call beside tool_calls", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"f","arguments":"{}"}}]`},
		{"result in parts", `[{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]`},
		{"result with a picture first", `[{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + dialecttest.PNG + `"}},{"type":"text","text":"seen","cache_control":{"type":"ephemeral"}},{"type":"text","text":"more"}]}]`},
		{"result of pictures only", `[{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`},
		{"result empty, null, absent", `[{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"a","content":null},{"role":"tool","tool_call_id":"a"},{"role":"tool","tool_call_id":"a","content":[]}]`},
		{"result with a name", `[{"role":"tool","tool_call_id":"a","name":"ls","content":"x"}]`},
		{"refusal", `[{"role":"assistant","content":null,"refusal":"I cannot help with that."}]`},
		{"refusal in content", `[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]`},
		{"empty refusal and reasoning", `[{"role":"assistant","content":"x","refusal":"","reasoning_content":""}]`},
		{"reasoning of DeepSeek", `[{"role":"assistant","content":"4","reasoning_content":"2 + 2"}]`},
		{"reasoning of OpenRouter", `[{"role":"assistant","content":"4","reasoning":"2 + 2","reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA+/==","index":0}]}]`},
		{"reasoning of another kind", `[{"role":"assistant","content":"4","reasoning":{"effort":1},"reasoning_content":null}]`},
		{"picture as bytes", `[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + dialecttest.PNG + `","detail":"high"}}]}]`},
		{"picture as bytes with a parameter", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;name=a.png;base64,` + dialecttest.PNG + `"}}]}]`},
		{"picture by URL", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png?x=1&y=2"}}]}]`},
		{"picture by bare URL", `[{"role":"user","content":[{"type":"image_url","image_url":"https://example.com/a.png"}]}]`},
		{"base64 that is none", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,@@@"}},{"type":"input_audio","input_audio":{"data":"***","format":"wav"}},{"type":"file","file":{"filename":"a","file_data":"nope"}}]}]`},
		{"base64 that is not canonical", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,QR=="}},{"type":"image_url","image_url":{"url":"data:image/png;base64,Q\nQ=="}},{"type":"image_url","image_url":{"url":"data:,plain"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]}]`},
		{"the same bytes under two types", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,QUJD"}}]}]`},
		{"sound", `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}]`},
		{"file by id and by bytes", `[{"role":"user","content":[{"type":"file","file":{"file_id":"file-abc"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}]`},
		{"spoken reply", `[{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"UklGRg==","expires_at":1729018505,"transcript":"Hello"}}]`},
		{"spoken reply by id", `[{"role":"assistant","audio":{"id":"audio_1"}}]`},
		{"spoken reply with an empty transcript", `[{"role":"assistant","audio":{"id":"audio_1","transcript":"","data":""}}]`},
		{"cache mark", `[{"role":"user","content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral"}}]}]`},
		{"unknown element", `[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://example.com/v"},"fps":1.0}]}]`},
		{"empty text element", `[{"role":"user","content":[{"type":"text","text":""}]}]`},
		{"empty, null and absent user content", `[{"role":"user","content":""},{"role":"user","content":null},{"role":"user"},{"role":"user","content":[]}]`},
		{"unknown fields with numbers as written", `[{"role":"user","content":"x","weight":1.0,"big":123456789012345678901234567890,"tiny":-0.0e-7,"":[],"Role":"other"}]`},
		{"half a surrogate pair in text", `[{"role":"user","content":"cut \ud83d here"},{"role":"user","content":[{"type":"text","text":"\udc00"}]}]`},
		{"NUL in text", `[{"role":"tool","tool_call_id":"a","content":"a\u0000b"}]`},
		{"NUL and halves everywhere", `[{"role":"assistant","name":"a\u0000","content":"\ud800","refusal":"\u0000","reasoning":"\udfff","audio":{"id":"\ud800","transcript":"\u0000"},"tool_calls":[{"id":"\u0000","type":"function","function":{"name":"\ud800","arguments":"\u0000"}}],"function_call":{"name":"\u0000","arguments":"\ud800"},"\ud800":"\u0000","x":{"\udc00":1}}]`},
		{"NUL in a picture's URL and a type", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://a\u0000","detail":"\ud800"}},{"type":"te\u0000xt"},{"type":"file","file":{"filename":"\u0000","file_id":"\ud800"}}]}]`},
		{"a pair that is whole", `[{"role":"user","content":"\ud83d\ude00 \uFFFD \u00e9"}]`},
		{"U+FFFD as it is", `[{"role":"user","content":"� �"}]`},
		{"escaped names of fields", `[{"r\u006fle":"us\u0065r","c\u006fntent":"x"}]`},
		{
			"spaces between",
			" [ { \"role\" : \"assistant\" ,\n" +
				" \"content\" : [ { \"type\" : \"text\" , \"text\" : \"x\" } ] , \"tool_calls\" : [ ] , \"n\" : { } } ] ",
		},
		{"a text over the size of a blob", `[{"role":"user","content":"` + strings.Repeat("word ", 20_000) + `"},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"` + strings.Repeat("line\\n", 20_000) + `"}]}]`},
		{"a large unknown element and field", `[{"role":"user","content":[{"type":"video","data":"` +
			strings.Repeat("A", 70_000) + `"}],"memo":"` + strings.Repeat("B", 70_000) + `"}]`},
		{"large halves", `[{"role":"user","content":"` + strings.Repeat("x", 70_000) + `\ud800"}]`},
		{"a deep unknown field and element", `[{"role":"user","content":[{"type":"tree","t":` + dialecttest.Nested(1500) +
			`}],"tree":` + dialecttest.Nested(1500) + `,"shallow":` + dialecttest.Nested(899) + `}]`},
		{"a long transcript", `[{"role":"assistant","content":null,"audio":{"id":"a","data":"QUJD","transcript":"` + strings.Repeat("so ", 30_000) + `"}}]`},
		{"a large spaced empty array", `[{"role":"assistant","content":"x","tool_calls":[` + strings.Repeat(" ", 70_000) +
			`]}]`},
	}
}

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
		at("element with a null type", `{"role":"user","content":[{"type":null}]}`, session.Invalid,
			"messages[1].content[0].type"),
		at("text is missing", `{"role":"user","content":[{"type":"text"}]}`, session.Invalid, "messages[1].content[0].text"),
		at("text is null", `{"role":"user","content":[{"type":"text","text":null}]}`, session.Invalid,
			"messages[1].content[0].text"),
		at("picture without URL", `{"role":"user","content":[{"type":"image_url","image_url":{}}]}`, session.Invalid, "messages[1].content[0].image_url.url"),
		at("picture is a number", `{"role":"user","content":[{"type":"image_url","image_url":1}]}`, session.Invalid, "messages[1].content[0].image_url"),
		at("sound is missing", `{"role":"user","content":[{"type":"input_audio"}]}`, session.Invalid,
			"messages[1].content[0].input_audio"),
		at("file is an array", `{"role":"user","content":[{"type":"file","file":[]}]}`, session.Invalid,
			"messages[1].content[0].file"),
		at("deep field of an element", `{"role":"user","content":[{"type":"text","text":"x","deep":`+dialecttest.Nested(1000)+`}]}`, session.TooLarge, "messages[1].content[0].deep"),
		at("name is a number", `{"role":"user","name":1}`, session.Invalid, "messages[1].name"),
		at("result without its call", `{"role":"tool","content":"x"}`, session.Invalid, "messages[1].tool_call_id"),
		at("result of a null", `{"role":"tool","tool_call_id":null,"content":"x"}`, session.Invalid,
			"messages[1].tool_call_id"),
		at("a user's calls", `{"role":"user","content":"x","tool_calls":[{}]}`, session.Invalid, "messages[1].tool_calls"),
		at("calls are an object", `{"role":"assistant","tool_calls":{}}`, session.Invalid, "messages[1].tool_calls"),
		at("call is a string", `{"role":"assistant","tool_calls":["x"]}`, session.Invalid, "messages[1].tool_calls[0]"),
		at("call without id", `{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`, session.Invalid, "messages[1].tool_calls[0].id"),
		at("call of type null", `{"role":"assistant","tool_calls":[{"id":"a","type":null}]}`, session.Invalid,
			"messages[1].tool_calls[0].type"),
		at("call without function", `{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]}`, session.Invalid, "messages[1].tool_calls[0].function"),
		at("function without name", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"arguments":"{}"}}]}`, session.Invalid, "messages[1].tool_calls[0].function.name"),
		at("arguments are a number", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":7}}]}`, session.Invalid, "messages[1].tool_calls[0].function.arguments"),
		at("custom input is a boolean", `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":true}}]}`, session.Invalid, "messages[1].tool_calls[0].custom.input"),
		at("function_call is a string", `{"role":"assistant","function_call":"f"}`, session.Invalid,
			"messages[1].function_call"),
		at("refusal is a boolean", `{"role":"assistant","refusal":true}`, session.Invalid, "messages[1].refusal"),
		at("audio is a string", `{"role":"assistant","audio":"x"}`, session.Invalid, "messages[1].audio"),
		at("message of a choice is null", `{"message":null,"finish_reason":"stop"}`, session.Invalid, "messages[1].message"),
		at("message of a choice is wrong", `{"message":{"role":"assistant","content":7},"finish_reason":"stop"}`, session.Invalid, "messages[1].message.content"),
		at("too many parts", `{"role":"user","content":[`+strings.Repeat(`{"type":"text","text":"x"},`,
			1024)+`{"type":"text","text":"x"}]}`, session.Invalid, "messages[1].content"),
		at("too many parts together",
			`{"role":"assistant","reasoning":"x","content":[`+strings.Repeat(`{"type":"text","text":"x"},`,
				1023)+`{"type":"text","text":"x"}]}`, session.Invalid, "messages[1]"),
		at("too many calls", `{"role":"assistant","tool_calls":[`+strings.Repeat(`{},`, 1024)+`{}]}`, session.Invalid,
			"messages[1].tool_calls"),
		at("large field without a name", `{"role":"user","content":"x","":"`+strings.Repeat("x", 70_000)+`"}`,
			session.TooLarge, "messages[1]."),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, openaichat.Form(), `{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, openaichat.Form(), `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"video_url"}]},{"role":"user","content":"fine"}]`, "messages[0].content", "messages[1].content[0]")
}

// anyMessage generates a message that must decode.
func anyMessage(r *rapid.T) jsontext.Value {
	role := rapid.SampledFrom([]string{"system", "developer", "user", "assistant", "tool", "function"}).Draw(r, "role")
	fields := []string{`"role":"` + role + `"`}
	maybe := func(name string, value *rapid.Generator[string]) {
		if rapid.Bool().Draw(r, "has "+name) {
			fields = append(fields, `"`+name+`":`+value.Draw(r, name))
		}
	}
	maybe("content", rapid.OneOf(dialecttest.AnyText(), rapid.Just("null"),
		dialecttest.AnyArray(rapid.Custom(anyElement))))
	maybe("name", rapid.OneOf(dialecttest.AnyText(), rapid.Just("null")))
	switch role {
	case "tool":
		fields = append(fields, `"tool_call_id":`+dialecttest.AnyText().Draw(r, "tool_call_id"))
	case "assistant":
		maybe("refusal", rapid.OneOf(dialecttest.AnyText(), rapid.Just("null")))
		maybe("reasoning", dialecttest.AnyValue(2))
		maybe("reasoning_content", dialecttest.AnyText())
		maybe("tool_calls", rapid.OneOf(dialecttest.AnyArray(rapid.Custom(anyCall)), rapid.Just("null")))
		maybe("function_call", rapid.OneOf(rapid.Custom(anyFunction("arguments")), rapid.Just("null")))
		maybe("audio", rapid.OneOf(rapid.Custom(anyAudio), rapid.Just("null")))
	}
	maybe("annotations", dialecttest.AnyValue(3))
	maybe("x", dialecttest.AnyValue(3))
	return jsontext.Value("{" + strings.Join(fields, ",") + "}")
}

func anyElement(r *rapid.T) string {
	extra := ""
	if rapid.Bool().Draw(r, "marked") {
		extra = `,"cache_control":` + dialecttest.AnyValue(2).Draw(r, "mark")
	}
	inner := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + extra + "}" }
	switch rapid.IntRange(0, 6).Draw(r, "element") {
	case 0:
		return inner(`{"type":"refusal","refusal":%s`, dialecttest.AnyText().Draw(r, "refusal"))
	case 1:
		return inner(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s","more":%s}`, dialecttest.AnyBase64().Draw(r, "bytes"), dialecttest.AnyValue(1).Draw(r, "more"))
	case 2:
		return inner(`{"type":"image_url","image_url":{"detail":%s,"url":%s}`, dialecttest.AnyValue(1).Draw(r, "detail"),
			dialecttest.AnyText().Draw(r, "url"))
	case 3:
		return inner(`{"type":"input_audio","input_audio":{"data":"%s","format":%s}`, dialecttest.AnyBase64().Draw(r, "bytes"), dialecttest.AnyValue(1).Draw(r, "format"))
	case 4:
		return inner(`{"type":"file","file":{"filename":%s,"file_id":%s,"file_data":"data:a/b;base64,%s"}`, dialecttest.AnyValue(1).Draw(r, "filename"), dialecttest.AnyValue(1).Draw(r, "id"), dialecttest.AnyBase64().Draw(r, "bytes"))
	case 5:
		return inner(`{"type":"other","other":%s`, dialecttest.AnyValue(3).Draw(r, "other"))
	}
	return inner(`{"type":"text","text":%s`, dialecttest.AnyText().Draw(r, "text"))
}

func anyCall(r *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(r, "call") {
	case 0:
		return fmt.Sprintf(`{"id":%s,"type":"custom","custom":%s}`, dialecttest.AnyText().Draw(r, "id"),
			anyFunction("input")(r))
	case 1:
		return fmt.Sprintf(`{"id":%s,"function":%s,"index":%s}`, dialecttest.AnyText().Draw(r, "id"),
			anyFunction("arguments")(r), dialecttest.AnyNumber().Draw(r, "index"))
	case 2:
		return fmt.Sprintf(`{"type":"mcp","x":%s}`, dialecttest.AnyValue(2).Draw(r, "x"))
	}
	return fmt.Sprintf(`{"id":%s,"type":"function","function":%s}`, dialecttest.AnyText().Draw(r, "id"),
		anyFunction("arguments")(r))
}

func anyFunction(arguments string) func(*rapid.T) string {
	return func(r *rapid.T) string {
		name := dialecttest.AnyText().Draw(r, "function")
		switch rapid.IntRange(0, 3).Draw(r, "arguments") {
		case 0:
			return fmt.Sprintf(`{"name":%s}`, name)
		case 1:
			return fmt.Sprintf(`{"name":%s,"%s":null,"y":%s}`, name, arguments, dialecttest.AnyValue(2).Draw(r, "y"))
		case 2:
			return fmt.Sprintf(`{"name":%s,"%s":%s}`, name, arguments,
				dialecttest.AnyArray(dialecttest.AnyValue(1)).Draw(r, "array"))
		}
		return fmt.Sprintf(`{"name":%s,"%s":%s}`, name, arguments, dialecttest.AnyText().Draw(r, "text"))
	}
}

func anyAudio(r *rapid.T) string {
	return fmt.Sprintf(`{"id":%s,"data":"%s","transcript":%s}`, dialecttest.AnyText().Draw(r, "id"),
		dialecttest.AnyBase64().Draw(r, "data"), dialecttest.AnyValue(1).Draw(r, "transcript"))
}
