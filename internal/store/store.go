// Package store keeps sessions in one SQLite file. It is the only package that reads or
// writes the tables. One goroutine writes, in group commits; a small pool of connections
// reads. What Append acknowledged is on disk.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"

	"sessiond/internal/session"
)

// Options say how a store is opened. The zero value works.
type Options struct {
	ReadOnly bool             // no migration, no writer; nothing beside the file is made if it can be helped
	New      bool             // begin a new database; only where none is
	Now      func() time.Time // nil: time.Now
	Zone     *time.Location   // of day columns and ids; nil: time.Local
	Log      zerolog.Logger
	Owner    string // of new sessions, where no token says it
	Host     string // on which new sessions begin
	SQL      string // address of PostgreSQL for callers' own statements, of a role that can only read; "": the database's

	// Measure sets the Tokens of a message and its parts by the reference counter; nil: all 0.
	Measure func(*session.Message)
	// Touched finds the files that a message's tool calls read or changed, given the
	// session's directory; nil: none.
	Touched func(*session.Message, string) []session.TouchedFile
	// Silent tells whether a model's reply is one that nobody is to be shown; nil: none is.
	Silent func(*session.Message) bool

	// Committed is called after each transaction of this store; it must not block. nil: nobody.
	Committed func()
}

// Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	statements // of the readers
	path       string
	opt        Options
	readers    *sqlx.DB // what requests read with
	readName   string   // the driver's name for it
	reports    *sqlx.DB // for analytics and checks, so that a slow one holds up no request
	callersSQL *sqlx.DB // for callers' own statements
	writeDB    *sql.DB  // one connection, owned by writer; nil when read-only
	writer     *writer
	network    *network     // of a database of PostgreSQL
	failed     atomic.Int64 // writes that the disk or the file did not accept
	logIsLarge atomic.Bool
	closing    sync.Once

	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt // on readers
}

// File gives the path of the database file.
func (s *Store) File() string { return s.path }

// Zone gives the zone of the day columns.
func (s *Store) Zone() *time.Location { return s.opt.Zone }

// Reader gives a reading pool of its own, whose connections cannot write, for analytics.
func (s *Store) Reader() *sqlx.DB { return s.reports }

// SQLReader gives the pool for callers' own statements. On PostgreSQL it sends them as they are, on a new
// connection each, and the role of Options.SQL limits them.
func (s *Store) SQLReader() *sqlx.DB { return cmp.Or(s.callersSQL, s.reports) }

// write runs fn in the writer's next transaction and returns when that is on disk, or when
// ctx ends before fn has begun.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	err := s.writer.do(ctx, fn)
	if code := session.CodeOf(err); code == session.StorageFull || code == session.Unavailable {
		s.failed.Add(1)
	}
	return err
}

// write is Store.write for a closure with a result.
func write[T any](ctx context.Context, s *Store, fn func(*tx) (T, error)) (out T, err error) {
	err = s.write(ctx, func(t *tx) (err error) {
		out, err = fn(t)
		return err
	})
	if err != nil {
		return *new(T), err // fn may have answered before its commit failed
	}
	return out, nil
}

func (s *Store) readOnly() error {
	return session.Errorf(session.Forbidden, "%s was opened read-only", s.path)
}

// DataVersion changes whenever another process commits to the file, and not by this store's
// own writes (it is the writing connection's view), so that a daemon notices what others append.
func (s *Store) DataVersion(ctx context.Context) (v int64, err error) {
	if s.writer == nil {
		return 0, s.readOnly()
	}
	if s.writer.postgres {
		return get[int64](ctx, s, `SELECT COALESCE(MAX(id), 0) FROM events`) // also of this store's writes
	}
	err = s.alone(ctx, func(t *tx) error { return t.row(`PRAGMA data_version`, nil, &v) })
	return v, err
}

// TruncateWAL moves what the write-ahead log holds into the database file, empties it, and frees the
// writer's page cache.
// done is false while a reader still needs the log. The moving happens beside the writer;
// only the emptying, which is short and waits for nobody, holds up appends. Codes: Unavailable.
func (s *Store) TruncateWAL(ctx context.Context) (done bool, err error) {
	if s.writer == nil {
		return false, s.readOnly()
	}
	if s.writer.postgres {
		return true, nil
	}
	if err := s.resolveDoubt(ctx); err != nil {
		return false, err
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
		return errors.Join(err, t.w.exec1(t.ctx, `PRAGMA shrink_memory`))
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
