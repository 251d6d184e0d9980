package opencode

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// fork finds the session that this one is a copy of, as far as it goes. opencode keeps no
// link before version 2.
func (r *reader) fork() error {
	var candidates []*session.Session
	switch {
	case r.existing != nil && r.existing.ParentKind != session.ParentFork, r.about.parent != "":
		return nil
	case r.existing != nil:
		origin, err := r.known.SessionByID(r.ctx, r.existing.ParentID)
		if err != nil || origin == nil {
			return err
		}
		candidates = append(candidates, origin)
	case r.records.n >= history.LeastShared:
		var err error
		if candidates, err = r.candidates(); err != nil {
			return err
		}
	}
	origin, best, shared, err := history.Nearest(candidates,
		func(s *session.Session) (*stored, error) { return line(r.ctx, r.known, s) },
		func(all *stored) int {
			n := all.copied(r.records)
			r.records.uncopy(n)
			return n
		})
	if err != nil || origin == nil {
		return err
	}
	defer best.Close()
	r.origin, r.shared = origin, shared
	best.copied(r.records)
	last := r.records.last(r.shared - 1).session
	if last == r.origin.ID {
		return nil
	}
	if origin, err = r.known.SessionByID(r.ctx, last); origin != nil {
		r.origin = origin
	}
	return err
}

// candidates are the older sessions that this one may be a copy of: the one that version 2
// names, those that begin at the same moment, and the one that has its calls.
func (r *reader) candidates() (found []*session.Session, err error) {
	if r.about.forked != "" {
		origin, err := r.known.Session(r.ctx, session.SourceOpencode, r.about.forked)
		if err != nil || origin != nil {
			return []*session.Session{origin}, err
		}
	}
	if r.origins != nil {
		if found, err = r.origins(); err != nil {
			return nil, err
		}
	}
	for i := range r.records.n {
		if !r.records.at(i).called {
			continue
		}
		owner, err := r.known.CallOwner(r.ctx, session.SourceOpencode, r.records.record(i).call)
		if err != nil || owner == "" {
			return found, err
		}
		origin, err := r.known.SessionByID(r.ctx, owner)
		if err == nil && origin != nil && origin.CreatedAt.Before(r.about.created.Time) {
			found = append(found, origin)
		}
		return found, err
	}
	return found, nil
}
