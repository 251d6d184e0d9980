package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// Each file that the docs name is there.
func TestDocsNameFilesThatExist(t *testing.T) {
	var files []string
	for _, root := range []string{"clients", "cmd", "db", "internal", "tools"} {
		testkit.Check(t, filepath.WalkDir("../../"+root, func(path string, _ fs.DirEntry, err error) error {
			files = append(files, filepath.ToSlash(path))
			return err
		}))
	}
	there := strings.Join(files, "\n") + "\n"
	named := regexp.MustCompile("`([\\w./-]+\\.go)\\b")
	example := regexp.MustCompile("[A-Z]{3}") // history/PROGRAM/write.go
	docs := append(testkit.Must(filepath.Glob("../../docs/*.md"))(t), "../../ARCHITECTURE.md", "../../CONTRIBUTING.md")
	found := 0
	for _, doc := range docs {
		for _, name := range named.FindAllStringSubmatch(string(testkit.Must(os.ReadFile(doc))(t)), -1) {
			found++
			if !example.MatchString(name[1]) && !strings.Contains(there, "/"+name[1]+"\n") {
				t.Errorf("%s names %s, which is nowhere", filepath.Base(doc), name[1])
			}
		}
	}
	if found < 100 {
		t.Errorf("the docs name %d files", found)
	}
}
