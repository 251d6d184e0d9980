package opencode

import (
	"context"
	"database/sql"
	"slices"
)

// rowsOf is a conversation in the tables of messages and parts.
type rowsOf struct {
	d    *database
	of   string
	kept map[string]*message // of a small conversation: not to be read twice
	size int
}

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
	rows, err := c.d.QueryContext(ctx, `SELECT id, CAST(time_created AS INTEGER), CAST(data AS TEXT) FROM message WHERE session_id = ? ORDER BY time_created, id`, c.of)
	if err != nil {
		return err
	}
	defer rows.Close()
	c.kept, c.size = map[string]*message{}, 0
	for rows.Next() {
		in, err := c.row(ctx, rows)
		if err != nil {
			return err
		}
		c.keep(in)
		if err := yield(in); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var lost []string
	if err := c.d.SelectContext(ctx, &lost, `SELECT DISTINCT message_id FROM part WHERE session_id = ?1 AND message_id NOT IN
		(SELECT id FROM message WHERE session_id = ?1)`, c.of); err != nil {
		return err
	}
	for _, id := range lost {
		in, err := c.orphan(ctx, id)
		if err != nil {
			return err
		}
		if err := yield(in); err != nil {
			return err
		}
	}
	return nil
}

func (c *rowsOf) row(ctx context.Context, rows *sql.Rows) (*message, error) {
	in := &message{}
	var created *int64
	if err := rows.Scan(&in.id, &created, &in.data); err != nil {
		return nil, err
	}
	if created != nil {
		in.created = *created
	}
	var err error
	in.parts, err = c.partsOf(ctx, in.id)
	in.records = 1 + len(in.parts)
	return in, err
}

func (c *rowsOf) partsOf(ctx context.Context, id string) ([]part, error) {
	rows, err := c.d.QueryContext(ctx, `SELECT id, CAST(data AS TEXT) FROM part WHERE message_id = ?`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var parts []part
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.id, &p.data); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	inOrder(parts)
	return parts, rows.Err()
}

func inOrder(parts []part) {
	slices.SortStableFunc(parts, func(a, b part) int { return compareIDs(a.id, b.id) })
}

// orphan are parts whose message is gone.
func (c *rowsOf) orphan(ctx context.Context, id string) (*message, error) {
	parts, err := c.partsOf(ctx, id)
	return &message{id: id, data: []byte("{}"), parts: parts, records: len(parts), broken: "its message is gone"}, err
}

func (c *rowsOf) load(ctx context.Context, r *record) (*message, error) {
	if in := c.kept[r.id]; in != nil {
		return in, nil
	}
	rows, err := c.d.QueryContext(ctx, `SELECT id, CAST(time_created AS INTEGER), CAST(data AS TEXT) FROM message WHERE id = ?`, r.id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if rows.Next() {
		return c.row(ctx, rows)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return c.orphan(ctx, r.id)
}
