package anthropic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"

	"pgregory.net/rapid"
)

func TestSendOfWhatTheWireGave(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		losses         []string
	}{
		{name: "plain turns stay", in: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <&>!"},{"role":"user","content":"x"}]`, want: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <&>!"},{"role":"user","content":"x"}]`},
		{
			name: "a reply loses what is no request's", in: `[{"role":"user","content":"x"},{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"y","citations":null}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1},"novel":1}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"y"}]}]`, losses: []string{"20260211_001.2: field novel"},
		},
		{
			name: "cache marks are no loss", in: `[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"y","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"}}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]}]`, losses: []string{`20260211_001.1: a result of "a" answers no call of the reply before it`},
		},
		{
			name: "calls and results", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"n": 1.0}},{"type":"tool_use","id":"toolu_2","name":"g","input":{},"caller":{"type":"direct"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"2","is_error":true},{"type":"tool_result","tool_use_id":"toolu_1"},{"type":"text","text":"and?"}]}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"n": 1.0}},{"type":"tool_use","id":"toolu_2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"2","is_error":true},{"type":"tool_result","tool_use_id":"toolu_1"},{"type":"text","text":"and?"}]}]`,
		},
		{
			name: "what a result holds keeps its order", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"hologram"},{"type":"text","text":"seen"},{"type":"tool_reference","tool_name":"g"},{"type":"text","text":" "},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"},"title":"T","citations":{"enabled":true}}]}]}]`,
			want:   `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"text","text":"seen"},{"type":"tool_reference","tool_name":"g"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"},"title":"T","citations":{"enabled":true}}]}]}]`,
			losses: []string{"20260211_001.3: unknown part type hologram"},
		},
		{
			name: "a failure that says nothing", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true}]}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"(no content)","is_error":true}]}]`,
		},
		{
			name: "a picture of a failure stands behind the results", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{"type":"text","text":"no"},{"type":"tool_reference","tool_name":"g"}]},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://x/b.png"}}]},{"type":"text","text":"and?"}]}]`,
			want:   `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"b","content":"(no content)","is_error":true},{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{"type":"image","source":{"type":"url","url":"https://x/b.png"}},{"type":"text","text":"and?"}]}]`,
			losses: []string{"20260211_001.3: the name of a tool in a failed result"},
		},
		{
			name: "a search result in a reply is its text", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found"}]}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"s\nt\nfound"}]},{"role":"user","content":"z"}]`,
		},
		{
			name: "thinking stays as it is", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"Eq+/=="},{"type":"redacted_thinking","data":"Em=="},{"type":"text","text":"y"},{"type":"thinking","thinking":"b","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"Eq+/=="},{"type":"redacted_thinking","data":"Em=="},{"type":"text","text":"y"},{"type":"thinking","thinking":"b","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
		},
		{
			name: "thinking that nothing follows, or that nobody signed", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":""},{"type":"text","text":"y"},{"type":"thinking","thinking":"b","signature":"s"}]},{"role":"user","content":"z"}]`,
			want:   `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
			losses: []string{"20260211_001.2: reasoning", "20260211_001.2: reasoning at the end of a reply"},
		},
		{
			name: "a reply in several entries is one, its thinking first", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"user","content":"go on"}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"go on"}]}]`,
		},
		{
			name: "web search with its citation", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"E+/==","page_age":null}]},{"type":"text","text":"y","citations":[{"type":"web_search_result_location","url":"https://a","title":"A","encrypted_index":"I=","cited_text":"c","novel":1},{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"E+/=="}]},{"type":"text","text":"y","citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"I=","title":"A","url":"https://a"},{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}]},{"role":"user","content":"z"}]`,
		},
		{
			name: "a turn that paused is given back to go on", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}],"stop_reason":"pause_turn"}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}]`,
		},
		{
			name: "a turn that paused and went on is one", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}],"stop_reason":"pause_turn"},{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
		},
		{
			name: "a turn that paused and never went on", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"y"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}],"stop_reason":"pause_turn"},{"role":"user","content":"z"}]`,
			want:   `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
			losses: []string{`20260211_001.2: call "srvtoolu_1" of the provider's own tool has no result`},
		},
		{
			name: "a program that calls a tool", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"f()"}},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"7"}]}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"f()"}},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"7"}]}]`,
		},
		{
			name: "MCP", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"Hello"}]},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"Hello"}]},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
		},
		{
			name: "pictures and documents", in: `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + dialecttest.PNG + `"}},{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{"type":"image","source":{"type":"file","file_id":"file_1"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf","context":"old"},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"whole"}]}},{"type":"document","source":{"type":"url","url":"https://x/a"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found","cache_control":{"type":"ephemeral"}}],"citations":{"enabled":false}},{"type":"container_upload","file_id":"file_2"}]}]`,
			want: `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + dialecttest.PNG + `"}},{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{"type":"image","source":{"type":"file","file_id":"file_1"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf","context":"old"},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"whole"}]}},{"type":"document","source":{"type":"url","url":"https://x/a"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found"}],"citations":{"enabled":false}},{"type":"container_upload","file_id":"file_2"}]}]`,
		},
		{
			name: "what the API does not take", in: `[{"role":"user","content":[{"type":"text","text":"see","novel":1},{"type":"video"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"@@"}},{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"QUJD"}},{"type":"image","source":{"type":"url","url":"http://x"}}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"see"}]}]`,
			losses: []string{
				"20260211_001.1: field novel of a text", "20260211_001.1: unknown part type video",
				"20260211_001.1: image image/png: its bytes or its type are not what the API takes",
				"20260211_001.1: image image/svg+xml: its bytes or its type are not what the API takes",
				"20260211_001.1: image: its bytes or its type are not what the API takes",
			},
		},
		{
			name: "halves of pairs are sent as they read", in: `[{"role":"user","content":"cut \ud83d"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":"\ud83d \ud83d\ude00 \\ud83d \uDC00"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
			want: `[{"role":"user","content":"cut �"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":"� 😀 \\ud83d �"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
		},
		{
			name: "its own summary goes back, one that failed does not",
			in:   `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"compaction","content":"So far: x."},{"type":"text","text":"y"}]},{"role":"user","content":"z"},{"role":"assistant","content":[{"type":"compaction","content":null},{"type":"text","text":"w"}]}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"compaction","content":"So far: x."},{"type":"text","text":"y"}]},{"role":"user","content":"z"},{"role":"assistant","content":[{"type":"text","text":"w"}]}]`,
		},
		{
			name: "a system entry in the middle is quoted", in: `[{"role":"system","content":"Be short."},{"role":"user","content":"x"},{"role":"system","content":"In German."},{"role":"assistant","content":"y  \n"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"<system>\nIn German.\n</system>"}]},{"role":"assistant","content":"y"}]`, losses: []string{"20260211_001.3: a system message in the middle is sent in the user's role"},
		},
		{name: "nothing", in: `[{"role":"user","content":""},{"role":"assistant","content":[]}]`, want: `[{"role":"user","content":[{"type":"text","text":"(no content)"}]}]`},
		{name: "a reply comes first", in: `[{"role":"assistant","content":"y"},{"role":"user","content":"x"}]`, want: `[{"role":"user","content":[{"type":"text","text":"(no content)"}]},{"role":"assistant","content":"y"},{"role":"user","content":"x"}]`},
		{
			name: "the same id twice", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"2"}]}]`,
			want: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a_2","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_2","content":"2"}]}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(anthropic.Decode(dialecttest.List(t, c.in)))(t)
			want := `{"messages":` + c.want + `}`
			if strings.Contains(c.in, `"Be short."`) {
				want = `{"system":"Be short.","messages":` + c.want + `}`
			}
			dialecttest.ExpectSent(t, anthropic.Form(), wire.Request{Messages: dialecttest.Numbered(dialecttest.Stored(t,
				decoded.Messages))}, want, c.losses)
		})
	}
}

// message builds what came in another form.
func message(role session.Role, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Dialect: "openai.chat", InContext: true, Parts: parts}
}

func call(id, name, arguments string) session.Part {
	return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: arguments}
}

func result(id, text string) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, Text: text}
}

func TestSendOfWhatAnotherFormGave(t *testing.T) {
	const hi = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	user := message(session.User, session.TextPart("hi"))
	long := "call_" + strings.Repeat("x", 30) + "|fc_" + strings.Repeat("y", 60)
	bash := message(session.User, session.TextPart("Ran `ls`"))
	bash.Kind = session.KindBash
	marker := message("")
	marker.Kind = session.KindMarker
	jpeg := session.Part{Kind: session.PartImage, CallID: "a", Blob: wire.Blob("image/jpeg", []byte("ABC"))}
	text := session.Part{
		Kind: session.PartFile, Extra: session.JSON(`{"media_type":"text/markdown","name":"a.md"}`),
		Blob: wire.Blob("text/markdown", []byte("# A")),
	}
	zip := session.Part{
		Kind: session.PartFile, Extra: session.JSON(`{"media_type":"application/zip"}`),
		Blob: wire.Blob("application/zip", []byte("PK")),
	}
	named := user
	named.Author = "ann"
	thinks := session.Part{Kind: session.PartReasoning, Text: "hm", Extra: session.JSON(`{"signature":"s"}`)}
	pi := message(session.Assistant, session.Part{
		Kind: session.PartReasoning, Text: "hm",
		Extra: session.JSON(`{"thinkingSignature":"s"}`),
	}, call("a", "f", "{}"))
	pi.Provider, pi.Dialect, pi.Model = "anthropic", "pi", "claude-opus-4-6"
	kimi := message(session.Assistant, thinks, session.TextPart("y"))
	kimi.Dialect, kimi.Model = anthropic.Name, "kimi-k2-thinking"
	for _, c := range []struct {
		name   string
		in     wire.Request
		want   string
		losses []string
		off    bool // the model must not think: the calls at the end were made elsewhere
	}{
		{
			name: "system text stands apart", in: wire.Request{
				System:   "Be short.",
				Messages: []session.Message{message(session.System, session.TextPart("Be kind.")), user},
			},
			want: `{"system":"Be short.\n\nBe kind.","messages":[` + hi + `]}`,
		},
		{
			name: "results of several messages, with a picture", in: wire.Request{Messages: []session.Message{
				user, message(session.Assistant, session.TextPart("I look."), call("a", "f", `{"x": 1}`), call("b", "f", "")),
				message(session.Tool, result("b", "2")), message(session.Tool, result("a", "1"), jpeg), user,
			}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"x": 1}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QUJD"}}]},{"type":"text","text":"hi"}]}]}`,
			off:  true,
		},
		{
			name: "ids and names that the API does not take",
			in: wire.Request{Messages: []session.Message{
				user,
				message(session.Assistant, call(long, "mcp.files/read", "{}"), call("", "名", "{}")),
				message(session.Tool, result(long, "1"), result("", "2")),
			}},
			want:   `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"callxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxfcyyyy","name":"mcp_files_read","input":{}},{"type":"tool_use","id":"toolu_made_2","name":"_","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"callxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxfcyyyy","content":"1"},{"type":"tool_result","tool_use_id":"toolu_made_2","content":"2"}]}]}`,
			losses: []string{`the tool's name "mcp.files/read" is sent as "mcp_files_read"`, `the tool's name "名" is sent as "_"`}, off: true,
		},
		{
			name: "arguments that are no object", in: wire.Request{Messages: []session.Message{
				user,
				message(session.Assistant, call("a", "f", `{"x": 1`), call("b", "f", `[1.0]`)),
				message(session.Tool, result("a", "1"), result("b", "2")),
			}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"input":"{\"x\": 1"}},{"type":"tool_use","id":"b","name":"f","input":{"input":"[1.0]"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]}]}`,
			losses: []string{
				`arguments of "f" are no JSON object, sent inside one`,
				`arguments of "f" are no JSON object, sent inside one`,
			}, off: true,
		},
		{
			name: "a tool that another provider ran itself",
			in: wire.Request{Messages: []session.Message{
				user,
				message(session.Assistant, call("w", "web_search", `{"q":1}`), result("w", "found"), session.TextPart("So:"),
					call("a", "f", "{}")), message(session.Tool, result("a", "1")),
			}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"w","name":"web_search","input":{"q":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"w","content":"found"}]},{"role":"assistant","content":[{"type":"text","text":"So:"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]}`,
			off:  true,
		},
		{
			name: "what no provider is told, and what has another kind",
			in: wire.Request{Messages: []session.Message{
				named, marker, bash,
				message(session.Assistant, session.Part{Kind: session.PartRefusal, Text: "No."}, thinks), user,
			}},
			want:   `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"Ran ` + "`ls`" + `"}]},{"role":"assistant","content":[{"type":"text","text":"No."}]},` + hi + `]}`,
			losses: []string{"the author's name", "a marker is no message", "reasoning"},
		},
		{
			name: "files", in: wire.Request{Messages: []session.Message{message(session.User, text, zip,
				session.Part{Kind: session.PartAudio, Text: "spoken"}, session.Part{Kind: session.PartAudio})}},
			want: `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# A"},"title":"a.md"},{"type":"text","text":"spoken"}]}]}`,
			losses: []string{
				"file application/zip: its bytes or its type are not what the API takes",
				"audio in a message of role user",
			},
		},
		{
			name: "an import's thinking goes back to its maker",
			in: wire.Request{
				Model:    "claude-opus-4-8",
				Messages: []session.Message{user, pi, message(session.Tool, result("a", "1"))},
			},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]}`,
		},
		{
			name: "signatures of others that speak this form",
			in:   wire.Request{Model: "claude-opus-4-8", Messages: []session.Message{user, kimi, user}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":"y"},` + hi + `]}`, losses: []string{"reasoning"},
		},
		{
			name: "and are theirs again", in: wire.Request{
				Model:    "kimi-k2-thinking",
				Messages: []session.Message{user, kimi, user},
			},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"y"}]},` + hi + `]}`,
		},
		{
			name: "a result behind what a person said meanwhile",
			in: wire.Request{Messages: []session.Message{
				user,
				message(session.Assistant, call("a", "f", "{}"), call("b", "f", "{}")), message(session.Tool, result("a", "1")),
				user, message(session.Tool, result("b", "2")),
			}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"text","text":"hi"}]}]}`,
			off:  true,
		},
		{
			name: "a call without its result", in: wire.Request{Messages: []session.Message{
				user,
				message(session.Assistant, call("a", "f", "{}")), user,
			}},
			want: `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}]}`, losses: []string{`call "a" has no result behind it`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if sent := dialecttest.ExpectSent(t, anthropic.Form(), c.in, c.want, c.losses); sent.ThinkingOff != c.off {
				t.Errorf("thinking off: %v, want %v", sent.ThinkingOff, c.off)
			}
		})
	}
}

