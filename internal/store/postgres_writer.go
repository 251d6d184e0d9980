package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// lockWriters takes the advisory lock that a writing transaction holds, so that those of all
// daemons follow one another, as they do in SQLite: ids are in the order of commits. At the commit the server
// notifies the other daemons.
const lockWriters = `SELECT pg_advisory_xact_lock(1936028465), pg_notify('` + channel + `', '')`

// beginPostgres begins a transaction, with a savepoint if several jobs share it, on a new connection if
// the old one is gone.
func (w *writer) beginPostgres(ctx context.Context, savepoint bool) error {
	queries := []string{`BEGIN`, lockWriters}
	if w.health.Load().State != StateOK { // a transaction that happens to write nothing would prove nothing
		queries = append(queries, `UPDATE store SET epoch = epoch WHERE id = 1`)
	}
	if savepoint {
		queries = append(queries, `SAVEPOINT job`)
	}
	begin := func() error { return w.send(ctx, queries...) }
	err := begin()
	if err == nil {
		return nil
	}
	if w.rollback(ctx) == nil { // the connection is there
		return err
	}
	if err = w.reconnect(ctx); err == nil {
		err = begin()
	}
	if err != nil {
		_ = w.rollback(ctx) // as in transact
	}
	return err
}

// Statements whose results are not needed wait, and go to PostgreSQL together: before the next one whose
// result is needed, at the end of a job, or when they are many or large.
const (
	queuedMost  = 256
	queuedBytes = 1 << 20
)

// enqueue adds a statement to those that wait.
func (w *writer) enqueue(ctx context.Context, query string, args ...any) error {
	s, err := newStatement(query, args)
	if err != nil {
		return err
	}
	for _, value := range s.args {
		switch value := value.(type) {
		case string:
			w.queuedSize += len(value)
		case []byte:
			w.queuedSize += len(value)
		}
	}
	w.queued = append(w.queued, s)
	if len(w.queued) < queuedMost && w.queuedSize < queuedBytes {
		return nil
	}
	return w.flush(ctx)
}

// send sends statements without arguments, after those that wait.
func (w *writer) send(ctx context.Context, queries ...string) error {
	for _, query := range queries {
		if err := w.enqueue(ctx, query); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// flush sends the statements that wait, in one round trip, and returns the first error.
func (w *writer) flush(ctx context.Context) error {
	if len(w.queued) == 0 {
		return nil
	}
	queued := w.queued
	w.queued, w.queuedSize = nil, 0
	var failed error
	err := w.conn.Raw(func(conn any) error {
		batch := conn.(*pgConn).batch(ctx, queued...)
		results := conn.(*pgConn).Conn.Conn().SendBatch(ctx, batch)
		for _, sent := range batch.QueuedQueries {
			var tag pgconn.CommandTag
			if tag, failed = results.Exec(); failed == nil && sent.SQL == `COMMIT` && tag.String() != `COMMIT` {
				failed = errors.New("PostgreSQL rolled the transaction back")
			}
			if failed != nil {
				verb, _, _ := strings.Cut(strings.TrimSpace(sent.SQL), "(")
				failed = fmt.Errorf("%s: %w", strings.TrimSpace(verb), failed)
				break
			}
		}
		return cmp.Or(failed, results.Close())
	})
	return cmp.Or(failed, err)
}

func (w *writer) reconnect(ctx context.Context) error {
	for query, st := range w.stmts {
		st.Close() //nolint:errcheck // its connection is gone
		delete(w.stmts, query)
	}
	w.conn.Close() //nolint:errcheck // as above
	conn, err := w.db.Connx(ctx)
	if err == nil {
		w.conn = conn
		err = w.rememberPID()
	}
	return err
}

// rememberPID records the server's process of the writing connection, by which its notifications are known.
func (w *writer) rememberPID() error {
	return w.conn.Raw(func(conn any) error {
		w.pid.Store(conn.(*pgConn).Conn.Conn().PgConn().PID())
		return nil
	})
}
