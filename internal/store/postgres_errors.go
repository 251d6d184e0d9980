package store

import (
	"context"
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
	invalidText         = "22P02" // a text that is no JSON
	invalidBytes        = "22021" // a text with a NUL; others are refused before
	diskFull            = "53100"
	tooManyConnections  = "53300"
	invalidPassword     = "28P01"
	invalidAuth         = "28000"
	noDatabase          = "3D000"
	noPrivilege         = "42501"
	readOnlyTransaction = "25006"
)

// postgresCode returns the SQLSTATE of an error of PostgreSQL, "" when it is not one.
func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isUnreachable reports whether the server cannot be reached, or ended the connection.
func isUnreachable(err error) bool {
	if code := postgresCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == tooManyConnections
	}
	var refused *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &refused) || errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) ||
		slices.ContainsFunc([]error{driver.ErrBadConn, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed}, func(e error) bool { return errors.Is(err, e) })
}

// postgresError gives the errors that a reading statement may meet a code; others stay as they are. Codes:
// Unavailable, Invalid.
func postgresError(err error) error {
	var known *session.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if postgresCode(err) == invalidBytes {
		return session.Errorf(session.Invalid, "a text has a NUL, which PostgreSQL cannot hold")
	}
	if !isUnreachable(err) {
		return err
	}
	return session.Errorf(session.Unavailable, "PostgreSQL cannot be reached or ended the connection; nothing of this request was stored: try again: %w", err)
}

// openPostgresError says why a database of PostgreSQL cannot be opened.
func openPostgresError(name string, err error) error {
	var known *session.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch postgresCode(err) {
	case invalidPassword, invalidAuth:
		return session.Errorf(session.Forbidden, "PostgreSQL refuses the user or the password of %s: %w", name, err)
	case noDatabase:
		return session.Errorf(session.NotFound, "%s does not exist: create it with `createdb -T template0 -E UTF8 --lc-collate=C --lc-ctype=C.UTF-8 NAME`", name)
	case noPrivilege:
		return session.Errorf(session.Forbidden, "the user of %s may not do what sessiond needs: it must own the database or have CREATE on its schema: %w", name, err)
	case readOnlyTransaction:
		return session.Errorf(session.Forbidden, "%s is read-only, such as a replica: name its primary server: %w", name, err)
	}
	if isUnreachable(err) {
		return session.Errorf(session.Unavailable, "%s cannot be reached: check address and server: %s", name, strings.Join(strings.Fields(err.Error()), " "))
	}
	return err
}
