package responses_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

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
			want: `[` + call + `,` + output + `]`, losses: []string{
				"20260211_001.1: reasoning without its encrypted content",
				"20260211_001.1: reasoning without its encrypted content",
			},
		},
		{
			name: "reasoning that led to nothing", in: `[{"role":"user","content":"hi"},{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"role":"user","content":"well?"}]`,
			want: `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"user","content":"well?"}]`, losses: []string{"20260211_001.2: reasoning without what it led to"},
		},
		{
			name: "reasoning of an open model", in: `[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},{"role":"assistant","content":"x"}]`,
			want:   `[{"type":"message","role":"assistant","content":"x"}]`,
			losses: []string{"20260211_001.1: reasoning without its encrypted content"},
		},
		{name: "parallel calls", in: `[` + call + `,{"type":"function_call","call_id":"b","name":"g","namespace":"crm","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"},{"type":"input_image","image_url":"https://x/a.png"}]},` + output + `]`, want: `[` + call + `,{"type":"function_call","call_id":"b","name":"g","namespace":"crm","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"},{"type":"input_image","detail":"auto","image_url":"https://x/a.png"}]},` + output + `]`},
		{
			name: "an id that is used again", in: `[` + call + `,` + output + `,` + call + `,` + output + `]`,
			want: `[` + call + `,` + output + `,` + strings.Replace(call, `"a"`, `"a_2"`, 1) + `,` +
				strings.Replace(output, `"a"`, `"a_2"`, 1) + `]`,
		},
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
				"20260211_001.1: unknown part type input_video",
				"20260211_001.1: image: its bytes or its type are not what the API takes",
				"20260211_001.1: image image/svg+xml: its bytes or its type are not what the API takes",
				"20260211_001.1: audio audio/wav: its bytes or its type are not what the API takes",
			},
		},
		{
			name: "unknown items and references", in: `[{"role":"user","content":"hi"},{"type":"item_reference","id":"msg_1"},{"type":"hologram","x":1},{"type":"hologram_call","call_id":"a"}]`, want: `[{"type":"message","role":"user","content":"hi"}]`,
			losses: []string{
				"20260211_001.2: an item_reference to what only the provider stores",
				"20260211_001.3: unknown item type hologram", "20260211_001.4: unknown item type hologram_call",
			},
		},
		{name: "a whole response", in: `[{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.1","instructions":"x","usage":{},"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAA="},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]}]`, want: `[{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"type":"message","role":"assistant","content":"x"}]`},
		{name: "a compaction", in: `[{"type":"compaction","id":"cmp_1","encrypted_content":"gAA="},{"role":"user","content":"hi"}]`, want: `[{"type":"compaction","encrypted_content":"gAA="},{"type":"message","role":"user","content":"hi"}]`},
		{
			name: "a text of half a pair is sent as it reads", in: `[{"role":"user","content":"cut \ud83d"}]`,
			want: `[{"type":"message","role":"user","content":"cut �"}]`,
		},
		{name: "nothing", in: `[{"role":"user","content":null},{"role":"assistant","content":[]},{"role":"system","content":""}]`, want: `[{"type":"message","role":"user","content":"(no content)"}]`, losses: []string{"20260211_001.1: nothing that can be sent: (no content) stands in its place"}},
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
			want: `[{"type":"function_call","call_id":"ig_1","name":"image_generation","arguments":"{\"revised_prompt\":\"A cat\"}"},{"type":"function_call_output","call_id":"ig_1","output":[{"type":"input_image","detail":"auto","image_url":"data:image/webp;base64,QUJD"}]}]`,
			losses: []string{"20260211_001.1: image_generation_call, which the provider ran, " +
				"is sent as a function's call and output"},
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
			want: `[{"type":"message","role":"user","content":"hi"}]`,
			losses: []string{
				"20260211_001.2: a request for an approval that has no answer",
				"20260211_001.3: an approval of a request that is not here",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) { sends(t, c) })
	}
}

