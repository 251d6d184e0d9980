package goose

import (
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
)

// Which rows a conversation has.
const (
	ofSession = `session_id = ?`
	ofThread  = `thread_id = ? AND (session_id IS NULL OR session_id NOT IN (SELECT session_id FROM messages WHERE session_id IS NOT NULL))` // no copy of a session's messages
)

// statement selects rows of a table of messages, with NULL for columns that are not there and for
// a content that is too large.
func (d *database) statement(table, where string) string {
	column := func(name string) string {
		if !d.has.Has(table, name) {
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
	return `SELECT m.id, COALESCE(` + column("message_id") + `, '') AS message_id, COALESCE(` + column("role") + `, '') AS role, ` + column("created_timestamp") + ` AS created, ` + content + ` AS content,
		COALESCE(` + large + `, FALSE) AS large, ` + column("metadata_json") + ` AS metadata FROM ` + table + ` m WHERE ` + where + ` ORDER BY m.id`
}

// messages adds the rows of a conversation to its reader.
func (d *database) messages(r *reader, table, where, of string) {
	d.Each(func(rows *sqlx.Rows) error {
		in := &row{}
		if err := rows.StructScan(in); err != nil {
			return err
		}
		if in.Large {
			r.in.Skip(history.SkipTooLarge, 1)
			r.in.Problem(0, fmt.Sprintf("%smessage %s, row %d, is over %d MiB; left out", r.called(),
				history.Plain(in.MessageID), in.ID, history.MaxLine>>20))
			return nil
		}
		r.add(in)
		return nil
	}, d.statement(table, where), of)
}

// usage adds the rows of usage_ledger to a session's reader. Those of a session of which nothing
// else is left are kept raw.
func (d *database) usage(r *reader) {
	lost := r.about.records == 0 && d.rows[r.about.id].Count == 0
	d.EachRow(tableLedger, d.has[tableLedger], `WHERE session_id = ? ORDER BY id`, func(columns history.Row) {
		if !lost {
			r.ledger = append(r.ledger, usageOfRow(columns))
			return
		}
		var o jsonx.Object
		for _, c := range columns {
			o = append(o, jsonx.MemberOf(c.Name, c.Text))
		}
		r.add(&row{
			ID: int64(len(r.records)), Created: []byte(columns.Get("created_timestamp")), Content: o.Value(),
			broken: "usage of a session that is gone",
		})
	}, r.about.id)
}

// threadPrefix begins the source ids of threads, which are sessions of their own.
const threadPrefix = "thread/"

// threads reads what the interface kept of conversations. It is a copy, unless the session's
// own messages are gone.
func (d *database) threads() {
	if !d.has.Has(tableThreadMessages, "id") {
		return
	}
	var counts []struct {
		Thread  *string `db:"thread_id"`
		Session *string `db:"session_id"`
		history.Extent
	}
	d.Select(&counts, `SELECT CAST(thread_id AS TEXT) AS thread_id, CAST(session_id AS TEXT) AS session_id,
		COUNT(*) AS n, MAX(id) AS newest, 0 AS first FROM thread_messages GROUP BY thread_id, session_id`)
	own := map[string]history.Extent{}
	for _, c := range counts {
		if c.Thread == nil || c.Session != nil && d.rows[*c.Session].Count > 0 {
			d.in.Skip(skipInterface, int(c.Count))
			continue
		}
		sum := own[*c.Thread]
		own[*c.Thread] = history.Extent{Count: sum.Count + c.Count, Newest: max(sum.Newest, c.Newest)}
	}
	var list []history.Row
	if d.has.Has(tableThreads, "id") {
		d.EachRow(tableThreads, d.has[tableThreads], `ORDER BY `+d.has.Column(tableThreads, "created_at", "id"),
			func(r history.Row) { list = append(list, r) })
	}
	for _, c := range list {
		id := c.Get("id")
		if _, ok := own[id]; !ok {
			d.in.Skip(skipInterface, 1)
			continue
		}
		d.thread(aboutThread(c), own[id])
		delete(own, id)
	}
	for id := range own {
		d.thread(aboutThread(history.Row{{Name: "id", Text: id}}), own[id])
	}
}

func aboutThread(c history.Row) about {
	a := about{
		id: threadPrefix + c.Get("id"), title: c.Get("name"), directory: c.Get("working_dir"),
		created: timeText(c.Get("created_at")), archived: timeText(c.Get("archived_at")), records: 1,
	}
	if len(c) == 1 {
		a.records = 0 // its row is gone
	}
	a.typed("")
	a.note("thread", c.Get("id"))
	if at := c.Get("created_at"); at != "" {
		a.note("created_at", at)
	}
	metadata, _ := jsonx.ReadObject([]byte(c.Get("metadata_json")))
	a.provider, a.model = metadata.String("provider_id"), metadata.String("model_name")
	return a
}

func (d *database) thread(a about, rows history.Extent) {
	d.rows[a.id] = rows
	d.session(a, a.title)
}
