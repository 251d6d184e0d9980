package contextmgr_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/samples"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

type hygieneCase struct {
	ID, Area string
	Given    struct {
		Provider, API, Model string
		PreviousModel        string `json:"previous_model"`
		SkipMerge            bool   `json:"skip_merge"`
	}
	When struct {
		Op       string
		Messages []said
		Values   []*string
		Blocks   []struct{ Type, Signature string }
		Images   []struct {
			Width, Height int
			Bytes         int64
			Readable      bool
		}
	}
	Expect jsontext.Value
}

// said is a message in the cases' form.
type said struct {
	Role      string      `json:"role"`
	Text      string      `json:"text,omitempty"`
	Blocks    []string    `json:"blocks,omitempty"`
	Calls     []calledFor `json:"calls,omitempty"`
	Stop      string      `json:"stop,omitempty"`
	CallID    string      `json:"call_id,omitempty"`
	Name      string      `json:"name,omitempty"`
	Synthetic bool        `json:"synthetic,omitempty"`
	IsError   bool        `json:"is_error,omitempty"`
}

type calledFor struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// form returns the dialect of a case's provider.
func (c *hygieneCase) form() string {
	for _, api := range []struct{ name, form string }{
		{"anthropic-messages", dialect.Anthropic},
		{"google-generative-ai", dialect.Gemini},
		{"openai-responses", dialect.OpenAIResponses},
		{"openai-completions", dialect.OpenAIChat},
		{"anthropic", dialect.Anthropic},
		{"google", dialect.Gemini},
	} {
		if c.Given.API == api.name || c.Given.API == "" && c.Given.Provider == api.name {
			return api.form
		}
	}
	return dialect.OpenAIChat
}

// assemble makes a context for the case's provider.
func (c *hygieneCase) assemble(msgs ...session.Message) contextmgr.Draft {
	for i := range msgs {
		msgs[i].RowID, msgs[i].ID = int64(i+1), session.MessageRef{Session: "20260101_001", Seq: int64(i + 1)}
		msgs[i].Kind, msgs[i].InContext = session.KindMessage, true
	}
	return contextmgr.Assemble(contextmgr.Material{
		Messages: msgs, CloseCalls: true, Weigh: weightless{},
		Dialects: dialect.Providers{}, Dialect: c.form(), Provider: c.Given.Provider, Model: c.Given.Model,
	})
}

// sent encodes a context for the provider and decodes it again.
func (c *hygieneCase) sent(t *testing.T, d contextmgr.Draft) []session.Message {
	t.Helper()
	sent := testkit.Must(dialect.Send(c.form(), dialect.Request{Messages: d.Messages(), Model: c.Given.Model}))(t)
	if err := dialecttest.Validate(c.form(), sent.Request); err != nil {
		t.Fatalf("%v\n%s", err, sent.Request)
	}
	decoded := testkit.Must(dialect.Decode(c.form(), dialecttest.Entries(t, c.form(), sent.Request)))(t)
	return decoded.Messages
}

// entries counts a request's entries of the user's role, and the others.
func (c *hygieneCase) entries(t *testing.T, d contextmgr.Draft) (users, replies int) {
	t.Helper()
	sent := testkit.Must(dialect.Send(c.form(), dialect.Request{Messages: d.Messages(), Model: c.Given.Model}))(t)
	for _, e := range dialecttest.Entries(t, c.form(), sent.Request) {
		if bytes.Contains(e, []byte(`"role":"user"`)) {
			users++
		} else {
			replies++
		}
	}
	return users, replies
}

type weightless struct{}

func (weightless) Message(*session.Message, bool) int64 { return 0 }
func (weightless) Text(string) int64                    { return 0 }

// TestHygieneConformance makes each case's request: Assemble with the provider's policy, then the
// dialect's Send.
func TestHygieneConformance(t *testing.T) {
	for _, c := range hygieneCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			switch c.When.Op {
			case "policy":
				c.policy(t)
			case "transform":
				c.transform(t)
			case "signatures":
				c.signatures(t)
			case "reasoning":
				c.reasoning(t)
			case "images":
				c.images(t)
			default:
				t.Fatalf("unknown op %q", c.When.Op)
			}
		})
	}
}

func hygieneCases(t *testing.T) []hygieneCase {
	t.Helper()
	raw := testkit.Must(os.ReadFile("testdata/hygiene.json"))(t)
	var all []hygieneCase
	testkit.Check(t, json.Unmarshal(raw, &all))
	if len(all) != 18 {
		t.Fatalf("%d cases", len(all))
	}
	return all
}

