package opencode

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// twoVersions is a conversation in the rows of session_message, which opencode 2 writes, and in
// the older tables, where it may have begun. It is the union of both by id. Of a message in
// both, the older rows are read while they say the same, for their times are the true ones:
// the job that copied them into session_message did not keep them. Otherwise version 2 counts.
type twoVersions struct {
	d       *database
	of      string
	old     *rowsOf // nil: the older tables have nothing of it
	records *history.Records
	lookup  history.Lookup[*rowV2]
}

func newTwoVersions(d *database, of string, old *rowsOf, records *history.Records) *twoVersions {
	c := &twoVersions{d: d, of: of, old: old, records: records}
	c.lookup.Open = c.open
	return c
}

const (
	columnsV2 = `SELECT m.rowid, m.id, COALESCE(CAST(m.type AS TEXT), '') AS type, CAST(m.time_created AS INTEGER) AS created, CAST(m.data AS TEXT) AS data `
	bySeqV2   = columnsV2 + `FROM session_message m WHERE m.session_id = ? ORDER BY m.seq`
	byTimeV2  = columnsV2 + `FROM session_message m WHERE m.session_id = ? ORDER BY m.time_created, m.id` // without the column seq
	byRowV2   = columnsV2 + `FROM json_each(?) j CROSS JOIN session_message m ON m.rowid = j.value ORDER BY j.rowid`
)

// rowV2 is a row of session_message.
type rowV2 struct {
	Row     int64  `db:"rowid"`
	ID      string `db:"id"`
	Type    string `db:"type"`
	Created *int64 `db:"created"`
	Data    []byte `db:"data"`
}

func (c *twoVersions) scan(ctx context.Context, yield func(*message) error) error {
	places := map[string]placeV2{}
	if c.old != nil {
		if err := c.scanBoth(ctx, places, yield); err != nil {
			return err
		}
	}
	order := int64(0)
	return c.each(ctx, func(seq int, row *rowV2) error {
		if row.Type == "idle" { // the end of a turn
			c.records.Skip(skipBookkeeping, 1)
			return nil
		}
		place := places[row.ID]
		if place.same {
			c.records.Skip(skipTwin, 1)
			return nil
		}
		in := row.message()
		order = max(order, recordOf(in, nil).at.UnixMilli())
		in.seq, in.order = seq, order
		return yield(in)
	})
}

// placeV2 is where a row of session_message stands.
type placeV2 struct {
	seq   int
	order int64
	hash  string
	same  bool // the older tables say the same
}

// scanBoth yields the messages of the older tables that version 2 does not have or that say the
// same there, and notes the latter in places.
func (c *twoVersions) scanBoth(ctx context.Context, places map[string]placeV2, yield func(*message) error) error {
	order := int64(0)
	err := c.each(ctx, func(seq int, row *rowV2) error {
		m := recordOf(row.message(), nil)
		order = max(order, m.at.UnixMilli())
		places[row.ID] = placeV2{seq: seq, order: order, hash: m.hash}
		return nil
	})
	if err != nil {
		return err
	}
	return c.old.scan(ctx, func(in *message) error {
		place, twice := places[in.id]
		if !twice {
			return yield(in)
		}
		if m := recordOf(in, nil); m.hash != place.hash || m.open { // nothing ends in the older tables
			c.records.Skip(skipOlder, in.records)
			return nil
		}
		place.same = true
		places[in.id] = place
		in.seq, in.order = place.seq, place.order
		return yield(in)
	})
}

