package responses_test

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// row is what a person reads of a message in the tables.
type row struct {
	Role   session.Role
	Origin session.Origin
	Finish session.Finish
	Parts  []session.Part
}

func TestDecodeFillsTheColumns(t *testing.T) {
	no := cmpopts.IgnoreFields(session.Part{}, "Extra", "BlobSHA", "Blob")
	user := func(parts ...session.Part) row { return row{session.User, session.Person, "", parts} }
	reply := func(parts ...session.Part) row { return row{session.Assistant, session.Model, "", parts} }
	tool := func(parts ...session.Part) row { return row{session.Tool, session.ByTool, "", parts} }
	text := session.TextPart
	yes, no2 := true, false
	for _, c := range []struct {
		name, items string
		want        []row
	}{
		{"a person", `{"role":"user","content":"hi"},{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x"}]}`, []row{user(text("hi")), user(text("a"), session.Part{Kind: session.PartImage})}},
		{"instructions", `{"role":"developer","content":"Be short."},{"role":"system","content":"x"}`, []row{{session.System, session.Program, "", []session.Part{text("Be short.")}}, {session.System, session.Program, "", []session.Part{text("x")}}}},
		{
			"what the model made in a row is one reply", `{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"x"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."},{"type":"refusal","refusal":"no"}]},
				{"type":"function_call","call_id":"a","name":"f","arguments":"{ }"},{"type":"custom_tool_call","call_id":"b","name":"g","input":"raw"}`,
			[]row{reply(
				session.Part{Kind: session.PartReasoning, Text: "a"}, session.Part{Kind: session.PartReasoning, Text: "b"},
				text("I look."), session.Part{Kind: session.PartRefusal, Text: "no"},
				session.Part{Kind: session.PartToolCall, ToolName: "f", CallID: "a", Arguments: "{ }"},
				session.Part{Kind: session.PartToolCall, ToolName: "g", CallID: "b", Arguments: "raw"},
			)},
		},
		{
			"outputs in a row are one tool message", `{"type":"function_call_output","call_id":"a","output":"1"},{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_image","image_url":"https://x"},{"type":"input_text","text":"seen"},{"type":"input_text","text":"more"}]},{"role":"assistant","content":"x"},{"type":"function_call_output","call_id":"c","output":""}`,
			[]row{
				tool(session.Part{Kind: session.PartToolResult, CallID: "a", Text: "1"},
					session.Part{Kind: session.PartToolResult, CallID: "b", Text: "seen"},
					session.Part{Kind: session.PartImage, CallID: "b"},
					session.Part{Kind: session.PartText, CallID: "b", Text: "more"}),
				reply(text("x")), tool(session.Part{Kind: session.PartToolResult, CallID: "c"}),
			},
		},
		{"persons are not grouped", `{"role":"user","content":"a"},{"role":"user","content":"b"}`, []row{user(text("a")), user(text("b"))}},
		{
			"reasoning that says nothing", `{"type":"reasoning","summary":[],"encrypted_content":"x"}`,
			[]row{reply(session.Part{Kind: session.PartReasoning})},
		},
		{
			"tools that the provider ran", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search", "query":"x","sources":[{"url":"https://a"},{"url":"https://b"}]}},{"type":"code_interpreter_call","id":"ci_1","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},{"type":"mcp_call","id":"mcp_1","name":"ask","server_label":"s","arguments":"{}","output":null,"error":"no"},{"type":"image_generation_call","id":"ig_1","revised_prompt":"A cat","result":"QUJD"},{"type":"web_search_call","status":"completed"}`,
			[]row{reply(
				session.Part{Kind: session.PartToolCall, ToolName: "web_search", CallID: "ws_1", Arguments: `{"type":"search", "query":"x","sources":[{"url":"https://a"},{"url":"https://b"}]}`}, session.Part{Kind: session.PartToolResult, ToolName: "web_search", CallID: "ws_1", Text: "https://a\nhttps://b"},
				session.Part{Kind: session.PartToolCall, ToolName: "code_interpreter", CallID: "ci_1", Arguments: "1+1"},
				session.Part{Kind: session.PartToolResult, ToolName: "code_interpreter", CallID: "ci_1", Text: "2"},
				session.Part{Kind: session.PartToolCall, ToolName: "ask", CallID: "mcp_1", Arguments: "{}"},
				session.Part{Kind: session.PartToolResult, ToolName: "ask", CallID: "mcp_1", Text: "no", IsError: &yes},
				session.Part{Kind: session.PartToolCall, ToolName: "image_generation", CallID: "ig_1", Arguments: "A cat"},
				session.Part{Kind: session.PartToolResult, ToolName: "image_generation", CallID: "ig_1"},
				session.Part{Kind: session.PartImage, CallID: "ig_1"},
				session.Part{Kind: session.PartToolCall, ToolName: "web_search", CallID: "web_search_9"},
				session.Part{Kind: session.PartToolResult, ToolName: "web_search", CallID: "web_search_9"},
			)},
		},
		{
			"a shell, a patch, a computer", `{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}},{"type":"apply_patch_call","call_id":"b","operation":{"type":"delete_file","path":"x"}},{"type":"computer_call","call_id":"c","action":{"type":"wait"}},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x","stderr":"y"}]},{"type":"apply_patch_call_output","call_id":"b","status":"failed","output":"no"},{"type":"apply_patch_call_output","call_id":"b","status":"completed"},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,QUJD"}},{"type":"local_shell_call_output","id":"d","output":"z"}`,
			[]row{
				reply(session.Part{Kind: session.PartToolCall, ToolName: "shell", CallID: "a", Arguments: `{"commands":["ls"]}`},
					session.Part{
						Kind: session.PartToolCall, ToolName: "apply_patch", CallID: "b",
						Arguments: `{"type":"delete_file","path":"x"}`,
					},
					session.Part{Kind: session.PartToolCall, ToolName: "computer", CallID: "c", Arguments: `{"type":"wait"}`}),
				tool(session.Part{Kind: session.PartToolResult, ToolName: "shell", CallID: "a", Text: "x\ny"},
					session.Part{Kind: session.PartToolResult, ToolName: "apply_patch", CallID: "b", Text: "no", IsError: &yes},
					session.Part{Kind: session.PartToolResult, ToolName: "apply_patch", CallID: "b", IsError: &no2},
					session.Part{Kind: session.PartToolResult, ToolName: "computer", CallID: "c"},
					session.Part{Kind: session.PartImage, CallID: "c"},
					session.Part{Kind: session.PartToolResult, ToolName: "local_shell", CallID: "d", Text: "z"}),
			},
		},
		{
			"whole responses, and why they ended", `{"object":"response","status":"completed","output":[{"role":"assistant","type":"message","content":"a"}]},{"object":"response","status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":""}]},{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"role":"assistant","type":"message","content":"b"}]},{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]},{"object":"response","status":"failed","output":[]},{"object":"response","status":"cancelled","output":[]}`,
			[]row{
				{session.Assistant, session.Model, session.FinishStop, []session.Part{text("a")}},
				{
					session.Assistant, session.Model, session.FinishToolCalls,
					[]session.Part{{Kind: session.PartToolCall, CallID: "a", ToolName: "f"}},
				},
				{session.Assistant, session.Model, session.FinishLength, []session.Part{text("b")}},
				{session.Assistant, session.Model, session.FinishRefusal, nil},
				{session.Assistant, session.Model, session.FinishError, nil},
				{session.Assistant, session.Model, session.FinishAborted, nil},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(responses.Decode(dialecttest.List(t, "["+c.items+"]")))(t)
			var got []row
			for _, m := range decoded.Messages {
				got = append(got, row{m.Role, m.Origin, m.Finish, m.Parts})
				if m.Kind != session.KindMessage || m.Dialect != responses.Name || !m.InContext || !m.Display {
					t.Errorf("kind %q, dialect %q, in context %v, display %v", m.Kind, m.Dialect, m.InContext, m.Display)
				}
			}
			testkit.Equal(t, c.want, got, no, cmpopts.EquateEmpty())
		})
	}
}

