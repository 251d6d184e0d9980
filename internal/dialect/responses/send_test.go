package responses_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/dialect/responses"
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

// sendCase is items as they came, and what is sent of them.
type sendCase struct {
	name, in, want string
	losses         []string
}

const (
	call   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	output = `{"type":"function_call_output","call_id":"a","output":"7"}`
)

func TestSendOfWhatTheWireGave(t *testing.T) {
	for _, c := range []sendCase{
		{name: "plain turns", in: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <&>!"}]`, want: `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":"Hello <&>!"}]`},
		{
			name: "ids, statuses and what is no request's", in: `[{"role":"user","content":"hi"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"See.","annotations":[{"type":"url_citation","url":"https://x"}],"logprobs":[]}]}]`,
			want: `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":"See."}]`, losses: []string{"20260211_001.2: field annotations"},
		},
		{
			name: "reasoning stays before its calls, without its id", in: `[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAA=","status":null},{"type":"function_call","id":"fc_1","status":"completed","call_id":"a","name":"f","arguments":"{\"x\": 1"},` + output + `]`,
			want: `[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAA="},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\": 1"},` + output + `]`,
		},
		{
			name: "reasoning that only the provider stores", in: `[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":null},` + call + `,` + output + `]`,
			want: `[` + call + `,` + output + `]`, losses: []string{"20260211_001.1: reasoning without its encrypted content", "20260211_001.1: reasoning without its encrypted content"},
		},
		{
			name: "reasoning that led to nothing", in: `[{"role":"user","content":"hi"},{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"role":"user","content":"well?"}]`,
			want: `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"user","content":"well?"}]`, losses: []string{"20260211_001.2: reasoning without what it led to"},
		},
		{
			name: "reasoning of an open model", in: `[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},{"role":"assistant","content":"x"}]`,
			want: `[{"type":"message","role":"assistant","content":"x"}]`, losses: []string{"20260211_001.1: reasoning without its encrypted content"},
		},
		{name: "parallel calls", in: `[` + call + `,{"type":"function_call","call_id":"b","name":"g","namespace":"crm","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"},{"type":"input_image","image_url":"https://x/a.png"}]},` + output + `]`, want: `[` + call + `,{"type":"function_call","call_id":"b","name":"g","namespace":"crm","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"},{"type":"input_image","detail":"auto","image_url":"https://x/a.png"}]},` + output + `]`},
		{name: "an id that is used again", in: `[` + call + `,` + output + `,` + call + `,` + output + `]`, want: `[` + call + `,` + output + `,` + strings.Replace(call, `"a"`, `"a_2"`, 1) + `,` + strings.Replace(output, `"a"`, `"a_2"`, 1) + `]`},
		{name: "arguments of an object become a string", in: `[{"type":"function_call","call_id":"a","name":"f","arguments":{"n": 1.0}},` + output + `]`, want: `[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"n\": 1.0}"},` + output + `]`},
		{name: "a custom tool", in: `[{"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"a","name":"apply_patch","input":"*** Begin"},{"type":"custom_tool_call_output","call_id":"a","output":"ok"}]`, want: `[{"type":"custom_tool_call","call_id":"a","name":"apply_patch","input":"*** Begin"},{"type":"custom_tool_call_output","call_id":"a","output":"ok"}]`},
		{name: "phases", in: `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}],"phase":"commentary"},{"type":"message","role":"assistant","content":"x","phase":"odd"}]`, want: `[{"type":"message","role":"assistant","content":"Looking.","phase":"commentary"},{"type":"message","role":"assistant","content":"x"}]`},
		{name: "a developer in the middle", in: `[{"role":"developer","content":[{"type":"input_text","text":"a","cache_control":{}},{"type":"input_text","text":"b"}]},{"role":"system","content":"c"}]`, want: `[{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},{"type":"message","role":"system","content":"c"}]`},
		{name: "refusals", in: `[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"No."}]}]`, want: `[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"No."}]}]`},
		{
			name: "pictures and files", in: `[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,QUJD","detail":"low"},{"type":"input_image","file_id":"file-1","detail":"weird"},{"type":"input_file","file_id":"file-2"},{"type":"input_file","file_url":"https://x/a.pdf"},{"type":"input_file","filename":"a.pdf","file_data":"JVBERi0="}]}]`,
			want: `[{"type":"message","role":"user","content":[{"type":"input_image","detail":"low","image_url":"data:image/png;base64,QUJD"},{"type":"input_image","detail":"auto","file_id":"file-1"},{"type":"input_file","file_id":"file-2"},{"type":"input_file","file_url":"https://x/a.pdf"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}]}]`,
		},
		{
			name: "what the API does not take", in: `[{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_video","v":1},{"type":"input_image","image_url":"data:image/png;base64,@@"},{"type":"input_image","image_url":"data:image/svg+xml;base64,QUJD"},{"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}}]}]`,
			want: `[{"type":"message","role":"user","content":"see"}]`,
			losses: []string{
				"20260211_001.1: unknown part type input_video", "20260211_001.1: image: its bytes or its type are not what the API takes",
				"20260211_001.1: image image/svg+xml: its bytes or its type are not what the API takes", "20260211_001.1: audio audio/wav: its bytes or its type are not what the API takes",
			},
		},
		{
			name: "unknown items and references", in: `[{"role":"user","content":"hi"},{"type":"item_reference","id":"msg_1"},{"type":"hologram","x":1},{"type":"hologram_call","call_id":"a"}]`, want: `[{"type":"message","role":"user","content":"hi"}]`,
			losses: []string{"20260211_001.2: an item_reference to what only the provider stores", "20260211_001.3: unknown item type hologram", "20260211_001.4: unknown item type hologram_call"},
		},
		{name: "a whole response", in: `[{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.1","instructions":"x","usage":{},"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAA="},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]}]`, want: `[{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"type":"message","role":"assistant","content":"x"}]`},
		{name: "a compaction", in: `[{"type":"compaction","id":"cmp_1","encrypted_content":"gAA="},{"role":"user","content":"hi"}]`, want: `[{"type":"compaction","encrypted_content":"gAA="},{"type":"message","role":"user","content":"hi"}]`},
		{name: "a text of half a pair is sent as it reads", in: `[{"role":"user","content":"cut \ud83d"}]`, want: `[{"type":"message","role":"user","content":"cut �"}]`},
		{name: "nothing", in: `[{"role":"user","content":null},{"role":"assistant","content":[]},{"role":"system","content":""}]`, want: `[{"type":"message","role":"user","content":""}]`},
	} {
		t.Run(c.name, func(t *testing.T) { sends(t, c) })
	}
}

