package claudecode_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

// send stores the transcripts of a folder of projects as the Agent SDK sends them, in batches of 50 lines.
func (h *house) send(projects string) {
	h.Helper()
	testkit.Check(h, filepath.WalkDir(projects, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		rel := strings.TrimSuffix(testkit.Must(filepath.Rel(projects, path))(h), ".jsonl")
		parts := strings.SplitN(filepath.ToSlash(rel), "/", 3)
		key := store.TranscriptKey{Source: session.SourceClaudeCode, Project: parts[0], Session: parts[1]}
		if len(parts) == 3 {
			key.Subpath = parts[2]
		}
		var lines []session.JSON
		for line := range bytes.Lines(testkit.Must(os.ReadFile(path))(h)) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				lines = append(lines, session.JSON(line))
			}
		}
		if meta, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".meta.json"); err == nil {
			lines = append(lines, session.JSON(bytes.Replace(meta, []byte("{"), []byte(`{"type":"agent_metadata",`), 1)))
		}
		for batch := range slices.Chunk(lines, 50) {
			_, _, err := h.Store.AppendLines(h.Context(), store.LinesAppend{TranscriptKey: key, Lines: batch})
			testkit.Check(h, err)
		}
		return nil
	}))
}

func (h *house) importStored() history.Accounting {
	h.Helper()
	files := h.Source
	defer func() { h.Source = files }()
	h.Source = &history.Stored{Program: quiet(), Store: h.Store}
	return h.Import()
}

// said is what the sessions hold: texts, parents, links and usage, without the program's own rows.
func (h *house) said() (all []string) {
	h.Helper()
	for _, s := range h.Sessions() {
		s := testkit.Must(h.Store.Session(h.Context(), s.ID))(h)
		all = append(all, strings.Join([]string{
			"session", s.SourceID, s.Title, s.Kind, s.ParentKind, s.Project, string(session.JSONOf(s.Metadata)),
		}, " "))
		for _, m := range h.Entries(s.ID) {
			if m.Kind == session.KindMessage {
				all = append(all, string(m.Role)+" "+m.ExternalID+" "+m.Text())
			}
		}
		for _, c := range h.Calls(s.ID) {
			tokens := []any{c.Model, c.InputTokens, c.OutputTokens, c.CacheReadTokens}
			all = append(all, "call "+c.ExternalID+" "+string(session.JSONOf(tokens)))
		}
	}
	return all
}

// What the SDK sends becomes the sessions that the program's own files become, with sub-agents and usage; and where
// both are on one host, one session, whose usage counts once.
func TestStoredLinesAreReadAsFiles(t *testing.T) {
	projects := filepath.Join(samples.Case(t, "49-claude-code-2.1.332-real"), "projects")
	files, lines := newHouse(t), newHouse(t)
	files.Import(projects)
	lines.send(projects)
	if done := lines.importStored(); len(done.Errors) > 0 {
		t.Errorf("told %+v", done.Errors)
	}
	want := files.said()
	if len(want) < 4 {
		t.Fatalf("the files hold %q", want)
	}
	testkit.Equal(t, want, lines.said())
	lines.Import(projects) // the program wrote them here, too
	testkit.Equal(t, want, lines.said())
	files.send(projects)
	if done := files.importStored(); done.Sessions.New > 0 {
		t.Errorf("new are %+v", done.Sessions)
	}
	testkit.Equal(t, want, files.said())
	if again := lines.importStored(); again.Sessions.Unchanged == 0 || again.Sessions.Updated+again.Sessions.New > 0 {
		t.Errorf("read again: %+v", again.Sessions)
	}
	files.Examine()
	lines.Examine()
}

// Lines of another owner become sessions of that owner, and reach none of the user's: a session with the id of the
// user's is refused.
func TestStoredLinesBelongToTheirOwner(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write(id+".jsonl", user("1", "", "the user's own")))
	other := &house{&historytest.House{T: h.T, Store: h.Store, Importer: h.Importer, Source: h.Source}}
	testkit.Must(h.Store.AddToken(t.Context(), store.Token{Name: "ana", Owner: "ana"}))(t)
	ana := h.Store.AsOwner(t.Context(), "ana")
	for _, sent := range []struct{ session, text string }{
		{id, "an intruder"}, {"22222222-2222-4222-8222-222222222222", "her own"},
	} {
		_, _, err := h.Store.AppendLines(ana, store.LinesAppend{
			TranscriptKey: store.TranscriptKey{Source: session.SourceClaudeCode, Project: "p", Session: sent.session},
			Lines:         []session.JSON{session.JSON(strings.ReplaceAll(user("9", "", sent.text), id, sent.session))},
		})
		testkit.Check(t, err)
	}
	done := other.importStored()
	if len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, id) { // PostgreSQL hides whose it is
		t.Errorf("told %+v", done.Errors)
	}
	all := h.Sessions()
	if len(all) != 2 || all[0].Owner != "" || all[1].Owner != "ana" {
		t.Fatalf("sessions %+v", all)
	}
	for i, want := range []string{"the user's own", "her own"} {
		if got := h.Entries(all[i].ID); len(got) != 1 || got[0].Text() != want {
			t.Errorf("%s holds %+v", all[i].ID, got)
		}
	}
}

// A purge deletes the lines, and those that still come are refused.
func TestPurgeDeletesStoredLines(t *testing.T) {
	h := newHouse(t)
	key := store.TranscriptKey{Source: session.SourceClaudeCode, Project: "p", Session: id}
	sent := store.LinesAppend{TranscriptKey: key, Lines: []session.JSON{session.JSON(user("1", "", "a secret quagga"))}}
	_, _, err := h.Store.AppendLines(t.Context(), sent)
	testkit.Check(t, err)
	h.importStored()
	work, _, err := h.Store.BeginPurge(t.Context(), store.PurgeRequest{Session: h.Session(id).ID})
	testkit.Check(t, err)
	for {
		rows := testkit.Must(work.Doomed(t.Context()))(t)
		if len(rows) == 0 {
			break
		}
		testkit.Check(t, work.Delete(t.Context(), rows))
	}
	testkit.Must(work.Finish(t.Context()))(t)
	if _, err := h.Store.Transcript(t.Context(), key); session.CodeOf(err) != session.NotFound {
		t.Errorf("the transcript: %v", err)
	}
	var left int
	testkit.Check(t, h.Store.Reader().Get(&left, `SELECT (SELECT COUNT(*) FROM source_lines) + (SELECT COUNT(*) FROM source_sessions)`))
	if _, _, err := h.Store.AppendLines(t.Context(), sent); session.CodeOf(err) != session.Conflict || left > 0 {
		t.Errorf("%d rows are left, another line: %v", left, err)
	}
}
