package opencode

import "sessiond/internal/session"

// leastShared is how many equal messages make a fork: one alone may be a coincidence.
const leastShared = 2

// fork finds the session that this one is a copy of, as far as it goes. opencode keeps no
// link.
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
	case r.records.n >= leastShared:
		var err error
		if candidates, err = r.candidates(); err != nil {
			return err
		}
	}
	var best *stored
	defer func() {
		if best != nil {
			best.close()
		}
	}()
	for _, candidate := range candidates {
		all, err := line(r.ctx, r.known, candidate)
		if err != nil {
			all.close()
			return err
		}
		n := all.copied(r.records)
		r.records.uncopy(n)
		if n > r.shared && n >= leastShared {
			all, best = best, all
			r.shared, r.origin = n, candidate
		}
		if all != nil {
			all.close()
		}
	}
	if best == nil {
		return nil
	}
	best.copied(r.records)
	last := r.records.last(r.shared - 1).session
	if last == r.origin.ID {
		return nil
	}
	origin, err := r.known.SessionByID(r.ctx, last)
	if err == nil && origin != nil {
		r.origin = origin
	}
	return err
}

// candidates are the older sessions that this one may be a copy of: those that begin at the
// same moment, and the one that has its calls.
func (r *reader) candidates() (found []*session.Session, err error) {
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
