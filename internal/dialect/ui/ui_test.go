package ui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/dialect"
	"sessiond/internal/dialect/ui"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

const tool = `{"type":"tool-tide","toolCallId":"c1","state":"output-available","input":{"place":"pier"},"output":{"high":[1.0]}}`

// The parts are those of validateUIMessages of ai 7.
func cases() []dialecttest.Case {
	var all []dialecttest.Case
	add := func(name, entries string) { all = append(all, dialecttest.Case{Name: name, Entries: entries}) }
	part := func(name, part string) {
		add(name, `[{"id":"a","role":"assistant","parts":[`+part+`]}]`)
		add(name+", between others", `[{"id":"a","role":"assistant","parts":[{"type":"text","text":"x"},`+tool+`,`+part+`,`+
			tool+`,{"type":"text","text":"y"}]}]`)
	}
	part("text", `{"type":"text","text":"hi","state":"done","providerMetadata":{"p":{"a":1}},"citations":[{"source":{}}]}`)
	part("reasoning", `{"type":"reasoning","id":"r","text":"hm","state":"streaming","providerMetadata":{"openai":{"encrypted":"x"}}}`)
	part("custom", `{"type":"custom","kind":"p.x","providerMetadata":{}}`)
	part("source-url", `{"type":"source-url","sourceId":"s","url":"https://example.com/","title":"t"}`)
	part("source-document", `{"type":"source-document","sourceId":"s","mediaType":"application/pdf","title":"t","filename":"f"}`)
	part("file", `{"type":"file","mediaType":"image/png","filename":"","url":"data:image/png;base64,`+dialecttest.PNG+`"}`)
	part("file by address", `{"type":"file","mediaType":"application/pdf","url":"https://example.com/a.pdf","providerReference":{"openai":"f"}}`)
	part("file of two types", `{"type":"file","mediaType":"image/png","url":"data:image/gif;base64,QUJD"}`)
	part("file in other base64", `{"type":"file","mediaType":"image/png","url":"data:image/png;base64,QR=="}`)
	part("reasoning-file", `{"type":"reasoning-file","mediaType":"image/png","url":"data:image/png;base64,QUJD"}`)
	part("step-start", `{"type":"step-start"}`)
	part("two of step-start", `{"type":"step-start"},{"type":"step-start"},{"type":"text","text":"x"}`)
	part("step-start with a field", `{"type":"step-start","x":1},{"type":"text","text":"x"}`)
	part("data", `{"type":"data-chart","id":"d","data":{"of":[1,{"deep":null}]}}`)
	part("steering", `{"type":"steering-message","id":"s","parts":[{"type":"text","text":"stop"},{"type":"file","mediaType":"image/png","url":"https://example.com/x"},{"type":"later"}]}`)
	part("a step of steering", `{"type":"step-start"},{"type":"steering-message","id":"s","parts":[]}`)
	part("a part of next year", `{"type":"hologram","of":{"x":[1.0,"\ud83d"]},"text":7}`)
	for _, of := range []string{`"type":"tool-tide"`, `"type":"dynamic-tool","toolName":"of mcp/x"`} {
		for name, state := range map[string]string{
			"input-streaming":             `"state":"input-streaming","input":{"pl":"p"},"rawInput":"{\"pl"`,
			"input-available":             `"state":"input-available","input":{"place": "pier"},"callProviderMetadata":{"p":{}}`,
			"approval-requested":          `"state":"approval-requested","input":{},"approval":{"id":"1","requestReason":"r"}`,
			"approval-responded":          `"state":"approval-responded","input":{},"approval":{"id":"1","approved":true}`,
			"approval-responded no":       `"state":"approval-responded","input":{},"approval":{"id":"1","approved":false,"reason":"no"}`,
			"output-available":            `"state":"output-available","input":null,"output":"high","preliminary":true,"title":"T","toolMetadata":{}`,
			"output-available of nothing": `"state":"output-available","input":{}`,
			"output-available of null":    `"state":"output-available","input":{},"output":null`,
			"output-available, hosted":    `"state":"output-available","input":"x","output":[1],"providerExecuted":true,"resultProviderMetadata":{"p":{}}`,
			"input-available, hosted":     `"state":"input-available","input":"x","providerExecuted":true`,
			"output-error":                `"state":"output-error","input":{},"errorText":"broke","approval":{"id":"1","approved":true}`,
			"output-error of raw input":   `"state":"output-error","rawInput":"{\"pl","errorText":"broke"`,
			"output-denied":               `"state":"output-denied","input":{},"approval":{"id":"1","approved":false}`,
			"a state of next year":        `"state":"output-dreamt","input":{},"dream":1`,
			"no state":                    `"input":{}`,
		} {
			part(of[8:12]+" "+name, `{`+of+`,"toolCallId":"c1",`+state+`}`)
		}
	}
	add("a tool without an id", `[{"id":"a","role":"assistant","parts":[{"type":"tool-x","state":"output-available","output":1}]}]`)
	add("one id twice", `[{"id":"a","role":"assistant","parts":[{"type":"tool-x","toolCallId":"c","state":"input-available","input":{}},`+
		`{"type":"tool-x","toolCallId":"c","state":"output-available","input":{},"output":1}]}]`)
	add("a tool of a person", `[{"id":"a","role":"user","parts":[`+tool+`,{"type":"reasoning","text":"x"}]}]`)
	add("metadata and unknown fields", `[{"id":"a","role":"user","metadata":{"at":1.0,"\ud800":[]},"createdAt":"x","parts":[]},`+
		`{"role":"system","metadata":[],"parts":[{"type":"text","text":""}]},{"id":7,"role":"assistant","parts":[]}]`)
	add("the same again", `[{"id":"a","role":"assistant","parts":[`+tool+`]},{"id":"a","role":"assistant","parts":[`+tool+`]}]`)
	add("a text that no column can hold", `[{"id":"\ud800","role":"user","parts":[{"type":"text","text":"\u0000 \ud83d"}]}]`)
	long := strings.Repeat("long ", 20_000)
	add("long", `[{"id":"a","role":"assistant","metadata":{"x":"`+long+`"},"x":"`+long+`","parts":[{"type":"text","text":"`+long+`"},`+
		`{"type":"tool-x","toolCallId":"c","state":"output-available","input":{"x":"`+long+`"},"output":{"x":"`+long+`"}},{"type":"data-x","data":"`+long+`"}]}]`)
	add("deep", `[{"id":"a","role":"assistant","metadata":{"x":`+dialecttest.Nested(2000)+`},"parts":[{"type":"data-x","data":`+dialecttest.Nested(2000)+`},`+
		`{"type":"tool-x","toolCallId":"c","state":"output-available","input":{},"output":`+dialecttest.Nested(2000)+`}]}]`)
	return all
}

