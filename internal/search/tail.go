package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// tailLimit is how many messages beyond the mark a search reads.
const tailLimit = 2000

// tail is what the store holds beyond the index's mark, in a small index in memory: the same
// words are found in it by the same rules. It is kept from one search to the next.
type tail struct {
	mu         sync.Mutex
	db         *sql.DB
	base, upto int64 // it holds the messages in (base, upto]
	n          int
}

// use brings the tail up to what the store has beyond mark, up to limit messages, and hands
// it to do, with the number of messages in it and whether there are more.
func (t *tail) use(ctx context.Context, src Source, mark int64, limit int, do func(db *sql.DB, pending int, partial bool) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	partial, err := t.extend(ctx, src, mark, limit, step)
	if err != nil {
		return fmt.Errorf("read what is not yet indexed: %w", err)
	}
	return do(t.db, t.n, partial)
}

// extend reads on in steps, each of which stays when a later one fails.
func (t *tail) extend(ctx context.Context, src Source, mark int64, limit, step int) (partial bool, err error) {
	if t.base != mark && t.n > 0 {
		if err := t.reset(ctx); err != nil {
			return false, err
		}
	}
	if t.base != mark {
		t.base, t.upto = mark, mark
	}
	for t.n < limit {
		messages, err := src.MessagesAfter(ctx, t.upto, min(step, limit-t.n))
		if err != nil || len(messages) == 0 {
			return false, err
		}
		entries, err := entriesOf(ctx, src, messages)
		if err != nil {
			return false, err
		}
		if t.db == nil {
			if err := t.make(ctx); err != nil {
				return false, err
			}
		}
		tx, err := t.db.BeginTx(ctx, nil)
		if err != nil {
			return false, err
		}
		if err := insert(ctx, tx, entries); err != nil {
			return false, errors.Join(err, tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return false, err
		}
		t.n += len(messages)
		t.upto = messages[len(messages)-1].RowID
	}
	more, err := src.MessagesAfter(ctx, t.upto, 1)
	return len(more) > 0, err
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
