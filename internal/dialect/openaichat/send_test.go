package openaichat_test

import (
	"slices"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"

	"github.com/google/go-cmp/cmp"
)

func TestSendOfWhatTheWireGave(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		losses         []string
	}{
		{name: "plain turns stay", in: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <&>!"}]`, want: `[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <&>!"}]`},
		{
			name: "a reply loses what is no request's", in: `[{"role":"assistant","content":"x","refusal":null,"annotations":[{"a":1}],"audio":null,"tool_calls":[]}]`,
			want: `[{"role":"assistant","content":"x"}]`, losses: []string{"20260211_001.1: field annotations"},
		},
		{
			name: "a choice is its message", in: `[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]`, want: `[{"role":"assistant","content":"x"}]`,
		},
		{
			name: "calls and results", in: `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","index":0,"type":"function","function":{"name":"f","arguments":"{\"x\": 1"}}]},{"role":"tool","tool_call_id":"a","name":"f","content":"7"}]`,
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1"}}]},{"role":"tool","tool_call_id":"a","content":"7"}]`,
			// the name of a result is no field of a request
		},
		{
			name: "arguments of an object become a string", in: `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n": 1.0}}}]},{"role":"tool","tool_call_id":"a","content":""}]`,
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\": 1.0}"}}]},{"role":"tool","tool_call_id":"a","content":""}]`,
		},
		{
			name: "a custom tool's call", in: `[{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"raw"}}]},{"role":"tool","tool_call_id":"a","content":"7"}]`,
			want: `[{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"raw"}}]},{"role":"tool","tool_call_id":"a","content":"7"}]`,
		},
		{
			name: "calls of old become calls", in: `[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"7"}]`,
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"call_made_1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_made_1","content":"7"}]`,
		},
		{
			name: "developer stays developer, parts stay parts", in: `[{"role":"developer","content":[{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"b"}]}]`,
			want: `[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
		},
		{
			name: "a refusal alone", in: `[{"role":"assistant","content":null,"refusal":"No."}]`, want: `[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]`,
		},
		{
			name: "a refusal beside text", in: `[{"role":"assistant","content":"So:","refusal":"No."}]`,
			want: `[{"role":"assistant","content":"So:","refusal":"No."}]`,
		},
		{
			name: "pictures, sound, files", in: `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}},{"type":"image_url","image_url":{"url":"https://x/a.png","detail":"weird"}},{"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}},{"type":"file","file":{"file_id":"file-1"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}]`,
			want: `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}},{"type":"image_url","image_url":{"url":"https://x/a.png"}},{"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}},{"type":"file","file":{"file_id":"file-1"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}]`,
		},
		{
			name: "what the API does not take", in: `[{"role":"user","content":[{"type":"text","text":"see"},{"type":"video_url","v":1},{"type":"image_url","image_url":{"url":"data:image/png;base64,@@"}},{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,QUJD"}},{"type":"input_audio","input_audio":{"data":"QUJD","format":"ogg"}}]}]`,
			want: `[{"role":"user","content":"see"}]`,
			losses: []string{
				"20260211_001.1: unknown part type video_url",
				"20260211_001.1: image: its bytes or its type are not what the API takes",
				"20260211_001.1: image image/svg+xml: its bytes or its type are not what the API takes",
				"20260211_001.1: audio audio/ogg: its bytes or its type are not what the API takes",
			},
		},
		{
			name: "a spoken reply is sent as its transcript", in: `[{"role":"assistant","content":null,"audio":{"id":"a","transcript":"Hello"}}]`, want: `[{"role":"assistant","content":"Hello"}]`,
		},
		{
			name: "pictures of results follow all results", in: `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"b","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"https://x/1.png"}}]},{"role":"tool","tool_call_id":"b","content":"two"},{"role":"assistant","content":"done"}]`,
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"one"},{"role":"tool","tool_call_id":"b","content":"two"},{"role":"user","content":[{"type":"text","text":"Attached to the result of call a:"},{"type":"image_url","image_url":{"url":"https://x/1.png"}}]},{"role":"assistant","content":"done"}]`,
		},
		{
			name: "a text of half a pair is sent as it reads", in: `[{"role":"user","content":"cut \ud83d"}]`,
			want: `[{"role":"user","content":"cut �"}]`,
		},
		{
			name: "an author's name", in: `[{"role":"user","name":"ann","content":"x"},{"role":"user","name":"Ann Lee","content":"y"}]`, want: `[{"role":"user","name":"ann","content":"x"},{"role":"user","name":"Ann_Lee","content":"y"}]`,
			losses: []string{`20260211_001.2: the author's name "Ann Lee" is sent as "Ann_Lee"`},
		},
		{
			name: "nothing", in: `[{"role":"user","content":null},{"role":"assistant","content":[]}]`, want: `[{"role":"user","content":"(no content)"}]`,
			losses: []string{
				"20260211_001.1: nothing that can be sent: (no content) stands in its place",
				"20260211_001.2: a reply that says nothing",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(openaichat.Decode(dialecttest.List(t, c.in)))(t)
			dialecttest.ExpectSent(t, openaichat.Form(), wire.Request{Messages: dialecttest.Numbered(dialecttest.Stored(t,
				decoded.Messages))}, `{"messages":`+c.want+`}`, c.losses)
		})
	}
}