func TestThinkingIsOffWhereTheTurnBeganWithoutIt(t *testing.T) {
	const (
		said   = `{"role":"user","content":"x"}`
		called = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		mused  = `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
		gotA   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}`
		gotB   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"1"}]}`
	)
	for _, c := range []struct {
		name string
		in   []string
		off  bool
	}{
		{"the only reply did not think", []string{said, called, gotA}, true},
		{"the only reply thought", []string{said, mused, gotB}, false},
		{"the first reply of the turn did not think", []string{said, called, gotA, mused, gotB}, true},
		{"the first reply of the turn thought", []string{said, mused, gotB, called, gotA}, false},
		{"the turn before did not think", []string{
			said, called, gotA, `{"role":"assistant","content":"y"}`, said, mused,
			gotB,
		}, false},
		{"the turn is over", []string{said, called, gotA, `{"role":"assistant","content":"y"}`, said}, false},
		{"the path begins with a reply", []string{called, gotA}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(anthropic.Decode(dialecttest.List(t, "["+strings.Join(c.in, ",")+"]")))(t)
			if sent := testkit.Must(anthropic.Send(wire.Request{Messages: decoded.Messages}))(t); sent.ThinkingOff != c.off {
				t.Errorf("thinking off: %v, want %v", sent.ThinkingOff, c.off)
			}
		})
	}
}

func TestExportOfWhatAnotherFormGave(t *testing.T) {
	exported := testkit.Must(anthropic.Export([]session.Message{
		message(session.System, session.TextPart("Be short.")), message(session.Tool, result("a", "1")),
		message(session.Assistant, call("b", "f", "{}")), message(session.System, session.TextPart("x")),
	}))(t)
	want := `[{"role":"system","content":"Be short."},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"<system>\nx\n</system>"}]}]`
	if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("got %s", got)
	}
}

// What contextmgr shortened on its way is sent shortened, whatever the extras hold.
func TestSendOfWhatWasShortened(t *testing.T) {
	decoded, err := anthropic.Decode(dialecttest.List(t, `[{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"long"}]},{"type":"text","text":"long"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}]`))
	testkit.Check(t, err)
	decoded.Messages[0].Parts[0].Text, decoded.Messages[0].Parts[1].Text = "cut", "cut too"
	pruned := decoded.Messages[2].Parts[0]
	pruned.Text = "[left out]"
	decoded.Messages[2].Parts = []session.Part{pruned}
	dialecttest.ExpectSent(t, anthropic.Form(), wire.Request{Messages: decoded.Messages}, `{"messages":[{"role":"user","content":[{"type":"text","text":"cut"},{"type":"text","text":"cut too"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[left out]"}]}]}`, nil)
}

func TestAPartWithoutItsBlobIsAnError(t *testing.T) {
	dialecttest.RefusesMissingBlobs(t, anthropic.Form())
}

// Half an entry is an entry of its own, where a page ends between the two.
func TestExportOfHalfAnEntry(t *testing.T) {
	decoded, err := anthropic.Decode(dialecttest.List(t, `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"y"}]}]`))
	testkit.Check(t, err)
	for i, want := range []string{`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`, `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]`} {
		exported := testkit.Must(anthropic.Export(decoded.Messages[i : i+1]))(t)
		if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// anyContext generates conversations of this form and of others, mixed.
func anyContext(t *testing.T) func(*rapid.T) []session.Message {
	return func(r *rapid.T) []session.Message {
		if rapid.Bool().Draw(r, "foreign") {
			return dialecttest.AnyConversation(r)
		}
		raw := rapid.SliceOfN(rapid.Custom(anyMessage), 1, 6).Draw(r, "messages")
		decoded, err := anthropic.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", dialecttest.Array(raw), err)
		}
		return append(dialecttest.Stored(t, decoded.Messages), dialecttest.AnyConversation(r)...)
	}
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	dialecttest.AcceptsAny(t, anthropic.Form(), anyContext(t), "", "claude-opus-4-8", "kimi-k2")
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	dialecttest.StaysAPrefix(t, anthropic.Form(), dialecttest.AnyConversation, "", "claude-opus-4-8")
}

// Whatever decodes can be sent, repaired or not.
func FuzzSend(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_","name":"0"}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"0"}]},{"role":"user"},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result"}}]}]`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"text","text":"0","citations":[{"type":"page_location"}]}]}]`))
	dialecttest.FuzzSend(f, anthropic.Form(), wireCases(), func(msgs []session.Message) []session.Message { return msgs })
}

