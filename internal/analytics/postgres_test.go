package analytics_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/queries"
)

// needsPostgres skips a test where no server is named.
func needsPostgres(t testing.TB) {
	t.Helper()
	if !storetest.OnPostgres() {
		t.Skip("it needs PostgreSQL, and " + storetest.Postgres + " names no server")
	}
}

// postgres copies the small fixture to a new database on PostgreSQL and returns its address.
func postgres(t testing.TB) string {
	t.Helper()
	from := testkit.Must(store.Open(t.Context(), database(t, "testdata/fixture.sql"), store.Options{}))(t)
	address := storetest.New(t, filepath.Join(t.TempDir(), "unused"))
	to := testkit.Must(store.Open(t.Context(), address, store.Options{}))(t)
	testkit.Check(t, from.CopyTo(t.Context(), to, func(string, int64) {}))
	testkit.Check(t, to.Close())
	testkit.Check(t, from.Close())
	return address
}

// onPostgres opens the small fixture on PostgreSQL. change may alter how; nil: SQL runs as a role that can
// only read.
func onPostgres(t testing.TB, change func(*store.Options)) *analytics.Reports {
	t.Helper()
	address := postgres(t)
	opt := store.Options{ReadOnly: true, SQL: storetest.ReaderOf(t, address)}
	if change != nil {
		change(&opt)
	}
	s := testkit.Must(store.Open(t.Context(), address, opt))(t)
	t.Cleanup(func() { s.Close() })
	return analytics.New(s.Reader(), time.UTC).WithSQL(s.SQLReader())
}

// asJSON returns a result as the API gives it. Texts that are JSON lose the spaces that PostgreSQL writes
// between their parts.
func asJSON(t *testing.T, res analytics.Result) string {
	t.Helper()
	for _, row := range res.Rows {
		for i, v := range row {
			var document any
			if text, ok := v.(string); ok && strings.ContainsAny(text[:min(len(text), 1)], "[{") &&
				json.Unmarshal([]byte(text), &document) == nil {
				row[i] = string(testkit.Must(json.Marshal(document))(t))
			}
		}
	}
	return string(testkit.Must(json.MarshalIndent(res, "", " "))(t))
}

func TestEnginesAnswerTheSame(t *testing.T) {
	needsPostgres(t)
	file := analytics.New(open(t, database(t, "testdata/fixture.sql"), "ro"), time.UTC)
	server := onPostgres(t, nil)
	compare := func(name string, params map[string]string) {
		t.Run(fmt.Sprint(name, params), func(t *testing.T) {
			want := testkit.Must(file.Run(t.Context(), name, params))(t)
			got := testkit.Must(server.Run(t.Context(), name, params))(t)
			testkit.Equal(t, asJSON(t, want), asJSON(t, got))
		})
	}
	for _, q := range all(t) {
		compare(q.Name, fixtureParams(q.Name))
		compare(q.Name, nil)
	}
	for _, tt := range filterTests() {
		compare(tt.query, tt.params)
	}
}

// A query and its twin for PostgreSQL have one head: what it answers, and its parameters.
func TestTwinsHaveOneHead(t *testing.T) {
	files := testkit.Must(fs.Glob(queries.FS, "postgres/*.sql"))(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		want := testkit.Must(queries.Text(name, false))(t)
		got := testkit.Must(queries.Text(name, true))(t)
		if want == got {
			t.Errorf("%s needs no twin", name)
		}
		testkit.Equal(t, comments(want), comments(got))
	}
	if len(files) == 0 {
		t.Error("no file")
	}
}

// comments returns the comments that a text begins with.
func comments(text string) (head []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		head = append(head, line)
	}
	return head
}

// psql runs each file with its parameters set to NULL, and finds as many rows.
func TestPsqlRunsEveryQuery(t *testing.T) {
	needsPostgres(t)
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed, so nothing is shown about it")
	}
	address := postgres(t)
	s := testkit.Must(store.Open(t.Context(), address, store.Options{ReadOnly: true}))(t)
	defer s.Close()
	r := analytics.New(s.Reader(), time.UTC)
	for _, q := range all(t) {
		t.Run(q.Name, func(t *testing.T) {
			args := []string{"--no-psqlrc", "--csv", "--tuples-only", "-v", "ON_ERROR_STOP=1", "-f", "-"}
			for _, p := range q.Params {
				value := "NULL"
				if day := fixtureParams(q.Name)[p.Name]; day != "" {
					value = "'" + day + "'"
				}
				args = append(args, "-v", p.Name+"="+value)
			}
			cmd := exec.CommandContext(t.Context(), psql, append(args, storetest.ReaderOf(t, address))...)
			cmd.Stdin = strings.NewReader(q.SQL)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || stderr.Len() > 0 {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			rows := testkit.Must(csv.NewReader(bytes.NewReader(out)).ReadAll())(t)
			res := testkit.Must(r.Run(t.Context(), q.Name, fixtureParams(q.Name)))(t)
			if len(rows) != len(res.Rows) || len(rows) == 0 || len(rows[0]) != len(res.Columns) {
				t.Errorf("psql has %v, not %v", rows, res.Rows)
			}
		})
	}
}

