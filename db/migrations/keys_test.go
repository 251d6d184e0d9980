package migrations_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysOutliveTheirNewOrder(t *testing.T) {
	const before, inOrder = 11, 12
	db := opened(t, filepath.Join(t.TempDir(), "sessions.db"), before)
	exec1(t, db, `INSERT INTO idempotency_keys VALUES
		('b', 'hash b', 'POST /b', 200, 's', 1, 2, 'cmp_1', 3, 4, 5, 6, 7, '2026-01-02'),
		('a', 'hash a', 'POST /a', 201, '', NULL, 0, '', 0, NULL, NULL, NULL, 0, '2026-01-03'),
		('c', 'hash c', 'POST /c', 202, '', NULL, 0, '', 0, NULL, NULL, NULL, 0, '2026-01-01')`)
	const content = `SELECT group_concat(concat_ws(' ', key_hash, body_hash, route, status, session_id, message_id, n, object_id,
		revision, head_id, compaction_id, context_id, context_tokens, created_at), char(10) ORDER BY created_at) FROM idempotency_keys`
	read := func(query string) (text string) {
		if err := db.QueryRowContext(t.Context(), query).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	want := read(content)
	migrateTo(t, db, inOrder)
	if got := read(content); got != want || strings.Count(got, "\n") != 2 {
		t.Errorf("after it\n%s\nbefore\n%s", got, want)
	}
	if got := read(`SELECT group_concat(key_hash, ' ' ORDER BY id) FROM idempotency_keys`); got != "c b a" {
		t.Errorf("they stand as %s, not in the order of arrival", got)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO idempotency_keys (key_hash, body_hash, route, status, created_at) VALUES ('a', '', '', 200, '')`); err == nil {
		t.Error("a key is there twice")
	}
}
