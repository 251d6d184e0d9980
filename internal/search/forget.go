package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sessiond/internal/session"
)

// Forget takes messages, by their rows, out of the index: they are not found any more. What
// the index has not reached is passed over, so catch up before messages are deleted. Fragments
// of their words stay in the file until Scrub.
func (ix *Index) Forget(ctx context.Context, rows []int64) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return errors.New("forget: the search index is open for reading only")
	}
	tx, err := ix.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("forget in the search index: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, row := range rows {
		var docid int64
		err := tx.QueryRowContext(ctx, `DELETE FROM docs WHERE message_id = ? RETURNING docid`, row).Scan(&docid)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM words WHERE rowid = ?`, docid)
		}
		if err != nil {
			return fmt.Errorf("forget row %d in the search index: %w", row, err)
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE state SET boot = ? WHERE id = 1`, bootID()); err != nil {
		return fmt.Errorf("forget in the search index: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("forget in the search index: %w", err)
	}
	return ix.tail.close() // what it holds in memory is read again
}

// Scrub rewrites the index, so that no word of a forgotten message is left in its file: a
// deletion only marks rows, words share their beginnings with their neighbours, and pages keep
// what they held. Searches go on meanwhile; catching up waits.
func (ix *Index) Scrub(ctx context.Context) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.writer == nil {
		return errors.New("scrub: the search index is open for reading only")
	}
	for _, statement := range []string{
		`INSERT INTO words (words) VALUES ('optimize')`, // all segments into one, without what was deleted
		`VACUUM`,
	} {
		if _, err := ix.writer.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("scrub the search index: %w", err)
		}
	}
	return emptyLog(ctx, ix.writer)
}

// scrubPatience is how long a scrub waits for readers that still need the write-ahead log.
const scrubPatience = 20 * time.Second

// emptyLog truncates the write-ahead log, waiting for readers of what it held before.
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
			return session.Errorf(session.Busy, "the search index was rewritten, but someone who reads it keeps its write-ahead log: scrub again")
		case <-tick.C:
		}
	}
}
