package search

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"sessiond/internal/session"
	"sessiond/internal/text"
)

// tailLimit is the number of messages beyond the mark that a search reads at least; twice that is the
// most.
const tailLimit = 1000

// tail indexes the store's messages beyond the index's mark in memory, by the same rules. It is kept
// between searches. When the index is far behind, it has only the newest messages.
type tail struct {
	mu         sync.Mutex
	db         *sql.DB
	base, upto int64 // the row ids of its messages are in (base, upto]
	n          int
}

// pending returns the number of messages beyond mark, including those that the tail leaves out.
func (t *tail) pending(mark int64) int { return t.n + int(t.base-mark) }

// extend adds the store's messages beyond mark to the tail, in steps: a failed step keeps the earlier
// ones. Of more than tailLimit messages it reads the newest. The caller holds mu.
func (t *tail) extend(ctx context.Context, src Source, mark int64) error {
	// Writes are not cancelled: that would close the connection, and with it the tail.
	ctx = session.WithoutScope(ctx) // the tail serves every scope
	whole := context.WithoutCancel(ctx)
	last, err := src.LastMessageID(whole)
	if err != nil {
		return err
	}
	start := max(mark, last-tailLimit)
	// The window need not move at every search while the index falls further behind.
	usable := t.base == start || start > mark && mark <= t.base && t.base <= start && last-t.base <= 2*tailLimit
	if !usable || last < t.upto {
		if err := t.reset(whole); err != nil {
			return err
		}
		t.base, t.upto = start, start
	}
	for t.upto < last {
		if err := ctx.Err(); err != nil {
			return err
		}
		messages, err := src.MessagesAfter(ctx, t.upto, step)
		if err != nil || len(messages) == 0 {
			return err
		}
		entries, err := entriesOf(ctx, src, text.NewTokenizer(), messages)
		if err != nil {
			return err
		}
		if t.db == nil {
			if err := t.create(whole); err != nil {
				return err
			}
		}
		tx, err := t.db.BeginTx(whole, nil)
		if err != nil {
			return err
		}
		if err := insert(whole, tx, entries); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		t.n += len(messages)
		t.upto = messages[len(messages)-1].RowID
	}
	return nil
}

func (t *tail) create(ctx context.Context) error {
	db, err := sql.Open("sqlite", ":memory:?_pragma=temp_store(2)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // each connection has its own database
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return errors.Join(err, db.Close())
	}
	t.db = db
	return nil
}

func (t *tail) reset(ctx context.Context) error {
	if t.n == 0 {
		return nil
	}
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := wipe(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	t.n = 0
	return tx.Commit()
}

func (t *tail) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.db == nil {
		return nil
	}
	err := t.db.Close()
	t.db, t.n, t.base, t.upto = nil, 0, 0, 0
	return err
}
