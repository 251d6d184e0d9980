package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver
	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/db/migrations"
	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// The application id in SQLite's header marks a file as sessiond's.
const (
	applicationID          = 0x73657331 // "ses1": since version 0.1.0
	oldApplicationID       = 0x73657364 // "sesd": before it
	firstMigration   int64 = 100        // the baseline of version 0.1.0
)

const (
	// A small append changes one page in each of some ten tables and indexes, and the log holds
	// every changed page whole.
	pageSize    = 2048
	readerConns = 4
	reportConns = 2           // opened when the first report asks
	connIdle    = time.Minute // then a reader is closed, and its page cache freed
	// Waiting inside SQLite cannot be cancelled, so it is short and retried above. The writer
	// does not wait inside SQLite at all.
	busyTimeoutMS = 250
	// How long a start or a write waits for another process.
	lockPatience = 10 * time.Second
)

// Open opens the database at path. Unless it is read-only, it makes the file and its folder
// where they are missing (0600 and 0700, whatever the umask), tightens looser modes and brings the
// schema up to date; two processes may do that at once. On a full disk it opens what is there, and
// Health says so. Codes: NotFound (read-only and no file), Invalid (no database, another program's,
// a newer sessiond's), Forbidden (not writable), Busy.
func Open(ctx context.Context, path string, opt Options) (*DB, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if IsPostgres(path) {
		return openPostgres(ctx, path, opt)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = checkLog(path, opt)
	}
	if err != nil {
		return nil, openError(path, false, err)
	}
	openStores.Add(1)
	s := &DB{path: path, opt: opt, prepared: map[string]*sqlx.Stmt{}}
	s.Statements = Statements{stmt: s.readerStmt, failed: s.ReadFailed}
	log, err := os.Stat(path + "-wal")
	besideLog := err == nil && log.Size() > 0 // afterwards it may be gone
	if opt.ReadOnly {
		err = s.openReadOnly(ctx)
	} else {
		err = s.openReadWrite(ctx)
	}
	if err != nil {
		if s.writer != nil {
			s.writer.stop()
		}
		if s.writer == nil || !s.writer.staysOpen {
			s.closeAll()
		}
		return nil, openError(path, besideLog, err)
	}
	return s, nil
}

func (s *DB) openReadWrite(ctx context.Context) error {
	if err := makeFile(s.path); err != nil {
		return err
	}
	lock, err := lockFolder(ctx, s.path)
	if err != nil {
		return err
	}
	defer lock.Unlock() //nolint:errcheck // closing the process would unlock it too

	if s.writeDB, err = sql.Open("sqlite", DSN(s.path, "rwc",
		"secure_delete(1)", "foreign_keys(1)", "synchronous(full)",
		"wal_autocheckpoint(8000)", "cache_size(-8192)", "temp_store(memory)")); err != nil {
		return err
	}
	s.writeDB.SetMaxOpenConns(1)
	if err = s.migrate(ctx); err != nil {
		return err
	}
	if name := networkFileSystem(s.path); name != "" {
		s.opt.Log.Warn().Msgf("%s is on a network file system (%s), where two hosts can damage it and a lost connection "+
			"tears writes: put it on a local disk, or use PostgreSQL for several hosts", s.path, name)
	}
	if info, err := os.Stat(s.path); err == nil && linkCount(info) > 1 {
		// Each name has its own log and its own locks on it.
		s.opt.Log.Warn().Msgf("%s has a second name, a hard link: a program that writes to the database by that name "+
			"damages it, and a copy that is a link changes with it. Remove the other name; `sessiond backup` makes a copy",
			s.path)
	}
	s.writer, err = startWriter(s.writeDB, s.path, s.opt)
	if err != nil {
		return err
	}
	err = s.atStart(ctx)
	if err != nil && session.CodeOf(err) != session.StorageFull { // else what is stored can be read
		return err
	}
	if st := s.writer.stamp; st != nil && st.low.count == 0 { // until then copies from before stamps have the same number
		if err := s.Alone(ctx, func(t *Tx) error {
			return t.w.exec1(t.Ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
		}); err != nil && !isBusy(err) {
			return err
		}
	}
	s.writer.opened.Store(true)
	if err := s.openReaders(ctx, DSN(s.path, "rw", "query_only(1)", "cache_size(-4096)",
		"temp_store(memory)")); err != nil {
		return err
	}
	return s.announceOpened(ctx)
}

// atStart runs Options.AtStart.
func (s *DB) atStart(ctx context.Context) error {
	return s.Write(ctx, func(t *Tx) error {
		if s.opt.AtStart == nil {
			return nil
		}
		return s.opt.AtStart(t)
	})
}

// announceOpened runs Options.Opened.
func (s *DB) announceOpened(ctx context.Context) error {
	if s.opt.Opened == nil {
		return nil
	}
	return s.opt.Opened(ctx, s)
}

// openReadOnly falls back on immutable=1 where SQLite cannot make its -shm file, which is
// safe only while no WAL holds anything.
func (s *DB) openReadOnly(ctx context.Context) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return session.Errorf(session.Invalid, "%s is a folder; name the database file in it", s.path)
	}
	err = s.openReaders(ctx, DSN(s.path, "ro", "query_only(1)", "temp_store(memory)"))
	if code := SQLiteCode(err); code&0xff == sqlite3.SQLITE_CANTOPEN || code&0xff == sqlite3.SQLITE_READONLY {
		if wal, statErr := os.Stat(s.path + "-wal"); statErr == nil && wal.Size() > 0 {
			return session.Errorf(session.Forbidden,
				"%s has a write-ahead log that holds something, and this folder cannot be written: "+
					"open it as a user who may write here, or make a copy with `sessiond backup`", s.path)
		}
		s.closeHandles()
		err = s.openReaders(ctx, DSN(s.path, "ro", "query_only(1)", "temp_store(memory)")+"&immutable=1")
	}
	if err != nil {
		return err
	}
	return s.checkVersion(ctx, s.readers.DB)
}