func TestRoundTrips(t *testing.T) { dialecttest.RoundTrips(t, ui.Form(), cases()) }

func FuzzRoundTrip(f *testing.F) { dialecttest.FuzzRoundTrip(f, ui.Form(), cases()) }

func TestAnyMessageRoundTrips(t *testing.T) {
	dialecttest.AnyRoundTrips(t, ui.Form(), func(r *rapid.T) jsontext.Value {
		part := rapid.Custom(func(r *rapid.T) string {
			value := dialecttest.AnyValue(2).Draw(r, "value")
			text := dialecttest.AnyText().Draw(r, "text")
			return rapid.SampledFrom([]string{
				`{"type":"text","text":` + text + `,"providerMetadata":` + value + `}`,
				`{"type":"reasoning","text":` + text + `,"x":` + value + `}`,
				`{"type":"file","mediaType":"image/png","filename":` + text + `,"url":` + value + `}`,
				`{"type":"tool-` + text[1:len(text)-1] + `","toolCallId":` + text + `,"state":"output-available","input":` + value + `,"output":` + value + `}`,
				`{"type":"tool-x","toolCallId":"c","state":"output-error","input":` + value + `,"errorText":` + text + `}`,
				`{"type":"tool-x","toolCallId":"c","state":"input-available","rawInput":` + value + `,"providerExecuted":true}`,
				`{"type":"dynamic-tool","toolName":` + text + `,"toolCallId":"c","state":"output-available","output":` + value + `,"providerExecuted":true}`,
				`{"type":"step-start"}`, `{"type":"data-x","data":` + value + `}`,
				`{"type":"steering-message","id":` + value + `,"parts":[{"type":"text","text":` + text + `}]}`,
			}).Draw(r, "part")
		})
		role := rapid.SampledFrom([]string{"user", "system", "assistant", "assistant", "assistant"}).Draw(r, "role")
		parts := dialecttest.AnyArray(part).Draw(r, "parts")
		return jsontext.Value(`{"id":` + dialecttest.AnyValue(1).Draw(r, "id") + `,"role":"` + role + `","parts":` + parts +
			`,"metadata":` + dialecttest.AnyValue(1).Draw(r, "metadata") + `}`)
	})
}

