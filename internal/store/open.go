package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/db/migrations"
	"sessiond/internal/session"
)

// applicationID marks the file as sessiond's in SQLite's own header: "sesd".
const applicationID = 0x73657364

const (
	readerConns = 4
	// Waiting inside SQLite cannot be cancelled, so it is short and retried above.
	busyTimeoutMS = 250
	// How long a start or a write waits for another process.
	lockPatience = 10 * time.Second
)

// Open opens the database at path. Unless it is read-only, it makes the file and its folder
// where they are missing (0600 and 0700, whatever the umask) and brings the schema up to
// date; two processes may do that at once. Codes: NotFound (read-only and no file), Invalid
// (no database, another program's, a newer sessiond's), Forbidden (not writable), Busy.
func Open(ctx context.Context, path string, opt Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Zone == nil {
		opt.Zone = time.Local
	}
	s := &Store{path: path, opt: opt, prepared: map[string]*sqlx.Stmt{}}
	if opt.ReadOnly {
		err = s.openReadOnly(ctx)
	} else {
		err = s.openReadWrite(ctx)
	}
	if err != nil {
		s.closeHandles()
		return nil, openError(path, err)
	}
	return s, nil
}

func (s *Store) openReadWrite(ctx context.Context) error {
	if err := makeFile(s.path); err != nil {
		return err
	}
	// Flocking the folder leaves no lock file behind. Only the start needs it.
	lock := flock.New(filepath.Dir(s.path), flock.SetFlag(os.O_RDONLY))
	lockCtx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if ok, err := lock.TryLockContext(lockCtx, 10*time.Millisecond); err != nil || !ok {
		return session.Errorf(session.Busy, "%s: another process has been starting on this folder for %s; try again", s.path, lockPatience)
	}
	defer lock.Unlock() //nolint:errcheck // closing the process would unlock it too

	var err error
	if s.writeDB, err = sql.Open("sqlite", dsn(s.path, "rwc",
		"auto_vacuum(incremental)", "secure_delete(1)", "foreign_keys(1)", "synchronous(full)",
		"wal_autocheckpoint(4000)", "cache_size(-32768)", "temp_store(memory)")); err != nil {
		return err
	}
	s.writeDB.SetMaxOpenConns(1)
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if err := retryBusy(ctx, func() error { return useWAL(ctx, s.writeDB) }); err != nil {
		return err
	}
	if err := s.openReaders(ctx, dsn(s.path, "rw", "query_only(1)", "cache_size(-16384)", "temp_store(memory)")); err != nil {
		return err
	}
	s.writer, err = startWriter(s.writeDB, s.opt)
	if err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error { return t.housekeeping() })
}

// openReadOnly falls back on immutable=1 where SQLite cannot make its -shm file, which is
// safe only while no WAL holds anything.
func (s *Store) openReadOnly(ctx context.Context) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return session.Errorf(session.Invalid, "%s is a folder; name the database file in it", s.path)
	}
	err = s.openReaders(ctx, dsn(s.path, "ro", "query_only(1)", "temp_store(memory)"))
	if code := sqliteCode(err); code&0xff == sqlite3.SQLITE_CANTOPEN || code&0xff == sqlite3.SQLITE_READONLY {
		if wal, statErr := os.Stat(s.path + "-wal"); statErr == nil && wal.Size() > 0 {
			return session.Errorf(session.Forbidden,
				"%s has a write-ahead log that holds something, and this folder cannot be written: open it as a user who may write here, or make a copy with `sessiond backup`", s.path)
		}
		s.closeHandles()
		err = s.openReaders(ctx, dsn(s.path, "ro", "query_only(1)", "temp_store(memory)")+"&immutable=1")
	}
	if err != nil {
		return err
	}
	return s.checkVersion(ctx, s.readers.DB)
}

func (s *Store) openReaders(ctx context.Context, source string) error {
	db, err := sqlx.Open("sqlite", source)
	if err != nil {
		return err
	}
	s.readers = db
	db.SetMaxOpenConns(readerConns)
	db.SetMaxIdleConns(readerConns)
	var only int
	if err := db.GetContext(ctx, &only, `PRAGMA query_only`); err != nil {
		return err
	}
	if only != 1 {
		return errors.New("the reading connections are not read-only")
	}
	// The pragma above is answered without touching the file.
	var n int
	return db.GetContext(ctx, &n, `SELECT COUNT(*) FROM sqlite_schema`)
}

// dsn builds the driver's name for the file. Every pragma is one that a test reads back.
func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}}
	q.Add("_pragma", "busy_timeout("+strconv.Itoa(busyTimeoutMS)+")")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// migrate brings the schema up to date under the caller's lock.
func (s *Store) migrate(ctx context.Context) error {
	if err := retryBusy(ctx, func() error { return s.checkVersion(ctx, s.writeDB) }); err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writeDB, migrations.FS)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	pending, err := provider.HasPending(ctx)
	if err != nil || !pending {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	_, err = s.writeDB.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID))
	return err
}

