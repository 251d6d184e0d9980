package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"

	"sessiond/internal/session"
)

// Options say how a store is opened. The zero value works.
type Options struct {
	ReadOnly bool             // no migration, no writer; nothing beside the file is made if it can be helped
	Now      func() time.Time // nil: time.Now
	Zone     *time.Location   // of day columns and ids; nil: time.Local
	Log      zerolog.Logger

	// Measure sets the Tokens of a message and its parts by the reference counter; nil: all 0.
	Measure func(*session.Message)
	// Touched finds the files that a message's tool calls read or changed, given the
	// session's directory; nil: none.
	Touched func(*session.Message, string) []session.TouchedFile
	// Silent tells whether a model's reply is one that nobody is to be shown; nil: none is.
	Silent func(*session.Message) bool

	// CacheKiB is how much of the database the writer keeps in memory; 0: 32 MiB. A command that goes through much, once, needs less.
	CacheKiB int

	// ReaderKiB is how much of it each reader keeps; 0: half as much.
	ReaderKiB int

	// Committed is called after each transaction of this store; it must not block. nil: nobody.
	Committed func()
}

// Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	path     string
	opt      Options
	readers  *sqlx.DB // what requests read with
	readName string   // the driver's name for it
	reports  *sqlx.DB // for analytics and checks, so that a slow one holds up no request
	writeDB  *sql.DB  // one connection, owned by writer; nil when read-only
	writer   *writer
	closing  sync.Once

	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt // on readers
}

// maxPrepared bounds what is kept prepared. All fixed statements and the usual filters of a
// list are fewer; what else a caller's filters make is prepared for the one time.
const maxPrepared = 128

// File gives the path of the database file.
func (s *Store) File() string { return s.path }

// Zone gives the zone of the day columns.
func (s *Store) Zone() *time.Location { return s.opt.Zone }

// Reader gives a reading pool of its own, whose connections cannot write, for analytics.
func (s *Store) Reader() *sqlx.DB { return s.reports }

// stmt gives the prepared form of a reading statement; done is called after its use. Preparing
// waits for a connection, so no lock is held meanwhile. A LIMIT that is bound is written +?:
// with a plain ? SQLite plans for its value, and so prepares the statement anew at every use.
func (s *Store) stmt(ctx context.Context, query string) (st *sqlx.Stmt, done func(), err error) {
	s.mu.RLock()
	st = s.prepared[query]
	s.mu.RUnlock()
	keep := func() {}
	if st != nil {
		return st, keep, nil
	}
	if st, err = s.readers.PreparexContext(ctx, query); err != nil {
		return nil, nil, fmt.Errorf("prepare: %w", err)
	}
	once := func() { st.Close() } //nolint:errcheck // a reading statement
	s.mu.Lock()
	defer s.mu.Unlock()
	switch other := s.prepared[query]; {
	case other != nil:
		once()
		return other, keep, nil
	case len(s.prepared) >= maxPrepared:
		return st, once, nil
	}
	s.prepared[query] = st
	return st, keep, nil
}

// get reads one row into dest; sql.ErrNoRows when there is none.
func (s *Store) get(ctx context.Context, dest any, query string, args ...any) error {
	st, done, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	defer done()
	return st.GetContext(ctx, dest, args...)
}

// list reads all rows into the slice that dest points to.
func (s *Store) list(ctx context.Context, dest any, query string, args ...any) error {
	st, done, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	defer done()
	return st.SelectContext(ctx, dest, args...)
}

// each calls row for every row, with the connection held.
func (s *Store) each(ctx context.Context, row func(scanner) error, query string, args ...any) error {
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

// queryer is what reading helpers need: the pool, or the writer inside its transaction.
type queryer interface {
	get(ctx context.Context, dest any, query string, args ...any) error
	list(ctx context.Context, dest any, query string, args ...any) error
	each(ctx context.Context, row func(scanner) error, query string, args ...any) error
}

// scanner is a row as *sql.Rows and *sql.Row give it.
type scanner interface{ Scan(dest ...any) error }

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

// write runs fn in the writer's next transaction and returns when that is on disk, or when
// ctx ends before fn has begun.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	return s.writer.do(ctx, fn)
}

func (s *Store) readOnly() error {
	return session.Errorf(session.Forbidden, "%s was opened read-only", s.path)
}

// DataVersion changes whenever another process commits to the file, and not by this store's
// own writes (it is the writing connection's view), so that a daemon notices what others append.
func (s *Store) DataVersion(ctx context.Context) (v int64, err error) {
	err = s.alone(ctx, func(t *tx) error { return t.row(`PRAGMA data_version`, nil, &v) })
	return v, err
}

// TruncateWAL moves what the write-ahead log holds into the database file and empties it.
// done is false while a reader still needs the log. The moving happens beside the writer;
// only the emptying, which is short and waits for nobody, holds up appends.
func (s *Store) TruncateWAL(ctx context.Context) (done bool, err error) {
	if s.writer == nil {
		return false, s.readOnly()
	}
	if _, err := s.readers.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`); err != nil && !isBusy(err) {
		return false, fmt.Errorf("checkpoint: %w", err)
	}
	err = s.alone(ctx, func(t *tx) error {
		var busy, log, moved int
		err := t.row(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &log, &moved)
		done = err == nil && busy == 0
		if isBusy(err) {
			err = nil
		}
		return err
	})
	return done, err
}

// alone runs fn on the writing connection between two transactions.
func (s *Store) alone(ctx context.Context, fn func(*tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	return s.writer.submit(ctx, &job{ctx: ctx, fn: fn, alone: true, answer: make(chan error, 1)})
}