func sends(t *testing.T, c sendCase) {
	t.Helper()
	decoded := testkit.Must(responses.Decode(dialecttest.List(t, c.in)))(t)
	dialecttest.ExpectSent(t, responses.Form(), wire.Request{Messages: dialecttest.Numbered(dialecttest.Stored(t,
		decoded.Messages))}, `{"input":`+c.want+`}`, c.losses)
}

// accepted sends a context, and asks the validator.
func accepted(t testing.TB, in wire.Request) wire.Sent {
	t.Helper()
	return dialecttest.Accepted(t, responses.Form(), in)
}

// anyRepaired generates items of the wire, of every kind and in every shape that decodes, as a
// repaired context has them.
func anyRepaired(t testing.TB) func(*rapid.T) []session.Message {
	return func(r *rapid.T) []session.Message {
		raw := []jsontext.Value{jsontext.Value(`{"role":"user","content":"hi"}`)}
		raw = append(raw, rapid.SliceOfN(rapid.Custom(anyInput), 1, 8).Draw(r, "items")...)
		decoded, err := responses.Decode(raw)
		if err != nil {
			r.Fatalf("%s: %v", dialecttest.Array(raw), err)
		}
		return repaired(dialecttest.Stored(t, decoded.Messages))
	}
}

// repaired returns messages as a context holds them, with calls that nothing answered closed.
func repaired(msgs []session.Message) []session.Message {
	var out []session.Message
	for _, item := range contextmgr.Repair(msgs, nil, true).Items {
		out = append(out, item.Message)
	}
	return out
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.AcceptsAny(t, responses.Form(), dialecttest.AnyConversation, "")
	})
	t.Run("of this form", func(t *testing.T) { dialecttest.AcceptsAny(t, responses.Form(), anyRepaired(t), "") })
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.StaysAPrefix(t, responses.Form(), dialecttest.AnyConversation, "")
	})
	t.Run("of this form", func(t *testing.T) {
		dialecttest.StaysAPrefix(t, responses.Form(), func(r *rapid.T) []session.Message {
			msgs := anyRepaired(t)(r)
			return slices.DeleteFunc(msgs, asksApproval) // it is sent from when it is answered on
		}, "")
	})
}

func asksApproval(m session.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p session.Part) bool {
		return bytes.Contains(p.Extra, []byte("mcp_approval_request"))
	})
}

// FuzzSend: whatever decodes, once repaired, is accepted.
func FuzzSend(f *testing.F) {
	dialecttest.FuzzSend(f, responses.Form(), wireCases(), func(msgs []session.Message) []session.Message {
		hi := session.Message{
			Kind: session.KindMessage, Role: session.User, InContext: true,
			Parts: []session.Part{session.TextPart("hi")},
		}
		return repaired(append([]session.Message{hi}, msgs...))
	})
}

func TestSendOfEveryCaseIsAccepted(t *testing.T) {
	for _, c := range wireCases() {
		t.Run(c.Name, func(t *testing.T) {
			decoded := testkit.Must(responses.Decode(append(dialecttest.List(t, `[{"role":"user","content":"hi"}]`),
				dialecttest.List(t, c.Entries)...)))(t)
			accepted(t, wire.Request{Messages: repaired(dialecttest.Stored(t, decoded.Messages))})
		})
	}
}

// message builds what came in another form.
func message(role session.Role, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Dialect: "anthropic", InContext: true, Parts: parts}
}

func calls(id, name string) session.Part {
	return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: "{}"}
}

func result(id, text string) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, Text: text}
}

