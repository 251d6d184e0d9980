package engine

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"
	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// RestoreFile puts a copy of a database file in the place of the database at path, in one step, and keeps what was
// there in the folder of backups. It checks the copy before; file itself stays as it is. A daemon that has the
// database open stores nothing more; what it acknowledged is in the kept file. It calls before
// with the database that goes, if it can be read, and the copy that comes, which it may change: nobody can write to
// either. Codes: NotFound, Invalid, Conflict (a log beside file belongs to another), Forbidden, Busy, StorageFull.
func RestoreFile(ctx context.Context, file, path string, opt Options,
	before func(ctx context.Context, old, next string) error,
) (kept string, err error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	info, err := os.Stat(file)
	if err != nil {
		return kept, session.Errorf(session.NotFound, "there is nothing to restore from: %w", err)
	}
	if info.IsDir() {
		return kept, session.Errorf(session.Invalid, "%s is a folder; name a database file in it", file)
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(info, there) {
		return kept, session.Errorf(session.Invalid, "%s is the database itself; name a backup", file)
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return kept, err
	}
	err = writeHidden(realPath(path), func(tmp string) error {
		return copyToRestore(ctx, file, tmp, opt)
	}, func(tmp string) (err error) {
		kept, err = swap(ctx, tmp, path, opt, before)
		return err
	})
	return kept, err
}

// copyToRestore copies a database that may have a log beside it and may be of an older schema, and checks the copy.
func copyToRestore(ctx context.Context, file, tmp string, opt Options) (err error) {
	if err := checkLog(file, Options{ReadOnly: true, Log: opt.Log}); err != nil {
		return err
	}
	explain := func(err error) error {
		switch {
		case SQLiteCode(err)&0xff == sqlite3.SQLITE_NOTADB:
			return session.Errorf(session.Invalid, "%s is not an SQLite database; nothing was changed. Name a backup; "+
				"an export (.jsonl) comes back with `sessiond import sessiond FILE`", file)
		case IsDamage(err):
			return session.Errorf(session.Invalid,
				"%s is damaged; nothing was changed. `sessiond doctor --recover OUT --db %[1]s` "+
					"copies what can be read: %w", file, err)
		case SQLiteCode(err)&0xff == sqlite3.SQLITE_CANTOPEN:
			return session.Errorf(session.Forbidden, "%s cannot be read by this user: %w", file, err)
		}
		return err
	}
	if err := CopyFile(ctx, file, tmp, opt); err != nil {
		return explain(err)
	}
	db, err := sqlx.Open("sqlite", DSN(tmp, "rw", "synchronous(off)"))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statements have written
	// Ids of events begin anew, so that listeners learn of the gap.
	epoch := make([]byte, 6)
	if _, err := rand.Read(epoch); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `UPDATE store SET epoch = ?`, hex.EncodeToString(epoch))
	return err
}

// CopyFile copies a database, which may be open elsewhere and of an older schema, into a file that is there and empty,
// and checks the copy. Codes: Invalid.
func CopyFile(ctx context.Context, file, out string, opt Options) (err error) {
	// the second for a folder that cannot be written
	for _, source := range []string{DSN(file, "ro"), DSN(file, "ro") + "&immutable=1"} {
		err = copyChecked(ctx, source, file, out, opt)
		if code := SQLiteCode(err) & 0xff; code != sqlite3.SQLITE_CANTOPEN && code != sqlite3.SQLITE_READONLY {
			break
		}
	}
	return err
}

