package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// callsTouch says that a call touches the file of its arguments, and nothing where it failed.
func callsTouch(o *Options) {
	o.Touched = func(m *session.Message, _ string) (files []session.TouchedFile) {
		for _, c := range m.Calls() {
			if c.IsError == nil {
				files = append(files, session.TouchedFile{Op: session.FileOp(c.ToolName), Path: folders.Clean(c.Arguments)})
			}
		}
		return files
	}
}

// callsOn returns a reply with calls: "op path" each, with their place as id.
func callsOn(touches ...string) session.Message {
	m := says(session.Assistant, "on it")
	for i, touch := range touches {
		op, path, _ := strings.Cut(touch, " ")
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartToolCall, CallID: string(rune('a' + i)), ToolName: op,
			Arguments: path,
		})
	}
	return m
}

func outcomeOf(call string, failed bool) session.Message {
	return session.Message{
		Role: session.Tool, Kind: session.KindMessage,
		Parts: []session.Part{{Kind: session.PartToolResult, CallID: call, Text: "done", IsError: &failed}},
	}
}

func touchedPaths(t *testing.T, s *Store) string {
	t.Helper()
	return strings.Join(testkit.Must(engine.List[string](t.Context(), s,
		`SELECT op || ' ' || path FROM touched_files ORDER BY 1`))(t), ", ")
}

// A failed edit is none, also where another call of the same reply worked, and the same file was edited by one that
// did.
func TestFailedCallsTouchNothing(t *testing.T) {
	s := openTest(t, callsTouch)
	sess := mustCreate(t, s, NewSession{Directory: "/w"})
	mustAppend(t, s, sess.ID, says(session.User, "x"),
		callsOn("edit /w/a", "edit /w/b", "read /w/a", "edit /w/c", "edit /w/c"))
	mustAppend(t, s, sess.ID, outcomeOf("a", true), outcomeOf("b", false), outcomeOf("c", false))
	mustAppend(t, s, sess.ID, outcomeOf("d", true), outcomeOf("e", false))
	testkit.Equal(t, "edit /w/b, edit /w/c, read /w/a", touchedPaths(t, s))
	mustBeHealthy(t, s)
}

