package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

func TestFinderFollowsLinksOnce(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "a", "1.jsonl"): "x", filepath.Join(dir, "a", "deep", "2.jsonl"): "xx",
		filepath.Join(dir, "a", "notes.txt"): "",
		filepath.Join(elsewhere, "3.jsonl"):  "xxx",
	} {
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for link, to := range map[string]string{
		"loop": ".", "a/up": "..", "again": "a", "same.jsonl": "a/1.jsonl", "other": elsewhere, "gone.jsonl": "nowhere",
		"itself.jsonl": "itself.jsonl",
	} {
		testkit.Check(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	var f Finder
	f.Folder(dir, 8, func(name string) bool { return strings.HasSuffix(name, ".jsonl") })
	SortedBy(ByName)(f.Found)
	var got []string
	for _, one := range f.Found {
		got = append(got, fmt.Sprintf("%s %d", filepath.Base(one.Path), one.Size))
	}
	if fmt.Sprint(got) != "[1.jsonl 1 2.jsonl 2 3.jsonl 3]" {
		t.Errorf("%v", got)
	}
	want := []string{"a link to what is not there", "too many levels of symbolic links"}
	for i, p := range f.Problems { // gone.jsonl and itself.jsonl
		if len(f.Problems) != len(want) || !strings.Contains(p.Error, want[i]) {
			t.Errorf("%+v", f.Problems)
		}
	}
	if len(f.Problems) == 0 {
		t.Error("links that lead nowhere are not told of")
	}
	var shallow Finder
	shallow.Folder(filepath.Join(dir, "a"), 1, func(string) bool { return true })
	if len(shallow.Found) != 2 {
		t.Errorf("%+v", shallow.Found)
	}
}

// A link out of the given folder is not followed, but named, and counted where there are many. The folder may be a
// link.
func TestFinderStaysInTheGivenFolder(t *testing.T) {
	given, elsewhere, place := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{
		filepath.Join(given, "1.jsonl"), filepath.Join(elsewhere, "2.jsonl"), filepath.Join(place, "3.jsonl"),
	} {
		testkit.Check(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	links := map[string]string{
		"out": elsewhere, "out.jsonl": filepath.Join(elsewhere, "2.jsonl"), "root": "/",
		"home": place, "in": ".",
	}
	for i := range 30 {
		links[fmt.Sprintf("more%d", i)] = elsewhere
	}
	for link, to := range links {
		testkit.Check(t, os.Symlink(to, filepath.Join(given, link)))
	}
	root := filepath.Join(t.TempDir(), "link")
	testkit.Check(t, os.Symlink(given, root))
	p := Program{
		Folders: InFolders(place), Order: SortedBy(ByName),
		Search: func(f *Finder, folder string) {
			f.Folder(folder, 8, func(name string) bool { return strings.HasSuffix(name, ".jsonl") })
		},
	}
	names := func(found []Found) (all []string) {
		for _, f := range found {
			all = append(all, filepath.Base(f.Path))
		}
		return all
	}
	found, problems, err := p.Find(t.Context(), []string{root})
	if err != nil || fmt.Sprint(names(found)) != "[1.jsonl 3.jsonl]" {
		t.Errorf("%v %v", names(found), err)
	}
	if len(problems) != MaxProblems+1 || !strings.Contains(problems[0].Error, "outside of the imported folder") ||
		!strings.Contains(problems[MaxProblems].Error, "13 more links") {
		t.Errorf("%d problems: %+v", len(problems), problems)
	}
	testkit.Check(t, os.Symlink(elsewhere, filepath.Join(place, "moved"))) // the user put it there
	for _, roots := range [][]string{nil, {place}} {
		if found, problems, err := p.Find(t.Context(), roots); err != nil ||
			fmt.Sprint(names(found)) != "[2.jsonl 3.jsonl]" || len(problems) > 0 {
			t.Errorf("%v %v %v", names(found), problems, err)
		}
	}
}

func TestFinderTellsWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.Check(t, os.WriteFile(file, nil, 0o600))
	closed := filepath.Join(dir, "closed")
	testkit.Check(t, os.Mkdir(closed, 0))
	var f Finder
	f.Folder(file, 8, func(string) bool { return true })
	f.Folder(filepath.Join(dir, "nothing"), 8, func(string) bool { return true })
	if want := 2; len(f.Problems) != want || len(f.Found) != 0 {
		t.Errorf("%+v", f.Problems)
	}
	if os.Getuid() == 0 {
		return // root reads every folder
	}
	f.Folder(closed, 8, func(string) bool { return true })
	if last := f.Problems[len(f.Problems)-1]; last.Path != closed || !strings.Contains(last.Error, "permission") {
		t.Errorf("%+v", last)
	}
}
