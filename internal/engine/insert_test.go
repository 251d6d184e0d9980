package engine

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
)

const insertTwo = `INSERT INTO rows (id, name, kind, of) VALUES (?, ?, ?, ?), (?, ?, ?, ?)`

func prepare(t *testing.T, conn any, query string, unguarded bool) *Insert {
	t.Helper()
	in, err := PrepareInsert(t.Context(), conn, query, unguarded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// What the driver hides it must do itself: the same comes of it.
func TestValuesComeBackAsTheyWereBound(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		db := open(t)
		long := strings.Repeat("é€\x01 ", mostRoom/5)
		raw(t, db, func(conn any) {
			in := prepare(t, conn, insertTwo, false)
			if in.stmt == 0 {
				t.Fatal("the driver's statement is not found")
			}
			if hidden {
				in.stmt = 0
			}
			for _, row := range [][]Value{
				{Int(1), Text(""), Text("a"), {}, Int(2), Text("two"), Text("b"), Int(1)},
				{Int(-3), Text(long), {}, {}, Int(1 << 62), Text("it's"), Text("a"), Int(-3)},
				{Int(5), Text("five"), Text("a"), {}, Bool(false), Text("zero"), {}, Int(5)},
			} {
				if err := in.Exec(t.Context(), row); err != nil {
					t.Fatal(err)
				}
			}
			if err := in.Exec(t.Context(), []Value{Int(9)}); err == nil {
				t.Error("values were missing, and nothing was told")
			}
		})
		type row struct {
			id         int64
			name, kind sql.NullString
			of         sql.NullInt64
		}
		text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: true} }
		number := func(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: true} }
		want := []row{
			{-3, text(long), sql.NullString{}, sql.NullInt64{}},
			{0, text("zero"), sql.NullString{}, number(5)},
			{1, text(""), text("a"), sql.NullInt64{}},
			{2, text("two"), text("b"), number(1)},
			{5, text("five"), text("a"), sql.NullInt64{}},
			{1 << 62, text("it's"), text("a"), number(-3)},
		}
		rows, err := db.QueryContext(t.Context(), `SELECT id, name, kind, of FROM rows ORDER BY id`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var got row
			if err := rows.Scan(&got.id, &got.name, &got.kind, &got.of); err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 || got != want[0] {
				t.Fatalf("hidden %v: row %d came back otherwise", hidden, got.id)
			}
			want = want[1:]
		}
		if err := rows.Err(); err != nil || len(want) > 0 {
			t.Errorf("%d rows are missing, %v", len(want), err)
		}
	}
}

func TestAnInsertTellsErrorsAsTheDriverDoes(t *testing.T) {
	raw(t, open(t), func(conn any) {
		in := prepare(t, conn, insertTwo, false)
		theirs, err := conn.(driver.ConnPrepareContext).PrepareContext(t.Context(), insertTwo)
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		for want, values := range map[int][]Value{
			sqlite3.SQLITE_CONSTRAINT_CHECK:    {Int(1), Text("one"), Text("c"), {}, Int(2), Text("two"), {}, {}},
			sqlite3.SQLITE_CONSTRAINT_TRIGGER:  {Int(1), Text("one"), {}, {}, Int(2), Text("one"), {}, {}},
			sqlite3.SQLITE_CONSTRAINT_DATATYPE: {Int(1), Text("one"), {}, Text("of"), Int(2), Text("two"), {}, {}},
			sqlite3.SQLITE_CONSTRAINT_NOTNULL:  {Int(1), {}, {}, {}, Int(2), Text("two"), {}, {}},
		} {
			var args []driver.NamedValue
			for i := range values {
				args = append(args, driver.NamedValue{Ordinal: i + 1, Value: values[i].Any()})
			}
			_, said := theirs.(driver.StmtExecContext).ExecContext(t.Context(), args)
			err := in.Exec(t.Context(), values)
			var own *Error
			if !errors.As(err, &own) || own.Code() != want || said == nil || own.Error() != said.Error() {
				t.Errorf("%v, not %v", err, said)
			}
		}
		if err := in.Exec(t.Context(), []Value{Int(1), Text("one"), {}, {}, Int(2), Text("two"), {}, {}}); err != nil {
			t.Errorf("after errors: %v", err)
		}
	})
}

// A long text is not kept.
func TestAnInsertKeepsLittleMemory(t *testing.T) {
	raw(t, open(t), func(conn any) {
		in := prepare(t, conn, insertTwo, true)
		for i, size := range []int{10, mostRoom + 1, 100} {
			if err := in.Exec(t.Context(), []Value{Int(int64(2 * i)), Text(strings.Repeat("x", size)), {}, {}, Int(int64(2*i + 1)), Text(strings.Repeat("y", size)), {}, {}}); err != nil {
				t.Fatal(err)
			}
			if in.room > mostRoom {
				t.Errorf("%d bytes are kept", in.room)
			}
		}
	})
}