// policy compares the policy, and the requests that providers get, with the case.
func (c *hygieneCase) policy(t *testing.T) {
	t.Helper()
	var want map[string]any
	testkit.Check(t, json.Unmarshal(c.Expect, &want))
	got := map[string]any{}
	testkit.Check(t, json.Unmarshal(session.JSONOf(dialect.RulesOf(c.form(), c.Given.Provider, c.Given.Model)), &got))
	user, reply := func(s string) session.Message {
		return of(session.User, session.TextPart(s))
	}, func(s string) session.Message { return of(session.Assistant, session.TextPart(s)) }
	call := of(session.Assistant, session.Part{
		Kind: session.PartToolCall, CallID: "abcdefghi", ToolName: "f",
		Arguments: "{}",
	})
	orphan := of(session.Tool, session.Part{Kind: session.PartToolResult, CallID: "nobodys00", ToolName: "f"})
	closed := c.sent(t, c.assemble(user("a"), orphan, call, user("b")))
	got["pairing"] = countRole(closed, session.Tool) == 1
	got["synthesize_missing"] = slices.ContainsFunc(closed, func(m session.Message) bool { return m.Role == session.Tool })
	users, replies := c.entries(t, c.assemble(user("a"), user("b"), reply("1"), reply("2"), user("c")))
	got["merge_users"], got["merge_assistants"] = users == 2, replies == 1
	got["image_limits"] = len(c.assemble(of(session.User, session.Part{
		Kind: session.PartImage,
		Blob: &session.Blob{MediaType: "image/png", Data: []byte("x")},
	})).Losses) == 1
	if c.form() == dialect.Anthropic && got["merge_assistants"] == true {
		got["merge_assistants"] = false // its API joins them; Send does so first, to put thinking in its place
	}
	testkit.Equal(t, want, got)
}

func of(role session.Role, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, InContext: true, Parts: parts}
}

func countRole(msgs []session.Message, role session.Role) int {
	n := 0
	for i := range msgs {
		if msgs[i].Role == role {
			n++
		}
	}
	return n
}

func (c *hygieneCase) transform(t *testing.T) {
	t.Helper()
	var want struct {
		Messages        []said
		StoredUnchanged bool `json:"stored_unchanged"`
	}
	testkit.Check(t, json.Unmarshal(c.Expect, &want))
	var stored []session.Message
	for _, s := range c.When.Messages {
		stored = append(stored, s.message())
	}
	before := session.JSONOf(stored)
	draft := c.assemble(slices.Clone(stored)...)
	result := draft.Messages()
	if !c.Given.SkipMerge {
		result = c.sent(t, draft)
	}
	var got []said
	for i := range result {
		got = append(got, saidBy(&result[i])...)
	}
	testkit.Equal(t, want.Messages, got)
	if want.StoredUnchanged && !bytes.Equal(before, session.JSONOf(stored)) {
		t.Error("the stored message was changed")
	}
}

func (s *said) message() session.Message {
	m := session.Message{Role: session.Role(s.Role), Finish: session.Finish(s.Stop)}
	if s.Role == "tool_result" {
		return of(session.Tool, session.Part{Kind: session.PartToolResult, CallID: s.CallID, ToolName: s.Name, Text: s.Text})
	}
	if s.Text != "" {
		m.Parts = append(m.Parts, session.TextPart(s.Text))
	}
	for _, b := range s.Blocks {
		m.Parts = append(m.Parts, session.TextPart(b))
	}
	for _, call := range s.Calls {
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartToolCall, CallID: call.ID, ToolName: call.Name,
			Arguments: "{}",
		})
	}
	return m
}

// saidBy describes a message in the cases' form. Results have no tool's name in most dialects: all
// cases call the same tool.
func saidBy(m *session.Message) []said {
	var results []said
	for _, p := range m.Results() {
		r := said{Role: "tool_result", CallID: p.CallID, Name: "read", Text: p.Content()}
		if strings.HasPrefix(r.Text, "No result") {
			r.Text, r.Synthetic, r.IsError = "", true, p.Failed()
		}
		results = append(results, r)
	}
	if m.Role == session.Tool {
		return results
	}
	s := said{Role: string(m.Role)}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText:
			s.Blocks = append(s.Blocks, p.Content())
		case session.PartToolCall:
			s.Calls = append(s.Calls, calledFor{p.CallID, p.ToolName})
		}
	}
	if len(s.Blocks) == 1 {
		if s.Text, s.Blocks = s.Blocks[0], nil; strings.HasPrefix(s.Text, "(The beginning") {
			s.Text, s.Synthetic = "", true
		}
	}
	return []said{s}
}

