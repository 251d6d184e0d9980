package historytest

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
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
	db, err := sql.Open("sqlite", path)
	if err != nil {
		h.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, script := range scripts {
		if _, err := db.ExecContext(h.Context(), script); err != nil {
			h.Fatalf("%.200s: %v", script, err)
		}
	}
	if err := db.Close(); err != nil {
		h.Fatal(err)
	}
}

// Listing tells what a folder holds: name, size, time, mode and length of each file.
func Listing(t testing.TB, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %v %v %d;", entry.Name(), info.Size(), info.ModTime(), info.Mode(), len(Read(t, filepath.Join(folder, entry.Name()))))
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