// message builds what came in another form.
func message(role session.Role, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Dialect: "anthropic", InContext: true, Parts: parts}
}

func TestSendOfWhatAnotherFormGave(t *testing.T) {
	long := "call_" + strings.Repeat("x", 30) + "|fc_" + strings.Repeat("y", 60)
	call := func(id, name string) session.Part {
		return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: "{}"}
	}
	result := func(id, text string) session.Part {
		return session.Part{Kind: session.PartToolResult, CallID: id, Text: text}
	}
	bash := message(session.User, session.TextPart("Ran `ls`\n```\na.go\n```"))
	bash.Kind = session.KindBash
	marker := message("")
	marker.Kind = session.KindMarker
	jpeg := session.Part{Kind: session.PartImage, CallID: "a", Blob: wire.Blob("image/jpeg", []byte("ABC"))}
	for _, c := range []struct {
		name   string
		in     wire.Request
		want   string
		losses []string
	}{
		{
			name: "an empty reply of another form is left out",
			in: wire.Request{Messages: []session.Message{
				message(session.User, session.TextPart("hi")),
				message(session.Assistant), message(session.Assistant, session.TextPart("")),
				message(session.User, session.TextPart("more")),
			}},
			want:   `[{"role":"user","content":"hi"},{"role":"user","content":"more"}]`,
			losses: []string{"20260211_001.2: a reply that says nothing", "20260211_001.3: a reply that says nothing"},
		},
		{name: "system text comes first", in: wire.Request{System: "Be short.", Messages: []session.Message{message(session.User, session.TextPart("hi"))}}, want: `[{"role":"system","content":"Be short."},{"role":"user","content":"hi"}]`},
		{
			name: "several results of one message, with a picture", in: wire.Request{Messages: []session.Message{
				message(session.Assistant, call("a", "f"), call("b", "f")),
				message(session.Tool, result("a", "1"), jpeg, result("b", "2")),
			}},
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":[{"type":"text","text":"Attached to the result of call a:"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,QUJD"}}]}]`,
		},
		{
			name: "names and ids that the API refuses", in: wire.Request{Messages: []session.Message{message(session.Assistant,
				call(long, "mcp.files/read")), message(session.Tool, result(long, "1"))}},
			want:   `[{"role":"assistant","content":null,"tool_calls":[{"id":"call_xxxxxxxxxxxxxxxfc12e2024a3cdf5d1856","type":"function","function":{"name":"mcp_files_read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_xxxxxxxxxxxxxxxfc12e2024a3cdf5d1856","content":"1"}]`,
			losses: []string{`20260211_001.1: the tool's name "mcp.files/read" is sent as "mcp_files_read"`},
		},
		{
			name: "ids that were never given, matched by name", in: wire.Request{Messages: []session.Message{
				message(session.Assistant, call("", "f"), call("", "g")),
				message(session.Tool, session.Part{Kind: session.PartToolResult, ToolName: "g", Text: "G"},
					session.Part{Kind: session.PartToolResult, ToolName: "f", Text: "F"}),
			}},
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"call_made_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_made_2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_made_2","content":"G"},{"role":"tool","tool_call_id":"call_made_1","content":"F"}]`,
		},
		{
			name: "a shell command of the person, and a marker", in: wire.Request{Messages: []session.Message{bash, marker}},
			want:   `[{"role":"user","content":"Ran ` + "`ls`\\n```\\na.go\\n```" + `"}]`,
			losses: []string{"20260211_001.2: a marker is no message"},
		},
		{
			name: "text around calls keeps its borders", in: wire.Request{Messages: []session.Message{message(session.Assistant,
				session.TextPart("a"), call("a", "f"), session.TextPart("b")), message(session.Tool, result("a", ""))}},
			want: `[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":""}]`,
		},
		{
			name: "a picture of the model's own", in: wire.Request{Messages: []session.Message{message(session.Assistant,
				session.TextPart("see"), jpeg)}},
			want:   `[{"role":"assistant","content":"see"}]`,
			losses: []string{"20260211_001.1: image in a message of role assistant"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Messages = dialecttest.Numbered(c.in.Messages)
			dialecttest.ExpectSent(t, openaichat.Form(), c.in, `{"messages":`+c.want+`}`, c.losses)
		})
	}
}

