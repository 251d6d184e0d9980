package historytest

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Load makes a database of SQL at path, instead of the one that may be there.
func (h *House) Load(path string, scripts ...string) string {
	h.Helper()
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		h.Fatal(err)
	}
	h.Change(path, scripts...)
	return path
}

// Change runs SQL on a database as its program might, on one connection.
func (h *House) Change(path string, scripts ...string) {
	h.Helper()
	change(h, path, scripts)
}

func change(t testing.TB, path string, scripts []string) {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", path))(t)
	db.SetMaxOpenConns(1)
	testkit.Must(db.ExecContext(t.Context(), `PRAGMA synchronous = OFF`))(t) // a test's data need not survive a power cut
	for _, script := range scripts {
		if _, err := db.ExecContext(t.Context(), script); err != nil {
			t.Fatalf("%.200s: %v", script, err)
		}
	}
	testkit.Check(t, db.Close())
}

// Reading returns a database of SQL, open as an importer reads it, and its path.
func Reading(t testing.TB, scripts ...string) (*history.SQLite, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.db")
	change(t, path, scripts)
	db := testkit.Must(history.OpenSQLite(t.Context(), path))(t)
	t.Cleanup(func() { testkit.Check(t, db.Close()) })
	return db, path
}

// Plan returns the steps in which SQLite would answer a statement.
func Plan(t testing.TB, db *history.SQLite, statement string, args ...any) []string {
	t.Helper()
	var plan []struct {
		ID, Parent, Notused int
		Detail              string
	}
	testkit.Check(t, db.SelectContext(t.Context(), &plan, `EXPLAIN QUERY PLAN `+statement, args...))
	steps := make([]string, len(plan))
	for i := range plan {
		steps[i] = plan[i].Detail
	}
	return steps
}

// Listing returns what a folder holds: name, size, time, mode and length of each file.
func Listing(t testing.TB, folder string) string {
	t.Helper()
	entries := testkit.Must(os.ReadDir(folder))(t)
	var b strings.Builder
	for _, entry := range entries {
		info := testkit.Must(entry.Info())(t)
		fmt.Fprintf(&b, "%s %d %v %v %d;", entry.Name(), info.Size(), info.ModTime(), info.Mode(),
			len(Read(t, filepath.Join(folder, entry.Name()))))
	}
	return b.String()
}

// Texts joins what messages say.
func Texts(rows []session.Message) string {
	var all []string
	for i := range rows {
		all = append(all, rows[i].Text())
	}
	return strings.Join(all, " ")
}
