// Package analytics answers questions about what is stored: the named queries of the
// queries folder, statistics, and a caller's own SELECT, always read-only and within limits.
package analytics

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sessiond/internal/session"
)

// DB is a pool of connections that can only read; a store's Reader is one. Connections that
// were used here stay query_only.
type DB interface {
	Conn(ctx context.Context) (*sql.Conn, error)
}

// Limits bound one query. A zero field means the default.
type Limits struct {
	Rows int           // rows given back; default 1,000
	Time time.Duration // until the statement is interrupted; default 10 s
}

const (
	defaultRows = 1000
	maxRows     = 100_000
	defaultTime = 10 * time.Second
	// What one answer may hold in memory, and one value of it.
	maxBytes      = 64 << 20
	maxValueBytes = 32 << 20
	// Queries that may run at once: a pool has few connections, and contexts are read through
	// the same ones.
	maxAtOnce = 2
)

func (l Limits) orDefaults() Limits {
	if l.Rows <= 0 {
		l.Rows = defaultRows
	}
	l.Rows = min(l.Rows, maxRows)
	if l.Time <= 0 {
		l.Time = defaultTime
	}
	return l
}

// Reports runs queries on one database. It is safe for concurrent use.
type Reports struct {
	db    DB
	zone  *time.Location
	slots chan struct{}
}

// New makes Reports over db. zone is the one whose days the database holds; nil: time.Local.
func New(db DB, zone *time.Location) *Reports {
	if zone == nil {
		zone = time.Local
	}
	return &Reports{db: db, zone: zone, slots: make(chan struct{}, maxAtOnce)}
}

// withConn runs f on a connection of its own, at most maxAtOnce at a time, under a time
// limit. Waiting for a turn counts. Codes: Busy (no turn in time).
func (r *Reports) withConn(ctx context.Context, limit time.Duration, f func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return waited(ctx.Err())
	}
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return waited(err)
	}
	defer conn.Close() // gives it back to the pool
	if _, err := conn.ExecContext(ctx, `PRAGMA query_only = 1`); err != nil {
		return err
	}
	return f(ctx, conn)
}

// waited turns the end of a time limit, before the query began, into an error of its own.
func waited(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return session.Errorf(session.Busy, "other queries are running; try again soon")
	}
	return err
}
