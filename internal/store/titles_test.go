package store

import (
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestTitleIsTheFirstPromptThatSaysSomething(t *testing.T) {
	s := openTest(t)
	for _, c := range []struct {
		said []string
		want string
	}{
		{[]string{"/init", "<system-reminder>x</system-reminder>", "Fix the parser", "And the lexer"}, "Fix the parser"},
		{[]string{"/review  the\tparser\nplease"}, "review the parser"},
		{[]string{"/init", "/clear"}, ""},
		{[]string{"hi", "1", "Fix the parser"}, "Fix the parser"},
		{[]string{"<environment_context>x</environment_context>"}, ""},
	} {
		sess := mustCreate(t, s, NewSession{})
		for _, text := range c.said {
			mustAppend(t, s, sess.ID, says(session.User, text))
		}
		if got := testkit.Must(s.Session(t.Context(), sess.ID))(t); got.Title != c.want {
			t.Errorf("%q: %q, want %q", c.said, got.Title, c.want)
		}
	}
}

func TestMigrationImprovesPoorTitlesAlone(t *testing.T) {
	onFile(t)
	s := openTest(t)
	titles := map[session.ID]string{}
	var ids []session.ID
	for _, c := range []struct{ title, source, want string }{
		{"/init", "first_message", "Fix the parser"},
		{"Implement the following plan:", "first_message", "Fix the parser"},
		{"<environment_context>", "first_message", "Fix the parser"},
		{"Something else that was said first", "first_message", "Something else that was said first"},
		{"1", "first_message", "Fix the parser"},
		{"Hi!", "first_message", "Fix the parser"},
		{"Short", "first_message", "Short"},
		{"hi", "given", "hi"},
		{"/init", "given", "/init"},
		{"/init of pi", "source", "/init of pi"},
	} {
		sess := mustCreate(t, s, NewSession{})
		mustAppend(t, s, sess.ID, says(session.User, "/init"), says(session.Assistant, "done"),
			says(session.User, "Fix the parser"))
		testkit.Must(raw(t, s).Exec(`UPDATE sessions SET title = ?, title_source = ? WHERE id = ?`, c.title, c.source, sess.ID))(t)
		titles[sess.ID] = c.want
		ids = append(ids, sess.ID)
	}
	unanswered := mustCreate(t, s, NewSession{})
	mustAppend(t, s, unanswered.ID, says(session.User, "/clear"))
	ids, titles[unanswered.ID] = append(ids, unanswered.ID), ""
	path := s.File()
	testkit.Check(t, s.Close())
	rewind(t, path, 108)
	s = testkit.Must(Open(t.Context(), path, Options{}))(t)
	for _, id := range ids {
		if got := testkit.Must(s.Session(t.Context(), id))(t); got.Title != titles[id] {
			t.Errorf("%q from %s, want %q", got.Title, got.TitleSource, titles[id])
		}
	}
	mustBeHealthy(t, s)
	testkit.Check(t, s.Close())
}
