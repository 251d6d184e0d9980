package gemini_test

import (
	"encoding/json"
	"slices"
	"testing"

	"sessiond/internal/dialect/gemini"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestSendOfWhatTheWireGave(t *testing.T) {
	for _, c := range []struct {
		name, model, in, want string
		losses                []string
	}{
		{name: "plain turns stay", in: `[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"Hello <&>!"}]}]`, want: `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"Hello <&>!"}]}]}`},
		{
			name: "a system content is the instruction", in: `[{"role":"system","parts":[{"text":"Be short."}]},{"parts":[{"text":"hi"}]}]`,
			want: `{"systemInstruction":{"parts":[{"text":"Be short."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		},
		{
			name: "a reply loses what is no request's", in: `[{"parts":[{"text":"hi"}]},{"candidates":[{"content":{"role":"model","parts":[{"text":"x","y":1}]},"finishReason":"STOP","groundingMetadata":{}}],"usageMetadata":{"a":1}}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"x"}]}]}`, losses: []string{"20260211_001.2: field y"},
		},
		{
			name: "made-up ids are left out, signatures stay on their parts", model: "gemini-3-pro-preview",
			in:   `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{ "a": 1.0}},"thoughtSignature":"Q\/JD"},{"functionCall":{"name":"f"}}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"x":[1.0]}}}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"Q\/JD"},{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"x":[1.0]}}}]}]}`,
		},
		{
			name: "the wire's ids stay, also where only the call has one, and responses stand in the order of calls", in: `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"function-call-1","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"b","name":"g","response":{"error":"no"}}},{"functionResponse":{"name":"f","response":{"output":"1"}}}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"function-call-1","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"function-call-1","name":"f","response":{"output":"1"}}},{"functionResponse":{"id":"b","name":"g","response":{"error":"no"}}}]}]}`,
		},
		{
			name: "Python's spelling becomes ours", in: `[{"role":"user","parts":[{"inline_data":{"mime_type":"image/png","data":"_-8="}},{"file_data":{"mime_type":"video/mp4","file_uri":"gs://b/v"},"video_metadata":{"start_offset":"1s","end_offset":null,"fps":2.0}}]},{"role":"model","parts":[{"function_call":{"id":null,"name":"f","args":{}},"thought_signature":"QUJD","text":null}]},{"role":"user","parts":[{"function_response":{"name":"f","response":{"result":"1"},"will_continue":null}}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"/+8="}},{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/v"},"videoMetadata":{"startOffset":"1s","fps":2.0}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"1"}}}]}]}`,
		},
		{
			name: "responses and what a person says go apart", in: `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"text":"and:"},{"functionResponse":{"name":"f","response":{"output":"1"}}}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]},{"role":"user","parts":[{"text":"and:"}]}]}`,
		},
		{
			name: "code and its output stay together", in: `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1\ud800"},"thoughtSignature":"QUJD"},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1","x":2}},{"executableCode":{"language":"RUBY","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}},{"executableCode":{"language":"PYTHON","code":"2"}},{"text":"1"}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1\ufffd"},"thoughtSignature":"QUJD"},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"1"}]}]}`,
			losses: []string{
				"20260211_001.2: field x",
				"20260211_001.2: the call of code_execution that a provider ran, with its result: " +
					"not in the form that the API takes", "20260211_001.2: unknown part type executableCode",
			},
		},
		{
			name: "a picture that the model made keeps its signature", in: `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"},"thought":true},{"text":"","thoughtSignature":"QUJD"},{"thoughtSignature":"QUJE"},{"text":""}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"},"thought":true},{"text":"","thoughtSignature":"QUJD"},{"text":"","thoughtSignature":"QUJE"}]}]}`,
		},
		{
			name: "media within a response, for a model that takes them", model: "gemini-3.1-flash", in: `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"image":{"$ref":"a"}},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD","displayName":"a"}},{"inlineData":{"mimeType":"audio/wav","data":"QUJD"}}]}}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"image":{"$ref":"a"}},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD","displayName":"a"}}]}}]},{"role":"user","parts":[{"text":"Attached to the result of f:"},{"inlineData":{"mimeType":"audio/wav","data":"QUJD"}}]}]}`,
		},
		{
			name: "media within a response, for one that does not", model: "gemini-2.5-flash", in: `[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]},{"role":"user","parts":[{"text":"Attached to the result of f:"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}]}`,
		},
		{
			name: "what the API does not take", in: `[{"role":"user","parts":[{"text":"see","cache_control":{"type":"ephemeral"}},{"inlineData":{"mimeType":"image/gif","data":"QUJD"}},{"inlineData":{"mimeType":"image/png","data":"@@"}},{"fileData":{"fileUri":"file-abc"}},{"inlineData":{"mimeType":"Audio/ ","data":"QUJD"}},{"hologram":1}],"cachePoint":1}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"see"}]}]}`,
			losses: []string{
				"20260211_001.1: field cachePoint",
				"20260211_001.1: image image/gif: its bytes or its type are not what the API takes",
				"20260211_001.1: image image/png: its bytes or its type are not what the API takes",
				"20260211_001.1: file: its bytes or its type are not what the API takes",
				"20260211_001.1: file Audio/: its bytes or its type are not what the API takes",
				"20260211_001.1: unknown part type hologram",
			},
		},
		{
			name: "a context that begins with a reply", in: `[{"role":"model","parts":[{"text":"Hello"}]},{"role":"model","parts":[{"text":"again"}]},{"role":"user","parts":[{"text":"hi"}]},{"role":"system","parts":[{"text":"Now in German."}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"(The beginning of the conversation is not part of this context.)"}]},{"role":"model","parts":[{"text":"Hello"},{"text":"again"}]},{"role":"user","parts":[{"text":"hi"}]},{"role":"user","parts":[{"text":"Now in German."}]}]}`,
			losses: []string{
				"20260211_001.1: a reply comes first, so a short text in the user's role was put before it",
				"20260211_001.4: system text in the middle of the conversation is sent in the user's role",
			},
		},
		{
			name: "nothing to say", in: `[{"role":"user","parts":[]},{"role":"model","parts":[{"text":""}]}]`,
			want: `{"contents":[{"role":"user","parts":[{"text":"(The beginning of the conversation is not part of this context.)"}]}]}`,
			losses: []string{
				"20260211_001.1: nothing is left of it that could be sent",
				"20260211_001.2: nothing is left of it that could be sent",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoded := testkit.Must(gemini.Decode(dialecttest.List(t, c.in)))(t)
			dialecttest.ExpectSent(t, gemini.Form(), wire.Request{Messages: dialecttest.Numbered(dialecttest.Stored(t,
				decoded.Messages)), Model: c.model}, c.want, c.losses)
		})
	}
}