func TestRefuses(t *testing.T) {
	wrong := dialecttest.WrongAt
	dialecttest.Refuses(t, ui.Form(), `{"id":"a","role":"user","parts":[]}`,
		wrong("no parts", `{"id":"a","role":"user"}`, session.Invalid, "messages[1].parts"),
		wrong("a tool's role", `{"id":"a","role":"tool","parts":[]}`, session.Invalid, "messages[1].role"),
		wrong("a part without a type", `{"role":"user","parts":[{"text":"x"}]}`, session.Invalid, "messages[1].parts[0].type"),
		wrong("a text of a number", `{"role":"user","parts":[{"type":"text","text":7}]}`, session.Invalid, "messages[1].parts[0].text"),
		wrong("steering without parts", `{"role":"assistant","parts":[{"type":"steering-message"}]}`, session.Invalid, "messages[1].parts[0].parts"),
		wrong("too deep", `{"role":"user","parts":[{"type":"text","text":"x","m":`+dialecttest.Nested(2000)+`}]}`, session.TooLarge, "messages[1].parts[0].m"),
	)
}

func TestHoldsMaxParts(t *testing.T) {
	dialecttest.HoldsMaxParts(t, ui.Form(), `{"role":"user","parts":[`, `{"type":"text","text":"x"}`, `]}`)
}

func TestBytesBecomeBlobs(t *testing.T) {
	parts := dialecttest.BytesBecomeBlobs(t, ui.Form(), `[{"id":"a","role":"user","parts":[{"type":"file","mediaType":"image/png","url":"data:image/png;base64,QUJD"},`+
		`{"type":"file","mediaType":"audio/wav","url":"data:audio/wav;base64,QUJD"},{"type":"file","mediaType":"application/pdf","url":"data:application/pdf;base64,QUJD"}]}]`,
		"image/png", "audio/wav", "application/pdf")
	if parts[0].Kind != session.PartImage || parts[1].Kind != session.PartAudio || parts[2].Kind != session.PartFile {
		t.Errorf("kinds %s, %s, %s", parts[0].Kind, parts[1].Kind, parts[2].Kind)
	}
}

