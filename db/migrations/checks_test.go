package migrations_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"sessiond/db/migrations"
)

const beforeCheapChecks, cheapChecks = 9, 10

// opened opens a file by one connection and migrates it up to a version.
func opened(t *testing.T, path string, version int64) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(1)&_pragma=cache_size(4)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	migrateTo(t, db, version)
	return db
}

func migrateTo(t *testing.T, db *sql.DB, version int64) {
	t.Helper()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// rows are one row of each table whose checks were spelt out: columns and values as SQL has them.
func rows() map[string]map[string]string {
	return map[string]map[string]string{
		"sessions": {"id": "'20260101_%03d'", "day": "'2026-01-01'", "created_at": "''", "updated_at": "''", "active_at": "''"},
		"messages": {
			"id": "%d", "session_id": "'s'", "seq": "%d", "depth": "0", "origin": "'person'", "tokens": "1", "path_tokens": "1",
			"day": "'2026-01-01'", "created_at": "''",
		},
		"parts":         {"id": "(%d << 10)", "message_id": "%[1]d", "idx": "0", "kind": "'text'", "tokens": "1"},
		"calls":         {"purpose": "'chat'", "day": "'2026-01-01'", "created_at": "''"},
		"touched_files": {"path": "'/f'", "message_id": "%d", "op": "'read'", "session_id": "'s'"},
	}
}

func insert(table string, row map[string]string, number int) string {
	columns, values := make([]string, 0, len(row)), make([]string, 0, len(row))
	for column, value := range row {
		if strings.Contains(value, "%") {
			value = strings.Split(fmt.Sprintf(value, number), "%!(EXTRA")[0]
		}
		columns, values = append(columns, column), append(values, value)
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(columns, ", "), strings.Join(values, ", "))
}

func exec1(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// fill puts a row into each table, large enough in all that a migration cannot stay in a small cache.
func fill(t *testing.T, db *sql.DB) {
	t.Helper()
	exec1(t, db, `INSERT INTO sessions (id, day, created_at, updated_at, active_at) VALUES ('s', '2026-01-01', '', '', '')`)
	for n := 1; n <= 200; n++ {
		for _, table := range []string{"messages", "parts", "calls", "touched_files"} {
			exec1(t, db, insert(table, rows()[table], n))
		}
	}
}

func column(t *testing.T, db *sql.DB, query string, args ...any) (values []string) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	for found.Next() {
		var value string
		if err := found.Scan(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

func contents(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.Join(column(t, db, `SELECT id || seq || origin FROM messages UNION ALL SELECT id || kind FROM parts
		UNION ALL SELECT id || purpose FROM calls UNION ALL SELECT path || message_id || op FROM touched_files UNION ALL SELECT id || kind FROM sessions`), "\n")
}

func mustBeWhole(t *testing.T, db *sql.DB) {
	t.Helper()
	if found := column(t, db, `PRAGMA integrity_check`); len(found) != 1 || found[0] != "ok" {
		t.Errorf("integrity: %v", found)
	}
}

// lists gives the values that a table's text allows, by column, for lists of three and more.
func lists(text string) map[string][]string {
	found := map[string][]string{}
	for _, m := range regexp.MustCompile(`CHECK \((\w+) IN \(([^)]*)\)\)`).FindAllStringSubmatch(text, -1) {
		if values := strings.Split(m[2], ", "); len(values) > 2 {
			found[m[1]] = values
		}
	}
	return found
}

func textOf(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	return strings.Join(column(t, db, `SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?`, table), "")
}

func TestSpeltOutChecksTakeAndRefuseWhatTheListsDid(t *testing.T) {
	lists9, lists10 := opened(t, filepath.Join(t.TempDir(), "lists.db"), beforeCheapChecks), opened(t, filepath.Join(t.TempDir(), "spelt.db"), beforeCheapChecks)
	for _, db := range []*sql.DB{lists9, lists10} {
		exec1(t, db, `INSERT INTO sessions (id, day, created_at, updated_at, active_at) VALUES ('s', '2026-01-01', '', '', '')`)
	}
	migrateTo(t, lists10, cheapChecks)
	number := 0
	for _, table := range []string{"sessions", "messages", "parts", "calls", "touched_files"} {
		of := lists(textOf(t, lists9, table))
		if len(of) == 0 {
			t.Fatalf("%s has no list to compare with", table)
		}
		if left := lists(textOf(t, lists10, table)); len(left) > 0 {
			t.Errorf("%s still has the lists %v", table, left)
		}
		for name, allowed := range of {
			taken := 0
			for _, value := range tries(allowed) {
				row := rows()[table]
				row[name] = value
				number++
				query := insert(table, row, number)
				_, before := lists9.ExecContext(t.Context(), query)
				_, after := lists10.ExecContext(t.Context(), query)
				if (before == nil) != (after == nil) {
					t.Errorf("%s.%s = %s: %v before, %v after", table, name, value, before, after)
				}
				if slices.Contains(allowed, value) != (after == nil) {
					t.Errorf("%s.%s = %s: %v", table, name, value, after)
				}
				if after == nil {
					taken++
				}
			}
			if taken != len(allowed) {
				t.Errorf("%s.%s took %d values of %d", table, name, taken, len(allowed))
			}
		}
	}
}

// tries are all allowed values, and some that resemble them, as SQL has them.
func tries(allowed []string) []string {
	values := append([]string{"'wrong'", "NULL", "1", "0.5", "x''", "x'00'", "' '", "char(0)"}, allowed...)
	for _, value := range allowed {
		if value != "''" {
			values = append(values, "upper("+value+")", value+" || ' '", "' ' || "+value, "substr("+value+", 2)", value+" || char(0)", "CAST("+value+" AS BLOB)")
		}
	}
	if !slices.Contains(allowed, "''") {
		values = append(values, "''")
	}
	return values
}

func TestSpellingOutChecksKeepsEveryRowAndEverythingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := opened(t, path, beforeCheapChecks)
	fill(t, db)
	before := contents(t, db)
	const others = `SELECT type || name || COALESCE(sql, '') FROM sqlite_schema WHERE type <> 'table' ORDER BY type, name`
	schema := column(t, db, others)
	migrateTo(t, db, cheapChecks)
	if contents(t, db) != before {
		t.Error("rows changed")
	}
	if got := column(t, db, others); !slices.Equal(got, schema) {
		t.Errorf("indexes, triggers and views:\n%s\nwere\n%s", got, schema)
	}
	mustBeWhole(t, db)
	if _, err := db.ExecContext(t.Context(), `UPDATE sqlite_schema SET sql = sql`); err == nil {
		t.Error("the connection may still write the schema")
	}
	fresh := opened(t, filepath.Join(t.TempDir(), "fresh.db"), cheapChecks)
	const all = `SELECT name || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name`
	if a, b := column(t, db, all), column(t, fresh, all); !slices.Equal(a, b) {
		t.Errorf("%s\na new file has\n%s", a, b)
	}
	db.Close()
	mustPleaseTheShell(t, path)
}

// mustPleaseTheShell reads and writes the file with another SQLite, where there is one.
func mustPleaseTheShell(t *testing.T, path string) {
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Log("no sqlite3 shell")
		return
	}
	run := func(query string) string {
		out, err := exec.CommandContext(t.Context(), shell, path, query).CombinedOutput()
		return fmt.Sprint(strings.TrimSpace(string(out)), err)
	}
	if got := run(`PRAGMA integrity_check; SELECT COUNT(*) FROM messages`); got != "ok\n200<nil>" {
		t.Errorf("sqlite3: %s", got)
	}
	if got := run(insert("touched_files", map[string]string{"path": "'/g'", "message_id": "1", "op": "'made'", "session_id": "'s'"}, 0)); !strings.Contains(got, "CHECK constraint failed") {
		t.Errorf("sqlite3 took a wrong value: %s", got)
	}
	if got := run(insert("touched_files", map[string]string{"path": "'/g'", "message_id": "1", "op": "'edit'", "session_id": "'s'"}, 0)); got != "<nil>" {
		t.Errorf("sqlite3 did not take a right value: %s", got)
	}
}

// A process that dies between writing the pages and giving up the journal leaves both: here
// the journal as it is when the commit begins, and the file as it is behind it.
func TestAMigrationThatDiesInItsCommitIsAsIfItHadNotBegun(t *testing.T) {
	folder := t.TempDir()
	path, dead := filepath.Join(folder, "sessions.db"), filepath.Join(folder, "dead.db")
	db := opened(t, path, beforeCheapChecks)
	fill(t, db)
	before, text := contents(t, db), textOf(t, db, "messages")
	commits := 0
	atCommits(t, db, func() {
		commits++
		copyFile(t, path+"-journal", dead+"-journal")
	})
	migrateTo(t, db, cheapChecks)
	copyFile(t, path, dead)
	if commits != 1 {
		t.Fatalf("the migration took %d transactions", commits)
	}
	if textOf(t, db, "messages") == text {
		t.Fatal("the migration changed nothing")
	}

	again := opened(t, dead, beforeCheapChecks)
	if got := column(t, again, `SELECT MAX(version_id) FROM goose_db_version`); got[0] != fmt.Sprint(beforeCheapChecks) {
		t.Fatalf("version %s", got)
	}
	if textOf(t, again, "messages") != text || contents(t, again) != before {
		t.Error("something of the migration is left")
	}
	mustBeWhole(t, again)
	migrateTo(t, again, cheapChecks)
	if textOf(t, again, "messages") != textOf(t, db, "messages") || contents(t, again) != before {
		t.Error("migrating again does not give the same")
	}
	mustBeWhole(t, again)
}

func atCommits(t *testing.T, db *sql.DB, do func()) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Raw(func(c any) error {
		c.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 {
			do()
			return 0
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
