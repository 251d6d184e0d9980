package folders

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

func TestCleanSpellsAPathOfWindowsInOneWay(t *testing.T) {
	for want, spellings := range map[string][]string{
		"C:/src/shop": {
			`C:\src\shop`, "c:/src/shop", `c:\src\.\shop\`, "/c/src/shop", "/mnt/c/src/shop", "/cygdrive/c/src/shop",
			`\\?\C:\src\shop`,
			`\\.\C:\src\shop`, "//?/C:/src/shop", "/C:/src/shop", `\\wsl$\Ubuntu\mnt\c\src\shop`,
		},
		"C:/": {`C:\`, "c:", "/mnt/c", "/c/"},
		"/home/ana/shop": {
			"/home/ana/shop", "/home/ana/./x/../shop/", `\\wsl$\Ubuntu\home\ana\shop`,
			"//wsl.localhost/Debian/home/ana/shop", "//wsl$/Ubuntu/home/ana/shop",
		},
		`\\server/share/shop`: {`\\server\share\shop`, `\\?\UNC\server\share\shop`, `\\SERVER\share\shop\`},
		"/w/shop":             {"/w/shop", "//w//shop"},
		`/home/a\b`:           {`/home/a\b`}, // a name of Linux
		"/cellar/x":           {"/cellar/x"},
		"/mnt/data/x":         {"/mnt/data/x"},
		"shop":                {"shop", "./shop/"},
		"":                    {""},
	} {
		for _, name := range spellings {
			if got := Clean(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := Clean(want); got != want {
			t.Errorf("clean %q becomes %q", want, got)
		}
	}
}

func TestJoinKnowsTheDrivesOfGitBash(t *testing.T) {
	for _, c := range []struct{ directory, name, want string }{
		{"/w", "a/../b", "/w/b"},
		{"", "a/../b", "b"},
		{"/w", "~/x", "~/x"},
		{"/w", "/d/x", "/d/x"},
		{`D:\w`, "/d/x", "D:/x"},
		{`D:\w`, `sub\a.go`, "D:/w/sub/a.go"},
		{"/w", `C:\x\a`, "C:/x/a"},
		{`\\wsl$\Ubuntu\home\ana`, "a.go", "/home/ana/a.go"},
	} {
		if got := Join(c.directory, c.name); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.name, c.directory, got, c.want)
		}
	}
}

// A repository with worktrees of several kinds, living and gone.
func TestProjectOfAWorktreeIsItsRepository(t *testing.T) {
	dir := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	write := func(name, text string) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	worktree := func(name, git string) {
		write(name+"/.git", "gitdir: "+filepath.Join(dir, git)+"\n")
		write(git+"/commondir", "../..\n")
		write(git+"/gitdir", filepath.Join(dir, name, ".git")+"\n")
	}
	write("shop/.git/HEAD", "ref: refs/heads/main\n")
	worktree("shop-fix", "shop/.git/worktrees/fix")
	worktree("shop/.claude/worktrees/cart", "shop/.git/worktrees/cart")
	write("shop/lib/.git", "gitdir: ../.git/modules/lib\n") // a submodule
	write("shop/.git/modules/lib/HEAD", "x")
	write("bare/.bare/HEAD", "x")
	worktree("bare/main", "bare/.bare/worktrees/main")
	write("orphan/.git", "gitdir: "+filepath.Join(dir, "moved/.git/worktrees/orphan")+"\n")
	testkit.Check(t, os.MkdirAll(filepath.Join(dir, "shop-fix/deep"), 0o700))
	testkit.Check(t, os.Symlink("shop", filepath.Join(dir, "link")))
	for _, c := range []struct{ directory, project, worktree string }{
		{"shop", "shop", ""},
		{"shop/cmd/gone", "shop", ""},
		{"link/cmd", "shop", ""},
		{"shop-fix/deep", "shop", "shop-fix"},
		{"shop/.claude/worktrees/cart/cmd", "shop", "cart"},
		{"shop/.claude/worktrees/gone/cmd", "shop", "gone"},
		{"shop/.worktrees/gone", "shop", "gone"},
		{"shop.worktrees/gone", "shop", "gone"},
		{"shop/lib/x", "shop/lib", ""},
		{"bare/main/cmd", "bare", ""},
		{"orphan", "moved", "orphan"},
		{"gone/.claude/worktrees/a/.claude/worktrees/b", "gone", "a"},
		{"plain/sub", "plain/sub", ""},
		{"shop/.claude/worktrees", "shop", ""},
	} {
		project := filepath.Join(dir, c.project)
		if got := Project(filepath.Join(dir, c.directory)); got != project {
			t.Errorf("%s is of %s, want %s", c.directory, got, project)
		}
		if got := Worktree(filepath.Join(dir, c.directory), project); got != c.worktree {
			t.Errorf("%s is the worktree %q, want %q", c.directory, got, c.worktree)
		}
	}
	for _, from := range []string{
		"shop", "shop-fix/deep", "shop/.claude/worktrees/cart", "shop/.claude/worktrees/gone",
		"link",
	} {
		roots := Roots(filepath.Join(dir, from))
		for _, want := range []string{from, "shop", "shop-fix", "shop/.claude/worktrees/cart"} {
			if !slices.Contains(roots, filepath.Join(dir, want)) {
				t.Errorf("the roots of %s are %s, without %s", from, strings.Join(roots, " "), want)
			}
		}
	}
	testkit.Equal(t, filepath.Join(dir, "shop/.claude/worktrees/cart"),
		WorktreeRoot(filepath.Join(dir, "shop/.claude/worktrees/cart/cmd")))
}

func TestLayoutTellsARepositoryOfAnotherHost(t *testing.T) {
	for directory, want := range map[string]string{
		`C:\src\shop\.claude\worktrees\brave-x`:         "C:/src/shop",
		"/mnt/c/src/shop/.claude/worktrees/brave-x/cmd": "C:/src/shop",
		"/srv/x/.kilocode/worktrees/y":                  "/srv/x",
		"/home/zoe/.worktrees/y":                        "/home/zoe/.worktrees/y", // of any repository
		`C:\Users\zoe\.worktrees\y`:                     "C:/Users/zoe/.worktrees/y",
		"/home/zoe/.codex/worktrees/1a2b/shop":          "/home/zoe/.codex/worktrees/1a2b/shop",
		"/srv/.worktrees/":                              "/srv/.worktrees",
	} {
		if got := Project(directory); got != want {
			t.Errorf("%s is of %q, want %q", directory, got, want)
		}
	}
}

func TestNamesAreTheShortestUniqueEndings(t *testing.T) {
	names := NamesOf([]string{
		"/home/ana/workspace/cli", "/home/ana/devenv/cli", "/src/shop", "/cli", "C:/src/shop", "/",
		"C:/", "", "api", "/x/api",
	})
	for project, want := range map[string]string{
		"/home/ana/workspace/cli": "workspace/cli", "/home/ana/devenv/cli": "devenv/cli", "/cli": "/cli",
		"/src/shop": "/src/shop", "C:/src/shop": "C:/src/shop",
		"/": "/", "C:/": "C:/", "": "", "api": "api", "/x/api": "x/api", "/unknown/one": "one",
	} {
		if got := names.Of(project); got != want {
			t.Errorf("%s is called %q, want %q", project, got, want)
		}
		if project != "" && !EndsIn(project, names.Of(project)) {
			t.Errorf("%s does not end in %s", project, names.Of(project))
		}
	}
	testkit.Equal(t, "shop [cart]", NamesOf([]string{"/src/shop"}).With("/src/shop", "/src/shop/.claude/worktrees/cart/x"))
	testkit.Equal(t, "shop", NamesOf([]string{"/src/shop"}).With("/src/shop", "/src/shop/cmd"))
	for _, c := range []struct {
		project, name string
		want          bool
	}{
		{"/a/workspace/cli", "Workspace/CLI", true},
		{"/a/myworkspace/cli", "workspace/cli", false},
		{"/a/cli", "/cli/", true},
		{"/a/cli", "", false},
	} {
		if EndsIn(c.project, c.name) != c.want {
			t.Errorf("%s ends in %s: %t", c.project, c.name, !c.want)
		}
	}
}
