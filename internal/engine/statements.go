package engine

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

// Queryer is what functions that only read need: the readers, or the writer inside its transaction.
type Queryer interface {
	// Read runs readings one after the other: on PostgreSQL several go in one round trip, and see one
	// state of the database.
	Read(ctx context.Context, all ...Reading) error
}

// Reading is a statement that reads, and what becomes of each of its rows. errEnough ends it early.
type Reading struct {
	query string
	args  []any
	use   func(*sqlx.Rows) error
}

// NewReading returns a reading that calls use for each row of a statement.
func NewReading(query string, args []any, use func(*sqlx.Rows) error) Reading {
	return Reading{query: query, args: args, use: use}
}

// Statements implements Queryer by prepared statements. A cancelled context keeps a statement from
// starting and ends it between two rows. It does not interrupt SQLite: for that the driver and
// database/sql start a goroutine each per statement, which costs more than most statements.
type Statements struct {
	// stmt returns the prepared form of a statement; done is called after its use. A LIMIT that is
	// bound is written +?: with a plain ? SQLite plans for its value, and so prepares the statement
	// anew at every use.
	stmt func(ctx context.Context, query string) (st *sqlx.Stmt, done func(), err error)
	// batch sends several readings at once, and returns a result set for each; nil: they are run one by one.
	batch func(ctx context.Context, all []Reading) (*sqlx.Rows, error)
	// failed is told each error; nil: nobody.
	failed func(error)
}

func (s Statements) Read(ctx context.Context, all ...Reading) (err error) {
	if s.batch != nil && len(all) > 1 {
		err = s.atOnce(ctx, all)
	} else {
		for i := 0; i < len(all) && err == nil; i++ {
			err = s.one(ctx, all[i])
		}
	}
	if err != nil && s.failed != nil {
		s.failed(err)
	}
	return ownStatementError(err)
}

func (s Statements) one(ctx context.Context, r Reading) error {
	st, done, err := s.stmt(ctx, r.query)
	if err != nil {
		return err
	}
	defer done()
	rows, err := st.QueryxContext(context.WithoutCancel(ctx), r.args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	return r.useAll(ctx, rows)
}

func (s Statements) atOnce(ctx context.Context, all []Reading) error {
	rows, err := s.batch(context.WithoutCancel(ctx), all)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for i, r := range all {
		if i > 0 && !rows.NextResultSet() {
			return rows.Err()
		}
		if err := r.useAll(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// useAll calls use for every row, while it holds the connection.
func (r Reading) useAll(ctx context.Context, rows *sqlx.Rows) error {
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.use(rows); errors.Is(err, ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// ErrEnough ends a reading before its last row.
var ErrEnough = errors.New("enough rows")

// Into reads rows into a T, for which it calls use: a struct whose fields have the columns' names in db tags,
// or the value of the only column. All rows are scanned into the same value, so that reflection finds the
// fields once per statement; sqlx does so for every row.
func Into[T any](use func(*T) error, query string, args ...any) Reading {
	var row, zero T
	var dest []any
	return Reading{query: query, args: args, use: func(rows *sqlx.Rows) error {
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
	}}
}

// IntoList reads all rows.
func IntoList[T any](all *[]T, query string, args ...any) Reading {
	return Into(func(row *T) error {
		*all = append(*all, *row)
		return nil
	}, query, args...)
}

// IntoFirst reads one row; found stays nil when there is none.
func IntoFirst[T any](found **T, query string, args ...any) Reading {
	return Into(func(row *T) error {
		*found = row
		return ErrEnough
	}, query, args...)
}

// Each is Into of one statement.
func Each[T any](ctx context.Context, q Queryer, use func(*T) error, query string, args ...any) error {
	return q.Read(ctx, Into(use, query, args...))
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

// List reads all rows.
func List[T any](ctx context.Context, q Queryer, query string, args ...any) (all []T, err error) {
	err = q.Read(ctx, IntoList(&all, query, args...))
	return all, err
}

// Get reads one row; sql.ErrNoRows when there is none.
func Get[T any](ctx context.Context, q Queryer, query string, args ...any) (T, error) {
	row, err := First[T](ctx, q, query, args...)
	if row == nil {
		return *new(T), cmp.Or(err, sql.ErrNoRows)
	}
	return *row, err
}

// First reads one row; nil when there is none.
func First[T any](ctx context.Context, q Queryer, query string, args ...any) (found *T, err error) {
	err = q.Read(ctx, IntoFirst(&found, query, args...))
	return found, err
}

// maxPrepared bounds the prepared statements of the readers. All fixed statements and the usual
// filters of a list are fewer; what else a caller's filters make is prepared for the one time.
const maxPrepared = 128

// readerStmt is stmt of the readers. Preparing waits for a connection, so it holds no lock.
func (s *DB) readerStmt(ctx context.Context, query string) (st *sqlx.Stmt, done func(), err error) {
	keep := func() {}
	if s.writer != nil {
		if refusal := s.writer.overwritten.Load(); refusal != nil { // pages of two files would be mixed
			return nil, nil, *refusal
		}
	}
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
