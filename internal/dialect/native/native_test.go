package native_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sessiond/internal/dialect/native"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

func decode(t testing.TB, message string) (session.Message, error) {
	t.Helper()
	decoded, err := native.Decode([]jsontext.Value{jsontext.Value(message)})
	if err != nil {
		return session.Message{}, err
	}
	return decoded.Messages[0], nil
}

func TestDecode(t *testing.T) {
	yes, ms := true, int64(12)
	base := func(role session.Role, origin session.Origin, parts ...session.Part) session.Message {
		return session.Message{
			Kind: session.KindMessage, Role: role, Origin: origin, Dialect: native.Name, InContext: true,
			Display: true, Parts: parts,
		}
	}
	with := func(m session.Message, change func(*session.Message)) session.Message { change(&m); return m }
	for _, c := range []struct {
		name, message string
		want          session.Message
	}{
		{"a person", `{"role":"user","content":"hi"}`, base(session.User, session.Person, session.TextPart("hi"))},
		{"a model", `{"role":"assistant","content":"hi"}`, base(session.Assistant, session.Model, session.TextPart("hi"))},
		{"instructions", `{"role":"system","content":"hi"}`, base(session.System, session.Program, session.TextPart("hi"))},
		{"an empty text", `{"role":"user","content":""}`, base(session.User, session.Person, session.TextPart(""))},
		{
			"a tool", `{"role":"tool","content":"7","call_id":"a","tool_name":"f","is_error":true}`,
			base(session.Tool, session.ByTool, session.Part{
				Kind: session.PartToolResult, Text: "7", CallID: "a", ToolName: "f",
				IsError: &yes,
			}),
		},
		{
			"parts", `{"role":"assistant","parts":[{"kind":"reasoning","text":"hm","extra":{"signature":"x"}},{"kind":"text","text":"yes"},{"kind":"tool_call","tool_name":"f","call_id":"a","arguments":"{ }"}]}`,
			base(session.Assistant, session.Model, session.Part{
				Kind: session.PartReasoning, Text: "hm",
				Extra: session.JSON(`{"signature":"x"}`),
			}, session.TextPart("yes"),
				session.Part{Kind: session.PartToolCall, ToolName: "f", CallID: "a", Arguments: "{ }"}),
		},
		{
			"a result that took time", `{"role":"tool","parts":[{"kind":"tool_result","call_id":"a","text":"7","duration_ms":12}]}`,
			base(session.Tool, session.ByTool, session.Part{
				Kind: session.PartToolResult, CallID: "a", Text: "7",
				DurationMS: &ms,
			}),
		},
		{
			"everything beside", `{"role":"user","content":"x","origin":"program","author":"cron","external_id":"e1","created_at":"2026-02-11T11:00:15.5+01:00","display":false,"in_context":false,"kind":"custom_message","metadata":{"n": 1.0},"model":"m","provider":"p","finish":null}`,
			with(base(session.User, session.Program, session.TextPart("x")), func(m *session.Message) {
				m.Kind, m.Author, m.ExternalID, m.Model, m.Provider = session.KindCustomMessage, "cron", "e1", "m", "p"
				m.Display, m.InContext, m.Metadata = false, false, session.JSON(`{"n": 1.0}`)
				m.CreatedAt = session.At(time.Date(2026, 2, 11, 10, 0, 15, 500_000_000, time.UTC))
			}),
		},
		{
			"a marker has no role and is out of the context", `{"kind":"marker"}`,
			with(base("", session.Program), func(m *session.Message) { m.Kind, m.InContext = session.KindMarker, false }),
		},
		{
			"a reply that failed", `{"role":"assistant","content":"x","finish":"error"}`,
			with(base(session.Assistant, session.Model, session.TextPart("x")), func(m *session.Message) {
				m.Finish = session.FinishError
			}),
		},
		{
			"a part without its text, as a list has it", `{"role":"user","content":"x","parts":[{"kind":"text"}]}`,
			base(session.User, session.Person, session.TextPart("x")),
		},
		{"fields that the server makes", `{"id":"20260211_001.1","seq":1,"parent":null,"day":"2026-02-11","tokens":4,"dialect":"anthropic","role":"user","content":"x","parts":[{"kind":"text","text":"x","tokens":1}]}`, base(session.User, session.Person, session.TextPart("x"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Must(decode(t, c.message))(t)
			testkit.Equal(t, c.want, got)
		})
	}
}

func TestWrongInputIsNamedByItsPath(t *testing.T) {
	for _, c := range []struct {
		name, message string
		code          session.Code
		path, says    string
	}{
		{"no JSON", `{`, session.Malformed, "messages[0]", "not JSON"},
		{"no object", `[]`, session.Invalid, "messages[0]", "an object"},
		{"a typo", `{"role":"user","content":"x","orign":"program"}`, session.Invalid, "messages[0]", `"orign"`},
		{
			"a typo in a part", `{"role":"user","parts":[{"kind":"text","txt":"x"}]}`, session.Invalid, "messages[0].parts[0]",
			`"txt"`,
		},
		{"other letters", `{"Role":"user","content":"x"}`, session.Invalid, "messages[0]", `"Role"`},
		{"no role", `{"content":"x"}`, session.Invalid, "messages[0].role", "user"},
		{"an unknown role", `{"role":"human","content":"x"}`, session.Invalid, "messages[0].role", "human"},
		{"an empty role", `{"role":"","content":"x"}`, session.Invalid, "messages[0].role", "must be one of"},
		{
			"an unknown origin", `{"role":"user","content":"x","origin":"bot"}`, session.Invalid, "messages[0].origin",
			"person",
		},
		{"an unknown finish", `{"role":"user","content":"x","finish":"done"}`, session.Invalid, "messages[0].finish", "stop"},
		{"an unknown kind", `{"role":"user","content":"x","kind":"note"}`, session.Invalid, "messages[0].kind", "marker"},
		{"no content", `{"role":"user"}`, session.Invalid, "messages[0].content", "missing"},
		{"content in parts", `{"role":"user","content":[{"type":"text"}]}`, session.Invalid, "messages[0].content", "parts"},
		{"a result of nothing", `{"role":"tool","content":"x"}`, session.Invalid, "messages[0].call_id", "missing"},
		{
			"a person's call id", `{"role":"user","content":"x","call_id":"a"}`, session.Invalid, "messages[0].call_id",
			"role tool",
		},
		{"call id beside parts", `{"role":"tool","parts":[],"call_id":"a"}`, session.Invalid, "messages[0].call_id", "part"},
		{"content that is not the parts'", `{"role":"user","content":"a","parts":[{"kind":"text","text":"b"}]}`, session.Invalid, "messages[0].content", "one of the two"},
		{"parts are an object", `{"role":"user","parts":{}}`, session.Invalid, "messages[0].parts", "an array"},
		{
			"too many parts", `{"role":"user","parts":[` + strings.Repeat("1,", 1024) + `1]}`, session.Invalid,
			"messages[0].parts", "1024",
		},
		{"no kind", `{"role":"user","parts":[{"text":"x"}]}`, session.Invalid, "messages[0].parts[0].kind", "missing"},
		{"an unknown kind of part", `{"role":"user","parts":[{"kind":"text"},{"kind":"tool_use"}]}`, session.Invalid, "messages[0].parts[1].kind", "tool_call"},
		{"a person's call", `{"role":"user","parts":[{"kind":"tool_call","tool_name":"f"}]}`, session.Invalid, "messages[0].parts[0].kind", "assistant"},
		{"a person's result", `{"role":"user","parts":[{"kind":"tool_result","call_id":"f"}]}`, session.Invalid, "messages[0].parts[0].kind", "role tool"},
		{"a call without tool", `{"role":"assistant","parts":[{"kind":"tool_call","call_id":"a"}]}`, session.Invalid, "messages[0].parts[0].tool_name", "missing"},
		{"a result without call", `{"role":"tool","parts":[{"kind":"tool_result","text":"x"}]}`, session.Invalid, "messages[0].parts[0].call_id", "missing"},
		{
			"arguments of a text", `{"role":"user","parts":[{"kind":"text","arguments":"{}"}]}`, session.Invalid,
			"messages[0].parts[0].arguments", "tool_call",
		},
		{"arguments as an object", `{"role":"assistant","parts":[{"kind":"tool_call","tool_name":"f","arguments":{}}]}`, session.Invalid, "messages[0].parts[0].arguments", "a string"},
		{
			"a picture of nothing", `{"role":"user","parts":[{"kind":"image"}]}`, session.Invalid, "messages[0].parts[0].data",
			"base64",
		},
		{"bytes that are no base64", `{"role":"user","parts":[{"kind":"image","data":"@","media_type":"image/png"}]}`, session.Invalid, "messages[0].parts[0].data", "base64"},
		{
			"bytes of no type", `{"role":"user","parts":[{"kind":"image","data":"QUJD"}]}`, session.Invalid,
			"messages[0].parts[0].media_type", "image/png",
		},
		{"a type of no bytes", `{"role":"user","parts":[{"kind":"image","media_type":"image/png"}]}`, session.Invalid, "messages[0].parts[0].media_type", "without data"},
		{"bytes of a text", `{"role":"user","parts":[{"kind":"text","data":"QUJD","media_type":"text/plain"}]}`, session.Invalid, "messages[0].parts[0].data", "image"},
		{"another's blob", `{"role":"user","parts":[{"kind":"image","blob":"abc","extra":{"url":"x"}}]}`, session.Invalid, "messages[0].parts[0].blob", "data"},
		{"a long text of a picture", `{"role":"user","parts":[{"kind":"image","data":"QUJD","media_type":"image/png","text":"` + strings.Repeat("x", 70_000) + `"}]}`, session.Invalid, "messages[0].parts[0].text", "kind text"},
		{
			"extra is an array", `{"role":"user","parts":[{"kind":"text","extra":[]}]}`, session.Invalid,
			"messages[0].parts[0].extra", "an object",
		},
		{"extra is deep", `{"role":"user","parts":[{"kind":"text","extra":{"x":` + strings.Repeat("[", 1000) +
			strings.Repeat("]", 1000) + `}}]}`, session.TooLarge, "messages[0].parts[0].extra", "900"},
		{
			"metadata is text", `{"role":"user","content":"x","metadata":"x"}`, session.Invalid, "messages[0].metadata",
			"an object",
		},
		{
			"a time that is none", `{"role":"user","content":"x","created_at":"yesterday"}`, session.Invalid,
			"messages[0].created_at", "RFC 3339",
		},
		{"a duration that is text", `{"role":"tool","parts":[{"kind":"tool_result","call_id":"a","duration_ms":"1"}]}`, session.Invalid, "messages[0].parts[0].duration_ms", "a number"},
		{
			"a flag that is text", `{"role":"user","content":"x","display":"no"}`, session.Invalid, "messages[0].display",
			"true or false",
		},
		{
			"an author of halves", `{"role":"user","content":"x","author":"\ud800"}`, session.Invalid, "messages[0].author",
			"surrogate",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(t, c.message)
			var known *session.Error
			if !errors.As(err, &known) {
				t.Fatalf("got %+v and error %v", got, err)
			}
			if known.Code != c.code || len(known.Fields) != 1 || known.Fields[0].Path != c.path ||
				!strings.Contains(known.Message, c.says) {
				t.Errorf("got %s at %+v: %.400s; want %s at %s, saying %q", known.Code, known.Fields, known, c.code, c.path, c.says)
			}
		})
	}
}

