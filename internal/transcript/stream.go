package transcript

import "sessiond/internal/session"

// Stream makes the items of a session from its messages in display order: a path oldest first, or all
// messages by seq. It yields each item once its calls are answered, with results folded into their
// calls. A call that waits longer than a limit is yielded as Far, and its result stands where it comes.
// Each compaction that took effect stands where it cut, even if it was undone; those that failed, were
// skipped or are staged are left out.
type Stream struct {
	builder
	yield func(*Item) error
	held  int // bytes of the items, about
	most  streamLimits
}

type streamLimits struct{ items, bytes int }

// defaultLimits limits what waits for the results of calls.
func defaultLimits() streamLimits { return streamLimits{items: 500, bytes: 8 << 20} }

// NewStream returns a stream. yield owns the items and gets them in order.
func NewStream(sess session.Session, compactions []session.Compaction, yield func(*Item) error) *Stream {
	return &Stream{builder: *newBuilder(sess, compactions), yield: yield, most: defaultLimits()}
}

// GoesOn says that the stream begins in the middle, with a message that continues the one before it.
func (s *Stream) GoesOn(m *session.Message) {
	s.begun, s.previous = true, session.Message{SessionID: m.SessionID}
	if m.ParentID != nil {
		s.previous.RowID = *m.ParentID
	}
}

// Message adds the next message.
func (s *Stream) Message(m *session.Message) error {
	s.next(m)
	for i := range m.Parts {
		s.held += sizeOf(&m.Parts[i])
	}
	return s.give(false)
}

// Close yields the waiting items.
func (s *Stream) Close() error {
	s.end()
	return s.give(true)
}

func (s *Stream) give(all bool) error {
	for len(s.items) > 0 {
		item := s.items[0]
		if waits := s.waiting(item); len(waits) > 0 && !all {
			if len(s.items) <= s.most.items && s.held <= s.most.bytes {
				return nil
			}
			for _, use := range waits {
				use.Far = true
				s.stopWaiting(use)
			}
		}
		s.items[0] = nil
		if s.items = s.items[1:]; len(s.items) == 0 {
			s.items, s.held = nil, 0
		}
		s.held = max(0, s.held-item.size())
		if err := s.yield(item); err != nil {
			return err
		}
	}
	return nil
}

// waiting returns the calls of an item that may still be answered.
func (s *Stream) waiting(item *Item) []*ToolUse {
	var found []*ToolUse
	for i := range item.Blocks {
		if use := item.Blocks[i].Tool; use != nil && !use.Answered() && !use.Orphan && (use.row != 0 || use.id != "") {
			found = append(found, use)
		}
	}
	return found
}

func sizeOf(p *session.Part) int {
	n := len(p.Text) + len(p.Arguments) + len(p.Extra)
	if p.Blob != nil {
		n += len(p.Blob.Data)
	}
	return n
}

func (item *Item) size() int {
	n := 0
	for i := range item.Blocks {
		b := &item.Blocks[i]
		n += len(b.Text)
		if b.Tool != nil {
			n += len(b.Tool.Arguments) + len(b.Tool.Result)
		}
		if b.Attachment != nil {
			n += len(b.Attachment.Data)
		}
	}
	return n
}
