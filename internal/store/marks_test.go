package store

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// tagsAt returns the tags of a session's message, or of the session itself.
func tagsAt(t *testing.T, s *Store, id session.ID, ref *session.MessageRef) (tags []string) {
	t.Helper()
	for _, m := range testkit.Must(s.Marks(t.Context(), id))(t) {
		if m.Kind == MarkTag && (m.Message == nil) == (ref == nil) && (ref == nil || *m.Message == *ref) {
			tags = append(tags, m.Text)
		}
	}
	return tags
}

func TestTagsKeepTheirOrderAndCase(t *testing.T) {
	s, ctx := openTest(t), t.Context()
	sess := mustCreate(t, s, NewSession{})
	of := Marking{Session: sess.ID}
	got := testkit.Must(s.ChangeTags(ctx, of, []string{"Release", " later ", "release"}, nil))(t)
	testkit.Equal(t, session.Tags{"Release", "later"}, got.Tags)
	before := got.Revision
	if got = testkit.Must(s.ChangeTags(ctx, of, []string{"RELEASE"}, nil))(t); got.Revision != before {
		t.Error("a tag that is there changed the session")
	}
	got = testkit.Must(s.ChangeTags(ctx, of, []string{"a", "b"}, []string{"RELEASE"}))(t)
	testkit.Equal(t, session.Tags{"later", "a", "b"}, got.Tags)
	for _, bad := range []string{"", " ", "a\nb", string(make([]byte, 65)), "a\x1fb"} {
		if _, err := s.ChangeTags(ctx, of, []string{bad}, nil); session.CodeOf(err) != session.Invalid {
			t.Errorf("tag %q: %v", bad, err)
		}
	}
	listed, _, err := s.Sessions(ctx, Filter{Among: map[Column][]string{ColumnTag: {"later"}}}, Page{})
	testkit.Check(t, err)
	if len(listed) != 1 || !slices.Equal(listed[0].Tags, got.Tags) {
		t.Errorf("listed %+v", listed)
	}
	testkit.Equal(t, []Value{{"a", 1}, {"b", 1}, {"later", 1}}, testkit.Must(s.Values(ctx, ColumnTag))(t))
}

// A label is the first tag: it replaces the label alone, also if the same tag stands elsewhere.
func TestALabelIsTheFirstTag(t *testing.T) {
	s, ctx := openTest(t), t.Context()
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "one"))
	at := ref(sess.ID, 1)
	of := Marking{Session: sess.ID, Message: at}
	testkit.Must(s.ChangeTags(ctx, of, []string{"x", "y"}, nil))(t)
	testkit.Must(s.SetMark(ctx, sess.ID, *at, MarkLabel, "here", true))(t)
	testkit.Equal(t, []string{"here", "x", "y"}, tagsAt(t, s, sess.ID, at))
	testkit.Must(s.SetMark(ctx, sess.ID, *at, MarkLabel, "y", true))(t)
	testkit.Equal(t, []string{"y", "x"}, tagsAt(t, s, sess.ID, at))
	testkit.Must(s.SetMark(ctx, sess.ID, *at, MarkLabel, "", false))(t)
	testkit.Equal(t, []string{"x"}, tagsAt(t, s, sess.ID, at))
}

// Two people edit a note: the later edit is rejected and the first text stays, also if the note was removed and written
// anew meanwhile.
func TestANoteThatChangedRejectsAnOlderEdit(t *testing.T) {
	s, ctx := openTest(t), t.Context()
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "one"))
	for _, of := range []Marking{{Session: sess.ID}, {Session: sess.ID, Message: ref(sess.ID, 1)}} {
		none := new(int64)
		first := testkit.Must(s.SetNote(ctx, of, "mine", none))(t)
		if _, err := s.SetNote(ctx, of, "theirs", none); session.CodeOf(err) != session.PreconditionFailed {
			t.Errorf("a second note where there was none: %v", err)
		}
		testkit.Must(s.SetNote(ctx, of, "", &first.Revision))(t)
		testkit.Must(s.SetNote(ctx, of, "anew", none))(t)
		if _, err := s.SetNote(ctx, of, "late", &first.Revision); session.CodeOf(err) != session.PreconditionFailed {
			t.Errorf("an edit of a note that was removed: %v", err)
		}
		if got := testkit.Must(s.Note(ctx, of))(t); got.Text != "anew" {
			t.Errorf("the note is %+v", got)
		}
	}
}

// Labels of an older database become first tags.
func TestOlderLabelsBecomeTags(t *testing.T) {
	onFile(t)
	path := filepath.Join(t.TempDir(), "sessions.db")
	unpackSchema(t, filepath.Join("testdata", "schemas", "00157.db.gz"), path)
	db := testkit.Must(sql.Open("sqlite", engine.DSN(path, "rw")))(t)
	testkit.Must(db.Exec(`INSERT INTO marks VALUES ('20260105_001', 1, 'label', 'here', '2026-01-05 10:00:00.000'),
		('20260105_001', 1, 'pin', '', '2026-01-05 10:00:00.000')`))(t)
	testkit.Check(t, db.Close())
	s := testkit.Must(Open(t.Context(), path, Options{Measure: measure}))(t)
	defer s.Close() //nolint:errcheck // only read
	testkit.Equal(t, []string{"here"}, tagsAt(t, s, "20260105_001", ref("20260105_001", 1)))
	testkit.Equal(t, []int64{1}, testkit.Must(s.Pins(t.Context(), "20260105_001"))(t))
}

// labelsOf returns the labels of a session's messages, by row.
func labelsOf(t testing.TB, s *Store, id session.ID) map[int64]string {
	t.Helper()
	labels := map[int64]string{}
	for _, m := range testkit.Must(s.Marks(t.Context(), id))(t) {
		if m.Kind == MarkTag && m.Place == 0 {
			labels[m.Row] = m.Text
		}
	}
	return labels
}