// A system message in the middle goes as such to the models that take one, behind what the user
// said: the API takes it nowhere else.
func TestSystemMessageInTheMiddleStaysOne(t *testing.T) {
	for _, c := range []struct{ name, model, in, want string }{
		{
			"behind the user's words", "claude-opus-4-8", `[{"role":"user","content":"x"},{"role":"system","content":"In German."},{"role":"assistant","content":"y"}]`,
			`[{"role":"user","content":"x"},{"role":"system","content":"In German."},{"role":"assistant","content":"y"}]`,
		},
		{
			"before the user's words", "claude-sonnet-5", `[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"system","content":"In German."},{"role":"user","content":"z"}]`,
			`[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"},{"role":"system","content":"In German."}]`,
		},
		{
			"between a call and its result, and a second one", "claude-opus-5-5", `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"system","content":"A"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":"B"}]`,
			`[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"system","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}]`,
		},
		{
			"between two replies it is quoted", "claude-opus-4-8", `[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"system","content":"In German."},{"role":"assistant","content":"z"}]`,
			`[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"<system>\nIn German.\n</system>"},{"role":"assistant","content":"z"}]`,
		},
		{
			"an older model gets it quoted", "claude-opus-4-7", `[{"role":"user","content":"x"},{"role":"system","content":"In German."}]`,
			`[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"<system>\nIn German.\n</system>"}]}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(anthropic.Decode(dialecttest.List(t, c.in)))(t)
			sent := dialecttest.Accepted(t, anthropic.Form(),
				wire.Request{Messages: dialecttest.Stored(t, decoded.Messages), Model: c.model})
			if want := `{"messages":` + c.want + `}`; !dialecttest.EqualJSON([]byte(want), sent.Request) {
				t.Errorf("sent %s\nwant %s", sent.Request, want)
			}
		})
	}
}

// What a user says behind a system message that was sent already moves that: the sender says so.
func TestMovedSystemMessageBreaksThePrefix(t *testing.T) {
	decoded := testkit.Must(anthropic.Decode(dialecttest.List(t, `[{"role":"user","content":"x"},{"role":"system","content":"s"},{"role":"user","content":"y"}]`)))(t)
	for before, want := range []string{"", "", "system_message", "", ""} {
		in := wire.Request{Messages: decoded.Messages, Model: "claude-opus-4-8", Before: before}
		if sent := testkit.Must(anthropic.Send(in))(t); sent.BrokenBy != want {
			t.Errorf("after a context of %d messages: broken by %q, want %q", before, sent.BrokenBy, want)
		}
	}
}

// The API rejects a request of more than 100 images. The oldest are left out, twenty at once, so
// that the beginning stays the same for as many new ones; the sender says when it does not.
func TestOldestImagesAreLeftOut(t *testing.T) {
	var entries []string
	for i := range 121 {
		entries = append(entries, fmt.Sprintf(`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/%d.png"}}]},{"role":"assistant","content":"seen"}`, i))
	}
	msgs := testkit.Must(anthropic.Decode(dialecttest.List(t, "["+strings.Join(entries, ",")+"]")))(t).Messages
	var last []string
	for _, c := range []struct {
		images, left int
		broken       string
	}{{100, 0, ""}, {101, 20, "images"}, {102, 20, ""}, {120, 20, ""}, {121, 40, "images"}} {
		in := wire.Request{Messages: msgs[:2*c.images], Before: 2 * (c.images - 1)}
		sent := dialecttest.Accepted(t, anthropic.Form(), in)
		flat := dialecttest.Flat(t, anthropic.Name, sent.Request)
		if n := strings.Count(string(sent.Request), `"type":"image"`); n != c.images-c.left || sent.BrokenBy != c.broken {
			t.Errorf("of %d images %d are sent, %q", c.images, n, sent.BrokenBy)
		}
		if c.left > 0 && (len(sent.Losses) != 1 || !strings.HasPrefix(sent.Losses[0], fmt.Sprint(c.left, " images"))) {
			t.Errorf("of %d images: losses %q", c.images, sent.Losses)
		}
		if c.broken == "" && !slices.Equal(last, flat[:len(last)]) {
			t.Errorf("the request of %d images does not begin with the one before", c.images)
		}
		last = flat
	}
}

// A name of 87 letters is too long for the API: the tool gets a shorter one, which the answer maps
// back, and two tools never get the same.
func TestLongToolNamesAreMappedBack(t *testing.T) {
	long := "mcp__plugin_" + strings.Repeat("x", 70)
	entry := func(id, name string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"1"}]}`
	}
	in := `[{"role":"user","content":"x"},` + strings.Join([]string{
		entry("a", long+"_one"), entry("b", long+"_two"),
		entry("c", long+"_one"), entry("d", "f"),
	}, ",") + `]`
	sent := dialecttest.Accepted(t, anthropic.Form(),
		wire.Request{Messages: testkit.Must(anthropic.Decode(dialecttest.List(t, in)))(t).Messages})
	own := map[string]bool{}
	for name, of := range sent.ToolNames {
		if own[of] = true; len(name) > 64 || !strings.Contains(string(sent.Request), `"name":"`+name+`"`) {
			t.Errorf("%q is sent as %q", of, name)
		}
	}
	if len(own) != 2 || !own[long+"_one"] || !own[long+"_two"] || len(sent.Losses) != 2 {
		t.Errorf("names %v, losses %q", sent.ToolNames, sent.Losses)
	}
}
