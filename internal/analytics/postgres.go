package analytics

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"sessiond/internal/session"
)

// runPostgres runs a named query. Its days and hours are those of the database's zone.
func (r *Reports) runPostgres(ctx context.Context, s *statement, values map[string]string,
	limits Limits,
) (res Result, err error) {
	err = r.withConn(ctx, r.db, limits.Time, func(ctx context.Context, conn *sql.Conn) error {
		err := inSnapshot(ctx, conn, func() error {
			if _, err := conn.ExecContext(ctx, `SELECT set_config('timezone', ?, true)`, postgresZone(r.zone)); err != nil {
				return err
			}
			res, err = runQuery(ctx, conn, limited(s.typed(), limits.Rows), s.args(values), limits.Rows)
			return err
		})
		return explainPostgres("", limits, err)
	})
	return res, err
}

// typed returns the statement with a type for each parameter, which PostgreSQL cannot always infer.
func (s *statement) typed() string {
	var b strings.Builder
	at := s.tokens[0].start
	for _, t := range s.tokens {
		if t.kind != param {
			continue
		}
		name, as := s.text[t.start:t.end], "TEXT"
		if isWhole(name[1:]) {
			as = "BIGINT"
		}
		fmt.Fprintf(&b, "%sCAST(%s AS %s)", s.text[at:t.start], name, as)
		at = t.end
	}
	return b.String() + s.text[at:]
}

// postgresZone returns a zone's name for PostgreSQL, or its offset of now where the name is not known.
func postgresZone(zone *time.Location) string {
	names := []string{zone.String()}
	if zone == time.Local {
		link, _ := os.Readlink("/etc/localtime")
		_, name, _ := strings.Cut(link, "zoneinfo/")
		names = []string{os.Getenv("TZ"), name}
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return name
		}
	}
	_, seconds := time.Now().In(zone).Zone()
	sign := '-' // a POSIX zone says how far UTC is
	if seconds < 0 {
		sign, seconds = '+', -seconds
	}
	return fmt.Sprintf("<here>%c%02d:%02d", sign, seconds/3600, seconds/60%60)
}

// sqlOnPostgres runs a caller's own SELECT in a reading transaction of a role that can only read.
func (r *Reports) sqlOnPostgres(ctx context.Context, text string, limits Limits) (res Result, err error) {
	if err := checkPostgresText(text); err != nil {
		return res, err
	}
	if r.callers == nil {
		return res, cannotRead("SQL has no address of its own")
	}
	err = r.withConn(ctx, r.callers, limits.Time, func(ctx context.Context, conn *sql.Conn) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // also ends a statement that has more rows
		if err := checkRole(ctx, conn); err != nil {
			return err
		}
		// Two statements of one text run only without arguments; a caller's text is always sent as one.
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(`BEGIN READ ONLY; SET LOCAL statement_timeout = %d`,
			max(limits.Time.Milliseconds(), 1))); err != nil {
			return err
		}
		rows, err := conn.QueryContext(ctx, text)
		if err != nil {
			return explainPostgres(text, limits, err)
		}
		res, err = readRows(rows, limits.Rows)
		cancel()
		rows.Close() //nolint:errcheck // readRows returned its error, and rows beyond the limit end with one
		return explainPostgres(text, limits, err)
	})
	return res, err
}

// checkPostgresText checks what a text begins with: PostgreSQL itself rejects a second statement, and
// the transaction and the role reject writes.
func checkPostgresText(text string) error {
	if !utf8.ValidString(text) {
		return session.Errorf(session.Invalid, "the SQL is not valid UTF-8")
	}
	var first string
	for i := 0; i < len(text) && first == ""; {
		t, next := scan(text, i)
		if t != nil && !isSign(text, t, ';') {
			first = text[t.start:t.end]
		}
		i = next
	}
	if first == "" {
		return session.Errorf(session.Invalid, "the SQL is empty; write a SELECT")
	}
	if !slices.Contains([]string{"SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW", "("}, strings.ToUpper(first)) {
		return session.Errorf(session.Invalid, "the SQL begins with %q; write a SELECT: queries only read", clip(first))
	}
	return nil
}

