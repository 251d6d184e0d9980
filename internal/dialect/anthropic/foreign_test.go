package anthropic_test

import (
	"strings"
	"testing"

	"sessiond/internal/dialect/anthropic"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

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
	text := session.Part{Kind: session.PartFile, Extra: session.JSON(`{"media_type":"text/markdown","name":"a.md"}`), Blob: wire.Blob("text/markdown", []byte("# A"))}
	zip := session.Part{Kind: session.PartFile, Extra: session.JSON(`{"media_type":"application/zip"}`), Blob: wire.Blob("application/zip", []byte("PK"))}
	named := user
	named.Author = "ann"
	thinks := session.Part{Kind: session.PartReasoning, Text: "hm", Extra: session.JSON(`{"signature":"s"}`)}
	pi := message(session.Assistant, session.Part{Kind: session.PartReasoning, Text: "hm", Extra: session.JSON(`{"thinkingSignature":"s"}`)}, call("a", "f", "{}"))
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
		{name: "system text stands apart", in: wire.Request{System: "Be short.", Messages: []session.Message{message(session.System, session.TextPart("Be kind.")), user}}, want: `{"system":"Be short.\n\nBe kind.","messages":[` + hi + `]}`},
		{
			name: "results of several messages, with a picture", in: wire.Request{Messages: []session.Message{
				user, message(session.Assistant, session.TextPart("I look."), call("a", "f", `{"x": 1}`), call("b", "f", "")), message(session.Tool, result("b", "2")), message(session.Tool, result("a", "1"), jpeg), user,
			}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"x": 1}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QUJD"}}]},{"type":"text","text":"hi"}]}]}`,
			off:  true,
		},
		{
			name: "ids and names that the API does not take", in: wire.Request{Messages: []session.Message{user, message(session.Assistant, call(long, "mcp.files/read", "{}"), call("", "名", "{}")), message(session.Tool, result(long, "1"), result("", "2"))}},
			want:   `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"callxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxfcyyyy","name":"mcp_files_read","input":{}},{"type":"tool_use","id":"toolu_made_2","name":"_","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"callxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxfcyyyy","content":"1"},{"type":"tool_result","tool_use_id":"toolu_made_2","content":"2"}]}]}`,
			losses: []string{`the tool's name "mcp.files/read" is sent as "mcp_files_read"`, `the tool's name "名" is sent as "_"`}, off: true,
		},
		{
			name: "arguments that are no object", in: wire.Request{Messages: []session.Message{user, message(session.Assistant, call("a", "f", `{"x": 1`), call("b", "f", `[1.0]`)), message(session.Tool, result("a", "1"), result("b", "2"))}},
			want:   `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"input":"{\"x\": 1"}},{"type":"tool_use","id":"b","name":"f","input":{"input":"[1.0]"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]}]}`,
			losses: []string{`arguments of "f" are no JSON object, sent inside one`, `arguments of "f" are no JSON object, sent inside one`}, off: true,
		},
		{
			name: "a tool that another provider ran itself", in: wire.Request{Messages: []session.Message{user, message(session.Assistant, call("w", "web_search", `{"q":1}`), result("w", "found"), session.TextPart("So:"), call("a", "f", "{}")), message(session.Tool, result("a", "1"))}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"w","name":"web_search","input":{"q":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"w","content":"found"}]},{"role":"assistant","content":[{"type":"text","text":"So:"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]}`,
			off:  true,
		},
		{
			name: "what no provider is told, and what has another kind", in: wire.Request{Messages: []session.Message{named, marker, bash, message(session.Assistant, session.Part{Kind: session.PartRefusal, Text: "No."}, thinks), user}},
			want:   `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"Ran ` + "`ls`" + `"}]},{"role":"assistant","content":[{"type":"text","text":"No."}]},` + hi + `]}`,
			losses: []string{"the author's name", "a marker is no message", "reasoning"},
		},
		{
			name: "files", in: wire.Request{Messages: []session.Message{message(session.User, text, zip, session.Part{Kind: session.PartAudio, Text: "spoken"}, session.Part{Kind: session.PartAudio})}},
			want:   `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# A"},"title":"a.md"},{"type":"text","text":"spoken"}]}]}`,
			losses: []string{"file application/zip: its bytes or its type are not what the API takes", "audio in a message of role user"},
		},
		{
			name: "an import's thinking goes back to its maker", in: wire.Request{Model: "claude-opus-4-8", Messages: []session.Message{user, pi, message(session.Tool, result("a", "1"))}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]}`,
		},
		{
			name: "signatures of others that speak this form", in: wire.Request{Model: "claude-opus-4-8", Messages: []session.Message{user, kimi, user}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"y"}]},` + hi + `]}`, losses: []string{"reasoning"},
		},
		{
			name: "and are theirs again", in: wire.Request{Model: "kimi-k2-thinking", Messages: []session.Message{user, kimi, user}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"y"}]},` + hi + `]}`,
		},
		{
			name: "a result behind what a person said meanwhile", in: wire.Request{Messages: []session.Message{user, message(session.Assistant, call("a", "f", "{}"), call("b", "f", "{}")), message(session.Tool, result("a", "1")), user, message(session.Tool, result("b", "2"))}},
			want: `{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"text","text":"hi"}]}]}`,
			off:  true,
		},
		{
			name: "a call without its result", in: wire.Request{Messages: []session.Message{user, message(session.Assistant, call("a", "f", "{}")), user}},
			want: `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}]}`, losses: []string{`call "a" has no result behind it`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if sent := expectSent(t, c.in, c.want, c.losses); sent.ThinkingOff != c.off {
				t.Errorf("thinking off: %v, want %v", sent.ThinkingOff, c.off)
			}
		})
	}
}

func TestExportOfWhatAnotherFormGave(t *testing.T) {
	exported := testkit.Must(anthropic.Export([]session.Message{
		message(session.System, session.TextPart("Be short.")), message(session.Tool, result("a", "1")), message(session.Assistant, call("b", "f", "{}")), message(session.System, session.TextPart("x")),
	}))(t)
	want := `[{"role":"system","content":"Be short."},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"<system>\nx\n</system>"}]}]`
	if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("got %s", got)
	}
}

// What contextmgr shortened on its way is sent shortened, whatever the extras hold.
func TestSendOfWhatWasShortened(t *testing.T) {
	decoded, err := anthropic.Decode(list(t, `[{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"long"}]},{"type":"text","text":"long"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}]`))
	testkit.Check(t, err)
	decoded.Messages[0].Parts[0].Text, decoded.Messages[0].Parts[1].Text = "cut", "cut too"
	pruned := decoded.Messages[2].Parts[0]
	pruned.Text = "[left out]"
	decoded.Messages[2].Parts = []session.Part{pruned}
	expectSent(t, wire.Request{Messages: decoded.Messages}, `{"messages":[{"role":"user","content":[{"type":"text","text":"cut"},{"type":"text","text":"cut too"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[left out]"}]}]}`, nil)
}

// Half an entry is an entry of its own, where a page ends between the two.
func TestExportOfHalfAnEntry(t *testing.T) {
	decoded, err := anthropic.Decode(list(t, `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"y"}]}]`))
	testkit.Check(t, err)
	for i, want := range []string{`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}]`, `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]`} {
		exported := testkit.Must(anthropic.Export(decoded.Messages[i : i+1]))(t)
		if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
