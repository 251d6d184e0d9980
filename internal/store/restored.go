package store

import (
	"context"

	"sessiond/internal/engine"

	"github.com/jmoiron/sqlx"
)

// RestoredFile says what RestoreFile did.
type RestoredFile struct {
	Sessions int64  `json:"sessions"` // in the database now
	Messages int64  `json:"messages"`
	Kept     string `json:"kept,omitempty"` // the database before, "" if there was none
}

// RestoreFile puts a copy of a database file in the place of the database at path, as engine.RestoreFile does, and
// counts what it holds. before is called, if it is not nil, as there.
func RestoreFile(ctx context.Context, file, path string, opt Options,
	before func(ctx context.Context, old, next string) error,
) (out RestoredFile, err error) {
	out.Kept, err = engine.RestoreFile(ctx, file, path, opt.ofEngine(),
		func(ctx context.Context, old, next string) (err error) {
			if before != nil {
				if err := before(ctx, old, next); err != nil {
					return err
				}
			}
			out.Sessions, out.Messages, err = countStored(ctx, next)
			return err
		})
	return out, err
}

// countStored counts what a database file holds.
func countStored(ctx context.Context, file string) (sessions, messages int64, err error) {
	db, err := sqlx.Open("sqlite", engine.DSN(file, "rw"))
	if err != nil {
		return 0, 0, err
	}
	defer db.Close() //nolint:errcheck // a reader
	const counts = `SELECT (SELECT COUNT(*) FROM sessions WHERE purged_at IS NULL AND draft = 0), (SELECT COUNT(*) FROM messages)`
	err = db.QueryRowContext(ctx, counts).Scan(&sessions, &messages)
	return sessions, messages, err
}