// A reply of two steps is what a provider would have been sent: the results are a tool's.
func TestAReplyIsSplitIntoSteps(t *testing.T) {
	decoded := testkit.Must(ui.Decode(dialecttest.List(t, `[{"id":"a","role":"assistant","metadata":{"n":1},"parts":[
		{"type":"step-start"},{"type":"reasoning","text":"hm"},`+tool+`,{"type":"data-x","data":1},
		{"type":"dynamic-tool","toolName":"f","toolCallId":"c2","state":"output-error","input":{},"errorText":"broke"},
		{"type":"step-start"},{"type":"text","text":"High."},
		{"type":"tool-search","toolCallId":"c3","providerExecuted":true,"state":"output-available","input":{"q":1},"output":"found"},
		{"type":"tool-ask","toolCallId":"c4","state":"approval-requested","input":{},"approval":{"id":"1"}},
		{"type":"tool-ask","toolCallId":"c5","state":"input-streaming","input":{}}]}]`)))(t)
	var got []string
	for i := range decoded.Messages {
		m := &decoded.Messages[i]
		line := string(m.Role) + " " + string(m.Origin) + " " + string(m.Metadata) + ":"
		for j := range m.Parts {
			p := &m.Parts[j]
			line += fmt.Sprintf(" %s(%s %s %s%s)", p.Kind, p.CallID, p.ToolName, p.Arguments, p.Text)
		}
		got = append(got, line)
	}
	want := []string{
		`assistant model {"n":1}: reasoning(  hm) tool_call(c1 tide {"place":"pier"}) data(  ) tool_call(c2 f {})`,
		`tool tool : tool_result(c1 tide {"high":[1.0]}) tool_result(c2 f broke)`,
		`assistant model : text(  High.) tool_call(c3 search {"q":1}) tool_result(c3 search found) tool_call(c4 ask {}) data(  )`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	dialecttest.KeepsOwnJSON(t, decoded.Messages, 0)
	if len(decoded.Warnings) > 0 {
		t.Errorf("warnings %q", decoded.Warnings)
	}
}

// A conversation of a provider is read as UIMessages: each call and its result in one part, all steps of a reply in
// one message.
func TestAProvidersConversationIsRead(t *testing.T) {
	decoded := testkit.Must(dialect.Decode(dialect.Anthropic, dialecttest.List(t, `[{"role":"user","content":[{"type":"text","text":"How high?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"I look."},
			{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a"}},{"type":"tool_use","id":"c2","name":"Read","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"none","is_error":true},{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"3 m"},{"type":"image","source":{"type":"url","url":"https://example.com/x"}}]}]},
		{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"Three."}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"c3","name":"Read","input":{}}]},
		{"role":"user","content":"Thanks."}]`)))(t)
	msgs := dialecttest.Numbered(dialecttest.Stored(t, decoded.Messages))
	marker := session.Message{Kind: session.KindMarker, Display: true}
	hidden := session.Message{
		Kind: session.KindMessage, Role: session.User, Parts: []session.Part{session.TextPart("reminder")},
	}
	msgs = slices.Insert(msgs, 2, marker, hidden)
	got := testkit.Must(ui.Export(msgs))(t)
	want := `[{"id":"20260211_001.1","role":"user","parts":[{"type":"text","text":"How high?"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,QUJD"}]},
		{"id":"20260211_001.2","role":"assistant","parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I look."},
			{"type":"dynamic-tool","toolName":"Read","toolCallId":"c1","state":"output-available","input":{"path":"a"},"output":"3 m"},
			{"type":"dynamic-tool","toolName":"Read","toolCallId":"c2","state":"output-error","input":{},"errorText":"none"},
			{"type":"file","mediaType":"image/*","url":"https://example.com/x"},
			{"type":"step-start"},{"type":"dynamic-tool","toolName":"web_search","toolCallId":"s1","state":"output-available","input":{},"output":"","providerExecuted":true},{"type":"text","text":"Three."},
			{"type":"dynamic-tool","toolName":"Read","toolCallId":"c3","state":"input-available","input":{}}]},
		{"id":"20260211_001.6","role":"user","parts":[{"type":"text","text":"Thanks."}]}]`
	if !dialecttest.EqualJSON([]byte(want), dialecttest.Array(got)) {
		t.Errorf("got %s", dialecttest.Array(got))
	}
}

// What is exported of any conversation can be appended again, and sent to every provider.
func TestAnyConversationIsRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		msgs := dialecttest.Numbered(dialecttest.AnyConversation(r))
		calls := 0
		for i := range msgs {
			msgs[i].Display = true
			calls += len(msgs[i].Calls())
		}
		exported := testkit.Must(ui.Export(msgs))(r)
		decoded := testkit.Must(ui.Decode(exported))(r)
		again := testkit.Must(ui.Export(decoded.Messages))(r)
		if !dialecttest.EqualJSON(dialecttest.Array(exported), dialecttest.Array(again)) {
			r.Fatalf("read\n%s\nand then\n%s", dialecttest.Array(exported), dialecttest.Array(again))
		}
		for i := range decoded.Messages {
			calls -= len(decoded.Messages[i].Calls())
		}
		if calls != 0 {
			r.Fatalf("%d calls are missing in\n%s", calls, dialecttest.Array(exported))
		}
	})
}

