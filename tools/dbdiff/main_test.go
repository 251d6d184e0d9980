package main

import (
	"database/sql"
	"path/filepath"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// Two files with the same sessions under other ids and row numbers are equal; a changed part, a
// lost row and another head are found.
func TestCompareFindsWhatDiffers(t *testing.T) {
	write := func(t *testing.T, number, more string) string {
		path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
		db := testkit.Must(sql.Open("sqlite", path))(t)
		defer db.Close()
		id, row := "'20260211_00"+number+"'", number
		testkit.Must(db.Exec(`
			INSERT INTO sessions (id, day, source, source_id, head_id, created_at, updated_at, active_at)
				VALUES (` + id + `, '2026-02-11', 'pi', 'talk', ` + row + `2, '2026-02-11', '2026-02-1` + number + `', '2026-02-11');
			INSERT INTO messages (id, session_id, seq, parent_id, depth, role, origin, tokens, path_tokens, day, created_at, extra)
				VALUES (` + row + `1, ` + id + `, 1, NULL, 0, 'user', 'person', 1, 1, '2026-02-11', '2026-02-11', '{"a":1,"b":2}'),
				       (` + row + `2, ` + id + `, 2, ` + row + `1, 1, 'user', 'person', 1, 2, '2026-02-11', '2026-02-11', '{"b":2,"a":1}');
			INSERT INTO parts (id, message_id, idx, kind, text, tokens)
				VALUES (` + row + `1 << 10, ` + row + `1, 0, 'text', 'hello', 1), (` + row + `2 << 10, ` + row + `2, 0, 'text', 'again', 1);
			INSERT INTO compactions (session_id, strategy, trigger, status, through_id, details, created_at)
				VALUES (` + id + `, 'prune', 'import', 'done', ` + row + `1, '{"turn_start":"20260211_00` + number + `.1"}', '2026-02-11');
			` + more))(t)
		return path
	}
	a := write(t, "1", "")
	for _, tt := range []struct {
		name, more string
		want       int
	}{
		{"the same under other ids", "", 0},
		{"a title", `UPDATE sessions SET title = 'x'`, 1},
		{"another head", `UPDATE sessions SET head_id = 21`, 1},
		{"a row too many", `INSERT INTO marks (session_id, message_id, kind, created_at) VALUES ('20260211_002', 21, 'pin', '2026-02-11')`, 1},
		{"a name in JSON", `UPDATE compactions SET details = '{"turn_start":"20260211_002.2"}'`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := compare(a, write(t, "2", tt.more), &options{max: 8})
			if err != nil || got != tt.want {
				t.Errorf("%d rows differ, want %d (%v)", got, tt.want, err)
			}
		})
	}
}