func TestSendOfWhatAnotherFormGave(t *testing.T) {
	long := "call_" + strings.Repeat("x", 30) + "|fc_" + strings.Repeat("y", 60)
	longer := strings.Repeat("toolu_", 20)
	bash := message(session.User, session.TextPart("Ran `ls`"))
	bash.Kind = session.KindBash
	marker := message("")
	marker.Kind = session.KindMarker
	jpeg := session.Part{Kind: session.PartImage, CallID: "a", Blob: wire.Blob("image/jpeg", []byte("ABC"))}
	custom := calls("a", "patch")
	custom.Extra = session.JSON(`{"type":"custom"}`)
	thinking := session.Part{Kind: session.PartReasoning, Text: "hm", Extra: session.JSON(`{"signature":"Er=="}`)}
	sound := session.Part{Kind: session.PartAudio, Text: "Hello", Blob: wire.Blob("audio/wav", []byte("ABC"))}
	upload := session.Part{Kind: session.PartFile, Extra: session.JSON(`{"file_id":"file_011"}`)}
	for _, c := range []struct {
		name   string
		in     wire.Request
		want   string
		losses []string
	}{
		{name: "system text has its own place", in: wire.Request{System: "Be short.", Messages: []session.Message{message(session.User, session.TextPart("hi"))}}, want: `"instructions":"Be short.","input":[{"type":"message","role":"user","content":"hi"}]`},
		{
			name: "several results of one message, with a picture", in: wire.Request{Messages: []session.Message{
				message(session.Assistant, calls("a", "f"), calls("b", "f")),
				message(session.Tool, result("a", "1"), jpeg, result("b", "2")),
			}},
			want: `"input":[` + call + `,` + strings.Replace(call, `"a"`, `"b"`, 1) + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"1"},{"type":"input_image","detail":"auto","image_url":"data:image/jpeg;base64,QUJD"}]},{"type":"function_call_output","call_id":"b","output":"2"}]`,
		},
		{
			name: "names and ids that the API refuses", in: wire.Request{Messages: []session.Message{message(session.Assistant,
				calls(long, "mcp.files/read")), message(session.Tool, result(long, "1"))}},
			want:   `"input":[{"type":"function_call","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","name":"mcp_files_read","arguments":"{}"},{"type":"function_call_output","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","output":"1"}]`,
			losses: []string{`20260211_001.1: the tool's name "mcp.files/read" is sent as "mcp_files_read"`},
		},
		{
			name: "long ids that begin alike", in: wire.Request{Messages: []session.Message{
				message(session.Assistant,
					calls(long, "f"), calls(long+"z", "f"), calls(longer, "f")),
				message(session.Tool, result(longer, "3"), result(long+"z", "2"), result(long, "1")),
			}},
			want: `"input":[{"type":"function_call","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","name":"f","arguments":"{}"},{"type":"function_call","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_2","name":"f","arguments":"{}"},{"type":"function_call","call_id":"` + longer[:40] + `e94b2319472084c63e0f1356","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"` + longer[:40] + `e94b2319472084c63e0f1356","output":"3"},{"type":"function_call_output","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_2","output":"2"},{"type":"function_call_output","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","output":"1"}]`,
		},
		{
			name: "ids that were never given, matched by name", in: wire.Request{Messages: []session.Message{
				message(session.Assistant, calls("", "f"), calls("", "g")),
				message(session.Tool, session.Part{Kind: session.PartToolResult, ToolName: "g", Text: "G"},
					session.Part{Kind: session.PartToolResult, ToolName: "f", Text: "F"}),
			}},
			want: `"input":[{"type":"function_call","call_id":"call_made_1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"call_made_2","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"call_made_2","output":"G"},{"type":"function_call_output","call_id":"call_made_1","output":"F"}]`,
		},
		{name: "a custom tool's call", in: wire.Request{Messages: []session.Message{message(session.Assistant, custom), message(session.Tool, result("a", "ok"))}}, want: `"input":[{"type":"custom_tool_call","call_id":"a","name":"patch","input":"{}"},{"type":"custom_tool_call_output","call_id":"a","output":"ok"}]`},
		{
			name: "thinking stays with its maker, order of text and calls stays",
			in: wire.Request{Messages: []session.Message{message(session.Assistant, thinking, session.TextPart("a"),
				session.TextPart("b"), calls("a", "f"), session.TextPart("c")), message(session.Tool, result("a", ""))}},
			want: `"input":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},` + call + `,{"type":"message","role":"assistant","content":"c"},{"type":"function_call_output","call_id":"a","output":""}]`, losses: []string{"20260211_001.1: reasoning"},
		},
		{
			name: "a tool that another provider ran", in: wire.Request{Messages: []session.Message{message(session.Assistant,
				session.TextPart("I search."), calls("a", "web_search"), result("a", "found"), calls("b", "web_search"),
				result("b", ""), session.TextPart("So:"))}},
			want: `"input":[{"type":"message","role":"assistant","content":"I search."},{"type":"function_call","call_id":"a","name":"web_search","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"found"},{"type":"message","role":"assistant","content":"So:"}]`,
			losses: []string{
				"20260211_001.1: web_search, which the provider ran, is sent as a function's call and output",
				"20260211_001.1: web_search, which the provider ran: it says nothing that can be sent",
			},
		},
		{
			name: "a shell command of the person, and a marker", in: wire.Request{Messages: []session.Message{bash, marker}},
			want:   `"input":[{"type":"message","role":"user","content":"Ran ` + "`ls`" + `"}]`,
			losses: []string{"20260211_001.2: a marker is no message"},
		},
		{
			name: "what was said aloud, another store's file, a picture of the model's own",
			in: wire.Request{Messages: []session.Message{
				message(session.User, sound, upload),
				message(session.Assistant, session.TextPart("see"), jpeg),
			}},
			want: `"input":[{"type":"message","role":"user","content":"Hello"},{"type":"message","role":"assistant","content":"see"}]`,
			losses: []string{
				"20260211_001.1: file: its bytes or its type are not what the API takes",
				"20260211_001.2: image in a message of role assistant",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Messages = dialecttest.Numbered(c.in.Messages)
			dialecttest.ExpectSent(t, responses.Form(), c.in, "{"+c.want+"}", c.losses)
		})
	}
}

