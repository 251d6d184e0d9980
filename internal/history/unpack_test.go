package history

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// packed writes a compressed file: a beginning, then n times a piece.
func packed(t *testing.T, begin, piece string, n int) string {
	t.Helper()
	var text bytes.Buffer
	w := testkit.Must(zstd.NewWriter(&text))(t)
	testkit.Must(io.WriteString(w, begin))(t)
	for range n {
		testkit.Must(io.WriteString(w, piece))(t)
	}
	testkit.Check(t, w.Close())
	path := filepath.Join(t.TempDir(), "rollout.jsonl.zst")
	testkit.Check(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

// A compressed file is refused before it fills the folder of temporary files: at its head where that is no transcript,
// else where it grows beyond what a transcript packs to.
func TestBombIsNotUnpacked(t *testing.T) {
	mebibyte := strings.Repeat(" ", 1<<20)
	for _, test := range []struct {
		name, begin, piece string
		n                  int
		want               string // of the error; "": it is unpacked
	}{
		{"a transcript", "{\"type\":\"session\"}\n", "{\"type\":\"message\"}\n", 1000, ""},
		{"a transcript of one line", `{"type":"session"}`, "", 0, ""},
		{"a large one that packs well, as text does", "{}\n", "{\"a\":1}" + strings.Repeat(" ", 1<<10) + "\n", 50 << 10, ""},
		{"no transcript", "", mebibyte, 300, "its first line is no JSON object"},
		{"words", "hello\n", mebibyte, 300, "its first line is no JSON object"},
		{"a broken first line", "{\"a\":\n", mebibyte, 300, "its first line is no JSON object"},
		{"blanks behind a first line", "{}\n", mebibyte, 300, "more than 200 times its size"},
		{"a first line without an end", "{\"a\":\"", mebibyte, 300, "more than 200 times its size"},
	} {
		t.Run(test.name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			path := packed(t, test.begin, test.piece, test.n)
			if strings.Contains(test.want, "first line") { // nothing is written, so it does not matter that nothing can be
				t.Setenv("TMPDIR", filepath.Join(temporary, "missing"))
			}
			opened, err := OpenText(path)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want == "":
				if whole := int64(len(test.begin) + test.n*len(test.piece)); opened.Size != whole {
					t.Errorf("%d bytes, not %d", opened.Size, whole)
				}
				opened.Close()
			case err == nil || session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), test.want):
				t.Errorf("%v", err)
			}
		})
	}
}
