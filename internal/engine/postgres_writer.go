package engine

import "context"

// lockWriters takes the lock that a writing transaction holds, so that those of all daemons follow one another,
// as they do in SQLite: ids are in the order of commits. A role that can only read cannot take it. At the commit
// the server notifies the other daemons.
var lockWriters = []string{`LOCK TABLE store IN SHARE UPDATE EXCLUSIVE MODE`, `SELECT pg_notify('` + channel + `', '')`}

// The sequence of Options.IDs is read under the lock, and set before the commit: see NextID.
const (
	lastOfSequence = `SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM `
	setSequence    = `SELECT setval(?, ?)`
)

// beginPostgres begins a transaction, with a savepoint if several jobs share it, on a new connection if
// the old one is gone.
func (w *writer) beginPostgres(ctx context.Context, savepoint bool) error {
	queries := append([]string{`BEGIN`}, lockWriters...)
	if w.health.Load().State != StateOK { // a transaction that happens to write nothing would prove nothing
		queries = append(queries, `UPDATE store SET epoch = epoch WHERE id = 1`)
	}
	if savepoint {
		queries = append(queries, `SAVEPOINT job`)
	}
	begin := func() error {
		for _, query := range queries {
			if err := w.enqueue(ctx, query); err != nil {
				return err
			}
		}
		err := w.conn.GetContext(ctx, &w.lastID, lastOfSequence+w.opt.IDs)
		w.firstID = w.lastID
		return err
	}
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

// commitPostgres commits the transaction.
func (w *writer) commitPostgres(ctx context.Context) error {
	if w.lastID > w.firstID {
		if err := w.enqueue(ctx, setSequence, w.opt.IDs, w.lastID); err != nil {
			return err
		}
	}
	return w.send(ctx, `COMMIT`)
}

// Statements whose results are not needed wait, and go to PostgreSQL together: with the next one whose
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
	waiting := 0
	if err := w.raw(func(c *pgConn) error {
		c.queued = append(c.queued, s)
		waiting = len(c.queued)
		return nil
	}); err != nil || waiting < queuedMost && w.queuedSize < queuedBytes {
		return err
	}
	return w.flush(ctx)
}

// forget drops the statements that wait.
func (w *writer) forget() {
	if w.postgres {
		_ = w.raw(func(c *pgConn) error { // fails where the connection is gone, and they with it
			c.queued = nil
			return nil
		})
	}
}

func (w *writer) raw(f func(*pgConn) error) error {
	return w.conn.Raw(func(conn any) error { return f(conn.(*pgConn)) })
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
	w.queuedSize = 0
	return w.raw(func(c *pgConn) error {
		if len(c.queued) == 0 {
			return nil
		}
		rows, err := c.query(ctx)
		if err != nil {
			return err
		}
		return rows.Close()
	})
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
	return w.raw(func(c *pgConn) error {
		w.pid.Store(c.Conn.Conn().PgConn().PID())
		return nil
	})
}
