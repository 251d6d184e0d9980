package export_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/export"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

func pageOf(t *testing.T, s *store.Store, id session.ID, opt export.Options) string {
	t.Helper()
	var out bytes.Buffer
	testkit.Must(export.Write(t.Context(), &out, s, export.HTML, []session.ID{id}, opt))(t)
	return out.String()
}

func said(role session.Role, text string) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: role, Origin: session.Person, Display: true, InContext: true,
		Parts: []session.Part{session.TextPart(text)},
	}
	if role == session.Assistant {
		m.Origin = session.Model
	}
	return m
}

func TestPageHasPromptsSubAgentsAndAWordOfSecrets(t *testing.T) {
	const secret = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
	s := open(t)
	parent := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "Boats"}))(t).ID
	testkit.Must(s.Append(t.Context(), store.Append{Session: parent, Messages: []session.Message{
		said(session.User, "how <deep>?"), said(session.Assistant, "I ask."),
	}}))(t)
	start := session.MessageRef{Session: parent, Seq: 2}
	child := testkit.Must(s.CreateSession(t.Context(), store.NewSession{
		Title: "A helper with " + secret, Kind: "subagent", ParentID: parent, Started: &start,
	}))(t).ID
	testkit.Must(s.Append(t.Context(), store.Append{Session: child, Messages: []session.Message{
		said(session.User, "measure with "+secret),
	}}))(t)
	nested := testkit.Must(s.CreateSession(t.Context(), store.NewSession{
		Title: "Nested", Kind: "subagent", ParentID: child,
	}))(t).ID
	testkit.Must(s.Append(t.Context(), store.Append{Session: nested, Messages: []session.Message{
		said(session.Assistant, "Seven metres, see 20010101_001."),
	}}))(t)

	plain := pageOf(t, s, parent, export.Options{})
	for _, want := range []string{
		`<li><a href="#m1">how &lt;deep&gt;?</a></li>`, `started <a href="#` + string(child) + `">`,
		`<details class="agent" id="` + string(child) + `">`, `<details class="agent" id="` + string(nested) + `">`,
		`id="` + string(child) + `.1"`, "Seven metres, see 20010101_001.", "what looks like secrets (keys, tokens, passwords): 1 value.", "--redact",
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(plain, "<details class=\"agent\"") != 2 || strings.Contains(plain, `<li><a href="#`+string(child)) {
		t.Error("a sub-agent is there twice, or its prompt is in the rail")
	}
	var masker redact.Masker
	masked := pageOf(t, s, parent, export.Options{Mask: &masker})
	if strings.Contains(masked, secret) || !strings.Contains(masked, "Masked on this page") {
		t.Errorf("the masked page has the secret, or no word of it")
	}
}

// What a page adds to the texts of 1,000 messages is at most a megabyte.
func TestPageIsSmall(t *testing.T) {
	s := open(t)
	id := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "Boats"}))(t).ID
	var msgs []session.Message
	own := 0
	for i := range 500 {
		question := fmt.Sprintf("Question %d: how deep is the harbour?", i)
		answer := fmt.Sprintf("Answer %d: seven metres.", i)
		own += len(question) + len(answer)
		msgs = append(msgs, said(session.User, question), said(session.Assistant, answer))
	}
	testkit.Must(s.Append(t.Context(), store.Append{Session: id, Messages: msgs}))(t)
	page := pageOf(t, s, id, export.Options{})
	t.Logf("%d bytes beside %d of text", len(page)-own, own)
	if len(page)-own > 1<<20 {
		t.Errorf("the page has %d bytes beside its texts", len(page)-own)
	}
}
