package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// Backup writes a whole, consistent copy of the database to out, which must not exist, in a folder that does. It
// holds up no writer: it reads one snapshot on a connection of its own. The copy is checked
// and on disk when Backup returns. Codes: Conflict (out exists), NotFound
// (its folder), Forbidden.
func (s *DB) Backup(ctx context.Context, out string) (size int64, err error) {
	err = WriteNew(out, func(tmp string) error {
		if err := s.copyInto(ctx, tmp); err != nil {
			return backupError(out, s.damageMet(err))
		}
		return finishCopy(ctx, tmp)
	})
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// WriteNew has write fill a hidden file, and gives it the name out, which must not exist, once all of it
// is on disk.
func WriteNew(out string, write func(tmp string) error) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	exists := session.Errorf(session.Conflict, "%s exists: sessiond never overwrites a file; name another", out)
	if _, err := os.Lstat(out); err == nil {
		return exists
	}
	dir := filepath.Dir(out)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return session.Errorf(session.NotFound, "there is no folder %s; nothing was written", dir)
	}
	return writeHidden(out, write, func(tmp string) error {
		// Link refuses an existing name, where a rename would overwrite it.
		if err := os.Link(tmp, out); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return exists
			}
			if err := os.Rename(tmp, out); err != nil { // a file system without hard links
				return backupError(out, err)
			}
		}
		return folders.Sync(dir)
	})
}

// writeHidden has write fill a hidden file beside out, and calls place with its name once all of it is on disk.
func writeHidden(out string, write, place func(tmp string) error) error {
	dir := filepath.Dir(out)
	if err := RemoveLeftCopies(dir); err != nil {
		return err
	}
	// VACUUM INTO wants a file that is not there or is empty; an empty one of ours has the
	// right permissions from its first byte on.
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(out)+".*"+unfinished)
	if err != nil {
		return backupError(out, err)
	}
	if runtime.GOOS != "windows" { // which deletes no open file, and lets nobody write into a locked one
		inUse := flock.New(tmp.Name())
		if err := inUse.RLock(); err != nil {
			return backupError(out, err)
		}
		defer inUse.Unlock() //nolint:errcheck // it only keeps RemoveLeftCopies away
	}
	defer removeCopy(tmp.Name()) //nolint:errcheck // it has its own name by then
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := write(tmp.Name()); err != nil {
		return err
	}
	if err := syncFile(tmp.Name()); err != nil {
		return err
	}
	return place(tmp.Name())
}

// removeCopy removes an unfinished copy, and what SQLite left beside one that was cut short.
func removeCopy(path string) error {
	for _, end := range []string{"-journal", "-wal", "-shm"} {
		os.Remove(path + end) //nolint:errcheck // seldom there
	}
	return os.Remove(path)
}

// unfinished ends the name of a copy that is being written.
const unfinished = ".sessiond-copy"

// The beginnings of the names of backups in the daemon's folder: its own, which it removes in time, and those that were
// asked for over HTTP.
const (
	OwnBackup   = "sessions-"
	AskedBackup = "asked-"
)

// FilesOf returns the files of a database that are there: itself, its log, and what was kept of it in the folder of
// backups. Backups that a person named are not among them.
func FilesOf(database string) []string {
	var files []string
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		files = append(files, database+end)
	}
	for _, begins := range []string{OwnBackup, AskedBackup, "before-", "rescued-", "overwritten-"} {
		kept, _ := filepath.Glob(filepath.Join(BackupDir(database), begins+"*.db*"))
		files = append(files, kept...)
	}
	copies, _ := filepath.Glob(filepath.Join(BackupDir(database), ".*"+unfinished+"*"))
	return slices.DeleteFunc(append(files, copies...), func(file string) bool {
		info, err := os.Lstat(file)
		return err != nil || info.IsDir()
	})
}

// NewestBackup returns when the newest backup of a folder was finished; the zero time without one.
func NewestBackup(dir string) (newest time.Time) {
	entries, _ := os.ReadDir(dir) // none where there is no folder
	for _, e := range entries {
		named := strings.HasPrefix(e.Name(), OwnBackup) || strings.HasPrefix(e.Name(), AskedBackup)
		if !named || !strings.HasSuffix(e.Name(), ".db") {
			continue
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}

// RemoveLeftCopies removes from a folder the unfinished copies of backups that were killed. A backup
// that runs has its copy locked; it locks one within moments of making it. In a folder such as /tmp other
// users have copies, too, or something that only has the name of one: these stay.
func RemoveLeftCopies(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), unfinished) || !e.Type().IsRegular() {
			continue
		}
		err := removeLeftCopy(filepath.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove the unfinished copy of an earlier backup: %w", err)
		}
	}
	return nil
}

