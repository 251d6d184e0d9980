package anthropic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// row is what a person reads of a message in the tables.
type row struct {
	Role   session.Role
	Origin session.Origin
	Model  string
	Finish session.Finish
	Parts  []session.Part
}

func TestDecodeFillsTheColumns(t *testing.T) {
	no := cmpopts.IgnoreFields(session.Part{}, "Extra", "BlobSHA", "Blob")
	yes, failed := false, true
	for _, c := range []struct {
		name, message string
		want          []row
	}{
		{
			"a person", `{"role":"user","content":"hi"}`,
			[]row{{session.User, session.Person, "", "", []session.Part{session.TextPart("hi")}}},
		},
		{
			"a reply with everything, in order", `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"yes"},{"type":"tool_use","id":"toolu_1","name":"f","input":{ "n": 1.0}}],"stop_reason":"tool_use"}`,
			[]row{{session.Assistant, session.Model, "claude-opus-4-6", session.FinishToolCalls, []session.Part{
				{Kind: session.PartReasoning, Text: "hm"},
				{Kind: session.PartReasoning},
				{Kind: session.PartText, Text: "yes"},
				{Kind: session.PartToolCall, ToolName: "f", CallID: "toolu_1", Arguments: `{ "n": 1.0}`},
			}}},
		},
		{
			"results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"text","text":"seen"},{"type":"text","text":"more"}],"is_error":true},{"type":"tool_result","tool_use_id":"b","content":"2","is_error":false},{"type":"tool_result","tool_use_id":"c"}]}`,
			[]row{{session.Tool, session.ByTool, "", "", []session.Part{
				{Kind: session.PartToolResult, CallID: "a", Text: "seen", IsError: &failed},
				{Kind: session.PartImage, CallID: "a"},
				{Kind: session.PartText, CallID: "a", Text: "more"},
				{Kind: session.PartToolResult, CallID: "b", Text: "2", IsError: &yes},
				{Kind: session.PartToolResult, CallID: "c"},
			}}},
		},
		{
			"results and what is said to them are two", `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"y"}]}`,
			[]row{
				{session.Tool, session.ByTool, "", "", []session.Part{{Kind: session.PartToolResult, CallID: "a", Text: "1"}}},
				{session.User, session.Person, "", "", []session.Part{session.TextPart("x"), session.TextPart("y")}},
			},
		},
		{
			"a search by the provider", `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"E"}]}],"stop_reason":"pause_turn"}`,
			[]row{{session.Assistant, session.Model, "", session.FinishPaused, []session.Part{
				{Kind: session.PartToolCall, ToolName: "web_search", CallID: "srvtoolu_1", Arguments: `{"query":"q"}`},
				{Kind: session.PartToolResult, CallID: "srvtoolu_1", Text: "https://a\nA"},
			}}},
		},
		{
			"one that failed", `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{}},{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_fetch_tool_result_error","error_code":"url_not_allowed"}}]}`,
			[]row{{session.Assistant, session.Model, "", "", []session.Part{
				{Kind: session.PartToolCall, ToolName: "web_fetch", CallID: "srvtoolu_1", Arguments: `{}`},
				{Kind: session.PartToolResult, CallID: "srvtoolu_1", Text: "url_not_allowed", IsError: &failed},
			}}},
		},
		{
			"one whose result is still to come is no call that anybody must answer", `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}`,
			[]row{{session.Assistant, session.Model, "", "", []session.Part{{Kind: session.PartData}}}},
		},
		{
			"a search result and a document of blocks can be read", `{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found"}]},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"one"}]}}]}`,
			[]row{{session.User, session.Person, "", "", []session.Part{
				{Kind: session.PartText, Text: "s\nt\nfound"},
				{Kind: session.PartFile, Text: "one"},
			}}},
		},
		{
			"a refusal", `{"role":"assistant","content":[],"stop_reason":"refusal"}`,
			[]row{{session.Assistant, session.Model, "", session.FinishRefusal, nil}},
		},
		{
			"instructions in the middle", `{"role":"system","content":"x"}`,
			[]row{{session.System, session.Program, "", "", []session.Part{session.TextPart("x")}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(anthropic.Decode(dialecttest.List(t, "["+c.message+"]")))(t)
			var got []row
			for _, m := range decoded.Messages {
				got = append(got, row{m.Role, m.Origin, m.Model, m.Finish, m.Parts})
				if m.Kind != session.KindMessage || m.Dialect != anthropic.Name || !m.InContext || !m.Display {
					t.Errorf("kind %q, dialect %q, in context %v, display %v", m.Kind, m.Dialect, m.InContext, m.Display)
				}
			}
			testkit.Equal(t, c.want, got, no)
		})
	}
}

func TestBytesBecomeBlobs(t *testing.T) {
	parts := dialecttest.BytesBecomeBlobs(t, anthropic.Form(), `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"},"title":"a.pdf"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"ABC"}}]}]`, "image/png", "application/pdf", "text/plain")
	if name := wire.MediaOf(&parts[1]).Name; name != "a.pdf" {
		t.Errorf("name %q", name)
	}
}
