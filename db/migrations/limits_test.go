package migrations_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The column is added without a row being written, however many there are: the table's
// pages stay as they were.
func TestLimitsCostNothingOnALargeFile(t *testing.T) {
	const before, limits = 13, 14
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := opened(t, path, before)
	exec1(t, db, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO contexts (session_id, epoch, model, tokens, created_at) SELECT 's', i, 'marked-' || i, 5, '2026-01-01' FROM n`)
	table := func() (content string, pages int) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at+4096 <= len(data); at += 4096 {
			if page := string(data[at : at+4096]); strings.Contains(page, "marked-") {
				content, pages = content+page, pages+1
			}
		}
		return content, pages
	}
	want, pages := table()
	if pages < 100 {
		t.Fatalf("the rows stand on %d pages", pages)
	}
	migrateTo(t, db, limits)
	if got, _ := table(); got != want {
		t.Error("the migration wrote the table's pages")
	}
	var none int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM contexts WHERE limits IS NULL`).Scan(&none); err != nil || none != 20000 {
		t.Errorf("%d rows have none, %v", none, err)
	}
}
