// Package engine reaches behind database/sql and its driver to SQLite itself, for the little
// that they have no words for: a connection without a lock of its own, statements that insert
// rows which were checked before, and values that are bound all at once. Where the driver keeps
// its connection in another way than it does now, everything works as if the package were not
// there, only slower.
package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Open is sql.Open for SQLite, with connections that lock nothing for each value that is bound
// or read. database/sql uses a connection in one goroutine at a time, which is what SQLite asks
// for then (https://www.sqlite.org/threadsafe.html, multi-thread); the driver asks for more and
// has no other way.
func Open(name string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector{c}), nil
}

type connector struct{ driver.Connector }

// Connect opens a connection and takes its lock away.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if db := handle(conn); db != nil && db.Fmutex != 0 {
		lock := db.Fmutex
		db.Fmutex = 0
		tls := libc.NewTLS()
		sqlite3.Xsqlite3_mutex_free(tls, lock)
		tls.Close()
	}
	return conn, nil
}

// PrepareUnguarded prepares a statement that fires no trigger and looks at no CHECK and no
// foreign key. NOT NULL, the types of STRICT tables and what is UNIQUE hold for it as for any other. When SQLite
// prepares it anew, because the schema changed, it is guarded from then on. conn is what
// (*sql.Conn).Raw gives.
func PrepareUnguarded(ctx context.Context, conn any, query string) (driver.Stmt, error) {
	if db := handle(conn); db != nil {
		before := db.Fflags
		db.Fflags = before&^(sqlite3.SQLITE_EnableTrigger|sqlite3.SQLITE_ForeignKeys) | sqlite3.SQLITE_IgnoreChecks
		defer func() { db.Fflags = before }()
	}
	return conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

// handle gives SQLite's structure of a connection of the driver, nil where it is not found.
func handle(conn any) *sqlite3.Tsqlite3 {
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("db")
	if field.Kind() != reflect.Uintptr || field.Uint() == 0 {
		return nil
	}
	at := uintptr(field.Uint())
	db := *(**sqlite3.Tsqlite3)(unsafe.Pointer(&at)) // SQLite's memory is not Go's: it stays where it is
	if db.FeOpenState != sqlite3.SQLITE_STATE_OPEN {
		return nil
	}
	return db
}
