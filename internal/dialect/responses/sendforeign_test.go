package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

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
				message(session.Assistant, calls("a", "f"), calls("b", "f")), message(session.Tool, result("a", "1"), jpeg, result("b", "2")),
			}},
			want: `"input":[` + call + `,` + strings.Replace(call, `"a"`, `"b"`, 1) + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"1"},{"type":"input_image","detail":"auto","image_url":"data:image/jpeg;base64,QUJD"}]},{"type":"function_call_output","call_id":"b","output":"2"}]`,
		},
		{
			name: "names and ids that the API refuses", in: wire.Request{Messages: []session.Message{message(session.Assistant, calls(long, "mcp.files/read")), message(session.Tool, result(long, "1"))}},
			want:   `"input":[{"type":"function_call","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","name":"mcp_files_read","arguments":"{}"},{"type":"function_call_output","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","output":"1"}]`,
			losses: []string{`20260211_001.1: the tool's name "mcp.files/read" is sent as "mcp_files_read"`},
		},
		{
			name: "long ids that begin alike", in: wire.Request{Messages: []session.Message{message(session.Assistant, calls(long, "f"), calls(long+"z", "f"), calls(longer, "f")), message(session.Tool, result(longer, "3"), result(long+"z", "2"), result(long, "1"))}},
			want: `"input":[{"type":"function_call","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","name":"f","arguments":"{}"},{"type":"function_call","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_2","name":"f","arguments":"{}"},{"type":"function_call","call_id":"` + longer[:40] + `e94b2319472084c63e0f1356","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"` + longer[:40] + `e94b2319472084c63e0f1356","output":"3"},{"type":"function_call_output","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_2","output":"2"},{"type":"function_call_output","call_id":"call_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","output":"1"}]`,
		},
		{
			name: "ids that were never given, matched by name", in: wire.Request{Messages: []session.Message{
				message(session.Assistant, calls("", "f"), calls("", "g")), message(session.Tool, session.Part{Kind: session.PartToolResult, ToolName: "g", Text: "G"}, session.Part{Kind: session.PartToolResult, ToolName: "f", Text: "F"}),
			}},
			want: `"input":[{"type":"function_call","call_id":"call_made_1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"call_made_2","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"call_made_2","output":"G"},{"type":"function_call_output","call_id":"call_made_1","output":"F"}]`,
		},
		{name: "a custom tool's call", in: wire.Request{Messages: []session.Message{message(session.Assistant, custom), message(session.Tool, result("a", "ok"))}}, want: `"input":[{"type":"custom_tool_call","call_id":"a","name":"patch","input":"{}"},{"type":"custom_tool_call_output","call_id":"a","output":"ok"}]`},
		{
			name: "thinking stays with its maker, order of text and calls stays", in: wire.Request{Messages: []session.Message{message(session.Assistant, thinking, session.TextPart("a"), session.TextPart("b"), calls("a", "f"), session.TextPart("c")), message(session.Tool, result("a", ""))}},
			want: `"input":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},` + call + `,{"type":"message","role":"assistant","content":"c"},{"type":"function_call_output","call_id":"a","output":""}]`, losses: []string{"20260211_001.1: reasoning"},
		},
		{
			name: "a tool that another provider ran", in: wire.Request{Messages: []session.Message{message(session.Assistant, session.TextPart("I search."), calls("a", "web_search"), result("a", "found"), calls("b", "web_search"), result("b", ""), session.TextPart("So:"))}},
			want:   `"input":[{"type":"message","role":"assistant","content":"I search."},{"type":"function_call","call_id":"a","name":"web_search","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"found"},{"type":"message","role":"assistant","content":"So:"}]`,
			losses: []string{"20260211_001.1: web_search, which the provider ran, is sent as a function's call and output", "20260211_001.1: web_search, which the provider ran: it says nothing that can be sent"},
		},
		{
			name: "a shell command of the person, and a marker", in: wire.Request{Messages: []session.Message{bash, marker}},
			want: `"input":[{"type":"message","role":"user","content":"Ran ` + "`ls`" + `"}]`, losses: []string{"20260211_001.2: a marker is no message"},
		},
		{
			name: "what was said aloud, another store's file, a picture of the model's own", in: wire.Request{Messages: []session.Message{message(session.User, sound, upload), message(session.Assistant, session.TextPart("see"), jpeg)}},
			want:   `"input":[{"type":"message","role":"user","content":"Hello"},{"type":"message","role":"assistant","content":"see"}]`,
			losses: []string{"20260211_001.1: file: its bytes or its type are not what the API takes", "20260211_001.2: image in a message of role assistant"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Messages = ref(c.in.Messages)
			expectSent(t, c.in, c.want, c.losses)
		})
	}
}

// What a context shortened, replaced or put before a message's own parts is what is sent.
func TestSendOfWhatAContextChanged(t *testing.T) {
	decoded, err := responses.Decode(list(t, `[{"role":"user","content":"hi"},{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"a long text","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"type":"shell_call","call_id":"b","action":{"commands":["ls"]}},{"type":"mcp_call","id":"m","server_label":"s","name":"f","arguments":"{}","output":"a long text"}]`))
	testkit.Check(t, err)
	msgs := ref(dialecttest.Stored(t, decoded.Messages))
	msgs[0].Parts = append([]session.Part{session.TextPart("recalled")}, msgs[0].Parts...)
	msgs[2].Parts[0].Text = "pruned"
	msgs[3].Parts[2].Text = "cut"
	failed := true
	msgs = append(msgs, session.Message{Kind: session.KindMessage, Role: session.Tool, Parts: []session.Part{{Kind: session.PartToolResult, CallID: "b", Text: "closed", IsError: &failed}}})
	expectSent(t, wire.Request{Messages: msgs}, `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"recalled"},{"type":"input_text","text":"hi"}]},
		{"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"status":"completed"},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"pruned","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"type":"shell_call","call_id":"b","action":{"commands":["ls"]},"status":"completed"},{"type":"mcp_call","id":"m","server_label":"s","name":"f","arguments":"{}","output":"cut"},
		{"type":"shell_call_output","call_id":"b","output":[{"stdout":"closed","stderr":"","outcome":{"type":"exit","exit_code":1}}]}]`, nil)
}