// signatures sends each signature under both names of the field and returns those left.
func (c *hygieneCase) signatures(t *testing.T) {
	t.Helper()
	var want struct{ Kept []string }
	testkit.Check(t, json.Unmarshal(c.Expect, &want))
	for _, name := range []string{"thoughtSignature", "thought_signature"} {
		var kept []string
		for _, v := range c.When.Values {
			extra := session.JSONOf(map[string]any{name: v, "more": 1})
			draft := c.assemble(of(session.User, session.TextPart("a")),
				of(session.Assistant, session.Part{Kind: session.PartReasoning, Text: "hm", Extra: extra}))
			part := draft.Messages()[1].Parts[0]
			var left map[string]any
			testkit.Check(t, json.Unmarshal(part.Extra, &left))
			if left["more"] == nil || part.Text != "hm" {
				t.Errorf("more than the signature went: %s", part.Extra)
			}
			if s, ok := left[name].(string); ok {
				kept = append(kept, s)
			}
		}
		if diff := cmp.Diff(want.Kept, kept); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}

// reasoning is a reply of items: its model before the change made them.
func (c *hygieneCase) reasoning(t *testing.T) {
	t.Helper()
	var want struct{ Kept []int }
	testkit.Check(t, json.Unmarshal(c.Expect, &want))
	items := []jsontext.Value{[]byte(`{"type":"message","role":"user","content":"a"}`)}
	for i, b := range c.When.Blocks {
		if b.Type == "thinking" {
			items = append(items, fmt.Appendf(nil, `{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"block%d"}`, b.Signature, i))
		} else {
			items = append(items, fmt.Appendf(nil, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"block%d","annotations":[]}]}`, i))
		}
	}
	decoded := testkit.Must(dialect.Decode(c.form(), items))(t)
	for i := range decoded.Messages {
		decoded.Messages[i].Model, decoded.Messages[i].Provider = c.Given.PreviousModel, c.Given.Provider
	}
	draft := c.assemble(decoded.Messages...)
	sent := testkit.Must(dialect.Send(c.form(), dialect.Request{Messages: draft.Messages(), Model: c.Given.Model}))(t)
	var kept []int
	for i := range c.When.Blocks {
		if bytes.Contains(sent.Request, fmt.Appendf(nil, "block%d", i)) {
			kept = append(kept, i)
		}
	}
	testkit.Equal(t, want.Kept, kept)
}

func (c *hygieneCase) images(t *testing.T) {
	t.Helper()
	var want struct{ Actions []wire.ImageAction }
	testkit.Check(t, json.Unmarshal(c.Expect, &want))
	var got []wire.ImageAction
	for _, i := range c.When.Images {
		got = append(got, wire.ImageInfo{Width: i.Width, Height: i.Height, Bytes: i.Bytes, Readable: i.Readable}.Action())
	}
	testkit.Equal(t, want.Actions, got)
}

func TestHygieneCasesAreUnchanged(t *testing.T) {
	raw := testkit.Must(os.ReadFile(filepath.Join(samples.Conformance(t), "sessions.json")))(t)
	var all, want, got []map[string]any
	testkit.Check(t, json.Unmarshal(raw, &all))
	for _, c := range all {
		if c["area"] == "hygiene" {
			want = append(want, c)
		}
	}
	raw = testkit.Must(os.ReadFile("testdata/hygiene.json"))(t)
	testkit.Check(t, json.Unmarshal(raw, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("testdata/hygiene.json is not the original: want -, got +\n%s", diff)
	}
}

// Some servers give calls of one reply the same id. Every dialect keeps them apart, each with its
// own result.
func TestCallsWithTheSameIDKeepTheirResults(t *testing.T) {
	result := func(text string) session.Message {
		return of(session.Tool, session.Part{Kind: session.PartToolResult, CallID: "x", ToolName: "f", Text: text},
			session.Part{Kind: session.PartText, CallID: "x", Text: "more of " + text})
	}
	call := session.Part{Kind: session.PartToolCall, CallID: "x", ToolName: "f", Arguments: "{}"}
	for _, form := range dialecttest.Forms() {
		c := hygieneCase{}
		c.Given.API = map[string]string{
			dialect.Anthropic: "anthropic-messages", dialect.Gemini: "google-generative-ai",
			dialect.OpenAIResponses: "openai-responses", dialect.OpenAIChat: "openai-completions",
		}[form]
		draft := c.assemble(of(session.User, session.TextPart("a")), of(session.Assistant, call, call), result("one"),
			result("two"), of(session.Assistant, call), result("three"))
		var calls, answers []string
		var texts string
		for _, m := range c.sent(t, draft) {
			for _, p := range m.Calls() {
				calls = append(calls, p.CallID)
			}
			for _, p := range m.Results() {
				answers = append(answers, p.CallID)
			}
			texts += m.Text()
		}
		if !slices.Equal(calls, answers) || len(calls) != 3 || len(slices.Compact(slices.Sorted(slices.Values(calls)))) != 3 {
			t.Errorf("%s: calls %v, results of %v", form, calls, answers)
		}
		if one, two, three := strings.Index(texts, "one"), strings.Index(texts, "two"),
			strings.Index(texts, "three"); one < 0 || two < one || three < two {
			t.Errorf("%s: %s", form, texts)
		}
	}
}
