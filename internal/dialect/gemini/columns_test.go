package gemini_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"sessiond/internal/dialect/gemini"
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
	yes, no := true, false
	text := func(s string) session.Part { return session.TextPart(s) }
	call := func(id, name, arguments string) session.Part {
		return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: arguments}
	}
	result := func(id, name, text string) session.Part {
		return session.Part{Kind: session.PartToolResult, CallID: id, ToolName: name, Text: text}
	}
	failed := result("made_f_1", "f", "no such file")
	failed.IsError = &yes
	output := result("made_inline_1", "code_execution", "42\n")
	output.IsError = &no
	for _, c := range []struct {
		name, contents string
		want           []row
	}{
		{
			"a person", `[{"parts":[{"text":"hi"}]}]`,
			[]row{{session.User, session.Person, "", "", []session.Part{text("hi")}}},
		},
		{
			"instructions", `[{"role":"system","parts":[{"text":"Be short."}]}]`,
			[]row{{session.System, session.Program, "", "", []session.Part{text("Be short.")}}},
		},
		{
			"a reply with everything, in order", `[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"yes"},{"functionCall":{"name":"f","args":{ "n": 1.0}}},{"functionCall":{"id":"x","name":"f","args":{}}},{"functionCall":{"name":"mcp.files/read"}}]}]`,
			[]row{{session.Assistant, session.Model, "", "", []session.Part{
				{Kind: session.PartReasoning, Text: "hm"},
				text("yes"),
				call("made_f_1", "f", `{ "n": 1.0}`),
				call("x", "f", `{}`),
				call("made_763aa9ed5bc18759f854a18a_1", "mcp.files/read", ""),
			}}},
		},
		{
			"responses by name, then order", `[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"G"}}},{"functionResponse":{"name":"f","response":{"result":"1"}}},{"functionResponse":{"name":"f","response":{"n": [2.0]}}}]}]`,
			[]row{
				{session.Assistant, session.Model, "", "", []session.Part{
					call("made_f_1", "f", ""), call("made_g_1", "g", ""),
					call("made_f_2", "f", ""),
				}},
				{session.Tool, session.ByTool, "", "", []session.Part{
					result("made_g_1", "g", "G"), result("made_f_1", "f", "1"),
					result("made_f_2", "f", `{"n": [2.0]}`),
				}},
			},
		},
		{
			"the next reply begins anew", `[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]}]`,
			[]row{
				{session.Assistant, session.Model, "", "", []session.Part{call("made_f_1", "f", "")}},
				{session.Assistant, session.Model, "", "", []session.Part{call("made_f_1", "f", "")}},
			},
		},
		{"responses to calls of an earlier append", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"no such file"}}},{"functionResponse":{"name":"f"}}]}]`, []row{{session.Tool, session.ByTool, "", "", []session.Part{failed, result("made_f_2", "f", "")}}}},
		{
			"a response with its picture", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}},{"inlineData":{"mimeType":"application/pdf","data":"QUJD"}}]}]`,
			[]row{{session.Tool, session.ByTool, "", "", []session.Part{
				result("made_f_1", "f", "1"),
				{Kind: session.PartImage, CallID: "made_f_1"},
				{Kind: session.PartFile, CallID: "made_f_1"},
			}}},
		},
		{
			"responses and a person's words", `[{"role":"user","parts":[{"text":"a"},{"functionResponse":{"name":"f","response":{"output":"1"}}},{"text":"b"}]}]`,
			[]row{
				{session.Tool, session.ByTool, "", "", []session.Part{result("made_f_1", "f", "1")}},
				{session.User, session.Person, "", "", []session.Part{text("a"), text("b")}},
			},
		},
		{
			"code that the provider ran", `[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"6*7"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n"}}]}]`,
			[]row{{
				session.Assistant, session.Model, "", "",
				[]session.Part{call("made_inline_1", "code_execution", `{"language":"PYTHON","code":"6*7"}`), output},
			}},
		},
		{
			"a search that the provider ran", `[{"role":"model","parts":[{"toolCall":{"id":"q","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]}}},{"toolResponse":{"id":"q","toolType":"GOOGLE_SEARCH_WEB","response":{"a":1}}},{"toolCall":{"id":"z","toolType":"URL_CONTEXT"}}]}]`,
			[]row{{
				session.Assistant, session.Model, "", "",
				[]session.Part{
					call("q", "GOOGLE_SEARCH_WEB", `{"queries":["x"]}`), result("q", "GOOGLE_SEARCH_WEB", `{"a":1}`),
					{Kind: session.PartData},
				},
			}},
		},
		{
			"a response", `[{"candidates":[{"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}],"modelVersion":"gemini-2.5-pro"}]`,
			[]row{{session.Assistant, session.Model, "gemini-2.5-pro", session.FinishStop, []session.Part{text("yes")}}},
		},
		{
			"a response that calls", `[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}]`,
			[]row{{session.Assistant, session.Model, "", session.FinishToolCalls, []session.Part{call("made_f_1", "f", "")}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(gemini.Decode(dialecttest.List(t, c.contents)))(t)
			var got []row
			for _, m := range decoded.Messages {
				got = append(got, row{m.Role, m.Origin, m.Model, m.Finish, m.Parts})
				if m.Kind != session.KindMessage || m.Dialect != gemini.Name || !m.InContext || !m.Display {
					t.Errorf("kind %q, dialect %q, in context %v, display %v", m.Kind, m.Dialect, m.InContext, m.Display)
				}
			}
			testkit.Equal(t, c.want, got, cmpopts.IgnoreFields(session.Part{}, "Extra", "BlobSHA", "Blob"),
				cmpopts.EquateEmpty())
		})
	}
}

