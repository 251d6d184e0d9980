package dialect_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
)

// picture returns a message with a PNG so wide.
func picture(t *testing.T, width int) session.Message {
	t.Helper()
	var b bytes.Buffer
	testkit.Check(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))))
	return message(session.User, session.Part{
		Kind: session.PartImage,
		Blob: &session.Blob{MediaType: "image/png", Data: b.Bytes()},
	})
}

func message(role session.Role, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, InContext: true, Parts: parts}
}

func calls(ids ...string) session.Message {
	m := message(session.Assistant)
	for _, id := range ids {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: "f", Arguments: "{}"})
	}
	return m
}

func results(ids ...string) session.Message {
	m := message(session.Tool)
	for _, id := range ids {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolResult, CallID: id, ToolName: "f", Text: "ok"})
	}
	return m
}

// A context with what some provider rejects is fitted and sent: each provider accepts it, and the notes say what each
// did to it.
func TestFitChangesWhatAProviderRejects(t *testing.T) {
	user, reply := message(session.User, session.TextPart("a")), message(session.Assistant, session.TextPart("b"))
	signed := message(session.Assistant, session.TextPart("b"))
	signed.Parts[0].Extra = session.JSON(`{"textSignature":"msg_1"}`)
	unreadable := message(session.Assistant, session.TextPart("b"))
	unreadable.Parts[0].Extra = session.JSON(`{"rest":{"thought_signature":"no base64!"}}`)
	var many []session.Message
	for range 101 {
		many = append(many, picture(t, 1))
	}
	const (
		lead    = "the context begins with a reply"
		renamed = "are sent under other ids"
		blank   = ".2: only white space"
		foreign = "2: 1 signatures of another provider left out"
	)
	everywhere := func(note string) map[string]string {
		return map[string]string{
			dialect.OpenAIChat: note, dialect.OpenAIResponses: note, dialect.Anthropic: note,
			dialect.Gemini: note,
		}
	}
	for _, c := range []struct {
		name, model string
		modalities  []string
		msgs        []session.Message
		notes       map[string]string // by form; none: nothing is said
	}{
		{"roles in order", "", nil, []session.Message{user, reply, user}, nil},
		{"a reply first", "", nil, []session.Message{reply, user}, map[string]string{dialect.Gemini: lead}},
		{"neighbours of one role", "", nil, []session.Message{user, user, reply, reply, user}, nil},
		{"system text in the middle", "", nil, []session.Message{
			user, reply, message(session.System, session.TextPart("s")),
			user,
		}, nil},
		{"a result that answers no call", "", nil, []session.Message{user, results("x"), reply, user}, nil},
		{"a result twice", "", nil, []session.Message{user, calls("x1"), results("x1"), results("x1"), user}, nil},
		{
			"calls of one id", "", nil,
			[]session.Message{user, calls("x", "x"), results("x", "x"), calls("x"), results("x")},
			everywhere("2 calls and their results " + renamed),
		},
		{
			"ids of another alphabet", "", nil,
			[]session.Message{user, calls("call|ü 1"), results("call|ü 1")},
			map[string]string{dialect.Anthropic: renamed, dialect.Gemini: renamed},
		},
		{
			"ids for Mistral", "mistral-large", nil,
			[]session.Message{user, calls("x"), results("x")},
			map[string]string{dialect.OpenAIChat: renamed, dialect.OpenAIResponses: renamed},
		},
		{
			"a blank reply", "", nil,
			[]session.Message{user, message(session.Assistant, session.TextPart(" \n")), user},
			map[string]string{dialect.Anthropic: blank, dialect.Gemini: blank},
		},
		{
			"a blank reply to Mistral", "mistral-large", nil,
			[]session.Message{user, message(session.Assistant, session.TextPart("")), user},
			everywhere(blank),
		},
		{
			"a signature of OpenAI's", "", nil,
			[]session.Message{user, signed, user},
			map[string]string{dialect.Anthropic: foreign, dialect.Gemini: foreign},
		},
		{
			"a signature that is no base64", "", nil,
			[]session.Message{user, unreadable, user},
			map[string]string{dialect.Gemini: foreign},
		},
		{
			"a kind that the model lacks", "",
			[]string{"text"},
			[]session.Message{picture(t, 1)},
			everywhere("1: this model accepts no image"),
		},
		{
			"an image that is too wide", "", nil,
			[]session.Message{picture(t, 2001)},
			everywhere("1: a note replaces an image"),
		},
		{"images too many", "", nil, many, nil},
	} {
		for _, form := range dialecttest.Forms() {
			t.Run(c.name+"/"+form, func(t *testing.T) {
				want := c.notes[form]
				in := session.FitRequest{Dialect: form, Model: c.model, Modalities: c.modalities}
				repaired := contextmgr.Repair(dialecttest.Numbered(slices.Clone(c.msgs)), nil, true)
				for i := range repaired.Items {
					in.Messages = append(in.Messages, repaired.Items[i].Message)
				}
				before := string(session.JSONOf(in.Messages))
				notes, msgs := fit(in)
				if (want == "") != (notes == "") || !strings.Contains(notes, want) {
					t.Errorf("notes %q, want %q", notes, want)
				}
				if string(session.JSONOf(in.Messages)) != before {
					t.Error("Fit changed parts that it shares")
				}
				sent := testkit.Must(dialect.Send(form, dialect.Request{Messages: msgs, Model: c.model}))(t)
				if err := dialecttest.ValidateFor(form, c.model, sent.Request); err != nil {
					t.Errorf("the provider would reject it: %v\n%.2000s", err, sent.Request)
				}
				in.Messages = msgs
				if notes, again := fit(in); notes != "" || string(session.JSONOf(again)) != string(session.JSONOf(msgs)) {
					t.Errorf("a fitted context is fitted again: %q", notes)
				}
			})
		}
	}
}

