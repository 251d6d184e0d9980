package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// LongValue is the size in bytes above which a value of a database is not to be read with its row:
// SQLite would hold it, and the driver a copy.
const LongValue = usualLine

// LongValues holds what long values of one database say in a temporary file without a name, for
// Cuts to read shortened. The zero value is empty and works. Close it.
type LongValues struct {
	file *os.File
	end  int64
}

// ReadAt implements io.ReaderAt.
func (l *LongValues) ReadAt(b []byte, at int64) (int, error) {
	if l.file == nil {
		return 0, io.EOF
	}
	return l.file.ReadAt(b, at)
}

// Put copies the text or blob of a row, between before and after, behind what is there, and gives
// its place. size is what octet_length says of it. Codes: Busy (it is of another size).
func (l *LongValues) Put(ctx context.Context, db *SQLite, table, column string, row int64, size int64, before, after string) (at, n int64, err error) {
	if l.file == nil {
		if l.file, err = TempFile(); err != nil {
			return 0, 0, err
		}
	}
	at = l.end
	if _, err := l.file.WriteAt([]byte(before), at); err != nil {
		return 0, 0, err
	}
	to := io.NewOffsetWriter(l.file, at+int64(len(before)))
	if err := db.CopyValue(ctx, table, column, row, size, to); err != nil {
		return 0, 0, err
	}
	if _, err := to.Write([]byte(after)); err != nil {
		return 0, 0, err
	}
	n = int64(len(before)+len(after)) + size
	l.end += n
	return at, n, nil
}

// CopyValue copies the text or blob of a row piece by piece. size is what octet_length says of it.
// Codes: Busy (it is of another size).
func (s *SQLite) CopyValue(ctx context.Context, table, column string, row, size int64, to io.Writer) error {
	w := &counted{to: to, ctx: ctx}
	err := s.Raw(func(conn any) error { return engine.CopyValue(conn, table, column, row, w) })
	if err != nil {
		return fmt.Errorf("read %s of row %d of %s: %w", column, row, table, err)
	}
	if w.n != size {
		return session.Errorf(session.Busy, "%s of row %d of %s has %d bytes, not %d: import again", column, row, table, w.n, size)
	}
	return nil
}

// GivesPieces tells whether CopyValue gives what the rows of a table say: it has rowids, and texts
// are in UTF-8.
func (s *SQLite) GivesPieces(ctx context.Context, table string) (bool, error) {
	var encoding string
	if err := s.GetContext(ctx, &encoding, `PRAGMA encoding`); err != nil {
		return false, err
	}
	var n int
	err := s.GetContext(ctx, &n, `SELECT COUNT(*) FROM pragma_table_list(?) WHERE schema = 'main' AND type = 'table' AND wr = 0`, table)
	return n == 1 && encoding == "UTF-8", err
}

// Close gives the file back.
func (l *LongValues) Close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	*l = LongValues{}
	return err
}

type counted struct {
	to  io.Writer
	ctx context.Context
	n   int64
}

func (w *counted) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.n += int64(n)
	return n, errors.Join(err, w.ctx.Err())
}
