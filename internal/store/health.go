package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/internal/session"
)

// State names the outcome of the last write.
type State string

// The states.
const (
	StateOK          State = "ok"
	StateFull        State = "full"        // the disk or the database has no room
	StateUnwritable  State = "unwritable"  // the file system refuses writes: read-only, over a quota, failing
	StateDamaged     State = "damaged"     // a page of the database cannot be read; until the next start
	StateUnreachable State = "unreachable" // PostgreSQL does not answer
	StateMoved       State = "moved"       // a file of the database was moved, replaced or deleted while it is open
)

// Health says whether a store accepts writes.
type Health struct {
	State State
	Err   error // what a write is answered; nil: StateOK
}

// Health returns the outcome of the last write, and whether the files are still where they were
// opened. A store that is open read-only has StateOK.
func (s *Store) Health() Health {
	if s.writer == nil {
		return Health{State: StateOK}
	}
	if damage := s.writer.damage.Load(); damage != nil {
		return Health{StateDamaged, *damage}
	}
	if err := s.writer.checkFiles(); err != nil {
		return Health{StateMoved, err}
	}
	if h := s.writer.health.Load(); h.State != StateMoved { // else the files are back
		return *h
	}
	return Health{State: StateOK}
}

// Ready returns why the database cannot be read or accepts no writes: by the outcome of the last write, and
// on PostgreSQL by a transaction that asks whether it may write. Codes: Busy, StorageFull, Unavailable.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.Health().Err; err != nil {
		return err
	}
	if s.writer != nil && s.writer.postgres {
		ctx, cancel := context.WithTimeout(ctx, connectPatience)
		defer cancel()
		err := s.writer.do(ctx, func(t *tx) error { // which a server that only reads lets begin
			readOnly, err := get[string](t.ctx, t, `SELECT current_setting('transaction_read_only')`)
			if err == nil && readOnly == "on" {
				err = errReadOnly(nil)
			}
			return err
		})
		if err == nil {
			err = s.checkPostgresSchema(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = session.Errorf(session.Unavailable, "PostgreSQL has not answered for %s: check its server and the network", connectPatience)
		}
		return err
	}
	_, err := s.LastMessageID(ctx)
	return err
}

// Engine names the database's engine.
func (s *Store) Engine() string {
	if IsPostgres(s.path) {
		return "postgresql"
	}
	return "sqlite"
}

// FailedWrites returns how many writes failed since the start because of the disk or the file.
func (s *Store) FailedWrites() int64 { return s.failed.Load() }

// Probe checks the files and the size of the log, and tries a write of nothing while the last write
// failed, so that a store that nobody writes to notices both the failure and its end.
func (s *Store) Probe(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	s.watchLog()
	if s.Health().State == StateOK && s.writer.health.Load().State == StateOK {
		return nil
	}
	return s.writer.do(ctx, func(*tx) error { return nil })
}

// readFailed is told each error of a reading statement.
func (s *Store) readFailed(err error) {
	if s.writer != nil {
		s.writer.noteDamage(err)
	}
}

// noteDamage refuses all further writes if err says that a page of the database is damaged: what is
// written on may be lost with it, and may destroy what could still be read.
func (w *writer) noteDamage(err error) {
	if !IsDamage(err) {
		return
	}
	var refusal error = session.Errorf(session.Unavailable, "%s is damaged; sessiond stores nothing more in it, and reads what it can. Stop sessiond, then run `sessiond doctor`: %w", w.path, err)
	if w.damage.CompareAndSwap(nil, &refusal) {
		w.opt.Log.Error().Str("state", string(StateDamaged)).Err(refusal).Msg("the database accepts no writes")
	}
}

