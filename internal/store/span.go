package store

import "sessiond/internal/session"

// Ranges are those of a path, oldest first. Messages on it have positions, counted from 1.
type Ranges []Span

// Len returns the number of messages.
func (sp Span) Len() int64 { return sp.To - sp.From + 1 }

// Len returns the number of messages.
func (r Ranges) Len() (n int64) {
	for _, sp := range r {
		n += sp.Len()
	}
	return n
}

// Own returns the number of messages that are a session's own.
func (r Ranges) Own(id session.ID) (n int64) {
	for _, sp := range r {
		if sp.Session == id {
			n += sp.Len()
		}
	}
	return n
}

// Position returns the position of a message, 0 if it is not on the path.
func (r Ranges) Position(ref session.MessageRef) int64 {
	var before int64
	for _, sp := range r {
		if sp.holds(ref) {
			return before + ref.Seq - sp.From + 1
		}
		before += sp.Len()
	}
	return 0
}

// Between returns the ranges of the positions from first to last.
func (r Ranges) Between(first, last int64) (cut Ranges) {
	var before int64
	for _, sp := range r {
		if from, to := max(first-before, 1), min(last-before, sp.Len()); from <= to {
			cut = append(cut, Span{Session: sp.Session, From: sp.From + from - 1, To: sp.From + to - 1})
		}
		before += sp.Len()
	}
	return cut
}