func removeLeftCopy(path string) error {
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) < time.Minute {
		return err
	}
	if runtime.GOOS == "windows" {
		return removeCopy(path)
	}
	lock := flock.New(path)
	defer lock.Unlock() //nolint:errcheck // the file is gone
	if free, err := lock.TryLock(); err != nil || !free {
		return err
	}
	return removeCopy(path)
}

func (s *DB) copyInto(ctx context.Context, path string) error {
	if IsPostgres(s.path) {
		return s.opt.CopyToFile(ctx, path)
	}
	switch h := s.Health(); h.State {
	case StateMoved:
		return s.copyMoved(ctx, path)
	case StateOverwritten: // what is there is no state of the database
		return h.Err
	}
	// query_only would keep VACUUM INTO from writing its copy.
	db, err := sqlx.Open("sqlite", strings.Replace(s.readName, "query_only%281%29", "query_only%280%29", 1))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a reader
	return retryBusy(ctx, func() error {
		return vacuumInto(ctx, db, path)
	})
}

// vacuumInto copies the database of a connection into an empty file, and flushes that file as it grows: else the
// kernel writes gigabytes of it at once, and each append beside the backup waits for its own sync behind them.
func vacuumInto(ctx context.Context, db sqlx.ExecerContext, path string) error {
	const flushEvery = 20 * time.Millisecond
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // writeHidden syncs the copy
	done, flushed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(flushed)
		for tick := time.NewTicker(flushEvery); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				startWriteback(f) //nolint:errcheck // it only spreads the load; the sync at the end reports errors
			}
		}
	}()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, path)
	close(done)
	<-flushed // before the file is closed
	return err
}

// copyMoved copies a database whose file was moved or deleted: only the writing connection is sure to
// have it open still. There are no writes that it holds up.
func (s *DB) copyMoved(ctx context.Context, path string) error {
	return s.writer.submit(ctx, &job{
		ctx: ctx, alone: true, moved: true, answer: make(chan error, 1),
		fn: func(t *Tx) error {
			t.w.release()
			defer t.w.hold()
			return vacuumInto(ctx, t.w.conn, path)
		},
	})
}

// damageMet refuses all further writes if a copy met a damaged page, which only it may have read. Codes: Unavailable.
func (s *DB) damageMet(err error) error {
	if !IsDamage(err) {
		return err
	}
	s.ReadFailed(err)
	if refusal := s.Health().Err; refusal != nil {
		return refusal
	}
	return session.Errorf(session.Unavailable, "%s is damaged, and a copy of it would be, too: run `sessiond doctor`: %w",
		s.path, err)
}

// finishCopy gives a copy a stamp of its own and checks it.
func finishCopy(ctx context.Context, path string) error {
	if err := StampCopy(ctx, path); err != nil {
		return fmt.Errorf("finish the copy: %w", err)
	}
	return checkCopy(ctx, path)
}

// BackupDir returns the folder of a database's backups.
func BackupDir(database string) string { return filepath.Join(filepath.Dir(database), "backups") }

// beforeRestore begins the name of a database that was replaced by RestoreFile.
const beforeRestore = "before-restore"

// keptTime is the layout of the time in such a name.
const keptTime = "20060102T150405.000Z"

// keptName returns the name in the folder of backups under which something of a database is kept.
func keptName(database, why string, at time.Time) string {
	return filepath.Join(BackupDir(realPath(database)), why+"-"+at.UTC().Format(keptTime)+".db")
}

// setAside moves the log of a database and the log's index, those that ours accepts, into the folder of backups. It
// returns the log's new name.
func setAside(database, why string, at time.Time, ours func(fs.FileInfo) bool) (kept string, err error) {
	to := keptName(database, why, at)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	for _, end := range []string{"-wal", "-shm"} {
		from := realPath(database) + end
		info, err := os.Stat(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !ours(info) {
			continue
		}
		if err == nil {
			err = os.Rename(from, to+end)
		}
		if err != nil {
			return "", err
		}
	}
	return to + "-wal", errors.Join(folders.Sync(filepath.Dir(to)), folders.Sync(filepath.Dir(realPath(database))))
}

func checkCopy(ctx context.Context, path string) error {
	db, err := sqlx.Open("sqlite", DSN(path, "ro")+"&immutable=1")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a reader
	var verdict string
	if err := db.GetContext(ctx, &verdict, `PRAGMA quick_check(1)`); err != nil {
		return fmt.Errorf("check the copy: %w", err)
	}
	if verdict != "ok" {
		return session.Errorf(session.Internal, "the copy is damaged (%s): run `sessiond doctor` on the database", verdict)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func backupError(out string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return session.Errorf(session.Forbidden, "%s cannot be written by this user: %w", out, err)
	}
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return session.Errorf(session.Invalid, "the name of %s is too long for its file system: choose a shorter one", out)
	}
	return fmt.Errorf("back up to %s: %w", out, storageError(err))
}