// message builds what came in another form.
func message(role session.Role, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Dialect: "anthropic", InContext: true, Parts: parts}
}

func call(id, name string) session.Part {
	return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: "{}"}
}

func result(id, text string) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, Text: text}
}

func TestSendOfWhatAnotherFormGave(t *testing.T) {
	hi := message(session.User, session.TextPart("hi"))
	const said = `{"role":"user","parts":[{"text":"hi"}]}`
	failed := result("b", "no such file")
	yes := true
	failed.IsError = &yes
	signed := call("a", "f")
	signed.Extra = session.JSON(`{"rest":{"extra_content":{"google":{"thought_signature":"QUJD"}}}}`)
	image := session.Part{Kind: session.PartImage, CallID: "a", Blob: wire.Blob("image/png", []byte("ABC"))}
	odd := call("a", "f")
	odd.Arguments = `{"x": 1`
	marker := message("")
	marker.Kind = session.KindMarker
	spoken := session.Part{Kind: session.PartAudio, Text: "Hello"}
	for _, c := range []struct {
		name   string
		in     wire.Request
		want   string
		losses []string
	}{
		{name: "system text is apart", in: wire.Request{System: "Be short.", Messages: []session.Message{hi}}, want: `{"systemInstruction":{"parts":[{"text":"Be short."}]},"contents":[` + said + `]}`},
		{
			name: "ids and names that the API refuses", in: wire.Request{Messages: []session.Message{
				hi, message(session.Assistant, call("a|b", "mcp.files/read"), call("a:b", "1st"), call("", "")),
				message(session.Tool, result("a|b", "1")), message(session.Tool, result("a:b", "2"), result("", "3")),
			}},
			want: `{"contents":[` + said + `,{"role":"model","parts":[{"functionCall":{"id":"ab","name":"mcp.files_read","args":{}}},{"functionCall":{"id":"abdcea6d9c","name":"_1st","args":{}}},{"functionCall":{"name":"_","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"ab","name":"mcp.files_read","response":{"output":"1"}}},{"functionResponse":{"id":"abdcea6d9c","name":"_1st","response":{"output":"2"}}},{"functionResponse":{"name":"_","response":{"output":"3"}}}]}]}`,
			losses: []string{`20260211_001.2: the tool's name "mcp.files/read" is sent as "mcp.files_read"`, `20260211_001.2: the tool's name "1st" is sent as "_1st"`, `20260211_001.2: the tool's name "" is sent as "_"`},
		},
		{
			name: "failures, pictures of results, more text", in: wire.Request{Messages: []session.Message{
				hi, message(session.Assistant, session.TextPart("a"), call("a", "f"), call("b", "g")),
				message(session.Tool, result("a", "1"), session.TextPart("more"), image), message(session.Tool, failed),
				message(session.Assistant, session.TextPart("b")),
			}},
			want: `{"contents":[` + said + `,{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1\nmore"}}},{"functionResponse":{"id":"b","name":"g","response":{"error":"no such file"}}}]},
				{"role":"user","parts":[{"text":"Attached to the result of f:"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]},{"role":"model","parts":[{"text":"b"}]}]}`,
		},
		{
			name: "a model that wants signatures", in: wire.Request{Model: "gemini-3-flash", Messages: []session.Message{
				hi, message(session.Assistant, call("a", "f"), call("b", "g")),
				message(session.Tool, result("a", "1"), image, result("b", "2")), message(session.Assistant, signed),
				message(session.Tool, result("a", "3")),
			}},
			want: `{"contents":[` + said + `,{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"b","name":"g","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]}},{"functionResponse":{"id":"b","name":"g","response":{"output":"2"}}}]},
				{"role":"model","parts":[{"functionCall":{"id":"a2","name":"f","args":{}},"thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"functionResponse":{"id":"a2","name":"f","response":{"output":"3"}}}]}]}`,
			losses: []string{"20260211_001.2: calls without a thought signature are sent with the one that skips its check"},
		},
		{
			name: "reasoning of another maker, tools that it ran, speech", in: wire.Request{Messages: []session.Message{
				hi, message(session.Assistant, session.Part{
					Kind: session.PartReasoning, Text: "hm",
					Extra: session.JSON(`{"signature":"x"}`),
				}, call("s", "web_search"), result("s", "found"),
					session.Part{Kind: session.PartRefusal, Text: "No."}), message(session.Assistant, spoken),
			}},
			want: `{"contents":[` + said + `,{"role":"model","parts":[{"text":"No."},{"text":"Hello"}]}]}`,
			losses: []string{
				"20260211_001.2: reasoning",
				"20260211_001.2: the call of web_search that a provider ran, with its result: not in the form that the API takes",
			},
		},
		{
			name: "arguments that are no object, a marker", in: wire.Request{Messages: []session.Message{
				hi, marker,
				message(session.Assistant, odd), message(session.Tool, result("a", "")),
			}},
			want: `{"contents":[` + said + `,{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{"arguments":"{\"x\": 1"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":""}}}]}]}`, losses: []string{"20260211_001.2: a marker is no message", "20260211_001.3: the arguments of a call of f are no object: sent as a text within one"},
		},
		{
			name: "pictures by address", in: wire.Request{Messages: []session.Message{message(session.User,
				session.Part{Kind: session.PartImage, Extra: session.JSON(`{"url":"https://x/a.webp?b"}`)},
				session.Part{Kind: session.PartFile, Extra: session.JSON(`{"file_id":"file-1"}`)})}},
			want: `{"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"image/webp","fileUri":"https://x/a.webp?b"}}]}]}`, losses: []string{"20260211_001.1: file: its bytes or its type are not what the API takes"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Messages = dialecttest.Numbered(c.in.Messages)
			dialecttest.ExpectSent(t, gemini.Form(), c.in, c.want, c.losses)
		})
	}
}

