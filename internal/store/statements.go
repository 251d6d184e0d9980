package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// queryer is what functions that only read need: the readers, or the writer inside its transaction.
type queryer interface {
	get(ctx context.Context, dest any, query string, args ...any) error
	list(ctx context.Context, dest any, query string, args ...any) error
	each(ctx context.Context, row func(scanner) error, query string, args ...any) error
}

// scanner is a row of *sql.Rows or *sql.Row.
type scanner interface{ Scan(dest ...any) error }

// statements implements queryer by prepared statements.
type statements struct {
	// stmt returns the prepared form of a statement; done is called after its use. A LIMIT that is
	// bound is written +?: with a plain ? SQLite plans for its value, and so prepares the statement
	// anew at every use.
	stmt func(ctx context.Context, query string) (st *sqlx.Stmt, done func(), err error)
}

// get reads one row into dest; sql.ErrNoRows when there is none.
func (s statements) get(ctx context.Context, dest any, query string, args ...any) error {
	st, done, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	defer done()
	return st.GetContext(ctx, dest, args...)
}

// list reads all rows into the slice that dest points to.
func (s statements) list(ctx context.Context, dest any, query string, args ...any) error {
	st, done, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	defer done()
	return st.SelectContext(ctx, dest, args...)
}

// each calls row for every row, while it holds the connection. errEnough ends it early.
func (s statements) each(ctx context.Context, row func(scanner) error, query string, args ...any) error {
	st, done, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	defer done()
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return forEach(rows, row)
}

// first reads one row; nil when there is none.
func first[T any](ctx context.Context, q queryer, query string, args ...any) (*T, error) {
	var row T
	err := q.get(ctx, &row, query, args...)
	if noRows(err) {
		return nil, nil
	}
	return &row, err
}

// errEnough ends a reading before its last row.
var errEnough = errors.New("enough rows")

func forEach(rows *sql.Rows, row func(scanner) error) error {
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		if err := row(rows); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// maxPrepared bounds the prepared statements of the readers. All fixed statements and the usual
// filters of a list are fewer; what else a caller's filters make is prepared for the one time.
const maxPrepared = 128

// readerStmt is stmt of the readers. Preparing waits for a connection, so it holds no lock.
func (s *Store) readerStmt(ctx context.Context, query string) (st *sqlx.Stmt, done func(), err error) {
	keep := func() {}
	s.mu.RLock()
	st = s.prepared[query]
	s.mu.RUnlock()
	if st != nil {
		return st, keep, nil
	}
	if st, err = s.readers.PreparexContext(ctx, query); err != nil {
		return nil, nil, fmt.Errorf("prepare: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prepared[query] != nil || len(s.prepared) >= maxPrepared {
		return st, func() { st.Close() }, nil //nolint:errcheck // a reading statement
	}
	s.prepared[query] = st
	return st, keep, nil
}
