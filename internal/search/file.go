package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// version is PRAGMA user_version of the file. It changes with the tables, with the tokens (an index
// only fits queries that are split as its text was), and when messages leave it: 9 has no rows of programs.
const version = 9

// tokenizer configures FTS5: it folds case and diacritics and splits at everything but letters, their marks and
// digits, so that internal/store.go and created_at are phrases. A currency sign before a digit is part
// of a token: see text.Tokenize.
const tokenizer = `unicode61 remove_diacritics 2 categories ''L* N* Mn Mc Co'' tokenchars ''$€£¥''`

// The tables. A docid is created_ms << 12 | n (see millisOf): docids are in the order of time, so that newest-first
// and since/until are ranges of row ids. docs has the facts about a hit that search needs before it
// reads the store. The FTS table is contentless, which keeps the file small; a row can be deleted
// without its text (see Forget).
const schema = `
	CREATE TABLE state (
		id   INTEGER PRIMARY KEY CHECK (id = 1),
		mark INTEGER NOT NULL, -- messages.id up to which everything is indexed
		mark_message TEXT NOT NULL, -- the identity of the message at mark
		boot TEXT NOT NULL,    -- the boot of the machine at the last write; '' once all is synced
		docs  INTEGER NOT NULL, -- number of docs
		words INTEGER NOT NULL, -- in all of them
		languages INTEGER NOT NULL -- bit n: a text in language n was indexed
	);
	INSERT INTO state (id, mark, mark_message, boot, docs, words, languages) VALUES (1, 0, '', '', 0, 0, 0);
	CREATE TABLE docs (
		docid      INTEGER PRIMARY KEY,
		message_id INTEGER NOT NULL UNIQUE,
		session_id TEXT NOT NULL,
		seq        INTEGER NOT NULL,
		words      INTEGER NOT NULL,
		tool       INTEGER NOT NULL -- 1: only the call or the output of a tool
	);
	CREATE VIRTUAL TABLE words USING fts5(stems, inflected, tags, content = '', contentless_delete = 1, tokenize = '` + tokenizer + `');`

// openFile opens or creates the file. One process at a time does so: two that find the same damage
// must not both remove the file.
func (ix *Index) openFile(ctx context.Context) error {
	lock := flock.New(ix.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s.lock: %w", ix.path, err)
	}
	defer func() { _ = lock.Unlock() }() // closing the file unlocks it too

	err := ix.tryOpen(ctx)
	if !errors.Is(err, errOtherVersion) && !errors.Is(err, errTorn) && !isDamage(err) {
		return err
	}
	if err := removeFile(ix.path); err != nil {
		return err
	}
	return ix.tryOpen(ctx)
}

var (
	errOtherVersion = errors.New("another version of sessiond wrote it")
	errTorn         = errors.New("the machine stopped while it was being written")
)

func (ix *Index) tryOpen(ctx context.Context) (err error) {
	f, err := os.OpenFile(ix.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close() // new and empty: no process has it open
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
		if err := setHashSize(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
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
	if err := setHashSize(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// hashSize is how many bytes of new tokens FTS5 collects before it writes a segment. With its 1 MB a step of CatchUp
// writes many segments, which it then merges.
const hashSize = 8 << 20

// setHashSize sets it in the file, where it stays.
func setHashSize(ctx context.Context, tx *sql.Tx) error {
	var set bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM words_config WHERE k = 'hashsize' AND v = ?)`, hashSize).Scan(&set)
	if err == nil && !set {
		_, err = tx.ExecContext(ctx, `INSERT INTO words (words, rank) VALUES ('hashsize', ?)`, hashSize)
	}
	return err
}

// openExisting opens the file read-only and checks its version.
func openExisting(ctx context.Context, path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("it does not exist yet")
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

// bootID returns the id of the machine's current boot. The file is never synced during writes: after
// a power loss its content is undefined, after the end of a process it is complete. Systems without
// a boot id cannot tell these apart.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}

// seal syncs all writes and leaves one file, which can also be read in a read-only folder. With a
// reader in another process the write-ahead log stays, which does no harm.
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

// connect opens a pool. It never syncs the file, which is derived data. A statement waits up to two
// seconds for another process.
func connect(path, mode string, connections int) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	query := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(2000)"}}
	if mode == "ro" {
		query["_pragma"] = append(query["_pragma"], "query_only(1)", "cache_size(-2048)")
	} else {
		query.Set("_txlock", "immediate")
		query["_pragma"] = append(query["_pragma"], "journal_mode(WAL)", "synchronous(OFF)", "cache_size(-16384)",
			"secure_delete(1)")
	}
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(time.Minute) // frees its page cache
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

// hasCode reports whether err is one of SQLite with one of the primary result codes.
func hasCode(err error, codes ...int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code()&0xff)
}

// isDamage reports whether the file is not a database or has invalid pages.
func isDamage(err error) bool { return hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) }

// isContradiction reports whether the tables of the index disagree: a row that should be missing
// exists.
func isContradiction(err error) bool { return hasCode(err, sqlite3.SQLITE_CONSTRAINT) }

// isFull reports whether the disk has no room for the file, its log or the log's index.
func isFull(err error) bool {
	var e *sqlite.Error
	return hasCode(err, sqlite3.SQLITE_FULL) || errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE
}

// isUnwritable reports whether the disk refuses the file, or the file was moved.
func isUnwritable(err error) bool {
	return isFull(err) || hasCode(err, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
}

func isBusy(err error) bool { return hasCode(err, sqlite3.SQLITE_BUSY) }