// What a context shortened, replaced or put before a message's own parts is what is sent.
func TestSendOfWhatAContextChanged(t *testing.T) {
	decoded, err := responses.Decode(dialecttest.List(t, `[{"role":"user","content":"hi"},{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"a long text","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"type":"shell_call","call_id":"b","action":{"commands":["ls"]}},{"type":"mcp_call","id":"m","server_label":"s","name":"f","arguments":"{}","output":"a long text"}]`))
	testkit.Check(t, err)
	msgs := dialecttest.Stored(t, decoded.Messages)
	msgs[0].Parts = append([]session.Part{session.TextPart("recalled")}, msgs[0].Parts...)
	msgs[2].Parts[0].Text = "pruned"
	msgs[3].Parts[2].Text = "cut"
	failed := true
	msgs = append(msgs, session.Message{
		Kind: session.KindMessage, Role: session.Tool,
		Parts: []session.Part{{Kind: session.PartToolResult, CallID: "b", Text: "closed", IsError: &failed}},
	})
	dialecttest.ExpectSent(t, responses.Form(), wire.Request{Messages: msgs}, `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"recalled"},{"type":"input_text","text":"hi"}]},
		{"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"status":"completed"},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"pruned","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"type":"shell_call","call_id":"b","action":{"commands":["ls"]},"status":"completed"},{"type":"mcp_call","id":"m","server_label":"s","name":"f","arguments":"{}","output":"cut"},
		{"type":"shell_call_output","call_id":"b","output":[{"stdout":"closed","stderr":"","outcome":{"type":"exit","exit_code":1}}]}]}`, nil)
}

// However often ids come again, and whatever they look like, each call has its own.
func TestIDsStayApart(t *testing.T) {
	for _, id := range []string{
		"a", "a_2", strings.Repeat("x", 64), strings.Repeat("x", 65),
		"a|" + strings.Repeat("x", 62), "a|" + strings.Repeat("x", 63), strings.Repeat("é", 40),
		"|" + strings.Repeat("x", 80),
	} {
		var msgs []session.Message
		for range 30 {
			msgs = append(msgs, message(session.Assistant, calls(id, "f"), calls("a", "f"), calls("a_2", "f")),
				message(session.Tool, result("a", "1"), result(id, "2"), result("a_2", "3")))
		}
		accepted(t, wire.Request{Messages: msgs})
	}
}

