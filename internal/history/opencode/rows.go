package opencode

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"slices"

	"sessiond/internal/history"
)

// rowsOf is a conversation in the tables of messages and parts.
type rowsOf struct {
	d      *database
	of     string
	lookup history.Lookup[*message]
	kept   map[string]*message // of a small conversation: not to be read twice
	size   int
	long   history.LongValues
	longAt map[int64]history.Span // of the parts in it, by their rows
	cuts   *history.Cuts
}

func newRows(d *database, of string) *rowsOf {
	c := &rowsOf{d: d, of: of, kept: map[string]*message{}, longAt: map[int64]history.Span{}}
	if d.utf8 {
		c.cuts = history.NewCuts(&c.long, d.found, cutRule())
	}
	c.lookup.Open = c.open
	return c
}

// The statements of a conversation. A sort carries ids only: the contents of a long session are
// more than memory should hold, and releases before 1.3 have no index in the order of time.
const (
	idsOfMessages = `SELECT rowid FROM message WHERE session_id = ? ORDER BY time_created, id`
	messagesByID  = `SELECT m.rowid, m.id, CAST(m.time_created AS INTEGER), CAST(m.data AS TEXT)
		FROM json_each(?) j CROSS JOIN message m ON m.rowid = j.value ORDER BY j.rowid`
	partsByID = `SELECT m.rowid, p.id, p.rowid, (SELECT CASE WHEN octet_length(d.data) > ?2 THEN NULL ELSE CAST(d.data AS TEXT) END FROM part d WHERE d.rowid = p.rowid)
		FROM json_each(?1) j CROSS JOIN message m ON m.rowid = j.value CROSS JOIN part p ON p.message_id = m.id ORDER BY j.rowid`
	lostMessages = `SELECT DISTINCT message_id FROM part p WHERE session_id = ?1 AND message_id IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id = p.message_id AND m.session_id = ?1)`
	sizeOfPart = `SELECT octet_length(data) FROM part WHERE rowid = ?`
	wholePart  = `SELECT CAST(data AS TEXT) FROM part WHERE rowid = ?`

	partsOfLost = `SELECT id, CAST(data AS TEXT) FROM part WHERE message_id = ?`
)

// keepBytes is up to which size of all its contents a conversation is kept from the first pass
// for the second.
const keepBytes = 1 << 20

// keep keeps a message, while all of them are small.
func (c *rowsOf) keep(in *message) {
	c.size += len(in.data)
	for i := range in.parts {
		c.size += len(in.parts[i].data)
	}
	if c.size <= keepBytes {
		c.kept[in.id] = in
	} else {
		c.kept = nil
	}
}

func (c *rowsOf) scan(ctx context.Context, yield func(*message) error) error {
	var ids history.Table[int64]
	defer ids.Close()
	if err := c.ids(ctx, &ids); err != nil {
		return err
	}
	c.kept, c.size = map[string]*message{}, 0
	for i := range ids.Len() {
		in, err := c.lookup.Get(ctx, func(yield func(int64) bool) {
			for next := i; next < ids.Len() && yield(*ids.At(int32(next))); next++ {
			}
		})
		if err != nil {
			return err
		}
		c.keep(in)
		if err := yield(in); err != nil {
			return err
		}
	}
	return c.lost(ctx, yield)
}

// ids gives the rows of the messages, in their order.
func (c *rowsOf) ids(ctx context.Context, into *history.Table[int64]) error {
	rows, err := c.d.QueryContext(ctx, idsOfMessages, c.of)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		into.Append(id)
	}
	return rows.Err()
}

// lost yields messages of which only parts are left.
func (c *rowsOf) lost(ctx context.Context, yield func(*message) error) error {
	rows, err := c.d.QueryContext(ctx, lostMessages, c.of)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		in, err := c.orphan(ctx, id)
		if err != nil {
			return err
		}
		if err := yield(in); err != nil {
			return err
		}
	}
	return rows.Err()
}

