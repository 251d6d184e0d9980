package contextmgr

import (
	"context"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// maxLeading bounds the search for system messages at the root, in messages: markers of a model
// or a title may stand between them.
const maxLeading = 64

// readLeadingSystem returns the system messages that the path begins with, and removes them from
// the snapshot's messages. If an overlay hides them, it reads them at the root.
func (m *Manager) readLeadingSystem(ctx context.Context, s *snapshot) ([]session.Message, error) {
	var leading []session.Message
	if len(s.Messages) > 0 && s.Messages[0].ParentID == nil {
		for i := range s.Messages {
			switch m := &s.Messages[i]; {
			case !m.InContext:
			case m.Role == session.System:
				leading = append(leading, *m)
			default:
				s.Messages = s.Messages[i:]
				return leading, nil
			}
		}
		s.Messages = nil
		return leading, nil
	}
	if s.sess.HeadID == nil || s.Overlay == nil && !s.truncated {
		return nil, nil
	}
	last := *s.sess.HeadID
	if len(s.Messages) > 0 {
		last = *s.Messages[0].ParentID
	}
	return m.readRoot(ctx, last)
}

// readRoot returns the system messages that the path to a row begins with.
func (m *Manager) readRoot(ctx context.Context, rowID int64) (leading []session.Message, err error) {
	first, last, err := m.store.Root(ctx, rowID)
	if err != nil {
		return nil, err
	}
	for at := first; at.Seq <= min(last.Seq, first.Seq+maxLeading); at.Seq++ {
		msg, err := m.store.Message(ctx, at)
		if err != nil {
			return nil, err
		}
		if msg.InContext && msg.Role != session.System {
			break
		}
		if msg.InContext {
			leading = append(leading, msg)
		}
	}
	return leading, nil
}

// buildSystem joins the system text: messages at the beginning of the path, later ones that the
// overlay hides, then the caller's. An overlay that knows the whole text of its time replaces
// every system message up to then.
func (s *snapshot) buildSystem() {
	var texts []string
	hidden := s.hiddenSystem()
	if !hidden.Whole {
		for i := range s.leading {
			texts = append(texts, s.leading[i].Text())
		}
	}
	s.System = joinSystem(append(texts, hidden.Texts...), s.ownSystem)
	if hidden.Whole && s.Overlay.Trigger == session.TriggerImport {
		s.Messages = slices.DeleteFunc(slices.Clone(s.Messages), func(m session.Message) bool {
			return m.Role == session.System && !m.CreatedAt.After(s.Overlay.CreatedAt.Time)
		})
	}
}

// hiddenSystem returns the system texts that the overlay hides.
func (s *snapshot) hiddenSystem() session.HiddenSystem {
	if s.details.System == nil {
		return session.HiddenSystem{}
	}
	return *s.details.System
}

// systemShare is the part of the threshold that hidden system messages may fill, since a program
// may write one in each turn.
const systemShare = 20

// hiddenSystemBefore returns the system texts that an overlay which keeps the path from first on
// must record: no summary holds them. If they are too many, the newest stay.
func (s *snapshot) hiddenSystemBefore(first int) *session.HiddenSystem {
	out := s.hiddenSystem()
	out.Texts = slices.Clone(out.Texts)
	for i := range s.Messages[:first] {
		// A program's reminders in the system's role are renewed by it, and stand for their moment.
		if m := &s.Messages[i]; m.InContext && m.Role == session.System && m.Kind != session.KindCustomMessage {
			out.Texts = append(out.Texts, m.Text())
		}
	}
	oldest := 0
	if out.Whole {
		oldest = 1 // the first text always stays
	}
	var sum int64
	for i, text := range slices.Backward(out.Texts) {
		if i < oldest {
			break
		}
		if sum += s.scales.Text(text); sum > s.numbers.Threshold/systemShare {
			out.Texts = slices.Delete(out.Texts, oldest, i+1)
			break
		}
	}
	if len(out.Texts) == 0 {
		return nil
	}
	return &out
}

// joinSystem puts stored system texts before the caller's, each once.
func joinSystem(stored []string, own string) string {
	var all []string
	for _, text := range append(stored, own) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			all = append(slices.DeleteFunc(all, func(s string) bool { return s == text }), text)
		}
	}
	return strings.Join(all, "\n\n")
}
