package contextmgr

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// contextEdit is what an entry out of the context says of an earlier one: on paths that hold
// the entry its content is another, or it is left out. Pi writes them, to take back a failed
// reply, say; the log stays as it is.
type contextEdit struct {
	Target string         `json:"target"` // external id
	Parts  []session.Part `json:"parts"`  // instead of what it holds; none: it is left out
}

// edit applies the edits of a path to it. Of several of one message the last counts.
func (m *Manager) edit(r *reading) {
	done := map[string]bool{}
	for i := range slices.Backward(r.path) {
		if r.path[i].Kind != session.KindMarker || !strings.Contains(string(r.path[i].Extra), `"context_edit"`) {
			continue
		}
		var extra struct {
			Edit *contextEdit `json:"context_edit"`
		}
		if !decode(r.path[i].Extra, &extra) || extra.Edit == nil || done[extra.Edit.Target] {
			continue
		}
		done[extra.Edit.Target] = true
		at := slices.IndexFunc(r.path[:i], func(msg session.Message) bool { return msg.ExternalID == extra.Edit.Target })
		if at < 0 {
			continue // another overlay or fork holds it
		}
		m.rewrite(&r.path[at], extra.Edit.Parts)
		if r.edited == nil {
			r.edited = map[int64]bool{}
		}
		r.edited[r.path[at].RowID] = true
	}
}

// rewrite gives a message other content. A result stays the answer to its call.
func (m *Manager) rewrite(msg *session.Message, parts []session.Part) {
	if len(parts) == 0 {
		msg.InContext = false
		return
	}
	if i := slices.IndexFunc(msg.Parts, func(p session.Part) bool { return p.Kind == session.PartToolResult }); i >= 0 && msg.Role == session.Tool {
		result := msg.Parts[i]
		result.Text, result.Blob, result.BlobSHA, result.Extra = (&session.Message{Parts: parts}).Text(), nil, nil, nil
		parts = []session.Part{result}
	}
	msg.Parts = parts
	m.cfg.Counter(m.cfg.Reference).Measure(msg)
}
