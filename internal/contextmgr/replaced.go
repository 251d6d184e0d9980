package contextmgr

import (
	"slices"

	"sessiond/internal/session"
)

// replace puts the texts of an overlay in the places of the messages that they stand for, and
// nothing where a text is empty.
// Those messages are copies of the log's. A piece of which not all is on this path stays as
// it was: part of it would be a result without its call.
func (m *Manager) replace(r *reading) {
	if len(r.replaced) == 0 {
		return
	}
	at := make(map[string]int, len(r.path))
	for i := range r.path {
		at[r.path[i].ID.String()] = i
	}
	r.stands = map[int64][]session.MessageRef{}
	if r.edited == nil {
		r.edited = map[int64]bool{}
	}
	for i := range r.replaced {
		piece := &r.replaced[i]
		if slices.ContainsFunc(piece.Messages, func(name string) bool { _, here := at[name]; return !here }) {
			continue
		}
		var refs []session.MessageRef
		for _, name := range piece.Messages {
			msg := &r.path[at[name]]
			msg.InContext, msg.Parts = false, nil
			refs = append(refs, msg.ID)
		}
		if piece.Text == "" {
			continue
		}
		msg := &r.path[at[piece.Messages[len(piece.Messages)-1]]]
		msg.Kind, msg.Role, msg.Origin, msg.Finish = session.KindCustomMessage, session.User, session.Program, ""
		msg.InContext, msg.Parts = true, []session.Part{session.TextPart(piece.Text)}
		m.cfg.Counter(m.cfg.Reference).Measure(msg)
		r.edited[msg.RowID], r.stands[msg.RowID] = true, refs
	}
}

// stillReplaced gives the pieces that stay replaced under an overlay that keeps the path from
// first on, and the tokens that this saves, by the reference counter.
func (r *reading) stillReplaced(first int) (pieces []session.Replaced, saved int64) {
	if len(r.replaced) == 0 {
		return nil, 0
	}
	kept := map[string]bool{}
	for i := first; i < len(r.path); i++ {
		kept[r.path[i].ID.String()] = true
	}
	for _, piece := range r.replaced {
		if kept[piece.Messages[0]] && kept[piece.Messages[len(piece.Messages)-1]] {
			pieces, saved = append(pieces, piece), saved+piece.Saves
		}
	}
	return pieces, saved
}

// replaces tells whether a text stands for a message.
func (r *reading) replaces(m *session.Message) bool {
	name := m.ID.String()
	return slices.ContainsFunc(r.replaced, func(piece session.Replaced) bool { return slices.Contains(piece.Messages, name) })
}