func TestExportOfWhatAnotherFormGave(t *testing.T) {
	msgs := []session.Message{
		message(session.Assistant, session.Part{Kind: session.PartToolCall, CallID: "a", ToolName: "f", Arguments: "{}"}),
		message(session.Tool, session.Part{Kind: session.PartToolResult, CallID: "a", Text: "1"},
			session.Part{Kind: session.PartImage, CallID: "a", Blob: wire.Blob("image/png", []byte("ABC"))}),
	}
	own := testkit.Must(openaichat.Decode(dialecttest.List(t, `[{"role":"assistant","content":"x","annotations":[]}]`)))(t)
	exported := testkit.Must(openaichat.Export(append(msgs, own.Messages...)))(t)
	want := `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},
		{"role":"user","content":[{"type":"text","text":"Attached to the result of call a:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]},{"role":"assistant","content":"x","annotations":[]}]`
	if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("exported %s\nwant %s", got, want)
	}
}

func TestAPartWithoutItsBlobIsAnError(t *testing.T) {
	dialecttest.RefusesMissingBlobs(t, openaichat.Form())
}

func TestSendOfAnyCaseIsAcceptedWhereItsCallsAreAnswered(t *testing.T) {
	checked := 0
	for _, c := range wireCases() {
		decoded := testkit.Must(openaichat.Decode(dialecttest.List(t, c.Entries)))(t)
		msgs := slices.DeleteFunc(decoded.Messages, func(m session.Message) bool {
			return len(m.Calls()) > 0 || len(m.Results()) > 0
		})
		if len(msgs) == 0 {
			continue
		}
		sent := testkit.Must(openaichat.Send(wire.Request{Messages: dialecttest.Stored(t, msgs)}))(t)
		if err := dialecttest.ValidateReasoningChat(sent.Request); err != nil {
			t.Errorf("%s: %v\n%.1000s", c.Name, err, sent.Request)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("only %d cases were checked", checked)
	}
}

// A tool that a provider ran itself stands with its result in one reply; sent as an open call
// it would be refused for want of an answer.
func TestSendLeavesOutWhatTheProviderRan(t *testing.T) {
	msgs := []session.Message{
		{Role: session.User, Parts: []session.Part{session.TextPart("What is new?")}},
		{Role: session.Assistant, Parts: []session.Part{
			{Kind: session.PartToolCall, CallID: "srv_1", ToolName: "web_search", Arguments: `{"query":"news"}`},
			{Kind: session.PartToolResult, CallID: "srv_1", Text: "A headline."},
			session.TextPart("There is a headline."),
		}},
	}
	sent := testkit.Must(openaichat.Send(wire.Request{Messages: msgs}))(t)
	want := `{"messages":[{"role":"user","content":"What is new?"},{"role":"assistant","content":"There is a headline."}]}`
	if string(sent.Request) != want || len(sent.Losses) != 1 || !strings.Contains(sent.Losses[0], "web_search") {
		t.Errorf("sent %s with losses %q", sent.Request, sent.Losses)
	}
	if err := dialecttest.ValidateOpenAIChat(sent.Request); err != nil {
		t.Error(err)
	}
}

func models() []string {
	return []string{"", "gpt-5", "gemini-2.5-pro", "models/gemini-3-pro-preview", "gemini-flash-latest"}
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	dialecttest.AcceptsAny(t, openaichat.Form(), dialecttest.AnyConversation, models()...)
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	dialecttest.StaysAPrefix(t, openaichat.Form(), dialecttest.AnyConversation, models()...)
}

// FuzzSend: whatever decodes, once repaired, is accepted.
func FuzzSend(f *testing.F) {
	dialecttest.FuzzSend(f, openaichat.Form(), wireCases(), func(msgs []session.Message) []session.Message {
		out := []session.Message{{
			Kind: session.KindMessage, Role: session.User,
			Parts: []session.Part{session.TextPart("hi")},
		}}
		for _, item := range contextmgr.Repair(msgs, nil, true).Items {
			out = append(out, item.Message)
		}
		return out
	})
}

// Google's API in OpenAI's form takes a call's thought signature back where it gave it; any
// other API would refuse the field.
func TestAGeminiGetsItsThoughtSignaturesBack(t *testing.T) {
	const (
		skips = "20260211_001.2: calls without a thought signature are sent with the one that skips its check"
		chat  = `{"rest":{"extra_content":{"google":{"thought_signature":"QUJD"}}}}`
	)
	for _, c := range []struct {
		name, model string
		first       string   // the extra of the first call; the second has none
		want        []string // the signatures that are sent
		losses      []string
	}{
		{"as it came", "gemini-3-pro-preview", chat, []string{"QUJD"}, nil},
		{"by way of OpenRouter's name", "google/gemini-2.5-pro", chat, []string{"QUJD"}, nil},
		{"of Gemini's own form", "gemini-2.5-pro", `{"thoughtSignature":"QUJD"}`, []string{"QUJD"}, nil},
		{"of pi", "gemini-2.5-pro", `{"thoughtSignature":"QUJD"}`, []string{"QUJD"}, nil},
		{"none, to a model that asks for one", "gemini-flash-latest", "", []string{wire.NoSignature}, []string{skips}},
		{"none, to a model that does not ask", "gemini-2.5-pro", "", nil, nil},
		{
			"of another maker", "gemini-2.5-pro", `{"thoughtSignature":"msg_1!"}`, nil,
			[]string{"20260211_001.2: a thought signature that is no base64"},
		},
		{"to another model", "gpt-5", chat, nil, nil},
		{"to a model that is not named", "", chat, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply := message(
				session.Assistant,
				session.Part{Kind: session.PartToolCall, CallID: "a", ToolName: "f", Arguments: "{}", Extra: session.JSON(c.first)},
				session.Part{Kind: session.PartToolCall, CallID: "b", ToolName: "f", Arguments: "{}"},
			)
			results := message(session.Tool, session.Part{Kind: session.PartToolResult, CallID: "a"},
				session.Part{Kind: session.PartToolResult, CallID: "b"})
			in := wire.Request{Messages: dialecttest.Numbered([]session.Message{
				message(session.User, session.TextPart("hi")),
				reply, results,
			}), Model: c.model}
			sent := dialecttest.Accepted(t, openaichat.Form(), in)
			var got []string
			for _, piece := range strings.Split(string(sent.Request), `"extra_content":{"google":{"thought_signature":"`)[1:] {
				signature, _, _ := strings.Cut(piece, `"`)
				got = append(got, signature)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n%s", d, sent.Request)
			}
			if d := cmp.Diff(c.losses, sent.Losses); d != "" {
				t.Errorf("losses: %s", d)
			}
		})
	}
}

