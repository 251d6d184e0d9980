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

// A closure that writes is a func(*engine.Tx): who names the type can write tables.
func TestOnlyTheStoreWrites(t *testing.T) {
	transaction, found := regexp.MustCompile(`\bengine\.Tx\b`), false
	testkit.Check(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if !transaction.Match(text) {
			return err
		}
		if dir := filepath.Dir(path); dir != filepath.Join("../..", "internal/store") {
			t.Errorf("%s writes tables: only internal/store does", path)
		}
		found = true
		return err
	}))
	if !found {
		t.Error("not even the store writes")
	}
}