// orphan are parts whose message is gone.
func (c *rowsOf) orphan(ctx context.Context, id string) (*message, error) {
	in := &message{id: id, offset: noRow, data: []byte("{}"), broken: "its message is gone"}
	rows, err := c.d.QueryContext(ctx, partsOfLost, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.id, &p.data); err != nil {
			return nil, err
		}
		in.parts = append(in.parts, p)
	}
	inOrder(in.parts)
	in.records = len(in.parts)
	return in, rows.Err()
}

func inOrder(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int { return compareIDs(a.id, b.id) })
}

func (c *rowsOf) load(ctx context.Context, l *records, i int) (*message, error) {
	id := l.texts.Get(l.at(i).id)
	if in := c.kept[id]; in != nil {
		return in, nil
	}
	if l.at(i).offset == noRow {
		return c.orphan(ctx, id)
	}
	return c.lookup.Get(ctx, rowids(l, i))
}

// noRow is where a message lies whose row is gone.
const noRow = -1 << 63

// rowids are those of a record and of the ones after it in the same table that are not here.
func rowids(l *records, i int) iter.Seq[int64] {
	second := l.at(i).second
	return func(yield func(int64) bool) {
		for next := i; next < l.n; next++ {
			r := l.at(next)
			if next > i && (r.known || r.offset == noRow || r.second != second) {
				continue
			}
			if !yield(r.offset) {
				return
			}
		}
	}
}

func (c *rowsOf) close() error { return errors.Join(c.lookup.Close(), c.long.Close()) }

// open reads messages, and beside them their parts in the same order.
func (c *rowsOf) open(ctx context.Context, ids string) (history.Rows[*message], error) {
	messages, err := c.d.QueryContext(ctx, messagesByID, ids)
	if err != nil {
		return nil, err
	}
	most := int64(history.LongValue)
	if c.cuts == nil {
		most = math.MaxInt64
	}
	parts, err := c.d.QueryContext(ctx, partsByID, ids, most)
	if err != nil {
		return nil, errors.Join(err, messages.Close())
	}
	return &both{messages: messages, parts: parts, longPart: func(row int64) ([]byte, error) { return c.longPart(ctx, row) }}, nil
}

// longPart reads a part shortened that was not read with its row, or whole where SQLite does not
// give it piece by piece.
func (c *rowsOf) longPart(ctx context.Context, row int64) (data []byte, err error) {
	at, copied := c.longAt[row]
	if !copied {
		var size *int64
		if err := c.d.GetContext(ctx, &size, sizeOfPart, row); err != nil || size == nil {
			return nil, err
		}
		at.At, at.Size, err = c.long.Put(ctx, c.d.SQLite, tablePart, "data", row, *size, "", "")
		if err == nil {
			c.longAt[row], copied = at, true
		}
	}
	if !copied {
		err := c.d.GetContext(ctx, &data, wholePart, row)
		return data, err
	}
	return c.cuts.ReadAgain(&c.long, nil, at.At, at.Size)
}

// both are rows of messages and of their parts.
type both struct {
	messages, parts *sql.Rows
	of              int64 // the message of the part that was read last
	waiting         *part // it, if it was not given yet
	longPart        func(row int64) ([]byte, error)
}

func (b *both) Next() (int64, *message, error) {
	if !b.messages.Next() {
		return 0, nil, cmp.Or(b.messages.Err(), sql.ErrNoRows)
	}
	in := &message{}
	var created *int64
	if err := b.messages.Scan(&in.offset, &in.id, &created, &in.data); err != nil {
		return 0, nil, err
	}
	if created != nil {
		in.created = *created
	}
	for {
		if b.waiting == nil && !b.parts.Next() {
			break
		}
		if b.waiting == nil {
			b.waiting = &part{}
			var row int64
			err := b.parts.Scan(&b.of, &b.waiting.id, &row, &b.waiting.data)
			if err == nil && b.waiting.data == nil {
				b.waiting.data, err = b.longPart(row)
			}
			if err != nil {
				return 0, nil, err
			}
		}
		if b.of != in.offset {
			break
		}
		in.parts, b.waiting = append(in.parts, *b.waiting), nil
	}
	inOrder(in.parts)
	in.records = 1 + len(in.parts)
	return in.offset, in, b.parts.Err()
}

func (b *both) Close() error { return errors.Join(b.messages.Close(), b.parts.Close()) }