func TestAReplySaysWhyItEnded(t *testing.T) {
	for contents, want := range map[string]session.Finish{
		`[{"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]`:      session.FinishStop,
		`[{"content":{"parts":[{"text":"ye"}]},"finishReason":"MAX_TOKENS"}]`: session.FinishLength,
		`[{"finishReason":"SAFETY"}]`:                                         session.FinishRefusal,
		`[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}]`:           session.FinishError,
		`[{"content":{},"finishReason":"NOVEL"}]`:                             "",
		`[{"promptFeedback":{"blockReason":"SAFETY"}}]`:                       session.FinishRefusal,
		`[{"role":"model","parts":[{"text":"yes"}]}]`:                         "",
	} {
		decoded := testkit.Must(gemini.Decode(dialecttest.List(t, contents)))(t)
		if m := decoded.Messages[0]; m.Finish != want || m.Role != session.Assistant || m.Origin != session.Model {
			t.Errorf("%s: role %s, origin %s, finish %q; want %q", contents, m.Role, m.Origin, m.Finish, want)
		}
	}
}

func TestBytesBecomeBlobs(t *testing.T) {
	parts := dialecttest.BytesBecomeBlobs(t, gemini.Form(), `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}},{"inlineData":{"mimeType":"audio/mp3","data":"QUJD"}},{"inline_data":{"mime_type":"video/mp4","data":"QUJD"}}]}]`, "image/png", "audio/mp3", "video/mp4")
	for i, kind := range []session.PartKind{session.PartImage, session.PartAudio, session.PartFile} {
		if parts[i].Kind != kind {
			t.Errorf("part %d is of kind %s, not %s", i, parts[i].Kind, kind)
		}
	}
}

func TestAPlainTextNeedsNoExtra(t *testing.T) {
	decoded := testkit.Must(gemini.Decode(dialecttest.List(t, `[{"role":"user","parts":[{"text":"hi"}]}]`)))(t)
	if m := decoded.Messages[0]; m.Extra != nil || m.Parts[0].Extra != nil {
		t.Errorf("extra %s, part's extra %s", m.Extra, m.Parts[0].Extra)
	}
}

// What other forms look for beside bytes stands where they look for it.
func TestAddressesAreFoundByOtherForms(t *testing.T) {
	decoded, err := gemini.Decode(dialecttest.List(t, `[{"role":"user","parts":[{"fileData":{"mimeType":"image/png","fileUri":"https://x/a.png"}},{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc","displayName":"a"}}]}]`))
	testkit.Check(t, err)
	for i, says := range [][]string{{`"url":"https://x/a.png"`, `"media_type":"image/png"`}, {`"file_id":"https://generativelanguage.googleapis.com/v1beta/files/abc"`, `"name":"a"`}} {
		for _, s := range says {
			if extra := string(decoded.Messages[0].Parts[i].Extra); !strings.Contains(extra, s) {
				t.Errorf("part %d: %s lacks %s", i, extra, s)
			}
		}
	}
}