// A day begins in the zone of the configuration, also where PostgreSQL does not know its name.
func TestHoursAreOfTheZone(t *testing.T) {
	needsPostgres(t)
	address := postgres(t)
	s := testkit.Must(store.Open(t.Context(), address, store.Options{ReadOnly: true}))(t)
	defer s.Close()
	for zone, want := range map[*time.Location]string{
		time.UTC: "08", testkit.Must(time.LoadLocation("Asia/Kolkata"))(t): "01", time.FixedZone("x", -3*3600): "05",
		time.FixedZone("y", 14*3600): "00",
	} {
		res := testkit.Must(analytics.New(s.Reader(), zone).Run(t.Context(), "hours-of-activity", nil))(t)
		if res.Rows[0][0] != want {
			t.Errorf("in %s the first hour is %v, not %s", zone, res.Rows[0][0], want)
		}
	}
}

func TestSQLOnPostgresReads(t *testing.T) {
	needsPostgres(t)
	r := onPostgres(t, nil)
	tests := []struct {
		name, sql string
		columns   []string
		rows      [][]any
	}{
		{"a value of each type", `SELECT 1 AS i, 2.5 AS f, 'x' AS t, '\x00ff'::bytea AS b, NULL AS n, true AS y, 7::numeric AS d`, []string{"i", "f", "t", "b", "n", "y", "d"}, [][]any{{int64(1), 2.5, "x", []byte{0, 255}, nil, int64(1), int64(7)}}},
		{
			"two columns of one name", `SELECT 1 AS id, 2 AS id, 3 AS "id:1"`,
			[]string{"id", "id", "id:1"},
			[][]any{{int64(1), int64(2), int64(3)}},
		},
		{
			"a time", `SELECT created_at FROM sessions ORDER BY id LIMIT 1`,
			[]string{"created_at"},
			[][]any{{"2026-02-09 09:00:00.000"}},
		},
		{"a time compared with a text is in UTC", `SELECT COUNT(*) AS n FROM sessions WHERE created_at = '2026-02-09 09:00:00.000'`, []string{"n"}, [][]any{{int64(1)}}},
		{"JSON", `SELECT metadata, metadata ->> 'user_id' AS u FROM sessions ORDER BY id LIMIT 1`, []string{"metadata", "u"}, [][]any{{`{"user_id":"user_123"}`, "user_123"}}},
		{
			"other types are texts", `SELECT ARRAY[1,2] AS a, INTERVAL '90 min' AS i`,
			[]string{"a", "i"},
			[][]any{{"{1,2}", "01:30:00"}},
		},
		{"no rows", `SELECT id FROM sessions WHERE false`, []string{"id"}, [][]any{}},
		{
			"an infinite number", `SELECT 'infinity'::float8 AS x, 'NaN'::numeric AS y`,
			[]string{"x", "y"},
			[][]any{{"+Inf", "NaN"}},
		},
		{
			"with, values, table", `WITH x(a) AS (VALUES (1), (2)) SELECT SUM(a) AS s FROM x`,
			[]string{"s"},
			[][]any{{int64(3)}},
		},
		{"show", `SHOW transaction_read_only`, []string{"transaction_read_only"}, [][]any{{"on"}}},
		{
			"as PostgreSQL writes it",
			"-- a comment\n" +
				";SELECT $$a ? b$$ AS x, 'A' LIKE 'a' AS y, metadata::jsonb ? 'user_id' AS z FROM sessions ORDER BY id LIMIT 1; " +
				"-- end",
			[]string{"x", "y", "z"},
			[][]any{{"a ? b", int64(0), int64(1)}},
		},
		{
			"a word that writes, in a string", `SELECT 'DROP TABLE sessions' AS x`,
			[]string{"x"},
			[][]any{{"DROP TABLE sessions"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := testkit.Must(r.SQL(t.Context(), tt.sql, analytics.Limits{}))(t)
			testkit.Equal(t, analytics.Result{Columns: tt.columns, Rows: tt.rows}, res)
		})
	}
	res := testkit.Must(r.SQL(t.Context(), `EXPLAIN SELECT * FROM messages`, analytics.Limits{}))(t)
	if len(res.Rows) == 0 {
		t.Error("no plan")
	}
}

func TestSQLOnPostgresRejects(t *testing.T) {
	needsPostgres(t)
	r := onPostgres(t, nil)
	tests := []struct{ name, sql, says string }{
		{"nothing", " -- SELECT 1\n;", "the SQL is empty"},
		{"two statements", "SELECT 1; SELECT 2", "only one statement is allowed"},
		{
			"a second statement that ends the transaction", "SELECT 1; COMMIT; DROP TABLE parts",
			"only one statement is allowed",
		},
		{"insert", "INSERT INTO marks VALUES (1)", `begins with "INSERT"`},
		{"copy", "COPY messages TO STDOUT", `begins with "COPY"`},
		{"do", "DO $$ BEGIN DELETE FROM events; END $$", `begins with "DO"`},
		{"set", "SET statement_timeout = 0", `begins with "SET"`},
		{"delete behind with", "WITH x AS (DELETE FROM events RETURNING 1) SELECT * FROM x", "in a read-only transaction"},
		{
			"an explained delete that runs", "EXPLAIN ANALYZE DELETE FROM events",
			"cannot execute DELETE in a read-only transaction",
		},
		{"a table of a SELECT", "SELECT 1 AS x INTO copy_of_it", "cannot execute SELECT INTO in a read-only transaction"},
		{"a lock of rows", "SELECT * FROM sessions FOR UPDATE", "read-only transaction"},
		{"a new large object", "SELECT lo_import('/etc/passwd')", "permission denied"},
		{"a file of the server", "SELECT pg_read_file('/etc/passwd')", "permission denied for function pg_read_file"},
		{
			"writing from within a SELECT", "SELECT query_to_xml('DELETE FROM events', true, true, '')",
			"DELETE is not allowed",
		},
		{"becoming the owner", "SELECT set_config('role', 'postgres', false)", "permission denied to set role"},
		{
			"opening the transaction", "SELECT set_config('transaction_read_only', 'off', false)",
			"transaction read-write mode must be set before any query",
		},
		{"a misspelt keyword", "SELECT *\nFORM sessions", `syntax error at or near "FORM" at line 2, column 1`},
		{"an unknown column, after umlauts", "SELECT 'üü',\n  'ü', titel FROM sessions", `column "titel" does not exist at line 2, column 8. Perhaps you meant to reference the column "sessions.title"`},
		{"an unknown table", "SELECT 1 FROM sesions", `relation "sesions" does not exist at line 1, column 15`},
		{"an error of a value", "SELECT 1 / 0", "division by zero"},
		{"a type", "SELECT id + 'x' FROM messages", `invalid input syntax for type bigint: "x" at line 1, column 13`},
		{"a parameter", "SELECT $1::int", "$1"},
		{"a parameter of SQLite", "SELECT :limit", `syntax error at or near ":" at line 1, column 8`},
		{"a NUL", "SELECT 1\x00", "has a NUL at line 1, column 9"},
		{"no UTF-8", "SELECT '\xff'", "not valid UTF-8"},
		{"a huge value", "SELECT repeat('x', 200000000)", "over 1 MiB"},
		{"a huge value in a later row", "SELECT repeat('x', n) FROM (VALUES (1), (200000000)) AS v(n)", "over 1 MiB"},
		{"a long text", "SELECT '" + strings.Repeat("x", 100_000) + "'", "too long"},
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

func TestSQLOnPostgresHasLimits(t *testing.T) {
	needsPostgres(t)
	r := onPostgres(t, nil)
	for _, tt := range []struct {
		sql         string
		limit, rows int
		truncated   bool
	}{
		{"SELECT generate_series(1, 4)", 5, 4, false},
		{"SELECT generate_series(1, 5)", 5, 5, false},
		{"SELECT generate_series(1, 6)", 5, 5, true},
		{"SELECT generate_series(1, 1000000000000)", 0, 1000, true}, // the server is stopped, not waited for
		{"SELECT generate_series(1, 1000000000000), repeat('x', 1000000)", 0, 17, true},
	} {
		res, err := r.SQL(t.Context(), tt.sql, analytics.Limits{Rows: tt.limit, Time: time.Minute})
		if err != nil || len(res.Rows) != tt.rows || res.Truncated != tt.truncated {
			t.Errorf("%s: %d rows, truncated %t, %v", tt.sql, len(res.Rows), res.Truncated, err)
		}
	}
	for _, sleep := range []string{
		"SELECT pg_sleep(3600)",
		"SELECT set_config('statement_timeout', '0', false), pg_sleep(3600)",
	} {
		_, err := r.SQL(t.Context(), sleep, analytics.Limits{Time: 250 * time.Millisecond})
		if session.CodeOf(err) != session.Invalid || !strings.Contains(fmt.Sprint(err), "stopped after 250ms") {
			t.Errorf("%s: %v", sleep, err)
		}
	}
	running(t, r, "pg_sleep", 0)
}

// All of a history begins before PostgreSQL's first year in a zone east of UTC, and ends after SQLite's last one west
// of it.
func TestStatsOfAllTimesInEveryZone(t *testing.T) {
	needsPostgres(t)
	s := testkit.Must(store.Open(t.Context(), postgres(t), store.Options{ReadOnly: true}))(t)
	defer s.Close()
	for _, hours := range []int{-12, 0, 1, 14} {
		r := analytics.New(s.Reader(), time.FixedZone("x", hours*3600))
		for _, f := range []analytics.Filter{{}, {Since: "0001-01-01", Until: "9999-12-31"}} {
			testkit.Must(r.Stats(t.Context(), f))(t)
		}
	}
}

// running waits until so many statements with a word run on the server.
func running(t *testing.T, r *analytics.Reports, word string, want int) {
	t.Helper()
	for {
		res := testkit.Must(r.SQL(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database() AND query LIKE '%`+word+`%'`, analytics.Limits{Time: time.Minute}))(t)
		if res.Rows[0][0] == int64(want) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A statement ends when its client goes, and none leaves anything to the next one.
func TestSQLOnPostgresEndsWithItsClient(t *testing.T) {
	needsPostgres(t)
	r := onPostgres(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.SQL(ctx, "SELECT pg_sleep(3600)", analytics.Limits{Time: time.Hour})
		done <- err
	}()
	running(t, r, "pg_sleep", 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	running(t, r, "pg_sleep", 0)
	testkit.Must(r.SQL(t.Context(), "SELECT pg_advisory_lock(7), set_config('search_path', 'x', false)",
		analytics.Limits{}))(t)
	for _, none := range []string{`SELECT 1 FROM pg_locks WHERE locktype = 'advisory'`, `SELECT 1 FROM sessions WHERE current_setting('search_path') = 'x'`} {
		for n := 1; n > 0; {
			n = len(testkit.Must(r.SQL(t.Context(), none, analytics.Limits{}))(t).Rows)
		}
	}
}

// Only a role that can do nothing but read runs a caller's SQL.
func TestSQLOnPostgresNeedsAReadingRole(t *testing.T) {
	needsPostgres(t)
	address := postgres(t)
	admin := testkit.Must(sql.Open("pgx", address))(t)
	defer admin.Close()
	do := func(query string) {
		t.Helper()
		testkit.Must(admin.ExecContext(t.Context(), query))(t)
	}
	suffix := fmt.Sprint(time.Now().UnixNano())
	role := "sessiond_test_" + suffix
	do(`CREATE ROLE ` + role + ` LOGIN`)
	do(`CREATE ROLE ` + role + `_group`)
	t.Cleanup(func() {
		for _, name := range []string{role, role + "_group"} {
			admin, err := sql.Open("pgx", address)
			if err == nil {
				_, err = admin.Exec(`DROP OWNED BY ` + name + `; DROP ROLE ` + name)
			}
			if err != nil {
				t.Error(err)
			}
			admin.Close()
		}
	})
	u := testkit.Must(url.Parse(address))(t)
	u.User = url.User(role)
	try := func(sqlAddress, says string) {
		t.Helper()
		s := testkit.Must(store.Open(t.Context(), address, store.Options{ReadOnly: true, SQL: sqlAddress}))(t)
		defer s.Close()
		_, err := analytics.New(s.Reader(), time.UTC).WithSQL(s.SQLReader()).SQL(t.Context(), "SELECT COUNT(*) FROM messages",
			analytics.Limits{})
		if says == "" && err != nil || says != "" && !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%v, not %q", err, says)
		}
	}
	advice := "GRANT pg_read_all_data TO sessiond_sql"
	try("", `the role "postgres" can do more than read: run `+"`CREATE ROLE")
	try("", advice)
	try(u.String(), "permission denied for table messages")
	do(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ` + role)
	try(u.String(), "")
	do(`GRANT UPDATE (title) ON sessions TO ` + role)
	try(u.String(), `the role "`+role+`" can do more than read`)
	do(`REVOKE UPDATE (title) ON sessions FROM ` + role)
	try(u.String(), "")
	do(`ALTER ROLE ` + role + ` NOINHERIT; GRANT DELETE ON events TO ` + role + `_group; GRANT ` + role + `_group TO ` +
		role)
	try(u.String(), `the role "`+role+`" is a member of "`+role+`_group", which can do more than read`)
	do(`REVOKE ` + role + `_group FROM ` + role + `; GRANT pg_read_server_files TO ` + role)
	try(u.String(), `is a member of "pg_read_server_files"`)
	do(`REVOKE pg_read_server_files FROM ` + role)
	u.Path = "/postgres"
	try(u.String(), "finds no table messages")
	u.Path = "/none_" + suffix
	try(u.String(), "the database for SQL (sql_db) cannot be reached, or refuses its user")
}
