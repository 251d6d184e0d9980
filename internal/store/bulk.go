package store

import (
	"fmt"
	"strings"
)

// bulk gathers rows of one table and inserts many of them by one statement: in this driver a
// statement costs as much as a row.
type bulk struct {
	*tx
	table, columns string
	unless         string // an ON CONFLICT clause
	args           []any
	rows           int
}

// bulkSizes are the rows of the statements that insert what was gathered, so that few are
// prepared.
func bulkSizes() [4]int { return [...]int{100, 25, 5, 1} }

func (b *bulk) add(values ...any) error {
	b.args = append(b.args, values...)
	if b.rows++; b.rows < bulkSizes()[0] {
		return nil
	}
	return b.flush()
}

func (b *bulk) flush() error {
	if b.rows == 0 {
		return nil
	}
	width := len(b.args) / b.rows
	row := "(?" + strings.Repeat(", ?", width-1) + ")"
	done := 0
	for _, size := range bulkSizes() {
		var query string
		for ; b.rows-done >= size; done += size {
			if query == "" {
				query = "INSERT INTO " + b.table + " (" + b.columns + ") VALUES " + row + strings.Repeat(", "+row, size-1) + b.unless
			}
			if _, err := b.exec(query, b.args[done*width:(done+size)*width]...); err != nil {
				return fmt.Errorf("insert into %s: %w", b.table, err)
			}
		}
	}
	clear(b.args) // texts may be large
	b.args, b.rows = b.args[:0], 0
	return nil
}
