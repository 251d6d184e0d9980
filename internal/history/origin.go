package history

import (
	"iter"

	"sessiond/internal/session"
)

// MaxForks ends a chain of sessions that come from one another and has no end.
const MaxForks = 100

// LeastShared is how many equal messages make a fork where the program keeps no link: one
// alone may be a coincidence.
const LeastShared = 2

// Line yields a session and those that it was forked from, the nearest first.
func (in *Intake) Line(s *session.Session) iter.Seq[*session.Session] {
	return func(yield func(*session.Session) bool) {
		for n := 0; s != nil && n < MaxForks && yield(s) && s.ParentKind == session.ParentFork && s.ParentID != ""; n++ {
			s = in.SessionByID(s.ParentID)
		}
	}
}

// ComesFrom reports whether a session is another one that is here, or was forked from it or
// started by it, over others, too: a link from that one to the session would close a circle. So would one
// to a chain that has no end.
func (in *Intake) ComesFrom(s, origin *session.Session) bool {
	for range MaxForks {
		switch {
		case origin == nil || s == nil:
			return false
		case s.ID == origin.ID:
			return true
		case s.ParentID == "":
			return false
		}
		s = in.SessionByID(s.ParentID)
	}
	return true
}
