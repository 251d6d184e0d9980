package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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
	StateOverwritten State = "overwritten" // the file was overwritten in place while it is open; until the next start
)

// Health says whether a store accepts writes.
type Health struct {
	State State
	Err   error // what a write is answered; nil: StateOK
}

// Health returns the outcome of the last write, and whether the files are still where they were
// opened. A store that is open read-only has StateOK.
func (s *DB) Health() Health {
	if s.writer == nil {
		return Health{State: StateOK}
	}
	err := s.writer.checkFiles()
	if damage := s.writer.damage.Load(); damage != nil && !errors.Is(err, errOverwritten) {
		return Health{StateDamaged, *damage}
	}
	if err != nil {
		return Health{stateOf(err), err}
	}
	if h := s.writer.health.Load(); h.State != StateMoved { // else the files are back
		return *h
	}
	return Health{State: StateOK}
}

// Ready returns why the database cannot be read or accepts no writes: by the outcome of the last write, and
// on PostgreSQL by a transaction that asks whether it may write. Codes: Busy, StorageFull, Unavailable.
func (s *DB) Ready(ctx context.Context) error {
	if err := s.resolveDoubt(ctx); err != nil {
		return err
	}
	if err := s.Health().Err; err != nil {
		return err
	}
	if s.writer != nil && s.writer.postgres {
		ctx, cancel := context.WithTimeout(ctx, connectPatience)
		defer cancel()
		err := s.writer.do(ctx, func(t *Tx) error { // which a server that only reads lets begin
			readOnly, err := Get[string](t.Ctx, t, `SELECT current_setting('transaction_read_only')`)
			if err == nil && readOnly == "on" {
				err = errReadOnly(nil)
			}
			return err
		})
		if err == nil {
			err = s.checkPostgresSchema(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = session.Errorf(session.Unavailable, "PostgreSQL has not answered for %s: check its server and the network",
				connectPatience)
		}
		return err
	}
	return nil
}

// Engine names the database's engine.
func (s *DB) Engine() string {
	if IsPostgres(s.path) {
		return "postgresql"
	}
	return "sqlite"
}

// FailedWrites returns how many writes failed since the start because of the disk or the file.
func (s *DB) FailedWrites() int64 { return s.failed.Load() }

// Probe checks the files and the size of the log, and tries a write of nothing while the last write
// failed, so that a store that nobody writes to notices both the failure and its end.
func (s *DB) Probe(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	s.watchLog()
	if s.Health().State == StateOK && s.writer.health.Load().State == StateOK {
		return s.resolveDoubt(ctx)
	}
	return s.writer.do(ctx, func(*Tx) error { return nil })
}

// resolveDoubt tries a write of nothing if the file has changed in a way that only a transaction can judge.
func (s *DB) resolveDoubt(ctx context.Context) error {
	if s.writer == nil || s.writer.postgres {
		return nil
	}
	if doubt, err := s.writer.lookAtFiles(); err != nil || !doubt {
		return err
	}
	return s.writer.do(ctx, func(*Tx) error { return nil })
}

// ReadFailed is told each error of a reading statement.
func (s *DB) ReadFailed(err error) {
	if s.writer != nil {
		s.writer.noteDamage(err)
	}
}

// noteDamage refuses all further writes if err says that a page of the database is damaged: what is
// written on may be lost with it, and may destroy what could still be read.
func (w *writer) noteDamage(err error) {
	if !IsDamage(err) || errors.Is(w.checkFiles(), errOverwritten) { // then the damage is not ours
		return
	}
	var refusal error = session.Errorf(session.Unavailable,
		"%s is damaged; sessiond stores nothing more in it, and reads what it can. Stop sessiond, "+
			"then run `sessiond doctor`: %w", w.path, err)
	if w.damage.CompareAndSwap(nil, &refusal) {
		w.opt.Log.Error().Str("state", string(StateDamaged)).Err(refusal).Msg("the database accepts no writes")
	}
}

// IsDamage reports whether err says that a page of the database cannot be read.
func IsDamage(err error) bool {
	code := SQLiteCode(err) & 0xff
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
		w.opt.Log.Warn().Str("state", string(now.State)).Str("before",
			string(before.State)).Msg("the database accepts writes again")
		return
	}
	w.opt.Log.Error().Str("state", string(now.State)).Err(now.Err).Msg("the database accepts no writes")
}

