// Package engine opens a database and keeps it whole: one goroutine writes, in group commits; small pools of
// connections read; what a write acknowledged is on disk. It speaks SQLite and PostgreSQL, makes backups and notices
// files that are moved, overwritten or damaged. It knows no noun: of the tables it knows `store` alone, whose one row
// is the database's identity. What a table's owner adds goes through Options.
package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"

	"sessiond/internal/session"
)

// Options say how a database is opened. The zero value works.
type Options struct {
	ReadOnly bool             // no migration, no writer; nothing beside the file is made if it can be helped
	Scratch  bool             // a copy that is thrown away: nothing of it is kept before its schema changes
	New      bool             // begin a new database; only where none is
	Now      func() time.Time // nil: time.Now
	Log      zerolog.Logger
	SQL      string // address of PostgreSQL for callers' own statements, of a role that can only read; "": the database's

	// Committed is called after each transaction of this process; it must not block. nil: nobody.
	Committed func()

	// AtStart runs in the first transaction after each start, Opened when the database is open for writing, before
	// other processes may open it. nil: nothing.
	AtStart func(*Tx) error
	Opened  func(context.Context, *DB) error
	// BeforeCommit gets what the jobs of a transaction carry, and writes it once for all of them.
	BeforeCommit func(t *Tx, carried []any) error

	// What only PostgreSQL needs: CopyToFile copies all tables into an empty file of SQLite, for a backup. Rewrite changes
	// a statement that it would run badly; nil: none. IDs names the sequence of Tx.NextID. Rows limits what a context
	// sees.
	CopyToFile func(ctx context.Context, path string) error
	Rewrite    func(query string) string
	IDs        string
	Rows       RowScope
}

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	Statements // of the readers
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

// File returns the path of the database file, or the address of PostgreSQL.
func (s *DB) File() string { return s.path }

// IsPostgres reports whether the database is PostgreSQL's.
func (s *DB) IsPostgres() bool { return IsPostgres(s.path) }

// Reader returns a reading pool of its own, whose connections cannot write, for analytics.
func (s *DB) Reader() *sqlx.DB { return s.reports }

// SQLReader returns the pool for callers' own statements. On PostgreSQL it sends them as they are, on a new
// connection each, and the role of Options.SQL limits them.
func (s *DB) SQLReader() *sqlx.DB { return cmp.Or(s.callersSQL, s.reports) }

// Write runs fn in the writer's next transaction and returns when that is on disk, or when
// ctx ends before fn has begun.
func (s *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	err := s.writer.do(ctx, fn)
	if code := session.CodeOf(err); code == session.StorageFull || code == session.Unavailable {
		s.failed.Add(1)
	}
	return err
}

func (s *DB) readOnly() error {
	return session.Errorf(session.Forbidden, "%s was opened read-only", s.path)
}

// DataVersion changes whenever another process commits to a file of SQLite, and not by this process's own writes (it is
// the writing connection's view), so that a daemon notices what others append.
func (s *DB) DataVersion(ctx context.Context) (v int64, err error) {
	err = s.Alone(ctx, func(t *Tx) error { return t.Row(`PRAGMA data_version`, nil, &v) })
	return v, err
}

// TruncateWAL moves what the write-ahead log holds into the database file, empties it, and frees the
// writer's page cache.
// done is false while a reader still needs the log. The moving happens beside the writer;
// only the emptying, which is short and waits for nobody, holds up appends. Codes: Unavailable.
func (s *DB) TruncateWAL(ctx context.Context) (done bool, err error) {
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
	err = s.Alone(ctx, func(t *Tx) error {
		var busy, log, moved int
		err := t.Row(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &log, &moved)
		done = err == nil && busy == 0
		if isBusy(err) {
			err = nil
		}
		return errors.Join(err, t.w.exec1(t.Ctx, `PRAGMA shrink_memory`))
	})
	return done, err
}

// Rewrite writes the whole file of SQLite anew (VACUUM). Codes: StorageFull, Busy.
func (s *DB) Rewrite(ctx context.Context) error {
	return s.Alone(ctx, func(t *Tx) error {
		if err := retryBusy(ctx, func() error { return t.w.exec1(t.Ctx, `VACUUM`) }); err != nil {
			return err
		}
		return t.w.learnStamp(t.Ctx, t.w.stamp.version)
	})
}

// Snapshot calls use with a Queryer whose readings all see one state of the database.
func (s *DB) Snapshot(ctx context.Context, use func(Queryer) error) error {
	tx, err := s.readers.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	return use(Statements{stmt: func(ctx context.Context, query string) (*sqlx.Stmt, func(), error) {
		st, err := tx.PreparexContext(ctx, query)
		return st, func() { st.Close() }, err //nolint:errcheck // a reading statement
	}})
}

// Prepared returns the statements that are kept prepared, the readers' and the writer's.
func (s *DB) Prepared(ctx context.Context) (queries []string, err error) {
	s.mu.RLock()
	queries = slices.Collect(maps.Keys(s.prepared))
	s.mu.RUnlock()
	err = s.Alone(ctx, func(t *Tx) error {
		queries = slices.AppendSeq(queries, maps.Keys(t.w.stmts))
		return nil
	})
	return queries, err
}

// Alone runs fn on the writing connection between two transactions.
func (s *DB) Alone(ctx context.Context, fn func(*Tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	return s.writer.submit(ctx, &job{ctx: ctx, fn: fn, alone: true, answer: make(chan error, 1)})
}

// IsPostgres reports whether the database is PostgreSQL's.
func (t *Tx) IsPostgres() bool { return t.w.postgres }

// File returns the path of the database file, or the address of PostgreSQL.
func (t *Tx) File() string { return t.w.path }
