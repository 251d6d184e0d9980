// Package analytics answers questions about the stored data: the named queries of the queries folder,
// statistics, and a caller's own SELECT, always read-only and within limits.
package analytics

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"sessiond/internal/session"
)

// DB is a pool of read-only connections, such as a store's Reader. Connections stay query_only
// afterwards.
type DB interface {
	Conn(ctx context.Context) (*sql.Conn, error)
}

// Limits bound one query. A zero field means the default.
type Limits struct {
	Rows int           // of the result; default 1,000
	Time time.Duration // until the statement is interrupted; default 10 s

	value int  // bytes of one value; default maxValueBytes
	alone bool // in a process of its own, whose memory and files are limited
}

const (
	defaultRows   = 1000
	maxRows       = 100_000
	defaultTime   = 10 * time.Second
	maxBytes      = 16 << 20 // of a result in memory
	maxValueBytes = 1 << 20  // of one value in a caller's SQL
	maxSQLBytes   = 100_000
	maxNamedBytes = 32 << 20 // of one value in a named query
	// Queries at once: the pool has few connections, and contexts use the same ones.
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
	l.value = cmp.Or(l.value, maxValueBytes)
	return l
}

// Reports runs queries on one database. It is safe for concurrent use.
type Reports struct {
	db      DB
	callers DB // for a caller's own SELECT on PostgreSQL; nil: none
	zone    *time.Location
	slots   chan struct{}
	file    bool // of SQLite
}

// New returns Reports on db. zone is the zone of the days in the database; nil: time.Local.
func New(db DB, zone *time.Location) *Reports {
	if zone == nil {
		zone = time.Local
	}
	named, ok := db.(interface{ DriverName() string })
	return &Reports{db: db, zone: zone, slots: make(chan struct{}, maxAtOnce), file: !ok || named.DriverName() == "sqlite"}
}

// WithSQL has a caller's own SELECT run on db, whose role can only read. Files of SQLite do not need it.
func (r *Reports) WithSQL(db DB) *Reports {
	r.callers = db
	return r
}

// withConn runs f on a connection of its own, at most maxAtOnce at a time. The time limit includes the
// wait for a connection. Codes: Busy (none in time).
func (r *Reports) withConn(ctx context.Context, db DB, limit time.Duration,
	f func(context.Context, *sql.Conn) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return explainWait(ctx.Err())
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return explainWait(err)
	}
	defer conn.Close() // returns it to the pool
	if r.file {
		if _, err := conn.ExecContext(ctx, `PRAGMA query_only = 1; PRAGMA temp_store = FILE`); err != nil {
			return err
		}
	}
	return f(ctx, conn)
}

// explainWait replaces the error of a query that did not start within its time limit.
func explainWait(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return session.Errorf(session.Busy, "other queries are running; try again soon")
	}
	return err
}
