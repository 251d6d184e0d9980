package engine

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Value is a value to bind: an integer, a text, or, as it is made, NULL.
type Value struct {
	text string
	n    int64
	kind valueKind
}

type valueKind uint8

const (
	null valueKind = iota
	integer
	text
)

// Int is an INTEGER.
func Int(n int64) Value { return Value{n: n, kind: integer} }

// Bool is 1 or 0.
func Bool(yes bool) Value {
	if yes {
		return Int(1)
	}
	return Int(0)
}

// Text is a TEXT.
func Text(s string) Value { return Value{text: s, kind: text} }

// Any gives the value as database/sql takes it.
func (v Value) Any() any {
	switch v.kind {
	case integer:
		return v.n
	case text:
		return v.text
	}
	return nil
}

// Error is SQLite's. Its code is the extended one, as that of the driver's errors.
type Error struct {
	code    int
	message string
}

func (e *Error) Error() string { return e.message }

// Code is SQLite's extended result code.
func (e *Error) Code() int { return e.code }

// Insert is a prepared statement that binds all its values at once. The driver looks for the
// name of each parameter, and takes memory for each text: that costs as much as storing them.
type Insert struct {
	driver   driver.Stmt
	db, stmt uintptr // 0: the driver hides them, and does it
	tls      *libc.TLS
	texts    uintptr             // memory for the texts of one execution
	room     int                 // bytes of it
	count    int                 // of parameters
	args     []driver.NamedValue // for the driver
}

// mostRoom is how much memory for texts a statement keeps, in bytes.
const mostRoom = 256 << 10

// PrepareInsert prepares a statement that gives no rows; unguarded as PrepareUnguarded does. conn
// is what (*sql.Conn).Raw gives, and must be the caller's whenever the statement is used.
func PrepareInsert(ctx context.Context, conn any, query string, unguarded bool) (*Insert, error) {
	prepare := conn.(driver.ConnPrepareContext).PrepareContext
	if unguarded {
		prepare = func(ctx context.Context, query string) (driver.Stmt, error) {
			return PrepareUnguarded(ctx, conn, query)
		}
	}
	st, err := prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	in := &Insert{driver: st}
	if db, stmt := handle(conn), statement(st); db != nil && stmt != 0 {
		in.db, in.stmt, in.tls = uintptr(unsafe.Pointer(db)), stmt, libc.NewTLS()
		in.count = int(sqlite3.Xsqlite3_bind_parameter_count(in.tls, stmt))
	}
	return in, nil
}

// statement gives SQLite's statement of one of the driver, 0 where it is not found.
func statement(st driver.Stmt) uintptr {
	v := reflect.ValueOf(st)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	field := v.Elem().FieldByName("pstmt")
	if field.Kind() != reflect.Uintptr {
		return 0
	}
	return uintptr(field.Uint())
}

// Exec runs the statement with as many values as it has parameters.
func (in *Insert) Exec(ctx context.Context, values []Value) error {
	if in.stmt == 0 {
		return in.throughDriver(ctx, values)
	}
	if len(values) != in.count {
		return fmt.Errorf("%d values for %d parameters", len(values), in.count)
	}
	if err := in.bind(values); err != nil {
		return err
	}
	code := sqlite3.Xsqlite3_step(in.tls, in.stmt)
	for code == sqlite3.SQLITE_ROW {
		code = sqlite3.Xsqlite3_step(in.tls, in.stmt)
	}
	var err error
	if code != sqlite3.SQLITE_DONE {
		err = in.failed(code)
	}
	sqlite3.Xsqlite3_reset(in.tls, in.stmt) // tells once more what the step told
	if in.room > mostRoom {
		in.forget()
	}
	return err
}

func (in *Insert) bind(values []Value) error {
	size := 1 // that of an empty text is some place, too
	for i := range values {
		size += len(values[i].text)
	}
	if size > in.room {
		in.forget()
		at := libc.Xmalloc(in.tls, libc.Tsize_t(size))
		if at == 0 {
			return &Error{sqlite3.SQLITE_NOMEM, fmt.Sprintf("no memory for %d bytes of texts", size)}
		}
		in.texts, in.room = at, size
	}
	at := in.texts
	for i := range values {
		v, code := &values[i], int32(0)
		switch n := int32(i + 1); v.kind {
		case integer:
			code = sqlite3.Xsqlite3_bind_int64(in.tls, in.stmt, n, v.n)
		case text:
			copy((*(**libc.RawMem)(unsafe.Pointer(&at)))[:len(v.text):len(v.text)], v.text)
			code = sqlite3.Xsqlite3_bind_text(in.tls, in.stmt, n, at, int32(len(v.text)), sqlite3.SQLITE_STATIC)
			at += uintptr(len(v.text))
		default:
			code = sqlite3.Xsqlite3_bind_null(in.tls, in.stmt, n)
		}
		if code != sqlite3.SQLITE_OK {
			return in.failed(code)
		}
	}
	return nil
}

// forget gives back the memory of the texts.
func (in *Insert) forget() {
	if in.texts == 0 {
		return
	}
	sqlite3.Xsqlite3_clear_bindings(in.tls, in.stmt)
	libc.Xfree(in.tls, in.texts)
	in.texts, in.room = 0, 0
}

// failed tells it in the driver's words.
func (in *Insert) failed(code int32) error {
	what, why := libc.GoString(sqlite3.Xsqlite3_errstr(in.tls, code)), libc.GoString(sqlite3.Xsqlite3_errmsg(in.tls, in.db))
	if what != why {
		what += ": " + why
	}
	return &Error{int(code), fmt.Sprintf("%s (%d)", what, code)}
}

func (in *Insert) throughDriver(ctx context.Context, values []Value) error {
	in.args = in.args[:0]
	for i := range values {
		in.args = append(in.args, driver.NamedValue{Ordinal: i + 1, Value: values[i].Any()})
	}
	_, err := in.driver.(driver.StmtExecContext).ExecContext(ctx, in.args)
	clear(in.args) // texts may be large
	return err
}

// Close gives back what the statement holds.
func (in *Insert) Close() error {
	if in.stmt == 0 {
		return in.driver.Close()
	}
	in.forget()
	err := in.driver.Close()
	in.tls.Close()
	return err
}
