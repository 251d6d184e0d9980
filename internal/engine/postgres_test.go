package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"sessiond/internal/session"
)

func TestStatementsAsPostgresReadsThem(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{`SELECT 1 FROM a WHERE b = ? AND c > ?`, `SELECT 1 FROM a WHERE b = $1 AND c > $2`},
		{`SELECT ?2, ?1, ?1`, `SELECT $2, $1, $1`},
		{`SELECT 'why?' || ? LIMIT +?`, `SELECT 'why?' || $1 LIMIT $2`},
		{`SELECT 'it''s ?', ?`, `SELECT 'it''s ?', $1`},
		{`FROM sessions s INDEXED BY sessions_active WHERE x = ?`, `FROM sessions s WHERE x = $1`},
		{`FROM k CROSS JOIN messages m ON m.id = k.value`, `FROM k JOIN messages m ON m.id = k.value`},
		{`WHERE title LIKE ? ESCAPE '\'`, `WHERE title ILIKE $1 ESCAPE '\'`},
		{`FROM a CROSS JOIN b`, `FROM a CROSS JOIN b`},
	} {
		if got := pgText(c.query); got != c.want {
			t.Errorf("%s\nbecame %s\nnot    %s", c.query, got, c.want)
		}
	}
}

func TestNamedParametersAsPostgresReadsThem(t *testing.T) {
	args := []driver.NamedValue{{Name: "since", Value: "2026-01-01"}, {Name: "limit", Value: int64(5)}}
	query, got := pgNamed(`SELECT ':no', x::text FROM t WHERE day >= :since AND day <> :until LIMIT :limit + :since`, args)
	if want := `SELECT ':no', x::text FROM t WHERE day >= $1 AND day <> $2 LIMIT $3 + $1`; query != want {
		t.Errorf("%s\nnot %s", query, want)
	}
	if said := fmt.Sprint(got); said != "[{ 1 2026-01-01} { 2 <nil>} { 3 5}]" {
		t.Error(said)
	}
}

func TestErrorsOfPostgresHaveCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code session.Code
	}{
		{&pgconn.PgError{Code: "57P01"}, session.Unavailable},
		{&pgconn.PgError{Code: "08006"}, session.Unavailable},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), session.Unavailable},
		{driver.ErrBadConn, session.Unavailable},
		{&pgconn.PgError{Code: "53100"}, session.StorageFull},
		{&pgconn.PgError{Code: "23514"}, session.Invalid},
		{context.DeadlineExceeded, ""},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, session.Unavailable},
		{&net.DNSError{Err: "no such host", Name: "db.example"}, session.Unavailable},
		{&fs.PathError{Op: "open", Path: "sessions.db", Err: syscall.EIO}, ""}, // of a file, no connection
		{&fs.PathError{Op: "write", Path: "sessions.db", Err: syscall.ENOSPC}, session.StorageFull},
		{errors.New("else"), ""},
	} {
		if got := session.CodeOf(storageError(c.err)); got != c.code && !(c.code == "" && got == session.Internal) {
			t.Errorf("%v has the code %q, not %q", c.err, got, c.code)
		}
	}
}

// A wrong address, a database that is missing, and one that sorts otherwise are named with what to do.
func TestPostgresThatCannotBeOpenedSaysWhy(t *testing.T) {
	_, err := Open(t.Context(), "postgres://nobody:secret@127.0.0.1:1/none", Options{})
	if session.CodeOf(err) != session.Unavailable ||
		!strings.Contains(err.Error(), "postgres://nobody:xxxxx@127.0.0.1:1/none cannot be reached") {
		t.Error(err)
	}
	_, err = Open(t.Context(), "postgres://%zz", Options{})
	if session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), "") {
		t.Error(err)
	}
	_, err = Open(t.Context(), "postgres://a:secret@db/x?sslmode=strict&sslpassword=secret", Options{})
	if session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(),
		"the address postgres://a:xxxxx@db/x?sslmode=strict&sslpassword=xxxxx cannot be used: "+
			"failed to configure TLS (sslmode is invalid)") {
		t.Error(err)
	}
}

func TestPrintableNameHasNoPassword(t *testing.T) {
	for name, want := range map[string]string{
		"/data/sessions.db":                        "/data/sessions.db",
		"postgres://a@db/x?sslmode=require":        "postgres://a@db/x?sslmode=require",
		"postgres://a:secret@db/x":                 "postgres://a:xxxxx@db/x",
		"postgres://db/x?user=a&password=secret":   "postgres://db/x?user=a&password=xxxxx",
		"postgres://db/x?sslpassword=a%20b&user=a": "postgres://db/x?sslpassword=xxxxx&user=a",
		"postgres://db/x?pass%77ord=secret;x&a":    "postgres://db/x?pass%77ord=xxxxx&a",
		"postgres://a:se%zzcret@db/x":              "postgres://…",
	} {
		if got := PrintableName(name); got != want {
			t.Errorf("%s is shown as %s, want %s", name, got, want)
		}
	}
}
