package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// Lookup reads rows of a large table by their ids, one by one, in an order of which it is told
// what comes next. A statement for each row would cost more than the row: so one gives as many
// as were wanted in that order before, twice as many each time. Only one row is in memory.
// Close it.
type Lookup[T any] struct {
	// Open begins to give rows in the order of ids, a JSON array of at most mostAhead numbers.
	Open func(ctx context.Context, ids string) (Rows[T], error)

	rows   Rows[T]
	coming []int64 // what rows still gives
	ahead  int
	last   int64
	row    T
	has    bool
	opened int
}

// Rows gives one row after the other.
type Rows[T any] interface {
	// Next gives the next row and its id; sql.ErrNoRows: there is none.
	Next() (int64, T, error)
	Close() error
}

const (
	fewestAhead = 8
	mostAhead   = 4096
)

// Get gives the row of the first of ids; the others are those that will be asked for after it.
// They are read as far as is needed. sql.ErrNoRows: there is no such row.
func (l *Lookup[T]) Get(ctx context.Context, ids iter.Seq[int64]) (row T, err error) {
	id, some := first(ids)
	switch {
	case !some:
		return row, sql.ErrNoRows
	case l.has && l.last == id:
		return l.row, nil
	case len(l.coming) == 0 || l.coming[0] != id:
		if err := l.open(ctx, ids); err != nil {
			return row, err
		}
	}
	l.coming = l.coming[1:]
	for {
		is, row, err := l.rows.Next()
		switch {
		case err != nil:
			return row, errors.Join(err, l.Close())
		case is == id:
			l.last, l.row, l.has = id, row, true
			return row, nil
		case l.has && is == l.last: // another row has the same id
		default:
			return row, errors.Join(sql.ErrNoRows, l.Close())
		}
	}
}

func (l *Lookup[T]) open(ctx context.Context, ids iter.Seq[int64]) (err error) {
	if len(l.coming) > 0 { // it was told wrong
		l.ahead = 0
	}
	if err := l.Close(); err != nil {
		return err
	}
	l.ahead = max(fewestAhead, min(2*l.ahead, mostAhead))
	list := []byte{'['}
	for id := range ids {
		if len(l.coming) > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, id, 10)
		if l.coming = append(l.coming, id); len(l.coming) == l.ahead {
			break
		}
	}
	l.opened++
	if l.rows, err = l.Open(ctx, string(append(list, ']'))); err != nil {
		l.coming = nil
		return fmt.Errorf("read rows again: %w", err)
	}
	return nil
}

// Close gives back what is open. The Lookup can be used again.
func (l *Lookup[T]) Close() (err error) {
	var none T
	l.coming, l.row, l.has = nil, none, false
	if l.rows != nil {
		err, l.rows = l.rows.Close(), nil
	}
	return err
}

// Opened is how often it asked.
func (l *Lookup[T]) Opened() int { return l.opened }

func first(ids iter.Seq[int64]) (int64, bool) {
	for id := range ids {
		return id, true
	}
	return 0, false
}
