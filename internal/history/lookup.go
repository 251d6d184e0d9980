package history

import (
	"context"
	"iter"

	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Session returns the session that has an id in this program, nil if there is none.
func (in *Intake) Session(sourceID string) *session.Session {
	return lookUp(in, func() (*session.Session, error) {
		return orNone(in.Known.SessionBySource(in.ctx, in.source, sourceID))
	})
}

// SessionByID returns a session by its own id, nil if there is none.
func (in *Intake) SessionByID(id session.ID) *session.Session {
	return lookUp(in, func() (*session.Session, error) { return orNone(in.Known.Session(in.ctx, id)) })
}

// Message returns the name of the message of a session that has this external id, nil if there is none.
//
// It ignores the end of the context: the driver starts a goroutine for each query that can be
// interrupted, and a reader asks this for each record of a fork.
func (in *Intake) Message(id session.ID, key string) *session.MessageRef {
	return lookUp(in, func() (*session.MessageRef, error) {
		return in.Known.MessageByKey(context.WithoutCancel(in.ctx), id, key)
	})
}

// Untitled returns the sessions of this program in a directory's project that the program has not named yet.
func (in *Intake) Untitled(directory string) []session.ID {
	found := lookUp(in, func() (*[]session.ID, error) {
		ids, err := in.Known.Untitled(in.ctx, in.source, folders.Project(directory))
		return &ids, err
	})
	if found == nil {
		return nil
	}
	return *found
}

// CallOwner returns the session that owns the call with this external id, nil if none does.
func (in *Intake) CallOwner(key string) *session.Session {
	return lookUp(in, func() (*session.Session, error) {
		id, err := in.Known.SessionOfCall(context.WithoutCancel(in.ctx), in.source, key)
		if err != nil || id == "" {
			return nil, err
		}
		return orNone(in.Known.Session(in.ctx, id))
	})
}

// Load reads a message; nil if that fails.
func (in *Intake) Load(ref session.MessageRef) *session.Message {
	return lookUp(in, func() (*session.Message, error) {
		m, err := in.Known.Message(in.ctx, ref)
		return &m, err
	})
}

// Cursor returns how far a path was read, nil if never.
func (in *Intake) Cursor(path string) *Cursor {
	return lookUp(in, func() (*Cursor, error) {
		c, err := in.Known.ImportCursor(in.ctx, in.source, path)
		return cursorOf(c), err
	})
}

// Entries yields the messages of a session in order of seq.
func (in *Intake) Entries(id session.ID, yield func(*session.Message) bool) {
	page := store.MessagePage{Limit: 200, All: true}
	for more := true; more && in.err == nil; {
		messages, rest, err := in.Known.Messages(in.ctx, id, page)
		in.Fail(err)
		for i := range messages {
			if !yield(&messages[i]) {
				return
			}
			page.After = messages[i].Seq
		}
		more = rest && len(messages) > 0
	}
}

// Calls visits the calls of a session that is stored.
func (in *Intake) Calls(id session.ID, visit func(*session.Call)) {
	for page := (store.Page{Limit: 500}); in.err == nil; {
		calls, next, err := in.Known.Calls(in.ctx, id, page)
		in.Fail(err)
		for i := range calls {
			visit(&calls[i])
		}
		if page.Cursor = next; next == "" {
			return
		}
	}
}

// lookUp asks the store, nil where the reading has failed.
func lookUp[T any](in *Intake, ask func() (*T, error)) *T {
	if in.err != nil {
		return nil
	}
	found, err := ask()
	if in.Fail(err); err != nil {
		return nil
	}
	return found
}

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
