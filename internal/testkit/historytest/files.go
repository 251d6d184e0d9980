package historytest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// Sample returns the path of the one file or folder of the samples that matches parts, below the
// program's folder.
func Sample(t testing.TB, program string, parts ...string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(append([]string{samples.Dir(t), program}, parts...)...))
	if err != nil || len(matches) != 1 {
		t.Fatalf("sample %v: %v %v", parts, matches, err)
	}
	return matches[0]
}

// Read returns what a file holds.
func Read(t testing.TB, path string) string {
	t.Helper()
	text := testkit.Must(os.ReadFile(path))(t)
	return string(text)
}

// Write makes a file of lines in a folder of its own and gives its path.
func (h *House) Write(name string, lines ...string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	h.Rewrite(path, lines...)
	return path
}

// Rewrite makes a file of lines, instead of the one that may be there.
func (h *House) Rewrite(path string, lines ...string) {
	h.Helper()
	before, err := os.Stat(path)
	testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
	var text []byte
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	testkit.Check(h, os.WriteFile(path, text, 0o600))
	if err == nil { // a file of the same size and time would count as unchanged
		later := before.ModTime().Add(time.Second)
		testkit.Check(h, os.Chtimes(path, later, later))
	}
}

// Append writes text at the end of a file.
func (h *House) Append(path, text string) {
	h.Helper()
	file := testkit.Must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(h)
	testkit.Must(file.WriteString(text))(h)
	testkit.Check(h, file.Close())
}

// Copy writes a file's copy into a folder of its own and gives its path.
func (h *House) Copy(file string) string {
	h.Helper()
	path := h.Write(filepath.Base(file))
	h.Append(path, Read(h, file))
	return path
}
