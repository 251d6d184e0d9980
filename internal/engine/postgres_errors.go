package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"sessiond/internal/session"
)

// SQLSTATE codes of PostgreSQL, as its manual lists them (Appendix A).
const (
	uniqueViolation     = "23505"
	checkViolation      = "23514"
	invalidValue        = "22023" // of a setting
	invalidText         = "22P02" // a text that is no JSON
	invalidBytes        = "22021" // a text with a NUL; others are refused before
	diskFull            = "53100"
	tooManyConnections  = "53300"
	invalidPassword     = "28P01"
	invalidAuth         = "28000"
	noDatabase          = "3D000"
	NoPrivilege         = "42501"
	readOnlyTransaction = "25006"
	idleInTransaction   = "25P03" // the server ended the connection
	statementCancelled  = "57014"
	lockNotAvailable    = "55P03"
	serializationFailed = "40001"
	deadlock            = "40P01"
	undefinedTable      = "42P01"
)

// PostgresCode returns the SQLSTATE of an error of PostgreSQL, "" when it is not one.
func PostgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isUnreachable reports whether the server cannot be reached, or ended the connection.
func isUnreachable(err error) bool {
	var refused *pgconn.ConnectError
	if errors.As(err, &refused) { // also a database that is gone, or a password that was changed
		return true
	}
	if code := PostgresCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == tooManyConnections ||
			code == idleInTransaction
	}
	var network *net.OpError // not net.Error, which the errors of files are, too
	var name *net.DNSError
	return (errors.As(err, &network) || errors.As(err, &name)) && !errors.Is(err, context.DeadlineExceeded) ||
		slices.ContainsFunc([]error{driver.ErrBadConn, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed}, func(e error) bool {
			return errors.Is(err, e)
		})
}

var errServerReadOnly = errors.New("it accepts no writes")

// errReadOnly is the answer to a write on a server that only reads. Codes: Unavailable.
func errReadOnly(cause error) error {
	return session.Errorf(session.Unavailable,
		"PostgreSQL is read-only: it is a replica, or default_transaction_read_only is on; "+
			"nothing of this request was stored. Promote it, or name its primary server: %w", cmp.Or(cause, errServerReadOnly))
}

// postgresError adds a code to the errors that any statement may meet; others stay as they are. Codes:
// Unavailable, Busy, Invalid.
func postgresError(err error) error {
	var known *session.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch PostgresCode(err) {
	case invalidBytes:
		return session.Errorf(session.Invalid, "a text has a NUL, which PostgreSQL cannot hold")
	case readOnlyTransaction:
		return errReadOnly(err)
	case statementCancelled:
		return session.Errorf(session.Busy,
			"PostgreSQL cancelled the statement: its operator did, or statement_timeout; nothing of this request was stored: "+
				"try again: %w", err)
	case lockNotAvailable:
		return session.Errorf(session.Busy,
			"another transaction on PostgreSQL has held a lock for %s; nothing of this request was stored: try again: %w",
			lockPatience, err)
	case serializationFailed, deadlock:
		return session.Errorf(session.Busy,
			"PostgreSQL ended this transaction for another one; nothing of this request was stored: try again: %w", err)
	}
	if !isUnreachable(err) {
		return err
	}
	return session.Errorf(session.Unavailable,
		"PostgreSQL cannot be reached or ended the connection; nothing of this request was stored: try again: %w", err)
}

// ownStatementError is postgresError for a statement of sessiond's own, whose tables must be there.
func ownStatementError(err error) error {
	if PostgresCode(err) == undefinedTable {
		return session.Errorf(session.Unavailable,
			"the database has lost tables of sessiond: restore a backup, or restart sessiond to begin a new one: %w", err)
	}
	return postgresError(err)
}

// openPostgresError says why a database of PostgreSQL cannot be opened.
func openPostgresError(name string, err error) error {
	var known *session.Error
	if errors.As(err, &known) && known.Code == session.Unavailable && known.Unwrap() != nil {
		err, known = known.Unwrap(), nil
	}
	if err == nil || known != nil {
		return err
	}
	said := strings.Join(strings.Fields(err.Error()), " ") // of several attempts it has a line each
	switch PostgresCode(err) {
	case invalidPassword, invalidAuth:
		return session.Errorf(session.Forbidden,
			"PostgreSQL refuses the user, the password or the client certificate of %s: %s", name, said)
	case noDatabase:
		return session.Errorf(session.NotFound,
			"%s does not exist: create it with `createdb -T template0 -E UTF8 --lc-collate=C --lc-ctype=C.UTF-8 NAME`", name)
	case NoPrivilege:
		return session.Errorf(session.Forbidden,
			"the user of %s may not do what sessiond needs: it must own the database or have CREATE on its schema: %s", name,
			said)
	}
	if stateOf(err) == StateUnwritable {
		return session.Errorf(session.Forbidden,
			"%s is read-only: it is a replica, or default_transaction_read_only is on; name its primary server", name)
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return session.Errorf(session.Unavailable,
			"the certificate of the server of %s is not accepted: check sslrootcert, and the name in the address: %s", name,
			said)
	}
	if isUnreachable(err) {
		return session.Errorf(session.Unavailable, "%s cannot be reached: check address and server: %s", name, said)
	}
	return err
}
