package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := Open("file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	run(t, db, `CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT CHECK (kind = 'a' OR kind = 'b'), of INTEGER REFERENCES rows (id)) STRICT`)
	run(t, db, `CREATE TRIGGER rows_no_replace BEFORE INSERT ON rows WHEN EXISTS (SELECT 1 FROM rows WHERE id = NEW.id OR name = NEW.name)
		BEGIN SELECT RAISE(ABORT, 'it exists'); END`)
	run(t, db, `CREATE TRIGGER rows_stay BEFORE DELETE ON rows BEGIN SELECT RAISE(ABORT, 'it stays'); END`)
	return db
}

func run(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// raw gives the test the driver's own connection.
func raw(t *testing.T, db *sql.DB, do func(conn any)) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Raw(func(c any) error {
		do(c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// A driver that keeps its connection elsewhere would make everything slower, and nothing tell.
func TestTheDriverKeepsItsConnectionWhereItIsLookedFor(t *testing.T) {
	raw(t, open(t), func(conn any) {
		db := handle(conn)
		if db == nil {
			t.Fatal("the connection's structure is not found")
		}
		if db.Fmutex != 0 {
			t.Error("the connection has a lock")
		}
	})
	for _, other := range []any{nil, 1, "text", struct{ db uintptr }{1}, &struct{ db string }{"x"}, &struct{ db uintptr }{}, &struct{ other int }{}} {
		if handle(other) != nil {
			t.Errorf("%#v has a structure", other)
		}
	}
}

func TestAnUnguardedStatementLeavesOutChecksForeignKeysAndTriggersAndNothingElse(t *testing.T) {
	db := open(t)
	raw(t, db, func(conn any) {
		ctx := t.Context()
		const insert = `INSERT INTO rows (id, name, kind, of) VALUES (?, ?, ?, ?)`
		unguarded, err := PrepareUnguarded(ctx, conn, insert)
		if err != nil {
			t.Fatal(err)
		}
		defer unguarded.Close()
		guarded, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, insert)
		if err != nil {
			t.Fatal(err)
		}
		defer guarded.Close()
		exec := func(st driver.Stmt, values ...driver.Value) error {
			if len(values) < 4 {
				values = append(values, nil)
			}
			args := make([]driver.NamedValue, len(values))
			for i, v := range values {
				args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
			}
			_, err := st.(driver.StmtExecContext).ExecContext(ctx, args)
			return err
		}
		one := func(query string) error {
			_, err := conn.(driver.ExecerContext).ExecContext(ctx, query, nil)
			return err
		}
		if err := exec(unguarded, int64(1), "one", "c", int64(7)); err != nil {
			t.Errorf("a row that CHECK and the foreign key refuse: %v", err)
		}
		for name, tt := range map[string]struct {
			err  error
			want int
		}{
			"a primary key twice":          {exec(unguarded, int64(1), "other", "a"), sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY},
			"a unique text twice":          {exec(unguarded, int64(2), "one", "a"), sqlite3.SQLITE_CONSTRAINT_UNIQUE},
			"nothing where it must not be": {exec(unguarded, int64(2), nil, "a"), sqlite3.SQLITE_CONSTRAINT_NOTNULL},
			"another type":                 {exec(unguarded, int64(2), "two", []byte("a")), sqlite3.SQLITE_CONSTRAINT_DATATYPE},
			"CHECK, guarded":               {exec(guarded, int64(2), "two", "c"), sqlite3.SQLITE_CONSTRAINT_CHECK},
			"the foreign key, guarded":     {exec(guarded, int64(2), "two", "a", int64(7)), sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY},
			"the trigger, guarded":         {exec(guarded, int64(1), "two", "a"), sqlite3.SQLITE_CONSTRAINT_TRIGGER},
			"the trigger of replacing":     {one(`INSERT OR REPLACE INTO rows VALUES (1, 'one', 'a', NULL)`), sqlite3.SQLITE_CONSTRAINT_TRIGGER},
			"the trigger of deleting":      {one(`DELETE FROM rows`), sqlite3.SQLITE_CONSTRAINT_TRIGGER},
		} {
			if code(tt.err) != tt.want {
				t.Errorf("%s: %v", name, tt.err)
			}
		}
		if err := one(`CREATE TABLE another (id INTEGER PRIMARY KEY)`); err != nil {
			t.Fatal(err)
		}
		if err := exec(unguarded, int64(3), "three", "c"); code(err) != sqlite3.SQLITE_CONSTRAINT_CHECK {
			t.Errorf("prepared anew for another schema: %v", err)
		}
	})
}

// Where a context ends, the driver interrupts a connection from another goroutine.
func TestConnectionsWithoutLocksServeManyGoroutines(t *testing.T) {
	db := open(t)
	db.SetMaxOpenConns(3)
	run(t, db, `INSERT INTO rows VALUES (1, 'one', 'a', NULL)`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 0 {
					cancel()
				}
				var name string
				err := db.QueryRowContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
					SELECT name FROM rows WHERE id = (SELECT MIN(i) FROM n)`).Scan(&name)
				if i%5 == 0 != errors.Is(err, context.Canceled) || i%5 != 0 && name != "one" {
					t.Errorf("%q, %v", name, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

func TestANameThatCannotBeOpenedIsToldAsByTheDriver(t *testing.T) {
	name := "file:" + filepath.Join(t.TempDir(), "none", "test.db")
	ours, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	got, want := ours.PingContext(t.Context()), theirs.PingContext(t.Context())
	if got == nil || want == nil || !strings.Contains(got.Error(), want.Error()) {
		t.Errorf("%v, not %v", got, want)
	}
}
