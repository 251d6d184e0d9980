package opencode

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

type raw = jsontext.Value

// message is one message with its parts, in the form of the tables message and part, whatever
// store it was read from.
type message struct {
	id      string
	created int64 // milliseconds; 0: as data says
	data    body
	parts   []part
	records int  // of the source, itself included
	open    bool // it is still being written, besides what data says
	large   bool // over 64 MiB: data and parts are missing
}

type part struct {
	id string
	body
}

// body is the JSON object of a message or part.
type body struct {
	jsonx.Object
	text []byte // as it was read; nil: the object was made here
	why  string // not "": it is kept as text, and why
}

// parse parses one JSON object that is not nested too deep.
func parse(text []byte) body {
	o, _, ok := history.ParseLine(text)
	switch {
	case !ok:
		return body{text: text, why: "it is no JSON object"}
	case jsonx.DeeperThan(text, history.MaxDepth):
		return body{text: text, why: "it is nested too deep"}
	}
	return body{Object: o, text: text}
}

func (b *body) json() []byte {
	if b.text != nil {
		return b.text
	}
	return b.Value()
}

// plain returns the JSON as text that the database can hold.
func (b *body) plain() string { return history.Plain(b.json()) }

func (b *body) size() int {
	n := len(b.text)
	if b.text == nil {
		for i := range b.Object {
			n += len(b.Object[i].Value)
		}
	}
	return n
}

func (m *message) size() int {
	n := m.data.size()
	for i := range m.parts {
		n += m.parts[i].size()
	}
	return n
}

// limit drops the content of a message over 64 MiB.
func (m *message) limit() {
	if m.large = m.large || m.size() > history.MaxLine; m.large {
		m.data, m.parts = body{text: []byte{}, why: "it is too large"}, nil
	}
}

// record is what the reader remembers of a message.
type record struct {
	id      string
	at      session.Time
	role    string
	hash    string // of what it says
	records int
	why     string // not "": it is kept raw, and why
	open    bool   // not finished yet
	says    bool   // it has text
	calls   bool   // a call in it has no result
	large   bool
	failed  bool
	answers string // id of the message that it answers
	request bool   // a compaction is asked for
	summary bool
	alone   bool   // a summary without a request, of version 2
	tail    string // of a request: id of the first message that is kept
	pruned  []pruned
	seq     int   // place among the rows of session_message, from 1; 0: it is not there
	order   int64 // the greatest time up to this seq, in milliseconds

	body *message

	key    string           // external id of its first message
	last   string           // and of its last one
	copyOf *history.Printed // of an origin
	known  bool             // the store has it
	aside  bool             // no message follows it
	before int              // index of the record that it follows; -1: none
}

// recordOf returns the record of a message.
func recordOf(in *message) *record {
	o := in.data.Object
	r := &record{id: in.id, records: in.records, why: in.data.why, large: in.large, body: in}
	times := o.Inner("time")
	r.at, _ = history.UnixMilli(times.Get("created"))
	if r.at.IsZero() {
		r.at = millis(in.created)
	}
	r.role = o.String("role")
	switch r.role {
	case "user", "assistant", "system", "marker":
	default:
		r.why = cmp.Or(r.why, "a message of role "+strconv.Quote(r.role))
	}
	r.aside = r.why != ""
	r.answers = o.String("parentID")
	r.failed = isSet(o.Get("error"))
	r.summary = r.role == "assistant" && string(o.Get("summary")) == "true"
	r.alone = r.summary && o.String("type") == "compaction"
	r.open = in.open || r.role == "assistant" && times.Get("completed") == nil && !r.failed
	says := []jsontext.Value{raw(session.JSONOf(r.at.UnixMilli())), raw(session.JSONOf(r.role))}
	if r.why != "" {
		says = append(says, raw(session.JSONOf(in.data.plain())))
	}
	for i := range in.parts {
		if text := r.readPart(&in.parts[i]); text != nil {
			says = append(says, text)
		}
	}
	r.hash = jsonx.Fingerprint(jsonx.Object{{Key: "says", Value: jsonx.Array(says)}})
	return r
}

