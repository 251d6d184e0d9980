package goose

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// rowsOf is a conversation in a table of messages.
type rowsOf struct {
	d     *database
	table string
	where string
	of    string
	kept  map[int64]*row // of a small conversation: not to be read twice
	size  int

	lookup history.Lookup[*row]
	long   history.LongValues
	cuts   *history.Cuts
}

func newRows(d *database, table, where, of string) *rowsOf {
	c := &rowsOf{d: d, table: table, where: where, of: of}
	c.cuts = history.NewCuts(&c.long, d.found, cutRule())
	c.lookup.Open = c.open
	return c
}

// keepBytes is up to which size of all its contents a conversation is kept from the first pass
// for the second.
const keepBytes = 1 << 20

// selected begins a statement with the columns of a message that are there.
func (c *rowsOf) selected() string {
	list := `m.id`
	for _, name := range []string{"message_id", "role", "created_timestamp", "content_json", "metadata_json"} {
		switch {
		case !slices.Contains(c.d.has[c.table], name):
			list += `, NULL`
			if name == columnContent {
				list += `, NULL`
			}
		case name == columnContent: // a long one is not read with its row
			list += `, CASE WHEN ` + c.longContent() + ` THEN NULL ELSE CAST(m.content_json AS TEXT) END, CASE WHEN ` + c.longContent() + ` THEN octet_length(m.content_json) END`
		default:
			list += `, CAST(m.` + name + ` AS TEXT)`
		}
	}
	return `SELECT ` + list + ` FROM `
}

const columnContent = "content_json"

// longContent is when a content is not read with its row: what octet_length says needs only the
// row's header.
func (c *rowsOf) longContent() string {
	if c.cuts == nil || !c.d.utf8 {
		return `FALSE`
	}
	return `octet_length(m.content_json) > ` + strconv.Itoa(history.LongValue)
}

// In the file of long values a content stands in an object: only those are read shortened.
const beforeContent, afterContent = `{"content":`, `}`

// putLong copies a content that was not read with its row, and reads it shortened.
func (c *rowsOf) putLong(ctx context.Context, in *row) (err error) {
	if in.long == 0 {
		return nil
	}
	in.offset, in.size, err = c.long.Put(ctx, c.d.SQLite, c.table, columnContent, in.id, in.long, beforeContent, afterContent)
	if err != nil {
		in.offset, in.size = 0, 0
	}
	return c.getLong(ctx, in, in.offset, in.size)
}

// getLong reads a content shortened, or whole where SQLite does not give it piece by piece.
func (c *rowsOf) getLong(ctx context.Context, in *row, offset, size int64) error {
	if size == 0 {
		return c.d.GetContext(ctx, &in.content, `SELECT CAST(content_json AS TEXT) FROM `+c.table+` WHERE id = ?`, in.id)
	}
	object, err := c.cuts.ReadAgain(&c.long, nil, offset, size)
	if err == nil {
		in.content = object[len(beforeContent) : len(object)-len(afterContent)]
	}
	return err
}

