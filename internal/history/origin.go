package history

import (
	"context"

	"sessiond/internal/session"
)

// MaxForks ends a chain of sessions that come from one another and has no end.
const MaxForks = 100

// LeastShared is how many equal messages make a fork where the program keeps no link: one
// alone may be a coincidence.
const LeastShared = 2

// Line visits a session and those that it was forked from, the nearest first.
func Line(ctx context.Context, known Known, s *session.Session, visit func(*session.Session) error) error {
	for range MaxForks {
		if err := visit(s); err != nil {
			return err
		}
		if s.ParentKind != session.ParentFork || s.ParentID == "" {
			return nil
		}
		parent, err := known.SessionByID(ctx, s.ParentID)
		if err != nil || parent == nil {
			return err
		}
		s = parent
	}
	return nil
}

// ComesFrom reports whether a session is another one that is here, or was forked from it or
// started by it, over others, too: a link from that one to the session would close a circle. So would one
// to a chain that has no end.
func ComesFrom(ctx context.Context, known Known, s, origin *session.Session) (bool, error) {
	for range MaxForks {
		switch {
		case origin != nil && s.ID == origin.ID:
			return true, nil
		case origin == nil || s.ParentID == "":
			return false, nil
		}
		parent, err := known.SessionByID(ctx, s.ParentID)
		if err != nil || parent == nil {
			return false, err
		}
		s = parent
	}
	return true, nil
}
