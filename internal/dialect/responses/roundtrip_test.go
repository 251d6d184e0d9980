package responses_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, responses.Form(), wireCases())
}

func TestAnyItemComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, responses.Form(), anyInput)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, responses.Form(), wireCases())
}

// encrypted is reasoning as the API gives it with include: reasoning.encrypted_content.
const encrypted = "gAAAAABo+/Ab-c_D9=="

func wireCases() []dialecttest.Case {
	return slices.Concat(messageCases(), callCases(), hostedCases(), responseCases(), oddCases())
}

func messageCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"plain turns", `[{"role":"system","content":"Be short."},{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}]`},
		{"messages that say so", `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":"Hello!"}]`},
		{"developer", `[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be"},{"type":"input_text","text":" short."}]},{"role":"developer","content":"x"}]`},
		{"input of elements", `[{"role":"user","content":[{"type":"input_text","text":"what is this?"},{"type":"input_image","detail":"high","image_url":"https://example.com/a.png?x=1&y=<2>"},{"type":"input_image","detail":"auto","file_id":"file-abc123","image_url":null}]}]`},
		{"output of the API", `[{"id":"msg_67b73f697ba4819183a15cc17d011509","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Under the moon","annotations":[],"logprobs":[]}]}]`},
		{"output of several elements", `[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"No."},{"type":"output_text","text":"b","annotations":[]}]}]`},
		{"refusal", `[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"I cannot help with that."}]}]`},
		{"cut short", `[{"id":"msg_1","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Par","annotations":[]}]}]`},
		{"citations", `[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"See it.","annotations":[{"type":"url_citation","start_index":0,"end_index":7,"url":"https://example.com/?a=1&b=<2>","title":"T"},{"type":"file_citation","index":992,"file_id":"file-2dt","filename":"deep.pdf"},{"type":"container_file_citation","container_id":"cntr_1","file_id":"cfile_1","start_index":0,"end_index":3,"filename":"plot.png"},{"type":"file_path","file_id":"file-1","index":3}]}]}]`},
		{"phases", `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}],"phase":"commentary"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}],"phase":"final_answer"}]`},
		{"empty, null and absent content", `[{"role":"user","content":""},{"role":"user","content":null},{"role":"user"},{"role":"user","content":[]},{"type":"message","role":"assistant","content":[]},{"type":"message","role":"assistant","content":""}]`},
		{"empty texts", `[{"role":"user","content":[{"type":"input_text","text":""}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"","annotations":[]}]}]`},
		{"picture as bytes", `[{"role":"user","content":[{"type":"input_text","text":"what?"},{"type":"input_image","image_url":"data:image/png;base64,` + dialecttest.PNG + `","detail":"low"}]}]`},
		{"files", `[{"role":"user","content":[{"type":"input_file","file_id":"file-6F2ksmvXxt4VdoqmHRw6kL"},{"type":"input_file","file_url":"https://example.com/letter.pdf"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="},{"type":"input_file","filename":"b.pdf","file_data":"JVBERi0="},{"type":"input_file","filename":"c.txt","file_data":"QUJD"},{"type":"input_file","file_data":"QUJD","file_id":null}]}]`},
		{"sound", `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"input_audio","input_audio":{"format":"mp3","data":"UklGRg==","x":1}},{"type":"input_audio","audio_url":"data:audio/wav;base64,UklGRg=="},{"type":"input_audio","audio_url":"https://example.com/a.wav"},{"type":"input_audio"}]}]`},
		{"texts of the wrong side", `[{"role":"user","content":[{"type":"output_text","text":"quoted"},{"type":"text","text":"x"}]},{"type":"message","role":"assistant","content":[{"type":"input_text","text":"x"}]}]`},
		{"a name", `[{"role":"user","name":"ann","content":"hi"},{"role":"user","name":7,"content":"hi"}]`},
		{"cache mark", `[{"role":"user","content":[{"type":"input_text","text":"long","cache_control":{"type":"ephemeral"}}]}]`},
		{"unknown element", `[{"role":"user","content":[{"type":"input_video","video_url":"https://example.com/v","fps":1.0}]},{"content":[{"type":"input_video"}],"role":"user"}]`},
	}
}

func callCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"call and output", `[{"type":"function_call","id":"fc_12345xyz","call_id":"call_12345xyz","name":"get_weather","arguments":"{\"location\": \"Köln\",  \"days\":1.0}","status":"completed"},{"type":"function_call_output","call_id":"call_12345xyz","output":"{\"t\": 7}"}]`},
		{"reasoning, calls, text of one reply", `[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + encrypted + `"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"},{"type":"function_call","id":"fc_2","call_id":"call_2","name":"g","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"call_2","output":"2"},{"type":"function_call_output","call_id":"call_1","output":"1"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}]`},
		{"the same id twice", `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"function_call_output","call_id":"a","output":"2"}]`},
		{"output before its call", `[{"type":"function_call_output","call_id":"a","output":"1"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]`},
		{"arguments that are no JSON", `[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"city\": \"K"},{"type":"function_call","call_id":"b","name":"f","arguments":""}]`},
		{"arguments with escapes of escapes", `[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":\"\\ud83d\\u0000<&>\\n\"}"}]`},
		{"arguments as an object, null, absent", `[{"type":"function_call","call_id":"a","name":"f","arguments":{"n":1.50, "big":12345678901234567890}},{"type":"function_call","call_id":"b","name":"f","arguments":null},{"type":"function_call","call_id":"c","name":"f"}]`},
		{"a call in a namespace", `[{"type":"function_call","call_id":"a","name":"list_orders","namespace":"crm","arguments":"{}"}]`},
		{"an empty call id", `[{"type":"function_call","call_id":"","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"","output":"x"}]`},
		{"output of elements", `[{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:image/png;base64,` + dialecttest.PNG + `"},{"type":"input_text","text":"seen"},{"type":"input_text","text":"more"},{"type":"input_file","file_id":"file-1"}]}]`},
		{"outputs of little", `[{"type":"function_call_output","call_id":"a","output":""},{"type":"function_call_output","call_id":"a","output":null},{"type":"function_call_output","call_id":"a"},{"type":"function_call_output","call_id":"a","output":[]},{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`},
		{"output as an object of old", `[{"type":"function_call_output","call_id":"a","output":{"content":"x","success":false}}]`},
		{"output without a call id, with a name", `[{"type":"function_call_output","call_id":null,"name":"exec","output":"x"}]`},
		{"custom tool", `[{"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"call_1","name":"apply_patch","input":"*** Begin Patch\n*** End Patch\n"},{"type":"custom_tool_call_output","call_id":"call_1","output":"Success."},{"type":"custom_tool_call_output","call_id":"call_1","output":[{"type":"input_text","text":"x"}]}]`},
		{"local shell", `[{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","status":"completed","action":{"type":"exec","command":["ls","-l"],"env":{},"timeout_ms":1000,"user":null,"working_directory":"/x"}},{"type":"local_shell_call_output","id":"call_1","output":"a.go","status":"completed"},{"type":"local_shell_call","call_id":null,"status":"completed","action":{"type":"exec","command":[]}},{"type":"local_shell_call_output","call_id":"call_2","id":"lsho_1","output":"a"}]`},
		{"shell", `[{"type":"shell_call","id":"sh_1","call_id":"call_1","status":"completed","action":{"commands":["ls","pwd"],"timeout_ms":1000,"max_output_length":4096},"environment":null},{"type":"shell_call_output","id":"sho_1","call_id":"call_1","max_output_length":4096,"output":[{"stdout":"a\n","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"no","outcome":{"type":"timeout"}}]},{"type":"shell_call_output","call_id":"call_1"},{"type":"shell_call_output","call_id":"call_1","output":[]}]`},
		{"patch", `[{"type":"apply_patch_call","id":"apc_1","call_id":"call_1","status":"completed","operation":{"type":"update_file","path":"a.go","diff":"@@\n-a\n+b\n"}},{"type":"apply_patch_call_output","call_id":"call_1","status":"failed","output":"no such file"},{"type":"apply_patch_call_output","call_id":"call_1","status":"completed"}]`},
		{"computer use", `[{"type":"computer_call","id":"cu_67cc","call_id":"call_1","action":{"type":"click","button":"left","x":156,"y":50},"pending_safety_checks":[{"id":"cu_sc_1","code":"malicious_instructions","message":"Careful."}],"status":"completed"},{"type":"computer_call_output","call_id":"call_1","acknowledged_safety_checks":[{"id":"cu_sc_1","code":"malicious_instructions","message":"Careful."}],"output":{"type":"computer_screenshot","image_url":"data:image/png;base64,` + dialecttest.PNG + `"}},{"type":"computer_call_output","call_id":"call_1","output":{"type":"input_image","file_id":"file-1","current_url":"https://example.com"}}]`},
		{"computer use, several actions", `[{"type":"computer_call","id":"cu_1","call_id":"call_1","actions":[{"type":"screenshot"},{"type":"wait"}],"status":"completed"}]`},
		{"tool search", `[{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"client","arguments":{"goal":"orders", "n": 1.0},"status":"completed"},{"type":"tool_search_output","call_id":"call_1","execution":"client","status":"completed","tools":[{"type":"function","name":"f","parameters":{}}]},{"type":"tool_search_call","call_id":null,"execution":"server","arguments":{}},{"type":"tool_search_output","call_id":null,"execution":"server","tools":[]}]`},
		{"reasoning with a summary", `[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Adding**"},{"type":"summary_text","text":"2 + 2"}],"encrypted_content":"` + encrypted + `","status":null}]`},
		{"reasoning of open models", `[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}]`},
		{"reasoning of Codex", `[{"type":"reasoning","summary":[{"type":"summary_text","text":"**Plan**"}],"content":null,"encrypted_content":"` + encrypted + `"},{"type":"reasoning","id":"rs_2","summary":[],"content":[{"type":"text","text":"raw"}],"encrypted_content":null}]`},
		{"reasoning in odd shapes", `[{"type":"reasoning"},{"type":"reasoning","summary":null,"content":""},{"type":"reasoning","summary":"told","content":7},{"type":"reasoning","summary":[{"type":"other","x":1},{"type":"summary_text","text":"t","y":2}],"content":[{"type":"reasoning_text","text":"a"},{"type":"refusal","refusal":"b"}]}]`},
	}
}

func hostedCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"web search", `[{"type":"web_search_call","id":"ws_67c9","status":"completed","action":{"type":"search","query":"news","queries":["news","today"],"sources":[{"type":"url","url":"https://example.com/a"}]}},{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"open_page","url":"https://example.com/?a=<b>"}},{"type":"web_search_call","id":"ws_3","status":"completed","action":{"type":"find_in_page","url":"https://example.com","pattern":"x"}}]`},
		{"web search of Codex", `[{"type":"web_search_call","status":"completed"},{"type":"web_search_call","status":"completed","action":{"type":"search"}},{"type":"web_search_call","action":null},{"type":"web_search_call","action":{"type":""}}]`},
		{"file search", `[{"type":"file_search_call","id":"fs_67c9","status":"completed","queries":["what is deep research?"],"results":null},{"type":"file_search_call","id":"fs_2","status":"completed","queries":["a","b"],"results":[{"file_id":"file-1","filename":"a.pdf","score":0.95,"text":"found","attributes":{"k":"v"}},{"file_id":"file-2","text":"more"}]}]`},
		{"code interpreter", `[{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"print(1)\n","container_id":"cntr_1","outputs":[{"type":"logs","logs":"1\n"},{"type":"image","url":"https://example.com/p.png"}]},{"type":"code_interpreter_call","id":"ci_2","status":"completed","code":null,"container_id":"cntr_1","outputs":null}]`},
		{"image generation", `[{"type":"image_generation_call","id":"ig_123","status":"completed","revised_prompt":"A gray tabby cat","result":"` + dialecttest.PNG + `","background":"opaque","output_format":"png","quality":"high","size":"1024x1024"},{"type":"image_generation_call","id":"ig_2","status":"failed","result":null},{"type":"image_generation_call","id":"ig_3","status":"completed","result":"@@"}]`},
		{"MCP", `[{"type":"mcp_list_tools","id":"mcpl_1","server_label":"deepwiki","tools":[{"name":"ask","input_schema":{"type":"object"},"description":"","annotations":null}],"error":null},{"type":"mcp_approval_request","id":"mcpr_1","server_label":"deepwiki","name":"ask","arguments":"{\"q\":1}"},{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true,"reason":null},{"type":"mcp_call","id":"mcp_1","server_label":"deepwiki","name":"ask","arguments":"{\"q\":1}","output":"It is so.","error":null,"approval_request_id":"mcpr_1","status":"completed"},{"type":"mcp_call","id":"mcp_2","server_label":"deepwiki","name":"ask","arguments":"{}","output":null,"error":"timeout"},{"type":"mcp_call","id":"mcp_3","server_label":"d","name":"ask","arguments":"{}","error":{"type":"http_error","code":500,"message":"x"}},{"type":"mcp_call","id":"mcp_4","server_label":"d","name":"ask","arguments":"{}","output":""}]`},
		{"compaction", `[{"type":"compaction","id":"cmp_1","encrypted_content":"` + encrypted + `"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]`},
		{"references", `[{"type":"item_reference","id":"msg_1"},{"id":"rs_1"},{"type":null,"id":"rs_1"}]`},
	}
}

