package analytics_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sessiond/db/migrations"
	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"
)

func TestSQLReads(t *testing.T) {
	storetest.OnFile(t)
	r := reports(t)
	tests := []struct {
		name, sql string
		columns   []string
		rows      [][]any
	}{
		{
			"a value of each type", `SELECT 1 AS i, 2.5 AS f, 'x' AS t, x'00ff' AS b, NULL AS n`,
			[]string{"i", "f", "t", "b", "n"},
			[][]any{{int64(1), 2.5, "x", []byte{0, 255}, nil}},
		},
		{"two columns of one name", `SELECT 1 AS id, 2 AS id`, []string{"id", "id"}, [][]any{{int64(1), int64(2)}}},
		{"a column without a name of its own", `SELECT COUNT(*) FROM sessions`, []string{"COUNT(*)"}, [][]any{{int64(5)}}},
		{"no rows", `SELECT id FROM sessions WHERE 0`, []string{"id"}, [][]any{}},
		{
			"in the order that was asked for", `SELECT id FROM messages ORDER BY id DESC LIMIT 3`,
			[]string{"id"},
			[][]any{{int64(16)}, {int64(15)}, {int64(14)}},
		},
		{"an infinite number", `SELECT 9e999 AS x, -9e999 AS y`, []string{"x", "y"}, [][]any{{"+Inf", "-Inf"}}},
		{"with", `WITH x(a) AS (VALUES (1), (2)) SELECT SUM(a) AS s FROM x`, []string{"s"}, [][]any{{int64(3)}}},
		{"values", `VALUES (1, 'a'), (2, 'b')`, []string{"column1", "column2"}, [][]any{{int64(1), "a"}, {int64(2), "b"}}},
		{"semicolons and comments around it", "-- ;\n;; SELECT ';' AS x /* ; */ ; -- end; really\n;", nil, nil},
		{
			"semicolons and comments behind it",
			"SELECT ';' AS \"a;b\", [x;y] FROM (SELECT 1 AS [x;y]) /* ; */ ; -- end; really\n;",
			[]string{"a;b", "x;y"},
			[][]any{{";", int64(1)}},
		},
		{"a comment without an end of line", "SELECT 1 AS x -- that is all", []string{"x"}, [][]any{{int64(1)}}},
		{"a comment without an end", "SELECT 1 AS x /* that is all", []string{"x"}, [][]any{{int64(1)}}},
		{"quotes in quotes", `SELECT 'it''s; ok' AS x`, []string{"x"}, [][]any{{"it's; ok"}}},
		{
			"a parameter that is not set", `SELECT COALESCE(:limit, 20) AS x, @y AS y, $z AS z`,
			[]string{"x", "y", "z"},
			[][]any{{int64(20), nil, nil}},
		},
		{
			"a word that writes, in a string", `SELECT 'DROP TABLE sessions' AS x`,
			[]string{"x"},
			[][]any{{"DROP TABLE sessions"}},
		},
		{
			"describing a table", `SELECT name FROM pragma_table_info('marks') LIMIT 2`,
			[]string{"name"},
			[][]any{{"session_id"}, {"message_id"}},
		},
		{"a pragma that describes", `PRAGMA encoding`, []string{"encoding"}, [][]any{{"UTF-8"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := r.SQL(t.Context(), tt.sql, analytics.Limits{})
			if tt.columns == nil {
				if session.CodeOf(err) != session.Invalid {
					t.Fatalf("got %v", err)
				}
				return
			}
			testkit.Check(t, err)
			testkit.Equal(t, analytics.Result{Columns: tt.columns, Rows: tt.rows}, res)
			if _, err := json.Marshal(res); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSQLRejects(t *testing.T) {
	storetest.OnFile(t)
	r := reports(t)
	tests := []struct{ name, sql, says string }{
		{"nothing", "", "the SQL is empty"},
		{"a comment alone", "-- SELECT 1\n/* SELECT 2 */", "the SQL is empty"},
		{"two statements", "SELECT 1;\nSELECT 2", "a second one begins at line 2, column 1"},
		{"two statements, hidden", "SELECT 1; /* x */ ;DROP TABLE parts", "only one statement is allowed"},
		{"insert", "INSERT INTO marks VALUES (1)", "INSERT is not allowed"},
		{"update, behind a comment", "/* SELECT */ update sessions SET title = ''", "UPDATE is not allowed"},
		{"delete", "DELETE FROM events", "DELETE is not allowed"},
		{
			"delete behind with", "WITH x(a) AS (SELECT ')') DELETE FROM events WHERE id IN (SELECT a FROM x)",
			"DELETE is not allowed",
		},
		{"an explained delete", "EXPLAIN DELETE FROM events", "DELETE is not allowed"},
		{"attach", "ATTACH '/tmp/other.db' AS other", "ATTACH is not allowed"},
		{"vacuum into", "VACUUM INTO '/tmp/copy.db'", "VACUUM is not allowed"},
		{"a temporary table", "CREATE TEMP TABLE x AS SELECT 1", "CREATE is not allowed"},
		{"begin", "BEGIN IMMEDIATE", "BEGIN is not allowed"},
		{"a pragma that writes", "PRAGMA journal_mode = DELETE", "this PRAGMA is not allowed"},
		{"a pragma that opens writing", "PRAGMA query_only(0)", "this PRAGMA is not allowed"},
		{"an explained pragma, which takes effect", "EXPLAIN PRAGMA query_only = 0", "cannot be explained"},
		{"a pragma that reads, with a value", "PRAGMA user_version = 7", "this PRAGMA is not allowed"},
		{"another schema's", "PRAGMA main.user_version = 7", "this PRAGMA is not allowed"},
		{"no SQL", "sessions please", `begins with "sessions"`},
		{"a misspelt keyword", "SELECT *\nFORM sessions", "near \"FORM\": syntax error at line 2, column 1"},
		{
			"a misspelt keyword, its word used before", "SELECT sessions.id FROM sessions\nWHERE sessions sessions",
			"syntax error at line 2, column 16",
		},
		{"an unknown column", "SELECT id,\n  größe, titel FROM sessions", "no such column: größe at line 2, column 3"},
		{"an unknown column after umlauts", "SELECT 'ü', titel FROM sessions", "no such column: titel at line 1, column 13"},
		{"an unknown table", "SELECT 1 FROM sesions", "no such table: sesions at line 1, column 15"},
		{"an unknown function", "SELECT string_aggr(id) FROM sessions", "no such function: string_aggr at line 1, column 8"},
		{"an unknown column of a table", "SELECT s.titel FROM sessions s", "no such column: s.titel at line 1, column 10"},
		{"no end", "SELECT (1 + ", "incomplete input"},
		{"an open quote", "SELECT 'x", `unrecognized token`},
		{"a parenthesis too many", "SELECT 1) UNION SELECT (2", `near ")": syntax error at line 1, column 9`},
		{"a parameter without a name", "SELECT ?", "has no name"},
		{"a NUL", "SELECT 1\x00; DROP TABLE parts", "has a NUL at line 1, column 9"},
		{"a huge value", "SELECT length(zeroblob(1000000000)), length(randomblob(1000000000))", "over 1 MiB"},
		{"a hundred large values", "SELECT zeroblob(1000000)" + strings.Repeat(", zeroblob(1000000)", 99), "over 1 MiB"},
		{"too many columns", "SELECT 1" + strings.Repeat(", 1", 100), "too many columns"},
		{"a long text", "SELECT '" + strings.Repeat("x", 100_000) + "'", "too long"},
		{"a list of many values", "SELECT 1 IN (1" + strings.Repeat(",1", 40_000) + ")", "too complex"},
		{"a limit that is no number", "SELECT 1 LIMIT 'x'", "a limit must be a whole number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := r.SQL(t.Context(), tt.sql, analytics.Limits{})
			if session.CodeOf(err) != session.Invalid || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("got %v, %s: %v", res, session.CodeOf(err), err)
			}
		})
	}
}

// What the words let through, the connection refuses.
func TestConnectionsAreReadOnly(t *testing.T) {
	path := database(t, "testdata/fixture.sql")
	db := open(t, path, "rw")
	db.SetMaxOpenConns(1)
	testkit.Must(analytics.New(db, nil).SQL(t.Context(), "SELECT 1", analytics.Limits{}))(t)
	_, err := db.ExecContext(t.Context(), "DELETE FROM events")
	if err == nil {
		t.Error("a connection that ran a query can write")
	}
}

func TestRowsAreLimited(t *testing.T) {
	storetest.OnFile(t)
	r := reports(t)
	numbers := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) SELECT i FROM n"
	tests := []struct {
		name      string
		made      int
		limit     int
		rows      int
		truncated bool
	}{
		{"fewer", 4, 5, 4, false},
		{"just as many", 5, 5, 5, false},
		{"more", 6, 5, 5, true},
		{"the default", 2000, 0, 1000, true},
		{"never over the most", 100_001, 1 << 40, 100_000, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := r.SQL(t.Context(), fmt.Sprintf(numbers, tt.made), analytics.Limits{Rows: tt.limit, Time: time.Minute})
			if err != nil || len(res.Rows) != tt.rows || res.Truncated != tt.truncated {
				t.Errorf("%d rows, truncated %t, %v", len(res.Rows), res.Truncated, err)
			}
		})
	}
	t.Run("bytes", func(t *testing.T) {
		res, err := r.SQL(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30) SELECT zeroblob(1000000) FROM n`, analytics.Limits{Time: time.Minute})
		if err != nil || !res.Truncated || len(res.Rows) > 18 {
			t.Errorf("%d rows of 1 MB, truncated %t, %v", len(res.Rows), res.Truncated, err)
		}
	})
}

// endless gives its first row at once and the next one never.
const endless = `SELECT 0 UNION ALL SELECT COUNT(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)`

func TestTimeIsLimited(t *testing.T) {
	source := url.URL{Scheme: "file", Path: database(t, "testdata/fixture.sql"), RawQuery: "mode=ro"}
	db := testkit.Must(sql.Open("sqlite", source.String()))(t)
	defer db.Close()
	db.SetMaxOpenConns(1) // a connection that is not given back is missed by the next query
	r := analytics.New(db, nil)
	testkit.Must(r.SQL(t.Context(), "SELECT 1", analytics.Limits{Time: time.Minute}))(t)
	for range 2 {
		_, err := r.SQL(t.Context(), endless, analytics.Limits{Time: 250 * time.Millisecond})
		if session.CodeOf(err) != session.Invalid || !strings.Contains(fmt.Sprint(err), "stopped after 250ms") {
			t.Errorf("got %v", err)
		}
	}
	res, err := r.SQL(t.Context(), "SELECT 1", analytics.Limits{})
	if err != nil || len(res.Rows) != 1 {
		t.Errorf("the connection is not free: %v", err)
	}
}

func TestCancelledQueryFreesItsConnection(t *testing.T) {
	db := open(t, database(t, "testdata/fixture.sql"), "ro")
	r := analytics.New(db, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for range 2 { // as many as run at once
		go func() {
			_, err := r.SQL(ctx, endless, analytics.Limits{Time: time.Hour})
			done <- err
		}()
	}
	for db.Stats().InUse < 2 {
		runtime.Gosched()
	}
	t.Run("a third one waits and gives up", func(t *testing.T) {
		if _, err := r.SQL(t.Context(), "SELECT 1",
			analytics.Limits{Time: time.Millisecond}); session.CodeOf(err) != session.Busy {
			t.Errorf("got %v", err)
		}
	})
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := r.SQL(t.Context(), "SELECT 1", analytics.Limits{}); err != nil {
		t.Error(err)
	}
	if n := db.Stats().InUse; n > 0 {
		t.Errorf("%d connections are still in use", n)
	}
}

// database makes a file by the migrations, puts the SQL of a file in it and gives its path.
func database(t testing.TB, fixture string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, "rwc")
	provider := testkit.Must(goose.NewProvider(goose.DialectSQLite3, db, migrations.FS))(t)
	testkit.Must(provider.Up(t.Context()))(t)
	text := testkit.Must(os.ReadFile(fixture))(t)
	testkit.Must(db.ExecContext(t.Context(), string(text)))(t)
	testkit.Must(db.ExecContext(t.Context(), `PRAGMA application_id = 0x73657331`))(t) // as store.Open marks its files
	testkit.Check(t, db.Close())
	return path
}

func open(t testing.TB, path, mode string) *sql.DB {
	t.Helper()
	source := url.URL{Scheme: "file", Path: path, RawQuery: "mode=" + mode}
	db := testkit.Must(sql.Open("sqlite", source.String()))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// reports opens the small fixture for reading, on PostgreSQL where tests run on it.
func reports(t testing.TB) *analytics.Reports {
	t.Helper()
	if storetest.OnPostgres() {
		return onPostgres(t, nil)
	}
	return analytics.New(open(t, database(t, "testdata/fixture.sql"), "ro"), time.UTC)
}

// sqlite3 gives the path of the command that people have on their hosts.
func sqlite3(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("sqlite3 is not installed, so nothing is shown about it")
	}
	return path
}
