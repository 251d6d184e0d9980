package store

import (
	"context"
	"fmt"
	"strings"

	"sessiond/internal/engine"
)

// bulk gathers rows of one table and inserts many of them by one statement: a statement costs as
// much as a few values.
type bulk struct {
	*tx
	table, columns string
	unless         string // an ON CONFLICT clause
	checked        bool   // the rows are new and allowed
	values         []engine.Value
	rows           int
}

// bulkSizes are the rows of the statements that insert what was gathered. More rows cost more to
// prepare, each time the database is opened, than they save.
func bulkSizes() [3]int { return [...]int{25, 5, 1} }

// end ends a row, whose values were added to values.
func (b *bulk) end() error {
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
			if err := b.w.execBare(b.ctx, b.query(size, width), b.values[done*width:(done+size)*width]); err != nil {
				return fmt.Errorf("insert into %s: %w", b.table, err)
			}
		}
	}
	clear(b.values) // texts may be large
	b.values, b.rows = b.values[:0], 0
	return nil
}

// bare tells whether CHECKs and triggers are left out, and with them what SQLite would need to
// take back one statement: where a disk is full it then gives up the transaction, which must
// be nobody else's.
func (b *bulk) bare() bool { return b.checked && b.only }

func (b *bulk) query(rows, width int) bareQuery {
	return bareQuery{table: b.table, columns: b.columns, unless: b.unless, bare: b.bare(), rows: rows, width: width}
}

// bareQuery is a statement of bulk.
type bareQuery struct {
	table, columns, unless string
	bare                   bool
	rows, width            int
}

func (q *bareQuery) text() string {
	insert := "INSERT INTO "
	if q.bare {
		// To take back half a statement SQLite would copy each page before it changes. Who fails
		// here gives up the transaction.
		insert = "INSERT OR FAIL INTO "
	}
	one := "(?" + strings.Repeat(", ?", q.width-1) + ")"
	return insert + q.table + " (" + q.columns + ") VALUES " + one + strings.Repeat(", "+one, q.rows-1) + q.unless
}

// execBare runs a statement past database/sql and the driver, whose look at each value costs more
// than storing it.
func (w *writer) execBare(ctx context.Context, query bareQuery, values []engine.Value) error {
	return w.conn.Raw(func(conn any) error {
		st, ok := w.bare[query]
		if !ok {
			var err error
			if st, err = engine.PrepareInsert(ctx, conn, query.text(), query.bare); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			w.bare[query] = st
		}
		return st.Exec(ctx, values)
	})
}

func (w *writer) closeBare() {
	_ = w.conn.Raw(func(any) error { // everything is committed
		for _, st := range w.bare {
			st.Close() //nolint:errcheck // as above
		}
		return nil
	})
}