// DeepSeek, Kimi, MiniMax and OpenRouter want the reasoning of a reply back as it came, above all
// between a call and what follows its result. Another provider, or a model of another family, gets
// none of it.
func TestReasoningGoesBackToItsMaker(t *testing.T) {
	const (
		content = `"reasoning_content":"I must call."`
		details = `"reasoning":"I must call.","reasoning_details":[{"type":"reasoning.text","text":"I must call.","signature":"c2ln","index":0}]`
		empty   = `"reasoning_content":""`
	)
	for _, c := range []struct {
		name, fields, provider, model string
		to                            wire.Request
		goesBack                      bool
	}{
		{"nobody said who made it", content, "", "", wire.Request{}, true},
		{"the session's model is known", content, "", "", wire.Request{Model: "deepseek-v4-flash"}, true},
		{
			"the same model", content, "deepseek", "deepseek-v4-flash",
			wire.Request{Model: "deepseek-v4-flash", Provider: "deepseek"},
			true,
		},
		{"an empty one, too", empty, "moonshot", "kimi-k2-thinking", wire.Request{Model: "kimi-k2-thinking"}, true},
		{
			"another of the family", content, "deepseek", "deepseek-v4-flash",
			wire.Request{Model: "deepseek-ai/DeepSeek-V4", Provider: "deepseek"},
			true,
		},
		{
			"details of OpenRouter", details, "openrouter", "minimax/minimax-m2",
			wire.Request{Model: "minimax/MiniMax-M3", Provider: "openrouter"},
			true,
		},
		{
			"OpenAI's model by a router", details, "openrouter", "openai/gpt-5",
			wire.Request{Model: "openai/gpt-5", Provider: "openrouter"},
			true,
		},
		{"another family", content, "", "deepseek-v4-flash", wire.Request{Model: "kimi-k2-thinking"}, false},
		{
			"another provider", details, "openrouter", "deepseek/deepseek-v4",
			wire.Request{Model: "deepseek-v4", Provider: "deepseek"},
			false,
		},
		{"OpenAI itself", content, "", "", wire.Request{Model: "gpt-5"}, false},
		{"OpenAI's own reasoning model", content, "openai", "o3", wire.Request{Model: "o3", Provider: "openai"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := `"tool_calls":[{"id":"w1","type":"function","function":{"name":"weather","arguments":"{}"}}]`
			in := `[{"role":"user","content":"x"},{"role":"assistant","content":"",` + c.fields + `,` + calls + `},{"role":"tool","tool_call_id":"w1","content":"sun"}]`
			c.to.Messages = testkit.Must(openaichat.Decode(dialecttest.List(t, in)))(t).Messages
			c.to.Messages[1].Provider, c.to.Messages[1].Model = c.provider, c.model
			sent := dialecttest.Accepted(t, openaichat.Form(), c.to)
			fields := ""
			if c.goesBack {
				fields = c.fields + ","
			}
			want := `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,` + fields + calls + `},{"role":"tool","tool_call_id":"w1","content":"sun"}]}`
			if !dialecttest.EqualJSON([]byte(want), sent.Request) {
				t.Errorf("sent %s\nwant %s", sent.Request, want)
			}
			if lost := strings.Contains(strings.Join(sent.Losses, ","), "reasoning"); lost == c.goesBack {
				t.Errorf("losses %q", sent.Losses)
			}
		})
	}
}