// checkVersion refuses what is not sessiond's, or is of a newer one, before anything is changed.
func (s *Store) checkVersion(ctx context.Context, db *sql.DB) error {
	var tables, goosed int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(name = 'goose_db_version'), 0) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables, &goosed)
	if err != nil {
		return err
	}
	if tables == 0 && !s.opt.ReadOnly {
		return nil
	}
	var app int
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app); err != nil {
		return err
	}
	if goosed == 0 || app != 0 && app != applicationID {
		return session.Errorf(session.Invalid, "%s is not sessiond's: it is another program's SQLite database, or an empty one; nothing was changed. Name another file with --db", s.path)
	}
	var have, want int64
	if err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&have); err != nil {
		return err
	}
	if want, err = newestMigration(); err != nil {
		return err
	}
	switch {
	case have > want:
		return session.Errorf(session.Invalid, "%s has schema %d, this sessiond knows up to %d: update sessiond; nothing was changed", s.path, have, want)
	case have < want && s.opt.ReadOnly:
		return session.Errorf(session.Invalid, "%s has schema %d, this sessiond reads %d: start `sessiond serve` once to bring it up to date", s.path, have, want)
	}
	return nil
}

func newestMigration() (int64, error) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations are embedded: %w", err)
	}
	return goose.NumericComponent(names[len(names)-1])
}

func useWAL(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return session.Errorf(session.Invalid, "this file system cannot hold SQLite's write-ahead log (journal_mode stays %q): put the database on a local disk", mode)
	}
	return nil
}

// makeFile makes the file and its folders with narrow permissions before SQLite sees them.
// It never opens a file that exists: closing it would drop SQLite's locks in this process.
func makeFile(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		if info.IsDir() {
			return session.Errorf(session.Invalid, "%s is a folder; name the database file in it", path)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close(), syncFolder(filepath.Dir(path)))
}

// makeFolder makes a folder and its parents, and sees to it that they survive a power cut.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// retryBusy repeats fn while another process holds the lock it needs.
func retryBusy(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := fn()
		if code := sqliteCode(err) & 0xff; code != sqlite3.SQLITE_BUSY && code != sqlite3.SQLITE_LOCKED {
			return err
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return session.Errorf(session.Busy, "another process has held the database's write lock for %s; try again: %w", lockPatience, err)
		}
		time.Sleep(5 * time.Millisecond) // the driver has waited busyTimeoutMS already
	}
}

// sqliteCode gives the extended result code of an error, 0 when it is not SQLite's.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// openError says what is wrong with the file in words that lead on.
func openError(path string, err error) error {
	var known *session.Error
	if errors.As(err, &known) {
		return err
	}
	switch code := sqliteCode(err); {
	case code&0xff == sqlite3.SQLITE_NOTADB:
		return session.Errorf(session.Invalid, "%s is not an SQLite database; nothing was changed. Name another file with --db: %w", path, err)
	case code&0xff == sqlite3.SQLITE_CORRUPT:
		return session.Errorf(session.Invalid, "%s is damaged; run `sessiond doctor`, or restore a backup: %w", path, err)
	case code&0xff == sqlite3.SQLITE_READONLY, code&0xff == sqlite3.SQLITE_CANTOPEN, errors.Is(err, fs.ErrPermission), code&0xff == sqlite3.SQLITE_PERM:
		return session.Errorf(session.Forbidden, "%s cannot be opened for writing by this user: check the permissions of the file and its folder: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return session.Errorf(session.NotFound, "%s does not exist: start `sessiond serve`, or import something, to make it: %w", path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// storageError turns SQLite's full disk and locks into codes; anything else stays as it is.
func storageError(err error) error {
	var known *session.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_FULL:
		return session.Errorf(session.StorageFull, "the disk or the database is full; nothing of this request was stored: %w", err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return session.Errorf(session.Busy, "another process holds the database's write lock; try again: %w", err)
	}
	return err
}

// housekeeping is what every start does: it gives the file its identity, fails compactions
// that a crash cut short, and forgets empty drafts and old idempotency keys.
func (t *tx) housekeeping() error {
	id := make([]byte, 6)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	now := t.now
	week := session.At(now.AddDate(0, 0, -7))
	day := session.At(now.AddDate(0, 0, -1))
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`INSERT OR IGNORE INTO store (id, epoch, created_at) VALUES (1, ?, ?)`, []any{hex.EncodeToString(id), now}},
		{`DELETE FROM idempotency_keys WHERE created_at < ?`, []any{week}},
		{`DELETE FROM sessions WHERE draft = 1 AND message_count = 0 AND created_at < ?
		  AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.session_id = sessions.id)`, []any{day}},
	} {
		if _, err := t.exec(step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) closeHandles() {
	for _, st := range s.prepared {
		st.Close() //nolint:errcheck // read-only statements
	}
	s.prepared = map[string]*sqlx.Stmt{}
	if s.readers != nil {
		s.readers.Close() //nolint:errcheck // nothing to lose in a reader
		s.readers = nil
	}
	if s.writeDB != nil {
		s.writeDB.Close() //nolint:errcheck // closed after its last commit
		s.writeDB = nil
	}
}

// Close finishes what was begun. If no other process has the file open, the file alone is
// then the whole database: the WAL is emptied and given up.
func (s *Store) Close() error {
	if s.writer == nil {
		s.closeHandles()
		return nil
	}
	s.writer.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for q, st := range s.prepared {
		st.Close() //nolint:errcheck // read-only statements
		delete(s.prepared, q)
	}
	err := s.readers.Close()
	s.readers = nil
	var mode string
	ctx := context.Background()
	errMode := s.writeDB.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode)
	if errMode != nil || mode != "delete" {
		s.opt.Log.Info().Str("db", s.path).Msg("another process still has the database open: the file alone is not yet a backup")
	}
	err = errors.Join(err, s.writeDB.Close())
	s.writeDB, s.writer = nil, nil
	return err
}