// again exports a message as a store gives it and decodes that.
func again(t testing.TB, m session.Message) session.Message {
	t.Helper()
	m.ID, m.Seq, m.Day = session.MessageRef{Session: "20260211_001", Seq: 3}, 3, "2026-02-11"
	if m.CreatedAt.IsZero() {
		m.CreatedAt = session.At(time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC))
	}
	exported := testkit.Must(native.Export(dialecttest.Stored(t, []session.Message{m})))(t)
	back, err := decode(t, string(exported[0]))
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, exported[0])
	}
	return back
}

func TestWhatTheAPIGivesCanBeAppendedAgain(t *testing.T) {
	for _, message := range []string{
		`{"role":"user","content":"hi <b>","created_at":"2026-02-11T10:00:15.500Z","author":"ann","metadata":{"n":1.0}}`,
		`{"role":"tool","content":"7","call_id":"a","is_error":false,"created_at":"2026-02-11T10:00:15.500Z"}`,
		`{"role":"user","content":"` + strings.Repeat("long ", 20_000) + `","created_at":"2026-02-11T10:00:15.500Z"}`,
		`{"role":"user","content":"cut \ud83d\u0000","created_at":"2026-02-11T10:00:15.500Z"}`,
		`{"role":"user","parts":[{"kind":"text","text":"see"},{"kind":"image","data":"QUJD","media_type":"image/png","text":"alt"},{"kind":"image","extra":{"url":"https://x"}},{"kind":"data","data":"QUJD","media_type":"text/plain"}],"created_at":"2026-02-11T10:00:15.500Z"}`,
		`{"role":"assistant","finish":"tool_calls","parts":[{"kind":"tool_call","tool_name":"f","call_id":"a","arguments":"{\"x\":\"\\ud83d\"}"}],"created_at":"2026-02-11T10:00:15.500Z"}`,
		`{"kind":"marker","display":false,"created_at":"2026-02-11T10:00:15.500Z"}`,
	} {
		first, err := decode(t, message)
		if err != nil {
			t.Fatalf("%.200s: %v", message, err)
		}
		second := again(t, first)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%.200s: %s", message, diff)
		}
	}
}

