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
		filepath.Join(dir, "a", "1.jsonl"): "x", filepath.Join(dir, "a", "deep", "2.jsonl"): "xx", filepath.Join(dir, "a", "notes.txt"): "",
		filepath.Join(elsewhere, "3.jsonl"): "xxx",
	} {
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for link, to := range map[string]string{
		"loop": ".", "a/up": "..", "again": "a", "same.jsonl": "a/1.jsonl", "other": elsewhere, "gone.jsonl": "nowhere", "itself.jsonl": "itself.jsonl",
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