func (c *rowsOf) scan(ctx context.Context, yield func(*row) error) error {
	rows, err := c.d.QueryContext(ctx, c.inOrder(), c.of)
	if err != nil {
		return err
	}
	defer rows.Close()
	c.kept, c.size = map[int64]*row{}, 0
	for rows.Next() {
		in, err := scanRow(rows)
		if err != nil {
			return err
		}
		if err := c.putLong(ctx, in); err != nil {
			return err
		}
		if c.size += len(in.content) + len(in.metadata); c.size <= keepBytes {
			c.kept[in.id] = in
		} else {
			c.kept = nil
		}
		if err := yield(in); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (c *rowsOf) inOrder() string {
	return c.selected() + c.table + ` m WHERE ` + c.where + ` ORDER BY m.id`
}

func (c *rowsOf) byID() string {
	return c.selected() + `json_each(?) j CROSS JOIN ` + c.table + ` m ON m.id = j.value ORDER BY j.rowid`
}

func (c *rowsOf) load(ctx context.Context, l *records, i int) (*row, error) {
	id := l.at(i).id
	if in := c.kept[id]; in != nil {
		return in, nil
	}
	in, err := c.lookup.Get(ctx, func(yield func(int64) bool) {
		for next := i; next < l.len(); next++ {
			if r := l.at(next); (next == i || !r.known) && !yield(r.id) {
				return
			}
		}
	})
	if r := *l.at(i); err == nil && in.long > 0 {
		err = c.getLong(ctx, in, r.offset, r.size)
	}
	if err != nil {
		return nil, fmt.Errorf("read row %d again: %w", id, err)
	}
	return in, nil
}

func (c *rowsOf) close() error { return errors.Join(c.lookup.Close(), c.long.Close()) }

func (c *rowsOf) open(ctx context.Context, ids string) (history.Rows[*row], error) {
	rows, err := c.d.QueryContext(ctx, c.byID(), ids)
	if err != nil {
		return nil, err
	}
	return again{rows}, nil
}

type again struct{ *sql.Rows }

func (rows again) Next() (int64, *row, error) {
	if !rows.Rows.Next() {
		return 0, nil, cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	in, err := scanRow(rows.Rows)
	if err != nil {
		return 0, nil, err
	}
	return in.id, in, nil
}

func scanRow(rows *sql.Rows) (*row, error) {
	in := &row{}
	var messageID, roleText *string
	var long *int64
	if err := rows.Scan(&in.id, &messageID, &roleText, &in.created, &in.content, &long, &in.metadata); err != nil {
		return nil, err
	}
	if long != nil {
		in.long = *long
	}
	if messageID != nil {
		in.messageID = history.Plain([]byte(*messageID))
	}
	if roleText != nil {
		in.role = *roleText
	}
	return in, nil
}

// lostUsage are the ledger rows of a session of which nothing else is left: kept raw.
type lostUsage struct {
	d     *database
	of    string
	texts history.Texts
}

func (c *lostUsage) scan(ctx context.Context, yield func(*row) error) error {
	n := int64(0)
	return c.d.each(tableLedger, `WHERE session_id = ? ORDER BY id`, func(from columns) error {
		var o history.Object
		for _, name := range c.d.has[tableLedger] {
			if from[name] != nil {
				o = append(o, history.Field{Key: name, Raw: raw(session.JSONOf(from.text(name)))})
			}
		}
		in := &row{id: n, created: from.number("created_timestamp"), content: objectJSON(o), broken: lostSession}
		in.offset = int64(c.texts.Put(string(in.content)))
		n++
		return cmp.Or(yield(in), ctx.Err())
	}, c.of)
}

const lostSession = "usage of a session that is gone"

func (c *lostUsage) load(_ context.Context, l *records, i int) (*row, error) {
	r := l.at(i)
	return &row{id: r.id, content: []byte(c.texts.Get(history.TextAt(r.offset))), broken: lostSession}, nil
}

func (c *lostUsage) close() error {
	c.texts.Close()
	return nil
}

// threads reads what the interface kept of conversations. It is a copy, unless the session's
// own messages are gone.
func (d *database) threads() error {
	if !slices.Contains(d.has[tableThreadMessages], "thread_id") || !slices.Contains(d.has[tableThreadMessages], "id") {
		return nil
	}
	var counts []struct {
		Thread  *string `db:"thread_id"`
		Session *string `db:"session_id"`
		extent
	}
	if err := d.SelectContext(d.ctx, &counts, `SELECT CAST(thread_id AS TEXT) AS thread_id, CAST(session_id AS TEXT) AS session_id,
		COUNT(*) AS n, MAX(id) AS newest FROM thread_messages GROUP BY thread_id, session_id`); err != nil {
		return err
	}
	own := map[string]extent{}
	for _, c := range counts {
		if c.Thread == nil || c.Session != nil && d.rows[*c.Session].Count > 0 {
			d.records.Skip(skipInterface, int(c.Count))
			continue
		}
		sum := own[*c.Thread]
		own[*c.Thread] = extent{sum.Count + c.Count, max(sum.Newest, c.Newest)}
	}
	var list []columns
	if slices.Contains(d.has[tableThreads], "id") {
		var err error
		if list, err = d.list(tableThreads, `ORDER BY created_at`); err != nil {
			return err
		}
	}
	for _, c := range list {
		id := c.text("id")
		if _, ok := own[id]; !ok {
			d.records.Skip(skipInterface, 1)
			continue
		}
		if err := d.thread(aboutThread(c), own[id]); err != nil {
			return err
		}
		delete(own, id)
	}
	for id := range own {
		if err := d.thread(aboutThread(columns{"id": &id}), own[id]); err != nil {
			return err
		}
	}
	return nil
}

// threadPrefix begins the source ids of threads, which are sessions of their own.
const threadPrefix = "thread/"

// ofThread are the rows of a thread that are no copy of a session's messages.
const ofThread = `thread_id = ? AND (session_id IS NULL OR session_id NOT IN (SELECT session_id FROM messages WHERE session_id IS NOT NULL))`

func aboutThread(c columns) about {
	a := about{
		id: threadPrefix + c.text("id"), title: c.text("name"), directory: c.text("working_dir"),
		created: timeText(c.text("created_at")), archived: timeText(c.text("archived_at")), records: 1,
	}
	if len(c) == 1 {
		a.records = 0 // its row is gone
	}
	a.typed("")
	a.note("thread", c.text("id"))
	if at := c.text("created_at"); at != "" {
		a.note("created_at", at)
	}
	metadata, _ := history.ParseObject(c.number("metadata_json"))
	a.provider, a.model = metadata.String("provider_id"), metadata.String("model_name")
	return a
}

func (d *database) thread(a about, rows extent) error {
	d.rows[a.id] = rows
	return d.session(a, fmt.Sprint(a.title, rows))
}
