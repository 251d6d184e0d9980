package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestExportGivesBackWhatWasDecoded(t *testing.T) {
	dialecttest.RoundTrips(t, anthropic.Form(), wireCases())
}

func TestAnyMessageComesBack(t *testing.T) {
	dialecttest.AnyRoundTrips(t, anthropic.Form(), anyMessage)
}

func FuzzDecodeExport(f *testing.F) {
	dialecttest.FuzzRoundTrip(f, anthropic.Form(), wireCases())
}

func wireCases() []dialecttest.Case {
	return append(append(append(plainCases(), toolCases()...), serverCases()...), oddCases()...)
}

func plainCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"plain turns", `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}]`},
		{"plain turns in blocks", `[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"Hello!"},{"type":"text","text":" More."}]}]`},
		{"a prefilled reply", `[{"role":"user","content":"JSON, please"},{"role":"assistant","content":"{"}]`},
		{"cache marks", `[{"role":"user","content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`},
		{"reply of the SDK", `[{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"Hello!","citations":null}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":6,"service_tier":"standard"}}]`},
		{"reply cut short", `[{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"Par"}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}]`},
		{"reply of nothing", `[{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":0}}]`},
		{"reply stopped by a sequence", `[{"role":"assistant","type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"stop_sequence","stop_sequence":"\n\nHuman:"}]`},
		{"refusal", `[{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber","explanation":"x"},"usage":{"input_tokens":1,"output_tokens":0}}]`},
		{"reply of a container", `[{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"x"}],"container":{"id":"container_1","expires_at":"2026-01-01T00:00:00Z"},"context_management":{"applied_edits":[]},"stop_reason":"end_turn","stop_sequence":null,"usage":{}}]`},
		{"thinking", `[{"role":"assistant","content":[{"type":"thinking","thinking":"2 + 2 …","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=="},{"type":"text","text":"4"}]}]`},
		{"thinking that is not shown", `[{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"EosnCkYICxIM"},{"type":"text","text":"4"}]}]`},
		{"redacted thinking", `[{"role":"assistant","content":[{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"},{"type":"thinking","thinking":"x","signature":"y"},{"type":"text","text":"4"}]}]`},
		{"thinking between calls", `[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s1"},{"type":"text","text":"I look."},{"type":"thinking","thinking":"b","signature":"s2"},{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}]`},
		{"picture as bytes", `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + dialecttest.PNG + `"}},{"type":"text","text":"what?"}]}]`},
		{"picture by URL and by id", `[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png?x=1&y=2"}},{"type":"image","source":{"type":"file","file_id":"file_011CNha8iCJcU1wXNR6q4V8w"}}]}]`},
		{"PDF with citations", `[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf","context":"old","citations":{"enabled":true},"cache_control":{"type":"ephemeral"}}]}]`},
		{"document of plain text", `[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"The grass is green.\n"},"title":null,"citations":{"enabled":true}}]}]`},
		{"document of blocks", `[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}},{"type":"document","source":{"type":"content","content":"whole"}}]}]`},
		{"document by URL and by id", `[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}},{"type":"document","source":{"type":"file","file_id":"file_1"},"title":"T"}]}]`},
		{"search results", `[{"role":"user","content":[{"type":"search_result","source":"https://docs.example.com/a","title":"API","content":[{"type":"text","text":"All requests need a key."}],"citations":{"enabled":true}}]}]`},
		{"citations of a document", `[{"role":"assistant","content":[{"type":"text","text":"the grass is green","citations":[{"type":"char_location","cited_text":"The grass is green.","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":20,"file_id":null},{"type":"page_location","cited_text":"x","document_index":1,"document_title":"T","start_page_number":1,"end_page_number":2},{"type":"content_block_location","cited_text":"y","document_index":2,"document_title":"U","start_block_index":0,"end_block_index":1}]}]}]`},
		{"a file for the container", `[{"role":"user","content":[{"type":"container_upload","file_id":"file_1"},{"type":"text","text":"plot it"}]}]`},
		{"system in the middle", `[{"role":"user","content":"hi"},{"role":"system","content":"Answer in German from here on."},{"role":"assistant","content":"Hallo"},{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`},
	}
}

func toolCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"call and result", `[{"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"get_weather","input":{"city": "Köln",  "days":1.0}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A09q90qw90lq917835lq9","content":"15 degrees"}]}]`},
		{"parallel calls, results in one entry", `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]}]}]`},
		{"results and what the user says to them", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"and now?"}]}]`},
		{"results between other blocks", `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"text","text":"y"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"url","url":"https://z"}},{"type":"text","text":"2"}]},{"type":"text","text":"z"}],"more":1}]`},
		{"two mixed entries that are alike", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"x"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"x"}]}]`},
		{"result of a failure", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ConnectionError: 500","is_error":true}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"fine","is_error":false}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":null}]}]`},
		{"results empty, null, absent", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b","content":""},{"type":"tool_result","tool_use_id":"c","content":[]},{"type":"tool_result","tool_use_id":"d","content":null}]}]`},
		{"result with pictures around its text", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + dialecttest.PNG + `"}},{"type":"text","text":"seen","cache_control":{"type":"ephemeral"}},{"type":"text","text":"more"}],"cache_control":{"type":"ephemeral"}}]}]`},
		{"result of pictures only", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QUJD"}}]}]}]`},
		{"result of documents and search results", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found"}]}]}]}]`},
		{"result that names tools", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"get_weather"}]}]}]`},
		{"result with an unknown block", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"hologram","h":1.0},{"type":"text","text":"t"}]},{"type":"hologram2"}]}]`},
		{"computer use", `[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"computer","input":{"action":"left_click","coordinate":[500,300]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + dialecttest.PNG + `"}}]}]}]`},
		{"the same id twice", `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"a","content":"2"}]}]`},
		{"result before its call", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]`},
		{"call by a program", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"await f()"}},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"7"}]},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","stdout":"7\n","stderr":"","return_code":0,"content":[]}},{"type":"text","text":"7"}]}]`},
		{"call by the model itself", `[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}],"stop_reason":"tool_use"}]`},
		{"inputs of other kinds", `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{\"x\": 1"},{"type":"tool_use","id":"b","name":"f","input":null},{"type":"tool_use","id":"c","name":"f","input":[1, 2.0]},{"type":"tool_use","id":"d","name":"f"},{"type":"tool_use","id":"e","name":"f","input":""},{"type":"tool_use","id":"f","name":"f","input":7}]}]`},
		{"input with escapes and numbers as written", `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":"\ud83d\u0000<&>\n","n":1.50, "big":12345678901234567890,"":{}}}]}]`},
	}
}

func serverCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"web search", `[{"role":"assistant","content":[{"type":"text","text":"I'll search."},{"type":"server_tool_use","id":"srvtoolu_01WYG3ziw53XMcoyKL4XcZmE","name":"web_search","input":{"query":"claude shannon birth date"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_01WYG3ziw53XMcoyKL4XcZmE","content":[{"type":"web_search_result","url":"https://en.example.org/wiki/Claude_Shannon","title":"Claude Shannon","encrypted_content":"EqgfCioIARgBIiQ3YTAw+/==","page_age":"April 30, 2025"},{"type":"web_search_result","url":"https://b.example","title":"B","encrypted_content":"x","page_age":null}]},{"type":"text","text":"April 30, 1916","citations":[{"type":"web_search_result_location","url":"https://en.example.org/wiki/Claude_Shannon","title":"Claude Shannon","encrypted_index":"Eo8BCioIAhgBIiQyYjQ0","cited_text":"Claude Elwood Shannon (April 30, 1916 …"}]}],"stop_reason":"end_turn"}]`},
		{"web search that failed", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}]}]`},
		{"web fetch", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{"url":"https://example.com/a"}},{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_fetch_result","url":"https://example.com/a","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Full text"},"title":"Article","citations":{"enabled":true}},"retrieved_at":"2025-08-25T10:30:00Z"}}]}]`},
		{"code execution", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"bash_code_execution","input":{"command":"ls -la | head -5"}},{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"bash_code_execution_result","stdout":"total 24\n","stderr":"","return_code":0,"content":[{"type":"bash_code_execution_output","file_id":"file_1"}]}},{"type":"server_tool_use","id":"srvtoolu_2","name":"text_editor_code_execution","input":{"command":"view","path":"a"}},{"type":"text_editor_code_execution_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"text_editor_code_execution_view_result","file_type":"text","content":"{}","num_lines":1,"start_line":1,"total_lines":1}}]}]`},
		{"tool search", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_regex","input":{"query":"weather"}},{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"get_weather"}]}},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}]}]`},
		{"MCP", `[{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_014Q35RayjACSWkSj4X2yov1","name":"echo","server_name":"example-mcp","input":{"p":"v"}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_014Q35RayjACSWkSj4X2yov1","is_error":false,"content":[{"type":"text","text":"Hello"}]}]}]`},
		{"a turn that paused", `[{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Searching."},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}],"stop_reason":"pause_turn","stop_sequence":null,"usage":{}},{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"Nothing."}]}]`},
		{"compaction of the provider's", `[{"role":"assistant","content":[{"type":"compaction","content":"Summary of what was said."},{"type":"text","text":"Going on."}],"stop_reason":"compaction"}]`},
		{"advisor and fallback", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"advisor","input":{}},{"type":"advisor_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"advisor_result","text":"Use a map."}},{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}]}]`},
	}
}

func oddCases() []dialecttest.Case {
	return []dialecttest.Case{
		{"empty, null and absent content", `[{"role":"user","content":""},{"role":"user","content":null},{"role":"user"},{"role":"user","content":[]},{"role":"assistant","content":""}]`},
		{"empty text blocks", `[{"role":"assistant","content":[{"type":"text","text":""},{"type":"text","text":" \n"}]}]`},
		{"unknown block", `[{"role":"user","content":[{"type":"video","source":{"type":"url","url":"https://example.com/v"},"fps":1.0}]}]`},
		{"blocks in the wrong role", `[{"role":"user","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"server_tool_use","id":"a","name":"f","input":{}},{"type":"web_search_tool_result","tool_use_id":"a","content":[]}]},{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"document","source":{"type":"url","url":"https://x"}}]}]`},
		{"base64 that is none or not canonical", `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"@@@"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QR=="}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":7}}]}]`},
		{"sources of another kind", `[{"role":"user","content":[{"type":"image","source":{"type":"s3","uri":"s3://x"}},{"type":"image","source":{}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":""},"title":""},{"type":"image","source":{"type":"url","url":7}}]}]`},
		{"the same bytes under two types", `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QUJD"}}]}]`},
		{"unknown fields with numbers as written", `[{"role":"user","content":[{"type":"text","text":"x","weight":1.0}],"big":123456789012345678901234567890,"tiny":-0.0e-7,"":[],"Role":"other"}]`},
		{"half a surrogate pair in text", `[{"role":"user","content":"cut \ud83d here"},{"role":"user","content":[{"type":"text","text":"\udc00"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"\ud800"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"\ud800"}]}]}]`},
		{"NUL and halves everywhere", `[{"role":"assistant","model":"\u0000","content":[{"type":"thinking","thinking":"\u0000","signature":"\ud800"},{"type":"tool_use","id":"\u0000","name":"\ud800","input":"\u0000"},{"type":"te\u0000xt"},{"type":"text","text":"a\u0000b","\ud800":1},{"type":"image","source":{"type":"url","url":"http://a\u0000"}}],"\ud800":"\u0000"},{"role":"user","content":[{"type":"document","title":"\u0000","source":{"type":"text","media_type":"\ud800","data":"\u0000"}}]}]`},
		{"a pair that is whole", `[{"role":"user","content":"\ud83d\ude00 \uFFFD \u00e9 �"}]`},
		{"escaped names of fields", `[{"r\u006fle":"us\u0065r","c\u006fntent":[{"typ\u0065":"t\u0065xt","text":"x"}]}]`},
		{
			"spaces between",
			" [ { \"role\" : \"assistant\" ,\n" +
				" \"content\" : [ { \"type\" : \"tool_use\" , \"id\" : \"x\" , \"name\" : \"f\" , \"input\" : { \"a\" : " +
				"1 } } ] , \"n\" : { } } ] ",
		},
		{"texts over the size of a blob", `[{"role":"user","content":"` + strings.Repeat("word ", 20_000) + `"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"` + strings.Repeat("line\\n", 20_000) + `"}]},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"` + strings.Repeat("x ", 40_000) + `"}]},{"type":"document","source":{"type":"content","content":"` + strings.Repeat("y ", 40_000) + `"}}]}]`},
		{"large unknown block and field", `[{"role":"user","content":[{"type":"video","data":"` + strings.Repeat("A", 70_000) + `"}],"memo":"` + strings.Repeat("B", 70_000) + `"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"","content":"x"}],"memo":"` + strings.Repeat("B", 70_000) + `"}]`},
		{"large halves", `[{"role":"user","content":"` + strings.Repeat("x", 70_000) + `\ud800"}]`},
		{"deep unknown field, block and input", `[{"role":"assistant","content":[{"type":"tree","t":` +
			dialecttest.Nested(1500) + `},{"type":"tool_use","id":"a","name":"f","input":{"t":` + dialecttest.Nested(1500) +
			`}}],"tree":` + dialecttest.Nested(1500) + `,"shallow":` + dialecttest.Nested(899) + `}]`},
	}
}

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
		at("block without type", user(`{"type":"text","text":"x"},{"text":"x"}`), session.Invalid,
			"messages[1].content[1].type"),
		at("block with a null type", user(`{"type":null}`), session.Invalid, "messages[1].content[0].type"),
		at("text is missing", user(`{"type":"text"}`), session.Invalid, "messages[1].content[0].text"),
		at("text is null", user(`{"type":"text","text":null}`), session.Invalid, "messages[1].content[0].text"),
		at("picture without source", user(`{"type":"image"}`), session.Invalid, "messages[1].content[0].source"),
		at("document of a string", user(`{"type":"document","source":"x"}`), session.Invalid,
			"messages[1].content[0].source"),
		at("deep field of a source", user(`{"type":"image","source":{"type":"x","deep":`+dialecttest.Nested(1000)+`}}`),
			session.TooLarge, "messages[1].content[0].source.deep"),
		at("deep field of a block", user(`{"type":"text","text":"x","deep":`+dialecttest.Nested(1000)+`}`), session.TooLarge,
			"messages[1].content[0].deep"),
		at("thinking is missing", reply(`{"type":"thinking","signature":"s"}`), session.Invalid,
			"messages[1].content[0].thinking"),
		at("a user's call", user(`{"type":"tool_use","id":"a","name":"f","input":{}}`), session.Invalid,
			"messages[1].content[0]"),
		at("call without id", reply(`{"type":"tool_use","name":"f","input":{}}`), session.Invalid,
			"messages[1].content[0].id"),
		at("call without name", reply(`{"type":"tool_use","id":"a","input":{}}`), session.Invalid,
			"messages[1].content[0].name"),
		at("call of a number", reply(`{"type":"tool_use","id":7,"name":"f"}`), session.Invalid, "messages[1].content[0].id"),
		at("a reply's result", reply(`{"type":"tool_result","tool_use_id":"a"}`), session.Invalid, "messages[1].content[0]"),
		at("result without its call", user(`{"type":"tool_result","content":"x"}`), session.Invalid,
			"messages[1].content[0].tool_use_id"),
		at("result of a null", user(`{"type":"tool_result","tool_use_id":null}`), session.Invalid,
			"messages[1].content[0].tool_use_id"),
		at("content of a result is an object", user(`{"type":"tool_result","tool_use_id":"a","content":{}}`), session.Invalid,
			"messages[1].content[0].content"),
		at("block of a result is a string", user(`{"type":"tool_result","tool_use_id":"a","content":["x"]}`), session.Invalid,
			"messages[1].content[0].content[0]"),
		at("text of a result is null", user(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":null}]}`), session.Invalid, "messages[1].content[0].content[0].text"),
		at("failure is a string", user(`{"type":"tool_result","tool_use_id":"a","is_error":"yes"}`), session.Invalid,
			"messages[1].content[0].is_error"),
		at("result of a search without its call", reply(`{"type":"web_search_tool_result","content":[]}`), session.Invalid,
			"messages[1].content[0].tool_use_id"),
		at("too many blocks", user(strings.Repeat(`{"type":"text","text":"x"},`, 1024)+`{"type":"text","text":"x"}`),
			session.Invalid, "messages[1].content"),
		at("too many blocks of a result", user(`{"type":"tool_result","tool_use_id":"a","content":[`+strings.Repeat(`{},`,
			1024)+`{}]}`), session.Invalid, "messages[1].content[0].content"),
		at("too many parts together",
			user(strings.TrimSuffix(strings.Repeat(`{"type":"tool_result","tool_use_id":"a","content":[`+strings.TrimSuffix(strings.Repeat(`{"type":"image","source":{}},`, 40), ",")+`]},`, 25), ",")), session.Invalid, "messages[1]"),
		at("large field without a name", `{"role":"user","content":"x","":"`+strings.Repeat("x", 70_000)+`"}`,
			session.TooLarge, "messages[1]."),
	)
}

func TestTheLimitOfPartsItselfIsAllowed(t *testing.T) {
	dialecttest.HoldsMaxParts(t, anthropic.Form(), `{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}`)
}

func TestDecodeWarnsOfWhatItStoresOtherwise(t *testing.T) {
	dialecttest.Warns(t, anthropic.Form(), `[{"role":"user","content":"cut \ud83d"},{"role":"user","content":[{"type":"video"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"hologram"},{"type":"tool_reference","tool_name":"f"}]}]},{"role":"user","content":"fine"}]`, "messages[0].content", "messages[1].content[0]", "messages[2].content[0].content[0]")
}

// anyMessage generates an entry that must decode.
func anyMessage(r *rapid.T) jsontext.Value {
	role := rapid.SampledFrom([]string{"system", "user", "user", "assistant", "assistant"}).Draw(r, "role")
	fields := []string{`"role":"` + role + `"`}
	maybe := func(name string, value *rapid.Generator[string]) {
		if rapid.Bool().Draw(r, "has "+name) {
			fields = append(fields, `"`+name+`":`+value.Draw(r, name))
		}
	}
	block := rapid.Custom(anyBlock)
	switch role {
	case "user":
		block = rapid.OneOf(block, rapid.Custom(anyResult))
	case "assistant":
		block = rapid.OneOf(block, rapid.Custom(anyReplyBlock))
	}
	maybe("content", rapid.OneOf(dialecttest.AnyText(), rapid.Just("null"), dialecttest.AnyArray(block),
		dialecttest.AnyArray(block), dialecttest.AnyArray(block)))
	maybe("model", dialecttest.AnyValue(1))
	maybe("stop_reason", rapid.OneOf(dialecttest.AnyValue(1),
		rapid.SampledFrom([]string{`"end_turn"`, `"tool_use"`, `"pause_turn"`})))
	maybe("x", dialecttest.AnyValue(3))
	return jsontext.Value("{" + strings.Join(fields, ",") + "}")
}

// withMore writes an object of a block, perhaps with undocumented fields.
func withMore(r *rapid.T, format string, args ...any) string {
	more := ""
	if rapid.Bool().Draw(r, "marked") {
		more = `,"cache_control":` + dialecttest.AnyValue(2).Draw(r, "mark")
	}
	return fmt.Sprintf(format, args...) + more + "}"
}

func anyBlock(r *rapid.T) string {
	switch rapid.IntRange(0, 7).Draw(r, "block") {
	case 0:
		return withMore(r, `{"type":"image","source":{"type":"base64","media_type":%s,"data":"%s","more":%s}`, dialecttest.AnyValue(1).Draw(r, "type"), dialecttest.AnyBase64().Draw(r, "bytes"), dialecttest.AnyValue(1).Draw(r, "more"))
	case 1:
		return withMore(r, `{"type":"image","source":{"type":"url","url":%s}`, dialecttest.AnyValue(1).Draw(r, "url"))
	case 2:
		return withMore(r, `{"type":"document","title":%s,"source":{"type":"text","media_type":"text/plain","data":%s}`, dialecttest.AnyValue(1).Draw(r, "title"), dialecttest.AnyText().Draw(r, "data"))
	case 3:
		return withMore(r, `{"type":"document","source":{"type":%s,"file_id":%s,"content":%s,"data":%s}`, rapid.SampledFrom([]string{`"file"`, `"content"`, `"x"`, "1"}).Draw(r, "type"), dialecttest.AnyValue(1).Draw(r, "id"), dialecttest.AnyValue(2).Draw(r, "content"), dialecttest.AnyValue(1).Draw(r, "data"))
	case 4:
		return withMore(r, `{"type":"search_result","source":%s,"title":%s,"content":%s`, dialecttest.AnyValue(1).Draw(r, "source"), dialecttest.AnyValue(1).Draw(r, "title"), dialecttest.AnyArray(rapid.Just(`{"type":"text","text":"found"}`)).Draw(r, "content"))
	case 5:
		return withMore(r, `{"type":"other","other":%s`, dialecttest.AnyValue(3).Draw(r, "other"))
	case 6:
		return withMore(r, `{"type":"container_upload","file_id":%s`, dialecttest.AnyValue(1).Draw(r, "id"))
	}
	return withMore(r, `{"type":"text","text":%s`, dialecttest.AnyText().Draw(r, "text"))
}

func anyResult(r *rapid.T) string {
	block := rapid.OneOf(rapid.Custom(anyBlock), rapid.Just(`{"type":"tool_reference","tool_name":"f"}`))
	content := rapid.OneOf(dialecttest.AnyText(), rapid.Just("null"), dialecttest.AnyArray(block),
		dialecttest.AnyArray(block)).Draw(r, "content")
	failed := rapid.SampledFrom([]string{"", `,"is_error":true`, `,"is_error":false`, `,"is_error":null`}).Draw(r,
		"failed")
	if rapid.Bool().Draw(r, "bare") {
		return withMore(r, `{"type":"tool_result","tool_use_id":%s%s`, callID().Draw(r, "id"), failed)
	}
	return withMore(r, `{"type":"tool_result","tool_use_id":%s,"content":%s%s`, callID().Draw(r, "id"), content, failed)
}

func anyReplyBlock(r *rapid.T) string {
	switch rapid.IntRange(0, 6).Draw(r, "reply block") {
	case 0:
		return withMore(r, `{"type":"thinking","thinking":%s,"signature":%s`, dialecttest.AnyText().Draw(r, "thinking"),
			dialecttest.AnyValue(1).Draw(r, "signature"))
	case 1:
		return withMore(r, `{"type":"redacted_thinking","data":%s`, dialecttest.AnyValue(1).Draw(r, "data"))
	case 2:
		return withMore(r, `{"type":"server_tool_use","id":%s,"name":"web_search","input":%s`, callID().Draw(r, "id"), dialecttest.AnyValue(2).Draw(r, "input"))
	case 3:
		return withMore(r, `{"type":"web_search_tool_result","tool_use_id":%s,"content":%s`, callID().Draw(r, "id"), dialecttest.AnyValue(3).Draw(r, "content"))
	case 4:
		return withMore(r, `{"type":"text","text":%s,"citations":%s`, dialecttest.AnyText().Draw(r, "text"),
			dialecttest.AnyValue(3).Draw(r, "citations"))
	case 5:
		return withMore(r, `{"type":"tool_use","id":%s,"name":%s`, callID().Draw(r, "id"),
			dialecttest.AnyText().Draw(r, "name"))
	}
	return withMore(r, `{"type":"tool_use","id":%s,"name":%s,"input":%s`, callID().Draw(r, "id"),
		dialecttest.AnyText().Draw(r, "name"), dialecttest.AnyValue(3).Draw(r, "input"))
}

// callID generates few ids, so that calls and results meet.
func callID() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{`"a"`, `"b"`, `"srvtoolu_1"`, `"srvtoolu_2"`, `""`}),
		dialecttest.AnyText())
}
