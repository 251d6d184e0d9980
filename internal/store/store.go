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
}

// Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	path    string
	opt     Options
	readers *sqlx.DB
	writeDB *sql.DB // one connection, owned by writer; nil when read-only
	writer  *writer

	mu       sync.Mutex
	prepared map[string]*sqlx.Stmt // on readers
}

// File gives the path of the database file.
func (s *Store) File() string { return s.path }

// Zone gives the zone of the day columns.
func (s *Store) Zone() *time.Location { return s.opt.Zone }

// Reader gives the reading pool, whose connections cannot write, for analytics.
func (s *Store) Reader() *sqlx.DB { return s.readers }

func (s *Store) now() session.Time { return session.At(s.opt.Now()) }

// stmt gives the prepared form of a reading statement.
func (s *Store) stmt(ctx context.Context, query string) (*sqlx.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.prepared[query]; ok {
		return st, nil
	}
	st, err := s.readers.PreparexContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	s.prepared[query] = st
	return st, nil
}

// get reads one row into dest; sql.ErrNoRows when there is none.
func (s *Store) get(ctx context.Context, dest any, query string, args ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.GetContext(ctx, dest, args...)
}

// list reads all rows into the slice that dest points to.
func (s *Store) list(ctx context.Context, dest any, query string, args ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.SelectContext(ctx, dest, args...)
}

func (s *Store) query(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryxContext(ctx, args...)
}

// queryer is what reading helpers need: the pool, or the writer inside its transaction.
type queryer interface {
	get(ctx context.Context, dest any, query string, args ...any) error
	list(ctx context.Context, dest any, query string, args ...any) error
	query(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// write runs fn in the writer's next transaction and returns when that is on disk, or when
// ctx ends before fn has begun.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	if s.writer == nil {
		return session.Errorf(session.Forbidden, "%s was opened read-only", s.path)
	}
	return s.writer.do(ctx, fn)
}

// DataVersion changes whenever another process commits to the file, and not by this store's
// own writes (it is the writing connection's view), so that a daemon notices what others append.
func (s *Store) DataVersion(ctx context.Context) (int64, error) {
	var v int64
	if s.writer == nil {
		return 0, session.Errorf(session.Forbidden, "%s was opened read-only", s.path)
	}
	err := s.writer.submit(ctx, &job{ctx: ctx, alone: true, answer: make(chan error, 1), fn: func(t *tx) error {
		return t.row(`PRAGMA data_version`, nil, &v)
	}})
	return v, err
}

// TruncateWAL moves what the write-ahead log holds into the database file and empties it.
// done is false while a reader still needs the log.
func (s *Store) TruncateWAL(ctx context.Context) (done bool, err error) {
	if s.writer == nil {
		return false, session.Errorf(session.Forbidden, "%s was opened read-only", s.path)
	}
	return s.writer.truncateWAL(ctx)
}