func stateOf(err error) State {
	code := SQLiteCode(err)
	switch {
	case err == nil:
		return StateOK
	case errors.Is(err, errMoved):
		return StateMoved
	case errors.Is(err, errOverwritten):
		return StateOverwritten
	case isUnreachable(err):
		return StateUnreachable
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_SHMSIZE, PostgresCode(err) == diskFull,
		session.CodeOf(err) == session.StorageFull, errors.Is(err, syscall.ENOSPC):
		return StateFull
	case code&0xff == sqlite3.SQLITE_IOERR, code&0xff == sqlite3.SQLITE_READONLY, code&0xff == sqlite3.SQLITE_CANTOPEN,
		PostgresCode(err) == readOnlyTransaction, errors.Is(err, errServerReadOnly):
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
	st, err := openStamp(files)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.path, err)
	}
	w.stamp = st
	w.files.Store(&files)
	return nil
}

// realPath follows links: SQLite keeps the log beside the file that a link names.
func realPath(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	if target, err := os.Readlink(path); err == nil { // of a link whose file is gone
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		return target
	}
	return path
}

var errMoved = errors.New("sessiond stores nothing until it is back in its place, or until sessiond is restarted; " +
	"before that POST /v1/backups copies everything that was acknowledged")

// checkFiles returns an error if a file of the database is not at its path any more, as SQLite would write on into
// a file that has no name, or if it was overwritten. Codes: Unavailable.
func (w *writer) checkFiles() error {
	_, err := w.lookAtFiles()
	return err
}

// checkFilesStrictly is checkFiles for the writer, inside its transaction or right after it: nothing is in doubt.
func (w *writer) checkFilesStrictly() error {
	doubt, err := w.lookAtFiles()
	if doubt {
		err = w.overwrittenBy(errors.New("it has a number that no transaction wrote"))
	}
	return err
}

// lookAtFiles is checkFiles; doubt is stamp.look's.
func (w *writer) lookAtFiles() (doubt bool, err error) {
	files := w.files.Load()
	if files == nil {
		return false, nil
	}
	if refusal := w.overwritten.Load(); refusal != nil {
		return false, *refusal
	}
	w.stamp.mu.Lock()
	defer w.stamp.mu.Unlock()
	infos := make([]fs.FileInfo, len(*files))
	for i, f := range slices.Backward(*files) { // the stamp wants the log's size before the file's
		var failed error
		if infos[i], failed = statOpened(f); failed != nil {
			err = failed // the database's is said rather than its log's
		}
	}
	if err != nil {
		return false, err
	}
	if doubt, err = w.stamp.look(infos[0], infos[1]); err != nil {
		return false, w.overwrittenBy(err)
	}
	return doubt, nil
}

func statOpened(f openedFile) (fs.FileInfo, error) {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = session.Errorf(session.Unavailable, "%s is gone: it was moved or deleted while sessiond had it open; %w",
			f.path, errMoved)
	case err != nil:
		err = session.Errorf(session.Unavailable, "%s cannot be reached (%s); %w", f.path, err.Error(), errMoved)
	case !os.SameFile(f.info, info):
		err = session.Errorf(session.Unavailable,
			"%s is another file now: it was replaced while sessiond had the old one open; %w", f.path, errMoved)
	}
	return info, err
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