// each reads the rows of session_message, in their order, from 1.
func (c *twoVersions) each(ctx context.Context, yield func(seq int, row *rowV2) error) error {
	query := byTimeV2
	if slices.Contains(c.d.has[tableMessageV2], "seq") {
		query = bySeqV2
	}
	rows, err := c.d.QueryxContext(ctx, query, c.of)
	if err != nil {
		return err
	}
	defer rows.Close()
	for seq := 1; rows.Next(); seq++ {
		var row rowV2
		if err := rows.StructScan(&row); err != nil {
			return err
		}
		if err := yield(seq, &row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (c *twoVersions) load(ctx context.Context, l *records, i int) (*message, error) {
	if !l.at(i).second {
		return c.old.load(ctx, l, i)
	}
	row, err := c.lookup.Get(ctx, rowids(l, i))
	if err != nil {
		return nil, fmt.Errorf("read message %s again: %w", l.texts.Get(l.at(i).id), err)
	}
	return row.message(), nil
}

func (c *twoVersions) close() error {
	if c.old == nil {
		return c.lookup.Close()
	}
	return cmp.Or(c.lookup.Close(), c.old.close())
}

func (c *twoVersions) open(ctx context.Context, ids string) (history.Rows[*rowV2], error) {
	rows, err := c.d.QueryxContext(ctx, byRowV2, ids)
	if err != nil {
		return nil, err
	}
	return rowsV2{rows}, nil
}

type rowsV2 struct{ *sqlx.Rows }

func (rows rowsV2) Next() (int64, *rowV2, error) {
	if !rows.Rows.Next() {
		return 0, nil, cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	var row rowV2
	err := rows.StructScan(&row)
	return row.Row, &row, err
}

// message translates a row into the form of the older tables. The type stays in data.
// Source: anomalyco/opencode, packages/core/src/session/message.ts.
func (row *rowV2) message() *message {
	m := &message{id: row.ID, offset: row.Row, data: row.Data, records: 1, second: true}
	if row.Created != nil {
		m.created = *row.Created
	}
	o, why := parse(row.Data)
	if why != "" {
		m.broken = why
		return m
	}
	times, _ := history.Fields(o.Get("time"))
	if times.Get("created") == nil {
		times = times.With("created", strconv.AppendInt(nil, m.created, 10))
	}
	data := history.Object{{Key: "time", Raw: raw(times.JSON())}, {Key: "type", Raw: raw(session.JSONOf(row.Type))}}
	role := "user"
	switch row.Type {
	case "user":
		m.add("text", o.Without("time", "files", "agents"))
		files, _ := history.Elements(o.Get("files"))
		for _, f := range files {
			fields, _ := history.Fields(f)
			m.add("file", renamed(renamed(fields, "uri", "url"), "name", "filename"))
		}
		agents, _ := history.Elements(o.Get("agents"))
		for _, a := range agents {
			fields, _ := history.Fields(a)
			m.add("agent", fields)
		}
	case "synthetic", "skill":
		m.add("text", o.Without("time").With("synthetic", raw("true")))
	case "system":
		role = "system"
		m.add("text", o.Without("time"))
	case "shell":
		m.open = o.String("status") == "running"
		m.add("text", o.Without("time").With("text", session.JSONOf(shellText(o))))
	case "agent-switched", "model-switched", "location-switched":
		role = "marker"
		data = append(data, o.Without("time", "type")...)
		m.add("text", history.Object{{Key: "text", Raw: raw(session.JSONOf(switchText(o)))}})
	case "assistant":
		role = "assistant"
		data = append(data, withModel(o.Without("time", "type", "content"))...)
		content, _ := history.Elements(o.Get("content"))
		for _, element := range content {
			m.content(element)
		}
	case "compaction": // the request and its summary in one
		role = "assistant"
		data = append(data, withModel(o.Without("time", "type", "summary"))...)
		data = append(data, history.Field{Key: "summary", Raw: raw("true")})
		switch o.String("status") {
		case "", "completed":
			data = append(data, history.Field{Key: "finish", Raw: raw(`"stop"`)})
			data = data.With("time", times.With("completed", times.Get("created")).JSON())
		case "failed":
			data = data.With("error", orNull(o.Get("error")))
		}
		m.add("text", history.Object{{Key: "text", Raw: orNull(o.Get("summary"))}})
	default:
		m.broken = "a message of type " + strconv.Quote(row.Type)
		return m
	}
	data = append(data, history.Field{Key: "role", Raw: raw(session.JSONOf(role))})
	m.data = data.JSON()
	return m
}

// withModel writes a reply's model as the older tables do.
func withModel(o history.Object) history.Object {
	model, ok := history.Fields(o.Get("model"))
	if !ok {
		return o
	}
	o = o.Without("model")
	for _, f := range model {
		if f.Key == "id" {
			f.Key = "modelID"
		}
		o = o.With(f.Key, f.Raw)
	}
	return o
}

// shellText returns a command that the person ran and its output.
func shellText(o history.Object) string {
	output := o.String("output")
	if fields, ok := history.Fields(o.Get("output")); ok {
		output = fields.String("output")
	}
	return "Ran `" + o.String("command") + "`\n```\n" + output + "\n```"
}

// switchText returns what the session switched to: an agent, a model or a folder.
func switchText(o history.Object) string {
	if model, ok := history.Fields(o.Get("model")); ok {
		return "model: " + model.String("providerID") + "/" + model.String("id")
	}
	if location, ok := history.Fields(o.Get("location")); ok {
		return "folder: " + location.String("directory")
	}
	return "agent: " + o.String("agent")
}

func renamed(o history.Object, from, to string) history.Object {
	if value := o.Get(from); value != nil && o.Get(to) == nil {
		return o.Without(from).With(to, value)
	}
	return o
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

// content adds a piece of a reply as a part.
func (m *message) content(element raw) {
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
	switch state.String("status") {
	case "completed":
		if _, ok := history.Text(state.Get("output")); !ok {
			state = state.With("output", session.JSONOf(outputText(state)))
		}
	case "error":
		if failure, ok := history.Fields(state.Get("error")); ok {
			state = state.With("error", session.JSONOf(failure.String("message"))).With("failure", state.Get("error"))
		}
	}
	times, _ := history.Fields(o.Get("time"))
	when := history.Object{}
	for _, name := range [][2]string{{"ran", "start"}, {"completed", "end"}, {"pruned", "compacted"}} {
		if value := times.Get(name[0]); value != nil {
			when = append(when, history.Field{Key: name[1], Raw: value})
		}
	}
	if len(when) > 0 {
		state = state.With("time", when.JSON())
	}
	rest := o.Without("type", "id", "name", "state", "time")
	m.add("tool", append(history.Object{
		{Key: "callID", Raw: orNull(o.Get("id"))}, {Key: "tool", Raw: orNull(o.Get("name"))}, {Key: "state", Raw: objectJSON(state)},
	}, rest...))
}

// outputText returns the texts of a tool's content, else its result.
func outputText(state history.Object) string {
	var texts []string
	content, _ := history.Elements(state.Get("content"))
	for _, piece := range content {
		fields, _ := history.Fields(piece)
		if text := fields.String("text"); text != "" {
			texts = append(texts, text)
		}
	}
	if result, ok := history.Text(state.Get("result")); ok && len(texts) == 0 {
		return result
	}
	return strings.Join(texts, "\n")
}
