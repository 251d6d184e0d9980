package codex_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/codex"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

const threadsTable = `CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, created_at INTEGER NOT NULL DEFAULT 0, title TEXT NOT NULL,
	first_user_message TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0, archived_at INTEGER, git_sha TEXT, git_branch TEXT,
	cwd TEXT NOT NULL DEFAULT '', agent_nickname TEXT, tokens_used INTEGER NOT NULL DEFAULT 0);
	CREATE TABLE thread_spawn_edges (parent_thread_id TEXT NOT NULL, child_thread_id TEXT NOT NULL PRIMARY KEY, status TEXT NOT NULL);
	CREATE TABLE remote_control (token TEXT); INSERT INTO remote_control VALUES ('secret');`

// homeWith writes a Codex home with rollouts and gives it with a house that reads it.
func homeWith(t *testing.T, ids ...string) (*house, string) {
	t.Helper()
	h := newHouse(t)
	home := filepath.Join(t.TempDir(), "codex")
	for _, id := range ids {
		h.Rewrite(filepath.Join(home, "sessions/2026/03/01/rollout-2026-03-01T10-00-00-"+id+".jsonl"),
			strings.Replace(header, "one", id, 1), says("user", "begin "+id))
	}
	h.Source = codex.New(func(key string) string { return map[string]string{"CODEX_HOME": home}[key] }, historytest.Later)
	return h, home
}

func TestMirrorTellsWhatNoRolloutSays(t *testing.T) {
	h, home := homeWith(t, "a", "b", "c", "d", "e")
	mirror := h.Load(filepath.Join(home, "state_5.sqlite"), threadsTable,
		`INSERT INTO threads (id, rollout_path, title, first_user_message) VALUES ('a', '', 'begin a', ' begin a ')`,
		`INSERT INTO threads (id, rollout_path, title, first_user_message, archived, archived_at, git_sha, git_branch) VALUES ('b', '', 'Named by hand', 'begin b', 1, 1772445602, 'c0ffee', 'topic')`,
		`INSERT INTO threads (id, rollout_path, title) VALUES ('gone', '', 'x')`,
		`INSERT INTO thread_spawn_edges VALUES ('a', 'b', 'open'), ('b', 'c', 'closed'), ('a', 'gone', 'open'), ('e', 'd', 'open'), ('d', 'e', 'open')`)
	// an older generation is not looked at
	h.Load(filepath.Join(home, "state_4.sqlite"), `CREATE TABLE threads (id TEXT, broken TEXT)`)
	before := standing(t, home)
	done := h.Import()
	a, b, c := h.Session("a"), h.Session("b"), h.Session("c")
	if a.Title != "begin a" || a.TitleSource == "source" || a.ArchivedAt != nil || a.ParentID != "" {
		t.Errorf("a: %+v", a)
	}
	if b.Title != "Named by hand" || b.ArchivedAt == nil || b.ArchivedAt.Unix() != 1772445602 || b.GitBranch != "topic" ||
		b.ParentID != a.ID || b.ParentKind != session.ParentChild {
		t.Errorf("b: %+v", b)
	}
	if !strings.Contains(string(b.Metadata), `"state":{"git_sha":"c0ffee"}`) ||
		!strings.Contains(string(b.Metadata), `"cli_version":"0.106.0"`) {
		t.Errorf("b: %s", b.Metadata)
	}
	if c.ParentID != b.ID {
		t.Errorf("c: %+v", c)
	}
	if d, e := h.Session("d"), h.Session("e"); d.ParentID != e.ID || e.ParentID != "" {
		t.Errorf("a circle: %+v %+v", d, e)
	}
	skipped := done.Records.Skipped
	if skipped["state of a session that is not here"] != 1 || skipped["link of a session that is not here"] != 1 ||
		skipped["link in a circle"] != 1 || skipped[history.SkipKnown] != 1 {
		t.Errorf("%v", skipped)
	}
	if len(done.Errors) != 1 || done.Errors[0].Path != mirror {
		t.Errorf("%+v", done.Errors)
	}
	rows := h.Rows()
	if again := h.Import(); again.Records.Read != 0 || h.Rows() != rows || standing(t, home) != before {
		t.Errorf("again: %+v", again)
	}
	h.Change(mirror, `UPDATE threads SET title = 'Named again' WHERE id = 'b'`)
	if again := h.Import(); h.Session("b").Title != "Named again" || again.Records.Imported != 1 {
		t.Errorf("changed: %+v", again)
	}
}

// standing returns which files a home has and what its mirrors hold.
func standing(t *testing.T, home string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(files, "\n")
	for _, file := range files {
		if strings.HasSuffix(file, ".sqlite") {
			all += historytest.Read(t, file)
		}
	}
	return all
}

