package memory_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/folders"
	"sessiond/internal/memory"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// A private repository hides its worktrees, and is known by each of its names.
func TestExcludedProjectHidesItsWorktrees(t *testing.T) {
	dir := folders.Resolved(t.TempDir())
	write := func(path, text string) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	write("main/.git/HEAD", "ref: refs/heads/main\n")
	write("main/secret/x", "")
	write("main/.git/worktrees/two/commondir", "../..\n")
	write("main/.git/worktrees/two/gitdir", filepath.Join(dir, "two/.git")+"\n")
	write("two/.git", "gitdir: "+filepath.Join(dir, "main/.git/worktrees/two")+"\n")
	testkit.Check(t, os.Symlink("main", filepath.Join(dir, "link")))
	for _, c := range []struct {
		excluded string
		shown    string // of main, main/secret, two
	}{{"main", ""}, {"link", ""}, {"two", ""}, {"main/secret", "main two"}, {"gone", "main main/secret two"}} {
		scope, shown := memory.NewScope(nil, []string{filepath.Join(dir, c.excluded)}), []string{}
		for _, folder := range []string{"main", "main/secret", "two"} {
			if scope.Shows(&session.Session{ID: "20260101_001", Project: filepath.Join(dir, folder)}) {
				shown = append(shown, folder)
			}
		}
		if got := strings.Join(shown, " "); got != c.shown {
			t.Errorf("without %s: %q, want %q", c.excluded, got, c.shown)
		}
	}
	linked := memory.NewScope([]string{filepath.Join(dir, "link")}, nil)
	if !linked.Shows(&session.Session{ID: "20260101_001", Project: filepath.Join(dir, "two")}) {
		t.Errorf("by a link: %q", linked.Projects)
	}
}

// A session is of the excluded folder by whatever name it was recorded, and the folder by whatever name it is excluded,
// also after it is gone.
func TestExcludesSeeThroughLinks(t *testing.T) {
	dir := folders.Resolved(t.TempDir())
	at := func(path string) string { return dir + "/" + path }
	testkit.Check(t, os.MkdirAll(at("h/private/deep"), 0o700))
	testkit.Check(t, os.MkdirAll(at("h/pub/sub"), 0o700))
	testkit.Check(t, os.MkdirAll(at("h/private-not"), 0o700))
	for link, target := range map[string]string{
		"h/link": "private", "h/absolute": at("h/private"), "h/second": "link", "h/pub/inward": "../private/deep",
		"h/aside":  "pub/sub",
		"h/circle": "circle", "h/elsewhere": "private/gone/deeper",
	} {
		testkit.Check(t, os.Symlink(target, at(link)))
	}
	check := func(t *testing.T, hidden bool, excluded string, recorded ...string) {
		t.Helper()
		for _, folder := range recorded {
			for field, sess := range map[string]session.Session{
				"project":   {ID: "20260101_001", Project: at(folder)},
				"directory": {ID: "20260101_001", Project: "/elsewhere", Directory: at(folder)},
			} {
				if got := memory.NewScope(nil, []string{at(excluded)}).Excludes(&sess); got != hidden {
					t.Errorf("%s is %s; without %s it is hidden: %t, want %t", field, folder, excluded, got, hidden)
				}
			}
		}
	}
	private := []string{
		"h/private", "h/private/", "h//private/./deep", "h/link", "h/link/deep", "h/absolute/deep/gone", "h/second",
		"h/pub/inward",
		"h/pub/../private", "h/pub/../link/deep", "h/gone/../private", "h/pub/inward/../x", "h/aside/../../private",
		"h/elsewhere", "h/elsewhere/x",
	}
	public := []string{
		"h", "h/pub", "h/private-not", "h/aside", "h/private/../pub", "h/circle", "h/circle/private",
		"h/link/../pub",
	}
	for _, name := range []string{"h/private", "h/link", "h/second/", "h/pub/../private", "h/absolute"} {
		check(t, true, name, private...)
		check(t, false, name, public...)
	}
	testkit.Check(t, os.RemoveAll(at("h/private")))
	for _, name := range []string{"h/private", "h/link", "h/pub/../private"} {
		check(t, true, name, private...)
		check(t, false, name, public...)
	}
	check(t, false, "h/link/deep", "h/private", "h/pub", "h/link")
}

func TestScope(t *testing.T) {
	scope := memory.Scope{Projects: []string{"/w/a", "/w/secret"}, Exclude: []string{"/w/secret/"}, Asking: "20260101_001"}
	for _, c := range []struct {
		sess session.Session
		want bool
	}{
		{session.Session{ID: "20260101_002", Project: "/w/a", Directory: "/w/a/x"}, true},
		{session.Session{ID: "20260101_002", Project: "/w/b"}, false},
		{session.Session{ID: "20260101_001", Project: "/w/a"}, false},
		{session.Session{ID: "20260101_002", Project: "/w/a", ParentID: "20260101_001"}, false},
		{session.Session{ID: "20260101_002", Project: "/w/secret"}, false},
		{session.Session{ID: "20260101_002", Project: "/w/a", Directory: "/w/secret/deep"}, false},
		{session.Session{ID: "20260101_002", Project: "/w/a", DeletedAt: &session.Time{}}, false},
	} {
		if got := scope.Shows(&c.sess); got != c.want {
			t.Errorf("%+v is shown: %t", c.sess, got)
		}
	}
	if everything := (memory.Scope{}); !everything.Shows(&session.Session{ID: "20260101_001", Project: "/w/b"}) {
		t.Error("a scope without limits leaves a session out")
	}
}

// A hook tells of no session that was imported from a path given by hand; an agent that asks gets it.
func TestHookTellsOnlyOfTheUsersOwnSessions(t *testing.T) {
	scope := memory.Scope{Projects: []string{"/w/a"}}
	for from, want := range map[string]bool{"": true, "/home/ana/Downloads/given.jsonl": false} {
		sess := session.Session{ID: "20260101_002", Project: "/w/a", ForeignFrom: from}
		if scope.Tells(&sess) != want || !scope.Shows(&sess) {
			t.Errorf("from %q: told %t, shown %t", from, scope.Tells(&sess), scope.Shows(&sess))
		}
	}
}