func TestExportOfWhatAnotherFormGave(t *testing.T) {
	own := testkit.Must(gemini.Decode(dialecttest.List(t, `[{"role":"model","parts":[{"text":"x","y":1}]}]`)))(t)
	msgs := []session.Message{
		message(session.System, session.TextPart("Be short.")),
		message(session.Assistant, call("toolu_1", "f")), message(session.Tool, result("toolu_1", "1")),
	}
	exported := testkit.Must(gemini.Export(append(msgs, own.Messages...)))(t)
	want := `[{"role":"system","parts":[{"text":"Be short."}]},{"role":"model","parts":[{"functionCall":{"id":"toolu1","name":"f","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"toolu1","name":"f","response":{"output":"1"}}}]},{"role":"model","parts":[{"text":"x","y":1}]}]`
	if got := dialecttest.Array(exported); !dialecttest.EqualJSON([]byte(want), got) {
		t.Errorf("exported %s\nwant %s", got, want)
	}
}

func TestAPartWithoutItsBlobIsAnError(t *testing.T) {
	dialecttest.RefusesMissingBlobs(t, gemini.Form())
}

func models() []string {
	return []string{"", "gemini-2.5-pro", "models/gemini-3-pro-preview", "gemini-flash-latest", "gpt-5"}
}