// However often ids come again, and whatever they look like, each call has its own.
func TestIDsStayApart(t *testing.T) {
	for _, id := range []string{"a", "a_2", strings.Repeat("x", 64), strings.Repeat("x", 65), "a|" + strings.Repeat("x", 62), "a|" + strings.Repeat("x", 63), strings.Repeat("é", 40), "|" + strings.Repeat("x", 80)} {
		var msgs []session.Message
		for range 30 {
			msgs = append(msgs, message(session.Assistant, calls(id, "f"), calls("a", "f"), calls("a_2", "f")), message(session.Tool, result("a", "1"), result(id, "2"), result("a_2", "3")))
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
		decoded, err := responses.Decode(list(t, `[{"type":"reasoning","summary":[],"encrypted_content":"gAA="},{"role":"assistant","content":"x"}]`))
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
			m := message(session.Assistant, session.Part{Kind: session.PartReasoning, Text: "hm", Extra: session.JSONOf(map[string]string{"thinkingSignature": signature})}, session.TextPart("x"))
			m.Dialect, m.Provider, m.Model = "pi", "openai", "gpt-5.1"
			got := accepted(t, wire.Request{Messages: []session.Message{m}, Model: model})
			if has := strings.Contains(string(got.Request), `"encrypted_content":"gAA="`); has != (sent && model == m.Model) || has == (len(got.Losses) > 0) {
				t.Errorf("%s to %s: %s, losses %q", signature, model, got.Request, got.Losses)
			}
		}
	}
}

func TestExportOfWhatAnotherFormGave(t *testing.T) {
	msgs := []session.Message{
		message(session.Assistant, calls("a", "f")),
		message(session.Tool, result("a", "1"), session.Part{Kind: session.PartImage, CallID: "a", Blob: wire.Blob("image/png", []byte("ABC"))}),
	}
	own, err := responses.Decode(list(t, `[{"object":"response","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]}]`))
	testkit.Check(t, err)
	exported := testkit.Must(responses.Export(append(append(msgs, own.Messages...), message(session.User, session.TextPart("hi")))))(t)
	want := `[` + call + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"1"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,QUJD"}]},
		{"object":"response","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]},{"type":"message","role":"user","content":"hi"}]`
	if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("exported %s\nwant %s", got, want)
	}
}

func TestAPartOfAResponseIsExportedByItems(t *testing.T) {
	decoded, err := responses.Decode(list(t, `[{"object":"response","output":[{"type":"shell_call","call_id":"a","action":{}},{"type":"shell_call_output","call_id":"a"},{"type":"message","role":"assistant","content":"x"}]}]`))
	testkit.Check(t, err)
	exported := testkit.Must(responses.Export(decoded.Messages[1:]))(t)
	if want, got := `[{"type":"shell_call_output","call_id":"a"},{"type":"message","role":"assistant","content":"x"}]`, dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("exported %s", got)
	}
}

func TestAPartWithoutItsBlobIsAnError(t *testing.T) {
	sha := "abc"
	for _, form := range []string{responses.Name, "anthropic"} {
		m := message(session.User, session.Part{Kind: session.PartText, BlobSHA: &sha})
		m.Dialect = form
		if _, err := responses.Export([]session.Message{m}); session.CodeOf(err) != session.Internal {
			t.Errorf("export of %s: %v", form, err)
		}
		if _, err := responses.Send(wire.Request{Messages: []session.Message{m}}); session.CodeOf(err) != session.Internal {
			t.Errorf("send of %s: %v", form, err)
		}
	}
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

func BenchmarkDecodeExportSend(b *testing.B) {
	var raw []json.RawMessage
	for range 50 {
		raw = append(raw, list(b, `[{"type":"message","role":"user","content":[{"type":"input_text","text":"Please look at the file again and tell me what it does."}]},
			{"type":"reasoning","id":"rs_67ccfcdd16748190a91872c75d38539e09e4d4aac714747c","summary":[],"encrypted_content":"`+strings.Repeat("gAAAAAB", 100)+`"},
			{"type":"function_call","id":"fc_67ccfcdd16748190a91872c75d38539e","call_id":"call_abcdefgh","name":"read","arguments":"{\"path\":\"/a/b.go\"}","status":"completed"},
			{"type":"function_call_output","call_id":"call_abcdefgh","output":"`+strings.Repeat("func main() {}\\n", 40)+`"},
			{"type":"message","id":"msg_67ccfcf690a8190a","status":"completed","role":"assistant","content":[{"type":"output_text","text":"It holds main, which does nothing.","annotations":[]}]}]`)...)
	}
	decoded := testkit.Must(responses.Decode(raw))(b)
	if len(decoded.Messages) != 200 {
		b.Fatalf("%d messages", len(decoded.Messages))
	}
	b.Run("decode of 200", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			testkit.Must(responses.Decode(raw))(b)
		}
	})
	b.Run("export of 200", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			testkit.Must(responses.Export(decoded.Messages))(b)
		}
	})
	b.Run("send of 200", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			testkit.Must(responses.Send(wire.Request{Messages: decoded.Messages}))(b)
		}
	})
}
