package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/session"
)

// stamp notices that the database file is overwritten in place while it is open: `cp backup.db sessions.db` keeps
// the file's identity, and SQLite looks at its log and its cache before it looks at the file.
//
// PRAGMA user_version, in the header of the file, is a number that only counts up: in the first commit after a
// checkpoint has changed the file. So the number in the file lags behind the log, never goes back, and two
// contents of the file have two numbers. The version of the schema, beside it, grows likewise, and sets apart what
// other tools copy. Backups get a number of their own.
type stamp struct {
	file *os.File // the database. Closing it drops all of SQLite's locks in this process
	log  *os.File // the write-ahead log

	mu       sync.Mutex
	low      mark // of the file, when it was last read
	high     mark // of the newest commit
	size     int64
	logSize  int64
	changed  time.Time // of the file
	due      bool      // the next commit counts up: the file has changed since the last time
	version  int64     // PRAGMA data_version, which changes when another process commits
	verified bool      // high is SQLite's word
}

// mark is a stamp's value.
type mark struct{ count, schema uint32 }

func (m mark) isBelow(other mark) bool { return m.count < other.count || m.schema < other.schema }

// header is what the first bytes of a database file say.
type header struct {
	mark
	size int64 // that the file has at least
}

const headerSize = 100

var errNoHeader = errors.New("it does not begin as a database does")

func readHeader(r io.ReaderAt) (header, error) {
	b := make([]byte, headerSize)
	if _, err := r.ReadAt(b, 0); errors.Is(err, io.EOF) ||
		err == nil && !bytes.HasPrefix(b, []byte("SQLite format 3\x00")) {
		return header{}, errNoHeader
	} else if err != nil {
		return header{}, err
	}
	return parseHeader(b), nil
}

// parseHeader reads the fields of a first page. The numbers of the format are big-endian.
func parseHeader(b []byte) header {
	at := func(i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
	page := int64(binary.BigEndian.Uint16(b[16:]))
	if page == 1 {
		page = 1 << 16
	}
	return header{mark{count: at(60), schema: at(40)}, int64(at(28)) * page}
}

// openStamp opens the files of a database that SQLite has open.
func openStamp(files []openedFile) (_ *stamp, err error) {
	st := &stamp{due: true}
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	if st.file, err = os.Open(files[0].path); err != nil {
		return nil, err
	}
	if st.log, err = os.Open(files[1].path); err != nil {
		return nil, err
	}
	info, err := st.file.Stat()
	if err == nil && !os.SameFile(info, files[0].info) {
		err = errors.New("it was replaced at the start")
	}
	if err != nil {
		return nil, err
	}
	h, err := readHeader(st.file)
	st.low, st.size, st.changed = h.mark, info.Size(), info.ModTime()
	return st, err
}

// place returns where the file is now, "" if the system does not know, and whether it has a name at all.
func (st *stamp) place(database string) (at string, named bool) {
	info, err := st.file.Stat()
	if err != nil || linkCount(info) == 0 {
		return "", false
	}
	paths, _ := filepath.Glob(filepath.Join(BackupDir(realPath(database)), beforeRestore+"*.db"))
	if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", st.file.Fd())); err == nil {
		paths = append(paths, path)
	}
	for _, path := range paths {
		if found, err := os.Stat(path); err == nil && os.SameFile(found, info) {
			return path, true
		}
	}
	return "", true
}

// close ends the watch, once none of SQLite's handles needs its locks.
func (st *stamp) close() {
	for _, f := range []*os.File{st.file, st.log} {
		if f != nil {
			f.Close() //nolint:errcheck // only read
		}
	}
}

var errOverwritten = errors.New("sessiond stores nothing more, and writes nothing into that file. Stop sessiond: " +
	"it then moves the old write-ahead log into the folder of backups, so that nothing of it gets into the new file. " +
	"Then run `sessiond restore FILE`, or put the copy there once more, and start sessiond")

// look compares the header with what the file may have. The sizes must have been read before, of the log first, and
// under the lock of the stamp: a size from before a checkpoint says nothing about the commits behind it.
// doubt: the number is one that this process has not counted, so another process has, or the file was overwritten.
func (st *stamp) look(file, log fs.FileInfo) (doubt bool, err error) {
	h, err := readHeader(st.file)
	switch {
	case errors.Is(err, errNoHeader):
		return false, err
	case err != nil:
		return false, nil // whoever reads pages meets it, too
	case file.Size() < min(st.size, h.size):
		return false, errors.New("it is shorter than it was")
	case h.isBelow(st.low):
		return false, errors.New("an older state is in its place")
	case st.verified && log.Size() < st.logSize && h.isBelow(st.high):
		return false, errors.New("its write-ahead log is shorter than it was")
	case log.Size() > 0 && !isLog(st.log):
		return false, errors.New("its write-ahead log was overwritten")
	case st.verified && st.high.isBelow(h.mark):
		return true, nil
	}
	if h.mark != st.low || file.Size() != st.size || !file.ModTime().Equal(st.changed) {
		st.due = true
	}
	st.low, st.size, st.changed, st.logSize = h.mark, file.Size(), file.ModTime(), log.Size()
	return false, nil
}

