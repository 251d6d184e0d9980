package openaichat_test

import "strings"

// wireCase is something that a provider's SDK or server really gives, or a user really posts.
type wireCase struct{ name, messages string }

// png is the smallest picture there is.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func wireCases() []wireCase {
	return []wireCase{
		{"plain turns", `[{"role":"system","content":"Be short."},{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}]`},
		{"developer", `[{"role":"developer","content":"Be short."}]`},
		{"developer in parts", `[{"role":"developer","content":[{"type":"text","text":"Be"},{"type":"text","text":" short."}]}]`},
		{"named users of a group", `[{"role":"user","name":"ann_lee","content":"hi"},{"role":"user","name":"张三","content":"你好"}]`},
		{"reply of the SDK", `[{"role":"assistant","content":"Paris.","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":null}]`},
		{"reply of the SDK with empty calls", `[{"role":"assistant","content":"Paris.","tool_calls":[]}]`},
		{"choice", `[{"index":0,"message":{"role":"assistant","content":"Paris.","refusal":null},"logprobs":null,"finish_reason":"stop"}]`},
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
		{"result with a picture first", `[{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}},{"type":"text","text":"seen","cache_control":{"type":"ephemeral"}},{"type":"text","text":"more"}]}]`},
		{"result of pictures only", `[{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`},
		{"result empty, null, absent", `[{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"a","content":null},{"role":"tool","tool_call_id":"a"},{"role":"tool","tool_call_id":"a","content":[]}]`},
		{"result with a name", `[{"role":"tool","tool_call_id":"a","name":"ls","content":"x"}]`},
		{"refusal", `[{"role":"assistant","content":null,"refusal":"I cannot help with that."}]`},
		{"refusal in content", `[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]`},
		{"empty refusal and reasoning", `[{"role":"assistant","content":"x","refusal":"","reasoning_content":""}]`},
		{"reasoning of DeepSeek", `[{"role":"assistant","content":"4","reasoning_content":"2 + 2"}]`},
		{"reasoning of OpenRouter", `[{"role":"assistant","content":"4","reasoning":"2 + 2","reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA+/==","index":0}]}]`},
		{"reasoning of another kind", `[{"role":"assistant","content":"4","reasoning":{"effort":1},"reasoning_content":null}]`},
		{"picture as bytes", `[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `","detail":"high"}}]}]`},
		{"picture as bytes with a parameter", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;name=a.png;base64,` + png + `"}}]}]`},
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
		{"spaces between", " [ { \"role\" : \"assistant\" ,\n \"content\" : [ { \"type\" : \"text\" , \"text\" : \"x\" } ] , \"tool_calls\" : [ ] , \"n\" : { } } ] "},
		{"a text over the size of a blob", `[{"role":"user","content":"` + strings.Repeat("word ", 20_000) + `"},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"` + strings.Repeat("line\\n", 20_000) + `"}]}]`},
		{"a large unknown element and field", `[{"role":"user","content":[{"type":"video","data":"` + strings.Repeat("A", 70_000) + `"}],"memo":"` + strings.Repeat("B", 70_000) + `"}]`},
		{"large halves", `[{"role":"user","content":"` + strings.Repeat("x", 70_000) + `\ud800"}]`},
		{"a deep unknown field and element", `[{"role":"user","content":[{"type":"tree","t":` + nested(1500) + `}],"tree":` + nested(1500) + `,"shallow":` + nested(899) + `}]`},
		{"a long transcript", `[{"role":"assistant","content":null,"audio":{"id":"a","data":"QUJD","transcript":"` + strings.Repeat("so ", 30_000) + `"}}]`},
		{"a large spaced empty array", `[{"role":"assistant","content":"x","tool_calls":[` + strings.Repeat(" ", 70_000) + `]}]`},
	}
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