func TestMirrorOfEveryGeneration(t *testing.T) {
	for _, test := range []struct{ name, schema, title, problem string }{
		{name: "the first", schema: `CREATE TABLE threads (id TEXT, title TEXT); INSERT INTO threads VALUES ('a', 'begin a')`, title: "begin a"},
		{name: "names of their own", schema: `CREATE TABLE threads (id TEXT, title TEXT, name TEXT, name_state TEXT); INSERT INTO threads VALUES ('a', 'x', 'Mine', 'explicit')`, title: "Mine"},
		{name: "a name that was cleared", schema: `CREATE TABLE threads (id TEXT, title TEXT, name TEXT, name_state TEXT); INSERT INTO threads VALUES ('a', 'x', 'Mine', 'cleared')`, title: "begin a"},
		{name: "other types", schema: `CREATE TABLE threads (id, name, archived, archived_at, cwd); INSERT INTO threads VALUES ('a', x'4dff', 'yes', 1.5, NULL), (NULL, NULL, NULL, NULL, NULL)`, title: "M\ufffd"},
		{name: "newer", schema: `CREATE TABLE conversations (id TEXT)`, title: "begin a", problem: "no table threads"},
		{name: "empty", title: "begin a", problem: "the file is empty"},
		{name: "damaged", schema: "!", title: "begin a", problem: "damaged"},
		{name: "no database", schema: "?", title: "begin a", problem: "no SQLite database"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, home := homeWith(t, "a")
			mirror := filepath.Join(home, "state_6.sqlite")
			switch test.schema {
			case "":
				overwrite(t, mirror, "")
			case "?":
				overwrite(t, mirror, "this is no database at all")
			case "!":
				h.Load(mirror, threadsTable)
				overwrite(t, mirror, historytest.Read(t, mirror)[:5000])
			default:
				h.Load(mirror, test.schema)
			}
			done := h.Import()
			if got := h.Session("a").Title; got != test.title {
				t.Errorf("title %q", got)
			}
			if test.problem == "" && len(done.Errors) > 0 ||
				test.problem != "" && (len(done.Errors) != 1 || done.Errors[0].Path != mirror ||
					!strings.Contains(done.Errors[0].Error, test.problem)) {
				t.Errorf("%+v", done.Errors)
			}
		})
	}
}

func TestPromptsAreCounted(t *testing.T) {
	h, home := homeWith(t, "a")
	path := filepath.Join(home, "history.jsonl")
	h.Rewrite(path, `{"session_id":"a","ts":1772359202,"text":"begin a"}`, `{"session_id":"gone","ts":1,"text":"lost"}`,
		"", `[]`)
	done := h.Import()
	if s := done.Records.Skipped; s["prompt of a session that is here"] != 1 ||
		s["prompt of a session that is not here"] != 1 || s[history.SkipBlank] != 1 || s["no prompt of a session"] != 1 {
		t.Errorf("%v", s)
	}
	if len(done.Errors) != 1 || done.Errors[0].Line != 4 || done.Sessions.New != 1 {
		t.Errorf("%+v", done)
	}
	h.Append(path, `{"session_id":"a","text":"more"}`+"\n{broken\n"+`{"torn`)
	done = h.Import()
	if s := done.Records.Skipped; done.Records.Read != 3 || s["prompt of a session that is here"] != 1 ||
		done.Records.Waiting != 1 || len(done.Errors) != 1 || done.Errors[0].Line != 6 {
		t.Errorf("%+v", done)
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPlacesOfTheMirror(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	for _, name := range []string{"state_5.sqlite", "state_12.sqlite", "state_7.sqlite-wal", "logs_2.sqlite"} {
		overwrite(t, filepath.Join(other, name), "x")
	}
	env := map[string]string{"CODEX_HOME": home, "CODEX_SQLITE_HOME": other}
	places := codex.New(func(key string) string { return env[key] }, nil).Places()
	want := []string{
		filepath.Join(home, "sessions"), filepath.Join(home, "archived_sessions"), filepath.Join(home, "session_index.jsonl"),
		filepath.Join(home, "history.jsonl"),
		filepath.Join(home, "state_5.sqlite"), filepath.Join(other, "state_12.sqlite"),
	}
	if !slices.Equal(places, want) {
		t.Errorf("%v", places)
	}
}

// A file with credentials is not opened, even if it is named as a root.
func TestCredentialsStayClosed(t *testing.T) {
	h, home := homeWith(t, "a")
	path := filepath.Join(home, "auth.json")
	overwrite(t, path, header+"\n")
	if done := h.Import(path); done.Sessions.New != 0 || len(done.Errors) != 1 ||
		!strings.Contains(done.Errors[0].Error, "credentials") {
		t.Errorf("%+v", done)
	}
}