func responseCases() []dialecttest.Case {
	const around = `"id":"resp_1","object":"response","created_at":1741476777,"model":"gpt-5.1-2025-11-13","instructions":null,"tools":[],"temperature":1.0,"usage":{"input_tokens":328,"input_tokens_details":{"cached_tokens":0},"output_tokens":52,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":380},"metadata":{}`
	return []dialecttest.Case{
		{"a whole response", `[{"role":"user","content":"hi"},{` + around + `,"status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + encrypted + `"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello!","annotations":[]}]}]},{"role":"user","content":"more"}]`},
		{"a response that calls", `[{` + around + `,"status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}]},{"type":"function_call_output","call_id":"call_1","output":"7"}]`},
		{"two responses in a row", `[{` + around + `,"status":"completed","output":[{"role":"assistant","type":"message","content":"a"}]},{` + around + `,"status":"completed","output":[{"role":"assistant","type":"message","content":"b"}]},{"role":"assistant","content":"c"}]`},
		{"a response that was cut", `[{` + around + `,"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Par","annotations":[]}]}]}]`},
		{"a response that failed", `[{` + around + `,"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}]`},
		{"a response whose shell the provider ran", `[{"object":"response","output":[{"type":"shell_call","call_id":"call_1","action":{"commands":["ls"]},"status":"completed"},{"type":"shell_call_output","call_id":"call_1","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]},{"type":"message","role":"assistant","content":"There is a."}]}]`},
		{"a response without its name", `[{"id":"resp_1","output":[{"type":"message","role":"assistant","content":"x"}]}]`},
		{"a response with an unknown item", `[{"object":"response","output":[{"type":"hologram","x":1},{"type":"message","role":"assistant","content":"x"},{"type":"item_reference","id":"a"}]}]`},
		{"a response with long instructions", `[{"object":"response","instructions":"` + strings.Repeat("Be short. ", 8000) + `","tools":` + dialecttest.Nested(1200) + `,"output":[{"type":"message","role":"assistant","content":"x"},{"type":"message","role":"assistant","content":"y"}]},{"object":"response","output":[],"instructions":"` + strings.Repeat("Be short. ", 8000) + `"}]`},
	}
}

func oddCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"unknown items", `[{"type":"ghost_snapshot","ghost_commit":{"id":"a","parent":null}},{"type":"agent_message","author":"a","recipient":"b","content":[{"type":"input_text","text":"x"}]},{"type":"hologram_call","call_id":"a","x":1e400},{"type":"hologram_call_output","call_id":"a","y":[1.0]},{"type":"configuration_update","reasoning":{"effort":"high"}}]`},
		{"fields of Codex", `[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}],"internal_chat_message_metadata_passthrough":{"turn_id":"t","create_time":1756.25}},{"type":"function_call","call_id":"a","name":"f","arguments":"{}","metadata":{"turn_id":"t"}}]`},
		{"numbers as written", `[{"role":"user","content":"x","weight":1.0,"big":123456789012345678901234567890,"tiny":-0.0e-7,"":[],"Role":"other"}]`},
		{"half a surrogate pair in text", `[{"role":"user","content":"cut \ud83d here"},{"role":"user","content":[{"type":"input_text","text":"\udc00"}]}]`},
		{"NUL in an output", `[{"type":"function_call_output","call_id":"a","output":"a\u0000b"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"a\u0000b"}]}]`},
		{"NUL and halves everywhere", `[{"type":"function_call","id":"\u0000","call_id":"\ud800","name":"\u0000","arguments":"\ud800","\ud800":"\u0000"},{"type":"reasoning","summary":[{"type":"summary_text","text":"\u0000"}],"encrypted_content":"\ud800"},{"type":"mcp_call","id":"\u0000","name":"\ud800","arguments":"\u0000","output":"\udfff"},{"type":"web_search_call","id":"\u0000","action":{"\ud800":"\u0000"}},{"type":"hol\u0000ogram"},{"type":"image_generation_call","result":"\u0000","revised_prompt":"\ud800"},{"type":"code_interpreter_call","code":"\u0000","outputs":[{"logs":"\ud800"}]}]`},
		{"NUL in a picture's URL and a type", `[{"role":"user","content":[{"type":"input_image","image_url":"http://a\u0000","detail":"\ud800","file_id":""},{"type":"te\u0000xt"},{"type":"input_file","filename":"\u0000","file_id":"\ud800","file_data":"\u0000"}]}]`},
		{"U+FFFD and a pair that is whole", `[{"role":"user","content":"� \ud83d\ude00 \uFFFD \u00e9"}]`},
		{"escaped names of fields", `[{"ty\u0070e":"mess\u0061ge","r\u006fle":"us\u0065r","c\u006fntent":"x"}]`},
		{
			"spaces between",
			" [ { \"type\" : \"message\" , \"role\" : \"assistant\" ,\n" +
				" \"content\" : [ { \"type\" : \"output_text\" , \"text\" : \"x\" } ] , \"n\" : { } } , { \"type\" : " +
				"\"reasoning\" , \"summary\" : [ ] } , { \"type\" : \"computer_call\" , \"call_id\" : \"a\" , \"action\" : " +
				"{ \"type\" : \"wait\" } } ] ",
		},
		{"base64 that is none or not canonical", `[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,@@@"},{"type":"input_image","image_url":"data:image/png;base64,QQ"},{"type":"input_image","image_url":"data:image/png;base64,QR=="},{"type":"input_file","file_data":"***"},{"type":"input_audio","input_audio":{"data":"***","format":"wav"}},{"type":"input_image","image_url":""},{"type":"input_image","image_url":{"url":"x"}}]}]`},
		{"the same bytes under two types", `[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,QUJD"},{"type":"input_image","image_url":"data:image/jpeg;base64,QUJD"}]}]`},
		{"texts over the size of a blob", `[{"role":"user","content":"` + strings.Repeat("word ", 20_000) + `"},{"type":"function_call_output","call_id":"a","output":"` + strings.Repeat("line\\n", 20_000) + `"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"` + strings.Repeat("line\\n", 20_000) + `"}]},{"type":"mcp_call","id":"m","name":"f","output":"` + strings.Repeat("line\\n", 20_000) + `"},{"type":"function_call","call_id":"b","name":"f","arguments":"` + strings.Repeat("x", 70_000) + `"}]`},
		{"large fields", `[{"type":"reasoning","summary":[],"encrypted_content":"` + strings.Repeat("A", 70_000) + `"},{"type":"message","role":"assistant","content":[{"type":"video","data":"` + strings.Repeat("A", 70_000) + `"}],"memo":"` + strings.Repeat("B", 70_000) + `"},{"role":"user","content":[{"type":"video","data":"` + strings.Repeat("A", 70_000) + `"}]},{"type":"hologram","data":"` + strings.Repeat("C", 70_000) + `"},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"` + strings.Repeat("D", 70_000) + `"}]},{"type":"function_call_output","call_id":"a","output":{"content":"` + strings.Repeat("E", 70_000) + `"}}]`},
		{"large halves", `[{"role":"user","content":"` + strings.Repeat("x", 70_000) + `\ud800"},{"type":"function_call_output","call_id":"a","output":"` + strings.Repeat("x", 70_000) + `\ud800"}]`},
		{"deep fields", `[{"role":"user","content":[{"type":"tree","t":` + dialecttest.Nested(1500) + `}],"tree":` +
			dialecttest.Nested(1500) + `,"shallow":` + dialecttest.Nested(890) +
			`},{"type":"computer_call","call_id":"a","action":` + dialecttest.Nested(1500) +
			`},{"type":"web_search_call","action":{"x":` + dialecttest.Nested(1500) + `}},{"type":"tree","t":` +
			dialecttest.Nested(1500) + `}]`},
		{"more parts than a message holds", `[` + strings.Repeat(`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},`, 1500) + `{"type":"web_search_call","status":"completed"}]`},
	}
}

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
		at("element with a null type", `{"role":"user","content":[{"type":null}]}`, session.Invalid,
			"messages[1].content[0].type"),
		at("text is missing", `{"role":"user","content":[{"type":"input_text"}]}`, session.Invalid,
			"messages[1].content[0].text"),
		at("text is null", `{"role":"user","content":[{"type":"output_text","text":null}]}`, session.Invalid, "messages[1].content[0].text"),
		at("refusal is a boolean", `{"role":"assistant","content":[{"type":"refusal","refusal":true}]}`, session.Invalid, "messages[1].content[0].refusal"),
		at("deep field of an element", `{"role":"user","content":[{"type":"input_text","text":"x","deep":`+dialecttest.Nested(1000)+`}]}`, session.TooLarge, "messages[1].content[0].deep"),
		at("summary of numbers", `{"type":"reasoning","summary":[7]}`, session.Invalid, "messages[1].summary[0]"),
		at("call without id", `{"type":"function_call","name":"f","arguments":"{}"}`, session.Invalid, "messages[1].call_id"),
		at("call of a null", `{"type":"function_call","call_id":null,"name":"f","arguments":"{}"}`, session.Invalid, "messages[1].call_id"),
		at("call without name", `{"type":"function_call","call_id":"a","arguments":"{}"}`, session.Invalid,
			"messages[1].name"),
		at("arguments are a number", `{"type":"function_call","call_id":"a","name":"f","arguments":7}`, session.Invalid, "messages[1].arguments"),
		at("custom input is a boolean", `{"type":"custom_tool_call","call_id":"a","name":"f","input":true}`, session.Invalid, "messages[1].input"),
		at("MCP call without name", `{"type":"mcp_call","id":"a"}`, session.Invalid, "messages[1].name"),
		at("result without its call", `{"type":"function_call_output","output":"x"}`, session.Invalid, "messages[1].call_id"),
		at("result of a number", `{"type":"function_call_output","call_id":7,"output":"x"}`, session.Invalid,
			"messages[1].call_id"),
		at("result of strings", `{"type":"function_call_output","call_id":"a","output":["x"]}`, session.Invalid, "messages[1].output[0]"),
		at("screenshot without type", `{"type":"computer_call_output","call_id":"a","output":{"image_url":"x"}}`, session.Invalid, "messages[1].output.type"),
		at("output of a response is of strings", `{"object":"response","output":["x"]}`, session.Invalid,
			"messages[1].output[0]"),
		at("item of a response is wrong", `{"object":"response","output":[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":7}]}]}`, session.Invalid, "messages[1].output[1].content[0].text"),
		at("too many parts", `{"role":"user","content":[`+strings.Repeat(`{"type":"input_text","text":"x"},`,
			1024)+`{"type":"input_text","text":"x"}]}`, session.Invalid, "messages[1].content"),
		at("too many parts together", `{"type":"reasoning","summary":[`+strings.Repeat(`{"type":"summary_text","text":"x"},`,
			600)+`{"type":"summary_text","text":"x"}],"content":[`+strings.Repeat(`{"type":"reasoning_text","text":"x"},`,
			600)+`{"type":"reasoning_text","text":"x"}]}`, session.Invalid, "messages[1]"),
		at("large field without a name", `{"role":"user","content":"x","":"`+strings.Repeat("x", 70_000)+`"}`,
			session.TooLarge, "messages[1]."),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, responses.Form(), `{"role":"user","content":[`, `{"type":"input_text","text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, responses.Form(), `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"input_video"}]},{"role":"user","content":"fine"},{"type":"item_reference","id":"a"}]`, "messages[0].content", "messages[1].content[0]", "messages[3]")
}

// anyInput generates an item, or a response object of some, that must decode.
func anyInput(r *rapid.T) jsontext.Value {
	if rapid.IntRange(0, 9).Draw(r, "response") > 0 {
		return jsontext.Value(anyItem(r))
	}
	items := rapid.SliceOfN(rapid.Custom(anyItem), 0, 4).Draw(r, "output")
	fields := []string{`"object":"response"`, `"output":[` + strings.Join(items, ",") + `]`}
	for _, f := range []string{"status", "model", "instructions", "incomplete_details", "usage"} {
		if rapid.Bool().Draw(r, "has "+f) {
			fields = append(fields, `"`+f+`":`+dialecttest.AnyValue(2).Draw(r, f))
		}
	}
	return jsontext.Value("{" + strings.Join(fields, ",") + "}")
}

// anyItem generates one item.
func anyItem(r *rapid.T) string {
	kind := rapid.SampledFrom([]string{
		"message", "message", "reasoning", "function_call", "custom_tool_call", "computer_call", "local_shell_call",
		"shell_call", "apply_patch_call",
		"tool_search_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
		"mcp_call", "mcp_list_tools",
		"mcp_approval_request", "mcp_approval_response", "compaction", "item_reference", "function_call_output",
		"custom_tool_call_output",
		"computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
		"tool_search_output", "hologram", "hologram_call", "hologram_call_output",
	}).Draw(r, "kind")
	var fields []string
	add := func(name, value string) { fields = append(fields, `"`+name+`":`+value) }
	maybe := func(name string, value *rapid.Generator[string]) {
		if rapid.Bool().Draw(r, "has "+name) {
			add(name, value.Draw(r, name))
		}
	}
	if kind != "message" || rapid.Bool().Draw(r, "typed") {
		add("type", `"`+kind+`"`)
	}
	maybe("id", dialecttest.AnyValue(0))
	maybe("status", rapid.SampledFrom([]string{`"completed"`, `"failed"`, "null", "7"}))
	maybe("x", dialecttest.AnyValue(3))
	textOrNull := rapid.OneOf(dialecttest.AnyText(), rapid.Just("null"))
	switch kind {
	case "message":
		add("role", rapid.SampledFrom([]string{`"user"`, `"assistant"`, `"system"`, `"developer"`}).Draw(r, "role"))
		maybe("content", rapid.OneOf(textOrNull, dialecttest.AnyArray(rapid.Custom(anyElement))))
		maybe("name", dialecttest.AnyValue(1))
		maybe("phase", dialecttest.AnyValue(0))
	case "reasoning":
		maybe("summary", rapid.OneOf(dialecttest.AnyArray(rapid.Custom(anyElement)), dialecttest.AnyText(),
			rapid.Just("null")))
		maybe("content", rapid.OneOf(dialecttest.AnyArray(rapid.Custom(anyElement)), rapid.Just("null")))
		maybe("encrypted_content", dialecttest.AnyValue(0))
	case "function_call", "custom_tool_call", "mcp_call":
		add("call_id", dialecttest.AnyText().Draw(r, "call_id"))
		add("name", dialecttest.AnyText().Draw(r, "name"))
		arguments := rapid.OneOf(textOrNull, dialecttest.AnyArray(dialecttest.AnyValue(1)))
		maybe(map[string]string{"custom_tool_call": "input"}[kind]+strings.Repeat("arguments",
			1-strings.Count(kind, "custom")), arguments)
		maybe("output", dialecttest.AnyValue(1))
		maybe("error", dialecttest.AnyValue(1))
	case "computer_call", "shell_call", "apply_patch_call", "tool_search_call", "local_shell_call":
		add("call_id", dialecttest.AnyText().Draw(r, "call_id"))
		maybe("action", dialecttest.AnyValue(3))
		maybe("operation", dialecttest.AnyValue(3))
		maybe("arguments", dialecttest.AnyValue(3))
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call":
		maybe("action", dialecttest.AnyValue(3))
		maybe("queries", dialecttest.AnyValue(2))
		maybe("results", dialecttest.AnyValue(3))
		maybe("outputs", dialecttest.AnyValue(3))
		maybe("code", textOrNull)
		maybe("revised_prompt", textOrNull)
		maybe("result", rapid.OneOf(dialecttest.AnyValue(1), rapid.Map(dialecttest.AnyBase64(), func(s string) string {
			return `"` + s + `"`
		})))
		maybe("output_format", dialecttest.AnyValue(0))
	case "function_call_output", "custom_tool_call_output", "apply_patch_call_output":
		add("call_id", rapid.OneOf(dialecttest.AnyText(), rapid.Just(`"a"`)).Draw(r, "call_id"))
		maybe("output", rapid.OneOf(textOrNull, dialecttest.AnyArray(rapid.Custom(anyElement)), rapid.Just(`{"content":"x"}`),
			rapid.Just("7")))
		maybe("name", dialecttest.AnyValue(0))
	case "local_shell_call_output":
		maybe("call_id", dialecttest.AnyValue(1))
		maybe("output", textOrNull)
	case "shell_call_output", "tool_search_output":
		maybe("call_id", textOrNull)
		maybe("output", rapid.OneOf(dialecttest.AnyValue(3), rapid.Just(`[{"stdout":"a","stderr":"","outcome":{}}]`)))
		maybe("tools", dialecttest.AnyValue(3))
	case "computer_call_output":
		add("call_id", dialecttest.AnyText().Draw(r, "call_id"))
		maybe("output", rapid.OneOf(rapid.Custom(anyElement), textOrNull))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func anyElement(r *rapid.T) string {
	extra := ""
	if rapid.Bool().Draw(r, "marked") {
		extra = `,"cache_control":` + dialecttest.AnyValue(2).Draw(r, "mark")
	}
	inner := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + extra + "}" }
	switch rapid.IntRange(0, 8).Draw(r, "element") {
	case 0:
		return inner(`{"type":"refusal","refusal":%s`, dialecttest.AnyText().Draw(r, "refusal"))
	case 1:
		return inner(`{"type":"input_image","image_url":"data:image/png;base64,%s","detail":%s`, dialecttest.AnyBase64().Draw(r, "bytes"), dialecttest.AnyValue(1).Draw(r, "detail"))
	case 2:
		return inner(`{"type":"computer_screenshot","image_url":%s,"file_id":%s`, dialecttest.AnyValue(1).Draw(r, "url"),
			dialecttest.AnyValue(0).Draw(r, "file"))
	case 3:
		return inner(`{"type":"input_audio","input_audio":{"data":"%s","format":%s}`, dialecttest.AnyBase64().Draw(r, "bytes"), dialecttest.AnyValue(1).Draw(r, "format"))
	case 4:
		return inner(`{"type":"input_audio","audio_url":%s`, dialecttest.AnyValue(1).Draw(r, "url"))
	case 5:
		data := rapid.SampledFrom([]string{"", "data:a/b;base64,"}).Draw(r, "prefix") +
			dialecttest.AnyBase64().Draw(r, "bytes")
		return inner(`{"type":"input_file","filename":%s,"file_id":%s,"file_url":%s,"file_data":"%s"`, dialecttest.AnyValue(1).Draw(r, "filename"), dialecttest.AnyValue(1).Draw(r, "id"), dialecttest.AnyValue(0).Draw(r, "url"), data)
	case 6:
		return inner(`{"type":"other","other":%s`, dialecttest.AnyValue(3).Draw(r, "other"))
	}
	kind := rapid.SampledFrom([]string{"input_text", "output_text", "text", "summary_text", "reasoning_text"}).Draw(r,
		"type")
	return inner(`{"type":"%s","text":%s,"annotations":%s`, kind, dialecttest.AnyText().Draw(r, "text"),
		dialecttest.AnyValue(1).Draw(r, "annotations"))
}
