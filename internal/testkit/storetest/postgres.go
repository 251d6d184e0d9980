package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	"sessiond/internal/engine"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// Postgres is the environment variable that names a server of PostgreSQL, postgres://USER@HOST/DATABASE.
// With it, tests run on databases that they make there.
const Postgres = "SESSIOND_TEST_POSTGRES"

// OnPostgres reports whether databases for tests are made on PostgreSQL.
func OnPostgres() bool { return os.Getenv(Postgres) != "" }

// OnFile skips a test of what only a file of SQLite has.
func OnFile(t interface {
	testkit.Failer
	Skip(args ...any)
},
) {
	t.Helper()
	if OnPostgres() {
		t.Skip("it tests a file of SQLite, and " + Postgres + " is set")
	}
}

// The databases of one process are numbered; the first is the template of the others.
var databases atomic.Int64

var template = sync.OnceValues(func() (name string, err error) {
	name = fmt.Sprintf("sessiond_test_%d", os.Getpid())
	if err := onServer(`CREATE DATABASE ` + name + ` TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' ENCODING 'UTF8'`); err != nil {
		return "", err
	}
	s, err := store.Open(context.Background(), address(name), store.Options{})
	if err != nil {
		return "", err
	}
	return name, s.Close()
})

// newPostgres makes a database on the server, drops it after the test, and returns its address.
func newPostgres(t testkit.Failer) string {
	t.Helper()
	from := testkit.Must(template())(t)
	name := fmt.Sprintf("%s_%d", from, databases.Add(1))
	testkit.Check(t, onServer(`CREATE DATABASE `+name+` TEMPLATE `+from))
	if t, ok := t.(interface{ Cleanup(func()) }); ok {
		t.Cleanup(func() { _ = onServer(`DROP DATABASE ` + name + ` WITH (FORCE)`) })
	}
	return address(name)
}

// makeReader makes a role that other processes may make at the same time.
var makeReader = sync.OnceValue(func() error {
	return onServer(`DO $$ BEGIN
		CREATE ROLE ` + reader + ` LOGIN;
		GRANT pg_read_all_data TO ` + reader + `;
	EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
})

func address(database string) string {
	u, err := url.Parse(os.Getenv(Postgres))
	if err != nil {
		panic(err)
	}
	u.Path = "/" + database
	return u.String()
}

func onServer(query string) error {
	db, err := sql.Open("pgx", os.Getenv(Postgres))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statement is done
	_, err = db.ExecContext(context.Background(), query)
	return err
}

// reader is a role that can only read. It stays on the server.
const reader = "sessiond_test_reader"

// ReaderOf returns the address of a database on the server for a role that can only read; "" for a file.
func ReaderOf(t testkit.Failer, database string) string {
	t.Helper()
	if !engine.IsPostgres(database) {
		return ""
	}
	u := testkit.Must(url.Parse(database))(t)
	u.User = url.User(reader)
	testkit.Check(t, makeReader())
	return u.String()
}
