package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// A copy has no name once it is open, so that it goes with its process however that ends.
func TestOpenCopyHasNoName(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	path := filepath.Join(t.TempDir(), "their.db")
	tell(t, owner(t, path), `INSERT INTO messages (text) VALUES ('in the log')`)
	s := testkit.Must(OpenSQLite(t.Context(), path))(t)
	defer s.Close()
	if left := testkit.Must(os.ReadDir(temp))(t); len(left) > 0 {
		t.Errorf("%s is there", left[0].Name())
	}
	var text string
	if err := s.GetContext(t.Context(), &text, `SELECT text FROM messages ORDER BY id DESC LIMIT 1`); err != nil ||
		text != "in the log" {
		t.Errorf("%q, %v", text, err)
	}
}

// Of a process that was killed while it copied a database, the copy goes; a young one stays, and so does
// what is no copy.
func TestLeftoversOfTheDeadAreRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dead, young, other := filepath.Join(temp, tempNames+"1"), filepath.Join(temp, tempNames+"2"),
		filepath.Join(temp, tempNames+"file")
	for _, dir := range []string{dead, young} {
		testkit.Check(t, os.Mkdir(dir, 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(dir, copyName), []byte("secret"), 0o600))
	}
	testkit.Check(t, os.WriteFile(other, nil, 0o600))
	long := time.Now().Add(-2 * leftOver)
	testkit.Check(t, os.Chtimes(dead, long, long))
	testkit.Check(t, os.Chtimes(other, long, long))
	RemoveLeftovers()
	for path, want := range map[string]bool{dead: false, young: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
}
