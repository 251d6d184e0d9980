package analytics

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/internal/session"
)

// Result is a table. A value is an int64, a float64, a string, a []byte (a blob) or nil. An infinite
// number is a string, because JSON has none.
type Result struct {
	Columns   []string `json:"columns" doc:"Names of the columns"`
	Rows      [][]any  `json:"rows" doc:"The rows; each has one value for each column"`
	Truncated bool     `json:"truncated" doc:"Rows are missing: a limit was reached"`
}

// SQL runs one reading statement of a caller. Its parameters are NULL, as in sqlite3; on PostgreSQL it has
// none. Codes: Invalid (several statements, a statement that writes, attaches, does not compile or exceeds
// its time), Busy; on PostgreSQL Forbidden (the role can do more than read), Unavailable.
func (r *Reports) SQL(ctx context.Context, text string, limits Limits) (Result, error) {
	if err := checkText(text); err != nil {
		return Result{}, err
	}
	if !r.file {
		return r.sqlOnPostgres(ctx, text, limits.orDefaults())
	}
	s, err := parseStatement(text)
	if err != nil {
		return Result{}, err
	}
	return r.runSQLite(ctx, &s, nil, limits.orDefaults())
}

func checkText(text string) error {
	if len(text) > maxSQLBytes {
		return session.Errorf(session.Invalid, "the SQL is too long: %d bytes, at most %d are allowed", len(text),
			maxSQLBytes)
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return session.Errorf(session.Invalid, "the SQL has a NUL at %s", position(text, i))
	}
	return nil
}

func (r *Reports) runSQLite(ctx context.Context, s *statement, values map[string]string,
	limits Limits,
) (res Result, err error) {
	err = r.withConn(ctx, r.db, limits.Time, func(ctx context.Context, conn *sql.Conn) error {
		for limit, n := range engineLimits(limits) {
			before, err := sqlite.Limit(conn, limit, n)
			if err != nil {
				return err
			}
			defer sqlite.Limit(conn, limit, before) //nolint:errcheck // it only fails where it did before
		}
		text := s.text
		if s.wraps() {
			// Alone first, so that a text that closes the parentheses around it fails.
			err = compile(ctx, conn, text)
			text = limited(text, limits.Rows)
		}
		compiled := err == nil
		if compiled {
			res, err = runQuery(ctx, conn, text, s.args(values), limits.Rows)
		}
		for i, name := range res.Columns {
			res.Columns[i] = columnName(name)
		}
		if err != nil && compiled && limits.alone {
			err = explainLimit(err)
		}
		if err != nil {
			return explainError(ctx, conn, s, limits, err)
		}
		return nil
	})
	return res, err
}

// explainLimit explains the errors of a statement that met the limits of its process.
func explainLimit(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_NOMEM:
		return outOfMemory()
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL:
		return session.Errorf(session.Invalid, "the query needs temporary files over %d MiB, or they could not be written: "+
			"narrow it, or sort and group fewer and shorter values", processFile>>20)
	}
	return err
}

// engineLimits returns SQLite's limits for a query, which bound what one of its rows can hold in memory.
// Sorted and materialized rows are in a temporary file beyond the page cache.
func engineLimits(l Limits) map[int]int {
	return map[int]int{
		sqlite3.SQLITE_LIMIT_LENGTH:          l.value,
		sqlite3.SQLITE_LIMIT_COLUMN:          100,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH:      200,
		sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
		sqlite3.SQLITE_LIMIT_VDBE_OP:         50_000,
		sqlite3.SQLITE_LIMIT_ATTACHED:        0,
	}
}

// limited returns a query that gives one row more than the limit. SQLite's driver can be interrupted only
// before the first row, so all rows are computed before the first.
func limited(text string, limit int) string {
	return fmt.Sprintf("WITH answer AS MATERIALIZED (SELECT * FROM (%s\n) AS a LIMIT %d) SELECT * FROM answer", text,
		limit+1)
}

// args returns the statement's arguments; a parameter without a value is NULL.
func (s *statement) args(values map[string]string) []any {
	args := make([]any, len(s.params))
	for i, name := range s.params {
		args[i] = sql.Named(name, nil)
		if value, ok := values[name]; ok {
			args[i] = sql.Named(name, value)
		}
	}
	return args
}

func runQuery(ctx context.Context, conn *sql.Conn, text string, args []any, limit int) (Result, error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return Result{}, err
	}
	defer rows.Close()
	res, err := readRows(rows, limit)
	if err != nil {
		return Result{}, err
	}
	return res, rows.Close()
}

func readRows(rows *sql.Rows, limit int) (Result, error) {
	names, err := rows.Columns()
	if err != nil {
		return Result{}, err
	}
	res := Result{Columns: names, Rows: [][]any{}}
	size := 0
	for rows.Next() {
		if len(res.Rows) == limit || size > maxBytes {
			res.Truncated = true
			return res, nil
		}
		row := make([]any, len(names))
		targets := make([]any, len(names))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return Result{}, err
		}
		for i, v := range row {
			size += 16
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			case float64:
				if math.IsInf(v, 0) || math.IsNaN(v) {
					row[i] = fmt.Sprint(v)
				}
			}
		}
		res.Rows = append(res.Rows, row)
	}
	return res, rows.Err()
}

// columnName returns a column's own name: a subquery renames the second of two equal names to "id:1".
func columnName(name string) string {
	base, n, ok := strings.Cut(name, ":")
	if !ok || base == "" || n == "" || strings.Trim(n, "0123456789") != "" {
		return name
	}
	return base
}

// explainError returns SQLite's error as one that says what to do.
func explainError(ctx context.Context, conn *sql.Conn, s *statement, limits Limits, err error) error {
	var e *sqlite.Error
	var known *session.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return stoppedAfter(limits)
	case errors.Is(err, context.Canceled):
		return err
	case !errors.As(err, &e):
		return fmt.Errorf("run query: %w", err)
	}
	message := sqliteMessage(err)
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		return stoppedAfter(limits)
	case sqlite3.SQLITE_READONLY:
		return session.Errorf(session.Invalid,
			"the query would write, and queries only read; write through the commands or the API")
	case sqlite3.SQLITE_TOOBIG:
		return session.Errorf(session.Invalid,
			"a value or a row of the query is over %d MiB: take a substr of the text, or its length", limits.value>>20)
	case sqlite3.SQLITE_NOMEM: // so SQLite names a statement of too many instructions
		return session.Errorf(session.Invalid,
			"the query is too complex: shorten its lists, or join with the table that holds them")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return session.Errorf(session.Busy, "the database is busy; try again soon")
	case sqlite3.SQLITE_MISMATCH:
		return session.Errorf(session.Invalid, "%s: a limit must be a whole number", message)
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_RANGE:
		if at := findError(ctx, conn, s, message); at != "" {
			return session.Errorf(session.Invalid, "%s at %s", message, at)
		}
		return session.Errorf(session.Invalid, "%s", message)
	}
	return fmt.Errorf("run query: %w", err)
}

// sqliteMessage returns the error's own sentence without the driver's additions:
// "SQL logic error: near "x": syntax error (1)".
func sqliteMessage(err error) string {
	message := err.Error()
	if i := strings.LastIndex(message, " ("); i >= 0 && strings.HasSuffix(message, ")") {
		message = message[:i]
	}
	if _, rest, ok := strings.Cut(message, ": "); ok {
		return rest
	}
	return message
}

func stoppedAfter(limits Limits) error {
	return session.Errorf(session.Invalid,
		"the query was stopped after %s, which is its limit: narrow it, or ask for less at once", limits.Time)
}

func clip(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
