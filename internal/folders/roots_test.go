package folders

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sessiond/internal/testkit"
)

func TestRootsOfAWorktreeAreThoseOfItsRepository(t *testing.T) {
	dir := testkit.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	write := func(path, text string) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	write("main/.git/HEAD", "ref: refs/heads/main\n")
	write("main/cmd/tool/main.go", "package main\n")
	write("main/.git/worktrees/two/commondir", "../..\n")
	write("main/.git/worktrees/two/gitdir", filepath.Join(dir, "two/.git")+"\n")
	write("main/.git/worktrees/odd name/commondir", "../..\n")
	write("main/.git/worktrees/odd name/gitdir", filepath.Join(dir, "odd name/.git")+"\n")
	write("two/.git", "gitdir: "+filepath.Join(dir, "main/.git/worktrees/two")+"\n")
	write("odd name/.git", "gitdir: ../main/.git/worktrees/odd name\n")
	write("plain/file", "")
	all := []string{filepath.Join(dir, "main"), filepath.Join(dir, "odd name"), filepath.Join(dir, "two")}
	for _, from := range []string{"main", "main/cmd/tool", "two", "odd name"} {
		want := append(slices.Clone(all), filepath.Join(dir, from))
		slices.Sort(want)
		if got := Roots(filepath.Join(dir, from)); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("the roots of %s are %q", from, got)
		}
	}
	if got := Roots(filepath.Join(dir, "plain")); len(got) != 1 || got[0] != filepath.Join(dir, "plain") {
		t.Errorf("a folder without Git has the roots %q", got)
	}
}
