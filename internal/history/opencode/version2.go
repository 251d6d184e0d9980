package opencode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

const (
	columnsV2 = `SELECT CAST(id AS TEXT) AS id, COALESCE(CAST(type AS TEXT), '') AS type, COALESCE(CAST(time_created AS INTEGER), 0) AS created, ` +
		valueOfRow + ` FROM session_message `
	bySeqV2  = columnsV2 + `WHERE session_id = ?1 ORDER BY seq`
	byTimeV2 = columnsV2 + `WHERE session_id = ?1 ORDER BY time_created, id` // without the column seq
)

// addVersion2 adds the rows of session_message, which opencode 2 writes. The conversation may have
// begun in the older tables, whose messages were added before: it is the union of both by id. Of a
// message in both, the older rows count while they say the same, for their times are the true ones:
// the job that copied them into session_message did not keep them. Otherwise version 2 counts.
func (d *database) addVersion2(r *reader) {
	old := map[string]*record{}
	for _, m := range r.records {
		old[m.id] = m
	}
	query := byTimeV2
	if d.has.Has(tableMessageV2, "seq") {
		query = bySeqV2
	}
	seq, order := 0, int64(0)
	replaced := map[*record]bool{}
	d.Each(func(rows *sqlx.Rows) error {
		var of row
		if err := rows.StructScan(&of); err != nil {
			return err
		}
		seq++
		if of.Type == "idle" { // the end of a turn
			r.in.Skip(skipBookkeeping, 1)
			return nil
		}
		m := r.add(of.message())
		order = max(order, m.at.UnixMilli())
		m.seq, m.order = seq, order
		switch o := old[m.id]; {
		case o == nil:
		case o.hash == m.hash && !o.open: // nothing ends in the older tables
			r.in.Skip(skipTwin, 1)
			r.records = r.records[:len(r.records)-1]
			o.seq, o.order = seq, order
		default:
			r.in.Skip(skipOlder, o.records)
			replaced[o] = true
		}
		return nil
	}, d.timed(tableMessageV2, query), r.about.id, history.MaxLine)
	r.records = slices.DeleteFunc(r.records, func(m *record) bool { return replaced[m] })
}

