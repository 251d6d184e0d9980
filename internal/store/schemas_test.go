package store

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"sessiond/db/migrations"
	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

var update = flag.Bool("update", false, "write the databases of schemas that testdata lacks")

// saidBefore is what a database of any schema holds, written as its time would have.
const saidBefore = `
INSERT INTO store (id, epoch, created_at) VALUES (1, 'e', '2026-01-05 10:00:00.000');
INSERT INTO session_days (day, last) VALUES ('2026-01-05', 1);
INSERT INTO sessions (id, day, title, title_source, created_at, updated_at, active_at)
VALUES ('20260105_001', '2026-01-05', 'The old plan', 'given', '2026-01-05 10:00:00.000', '2026-01-05 10:00:00.000',
	'2026-01-05 10:00:00.000');`

const saidMessages = `
INSERT INTO messages (id, session_id, seq, parent_id, depth, role, origin, tokens, path_tokens, day, created_at)
VALUES (1, '20260105_001', 1, NULL, 1, 'user', 'person', 6, 6, '2026-01-05', '2026-01-05 10:00:00.000'),
	(2, '20260105_001', 2, 1, 2, 'assistant', 'model', 6, 12, '2026-01-05', '2026-01-05 10:00:00.000');
INSERT INTO parts (id, message_id, idx, kind, text, tokens)
VALUES (1 << 10, 1, 0, 'text', 'Where do we begin?', 6), (2 << 10, 2, 0, 'text', 'We read the old plan.', 6);
UPDATE sessions SET head_id = 2, last_seq = 2, message_count = 2, total_tokens = 12, context_tokens = 12;`

// A database of every schema since version 0.1.0 is brought up to date, loses nothing, and has a copy of itself as it
// was. The files are kept: a migration that was changed after it landed no longer fits them.
func TestMigrationFromEverySchema(t *testing.T) {
	onFile(t)
	fresh := openTest(t)
	newest := schemaOf(t, fresh.File())
	names := testkit.Must(migrations.FS.ReadDir("."))(t)
	tried := 0
	for _, name := range names {
		version, err := goose.NumericComponent(name.Name())
		if err != nil || name.IsDir() {
			continue
		}
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			kept := filepath.Join("testdata", "schemas", fmt.Sprintf("%05d.db.gz", version))
			if _, err := os.Stat(kept); err != nil && *update {
				keepSchema(t, kept, version)
			}
			tried++
			upgradeFrom(t, kept, version, newest)
		})
	}
	if tried < 19 {
		t.Errorf("only %d schemas were tried", tried)
	}
}

// upgradeFrom opens a copy of a kept database.
func upgradeFrom(t *testing.T, kept string, version int64, newest string) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	unpackSchema(t, kept, path)
	s := testkit.Must(Open(t.Context(), path, Options{Measure: measure}))(t)
	sess := testkit.Must(s.Session(t.Context(), "20260105_001"))(t)
	if sess.Title != "The old plan" {
		t.Errorf("the title is %q", sess.Title)
	}
	if version > 100 { // which had no messages yet
		msgs, _, err := s.Messages(t.Context(), sess.ID, MessagePage{})
		testkit.Check(t, err)
		if len(msgs) != 2 || msgs[1].Parts[0].Text != "We read the old plan." {
			t.Errorf("the messages are %+v", msgs)
		}
	}
	mustAppend(t, s, sess.ID, says(session.User, "And on we go."))
	testkit.Check(t, s.Close())
	if got := schemaOf(t, path); got != newest {
		t.Errorf("the schema is not that of a new file:\n%s\nnot\n%s", got, newest)
	}
	copies, _ := filepath.Glob(filepath.Join(engine.BackupDir(path), "before-schema-*.db"))
	migrated := strings.Contains(strings.Join(copies, " "), fmt.Sprintf("before-schema-%d-", version))
	if isNewest := version == newestVersion(t); isNewest == migrated || !isNewest && len(copies) != 1 {
		t.Fatalf("the copies of schema %d are %q", version, copies)
	}
	for _, copied := range copies {
		db := testkit.Must(sql.Open("sqlite", engine.DSN(copied, "ro")))(t)
		var verdict, title string
		var have int64
		testkit.Check(t, db.QueryRow(`SELECT (SELECT title FROM sessions), (SELECT MAX(version_id) FROM goose_db_version),
			(SELECT integrity_check FROM pragma_integrity_check)`).Scan(&title, &have, &verdict))
		testkit.Check(t, db.Close())
		if title != "The old plan" || have != version || verdict != "ok" {
			t.Errorf("the copy has %q in schema %d and is %s", title, have, verdict)
		}
	}
}

