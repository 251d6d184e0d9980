package transcript

import "sessiond/internal/session"

// Stream makes the items of a session from its messages in display order: a path oldest first, or all
// messages by seq. It yields each item once its calls are answered, with results folded into their
// calls. A call that waits longer than a limit is yielded as Far, and its result stands where it comes.
// Each compaction that took effect stands where it cut, even if it was undone; those that failed, were
// skipped or are staged are left out.
type Stream struct {
	yield    func(*Item) error
	items    []*Item
	held     int // bytes of the messages since the first item began to wait
	shown    session.ID
	begun    bool
	previous session.Message                // without its content
	calls    map[int64]*ToolUse             // without a result, by row id of the call's part
	byID     map[string][]*ToolUse          // the same by the wire's id
	cuts     map[int64][]session.Compaction // by row id of the last message represented
	clears   []session.Compaction           // that name no message, oldest first
}

// Limits of what waits for the results of calls.
const (
	mostHeld      = 500 // items
	mostHeldBytes = 8 << 20
)

// NewStream returns a stream. yield owns the items and gets them in order.
func NewStream(sess session.Session, compactions []session.Compaction, yield func(*Item) error) *Stream {
	s := &Stream{
		yield: yield, shown: sess.ID, calls: map[int64]*ToolUse{}, byID: map[string][]*ToolUse{},
		cuts: map[int64][]session.Compaction{},
	}
	for _, c := range compactions {
		switch {
		case c.Status != session.StatusDone:
		// it is no part of that program's talk
		case c.Undone && c.Trigger != session.TriggerImport && sess.Source != session.SourceSessiond:
		case c.ThroughID != nil:
			s.cuts[*c.ThroughID] = append(s.cuts[*c.ThroughID], c)
		default:
			s.clears = append(s.clears, c)
		}
	}
	return s
}

// GoesOn says that the stream begins in the middle, with a message that continues the one before it.
func (s *Stream) GoesOn(m *session.Message) {
	s.begun, s.previous = true, session.Message{SessionID: m.SessionID}
	if m.ParentID != nil {
		s.previous.RowID = *m.ParentID
	}
}

// Message adds the next message. The stream owns nothing that it points to.
func (s *Stream) Message(m *session.Message) error {
	for len(s.clears) > 0 && s.clears[0].CreatedAt.Before(m.CreatedAt.Time) {
		s.compaction(s.clears[0])
		s.clears = s.clears[1:]
	}
	s.branch(m)
	s.message(m)
	for _, c := range s.cuts[m.RowID] {
		s.compaction(c)
	}
	s.begun, s.previous = true, session.Message{RowID: m.RowID, SessionID: m.SessionID}
	for i := range m.Parts {
		p := &m.Parts[i]
		s.held += len(p.Text) + len(p.Arguments) + len(p.Extra)
		if p.Blob != nil {
			s.held += len(p.Blob.Data)
		}
	}
	return s.give(false)
}

// Close yields the waiting items.
func (s *Stream) Close() error {
	for _, c := range s.clears {
		s.compaction(c)
	}
	s.clears = nil
	return s.give(true)
}

func (s *Stream) give(all bool) error {
	for len(s.items) > 0 {
		item := s.items[0]
		if waits := waiting(item); len(waits) > 0 && !all {
			if len(s.items) <= mostHeld && s.held <= mostHeldBytes {
				return nil
			}
			for _, use := range waits {
				use.Far = true
				s.stopWaiting(use)
			}
			s.held = 0
		}
		s.items[0] = nil
		s.items = s.items[1:]
		if err := s.yield(item); err != nil {
			return err
		}
	}
	s.items, s.held = nil, 0
	return nil
}

// waiting returns the calls of an item that may still be answered.
func waiting(item *Item) (found []*ToolUse) {
	for i := range item.Blocks {
		if use := item.Blocks[i].Tool; use != nil && !use.Answered() && !use.Orphan && (use.row != 0 || use.id != "") {
			found = append(found, use)
		}
	}
	return found
}
