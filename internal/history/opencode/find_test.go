package opencode_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/opencode"
	"sessiond/internal/testkit"
)

func TestOpencodePlaces(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"nothing is known", nil, nil},
		{"a home", map[string]string{"HOME": "/home/ana"}, []string{"/home/ana/.local/share/opencode"}},
		{"data elsewhere", map[string]string{"HOME": "/home/ana", "XDG_DATA_HOME": "/data"}, []string{"/data/opencode"}},
		{"another database", map[string]string{"HOME": "/home/ana", "OPENCODE_DB": "mine.db"}, []string{"/home/ana/.local/share/opencode", "/home/ana/.local/share/opencode/mine.db"}},
		{"a database anywhere", map[string]string{"HOME": "/home/ana", "OPENCODE_DB": "/x/y.db"}, []string{"/home/ana/.local/share/opencode", "/x/y.db"}},
	} {
		if got := opencode.New(func(name string) string { return test.env[name] }, time.Now).Places(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestOpencodeFinds(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"opencode/opencode.db", "opencode/opencode-dev.db", "opencode/auth.json", "opencode/mcp-auth.json", "opencode/log/x.json", "opencode/tool-output/y.json",
		"opencode/storage/migration", "opencode/storage/session/p/ses_1.json", "opencode/storage/message/ses_1/m.json",
		"opencode/project/home-x/storage/session/info/ses_0.json", "opencode/project/home-x/storage/session/message/ses_0/m.json", "loose/export.json",
	} {
		path := filepath.Join(root, name)
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.WriteFile(path, []byte("x"), 0o000); err != nil { // finding opens nothing
			t.Fatal(err)
		}
	}
	data := []string{"opencode/opencode-dev.db", "opencode/opencode.db", "opencode/storage", "opencode/project/home-x/storage/session"}
	source := opencode.New(func(name string) string { return map[string]string{"XDG_DATA_HOME": root}[name] }, time.Now)
	link := filepath.Join(t.TempDir(), "link")
	testkit.Check(t, os.Symlink(filepath.Join(root, "opencode"), link))
	for _, test := range []struct {
		name  string
		roots []string
		want  []string
	}{
		{"the usual place", nil, data},
		{"a data folder", []string{filepath.Join(root, "opencode")}, data},
		{"the same twice", []string{link, filepath.Join(root, "opencode")}, data},
		{"what lies above", []string{root}, append(slices.Clone(data), "loose/export.json")},
		{"a tree", []string{filepath.Join(root, "opencode", "storage")}, data[2:3]},
		{"a database", []string{filepath.Join(root, "opencode", "opencode.db")}, data[1:2]},
	} {
		found, problems, err := source.Find(t.Context(), test.roots)
		var got []string
		for _, f := range found {
			got = append(got, strings.TrimPrefix(f.Path, root+"/"))
		}
		if err != nil || len(problems) != 0 || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v %v %v", test.name, got, problems, err)
		}
	}
}
