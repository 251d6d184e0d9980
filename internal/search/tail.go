package search

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// tailLimit is how many messages beyond the mark a search reads at least, and half of the most.
const tailLimit = 1000

// tail is what the store holds beyond the index's mark, in a small index in memory: the same
// words are found in it by the same rules. It is kept from one search to the next. Where the
// index is far behind it holds the newest messages only.
type tail struct {
	mu         sync.Mutex
	db         *sql.DB
	base, upto int64 // it holds the messages in (base, upto]
	n          int
}

// pending counts the messages beyond mark, those that the tail leaves out included.
func (t *tail) pending(mark int64) int { return t.n + int(t.base-mark) }

// extend brings the tail up to what the store has beyond mark, in steps, each of which stays
// when a later one fails. Of more than limit messages it reads the newest. The caller holds mu.
func (t *tail) extend(ctx context.Context, src Source, mark int64, limit, step int64) error {
	last, err := src.LastMessageID(ctx)
	if err != nil {
		return err
	}
	start := max(mark, last-limit)
	// A window behind which more and more lies does not move at every search.
	usable := t.base == start || start > mark && mark <= t.base && t.base <= start && last-t.base <= 2*limit
	if !usable || last < t.upto {
		if err := t.reset(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		t.base, t.upto = start, start
	}
	// What is written is not cut short: a connection that is given up takes the tail with it.
	whole := context.WithoutCancel(ctx)
	for t.upto < last {
		if err := ctx.Err(); err != nil {
			return err
		}
		messages, err := src.MessagesAfter(ctx, t.upto, int(step))
		if err != nil || len(messages) == 0 {
			return err
		}
		entries, err := entriesOf(ctx, src, messages)
		if err != nil {
			return err
		}
		if t.db == nil {
			if err := t.make(whole); err != nil {
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

func (t *tail) make(ctx context.Context) error {
	db, err := sql.Open("sqlite", ":memory:?_pragma=temp_store(2)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // each connection would be a database of its own
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