// What earlier versions stored is grouped, spelt and counted as today, once; what was cut short is done at the next
// start.
func TestRowsOfEarlierVersionsAreMended(t *testing.T) {
	dir := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	write := func(path, text string) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	write("shop/.git/worktrees/fix/commondir", "../..\n")
	write("fix/.git", "gitdir: "+filepath.Join(dir, "shop/.git/worktrees/fix")+"\n")
	s := openTest(t, callsTouch, func(o *Options) { o.Host = "here" })
	projects := map[session.ID]string{}
	store := func(project, host, want string, touches ...string) session.ID {
		sess := mustCreate(t, s, NewSession{Directory: project})
		reply := mustAppend(t, s, sess.ID, says(session.User, "Fix it"), callsOn(touches...),
			outcomeOf("a", true)).Messages[1].RowID
		testkit.Must(s.AddCall(t.Context(), session.Call{SessionID: sess.ID, Model: "m"}))(t)
		testkit.Check(t, s.write(t.Context(), func(tx *tx) error {
			if err := tx.moveUsage(sess.ID, nil, func() error {
				return tx.Exec(`UPDATE sessions SET project = ?, host = ? WHERE id = ?`, project, host, sess.ID)
			}); err != nil {
				return err
			}
			for _, touch := range touches {
				op, path, _ := strings.Cut(touch, " ")
				if err := tx.Exec(insertTouched, path, reply, op, string(sess.ID)); err != nil {
					return err
				}
			}
			return nil
		}))
		projects[sess.ID] = want
		return sess.ID
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	store(at("shop"), "here", at("shop"), `edit /w/failed`, `edit C:\x\a.go`, "read /mnt/c/x/a.go", "read C:/x/a.go")
	store(at("fix"), "here", at("shop"))
	store(at("gone/.claude/worktrees/a"), "", at("gone"))
	store(at("gone/.claude/worktrees/b"), "there", at("gone"))
	store(at("fix"), "there", at("shop")) // a host of the same name of folder here: the project is one
	store(`C:\src\shop`, "there", "C:/src/shop")
	store("/mnt/c/src/shop/.claude/worktrees/x", "here", "C:/src/shop")
	store(at("plain"), "here", at("plain"))
	mend := func() {
		t.Helper()
		testkit.Check(t, s.write(t.Context(), func(t *tx) error { return t.Exec(`UPDATE store SET mended = 0`) }))
		testkit.Check(t, s.mend(t.Context()))
	}
	mend()
	var revisions []int64
	for id, want := range projects {
		sess := testkit.Must(s.Session(t.Context(), id))(t)
		if sess.Project != want {
			t.Errorf("%s of %s is of %s, want %s", id, sess.Directory, sess.Project, want)
		}
		revisions = append(revisions, sess.Revision)
	}
	mustBeHealthy(t, s) // the roll-up equals a recount
	testkit.Equal(t, "edit C:/x/a.go, read C:/x/a.go", touchedPaths(t, s))
	if n := testkit.Must(engine.Get[int64](t.Context(), s, `SELECT mended FROM store`))(t); n != mendVersion {
		t.Errorf("mended up to %d", n)
	}
	mend()
	var again []int64
	for id := range projects {
		again = append(again, testkit.Must(s.Session(t.Context(), id))(t).Revision)
	}
	slices.Sort(revisions)
	slices.Sort(again)
	testkit.Equal(t, revisions, again)
}

// A file is found by its path in each worktree of the repository, living and gone, and by each spelling.
func TestFilePathsAreThoseOfAllWorktrees(t *testing.T) {
	dir := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	write := func(path, text string) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	write("shop/.git/worktrees/fix/commondir", "../..\n")
	write("shop/.git/worktrees/fix/gitdir", filepath.Join(dir, "fix/.git")+"\n")
	write("fix/.git", "gitdir: "+filepath.Join(dir, "shop/.git/worktrees/fix")+"\n")
	testkit.Check(t, os.Symlink("shop", filepath.Join(dir, "link")))
	s := openTest(t, callsTouch)
	at := func(path string) string { return filepath.Join(dir, path) }
	names := map[session.ID]string{}
	for _, in := range []string{"shop", "fix", "shop/.claude/worktrees/gone", "old.worktrees/gone", "other"} {
		sess := mustCreate(t, s, NewSession{Directory: at(in)})
		mustAppend(t, s, sess.ID, says(session.User, "x"), callsOn("edit "+at(in)+"/cmd/a.go"))
		names[sess.ID] = in
	}
	windows := mustCreate(t, s, NewSession{Directory: `C:\src\old`})
	mustAppend(t, s, windows.ID, says(session.User, "x"), callsOn("edit C:/src/old/a.go"))
	names[windows.ID] = "windows"
	ours := "fix shop shop/.claude/worktrees/gone"
	for name, want := range map[string]string{
		at("shop/cmd/a.go"): ours, at("fix/cmd/a.go"): ours, at("shop/.claude/worktrees/gone/cmd/a.go"): ours,
		at("link/cmd/a.go"): ours,
		at("shop/cmd"):      ours, at("fix"): ours, at("shop") + "/": ours, at("old/cmd/a.go"): "old.worktrees/gone",
		at("shop/a.go"):   "",
		`c:\src\old\a.go`: "windows", "/mnt/c/src/old": "windows",
	} {
		paths := testkit.Must(s.FilePaths(t.Context(), name))(t)
		found, _, err := s.FileSessions(t.Context(), FileFilter{Paths: paths}, Page{})
		testkit.Check(t, err)
		var got []string
		for _, f := range found {
			got = append(got, names[f.Session.ID])
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s was touched in %q, want %q (by %q)", name, got, want, paths)
		}
	}
	for name, want := range map[string]int{
		"a.go": 6, "./cmd/a.go": 5, "../x/cmd/a.go": 5, "/else/a.go": 6, "b.go": 0,
		"%": 0, ".": 0, "": 0, "..": 0,
	} {
		if found := testkit.Must(s.FilesEnding(t.Context(), name))(t); len(found) != want {
			t.Errorf("%d paths end in %q, want %d: %v", len(found), name, want, found)
		}
	}
	testkit.Must(s.SetTrash(t.Context(), windows.ID, true, nil, nil))(t)
	if found := testkit.Must(s.FilesEnding(t.Context(), "old/a.go"))(t); len(found) != 0 &&
		found[0].Path == "C:/src/old/a.go" {
		t.Errorf("of the trash: %v", found)
	}
}
