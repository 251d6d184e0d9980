package arch

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestLine is the limit of a line of Go, in characters; a tab is one.
const longestLine = 120

// TestLinesAreShort reads every Go file. Lines of raw strings may be longer: SQL, tables of words, field tags.
func TestLinesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, n := range longLines(source) {
			t.Errorf("%s:%d has more than %d characters", strings.TrimPrefix(path, "../../"), n, longestLine)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("read %d files: %v", files, err)
	}
}

func TestLongLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	source := "package p\n\nconst a = `" + long + "\n" + long + "`\n\nvar b = \"" + long + "\"\n\n// " + long + "\n"
	if got := longLines([]byte(source)); len(got) != 2 || got[0] != 6 || got[1] != 8 {
		t.Errorf("long lines are %d, want 6 and 8", got)
	}
}

// longLines returns the numbers of the lines that are too long, without those of raw strings.
func longLines(source []byte) (numbers []int) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	raw := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.STRING && text[0] == '`' {
			first := file.Line(pos)
			for n := range strings.Count(text, "\n") + 1 {
				raw[first+n] = true
			}
		}
	}
	for i, line := range bytes.Split(source, []byte("\n")) {
		if utf8.RuneCount(line) > longestLine && !raw[i+1] {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}
