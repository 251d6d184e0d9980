package anthropic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// ref numbers messages as a store would.
func ref(msgs []session.Message) []session.Message {
	for i := range msgs {
		msgs[i].ID = session.MessageRef{Session: "20260211_001", Seq: int64(i + 1)}
	}
	return msgs
}

func TestSendOfWhatTheWireGave(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		losses         []string
	}{
		{name: "plain turns are blocks", in: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <&>!"},{"role":"user","content":"x"}]`, want: `[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"Hello <&>!"}]},{"role":"user","content":[{"type":"text","text":"x"}]}]`},
		{
			name: "a reply loses what is no request's", in: `[{"role":"user","content":"x"},{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"y","citations":null}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1},"novel":1}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]}]`, losses: []string{"20260211_001.2: field novel"},
		},
		{
			name: "cache marks are no loss", in: `[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"y","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"}}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]}]`, losses: []string{`20260211_001.1: a result of "a" answers no call of the reply before it`},
		},
		{
			name: "calls and results", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"n": 1.0}},{"type":"tool_use","id":"toolu_2","name":"g","input":{},"caller":{"type":"direct"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"2","is_error":true},{"type":"tool_result","tool_use_id":"toolu_1"},{"type":"text","text":"and?"}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"n": 1.0}},{"type":"tool_use","id":"toolu_2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"2","is_error":true},{"type":"tool_result","tool_use_id":"toolu_1"},{"type":"text","text":"and?"}]}]`,
		},
		{
			name: "what a result holds keeps its order", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"hologram"},{"type":"text","text":"seen"},{"type":"tool_reference","tool_name":"g"},{"type":"text","text":" "},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"},"title":"T","citations":{"enabled":true}}]}]}]`,
			want:   `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"text","text":"seen"},{"type":"tool_reference","tool_name":"g"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"},"title":"T","citations":{"enabled":true}}]}]}]`,
			losses: []string{"20260211_001.3: unknown part type hologram"},
		},
		{
			name: "a failure that says nothing", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"(no content)","is_error":true}]}]`,
		},
		{
			name: "thinking stays as it is", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"Eq+/=="},{"type":"redacted_thinking","data":"Em=="},{"type":"text","text":"y"},{"type":"thinking","thinking":"b","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"Eq+/=="},{"type":"redacted_thinking","data":"Em=="},{"type":"text","text":"y"},{"type":"thinking","thinking":"b","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
		},
		{
			name: "thinking that nothing follows, or that nobody signed", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":""},{"type":"text","text":"y"},{"type":"thinking","thinking":"b","signature":"s"}]},{"role":"user","content":"z"}]`,
			want:   `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":[{"type":"text","text":"z"}]}]`,
			losses: []string{"20260211_001.2: reasoning", "20260211_001.2: reasoning at the end of a reply"},
		},
		{
			name: "a reply in several entries is one, its thinking first", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"user","content":"go on"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"go on"}]}]`,
		},
		{
			name: "web search with its citation", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"E+/==","page_age":null}]},{"type":"text","text":"y","citations":[{"type":"web_search_result_location","url":"https://a","title":"A","encrypted_index":"I=","cited_text":"c","novel":1},{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"E+/=="}]},{"type":"text","text":"y","citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"I=","title":"A","url":"https://a"},{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}]},{"role":"user","content":[{"type":"text","text":"z"}]}]`,
		},
		{
			name: "a turn that paused is given back to go on", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}],"stop_reason":"pause_turn"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}]`,
		},
		{
			name: "a turn that paused and went on is one", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}],"stop_reason":"pause_turn"},{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"y"}]},{"role":"user","content":[{"type":"text","text":"z"}]}]`,
		},
		{
			name: "a turn that paused and never went on", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"y"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}],"stop_reason":"pause_turn"},{"role":"user","content":"z"}]`,
			want:   `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":[{"type":"text","text":"z"}]}]`,
			losses: []string{`20260211_001.2: call "srvtoolu_1" of the provider's own tool has no result`},
		},
		{
			name: "a program that calls a tool", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"f()"}},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"7"}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"f()"}},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"7"}]}]`,
		},
		{
			name: "MCP", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"Hello"}]},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"Hello"}]},{"type":"text","text":"y"}]},{"role":"user","content":[{"type":"text","text":"z"}]}]`,
		},
		{
			name: "pictures and documents", in: `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + png + `"}},{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{"type":"image","source":{"type":"file","file_id":"file_1"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf","context":"old"},{"type":"document","source":{"type":"content","content":"whole"}},{"type":"document","source":{"type":"url","url":"https://x/a"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found","cache_control":{"type":"ephemeral"}}],"citations":{"enabled":false}},{"type":"container_upload","file_id":"file_2"}]}]`,
			want: `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}},{"type":"image","source":{"type":"url","url":"https://x/a.png"}},{"type":"image","source":{"type":"file","file_id":"file_1"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf","context":"old"},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"whole"}]}},{"type":"document","source":{"type":"url","url":"https://x/a"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found"}],"citations":{"enabled":false}},{"type":"container_upload","file_id":"file_2"}]}]`,
		},
		{
			name: "what the API does not take", in: `[{"role":"user","content":[{"type":"text","text":"see","novel":1},{"type":"video"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"@@"}},{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"QUJD"}},{"type":"image","source":{"type":"url","url":"http://x"}}]},{"role":"assistant","content":[{"type":"compaction","content":"c"}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"see"}]}]`,
			losses: []string{
				"20260211_001.1: field novel of a text", "20260211_001.1: unknown part type video", "20260211_001.1: image image/png: its bytes or its type are not what the API takes",
				"20260211_001.1: image image/svg+xml: its bytes or its type are not what the API takes", "20260211_001.1: image: its bytes or its type are not what the API takes", "20260211_001.2: unknown part type compaction",
			},
		},
		{
			name: "halves of pairs are sent as they read", in: `[{"role":"user","content":"cut \ud83d"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":"\ud83d \ud83d\ude00 \\ud83d \uDC00"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"cut �"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":"� 😀 \\ud83d �"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`,
		},
		{
			name: "a system entry in the middle is quoted", in: `[{"role":"system","content":"Be short."},{"role":"user","content":"x"},{"role":"system","content":"In German."},{"role":"assistant","content":"y  \n"}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"<system>\nIn German.\n</system>"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]}]`, losses: []string{"20260211_001.3: a system message in the middle is sent in the user's role"},
		},
		{name: "nothing", in: `[{"role":"user","content":""},{"role":"assistant","content":[]}]`, want: `[{"role":"user","content":[{"type":"text","text":"(no content)"}]}]`},
		{name: "a reply comes first", in: `[{"role":"assistant","content":"y"},{"role":"user","content":"x"}]`, want: `[{"role":"user","content":[{"type":"text","text":"(no content)"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":[{"type":"text","text":"x"}]}]`},
		{
			name: "the same id twice", in: `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"2"}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a_2","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_2","content":"2"}]}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(anthropic.Decode(list(t, c.in)))(t)
			want := `{"messages":` + c.want + `}`
			if strings.Contains(c.in, `"Be short."`) {
				want = `{"system":"Be short.","messages":` + c.want + `}`
			}
			expectSent(t, wire.Request{Messages: ref(dialecttest.Stored(t, decoded.Messages))}, want, c.losses)
		})
	}
}

func expectSent(t *testing.T, in wire.Request, want string, losses []string) wire.Sent {
	t.Helper()
	sent := testkit.Must(anthropic.Send(in))(t)
	if !dialecttest.EqualJSON([]byte(want), sent.Request) {
		t.Errorf("sent %s\nwant %s", sent.Request, want)
	}
	if diff := cmp.Diff(losses, sent.Losses); diff != "" {
		t.Errorf("losses: %s", diff)
	}
	if err := dialecttest.ValidateAnthropic(sent.Request); err != nil {
		t.Errorf("the provider would refuse it: %v", err)
	}
	return sent
}
