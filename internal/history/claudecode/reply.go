package claudecode

import (
	"encoding/json"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// decode reads an entry in the dialect of the provider, so that it can be given back as the
// model saw it. ok is false when that form does not hold it. The messages are good until the next.
func (r *reader) decode(message []byte) ([]session.Message, bool) {
	if len(message) == 0 {
		return nil, false
	}
	decoded, err := r.decoder.Decode([]json.RawMessage{message})
	return decoded.Messages, err == nil && len(decoded.Messages) > 0
}

// close gives the rows of a response as one message. It does nothing when there are none.
func (r *reader) close(id string, st *stream) error {
	open := st.reply
	if len(open.rows) == 0 {
		return nil
	}
	st.reply = reply{}
	last := open.rows[len(open.rows)-1]
	if done, err := r.repeatedReply(st, &open); done || err != nil {
		return err
	}
	if st.Bill != nil && st.Bill.ID != open.id {
		r.settle(id, st)
	}
	st.Spoken = true
	msgs, ok := r.decode(whole(open.rows))
	if !ok {
		r.problem("a reply that is not as it should be; kept raw")
		at, note := open.at, open.note
		for _, w := range open.rows {
			r.put(id, st, w, history.Message{Message: aside(session.KindUnknown, "")}, at, note, true)
			at, note = st.Tip, ""
		}
		return nil
	}
	m := history.Message{Message: msgs[0], Records: len(open.rows)}
	m.Provider, m.Model = "anthropic", plain(last.message.String("model"))
	if last.made() {
		m.Provider, m.Model, m.Origin, m.InContext, m.Finish = "", "", session.Program, false, session.FinishError
	} else if m.Finish == "" && len(m.Calls()) > 0 {
		m.Finish = session.FinishToolCalls
	}
	if last.flag("isAbortedMidStream") {
		m.Finish = session.FinishAborted
	}
	// A response goes on behind the results of its own calls.
	if st.Bill != nil && st.Bill.ID == open.id {
		r.pass(st, open.at, last.uuid)
	}
	for _, w := range open.rows[:len(open.rows)-1] {
		put(&st.Alias, w.uuid, place{Key: last.uuid})
	}
	r.put(id, st, open.rows[0].named(last), m, open.at, open.note, false)
	for i, w := range open.rows {
		for _, o := range w.apart().blocks {
			if o.String("type") == "tool_use" {
				st.opened(plain(o.String("id")), open.rows[i].at)
			}
		}
	}
	if !last.made() {
		r.charge(st, open.rows, last.uuid)
	}
	return r.superseded(id, st, open.rows)
}

// named is a row with the name, and the other fields, of another: a reply has the time of its
// first row and the rest of its last.
func (w *row) named(last *row) *row {
	both := *last
	both.at, both.parent = w.at, w.parent
	return &both
}

// whole puts the pieces of a response together: the last one with the blocks of all.
func whole(rows []*row) []byte {
	last := rows[len(rows)-1]
	if len(rows) == 1 {
		return last.said()
	}
	list := []byte{'['}
	for _, w := range rows {
		elements, ok := history.Elements(w.content)
		if !ok && len(w.content) > 0 && w.content[0] == '"' {
			text := history.Object{{Key: "type", Raw: []byte(`"text"`)}, {Key: "text", Raw: w.content}}
			elements = []json.RawMessage{json.RawMessage(text.JSON())}
		}
		for _, e := range elements {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, e...)
		}
	}
	message := make(history.Object, 0, len(last.message))
	for _, f := range last.message {
		if f.Key == "content" {
			f.Raw = append(list, ']')
		}
		message = append(message, f)
	}
	return message.JSON()
}

// said is the message of a row.
func (w *row) said() []byte { return w.message.JSONAs(w.Get("message")) }

// charge adds to the bill of a response what its rows say.
func (r *reader) charge(st *stream, rows []*row, key string) {
	first := rows[0]
	if st.Bill == nil || st.Bill.ID != first.reply() {
		st.Bill = &bill{ID: first.reply(), At: first.at, Dir: plain(first.String("cwd"))}
	}
	b := st.Bill
	b.Key, b.Ended = key, false
	any := false
	for _, w := range rows {
		any = b.add(w.message.Get("usage")) || any
		b.Model, b.Version = plain(w.message.String("model")), plain(w.String("version"))
		if cost, ok := number(w.Get("costUSD")); ok && (b.Cost == nil || *b.Cost < cost) {
			b.Cost = &cost
		}
		switch w.message.String("stop_reason") {
		case "end_turn", "stop_sequence", "max_tokens", "refusal":
			b.Ended = true
		}
	}
	if !any && b.Input+b.Written+b.Read+b.Output == 0 {
		st.Bill = nil
	}
}

// settle puts the bill of a response on the ledger: nothing more comes of it.
func (r *reader) settle(id string, st *stream) {
	b := st.Bill
	st.Bill = nil
	if b == nil {
		return
	}
	p := r.pending(id, st)
	p.batch.Calls = append(p.batch.Calls, b.call())
}

// result adds to a tool's result how long it took: what the program says, else the time since
// the call was written.
func (r *reader) result(st *stream, w *row, m *session.Message) {
	told, _ := history.Fields(w.Get("toolUseResult"))
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		began, open := st.Calls[p.CallID]
		delete(st.Calls, p.CallID)
		ms := int64(-1)
		for _, key := range []string{"durationMs", "totalDurationMs"} {
			if n, ok := number(told.Get(key)); ok && n >= 0 && n < 1e12 {
				ms = int64(n)
			}
		}
		if ms < 0 && open && w.timed {
			ms = w.at.UnixMilli() - began
		}
		if ms >= 0 {
			p.DurationMS = &ms
		}
	}
}