func copyChecked(ctx context.Context, source, file, tmp string, opt Options) error {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a reader
	version := &DB{path: file, opt: opt}
	version.opt.ReadOnly = false // an older schema is brought up to date by the next start
	if err := version.checkVersion(ctx, db); err != nil {
		return err
	}
	var made int
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_schema WHERE name = 'store'`).Scan(&made); err != nil {
		return err
	}
	if made == 0 {
		return session.Errorf(session.Invalid, "%s is empty; nothing was changed", file)
	}
	if err := retryBusy(ctx, func() error { return vacuumInto(ctx, db, tmp) }); err != nil {
		return err
	}
	return finishCopy(ctx, tmp)
}

// swap gives the copy the database's name, and the database one in the folder of backups. Where it can, it does so
// with the write lock, and with all of the log in the file: then nothing that is acknowledged later is in neither.
func swap(ctx context.Context, tmp, path string, opt Options,
	before func(ctx context.Context, old, next string) error,
) (kept string, err error) {
	folder, path := path, realPath(path)
	old, err := lockToSwap(ctx, path)
	if err != nil {
		return "", err
	}
	defer old.close()
	readable := path
	if old.db == nil {
		readable = ""
	}
	if err := before(ctx, readable, tmp); err != nil {
		return "", err
	}
	if err := syncFile(tmp); err != nil {
		return "", err
	}
	lock, err := lockFolder(ctx, folder)
	if err != nil {
		return "", err
	}
	defer lock.Unlock() //nolint:errcheck // closing the process would unlock it too
	to := keptName(path, beforeRestore, opt.Now())
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		kept = to
		if err := os.Link(path, to); err != nil { // a file system without hard links
			if err := os.Rename(path, to); err != nil {
				return "", fmt.Errorf("keep the database: %w", err)
			}
		}
	}
	if err := os.Rename(tmp, path); err != nil {
		return "", fmt.Errorf("put the copy in the database's place: %w", err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		if old.empty {
			err = os.Remove(path + end) // who has it open keeps it, and finds out
		} else if err = os.Rename(path+end, to+end); err == nil { // SQLite finds it there when it opens the kept file
			kept = to
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move the write-ahead log of the database before: %w", err)
		}
	}
	return kept, errors.Join(folders.Sync(filepath.Dir(to)), folders.Sync(filepath.Dir(path)))
}

// swapLock is the write lock of a database that is swapped.
type swapLock struct {
	db    *sqlx.DB // nil: the file cannot be opened, or there is none
	conn  *sqlx.Conn
	empty bool // all of its log is in the file
}

func (l *swapLock) close() {
	if l.db == nil {
		return
	}
	ctx := context.Background()
	_, _ = l.conn.ExecContext(ctx, `ROLLBACK`) // it has changed nothing
	_ = l.conn.Close()
	_ = l.db.Close()
}

// lockToSwap takes the write lock and empties the log. A file that SQLite cannot open, or whose log belongs to
// another one, is swapped as it is. Codes: Busy.
func lockToSwap(ctx context.Context, path string) (*swapLock, error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 || checkLog(path, Options{}) != nil {
		return &swapLock{}, nil //nolint:nilerr // then there is nothing to lock
	}
	db, err := sqlx.Open("sqlite", DSN(path, "rw"))
	if err != nil {
		return nil, err
	}
	l := &swapLock{db: db}
	if l.conn, err = db.Connx(ctx); err == nil {
		err = l.lock(ctx, path)
	}
	switch {
	case err == nil:
		return l, nil
	case IsDamage(err):
		if l.conn != nil {
			_ = l.conn.Close()
		}
		_ = db.Close()
		return &swapLock{}, nil
	}
	l.close()
	return nil, err
}

func (l *swapLock) lock(ctx context.Context, path string) error {
	for deadline := time.Now().Add(lockPatience); ; {
		var busy, log, moved int
		if err := l.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved); err != nil &&
			!isBusy(err) {
			return err
		}
		if err := retryBusy(ctx, func() error {
			_, err := l.conn.ExecContext(ctx, `BEGIN IMMEDIATE`)
			return err
		}); err != nil {
			return err
		}
		found, err := readLog(path + "-wal")
		if err != nil {
			return err
		}
		l.empty = found.pages == 0
		if l.empty || time.Now().After(deadline) { // a reader keeps it: the log goes along
			return nil
		}
		if _, err := l.conn.ExecContext(ctx, `ROLLBACK`); err != nil {
			return err
		}
	}
}

// lockFolder keeps other processes from starting on a database's folder. It leaves no lock file behind, except on
// Windows. Codes: Busy.
func lockFolder(ctx context.Context, path string) (*flock.Flock, error) {
	lock := flock.New(filepath.Dir(path), flock.SetFlag(os.O_RDONLY))
	if runtime.GOOS == "windows" { // which locks no folder
		lock = flock.New(path+".lock", flock.SetPermissions(0o600))
	}
	lockCtx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if _, err := lock.TryLockContext(lockCtx, 10*time.Millisecond); err != nil {
		if lockCtx.Err() != nil && ctx.Err() == nil {
			err = session.Errorf(session.Busy, "%s: another process has been starting on this folder for %s; try again", path,
				lockPatience)
		}
		return nil, err
	}
	return lock, nil
}
