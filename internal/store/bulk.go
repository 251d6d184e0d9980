package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/engine"
)

// bulk gathers rows of one table and inserts many of them by one statement: in this driver a
// statement costs as much as a row, and a value a fiftieth of it.
type bulk struct {
	*tx
	table, columns string
	unless         string // an ON CONFLICT clause
	checked        bool   // the rows are new and allowed
	values         []driver.Value
	rows           int
	args           []driver.NamedValue // of one statement; used again
}

// bulkSizes are the rows of the statements that insert what was gathered, so that few are
// prepared.
func bulkSizes() [4]int { return [...]int{100, 25, 5, 1} }

// sharingRows is from how many rows on a statement binds what all of them have in common once.
const sharingRows = 25

// add takes the values of a row, each int64, string, bool or nil.
func (b *bulk) add(values ...any) error {
	for _, v := range values {
		b.values = append(b.values, v)
	}
	if b.rows++; b.rows < bulkSizes()[0] {
		return nil
	}
	return b.flush()
}

func (b *bulk) flush() error {
	if b.rows == 0 {
		return nil
	}
	width := len(b.values) / b.rows
	done := 0
	for _, size := range bulkSizes() {
		for ; b.rows-done >= size; done += size {
			if err := b.insert(b.values[done*width:(done+size)*width], width); err != nil {
				return fmt.Errorf("insert into %s: %w", b.table, err)
			}
		}
	}
	clear(b.values) // texts may be large
	clear(b.args[:cap(b.args)])
	b.values, b.rows = b.values[:0], 0
	return nil
}

func (b *bulk) insert(values []driver.Value, width int) error {
	shared := make([]bool, width)
	if len(values) >= sharingRows*width {
		shared = b.w.sharing(b.table, common(values, width))
	}
	b.args = b.args[:0]
	bind := func(v driver.Value) {
		b.args = append(b.args, driver.NamedValue{Ordinal: len(b.args) + 1, Value: v})
	}
	for i, yes := range shared {
		if yes {
			bind(values[i])
		}
	}
	for i, v := range values {
		if !shared[i%width] {
			bind(v)
		}
	}
	return b.w.execBare(b.ctx, b.query(shared, len(values)/width), b.bare(), b.args)
}

// bare tells whether CHECKs and triggers are left out, and with them what SQLite would need to
// take back one statement: where a disk is full it then gives up the transaction, which must
// be nobody else's.
func (b *bulk) bare() bool { return b.checked && b.only }

// query names the shared columns first, so that their values have the first numbers.
func (b *bulk) query(shared []bool, rows int) string {
	names := strings.Split(b.columns, ",")
	var columns, row []string
	for i, yes := range shared {
		if yes {
			columns, row = append(columns, names[i]), append(row, fmt.Sprintf("?%d", len(row)+1))
		}
	}
	for i, yes := range shared {
		if !yes {
			columns, row = append(columns, names[i]), append(row, "?")
		}
	}
	one := "(" + strings.Join(row, ", ") + ")"
	insert := "INSERT INTO "
	if b.bare() {
		// To take back half a statement SQLite would copy each page before it changes. Who fails
		// here gives up the transaction.
		insert = "INSERT OR FAIL INTO "
	}
	return insert + b.table + " (" + strings.Join(columns, ",") + ") VALUES " + one + strings.Repeat(", "+one, rows-1) + b.unless
}

// common tells the columns in which all rows have the same value.
func common(values []driver.Value, width int) []bool {
	same := slices.Repeat([]bool{true}, width)
	for i := width; i < len(values); i++ {
		if c := i % width; same[c] && values[i] != values[c] {
			same[c] = false
		}
	}
	return same
}

// sharing gives the columns that the statements of a table bind once. They only become fewer:
// so there are not many statements, however many kinds of rows come.
func (w *writer) sharing(table string, same []bool) []bool {
	known, ok := w.shared[table]
	if !ok {
		known = same
	}
	for i := range known {
		if known[i] && !same[i] {
			known = slices.Clone(known)
			for j := range known {
				known[j] = known[j] && same[j]
			}
			break
		}
	}
	w.shared[table] = known
	return known
}

// execBare runs a statement past database/sql, whose look at each value costs half as much as
// binding it.
func (w *writer) execBare(ctx context.Context, query string, unguarded bool, args []driver.NamedValue) error {
	return w.conn.Raw(func(conn any) error {
		st, ok := w.bare[query]
		if !ok {
			prepare := conn.(driver.ConnPrepareContext).PrepareContext
			if unguarded {
				prepare = func(ctx context.Context, query string) (driver.Stmt, error) {
					return engine.PrepareUnguarded(ctx, conn, query)
				}
			}
			prepared, err := prepare(ctx, query)
			if err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			st = prepared.(driver.StmtExecContext)
			w.bare[query] = st
		}
		_, err := st.ExecContext(ctx, args)
		return err
	})
}

func (w *writer) closeBare() {
	_ = w.conn.Raw(func(any) error { // everything is committed
		for _, st := range w.bare {
			st.(driver.Stmt).Close() //nolint:errcheck // as above
		}
		return nil
	})
}