// fit returns the notes of a fitted context, each with the number of its message, and its messages.
func fit(in session.FitRequest) (string, []session.Message) {
	var notes []string
	in.Messages = slices.Clone(in.Messages) // Fit changes them, but not their parts
	fitted := dialect.Providers{}.Fit(in)
	for _, n := range fitted.Notes {
		text := n.Text
		if n.From >= 0 {
			text = in.Messages[n.From].ID.String() + ": " + text
		}
		notes = append(notes, text)
	}
	var msgs []session.Message
	for i := range fitted.Messages {
		msgs = append(msgs, *fitted.Messages[i].Message)
	}
	return strings.Join(notes, "\n"), msgs
}

// A dialect is a package and a line in dialect.go. The judge of requests and the API's description list those that are
// sent, and ask for theirs.
func TestEachDialectIsListed(t *testing.T) {
	table := string(testkit.Must(os.ReadFile("dialect.go"))(t))
	folders := testkit.Must(os.ReadDir("."))(t)
	found := 0
	for _, f := range folders {
		files := testkit.Must(filepath.Glob(filepath.Join(f.Name(), "*.go")))(t)
		isForm := slices.ContainsFunc(files, func(name string) bool {
			return strings.Contains(string(testkit.Must(os.ReadFile(name))(t)), "\nfunc Form() wire.Form {")
		})
		if !isForm {
			continue
		}
		found++
		if !strings.Contains(table, "\t\t"+f.Name()+".Form(),\n") {
			t.Errorf("internal/dialect/%s is no line of forms in dialect.go", f.Name())
		}
	}
	if found < 5 {
		t.Errorf("only %d packages of dialects found", found)
	}
	sendable := slices.DeleteFunc(dialect.Names(), func(name string) bool { return !dialect.Sendable(name) })
	testkit.Equal(t, sendable, dialecttest.Forms())
	for _, name := range sendable {
		if table := string(testkit.Must(os.ReadFile("../../docs/api.md"))(t)); !strings.Contains(table, "\n| `"+name+"` | ") {
			t.Errorf("the table of docs/api.md has no line for %s", name)
		}
	}
	var description any
	testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile("../../docs/openapi.json"))(t), &description))
	lists, titles := 0, map[string]bool{}
	each(description, func(text string) { titles[text] = true }, func(list []any) {
		if !slices.Contains(list, any(dialect.OpenAIResponses)) {
			return
		}
		lists++
		for _, name := range sendable {
			if !slices.Contains(list, any(name)) {
				t.Errorf("an enum of the API's description does not have %s: %s", name, list)
			}
		}
	})
	for _, name := range sendable {
		if !titles[name] { // requestShape in web/api/openapi.go
			t.Errorf("the API's description has no request of %s", name)
		}
	}
	if lists < 5 {
		t.Errorf("only %d lists of dialects found in the API's description", lists)
	}
}

// each visits the strings and the lists of a JSON value.
func each(value any, visit func(string), visitList func([]any)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		visitList(v)
		for _, e := range v {
			each(e, visit, visitList)
		}
	case map[string]any:
		for _, e := range v {
			each(e, visit, visitList)
		}
	}
}