// learn compares with what SQLite reads within a transaction that another process's commit came before.
func (st *stamp) learn(version int64, m mark) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if m.isBelow(st.high) || m.isBelow(st.low) {
		return errors.New("an older state is in its place")
	}
	st.high, st.version, st.verified = m, version, true
	st.logSize = 0 // a checkpoint may have emptied the log before that commit
	return nil
}

// counted records that a commit has counted up.
func (st *stamp) counted(to uint32) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.high.count = to
}

// checkStamp looks at the file within a transaction, in which no other process can commit, and counts up where that
// is due. next is the new number, 0 without one.
func (w *writer) checkStamp(ctx context.Context) (next uint32, err error) {
	st := w.stamp
	version, err := w.number(ctx, `PRAGMA data_version`)
	if err != nil {
		return 0, err
	}
	if !st.verified || version != st.version {
		if err := w.learnStamp(ctx, version); err != nil {
			return 0, err
		}
	}
	if err := w.checkFilesStrictly(); err != nil {
		return 0, err
	}
	st.mu.Lock()
	due, next := st.due || w.counts > 0, st.high.count+1 // or the last transaction that counted up was not stored
	st.due = false
	st.mu.Unlock()
	// After a failure this is also a write that proves something: it changes a page and nothing else.
	if !due && w.health.Load().State == StateOK {
		return 0, nil
	}
	if _, err := w.conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`,
		int32(next))); err != nil { //nolint:gosec // as SQLite has it
		return 0, err
	}
	return next, nil
}

// learnStamp compares the stamp with SQLite's view of the file, which another process, or a statement of our own
// that changes the schema, has moved on.
func (w *writer) learnStamp(ctx context.Context, version int64) error {
	count, err := w.number(ctx, `PRAGMA user_version`)
	if err != nil {
		return err
	}
	schema, err := w.number(ctx, `PRAGMA schema_version`)
	if err != nil {
		return err
	}
	if err := w.stamp.learn(version, mark{uint32(count), uint32(schema)}); err != nil { //nolint:gosec // as SQLite has it
		return w.overwrittenBy(err)
	}
	return nil
}

func (w *writer) number(ctx context.Context, query string) (n int64, err error) {
	st, err := w.stmt(ctx, query)
	if err == nil {
		err = st.QueryRowContext(ctx).Scan(&n)
	}
	return n, err
}

// overwrittenBy refuses all further writes: the file is not what sessiond wrote.
func (w *writer) overwrittenBy(why error) error {
	var refusal error = session.Errorf(session.Unavailable, "%s was overwritten while sessiond had it open (%s); %w",
		w.path, why.Error(), errOverwritten)
	w.overwritten.CompareAndSwap(nil, &refusal)
	return *w.overwritten.Load()
}

// StampCopy gives a copy a number that no state of its original has.
func StampCopy(ctx context.Context, path string) error {
	db, err := sqlx.Open("sqlite", DSN(path, "rw", "synchronous(off)")) // writeNew syncs it
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statement has written
	var count int64
	if err := db.GetContext(ctx, &count, `PRAGMA user_version`); err != nil {
		return err
	}
	const least = 1 << 20 // more than a daemon counts
	count = (count + least + rand.Int64N(least)) & (1<<31 - 1)
	_, err = db.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, count))
	return err
}

// logContent is what a write-ahead log holds in whole transactions.
type logContent struct {
	pages       int
	headers     int // first pages among them
	first, last mark
}

const (
	logHeaderSize   = 32
	frameHeaderSize = 24
)

// isLog reports whether a file begins as a write-ahead log does.
func isLog(r io.ReaderAt) bool {
	b := make([]byte, 4)
	_, err := r.ReadAt(b, 0)
	return err == nil && binary.BigEndian.Uint32(b)&^1 == 0x377f0682
}

// readLog reads a write-ahead log without SQLite, which would act on it. A log that is not there holds nothing.
func readLog(path string) (found logContent, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	defer f.Close() //nolint:errcheck // SQLite has no locks on a log
	head := make([]byte, logHeaderSize)
	if _, err := f.ReadAt(head, 0); err != nil || !isLog(f) {
		return found, nil // an empty one
	}
	page := int64(binary.BigEndian.Uint32(head[8:]))
	frame, now := make([]byte, frameHeaderSize+headerSize), logContent{}
	for at := int64(logHeaderSize); ; at += frameHeaderSize + page {
		if _, err := f.ReadAt(frame, at); err != nil || !bytes.Equal(frame[8:16], head[16:24]) {
			return found, nil // the rest is of an earlier use of the file
		}
		now.pages++
		if binary.BigEndian.Uint32(frame) == 1 {
			now.last = parseHeader(frame[frameHeaderSize:]).mark
			if now.headers++; now.headers == 1 {
				now.first = now.last
			}
		}
		if binary.BigEndian.Uint32(frame[4:]) > 0 { // the end of a transaction
			found = now
		}
	}
}

// belongsTo reports whether a log continues a file: its first number is at most one ahead.
func (l logContent) belongsTo(h header) bool {
	return l.headers == 0 || l.first.count <= h.count+1 && h.count <= l.last.count && h.schema <= l.last.schema
}