// leaveFiles is for the end: if the files are not what was opened, it saves what can be saved, and returns an error
// that says where it is. Closing would then harm what is at the path by now: SQLite moves its log into the file
// and deletes it by its name. The end of the process closes the handles.
func (w *writer) leaveFiles() error {
	doubt, err := w.lookAtFiles()
	if doubt {
		if err = w.begin(context.Background(), false); err == nil {
			err = w.exec1(context.Background(), `ROLLBACK`)
		}
	}
	switch {
	case errors.Is(err, errOverwritten):
		err = w.setLogAside()
	case errors.Is(err, errMoved):
		err = w.rescueAtEnd()
	default:
		return nil
	}
	w.staysOpen = true
	if err == nil {
		return nil
	}
	w.opt.Log.Error().Err(err).Msg("the files of the database were changed by hand")
	return err
}

// setLogAside moves the log of an overwritten file into the folder of backups, so that the next start does not
// write it into the file that is there now.
func (w *writer) setLogAside() error {
	kept, err := setAside(w.path, "overwritten", w.opt.Now(), func(info fs.FileInfo) bool {
		return slices.ContainsFunc(*w.files.Load(), func(f openedFile) bool { return os.SameFile(f.info, info) })
	})
	if err != nil {
		return session.Errorf(session.Unavailable,
			"%s was overwritten while sessiond had it open, and its old write-ahead log could not be moved away: "+
				"move %[1]s-wal and %[1]s-shm elsewhere before the next start, which would write them into the new file: %w",
			w.path, err)
	}
	return session.Errorf(session.Unavailable,
		"%s was overwritten while sessiond had it open. Nothing of the old write-ahead log was written into it; "+
			"the log is %s now. If a copy was being put there, put it there once more, or run `sessiond restore FILE`; "+
			"then start sessiond", w.path, kept)
}

// rescueAtEnd moves what the log holds into the database file, wherever that is. If the file has no name any more,
// it writes a copy.
func (w *writer) rescueAtEnd() error {
	_ = w.waitInside(busyTimeoutMS) // a reader in another process may keep the log
	for w.rescued = false; !w.rescued; {
		if w.rescue(); w.patience.Err() != nil {
			break
		}
	}
	at, named := w.stamp.place(w.path)
	if w.rescued && strings.HasPrefix(filepath.Base(at), beforeRestore) {
		w.opt.Log.Info().Msgf("%s was restored while sessiond had it open; everything that was acknowledged before is in %s",
			w.path, at)
		return nil
	}
	if w.rescued && named {
		if at != "" {
			at = ", which is " + at + " now"
		}
		return session.Errorf(session.Unavailable,
			"a file of %s was moved while sessiond had it open. Everything that was acknowledged is in the database file%s: "+
				"put it back in its place", w.path, at)
	}
	w.release()
	out := keptName(w.path, "rescued", w.opt.Now())
	err := os.MkdirAll(filepath.Dir(out), 0o700)
	if err == nil {
		err = w.copyTo(context.Background(), out)
	}
	if err != nil {
		return session.Errorf(session.Unavailable,
			"%s was deleted while sessiond had it open, and what was acknowledged since could not be written to %s: %w", w.path,
			out, err)
	}
	return session.Errorf(session.Unavailable,
		"%s was deleted or replaced while sessiond had it open. Everything that was acknowledged is in %s: "+
			"`sessiond restore %[2]s` puts it back", w.path, out)
}

// copyTo writes a copy of the database that the writing connection has open, whatever its name is now.
func (w *writer) copyTo(ctx context.Context, out string) error {
	return WriteNew(out, func(tmp string) error {
		if err := vacuumInto(ctx, w.conn, tmp); err != nil {
			return err
		}
		return finishCopy(ctx, tmp)
	})
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
	err := w.checkFiles()
	if damage := w.damage.Load(); damage != nil && !errors.Is(err, errOverwritten) {
		return *damage
	}
	if err == nil {
		w.release()
	}
	return err
}
