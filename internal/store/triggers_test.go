package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// raw is a connection as anyone could open it, with SQLite's own defaults.
func raw(t testing.TB, s *Store) *sql.DB {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", s.File()+"?_pragma=busy_timeout(5000)"))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestTheDatabaseItselfKeepsWhatWasSaid(t *testing.T) {
	onFile(t)
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{Source: session.SourcePi, SourceID: "one"})
	mustCreate(t, s, NewSession{Source: session.SourcePi, SourceID: "two"})
	m := says(session.User, strings.Repeat("long ", 500_000))
	m.ExternalID = "ext"
	mustAppend(t, s, sess.ID, m, says(session.Assistant, "short"))
	db := raw(t, s)
	dump := func() string {
		var all string
		testkit.Check(t, db.QueryRow(`SELECT (SELECT group_concat(id || session_id || seq || role || tokens, '|') FROM messages) || (SELECT group_concat(id || text || COALESCE(blob, ''), '|') FROM parts)
			|| (SELECT group_concat(sha256 || length(data), '|') FROM blobs) || (SELECT group_concat(sha256 || n || length(data), '|') FROM blob_pieces) || (SELECT group_concat(id || source_id, '|') FROM sessions)`).Scan(&all))
		return all
	}
	before := dump()
	for _, attempt := range []string{
		`UPDATE messages SET role = 'user'`,
		`UPDATE OR REPLACE messages SET seq = 1`,
		`UPDATE messages SET tokens = tokens`,
		`DELETE FROM messages WHERE seq = 2`,
		`INSERT OR REPLACE INTO messages SELECT * FROM messages WHERE seq = 1`,
		`INSERT OR REPLACE INTO messages (session_id, seq, depth, origin, tokens, path_tokens, day, created_at) SELECT session_id, 1, 0, 'person', 0, 0, '', '' FROM messages WHERE seq = 1`,
		`INSERT OR REPLACE INTO messages (session_id, seq, depth, origin, tokens, path_tokens, day, created_at, external_id) SELECT session_id, 9, 0, 'person', 0, 0, '', '', 'ext' FROM messages WHERE seq = 1`,
		`UPDATE parts SET text = 'other'`,
		`DELETE FROM parts`,
		`INSERT OR REPLACE INTO parts (id, message_id, idx, kind, text, tokens) SELECT id, message_id, idx, kind, 'other', tokens FROM parts`,
		`UPDATE blobs SET data = x'00'`,
		`DELETE FROM blobs`,
		`INSERT OR REPLACE INTO blobs SELECT sha256, 1, media_type, x'00' FROM blobs`,
		`UPDATE blob_pieces SET data = x'00'`,
		`UPDATE blob_pieces SET n = n + 10`,
		`DELETE FROM blob_pieces`,
		`INSERT OR REPLACE INTO blob_pieces SELECT sha256, n, x'00' FROM blob_pieces WHERE n = 1`,
		`INSERT INTO blob_pieces SELECT sha256, MAX(n) + 1, x'00' FROM blob_pieces`,
		`INSERT INTO blob_pieces VALUES ('none', 1, x'00')`,
		`DELETE FROM sessions WHERE source_id = 'one'`,
		`INSERT OR REPLACE INTO sessions (id, day, created_at, updated_at, active_at) SELECT id, '', '', '', '' FROM sessions WHERE source_id = 'one'`,
		`INSERT OR REPLACE INTO sessions (id, day, source, source_id, created_at, updated_at, active_at) VALUES ('20260101_777', '', 'pi', 'one', '', '', '')`,
		`UPDATE OR REPLACE sessions SET source_id = 'one'`,
		`UPDATE sessions SET id = '20260101_888' WHERE source_id = 'one'`,
	} {
		if _, err := db.Exec(attempt); err == nil {
			t.Errorf("went through: %s", attempt)
		}
		if dump() != before {
			t.Fatalf("changed by: %s", attempt)
		}
	}
	mustBeHealthy(t, s)
}

func TestARowInPurgingOpensTheDeletionOfOneSession(t *testing.T) {
	onFile(t)
	s := openTest(t)
	gone, stays := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	for _, id := range []session.ID{gone.ID, stays.ID} {
		mustAppend(t, s, id, says(session.User, "hello"))
	}
	db := raw(t, s)
	testkit.Must(db.Exec(`INSERT INTO purging (session_id, started_at) VALUES (?, '')`, gone.ID))(t)
	for _, q := range []string{
		`DELETE FROM parts WHERE message_id IN (SELECT id FROM messages WHERE session_id = ?)`,
		`DELETE FROM messages WHERE session_id = ?`, `DELETE FROM sessions WHERE id = ?`,
	} {
		if _, err := db.Exec(q, stays.ID); err == nil {
			t.Errorf("a session that is not purged lost rows: %s", q)
		}
		if _, err := db.Exec(q, gone.ID); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	if msgs, _, err := s.Messages(context.Background(), stays.ID, MessagePage{}); err != nil || len(msgs) != 1 {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
}

// rewind takes the file of a closed database back to the schema before a migration, then executes the statements of the
// test. A migration that adds a column or a table has a line here.
func rewind(t testing.TB, path string, version int, then ...string) {
	t.Helper()
	statements := []string{fmt.Sprintf(`DELETE FROM goose_db_version WHERE version_id >= %d`, version)}
	for _, added := range []struct {
		by   int
		undo []string
	}{
		{108, []string{`DROP INDEX sessions_starred`, `ALTER TABLE sessions DROP COLUMN starred_at`}},
		{109, []string{`DROP INDEX calls_failed`, `ALTER TABLE purged_days DROP COLUMN subagents`}},
		{110, []string{
			`DROP TABLE tokens`, `DROP INDEX sessions_owner`, `ALTER TABLE sessions DROP COLUMN owner`,
			`ALTER TABLE sessions DROP COLUMN host`,
		}},
		{116, []string{
			`DROP INDEX sessions_foreign`, `ALTER TABLE sessions DROP COLUMN foreign_from`,
			`DROP INDEX imports_undecided`, `ALTER TABLE imports DROP COLUMN mine`,
		}},
		{124, []string{`ALTER TABLE messages DROP COLUMN talk`, `ALTER TABLE sessions DROP COLUMN said_count`}},
		{130, []string{
			`ALTER TABLE calls DROP COLUMN service_tier`, `ALTER TABLE calls DROP COLUMN requests`,
			`ALTER TABLE models DROP COLUMN source`,
		}},
		{134, []string{`ALTER TABLE store DROP COLUMN mended`}},
		{158, []string{`DROP TABLE limits`}},
		{172, []string{`DROP TABLE source_transcripts`, `DROP TABLE source_lines`, `DROP TABLE source_sessions`}},
		{173, []string{`DROP INDEX messages_failed`}},
		{174, []string{`DROP INDEX messages_prompts`}},
		{175, []string{`DROP INDEX imports_roots`}},
		{178, []string{`DROP INDEX sessions_project`}},
	} {
		if added.by >= version {
			statements = append(statements, added.undo...)
		}
	}
	db := testkit.Must(sql.Open("sqlite", path))(t)
	for _, q := range append(statements, then...) {
		testkit.Must(db.ExecContext(t.Context(), q))(t)
	}
	testkit.Check(t, db.Close())
}
