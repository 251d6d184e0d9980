package opencode

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// engineOf is a conversation that opencode's second engine wrote: rows of session_message,
// in another form, which become messages and parts of the first one's.
type engineOf struct {
	d      *database
	of     string
	lookup history.Lookup[*engineRow]
}

func newEngine(d *database, of string) *engineOf {
	c := &engineOf{d: d, of: of}
	c.lookup.Open = c.open
	return c
}

const (
	engineRows   = `SELECT m.rowid, m.id, CAST(m.type AS TEXT) AS type, CAST(m.time_created AS INTEGER) AS created, CAST(m.data AS TEXT) AS data `
	engineInTime = engineRows + `FROM session_message m WHERE m.session_id = ? ORDER BY m.seq`
	engineByID   = engineRows + `FROM json_each(?) j CROSS JOIN session_message m ON m.rowid = j.value ORDER BY j.rowid`
)

type engineRow struct {
	Row     int64   `db:"rowid"`
	ID      string  `db:"id"`
	Type    *string `db:"type"`
	Created *int64  `db:"created"`
	Data    []byte  `db:"data"`
}

func (c *engineOf) scan(ctx context.Context, yield func(*message) error) error {
	rows, err := c.d.QueryxContext(ctx, engineInTime, c.of)
	if err != nil {
		return err
	}
	defer rows.Close()
	before := ""
	for rows.Next() {
		var row engineRow
		if err := rows.StructScan(&row); err != nil {
			return err
		}
		if err := yield(row.message(before)); err != nil {
			return err
		}
		before = row.ID
	}
	return rows.Err()
}

func (c *engineOf) load(ctx context.Context, l *records, i int) (*message, error) {
	row, err := c.lookup.Get(ctx, rowids(l, i))
	if err != nil {
		return nil, fmt.Errorf("read message %s again: %w", l.texts.Get(l.at(i).id), err)
	}
	return row.message(l.record(i).answers), nil
}

func (c *engineOf) close() error { return c.lookup.Close() }

func (c *engineOf) open(ctx context.Context, ids string) (history.Rows[*engineRow], error) {
	rows, err := c.d.QueryxContext(ctx, engineByID, ids)
	if err != nil {
		return nil, err
	}
	return engineAgain{rows}, nil
}

type engineAgain struct{ *sqlx.Rows }

func (rows engineAgain) Next() (int64, *engineRow, error) {
	if !rows.Rows.Next() {
		return 0, nil, cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	var row engineRow
	err := rows.StructScan(&row)
	return row.Row, &row, err
}

// message turns a row into the first engine's form. before is the row before it.
func (row *engineRow) message(before string) *message {
	m := &message{id: row.ID, offset: row.Row, data: row.Data, records: 1}
	if row.Created != nil {
		m.created = *row.Created
	}
	o, why := parse(row.Data)
	if why != "" {
		m.broken = why
		return m
	}
	kind := ""
	if row.Type != nil {
		kind = *row.Type
	}
	times := o.Get("time")
	if times == nil {
		times = []byte(fmt.Sprintf(`{"created":%d}`, m.created))
	}
	data := history.Object{{Key: "time", Raw: times}, {Key: "engine", Raw: raw(session.JSONOf(kind))}}
	role := "user"
	switch kind {
	case "user":
		m.add("text", o.Without("time", "files", "agents"))
		files, _ := history.Elements(o.Get("files"))
		for _, f := range files {
			fields, _ := history.Fields(f)
			m.add("file", fields)
		}
		agents, _ := history.Elements(o.Get("agents"))
		for _, a := range agents {
			fields, _ := history.Fields(a)
			m.add("agent", fields)
		}
	case "synthetic":
		m.add("text", o.Without("time").With("synthetic", raw("true")))
	case "system":
		role = "system"
		m.add("text", o.Without("time"))
	case "shell":
		text := "Ran `" + o.String("command") + "`\n```\n" + o.String("output") + "\n```"
		m.add("text", history.Object{{Key: "text", Raw: raw(session.JSONOf(text))}, {Key: "callID", Raw: orNull(o.Get("callID"))}})
	case "assistant":
		role = "assistant"
		model, _ := history.Fields(o.Get("model"))
		data = append(data, o.Without("time", "content", "model")...)
		data = append(data, history.Field{Key: "modelID", Raw: orNull(model.Get("id"))}, history.Field{Key: "providerID", Raw: orNull(model.Get("providerID"))})
		content, _ := history.Elements(o.Get("content"))
		for _, element := range content {
			m.content(element)
		}
	case "compaction": // the request and its summary in one
		role = "assistant"
		data = append(data, history.Field{Key: "summary", Raw: raw("true")}, history.Field{Key: "parentID", Raw: raw(session.JSONOf(before))},
			history.Field{Key: "finish", Raw: raw(`"stop"`)}, history.Field{Key: "recent", Raw: orNull(o.Get("recent"))})
		data = data.With("time", fmt.Appendf(nil, `{"created":%d,"completed":%d}`, m.created, m.created))
		m.add("text", history.Object{{Key: "text", Raw: orNull(o.Get("summary"))}})
	default:
		m.broken = "a message of type " + strconv.Quote(kind)
		return m
	}
	data = append(data, history.Field{Key: "role", Raw: raw(session.JSONOf(role))})
	m.data = data.JSON()
	return m
}

func orNull(value []byte) raw {
	if value == nil {
		return raw("null")
	}
	return value
}

func (m *message) add(kind string, o history.Object) {
	id := m.id + ":" + strconv.Itoa(len(m.parts))
	o = append(history.Object{{Key: "type", Raw: raw(session.JSONOf(kind))}}, o.Without("type")...)
	m.parts = append(m.parts, part{id, o.JSON()})
}

// content takes a piece of a reply.
func (m *message) content(element json.RawMessage) {
	o, ok := history.Fields(element)
	if !ok {
		m.parts = append(m.parts, part{m.id + ":" + strconv.Itoa(len(m.parts)), element})
		return
	}
	if o.String("type") != "tool" {
		m.add(o.String("type"), o)
		return
	}
	state, _ := history.Fields(o.Get("state"))
	times, _ := history.Fields(o.Get("time"))
	output := ""
	content, _ := history.Elements(state.Get("content"))
	for _, piece := range content {
		fields, _ := history.Fields(piece)
		if text := fields.String("text"); text != "" {
			if output != "" {
				output += "\n"
			}
			output += text
		}
	}
	if text, ok := history.Text(state.Get("result")); ok && output == "" {
		output = text
	}
	if _, ok := history.Text(state.Get("output")); !ok && state.String("status") == "completed" {
		state = state.With("output", session.JSONOf(output))
	}
	when := history.Object{}
	for from, to := range map[string]string{"ran": "start", "completed": "end", "pruned": "compacted"} {
		if value := times.Get(from); value != nil {
			when = append(when, history.Field{Key: to, Raw: value})
		}
	}
	if len(when) > 0 {
		state = state.With("time", when.JSON())
	}
	m.add("tool", history.Object{
		{Key: "callID", Raw: orNull(o.Get("id"))}, {Key: "tool", Raw: orNull(o.Get("name"))}, {Key: "state", Raw: objectJSON(state)},
	})
}