// message translates a row into the form of the older tables. The type stays in data.
// Source: anomalyco/opencode, packages/core/src/session/message.ts.
func (r *row) message() *message {
	m := r.start()
	if m.data.why != "" {
		return m
	}
	o := m.data.Object
	times := o.Inner("time")
	if times.Get("created") == nil {
		times = times.With("created", strconv.AppendInt(nil, m.created, 10))
	}
	data := jsonx.Object{{Key: "time", Value: times.Value()}, jsonx.MemberOf("type", r.Type)}
	role := "user"
	switch r.Type {
	case "user":
		m.add("text", o.Without("time", "files", "agents"))
		files, _ := jsonx.ReadArray(o.Get("files"))
		for _, f := range files {
			fields, _ := jsonx.ReadFields(f)
			m.add("file", renamed(renamed(fields, "uri", "url"), "name", "filename"))
		}
		agents, _ := jsonx.ReadArray(o.Get("agents"))
		for _, a := range agents {
			fields, _ := jsonx.ReadFields(a)
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
		m.add("text", jsonx.Object{jsonx.MemberOf("text", switchText(o))})
	case "assistant":
		role = "assistant"
		data = append(data, withModel(o.Without("time", "type", "content"))...)
		content, _ := jsonx.ReadArray(o.Get("content"))
		for _, element := range content {
			m.content(element)
		}
	case "compaction": // the request and its summary in one
		role = "assistant"
		data = append(data, withModel(o.Without("time", "type", "summary"))...)
		data = append(data, jsonx.MemberOf("summary", true))
		switch o.String("status") {
		case "", "completed":
			data = append(data, jsonx.MemberOf("finish", "stop"))
			data = data.With("time", times.With("completed", times.Get("created")).Column())
		case "failed":
			data = data.With("error", orNull(o.Get("error")))
		}
		m.add("text", jsonx.Object{{Key: "text", Value: orNull(o.Get("summary"))}})
	default:
		m.data.why = "a message of type " + strconv.Quote(r.Type)
		return m
	}
	m.data = body{Object: append(data, jsonx.MemberOf("role", role))}
	return m
}

// withModel writes a reply's model as the older tables do.
func withModel(o jsonx.Object) jsonx.Object {
	model, ok := jsonx.ReadFields(o.Get("model"))
	if !ok {
		return o
	}
	o = o.Without("model")
	for _, f := range model {
		if f.Key == "id" {
			f.Key = "modelID"
		}
		o = o.With(f.Key, f.Value)
	}
	return o
}

// shellText returns a command that the person ran and its output.
func shellText(o jsonx.Object) string {
	output := o.String("output")
	if fields, ok := jsonx.ReadFields(o.Get("output")); ok {
		output = fields.String("output")
	}
	return "Ran `" + o.String("command") + "`\n```\n" + output + "\n```"
}

// switchText returns what the session switched to: an agent, a model or a folder.
func switchText(o jsonx.Object) string {
	if model, ok := jsonx.ReadFields(o.Get("model")); ok {
		return "model: " + model.String("providerID") + "/" + model.String("id")
	}
	if location, ok := jsonx.ReadFields(o.Get("location")); ok {
		return "folder: " + location.String("directory")
	}
	return "agent: " + o.String("agent")
}

func renamed(o jsonx.Object, from, to string) jsonx.Object {
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

func (m *message) add(kind string, o jsonx.Object) {
	id := m.id + ":" + strconv.Itoa(len(m.parts))
	o = append(jsonx.Object{jsonx.MemberOf("type", kind)}, o.Without("type")...)
	m.parts = append(m.parts, part{id, body{Object: o}})
}

// content adds a piece of a reply as a part.
func (m *message) content(element raw) {
	o, ok := jsonx.ReadFields(element)
	switch kind := o.String("type"); {
	case !ok:
		m.parts = append(m.parts, part{m.id + ":" + strconv.Itoa(len(m.parts)), parse(element)})
		return
	case kind != "tool":
		m.add(kind, o)
		return
	}
	state := o.Inner("state")
	switch state.String("status") {
	case "completed":
		if _, ok := jsonx.Text(state.Get("output")); !ok {
			state = state.With("output", session.JSONOf(outputText(state)))
		}
	case "error":
		if failure, ok := jsonx.ReadFields(state.Get("error")); ok {
			state = state.With("error", session.JSONOf(failure.String("message"))).With("failure", state.Get("error"))
		}
	}
	times := o.Inner("time")
	when := jsonx.Object{}
	for _, name := range [][2]string{{"ran", "start"}, {"completed", "end"}, {"pruned", "compacted"}} {
		if value := times.Get(name[0]); value != nil {
			when = append(when, jsonx.Member{Key: name[1], Value: value})
		}
	}
	if len(when) > 0 {
		state = state.With("time", when.Column())
	}
	rest := o.Without("type", "id", "name", "state", "time")
	m.add("tool", append(jsonx.Object{
		{Key: "callID", Value: orNull(o.Get("id"))},
		{Key: "tool", Value: orNull(o.Get("name"))},
		{Key: "state", Value: state.Value()},
	}, rest...))
}

// outputText returns the texts of a tool's content, else its result.
func outputText(state jsonx.Object) string {
	var texts []string
	content, _ := jsonx.ReadArray(state.Get("content"))
	for _, piece := range content {
		fields, _ := jsonx.ReadFields(piece)
		if text := fields.String("text"); text != "" {
			texts = append(texts, text)
		}
	}
	if result, ok := jsonx.Text(state.Get("result")); ok && len(texts) == 0 {
		return result
	}
	return strings.Join(texts, "\n")
}
