package openaichat_test

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// row is what a person reads of a message in the tables.
type row struct {
	Role   session.Role
	Origin session.Origin
	Author string
	Finish session.Finish
	Parts  []session.Part
}

func TestDecodeFillsTheColumns(t *testing.T) {
	no := cmpopts.IgnoreFields(session.Part{}, "Extra", "BlobSHA", "Blob")
	for _, c := range []struct {
		name, message string
		want          row
	}{
		{
			"a person", `{"role":"user","name":"ann","content":"hi"}`,
			row{session.User, session.Person, "ann", "", []session.Part{{Kind: session.PartText, Text: "hi"}}},
		},
		{
			"instructions", `{"role":"developer","content":"Be short."}`,
			row{session.System, session.Program, "", "", []session.Part{{Kind: session.PartText, Text: "Be short."}}},
		},
		{
			"a reply with everything, in order", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}}],"refusal":"no","content":"yes","reasoning":"hm"}`,
			row{session.Assistant, session.Model, "", "", []session.Part{
				{Kind: session.PartReasoning, Text: "hm"},
				{Kind: session.PartText, Text: "yes"},
				{Kind: session.PartRefusal, Text: "no"},
				{Kind: session.PartToolCall, ToolName: "f", CallID: "a", Arguments: "{ }"},
			}},
		},
		{
			"a choice", `{"message":{"role":"assistant","content":"yes"},"finish_reason":"content_filter"}`,
			row{
				session.Assistant, session.Model, "", session.FinishRefusal,
				[]session.Part{{Kind: session.PartText, Text: "yes"}},
			},
		},
		{
			"a result with its pictures", `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://x"}},{"type":"text","text":"seen"},{"type":"text","text":"more"}]}`,
			row{session.Tool, session.ByTool, "", "", []session.Part{
				{Kind: session.PartToolResult, CallID: "a", Text: "seen"},
				{Kind: session.PartImage, CallID: "a"},
				{Kind: session.PartText, CallID: "a", Text: "more"},
			}},
		},
		{
			"a result of old", `{"role":"function","name":"f","content":"7"}`,
			row{
				session.Tool, session.ByTool, "f", "",
				[]session.Part{{Kind: session.PartToolResult, ToolName: "f", Text: "7"}},
			},
		},
		{
			"arguments of an object, as bytes", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"n": 1.0}}}]}`,
			row{session.Assistant, session.Model, "", "", []session.Part{{
				Kind: session.PartToolCall, ToolName: "f", CallID: "a",
				Arguments: `{"n": 1.0}`,
			}}},
		},
		{"a null", `{"role":"assistant","content":null}`, row{session.Assistant, session.Model, "", "", nil}},
		{"a spoken reply", `{"role":"assistant","audio":{"id":"x","data":"QUJD","transcript":"Hello"}}`, row{session.Assistant, session.Model, "", "", []session.Part{{Kind: session.PartAudio, Text: "Hello"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(openaichat.Decode(dialecttest.List(t, "["+c.message+"]")))(t)
			m := decoded.Messages[0]
			testkit.Equal(t, c.want, row{m.Role, m.Origin, m.Author, m.Finish, m.Parts}, no)
			if m.Kind != session.KindMessage || m.Dialect != openaichat.Name || !m.InContext || !m.Display {
				t.Errorf("kind %q, dialect %q, in context %v, display %v", m.Kind, m.Dialect, m.InContext, m.Display)
			}
		})
	}
}

func TestBytesBecomeBlobs(t *testing.T) {
	dialecttest.BytesBecomeBlobs(t, openaichat.Form(), `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}]`, "image/png", "audio/mpeg", "application/pdf")
}

func TestAPlainTextNeedsNoExtra(t *testing.T) {
	decoded := testkit.Must(openaichat.Decode(dialecttest.List(t, `[{"role":"user","content":"hi"}]`)))(t)
	if m := decoded.Messages[0]; m.Extra != nil || m.Parts[0].Extra != nil {
		t.Errorf("extra %s, part's extra %s", m.Extra, m.Parts[0].Extra)
	}
}