// IsDamage reports whether err says that a page of the database cannot be read.
func IsDamage(err error) bool {
	code := sqliteCode(err) & 0xff
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// settle records the outcome of a transaction that the store answers for, and logs a change of
// state. An error that is the closure's own says nothing about the file.
func (w *writer) settle(err error) {
	now := Health{stateOf(err), storageError(err)}
	if now.State == "" {
		return
	}
	before := w.health.Swap(&now)
	if now.State == StateMoved {
		w.rescue()
	} else {
		w.rescued = false
	}
	if now.State == before.State || !w.opened.Load() { // who opens learns it from Open or from Health
		return
	}
	if now.Err == nil {
		w.opt.Log.Warn().Str("state", string(now.State)).Str("before", string(before.State)).Msg("the database accepts writes again")
		return
	}
	w.opt.Log.Error().Str("state", string(now.State)).Err(now.Err).Msg("the database accepts no writes")
}

func stateOf(err error) State {
	code := sqliteCode(err)
	switch {
	case err == nil:
		return StateOK
	case errors.Is(err, errMoved):
		return StateMoved
	case isUnreachable(err):
		return StateUnreachable
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_SHMSIZE, postgresCode(err) == diskFull, session.CodeOf(err) == session.StorageFull:
		return StateFull
	case code&0xff == sqlite3.SQLITE_IOERR, code&0xff == sqlite3.SQLITE_READONLY, code&0xff == sqlite3.SQLITE_CANTOPEN,
		postgresCode(err) == readOnlyTransaction, errors.Is(err, errServerReadOnly):
		return StateUnwritable
	}
	return ""
}

// openedFile is a file of the database as it was when SQLite opened it.
type openedFile struct {
	path string
	info fs.FileInfo
}

// rememberFiles records the identities of the database, its log and the log's index. While a
// connection is open in WAL mode SQLite deletes or replaces none of them; it only truncates the log.
func (w *writer) rememberFiles() error {
	var files []openedFile
	for _, path := range []string{w.path, realPath(w.path) + "-wal", realPath(w.path) + "-shm"} {
		info, err := os.Stat(path) // never opened: closing a descriptor drops SQLite's locks
		if err != nil {
			return err
		}
		files = append(files, openedFile{path, info})
	}
	w.files.Store(&files)
	return nil
}

// realPath follows links: SQLite keeps the log beside the file that a link names.
func realPath(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	return path
}

var errMoved = errors.New("sessiond stores nothing until it is back in its place, or until sessiond is restarted; before that POST /v1/backups copies everything that was acknowledged")

// checkFiles returns an error if a file of the database is not at its path any more. SQLite would
// write on into a file that has no name. Codes: Unavailable.
func (w *writer) checkFiles() error {
	files := w.files.Load()
	if files == nil {
		return nil
	}
	for _, f := range *files {
		info, err := os.Stat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return session.Errorf(session.Unavailable, "%s is gone: it was moved or deleted while sessiond had it open; %w", f.path, errMoved)
		case err != nil:
			return session.Errorf(session.Unavailable, "%s cannot be reached (%s); %w", f.path, err.Error(), errMoved)
		case !os.SameFile(f.info, info):
			return session.Errorf(session.Unavailable, "%s is another file now: it was replaced while sessiond had the old one open; %w", f.path, errMoved)
		}
	}
	return nil
}

// rescue moves what the log holds into the database file, wherever that is now: a log without a
// name is lost when the process ends, and beside another database it does harm. Then it holds the
// write lock, which lies in the log's index, so that a process that finds another database at the
// path writes nothing into our log. ready gives the lock back.
func (w *writer) rescue() {
	if w.rescued {
		return
	}
	w.release()
	var busy, log, moved int
	st, err := w.stmt(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`)
	if err == nil {
		err = st.QueryRowContext(context.Background()).Scan(&busy, &log, &moved)
	}
	w.rescued = err == nil && busy == 0 // else a reader keeps it from ending: again at the next write
	w.hold()
}

func (w *writer) hold() {
	w.holds = w.exec1(context.Background(), `BEGIN IMMEDIATE`) == nil
}

func (w *writer) release() {
	if w.holds {
		w.holds = w.exec1(context.Background(), `ROLLBACK`) != nil
	}
}

// ready checks that the files are whole and where they were opened, before anything is done with them.
func (w *writer) ready() error {
	if damage := w.damage.Load(); damage != nil {
		return *damage
	}
	err := w.checkFiles()
	if err == nil {
		w.release()
	}
	return err
}