func TestBytesBecomeBlobs(t *testing.T) {
	dialecttest.BytesBecomeBlobs(t, responses.Form(), `[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,QUJD"},{"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}},{"type":"input_file","filename":"a.pdf","file_data":"QUJD"},{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,QUJD"}]}]`, "image/png", "audio/mpeg", "application/pdf", "text/plain")
}

func TestAnUnknownItemIsKeptOutOfTheTalk(t *testing.T) {
	decoded := testkit.Must(responses.Decode(dialecttest.List(t, `[{"type":"hologram","x":1},{"id":"msg_1"}]`)))(t)
	for _, m := range decoded.Messages {
		if m.Kind != session.KindUnknown || m.Role != "" || len(m.Parts) != 1 || m.Parts[0].Kind != session.PartData {
			t.Errorf("%+v", m)
		}
	}
	if len(decoded.Warnings) != 2 {
		t.Errorf("warnings: %q", decoded.Warnings)
	}
}

func TestAnItemsFieldsStandInItsFirstPart(t *testing.T) {
	decoded, err := responses.Decode(dialecttest.List(t, `[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}]`))
	testkit.Check(t, err)
	parts := decoded.Messages[0].Parts
	if got, want := string(parts[0].Extra), `{"item":{"type":"message","id":"msg_1","status":"completed"}}`; got != want || parts[1].Extra != nil {
		t.Errorf("extras %s and %s", got, parts[1].Extra)
	}
}