// millis returns the time of a number of milliseconds; none for what is not one.
func millis(n int64) session.Time {
	at, _ := history.UnixMilli(strconv.AppendInt(nil, n, 10))
	return at
}

func isSet(value []byte) bool { return value != nil && string(value) != "null" }

// readPart notes what a part is and returns what it says, the same in all generations: they differ
// in what is known beside it. nil: it says nothing.
func (r *record) readPart(p *part) raw {
	o := p.Object
	if p.why != "" {
		return raw(session.JSONOf(p.plain()))
	}
	switch o.String("type") {
	case "compaction":
		r.request = r.request || r.role == "user"
		r.tail = o.String("tail_start_id")
		return nil
	case "step-start", "step-finish", "snapshot", "patch", "retry":
		return nil
	case "text", "reasoning":
		r.says = r.says || o.String("type") == "text" && strings.TrimSpace(o.String("text")) != ""
		o = only(o, "type", "text")
	case "file":
		o = only(o, "type", "mime", "url")
	case "tool":
		state := o.Inner("state")
		status := state.String("status")
		if (status == "streaming" || status == "pending" || status == "running") && !r.failed {
			r.open, r.calls = true, true
		}
		if at := history.Count(state.Inner("time").Get("compacted")); at > 0 {
			r.pruned = append(r.pruned, pruned{at, clean(o.String("callID"))})
		}
		o = append(only(o, "type", "callID", "tool"), only(state, "input", "output", "error")...)
	}
	return raw(session.JSONOf(jsonx.Fingerprint(o, "id", "messageID", "sessionID")))
}

// only returns some fields of an object.
func only(o jsonx.Object, keys ...string) (some jsonx.Object) {
	for _, key := range keys {
		if value := o.Get(key); value != nil {
			some = append(some, jsonx.Member{Key: key, Value: value})
		}
	}
	return some
}

// name returns the external id that the record has by its own id.
func (r *record) name() string {
	if name := strings.ReplaceAll(clean(r.id), "#", "_"); name != "" {
		return name
	}
	return "h:" + r.hash
}

// recordKey returns the external id of the record that a message was made of, from the message's.
func recordKey(key string) string {
	base, _, _ := strings.Cut(key, "#")
	return base
}

// compareRecords orders the records of a session: by time, then by seq, then by id. Rows of
// session_message stay in the order of their seq, whatever their times say.
func compareRecords(a, b *record) int {
	return cmp.Or(cmp.Compare(a.sortTime(), b.sortTime()), cmp.Compare(a.seq, b.seq), compareIDs(a.id, b.id))
}

func (r *record) sortTime() int64 {
	if r.seq > 0 {
		return r.order
	}
	return r.at.UnixMilli()
}

// compareIDs compares two ids by the time in them. Its 48 bits wrap every 795 days: of two
// ids that are more than half of that apart, the smaller one is the newer.
func compareIDs(a, b string) int {
	x, okA := timeIn(a)
	y, okB := timeIn(b)
	if okA && okB && x != y {
		if (x < y) != (max(x, y)-min(x, y) > 1<<47) {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

func timeIn(id string) (uint64, bool) {
	_, digits, ok := strings.Cut(id, "_")
	if !ok || len(digits) < 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits[:12], 16, 64)
	return n, err == nil
}

// clean returns text that the database can hold.
func clean(s string) string { return history.Plain(s) }

// fillTimes returns records without a time that of the one before, and the session its own.
func fillTimes(a *about, records []*record) {
	last, first := a.created, session.Time{}
	for _, m := range records {
		if m.at.IsZero() {
			m.at = last
		}
		if last = m.at; !last.IsZero() && (first.IsZero() || last.Before(first.Time)) {
			first = last
		}
	}
	if a.created.IsZero() {
		if a.created = first; first.IsZero() {
			a.created = session.At(time.Unix(0, 0))
		}
	}
	for _, m := range records {
		if m.at.IsZero() {
			m.at = a.created
		}
	}
}