// anyOwn generates conversations that say they are of this form.
func anyOwn(r *rapid.T) []session.Message {
	msgs := dialecttest.AnyConversation(r)
	for i := range msgs {
		msgs[i].Dialect = gemini.Name
		for j := range msgs[i].Parts {
			if p := &msgs[i].Parts[j]; string(p.Extra) == "[]" {
				p.Extra = nil // an extra of this form is an object
			}
		}
	}
	return msgs
}

func TestTheProviderAcceptsAnyConversation(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.AcceptsAny(t, gemini.Form(), dialecttest.AnyConversation, models()...)
	})
	t.Run("of this form", func(t *testing.T) { dialecttest.AcceptsAny(t, gemini.Form(), anyOwn, models()...) })
}

func TestWhatWasSentStaysAPrefix(t *testing.T) {
	t.Run("of other forms", func(t *testing.T) {
		dialecttest.StaysAPrefix(t, gemini.Form(), dialecttest.AnyConversation, models()...)
	})
	t.Run("of this form", func(t *testing.T) { dialecttest.StaysAPrefix(t, gemini.Form(), anyOwn, models()...) })
}

// What was exported for keeping is read again as a conversation that can be sent.
func TestExportOfAnyConversationIsReadAgain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs := dialecttest.AnyConversation(r)
		for i := range msgs {
			msgs[i].Dialect = "anthropic"
		}
		exported := testkit.Must(gemini.Export(msgs))(r)
		back, err := gemini.Decode(exported)
		if err != nil {
			r.Fatalf("%v\n%s", err, dialecttest.Array(exported))
		}
		model := rapid.SampledFrom(models()).Draw(r, "model")
		sent := testkit.Must(gemini.Send(wire.Request{Messages: back.Messages, Model: model}))(r)
		if err := dialecttest.ValidateFor(gemini.Name, model, sent.Request); err != nil && len(exported) > 0 {
			r.Fatalf("%v\n%s", err, sent.Request)
		}
	})
}

// answered leaves out calls that the messages right behind do not answer, and results that
// answer none, as repair does before a context is sent.
func answered(msgs []session.Message) []session.Message {
	var out []session.Message
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		if m.Role == session.Tool {
			continue // those that answer were taken with their calls
		}
		out = append(out, m)
		var calls, results []string
		for _, p := range m.Calls() {
			if !slices.ContainsFunc(m.Results(), func(r *session.Part) bool { return r.CallID == p.CallID }) {
				calls = append(calls, p.CallID)
			}
		}
		behind := i + 1
		for ; behind < len(msgs) && msgs[behind].Role == session.Tool; behind++ {
			for _, r := range msgs[behind].Results() {
				results = append(results, r.CallID)
			}
		}
		slices.Sort(results)
		sorted := slices.Sorted(slices.Values(calls))
		if len(calls) > 0 && slices.Equal(sorted, results) && len(slices.Compact(sorted)) == len(calls) {
			out = append(out, msgs[i+1:behind]...)
			continue
		}
		last := &out[len(out)-1]
		last.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p session.Part) bool {
			return p.Kind == session.PartToolCall && slices.Contains(calls, p.CallID)
		})
	}
	return out
}

func FuzzDecodeSend(f *testing.F) {
	for _, c := range wireCases() {
		if len(c.Entries) < 4096 {
			f.Add([]byte(c.Entries), true)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, newest bool) {
		var raw []jsontext.Value
		if json.Unmarshal(body, &raw) != nil {
			t.Skip("no JSON array")
		}
		decoded, err := gemini.Decode(raw)
		if err != nil {
			return
		}
		msgs := answered(dialecttest.Stored(t, decoded.Messages))
		if len(msgs) == 0 {
			return
		}
		model := ""
		if newest {
			model = "gemini-flash-latest"
		}
		sent := testkit.Must(gemini.Send(wire.Request{Messages: msgs, Model: model}))(t)
		if err := dialecttest.ValidateFor(gemini.Name, model, sent.Request); err != nil {
			t.Errorf("the provider would refuse it: %v\n%s", err, sent.Request)
		}
	})
}

func TestSendOfAnyCaseIsAccepted(t *testing.T) {
	for _, c := range wireCases() {
		decoded := testkit.Must(gemini.Decode(dialecttest.List(t, c.Entries)))(t)
		for _, model := range []string{"", "gemini-2.5-pro", "gemini-flash-latest"} {
			msgs := answered(dialecttest.Stored(t, decoded.Messages))
			if len(msgs) == 0 {
				continue
			}
			sent := testkit.Must(gemini.Send(wire.Request{Messages: msgs, Model: model}))(t)
			if err := dialecttest.ValidateFor(gemini.Name, model, sent.Request); err != nil {
				t.Errorf("%s, for %q: %v\n%.1000s", c.Name, model, err, sent.Request)
			}
		}
	}
}