func (s *DB) openReaders(ctx context.Context, source string) error {
	readers, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	db := sqlx.NewDb(readers, "sqlite")
	s.readers, s.readName = db, source
	db.SetMaxOpenConns(readerConns)
	db.SetMaxIdleConns(readerConns)
	db.SetConnMaxIdleTime(connIdle)
	reports, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	s.reports = sqlx.NewDb(reports, "sqlite")
	s.reports.SetMaxOpenConns(reportConns)
	s.reports.SetMaxIdleConns(reportConns)
	s.reports.SetConnMaxIdleTime(connIdle)
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

// DSN builds the driver's name for the file. Every pragma is one that a test reads back.
func DSN(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}}
	q.Add("_pragma", "busy_timeout("+strconv.Itoa(busyTimeoutMS)+")")
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" { // C:/…, which SQLite expects as /C:/…
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// migrate brings the schema up to date under the caller's lock.
func (s *DB) migrate(ctx context.Context) error {
	if err := retryBusy(ctx, func() error { return s.checkVersion(ctx, s.writeDB) }); err != nil {
		return err
	}
	TightenModes(s.path, s.opt.Log) // now that the file is known to be sessiond's; one that nobody may write ends here
	// A new file is marked first of all, so that one whose making was cut short is known again.
	// auto_vacuum must come before anything is in it; with every connection it would write.
	var tables int
	if err := s.writeDB.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		if _, err := s.writeDB.ExecContext(ctx, fmt.Sprintf(`PRAGMA page_size = %d; PRAGMA auto_vacuum = incremental; PRAGMA application_id = %d`, pageSize, applicationID)); err != nil {
			return err
		}
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writeDB, migrations.FS)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	pending, err := provider.HasPending(ctx)
	if err != nil || !pending {
		return err
	}
	if tables > 0 && !s.opt.Scratch {
		if err := s.copyBeforeMigration(ctx, provider); err != nil {
			return err
		}
	}
	_, err = provider.Up(ctx)
	return session.Wrap(err, "migrate")
}

// beforeMigration begins the name of the copy of a database from before its schema was brought up to date.
const beforeMigration = "before-schema-"

