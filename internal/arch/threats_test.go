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

// Each threat that docs/security.md lists has a test.
func TestThreatsHaveTheirTests(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testkit.Check(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(text, -1) {
			tests[string(name[1])] = true
		}
		return err
	}))
	_, table, found := strings.Cut(string(testkit.Must(os.ReadFile("../../docs/security.md"))(t)), "\n## Threats\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	threats := 0
	for row := range strings.SplitSeq(table, "\n") {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| threat ") {
			continue
		}
		threats++
		names := named.FindAllStringSubmatch(row, -1)
		if len(names) == 0 {
			t.Errorf("this threat names no test: %s", row)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no test %s", name[1])
			}
		}
	}
	if !found || threats < 20 {
		t.Errorf("docs/security.md lists %d threats", threats)
	}
}