// unpackSchema writes a kept database to a path.
func unpackSchema(t *testing.T, kept, path string) {
	t.Helper()
	f, err := os.Open(kept)
	if err != nil {
		t.Fatalf("%v: `go test ./internal/store -run EverySchema -update` writes it", err)
	}
	defer f.Close() //nolint:errcheck // only read
	content := testkit.Must(io.ReadAll(testkit.Must(gzip.NewReader(f))(t)))(t)
	testkit.Check(t, os.WriteFile(path, content, 0o600))
}

// Databases in one folder share the folder of backups: each removes its own earlier copies alone.
func TestCopiesOfOtherDatabasesStay(t *testing.T) {
	onFile(t)
	folder := t.TempDir()
	kept := testkit.Must(filepath.Glob("testdata/schemas/*"))(t)
	copies := func() int {
		return len(testkit.Must(filepath.Glob(filepath.Join(folder, "backups", "before-schema-*.db")))(t))
	}
	for want, name := range []string{"a.db", "other.a.db", "a-b.db", "b.db"} {
		path := filepath.Join(folder, name)
		for range 2 { // the second copy of a database replaces its first
			unpackSchema(t, kept[0], path)
			testkit.Check(t, testkit.Must(Open(t.Context(), path, Options{Measure: measure}))(t).Close())
			testkit.Check(t, os.Remove(path))
			time.Sleep(2 * time.Millisecond) // the time is in the copy's name
		}
		if got := copies(); got != want+1 {
			t.Errorf("%d copies after %s, want %d", got, name, want+1)
		}
	}
}

// keepSchema writes a database of a schema as its time made it.
func keepSchema(t *testing.T, kept string, version int64) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := testkit.Must(sql.Open("sqlite", engine.DSN(path, "rwc")))(t)
	testkit.Must(db.Exec(`PRAGMA page_size = 2048; PRAGMA auto_vacuum = incremental; PRAGMA application_id = 1936028465`))(t)
	provider := testkit.Must(goose.NewProvider(goose.DialectSQLite3, db, migrations.FS))(t)
	testkit.Must(provider.UpTo(t.Context(), version))(t)
	testkit.Must(db.Exec(saidBefore))(t)
	if version > 100 {
		testkit.Must(db.Exec(saidMessages))(t)
	}
	testkit.Must(db.Exec(`VACUUM`))(t)
	testkit.Check(t, db.Close())
	var packed bytes.Buffer
	to := testkit.Must(gzip.NewWriterLevel(&packed, gzip.BestCompression))(t)
	testkit.Must(to.Write(testkit.Must(os.ReadFile(path))(t)))(t)
	testkit.Check(t, to.Close())
	testkit.Check(t, os.MkdirAll(filepath.Dir(kept), 0o755))
	testkit.Check(t, os.WriteFile(kept, packed.Bytes(), 0o644))
}

// schemaOf returns the statements of a database's tables, indexes, views and triggers.
func schemaOf(t *testing.T, path string) string {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", engine.DSN(path, "ro")))(t)
	defer db.Close() //nolint:errcheck // only read
	var all string
	testkit.Check(t, db.QueryRow(`SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema
		WHERE sql IS NOT NULL ORDER BY type, name)`).Scan(&all))
	return all
}

func newestVersion(t *testing.T) int64 {
	t.Helper()
	var newest int64
	for _, name := range testkit.Must(migrations.FS.ReadDir("."))(t) {
		if version, err := goose.NumericComponent(name.Name()); err == nil {
			newest = max(newest, version)
		}
	}
	return newest
}