// copyBeforeMigration writes a checked copy of a database into the folder of backups before its schema changes, and
// removes the copies of earlier changes. Codes: StorageFull.
func (s *DB) copyBeforeMigration(ctx context.Context, provider *goose.Provider) error {
	have, err := provider.GetDBVersion(ctx)
	if err != nil || have < firstMigration { // its making was cut short: nothing is in it
		return err
	}
	out := keptName(s.path, fmt.Sprintf("%s%d-%s", beforeMigration, have, nameOf(s.path)), s.opt.Now())
	if err := os.MkdirAll(filepath.Dir(out), 0o700); err != nil {
		return err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if free, err := freeBytes(out); err == nil && free < info.Size() {
		return session.Errorf(session.StorageFull,
			"%s has an older schema, and there is no room for a copy of it (%d MB in %s) before it is brought up to date: "+
				"make room, then start again; nothing was changed", s.path, info.Size()>>20+1, filepath.Dir(out))
	}
	err = WriteNew(out, func(tmp string) error {
		if err := vacuumInto(ctx, s.writeDB, tmp); err != nil {
			return err
		}
		return finishCopy(ctx, tmp)
	})
	if err != nil {
		return fmt.Errorf("copy %s before its schema is brought up to date; nothing was changed: %w", s.path, err)
	}
	s.opt.Log.Info().Msgf("the schema of %s is brought up to date; %s has it as it was, with schema %d", s.path, out, have)
	files, _ := os.ReadDir(filepath.Dir(out)) // what cannot be listed stays
	for _, file := range files {
		if name := file.Name(); name != filepath.Base(out) && isCopyBeforeMigration(name, nameOf(s.path)) {
			_ = os.Remove(filepath.Join(filepath.Dir(out), name)) // the newest one is enough, until the next change
		}
	}
	return nil
}

// isCopyBeforeMigration reports whether a file is a copy of the database of a name: others in the same folder keep
// theirs in the same folder of backups.
func isCopyBeforeMigration(file, database string) bool {
	rest, ok := strings.CutPrefix(file, beforeMigration)
	schema, rest, _ := strings.Cut(rest, "-")
	_, err := strconv.Atoi(schema)
	rest, named := strings.CutPrefix(rest, database+"-")
	return ok && err == nil && named && len(rest) == len(keptTime+".db")
}

// nameOf returns the name of a database's file without its ending.
func nameOf(database string) string {
	name := filepath.Base(realPath(database))
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// checkVersion refuses a file that is not sessiond's, is of a newer one or from before version
// 0.1.0, before anything is changed.
func (s *DB) checkVersion(ctx context.Context, db *sql.DB) error {
	var tables, goosed int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(name = 'goose_db_version'), 0) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables, &goosed)
	if err != nil {
		return err
	}
	var app int
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app); err != nil {
		return err
	}
	if tables == 0 && (app == 0 || app == applicationID) {
		return s.unmade()
	}
	if app == oldApplicationID {
		return s.tooOld()
	}
	if goosed == 0 || app != applicationID {
		return session.Errorf(session.Invalid,
			"%s is not sessiond's: it is another program's SQLite database, or an empty one; nothing was changed. "+
				"Name another file with --db", s.path)
	}
	var have, want int64
	if err := db.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&have); err != nil {
		return err
	}
	if want, err = newestMigration("*.sql"); err != nil {
		return err
	}
	switch {
	case have == 0:
		return s.unmade()
	case have < firstMigration:
		return s.tooOld()
	case have > want:
		return session.Errorf(session.Invalid,
			"%s has schema %d, this sessiond knows up to %d: update sessiond; nothing was changed", s.path, have, want)
	case have < want && s.opt.ReadOnly:
		return session.Errorf(session.Invalid, "%s %w, %d, and this sessiond reads %d: start `sessiond serve` (anew, "+
			"if an older one is running) to bring it up to date", s.path, ErrOlderSchema, have, want)
	}
	return nil
}

// ErrOlderSchema is why a file of an earlier version is not opened read-only. CopyFile makes one that an open which
// writes brings up to date.
var ErrOlderSchema = errors.New("has an older schema")

// unmade is the answer to a file without the schema: its first start was cut short, or is not over.
// A start that writes makes it. Codes: NotFound.
func (s *DB) unmade() error {
	if !s.opt.ReadOnly {
		return nil
	}
	return session.Errorf(session.NotFound,
		"%s is empty: `sessiond import` fills it with the histories of your agents, `sessiond serve` begins it", s.path)
}

func (s *DB) tooOld() error {
	return session.Errorf(session.Invalid, `%s was made before version 0.1.0, which has another schema; nothing was changed. Move its sessions in two steps:
with the version that made it: sessiond export -o all.jsonl
with this one, after you moved the file elsewhere: sessiond import sessiond all.jsonl
Sessions, messages and calls keep their names and numbers; event ids, idempotency keys and the cursors of imported sources begin anew`, s.path)
}

// newestMigration returns the highest number of the migrations that match a pattern.
func newestMigration(pattern string) (int64, error) {
	names, err := fs.Glob(migrations.FS, pattern)
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations are embedded: %w", err)
	}
	return goose.NumericComponent(names[len(names)-1])
}

// roomForLog is the free space without which a database does not leave its rollback journal: the
// index of an empty log is 32 KiB, and a database in WAL mode cannot even be read without it.
const roomForLog = 1 << 20

func (w *writer) useWAL(ctx context.Context) error {
	var mode string
	if err := w.conn.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil || mode == "wal" {
		return err
	}
	if free, err := freeBytes(w.path); err == nil && free < roomForLog {
		return session.Errorf(session.StorageFull,
			"the disk has no room for the write-ahead log of %s; nothing of this request was stored: make room, then try again",
			w.path)
	}
	if err := w.conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return session.Errorf(session.Invalid,
			"this file system cannot hold SQLite's write-ahead log (journal_mode stays %q): put the database on a local disk",
			mode)
	}
	return nil
}

