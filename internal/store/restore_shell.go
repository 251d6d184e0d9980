package store

import "sessiond/internal/session"

// isShell tells whether the session was purged where the file was written.
func (r *restorer) isShell() bool { return r.batch.PurgedAt != nil }

// openShell finds what forks share of a purged session, or makes it: without a name, and seen by
// nobody but them. Where the session is here, whole or as a shell, its messages only have to be
// the file's.
func (r *restorer) openShell(want session.ID, sourceID string) error {
	here, err := readAncestor(r.ctx, r.tx, want)
	if session.CodeOf(err) == session.NotFound {
		return r.create(want, sourceID)
	}
	if err != nil {
		return err
	}
	if here.Source != r.batch.Session.Source {
		return session.Errorf(session.Conflict, "another session has the id %s here; --as-copy brings this one in under a new id", want)
	}
	r.now.id, r.now.mode = want, restoreVerify
	if here.Revision == 0 { // an import of it was broken off
		r.now.mode, r.now.changed = restoreForward, true
	}
	return nil
}
