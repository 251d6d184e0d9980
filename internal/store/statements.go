package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
)

// queryer is what functions that only read need: the readers, or the writer inside its transaction.
type queryer interface {
	rows(ctx context.Context, use func(*sqlx.Rows) error, query string, args ...any) error
}

// statements implements queryer by prepared statements. A cancelled context keeps a statement from
// starting and ends it between two rows. It does not interrupt SQLite: for that the driver and
// database/sql start a goroutine each per statement, which costs more than most statements.
type statements struct {
	// stmt returns the prepared form of a statement; done is called after its use. A LIMIT that is
	// bound is written +?: with a plain ? SQLite plans for its value, and so prepares the statement
	// anew at every use.
	stmt func(ctx context.Context, query string) (st *sqlx.Stmt, done func(), err error)
	// failed is told each error; nil: nobody.
	failed func(error)
}

// rows calls use for every row, while it holds the connection. errEnough ends it early.
func (s statements) rows(ctx context.Context, use func(*sqlx.Rows) error, query string, args ...any) error {
	err := s.each(ctx, use, query, args)
	if err != nil && s.failed != nil {
		s.failed(err)
	}
	return ownStatementError(err)
}

func (s statements) each(ctx context.Context, use func(*sqlx.Rows) error, query string, args []any) error {
	st, done, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	defer done()
	rows, err := st.QueryxContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := use(rows); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// errEnough ends a reading before its last row.
var errEnough = errors.New("enough rows")

// each calls use for every row: a struct whose fields have the columns' names in db tags, or the
// value of the only column. All rows are scanned into the same value, so that reflection finds the
// fields once per statement; sqlx does so for every row.
func each[T any](ctx context.Context, q queryer, use func(*T) error, query string, args ...any) error {
	var row, zero T
	var dest []any
	return q.rows(ctx, func(rows *sqlx.Rows) error {
		if dest == nil {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			if dest, err = destinations(rows.Mapper, &row, columns); err != nil {
				return err
			}
		}
		row = zero
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		return use(&row)
	}, query, args...)
}

// destinations returns where the columns of a row go: to the fields of a struct with their names in
// db tags, or the only column to row itself.
func destinations(mapper *reflectx.Mapper, row any, columns []string) ([]any, error) {
	v := reflect.ValueOf(row).Elem()
	if _, scans := row.(sql.Scanner); scans || v.Kind() != reflect.Struct {
		return []any{row}, nil
	}
	dest := make([]any, len(columns))
	err := mapper.TraversalsByNameFunc(v.Type(), columns, func(i int, field []int) error {
		if len(field) == 0 {
			return fmt.Errorf("no field of %T has the column %s", row, columns[i])
		}
		dest[i] = reflectx.FieldByIndexes(v, field).Addr().Interface()
		return nil
	})
	return dest, err
}

// list reads all rows.
func list[T any](ctx context.Context, q queryer, query string, args ...any) (all []T, err error) {
	err = each(ctx, q, func(row *T) error {
		all = append(all, *row)
		return nil
	}, query, args...)
	return all, err
}

// listInto is list with the slice that receives the rows.
func listInto[T any](ctx context.Context, q queryer, all *[]T, query string, args ...any) (err error) {
	*all, err = list[T](ctx, q, query, args...)
	return err
}

// get reads one row; sql.ErrNoRows when there is none.
func get[T any](ctx context.Context, q queryer, query string, args ...any) (T, error) {
	row, err := first[T](ctx, q, query, args...)
	if row == nil {
		return *new(T), cmp.Or(err, sql.ErrNoRows)
	}
	return *row, err
}

// first reads one row; nil when there is none.
func first[T any](ctx context.Context, q queryer, query string, args ...any) (found *T, err error) {
	err = each(ctx, q, func(row *T) error {
		found = row
		return errEnough
	}, query, args...)
	return found, err
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
