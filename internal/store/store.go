// Package store keeps sessions: one file a noun. It is the only package that writes the tables, through the engine
// below it. What Append acknowledged is on disk.
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Options say how a store is opened. The zero value works.
type Options struct {
	ReadOnly bool             // no migration, no writer; nothing beside the file is made if it can be helped
	Scratch  bool             // a copy that is thrown away: nothing of it is kept before its schema changes
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
	// Silent reports whether a model's reply is one that nobody is to be shown; nil: none is.
	Silent func(*session.Message) bool

	// Committed is called after each transaction of this store; it must not block. nil: nobody.
	Committed func()
}

// Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	*engine.DB
	opt Options
}

// Open opens the database at a path, or at an address of PostgreSQL, as engine.Open does, and applies today's rules to
// what earlier versions stored.
func Open(ctx context.Context, path string, opt Options) (*Store, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Zone == nil {
		opt.Zone = time.Local
	}
	s := &Store{opt: opt}
	e := opt.ofEngine()
	e.AtStart = func(e *engine.Tx) error { return s.newTx(e).housekeeping() }
	e.BeforeCommit = func(e *engine.Tx, carried []any) error { return s.newTx(e).saveRollups(carried) }
	e.CopyToFile = s.copyToFile
	e.Rewrite, e.IDs, e.Rows = rewriteForPostgres, "messages_id_seq", rowsOfOwner
	e.Opened = func(ctx context.Context, db *engine.DB) error {
		s.DB = db
		return s.opened(ctx)
	}
	db, err := engine.Open(ctx, path, e)
	if err != nil {
		return nil, err
	}
	s.DB = db
	return s, nil
}

// ofEngine returns what the engine needs of the options.
func (o *Options) ofEngine() engine.Options {
	return engine.Options{
		ReadOnly: o.ReadOnly, Scratch: o.Scratch, New: o.New, Now: o.Now, Log: o.Log, SQL: o.SQL, Committed: o.Committed,
	}
}

// opened lets named tokens read what a migration made, and mends what earlier versions stored.
func (s *Store) opened(ctx context.Context) error {
	if s.IsPostgres() {
		named, err := s.Tokens(ctx)
		if err == nil && len(named) > 0 { // tables that a migration made, and tokens that were copied
			err = s.write(ctx, func(t *tx) error { return t.makeTokenRole() })
		}
		if session.CodeOf(err) == session.Forbidden {
			s.opt.Log.Warn().Err(err).Msg("requests with named tokens fail")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return s.mend(ctx)
}

// housekeeping is what every start does: it gives the file its identity, and sessions that lie in the future a time.
func (t *tx) housekeeping() error {
	id := make([]byte, 6)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	if err := t.Exec(`INSERT INTO store (id, epoch, created_at, mended) VALUES (1, ?, ?, ?) ON CONFLICT DO NOTHING`,
		hex.EncodeToString(id), t.Now, mendVersion); err != nil {
		return err
	}
	return t.mendFuture()
}

// Zone returns the zone of the day columns.
func (s *Store) Zone() *time.Location { return s.opt.Zone }

// Ready returns why the database cannot be read or accepts no writes. Codes: Busy, StorageFull, Unavailable.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.DB.Ready(ctx); err != nil {
		return err
	}
	_, err := s.LastMessageID(ctx)
	return err
}

// tx is the engine's transaction with what the writes of this package share in it.
type tx struct {
	*engine.Tx
	opt   *Options
	usage rollup
	// projects are usageProject of the sub-agents that were looked up.
	projects map[session.ID]string
}

func (s *Store) newTx(e *engine.Tx) *tx {
	return &tx{Tx: e, opt: &s.opt, usage: rollup{}, projects: map[session.ID]string{}}
}

// write runs fn in the writer's next transaction and returns when that is on disk, or when
// ctx ends before fn has begun. What fn counted is added to the roll-up before the commit.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	return s.Write(ctx, func(e *engine.Tx) error {
		t := s.newTx(e)
		err := fn(t)
		if len(t.usage) > 0 {
			e.Carry = t.usage
		}
		return err
	})
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
