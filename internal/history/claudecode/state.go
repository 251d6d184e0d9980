package claudecode

import (
	"encoding/json"
	"maps"
	"slices"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// state is what a reading must know of the rows before it. It is kept in the cursor.
type state struct {
	Awaits string `json:"awaits,omitempty"` // the session that started this one, where it is not here yet

	Line    int32              `json:"line"` // lines read
	Streams map[string]*stream `json:"streams"`
	Side    *recent            `json:"side,omitempty"`   // rows of sub-agents in this file: the stream of each
	States  map[string]string  `json:"states,omitempty"` // fingerprints of the last state of each type
	Repeats map[string]int     `json:"repeats,omitempty"`
	Queue   []string           `json:"queue,omitempty"` // what was typed and not yet delivered
	Custom  string             `json:"custom,omitempty"`
	Given   string             `json:"given,omitempty"`
	Summary string             `json:"summary,omitempty"`
	LastAt  session.Time       `json:"last_at"`
	Owners  []session.ID       `json:"owners,omitempty"`  // sessions whose rows the file repeats
	Copying bool               `json:"copying,omitempty"` // the rows are still repeated ones
}

// stream is one conversation of a file: its own, or a sub-agent's.
type stream struct {
	Tip    place            `json:"tip"`
	Onward *recent          `json:"onward,omitempty"` // what hangs on a message and is passed by what follows
	Alias  *recent          `json:"alias,omitempty"`  // rows that are no message's name: the message
	Before *recent          `json:"before,omitempty"` // the parents of messages
	Calls  map[string]int64 `json:"calls,omitempty"`  // when open calls were made, Unix milliseconds
	Bill   *bill            `json:"bill,omitempty"`   // of the newest response
	Spoken bool             `json:"spoken,omitempty"` // something was said
	Held   *held            `json:"held,omitempty"`   // of a sub-agent in this file: a reply that is not finished
	Cut    *cut             `json:"cut,omitempty"`    // a compaction whose summary has not come yet

	Withdrawn []string `json:"withdrawn,omitempty"` // messages that rows took out of the context since the last compaction

	reply   reply
	batch   *pending
	started bool // its session is here
}

// place is a message by its external id; Session is set when it lies in another session.
type place struct {
	Key     string     `json:"key,omitempty"`
	Session session.ID `json:"session,omitempty"`
}

// held is what was read of a reply that is not finished.
type held struct {
	ID   string            `json:"id"`
	At   place             `json:"at"`
	Note string            `json:"note,omitempty"`
	Rows []json.RawMessage `json:"rows"`
}

// hold keeps the rows of a reply for the next reading, if they are few.
func (s *stream) hold() bool {
	const most = 256 << 10
	open := &s.reply
	if open.bytes > most || len(open.rows) == 0 {
		return false
	}
	s.Held = &held{ID: open.id, At: open.at, Note: open.note}
	for _, w := range open.rows {
		s.Held.Rows = append(s.Held.Rows, json.RawMessage(w.JSON()))
	}
	s.reply = reply{}
	return true
}

// resume takes them up again.
func (s *stream) resume(last session.Time) {
	if s.Held == nil {
		return
	}
	s.reply = reply{id: s.Held.ID, at: s.Held.At, note: s.Held.Note}
	for _, raw := range s.Held.Rows {
		t, _, ok := history.ParseTalk(raw)
		if !ok {
			continue
		}
		w := rowOf(t, len(raw))
		if !w.timed {
			w.at = last
		}
		s.reply.rows = append(s.reply.rows, w)
		s.reply.bytes += len(raw)
	}
	s.Held = nil
}

// cut is the boundary of a compaction.
type cut struct {
	Key  string       `json:"key"`
	At   session.Time `json:"at"`
	Head string       `json:"head,omitempty"` // the first row that stayed in the context
	Pre  int64        `json:"pre,omitempty"`
	Post int64        `json:"post,omitempty"`
	Took int64        `json:"took,omitempty"`
}

func readState(raw session.JSON) (*state, bool) {
	var s state
	if raw == nil || json.Unmarshal(raw, &s) != nil || s.Streams[""] == nil {
		return nil, false
	}
	return &s, true
}

func (s *state) stream(id string) *stream {
	if s.Streams == nil {
		s.Streams = map[string]*stream{}
	}
	if s.Streams[id] == nil {
		s.Streams[id] = &stream{}
	}
	return s.Streams[id]
}

// ids lists the streams, the file's own first.
func (s *state) ids() []string { return slices.Sorted(maps.Keys(s.Streams)) }

// saved gives the state for the cursor: of what may be named again only the newest.
func (s *state) saved() session.JSON {
	const most = 200
	s.Side.trim(most)
	for _, st := range s.Streams {
		st.Onward.trim(most)
		st.Alias.trim(most)
		st.Before.trim(most)
	}
	return session.JSONOf(s)
}

// recent is a map that remembers in which order its entries came.
type recent struct {
	Keys   []string         `json:"keys"`
	Values map[string]place `json:"values"`
}

func (r *recent) get(key string) (place, bool) {
	if r == nil {
		return place{}, false
	}
	v, ok := r.Values[key]
	return v, ok
}

func put(r **recent, key string, v place) {
	if *r == nil {
		*r = &recent{Values: map[string]place{}}
	}
	if _, ok := (*r).Values[key]; !ok {
		(*r).Keys = append((*r).Keys, key)
	}
	(*r).Values[key] = v
	if len((*r).Keys) >= 2*keptRecent {
		(*r).trim(keptRecent)
	}
}

// keptRecent is how many of the newest entries are remembered at least, so that memory does
// not grow with the file: rows name rows that are much nearer.
const keptRecent = 16 << 10

func (r *recent) trim(most int) {
	if r == nil || len(r.Keys) <= most {
		return
	}
	old := r.Keys[:len(r.Keys)-most]
	for _, key := range old {
		delete(r.Values, key)
	}
	r.Keys = append([]string(nil), r.Keys[len(old):]...)
}

// opened remembers when a call was made. Those that never get an answer are forgotten.
func (s *stream) opened(id string, at session.Time) {
	const most = 1000
	if s.Calls == nil || len(s.Calls) >= most {
		s.Calls = map[string]int64{}
	}
	if id != "" && !at.IsZero() {
		s.Calls[id] = at.UnixMilli()
	}
}
