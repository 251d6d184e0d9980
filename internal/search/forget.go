package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"sessiond/internal/session"
)

// Forget deletes messages, by their rows, from the index. It skips messages beyond the mark, so catch
// up before messages are deleted. Fragments of their words stay in the file until Scrub.
func (ix *Index) Forget(ctx context.Context, rows []int64) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return errors.New("forget: the search index is open read-only")
	}
	if err := ix.deleteRows(ctx, rows, nil); err != nil {
		return fmt.Errorf("forget in the search index: %w", err)
	}
	return ix.tail.close() // the next search builds it again
}

// ForgetPurged deletes the messages of sessions that another host's daemon purged; on one host Forget does.
// Those that forks keep stay.
func (ix *Index) ForgetPurged(ctx context.Context) error {
	ids, err := column[session.ID](ctx, ix, `SELECT DISTINCT session_id FROM docs`)
	if err != nil {
		return err
	}
	for named := range slices.Chunk(ids, step) {
		there, err := ix.src.Outlines(ctx, named)
		if err != nil {
			return err
		}
		for _, id := range named {
			if slices.ContainsFunc(there, func(s session.Session) bool { return s.ID == id }) {
				continue
			}
			if err := ix.forgetGone(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetGone deletes the messages of a session that the store has no more.
func (ix *Index) forgetGone(ctx context.Context, id session.ID) error {
	indexed, err := column[int64](ctx, ix, `SELECT message_id FROM docs WHERE session_id = ?`, id)
	if err != nil {
		return err
	}
	for rows := range slices.Chunk(indexed, step) {
		kept, err := ix.src.MessagesByID(ctx, rows)
		if err != nil {
			return err
		}
		for i := range kept {
			rows = slices.DeleteFunc(rows, func(row int64) bool { return row == kept[i].RowID })
		}
		if err := ix.Forget(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// column reads the only column of a query's rows.
func column[T any](ctx context.Context, ix *Index, query string, args ...any) ([]T, error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return nil, errors.New("forget: the search index is open read-only")
	}
	return readRows(ctx, ix.reader, scanValue[T], query, args...)
}

// deleteRows deletes the rows of messages; newest, if not nil, is the new message at the mark.
func (ix *Index) deleteRows(ctx context.Context, rows []int64, newest *session.Message) error {
	tx, err := ix.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, row := range rows {
		var docid, n int64
		err := tx.QueryRowContext(ctx, `DELETE FROM docs WHERE message_id = ? RETURNING docid, words`, row).Scan(&docid, &n)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM words WHERE rowid = ?`, docid)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE state SET docs = docs - 1, words = words - ?`, n)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
	}
	if newest != nil {
		if _, err := tx.ExecContext(ctx, `UPDATE state SET mark = ?, mark_message = ? WHERE id = 1`, newest.RowID,
			identity(newest)); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE state SET boot = ? WHERE id = 1`, bootID()); err != nil {
		return err
	}
	return tx.Commit()
}

// Scrub rewrites the index so that its file contains no word of a forgotten message: a deletion only
// marks rows, words share prefixes with their neighbours, and free pages keep their bytes. Searches
// continue meanwhile; CatchUp waits.
func (ix *Index) Scrub(ctx context.Context) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return errors.New("scrub: the search index is open read-only")
	}
	for _, statement := range []string{
		`INSERT INTO words (words) VALUES ('optimize')`, // merges all segments without the deleted rows
		`VACUUM`,
	} {
		if _, err := ix.writer.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("scrub the search index: %w", err)
		}
	}
	return emptyLog(ctx, ix.writer)
}

// scrubPatience is the time that a scrub waits for readers of the write-ahead log.
const scrubPatience = 20 * time.Second

// emptyLog truncates the write-ahead log after its readers end.
func emptyLog(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, scrubPatience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var busy, log, moved int
		err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved)
		if err == nil && busy == 0 {
			return nil
		}
		if err != nil && !isBusy(err) && ctx.Err() == nil {
			return fmt.Errorf("scrub the search index: %w", err)
		}
		select {
		case <-ctx.Done():
			return session.Errorf(session.Busy,
				"the search index was rewritten, but a reader keeps its write-ahead log; scrub again")
		case <-tick.C:
		}
	}
}