func TestSendOfToolsThatTheProviderKnows(t *testing.T) {
	const mcp = `"server_label":"s","name":"ask","arguments":"{}"`
	for _, c := range []sendCase{
		{name: "a search without its id", in: `[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x","queries":["x"]}},{"role":"assistant","content":"y"}]`, want: `[{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x","queries":["x"]}},{"type":"message","role":"assistant","content":"y"}]`},
		{
			name: "a search that does not say what for", in: `[{"type":"web_search_call","status":"completed"},{"role":"assistant","content":"y"}]`, want: `[{"type":"message","role":"assistant","content":"y"}]`,
			losses: []string{"20260211_001.1: web_search_call, which the provider ran: it says nothing that can be sent"},
		},
		{
			name: "a search in files, with and without what it found", in: `[{"type":"file_search_call","id":"fs_1","status":"completed","queries":["x"],"results":null},{"type":"file_search_call","id":"fs_2","status":"completed","queries":["x"],"results":[{"file_id":"f","text":"found"}]},{"role":"assistant","content":"y"}]`,
			want: `[{"type":"function_call","call_id":"fs_2","name":"file_search","arguments":"{\"queries\":[\"x\"]}"},{"type":"function_call_output","call_id":"fs_2","output":"found"},{"type":"message","role":"assistant","content":"y"}]`,
			losses: []string{
				"20260211_001.1: file_search_call, which the provider ran: it says nothing that can be sent",
				"20260211_001.1: file_search_call, which the provider ran, is sent as a function's call and output",
			},
		},
		{
			name: "an interpreter", in: `[{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"print(1)","container_id":"c","outputs":[{"type":"logs","logs":"1"}]}]`,
			want: `[{"type":"function_call","call_id":"ci_1","name":"code_interpreter","arguments":"{\"code\":\"print(1)\"}"},{"type":"function_call_output","call_id":"ci_1","output":"1"}]`, losses: []string{"20260211_001.1: code_interpreter_call, which the provider ran, is sent as a function's call and output"},
		},
		{
			name: "a generated image", in: `[{"type":"image_generation_call","id":"ig_1","status":"completed","revised_prompt":"A cat","result":"QUJD","output_format":"webp"}]`,
			want:   `[{"type":"function_call","call_id":"ig_1","name":"image_generation","arguments":"{\"revised_prompt\":\"A cat\"}"},{"type":"function_call_output","call_id":"ig_1","output":[{"type":"input_image","detail":"auto","image_url":"data:image/webp;base64,QUJD"}]}]`,
			losses: []string{"20260211_001.1: image_generation_call, which the provider ran, is sent as a function's call and output"},
		},
		{
			name: "a computer, for which the API wants an id of its storage", in: `[{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"type":"computer_call","id":"cu_1","call_id":"a","action":{"type":"click","x":1,"y":2},"pending_safety_checks":[],"status":"completed"},{"type":"computer_call_output","call_id":"a","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,QUJD"}}]`,
			want:   `[{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"type":"function_call","call_id":"a","name":"computer","arguments":"{\"type\":\"click\",\"x\":1,\"y\":2}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,QUJD"}]}]`,
			losses: []string{"20260211_001.1: computer_call is sent as a function's call"},
		},
		{
			name: "a shell", in: `[{"type":"shell_call","id":"sh_1","call_id":"a","status":"completed","action":{"commands":["ls"]}},{"type":"shell_call_output","id":"sho_1","call_id":"a","max_output_length":100,"output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}]`,
			want: `[{"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"status":"completed"},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}],"max_output_length":100}]`,
		},
		{name: "a local shell is answered by its item's id", in: `[{"type":"local_shell_call","id":"lsh_1","call_id":"a","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call","id":"lsh_2","call_id":"b","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"lsh_2","output":"y"},{"type":"local_shell_call_output","id":"lsh_1","output":"x"}]`, want: `[{"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"},{"type":"local_shell_call","call_id":"b","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"},{"type":"function_call_output","call_id":"b","output":"y"},{"type":"function_call_output","call_id":"a","output":"x"}]`},
		{name: "a local shell is answered as a function", in: `[{"type":"local_shell_call","id":"lsh_1","call_id":"a","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"a","output":"x"}]`, want: `[{"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"},{"type":"function_call_output","call_id":"a","output":"x"}]`},
		{name: "a patch", in: `[{"type":"apply_patch_call","id":"apc_1","call_id":"a","status":"completed","operation":{"type":"delete_file","path":"x"}},{"type":"apply_patch_call_output","call_id":"a","status":"failed","output":"no"}]`, want: `[{"type":"apply_patch_call","call_id":"a","operation":{"type":"delete_file","path":"x"},"status":"completed"},{"type":"apply_patch_call_output","call_id":"a","status":"failed","output":"no"}]`},
		{name: "a search for tools", in: `[{"type":"tool_search_call","id":"t","call_id":null,"execution":"server","arguments":{"goal":"x"}},{"type":"tool_search_output","call_id":null,"execution":"server","tools":[{"type":"function","name":"f"}]}]`, want: `[{"type":"tool_search_call","call_id":"call_made_1","arguments":{"goal":"x"},"status":"completed","execution":"server"},{"type":"tool_search_output","call_id":"call_made_1","status":"completed","tools":[{"type":"function","name":"f"}],"execution":"server"}]`},
		{
			name: "an MCP server", in: `[{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[],"error":null},{"type":"mcp_approval_request","id":"mcpr_1",` + mcp + `},{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true},{"type":"mcp_call","id":"mcp_1",` + mcp + `,"output":"x","error":null,"approval_request_id":"mcpr_1","status":"completed"}]`,
			want: `[{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[]},{"type":"mcp_approval_request","id":"mcpr_1",` + mcp + `},{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true},{"type":"mcp_call","id":"mcp_1",` + mcp + `,"output":"x","approval_request_id":"mcpr_1"}]`,
		},
		{
			name: "approvals without the other half", in: `[{"role":"user","content":"hi"},{"type":"mcp_approval_request","id":"mcpr_1",` + mcp + `},{"type":"mcp_approval_response","approval_request_id":"mcpr_2","approve":true}]`,
			want:   `[{"type":"message","role":"user","content":"hi"}]`,
			losses: []string{"20260211_001.2: a request for an approval that has no answer", "20260211_001.3: an approval of a request that is not here"},
		},
	} {
		t.Run(c.name, func(t *testing.T) { sends(t, c) })
	}
}

func sends(t *testing.T, c sendCase) {
	t.Helper()
	decoded := testkit.Must(responses.Decode(list(t, c.in)))(t)
	expectSent(t, wire.Request{Messages: ref(dialecttest.Stored(t, decoded.Messages))}, `"input":`+c.want, c.losses)
}

func expectSent(t *testing.T, in wire.Request, want string, losses []string) {
	t.Helper()
	sent := testkit.Must(responses.Send(in))(t)
	if want = `{` + want + `}`; !dialecttest.EqualJSON([]byte(want), sent.Request) {
		t.Errorf("sent %s\nwant %s", sent.Request, want)
	}
	if diff := cmp.Diff(losses, sent.Losses); diff != "" {
		t.Errorf("losses: %s", diff)
	}
	if err := dialecttest.ValidateResponses(sent.Request); err != nil {
		t.Errorf("the provider would refuse it: %v", err)
	}
}