// Databases hold reasoning_details among the unknown fields of a reply, as earlier versions decoded
// them: they go back, too.
func TestReasoningDetailsOfOldRowsGoBack(t *testing.T) {
	m := session.Message{
		Kind: session.KindMessage, Role: session.Assistant, Dialect: openaichat.Name, InContext: true,
		Parts: []session.Part{session.TextPart("y")},
		Extra: session.JSON(`{"rest":{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}}`),
	}
	sent := dialecttest.Accepted(t, openaichat.Form(), wire.Request{Messages: []session.Message{m}, Model: "minimax-m2"})
	want := `{"messages":[{"role":"assistant","content":"y","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}]}`
	if !dialecttest.EqualJSON([]byte(want), sent.Request) {
		t.Errorf("sent %s\nwant %s", sent.Request, want)
	}
}

// Each part of the reasoning is text once, so that it counts once.
func TestReasoningIsTextOnce(t *testing.T) {
	for _, fields := range []string{
		`"reasoning_content":"hm"`, `"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]`,
		`"reasoning_details":[{"type":"reasoning.summary","summary":"h"},{"type":"reasoning.text","text":"m"},{"type":"reasoning.encrypted","data":"x"}]`,
	} {
		m := testkit.Must(openaichat.Decode(dialecttest.List(t,
			`[{"role":"assistant","content":"y",`+fields+`}]`)))(t).Messages[0]
		text := ""
		for i := range m.Parts {
			if m.Parts[i].Kind == session.PartReasoning {
				text += m.Parts[i].Text
			}
		}
		if text != "hm" {
			t.Errorf("%s: the text of the reasoning is %q", fields, text)
		}
	}
}
