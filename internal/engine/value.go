package engine

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// copyBytes is how much of a value is read in one piece.
const copyBytes = 256 << 10

// ErrHidden says that the driver does not show SQLite's connection where it is looked for.
var ErrHidden = errors.New("the driver hides the connection of SQLite")

// CopyValue copies the bytes of a text or blob by SQLite's incremental reading, for which the
// driver has no words: a statement would have the whole value in memory. Text is in the encoding
// of the database. row is the rowid. conn is what (*sql.Conn).Raw gives.
func CopyValue(conn any, table, column string, row int64, to io.Writer) error {
	db := handle(conn)
	if db == nil {
		return ErrHidden
	}
	v := value{tls: libc.NewTLS()}
	defer v.tls.Close()
	if err := v.open(uintptr(unsafe.Pointer(db)), table, column, row); err != nil {
		return err
	}
	return errors.Join(v.copy(to), v.close())
}

// value is a text or blob that is open for reading.
type value struct {
	tls    *libc.TLS
	handle uintptr
}

func (v *value) open(db uintptr, table, column string, row int64) error {
	names := [3]uintptr{}
	for i, name := range []string{"main", table, column} {
		c, err := libc.CString(name)
		if err != nil {
			return err
		}
		defer libc.Xfree(v.tls, c)
		names[i] = c
	}
	handle := v.room(unsafe.Sizeof(v.handle))
	defer libc.Xfree(v.tls, handle)
	if code := sqlite3.Xsqlite3_blob_open(v.tls, db, names[0], names[1], names[2], row, 0, handle); code != sqlite3.SQLITE_OK {
		return fmt.Errorf("SQLite's code %d", code)
	}
	v.handle = **(**uintptr)(unsafe.Pointer(&handle))
	return nil
}

// room takes memory of SQLite's own kind: it may write nowhere else. It is to be freed.
func (v *value) room(bytes uintptr) uintptr {
	at := libc.Xmalloc(v.tls, libc.Tsize_t(bytes))
	if at == 0 {
		panic("no memory")
	}
	return at
}

func (v *value) copy(to io.Writer) error {
	room := v.room(copyBytes)
	defer libc.Xfree(v.tls, room)
	piece := (*(**[copyBytes]byte)(unsafe.Pointer(&room)))[:] // SQLite's memory is not Go's: it stays where it is
	size := int(sqlite3.Xsqlite3_blob_bytes(v.tls, v.handle))
	for at := 0; at < size; at += len(piece) {
		some := piece[:min(len(piece), size-at)]
		if code := sqlite3.Xsqlite3_blob_read(v.tls, v.handle, room, int32(len(some)), int32(at)); code != sqlite3.SQLITE_OK {
			return fmt.Errorf("SQLite's code %d", code)
		}
		if _, err := to.Write(some); err != nil {
			return err
		}
	}
	return nil
}

func (v *value) close() error {
	if code := sqlite3.Xsqlite3_blob_close(v.tls, v.handle); code != sqlite3.SQLITE_OK {
		return fmt.Errorf("SQLite's code %d", code)
	}
	return nil
}