// Every provider is sent what a front end stored, with the calls and their results.
func TestUIMessagesAreSent(t *testing.T) {
	decoded := testkit.Must(dialect.Decode("", dialecttest.List(t, `[{"id":"u","role":"user","parts":[{"type":"text","text":"How high?"}]},
		{"id":"a","role":"assistant","parts":[{"type":"step-start"},`+tool+`,{"type":"step-start"},{"type":"text","text":"Three."}]},
		{"id":"v","role":"user","parts":[{"type":"text","text":"Thanks."}]}]`)))(t)
	if got := decoded.Messages[0].Dialect; got != ui.Name {
		t.Fatalf("detected %s", got)
	}
	for _, form := range dialecttest.Forms() {
		sent := testkit.Must(dialect.Send(form, dialect.Request{Messages: dialecttest.Numbered(decoded.Messages)}))(t)
		if err := dialecttest.Validate(form, sent.Request); err != nil || len(sent.Losses) > 0 {
			t.Errorf("%s: %v, losses %q", form, err, sent.Losses)
		}
		for _, want := range []string{"How high?", "pier", "1.0", "Three.", "Thanks."} {
			if !strings.Contains(string(sent.Request), want) {
				t.Errorf("%s is sent without %q: %s", form, want, sent.Request)
			}
		}
	}
}

// An entry of which a branch has only the beginning shows that.
func TestTheBeginningOfAnEntryIsShown(t *testing.T) {
	decoded := testkit.Must(ui.Decode(dialecttest.List(t, `[{"id":"a","role":"assistant","parts":[`+tool+`,{"type":"step-start"},{"type":"text","text":"Three."}]}]`)))(t)
	for n, want := range map[int]string{
		1: `[{"id":"a","role":"assistant","parts":[{"type":"tool-tide","toolCallId":"c1","state":"input-available","input":{"place":"pier"}}]}]`,
		2: `[{"id":"a","role":"assistant","parts":[` + tool + `]}]`,
	} {
		got := testkit.Must(ui.Export(decoded.Messages[:n]))(t)
		if !dialecttest.EqualJSON([]byte(want), dialecttest.Array(got)) {
			t.Errorf("%d messages: %s", n, dialecttest.Array(got))
		}
	}
	got := testkit.Must(ui.Export(decoded.Messages[1:]))(t)
	if len(got) != 1 || !strings.Contains(string(got[0]), "Three.") || !strings.Contains(string(got[0]), "high") {
		t.Errorf("the end alone is %s", dialecttest.Array(got))
	}
}

func TestMissingBlobIsAnError(t *testing.T) {
	for _, form := range []string{ui.Name, "another"} {
		m := session.Message{
			Kind: session.KindMessage, Role: session.User, Dialect: form, Display: true,
			Parts: []session.Part{{Kind: session.PartText, BlobSHA: new("abc")}},
		}
		if _, err := ui.Export([]session.Message{m}); session.CodeOf(err) != session.Internal {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func TestFirstEntry(t *testing.T) {
	own := testkit.Must(ui.Decode(dialecttest.List(t, `[{"id":"a","role":"assistant","parts":[`+tool+`]},{"id":"u","role":"user","parts":[]}]`)))(t).Messages
	of := func(role session.Role) session.Message {
		return session.Message{Kind: session.KindMessage, Role: role, Display: true}
	}
	marker := session.Message{Kind: session.KindMarker, Display: true}
	for _, c := range []struct {
		name string
		msgs []session.Message
		want int
	}{
		{"one of this form", own, 2},
		{"a person", []session.Message{of(session.User), of(session.Assistant)}, 1},
		{
			"a reply",
			[]session.Message{of(session.Assistant), of(session.Tool), marker, of(session.Assistant), of(session.User)},
			4,
		},
		{"a marker before", []session.Message{marker, of(session.Assistant), of(session.Tool)}, 3},
		{"a reply before one of this form", []session.Message{of(session.Assistant), own[0], own[1]}, 1},
		{"a reply behind one of this form", []session.Message{own[0], own[1], of(session.Assistant)}, 2},
	} {
		if got := ui.FirstEntry(c.msgs); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
