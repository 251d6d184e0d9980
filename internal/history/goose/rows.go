package goose

import (
	"cmp"
	"database/sql"
	"fmt"
	"strconv"

	"sessiond/internal/history"
)

// Which rows a conversation has.
const (
	ofSession = `session_id = ?`
	ofThread  = `thread_id = ? AND (session_id IS NULL OR session_id NOT IN (SELECT session_id FROM messages WHERE session_id IS NOT NULL))` // no copy of a session's messages
	ofID      = `m.id = ?`
)

// statement selects rows of a table of messages, with NULL for columns that are not there and for
// a content that is too large.
func (d *database) statement(table, where string) string {
	column := func(name string) string {
		if !d.hasColumn(table, name) {
			return `NULL`
		}
		return `CAST(m.` + name + ` AS TEXT)`
	}
	const size = `octet_length(m.content_json)` // it does not read the content
	content, large := column("content_json"), `FALSE`
	if content != `NULL` {
		large = size + ` > ` + strconv.Itoa(history.MaxLine)
		content = `CASE WHEN ` + large + ` THEN NULL ELSE ` + content + ` END`
	}
	return `SELECT m.id, ` + column("message_id") + `, ` + column("role") + `, ` + column("created_timestamp") + `, ` + content + `, COALESCE(` + large + `, FALSE), ` +
		column("metadata_json") + ` FROM ` + table + ` m WHERE ` + where + ` ORDER BY m.id`
}

// messages adds the rows of a conversation to its reader.
func (d *database) messages(r *reader, table, where, of string) error {
	again := d.statement(table, ofID)
	r.load = func(m *record) (*row, error) {
		in, _, err := scanRow(d.QueryRowContext(d.ctx, again, m.id))
		return in, err
	}
	rows, err := d.QueryContext(d.ctx, d.statement(table, where), of)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		in, large, err := scanRow(rows)
		if err != nil {
			return err
		}
		if large {
			r.in.Skip(history.SkipTooLarge, 1)
			r.in.Problem(0, fmt.Sprintf("%smessage %s, row %d, is over %d MiB; left out", r.called(), in.messageID, in.id, history.MaxLine>>20))
			continue
		}
		r.add(in)
	}
	return cmp.Or(rows.Err(), d.ctx.Err())
}

func scanRow(rows interface{ Scan(...any) error }) (in *row, large bool, err error) {
	in = &row{}
	var messageID, role sql.NullString
	err = rows.Scan(&in.id, &messageID, &role, &in.created, &in.content, &large, &in.metadata)
	in.messageID, in.role = history.Plain([]byte(messageID.String)), role.String
	return in, large, err
}

// usage adds the rows of usage_ledger to a session's reader. Those of a session of which nothing
// else is left are kept raw.
func (d *database) usage(r *reader) error {
	lost := r.about.records == 0 && d.rows[r.about.id].Count == 0
	return d.each(tableLedger, `WHERE session_id = ? ORDER BY id`, func(c columns) error {
		if !lost {
			r.ledger = append(r.ledger, entryOf(c))
			return d.ctx.Err()
		}
		var o history.Object
		for _, name := range d.has[tableLedger] {
			if c[name] != nil {
				o = append(o, field(name, c.text(name)))
			}
		}
		r.add(&row{id: int64(len(r.records)), created: c.number("created_timestamp"), content: objectJSON(o), broken: "usage of a session that is gone"})
		return d.ctx.Err()
	}, r.about.id)
}

// threadPrefix begins the source ids of threads, which are sessions of their own.
const threadPrefix = "thread/"

// threads reads what the interface kept of conversations. It is a copy, unless the session's
// own messages are gone.
func (d *database) threads() error {
	if !d.hasColumn(tableThreadMessages, "thread_id") || !d.hasColumn(tableThreadMessages, "id") {
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
			d.in.Skip(skipInterface, int(c.Count))
			continue
		}
		sum := own[*c.Thread]
		own[*c.Thread] = extent{sum.Count + c.Count, max(sum.Newest, c.Newest)}
	}
	var list []columns
	if d.hasColumn(tableThreads, "id") {
		if err := d.each(tableThreads, `ORDER BY created_at`, func(c columns) error { list = append(list, c); return nil }); err != nil {
			return err
		}
	}
	for _, c := range list {
		id := c.text("id")
		if _, ok := own[id]; !ok {
			d.in.Skip(skipInterface, 1)
			continue
		}
		if err := d.thread(aboutThread(c), own[id]); err != nil {
			return err
		}
		delete(own, id)
	}
	for id := range own {
		if err := d.thread(aboutThread(columns{"id": id}), own[id]); err != nil {
			return err
		}
	}
	return nil
}

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
	return d.session(a, a.title)
}
