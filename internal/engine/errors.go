package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/internal/session"
)

// retryBusy repeats fn while another process holds the lock it needs, for lockPatience or
// until ctx ends. It asks every millisecond: SQLite's own waiting asks after 1, 3, 8, 18, 33 ms
// and so on, and sleeps through the pauses that an import makes between two transactions.
func retryBusy(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := fn()
		if !isBusy(err) {
			return err
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return session.Errorf(session.Busy, "another process has held the database's write lock for too long; try again: %w",
				err)
		}
		time.Sleep(time.Millisecond)
	}
}

// SQLiteCode returns the extended result code of an error, 0 when it is not SQLite's.
func SQLiteCode(err error) int {
	var e interface {
		error
		Code() int // as the driver's errors have it, and the engine's
	}
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func isBusy(err error) bool {
	code := SQLiteCode(err) & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// IsTaken tells that a row was refused because one of its kind is there already: by an index,
// or by the trigger that keeps INSERT OR REPLACE from going around it.
func IsTaken(err error) bool {
	if PostgresCode(err) == uniqueViolation {
		return true
	}
	switch SQLiteCode(err) {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_TRIGGER:
		return true
	}
	return false
}

// NoRows reports whether err says that a query found nothing.
func NoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// openError says what is wrong with the file in words that lead on. besideLog tells that a
// write-ahead log lay beside it.
func openError(path string, besideLog bool, err error) error {
	var known *session.Error
	if errors.As(err, &known) {
		if known.Code != session.Unavailable || errors.Is(err, errOverwritten) || errors.Is(err, errMoved) {
			return err
		}
		err = known.Unwrap()
	}
	switch code := SQLiteCode(err) & 0xff; {
	case code == sqlite3.SQLITE_NOTADB:
		return session.Errorf(session.Invalid,
			"%s is not an SQLite database; nothing was changed. Name another file with --db: %w", path, err)
	case code == sqlite3.SQLITE_CORRUPT:
		if besideLog { // SQLite writes a log into whatever lies beside it, also into a copy that was put there
			return session.Errorf(session.Invalid,
				"%s is damaged. If it is a backup that was just put here, remove %[1]s-wal and %[1]s-shm, "+
					"which belong to the file before it, and put the backup here again; else restore one: %w", path, err)
		}
		return session.Errorf(session.Invalid,
			"%s is damaged; run `sessiond doctor`, and if that cannot open it either, restore a backup: %w", path, err)
	case code == sqlite3.SQLITE_READONLY, code == sqlite3.SQLITE_CANTOPEN, code == sqlite3.SQLITE_PERM,
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return session.Errorf(session.Forbidden,
			"%s cannot be opened by this user: check the permissions of the file and its folder, and whether the disk is "+
				"mounted read-only, or name a file elsewhere with --db: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return session.Errorf(session.NotFound,
			"%s does not exist yet: `sessiond import` fills it with the histories of your agents, `sessiond serve` begins it",
			path)
	}
	return fmt.Errorf("open %s: %w", path, storageError(err))
}

// storageError turns what SQLite says of the disk, of locks and of values that the schema
// refuses into codes; anything else stays as it is.
func storageError(err error) error {
	var known *session.Error
	if err = ownStatementError(err); err == nil || errors.As(err, &known) {
		return err
	}
	code := SQLiteCode(err)
	if PostgresCode(err) == diskFull {
		return session.Errorf(session.StorageFull,
			"the disk of PostgreSQL is full; nothing of this request was stored: make room, then try again")
	}
	switch stateOf(err) {
	case StateFull:
		// What SQLite says of it is the same again, over two lines.
		return session.Errorf(session.StorageFull,
			"the disk or the database is full; nothing of this request was stored: make room, then try again")
	case StateUnwritable:
		return session.Errorf(session.Unavailable,
			"the disk refuses the database's files; nothing of this request was stored: see whether it is mounted read-only, "+
				"over a quota or failing, then try again: %w", err)
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return session.Errorf(session.Busy, "another process holds the database's write lock; try again: %w", err)
	}
	switch PostgresCode(err) {
	case checkViolation, invalidText:
		code = sqlite3.SQLITE_CONSTRAINT_CHECK
	}
	if code == sqlite3.SQLITE_CONSTRAINT_CHECK {
		return session.Errorf(session.Invalid,
			"a value is none of those that docs/schema.md allows; nothing of this request was stored: %w", err)
	}
	return err
}