func TestReasoningGoesToItsMakerOnly(t *testing.T) {
	for _, c := range []struct {
		provider, model, to string
		sent                bool
	}{
		{"", "", "gpt-5.1", true},
		{"openai", "gpt-5", "gpt-5.1", true},
		{"azure-openai-responses", "gpt-5", "gpt-5.1", true},
		{"xai", "grok-4", "grok-4", true},
		{"xai", "grok-4", "gpt-5.1", false},
		{"xai", "", "", false},
	} {
		decoded, err := responses.Decode(dialecttest.List(t, `[{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"role":"assistant","content":"x"}]`))
		testkit.Check(t, err)
		m := decoded.Messages
		m[0].Provider, m[0].Model = c.provider, c.model
		sent := accepted(t, wire.Request{Messages: m, Model: c.to})
		if got := strings.Contains(string(sent.Request), "gAA="); got != c.sent || got == (len(sent.Losses) == 1) {
			t.Errorf("%s %s to %s: %s, losses %q", c.provider, c.model, c.to, sent.Request, sent.Losses)
		}
	}
}

// pi keeps an item of reasoning whole as the signature of its block.
func TestReasoningOfPiGoesToItsModelOnly(t *testing.T) {
	for signature, sent := range map[string]bool{
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAA="}`: true,
		`{"type":"reasoning","id":"rs_1","summary":[]}`:                                                               false,
		`EvsfCkYIChgC`: false,
	} {
		for _, model := range []string{"gpt-5.1", "gpt-6"} {
			m := message(session.Assistant, session.Part{
				Kind: session.PartReasoning, Text: "hm",
				Extra: session.JSONOf(map[string]string{"thinkingSignature": signature}),
			}, session.TextPart("x"))
			m.Dialect, m.Provider, m.Model = "pi", "openai", "gpt-5.1"
			got := accepted(t, wire.Request{Messages: []session.Message{m}, Model: model})
			if has := strings.Contains(string(got.Request), `"encrypted_content":"gAA="`); has != (sent && model == m.Model) ||
				has == (len(got.Losses) > 0) {
				t.Errorf("%s to %s: %s, losses %q", signature, model, got.Request, got.Losses)
			}
		}
	}
}

func TestExportOfWhatAnotherFormGave(t *testing.T) {
	msgs := []session.Message{
		message(session.Assistant, calls("a", "f")),
		message(session.Tool, result("a", "1"), session.Part{
			Kind: session.PartImage, CallID: "a",
			Blob: wire.Blob("image/png", []byte("ABC")),
		}),
	}
	own, err := responses.Decode(dialecttest.List(t, `[{"object":"response","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]}]`))
	testkit.Check(t, err)
	exported := testkit.Must(responses.Export(append(append(msgs, own.Messages...),
		message(session.User, session.TextPart("hi")))))(t)
	want := `[` + call + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"1"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,QUJD"}]},
		{"object":"response","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]},{"type":"message","role":"user","content":"hi"}]`
	if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("exported %s\nwant %s", got, want)
	}
}

func TestAPartOfAResponseIsExportedByItems(t *testing.T) {
	decoded, err := responses.Decode(dialecttest.List(t, `[{"object":"response","output":[{"type":"shell_call","call_id":"a","action":{}},{"type":"shell_call_output","call_id":"a"},{"type":"message","role":"assistant","content":"x"}]}]`))
	testkit.Check(t, err)
	exported := testkit.Must(responses.Export(decoded.Messages[1:]))(t)
	if want, got := `[{"type":"shell_call_output","call_id":"a"},{"type":"message","role":"assistant","content":"x"}]`, dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("exported %s", got)
	}
}

func TestAPartWithoutItsBlobIsAnError(t *testing.T) {
	dialecttest.RefusesMissingBlobs(t, responses.Form())
}

func TestAnExtraThatIsNoneIsAnError(t *testing.T) {
	for _, extra := range []string{`{`, `[]`, `{"item":7}`, `{"rest":[]}`} {
		m := message(session.Assistant, session.Part{Kind: session.PartText, Extra: session.JSON(extra)})
		m.Dialect = responses.Name
		if _, err := responses.Export([]session.Message{m}); session.CodeOf(err) != session.Internal {
			t.Errorf("export of %s: %v", extra, err)
		}
		if _, err := responses.Send(wire.Request{Messages: []session.Message{m}}); session.CodeOf(err) != session.Internal {
			t.Errorf("send of %s: %v", extra, err)
		}
	}
}
