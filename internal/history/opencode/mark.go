package opencode

import (
	"context"
	"encoding/json"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// mark is what the cursor of a session remembers, to see whether it changed.
type mark struct {
	Mark   string `json:"mark"`
	Reads  int    `json:"reads"`
	Copies int    `json:"copies,omitempty"` // records
	Of     string `json:"of,omitempty"`     // what they are copies of
	Head   string `json:"head,omitempty"`   // where the source's head was
	Pruned int64  `json:"pruned,omitempty"` // when outputs were last pruned, in milliseconds

	Records int `json:"records,omitempty"` // all of them
}

// markAt reads what the last reading of a session remembered.
func markAt(ctx context.Context, known history.Known, path string) (mark, error) {
	var m mark
	cursor, err := known.Cursor(ctx, session.SourceOpencode, path)
	if cursor != nil {
		_ = json.Unmarshal(cursor.State, &m) // a damaged one: read again
	}
	return m, err
}

// state is what the session's cursor remembers.
func (r *reader) state(changed string) session.JSON {
	m := mark{Mark: changed, Reads: reads, Head: r.head.key, Pruned: max(r.until, r.before.Pruned)}
	if r.waits {
		m.Mark = "" // look again
	}
	m.Records = r.about.records + r.extra.Read + r.records.count(0, r.records.table.Len())
	m.Copies = r.records.count(0, r.shared)
	if r.origin != nil {
		m.Of = r.origin.SourceID
	}
	return session.JSONOf(m)
}