func (s *DB) closeHandles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.network != nil {
		s.network.closing.Store(true)
	}
	for query, st := range s.prepared {
		st.Close() //nolint:errcheck // reading statements
		delete(s.prepared, query)
	}
	for _, db := range []*sqlx.DB{s.readers, s.reports, s.callersSQL} {
		if db != nil {
			db.Close() //nolint:errcheck // nothing to lose in a reader
		}
	}
	if s.writeDB != nil {
		s.writeDB.Close() //nolint:errcheck // closed after its last commit
	}
}

// Close finishes what was begun. If no other process has the file open, the file alone is
// then the whole database: the WAL is emptied and given up. Whatever is asked of a closed
// store fails; closing it again does nothing. If the files were moved or overwritten by hand, the error says where
// everything is.
func (s *DB) Close() (err error) {
	s.closing.Do(func() {
		if s.writer != nil {
			s.writer.stop()
			if err = s.writer.left; s.writer.staysOpen {
				return
			}
			s.leaveWAL()
		}
		s.closeAll()
	})
	return err
}

// closeAll closes the handles, then the descriptors of the stamp: SQLite's locks belong to the process, so
// another store of it may still need them.
func (s *DB) closeAll() {
	s.closeHandles()
	if !IsPostgres(s.path) && openStores.Add(-1) == 0 && s.writer != nil && s.writer.stamp != nil {
		s.writer.stamp.close()
	}
}

// openStores counts the stores of this process on files.
var openStores atomic.Int32

func (s *DB) leaveWAL() {
	if s.writer.postgres {
		return
	}
	if runtime.GOOS == "windows" && s.writer.stamp != nil { // which deletes no file that is open
		s.writer.stamp.log.Close() //nolint:errcheck // only read
	}
	// A reader of our own would keep SQLite from giving up the log.
	s.readers.Close() //nolint:errcheck // nothing to lose in a reader
	s.reports.Close() //nolint:errcheck // as above
	var mode string
	err := s.writeDB.QueryRowContext(context.Background(), `PRAGMA journal_mode = DELETE`).Scan(&mode)
	switch {
	case err != nil && !isBusy(err):
		s.opt.Log.Warn().Str("db", s.path).Err(err).Msg("the write-ahead log stays: the file alone is not yet a backup")
	case err != nil || mode != "delete":
		s.opt.Log.Info().Str("db",
			s.path).Msg("another process still has the database open: the file alone is not yet a backup")
	}
}

// checkLog refuses a database with a write-ahead log that belongs to another file: SQLite would delete the log where
// the database is missing, and would write it into one that was put there. Codes: Conflict.
func checkLog(path string, opt Options) error {
	file := realPath(path)
	info, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isThere := err == nil && info.Size() > 0
	if opt.New && isThere {
		return session.Errorf(session.Conflict, "%s exists: --new begins a new database only where none is; leave it out",
			path)
	}
	for tries := 0; ; tries++ { // another process may have moved its log into the file between the two readings
		log, err := readLog(file + "-wal")
		switch {
		case err != nil || log.pages == 0:
			return err
		case !isThere && opt.New:
			kept, err := setAside(path, "left", opt.Now(), func(fs.FileInfo) bool { return true })
			if err == nil {
				opt.Log.Warn().Msgf("a new database begins; the write-ahead log of the one before it is %s now", kept)
			}
			return err
		case !isThere:
			return session.Errorf(session.Conflict,
				"%s is missing or empty, but its write-ahead log %s-wal holds %d pages that were acknowledged. "+
					"Nothing was changed. If the database was moved, move it back beside its log; if it is lost, "+
					"`sessiond restore FILE` puts a backup in its place; `sessiond serve --new` begins anew. "+
					"Both keep the log in the folder of backups", path, file, log.pages)
		case openStores.Load() > 0: // of this process: closing a descriptor would drop its locks
			return nil
		}
		h, err := readHeaderOf(file)
		if err == nil && log.belongsTo(h) {
			return nil
		}
		if err != nil && !errors.Is(err, errNoHeader) {
			return err
		}
		if tries == 5 {
			return session.Errorf(session.Conflict,
				"%s was overwritten while its write-ahead log was in use: %s-wal belongs to the file before, "+
					"and would damage this one. Nothing was changed. Stop what still runs on it. "+
					"Then `sessiond restore FILE` puts a backup in its place; or, if the file that is there now is whole, "+
					"move the log and %[2]s-shm elsewhere", path, file)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func readHeaderOf(path string) (header, error) {
	f, err := os.Open(path)
	if err != nil {
		return header{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	return readHeader(f)
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
	return errors.Join(f.Chmod(0o600), f.Close(), folders.Sync(filepath.Dir(path)))
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
	return folders.Sync(filepath.Dir(dir))
}
