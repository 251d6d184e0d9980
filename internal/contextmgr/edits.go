package contextmgr

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// applyEdits applies the edits of a path to the snapshot's copies of its messages. The last edit
// of a message counts.
func (m *Manager) applyEdits(s *snapshot) {
	done, leftOut := map[string]bool{}, map[int][]int{}
	for i := range slices.Backward(s.Messages) {
		if s.Messages[i].Kind != session.KindMarker || !strings.Contains(string(s.Messages[i].Extra), `"context_edit"`) {
			continue
		}
		var extra struct {
			Edit *session.ContextEdit `json:"context_edit"`
		}
		if !decode(s.Messages[i].Extra, &extra) || extra.Edit == nil || done[extra.Edit.Target] {
			continue
		}
		done[extra.Edit.Target] = len(extra.Edit.LeftOut) == 0
		ref, _ := session.ParseRef(extra.Edit.Target) // or an external id
		at := slices.IndexFunc(s.Messages[:i], func(msg session.Message) bool {
			return msg.ExternalID == extra.Edit.Target || ref.Seq > 0 && msg.ID == ref
		})
		switch {
		case at < 0:
			continue
		case len(extra.Edit.LeftOut) > 0:
			leftOut[at] = append(leftOut[at], extra.Edit.LeftOut...)
		default:
			m.setParts(&s.Messages[at], extra.Edit.Parts)
		}
		s.markEdited(s.Messages[at].RowID)
	}
	for at, parts := range leftOut {
		m.leaveOut(&s.Messages[at], parts)
	}
}

// leaveOut removes parts of a message, which it has by their index.
func (m *Manager) leaveOut(msg *session.Message, parts []int) {
	var left []session.Part
	for i := range msg.Parts {
		if !slices.Contains(parts, i) {
			left = append(left, msg.Parts[i])
		}
	}
	if msg.Parts = left; len(left) == 0 {
		msg.InContext = false
		return
	}
	m.measure(msg)
}

func (s *snapshot) markEdited(rowID int64) {
	if s.Edited == nil {
		s.Edited = map[int64]bool{}
	}
	s.Edited[rowID] = true
}

// setParts replaces a message's content. A tool's result stays the answer to its call.
func (m *Manager) setParts(msg *session.Message, parts []session.Part) {
	if len(parts) == 0 {
		msg.InContext = false
		return
	}
	if i := slices.IndexFunc(msg.Parts, func(p session.Part) bool {
		return p.Kind == session.PartToolResult
	}); i >= 0 && msg.Role == session.Tool {
		result := msg.Parts[i]
		result.Text, result.Blob, result.BlobSHA, result.Extra = (&session.Message{Parts: parts}).Text(), nil, nil, nil
		parts = []session.Part{result}
	}
	msg.Parts = parts
	m.measure(msg)
}

// applyReplacements puts the overlay's texts in the places of the messages that they replace. A
// replacement of which a message is not on this path is skipped: it could separate a result from
// its call.
func (m *Manager) applyReplacements(s *snapshot) {
	if len(s.details.Replaced) == 0 {
		return
	}
	index := make(map[string]int, len(s.Messages))
	for i := range s.Messages {
		index[s.Messages[i].ID.String()] = i
	}
	s.ReplacedBy = map[int64][]session.MessageRef{}
	for _, r := range s.details.Replaced {
		if slices.ContainsFunc(r.Messages, func(name string) bool { _, here := index[name]; return !here }) {
			continue
		}
		var refs []session.MessageRef
		for _, name := range r.Messages {
			msg := &s.Messages[index[name]]
			msg.InContext, msg.Parts = false, nil
			refs = append(refs, msg.ID)
		}
		if r.Text == "" {
			continue
		}
		msg := &s.Messages[index[r.Messages[len(r.Messages)-1]]]
		msg.Kind, msg.Role, msg.Origin, msg.Finish = session.KindCustomMessage, session.User, session.Program, ""
		msg.InContext, msg.Parts = true, []session.Part{session.TextPart(r.Text)}
		m.measure(msg)
		s.markEdited(msg.RowID)
		s.ReplacedBy[msg.RowID] = refs
	}
}

// keptReplacements returns the replacements that stay under an overlay which keeps the path from
// first on, and the reference tokens that they save.
func (s *snapshot) keptReplacements(first int) (kept []session.Replaced, saved int64) {
	inPath := map[string]bool{}
	for i := first; i < len(s.Messages) && len(s.details.Replaced) > 0; i++ {
		inPath[s.Messages[i].ID.String()] = true
	}
	for _, r := range s.details.Replaced {
		if inPath[r.Messages[0]] && inPath[r.Messages[len(r.Messages)-1]] {
			kept, saved = append(kept, r), saved+r.Saves
		}
	}
	return kept, saved
}