// A role that may become another one by SET ROLE can do so within a SELECT, by set_config.
const roleThatWrites = `
	SELECT to_regclass('messages') IS NOT NULL, session_user, COALESCE((
		SELECT r.rolname FROM pg_roles r
		WHERE pg_has_role(session_user, r.oid, 'MEMBER')
		  AND (r.rolsuper OR r.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
		       OR EXISTS (SELECT 1 FROM pg_class c
		                  WHERE c.relnamespace = (SELECT m.relnamespace FROM pg_class m WHERE m.oid = to_regclass('messages')) AND c.relkind IN ('r', 'p')
		                    AND (has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE') OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE'))))
		ORDER BY r.rolname = session_user DESC, r.rolname LIMIT 1), '')`

// checkRole refuses a connection whose role, or one that it is a member of, can do more than read. Codes:
// Forbidden.
func checkRole(ctx context.Context, conn *sql.Conn) error {
	var there bool
	var role, writer string
	switch err := conn.QueryRowContext(ctx, roleThatWrites).Scan(&there, &role, &writer); {
	case err != nil:
		return fmt.Errorf("check the role for SQL: %w", err)
	case !there:
		return session.Errorf(session.Forbidden,
			"SQL is not possible: the role %q finds no table messages; sql_db must name sessiond's database, "+
				"and the role needs USAGE of its schema", role)
	case writer == role:
		return cannotRead(fmt.Sprintf("the role %q can do more than read", role))
	case writer != "":
		return cannotRead(fmt.Sprintf("the role %q is a member of %q, which can do more than read", role, writer))
	}
	return nil
}

func cannotRead(why string) error {
	return session.Errorf(session.Forbidden, "SQL runs only as a role that can read and nothing else, and %s: run "+
		"`CREATE ROLE sessiond_sql LOGIN PASSWORD '…'` and `GRANT pg_read_all_data TO sessiond_sql` as the database's "+
		"administrator, "+
		"then set sql_db (SESSIOND_SQL_DB) to postgres://sessiond_sql@HOST/DATABASE", why)
}

// explainPostgres returns PostgreSQL's error with its place in the text and its hint. Codes: Invalid,
// Busy, and those that the error has.
func explainPostgres(text string, limits Limits, err error) error {
	var known *session.Error
	var large *pgproto3.ExceededMaxBodyLenErr
	var e *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return stoppedAfter(limits)
	case errors.As(err, &large):
		return session.Errorf(session.Invalid,
			"a row of the query is over %d MiB: take a substr of its texts, or their length", limits.value>>20)
	case !errors.As(err, &e):
		if strings.HasPrefix(err.Error(), "expected ") { // pgx: expected 1 arguments, got 0
			return session.Errorf(session.Invalid,
				"the SQL has a parameter such as $1, which has no value: write the value into it")
		}
		return fmt.Errorf("run query: %w", err)
	}
	switch class := e.Code[:2]; {
	case e.Code == "57014": // query_canceled
		return stoppedAfter(limits)
	case class == "40": // such as a conflict with the recovery of a replica
		return session.Errorf(session.Busy, "%s; try again", e.Message)
	// connections, the operator, the system, PostgreSQL's own
	case slices.Contains([]string{"08", "57", "58", "XX"}, class):
		return fmt.Errorf("run query: %w", err)
	}
	message := e.Message
	if strings.HasPrefix(message, "cannot insert multiple commands") {
		message = "only one statement is allowed"
	}
	if e.Position > 0 && text != "" {
		message += " at " + position(text, byteOf(text, int(e.Position)-1))
	}
	for _, more := range []string{e.Detail, e.Hint} {
		if more != "" {
			message += ". " + strings.TrimSuffix(more, ".")
		}
	}
	return session.Errorf(session.Invalid, "%s", message)
}

// byteOf returns the index in bytes of a text's n-th character.
func byteOf(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
