package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// version is PRAGMA user_version of the file. It counts what changes the tables, and also
// what changes the tokens: an index is only good for queries that are cut as its text was.
const version = 2

// The tables. A docid is created_ms << 12 | n: it is in the order of time, whatever the order
// of arrival, so that newest-first and since/until are ranges of row ids. docs is what a hit
// needs to know before the store is asked. The FTS table is contentless, which keeps the file
// small; a row leaves it without its text being known (see Forget).
const schema = `
	CREATE TABLE state (
		id   INTEGER PRIMARY KEY CHECK (id = 1),
		mark INTEGER NOT NULL, -- messages.id up to which everything is indexed
		boot TEXT NOT NULL     -- the run of the machine that wrote last; '' once all is on the disk
	);
	INSERT INTO state (id, mark, boot) VALUES (1, 0, '');
	CREATE TABLE docs (
		docid      INTEGER PRIMARY KEY,
		message_id INTEGER NOT NULL UNIQUE,
		session_id TEXT NOT NULL,
		seq        INTEGER NOT NULL,
		words      INTEGER NOT NULL
	);
	CREATE VIRTUAL TABLE words USING fts5(text, stems, tags, content = '', contentless_delete = 1, tokenize = '` + tokenizer + `');`

// openFile opens or makes the file. One process at a time does so, for two that find the
// same damage must not both remove it.
func (ix *Index) openFile(ctx context.Context) error {
	lock := flock.New(ix.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s.lock: %w", ix.path, err)
	}
	defer func() { _ = lock.Unlock() }() // closing the file unlocks it in any case

	err := ix.tryOpen(ctx)
	if err == nil || !(errors.Is(err, errOtherVersion) || errors.Is(err, errTorn) || isDamage(err)) {
		return err
	}
	if err := removeFile(ix.path); err != nil {
		return err
	}
	return ix.tryOpen(ctx)
}

var (
	errOtherVersion = errors.New("it was made by another version of sessiond")
	errTorn         = errors.New("the machine went down while it was written")
)

func (ix *Index) tryOpen(ctx context.Context) (err error) {
	f, err := os.OpenFile(ix.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close() // made here and empty: nobody has it open yet
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	ix.writer, err = connect(ix.path, "rwc", 1)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ix.closeFile())
		}
	}()
	if err := makeTables(ctx, ix.writer); err != nil {
		return err
	}
	ix.reader, err = openExisting(ctx, ix.path)
	return err
}

func makeTables(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var found, tables int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	if found == version {
		return nil
	}
	if found != 0 || tables != 0 {
		return errOtherVersion
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, version)); err != nil {
		return err
	}
	return tx.Commit()
}

// openExisting opens the file for reading and checks that it is an index of this version.
func openExisting(ctx context.Context, path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("there is none yet")
	}
	db, err := connect(path, "ro", 4)
	if err != nil {
		return nil, err
	}
	var found int
	if err = db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err == nil && found != version {
		err = errOtherVersion
	}
	var boot string
	if err == nil {
		err = db.QueryRowContext(ctx, `SELECT boot FROM state WHERE id = 1`).Scan(&boot)
	}
	if err == nil && boot != "" && boot != bootID() {
		err = errTorn
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// bootID names this run of the machine. The file is never synced while it is written: after
// a power loss it may hold anything, after the death of a process it is whole. Where the
// system does not name its runs, that is not told apart.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}

// seal brings everything that was written to the disk and leaves one file, which can also be
// read where nothing may be written. With a reader in another process the write-ahead log
// stays, which harms nothing.
func seal(db *sql.DB) error {
	for _, statement := range []string{
		`PRAGMA synchronous = FULL`,
		`UPDATE state SET boot = '' WHERE boot <> ''`,
		`PRAGMA wal_checkpoint(TRUNCATE)`,
		`PRAGMA journal_mode = DELETE`,
	} {
		if _, err := db.Exec(statement); err != nil && !isBusy(err) {
			return err
		}
	}
	return nil
}

// connect opens a pool. The file is derived, so it is never synced; a statement waits up to
// two seconds for another process.
func connect(path, mode string, connections int) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	query := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(2000)"}}
	if mode == "ro" {
		query["_pragma"] = append(query["_pragma"], "query_only(1)", "cache_size(-8192)")
	} else {
		query.Set("_txlock", "immediate")
		query["_pragma"] = append(query["_pragma"], "journal_mode(WAL)", "synchronous(OFF)", "cache_size(-4096)", "secure_delete(1)")
	}
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

func removeFile(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// isDamage tells whether the file is no database, or one whose pages make no sense.
func isDamage(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// isContradiction tells whether the tables of the index disagree: what it says is not there
// cannot be inserted.
func isContradiction(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