func TestExportSaysTheContent(t *testing.T) {
	m := testkit.Must(decode(t, `{"role":"user","parts":[{"kind":"text","text":"a"},{"kind":"text","text":"b"}]}`))(t)
	exported := testkit.Must(native.Export([]session.Message{m}))(t)
	var got struct {
		Content string
		Parts   []struct{ Kind, Text string }
	}
	testkit.Check(t, json.Unmarshal(exported[0], &got))
	if got.Content != "a\nb" || len(got.Parts) != 2 || got.Parts[1].Text != "b" {
		t.Errorf("got %+v from %s", got, exported[0])
	}
}

func TestAnyMessageCanBeAppendedAgain(t *testing.T) {
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab<&\"\\\n é你😀\u2028")))
	rapid.Check(t, func(r *rapid.T) {
		m := session.Message{
			Kind: session.KindMessage, Dialect: native.Name, InContext: rapid.Bool().Draw(r, "in context"),
			Display: rapid.Bool().Draw(r, "display"),
			Role:    session.Assistant, Origin: session.Model, Author: text.Draw(r, "author"), Model: text.Draw(r, "model"),
			Finish:    rapid.SampledFrom([]session.Finish{"", session.FinishStop, session.FinishAborted}).Draw(r, "finish"),
			CreatedAt: session.At(time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(r, "at"))),
		}
		for range rapid.IntRange(0, 4).Draw(r, "parts") {
			p := session.Part{Kind: rapid.SampledFrom([]session.PartKind{
				session.PartText, session.PartReasoning,
				session.PartToolCall, session.PartToolResult, session.PartRefusal,
			}).Draw(r, "kind"), Text: text.Draw(r, "text")}
			switch p.Kind {
			case session.PartToolCall:
				p.ToolName, p.Arguments = "f"+text.Draw(r, "tool"), text.Draw(r, "arguments")
			case session.PartToolResult:
				p.CallID = "c" + text.Draw(r, "id")
			}
			m.Parts = append(m.Parts, p)
		}
		if diff := cmp.Diff(m, again(t, m)); diff != "" {
			r.Fatal(diff)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"role":"user","content":"hi \ud800"}`)
	f.Add(`{"role":"tool","content":"7","call_id":"a","is_error":true}`)
	f.Add(`{"role":"assistant","parts":[{"kind":"tool_call","tool_name":"f","arguments":"{}"},{"kind":"image","data":"QUJD","media_type":"a/b","extra":{"raw":{}}}]}`)
	f.Add(`{"kind":"marker","created_at":"2026-02-11T10:00:15Z","metadata":{"a":[1.0]}}`)
	f.Fuzz(func(t *testing.T, message string) {
		first, err := decode(t, message)
		if err != nil {
			if session.CodeOf(err) == session.Internal {
				t.Fatalf("an input's fault is not ours: %v", err)
			}
			return
		}
		second := again(t, first)
		second.CreatedAt = first.CreatedAt // one that was not given is the store's
		testkit.Equal(t, first, second)
	})
}
