package claudecode

import (
	"slices"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// origin finds the sessions whose rows the file repeats, by the responses that they own: a
// resumed or forked session of older versions begins with copies, under their own names.
func (r *reader) origin() error {
	if isAgentFile(r.path) {
		return nil
	}
	misses := 0
	for _, id := range r.replies {
		owner, err := r.known.CallOwner(r.ctx, session.SourceClaudeCode, "claude-code:"+id)
		if err != nil {
			return err
		}
		switch {
		case owner == "" || r.existing != nil && owner == r.existing.ID:
			if misses++; misses > 3 {
				return nil
			}
		case !slices.Contains(r.state.Owners, owner):
			r.state.Owners = append(r.state.Owners, owner)
			r.state.Copying = true
		}
	}
	return nil
}

// copiedAfter is how much older a row is than its file, at least, that was not written when it
// was made, but copied.
const copiedAfter = 2 * time.Second

// unclear tells whether the file may be the beginning of a copy: its rows are older than itself, and
// there is no response among them yet, by which its origin would be known. What a person
// just typed in a new session is not: its row is as old as the file.
func (r *reader) unclear() bool {
	return !r.quiet && !isAgentFile(r.path) && r.existing == nil && len(r.replies) == 0 && !r.last.IsZero() && r.info.ModTime().Sub(r.last.Time) > copiedAfter
}

// wait leaves the file for the next look, though it may not change until then.
func (r *reader) wait() error {
	r.cursor.Size = -1
	var told history.Records
	told.Wait(r.lines)
	return r.emit(history.Batch{ImportBatch: store.ImportBatch{Cursor: &r.cursor}, Records: told})
}

// original finds the message that a row repeats, in the sessions that the file begins with.
func (r *reader) original(uuid string) (place, bool, error) {
	for _, owner := range slices.Backward(r.state.Owners) {
		at, err := r.known.Message(r.ctx, owner, uuid)
		if err != nil {
			return place{}, false, err
		}
		if at != nil {
			return place{Key: uuid, Session: owner}, true, nil
		}
	}
	return place{}, false, nil
}

// repeated skips a row that another session holds, and remembers it as a parent. A fork of
// newer versions has names of its own and says which row it repeats.
func (r *reader) repeated(st *stream, w *row) (done bool, err error) {
	if w.kind == typeAssistant || w.kind == typeProgress {
		return false, nil // known by a reply's last row; links
	}
	at, ok, err := r.copyOf(w)
	if !ok || err != nil {
		return false, err
	}
	put(&st.Alias, w.uuid, at)
	st.Tip = at
	r.records.Skip(skipInherited, 1)
	return true, nil
}

func (r *reader) repeatedReply(st *stream, open *reply) (done bool, err error) {
	last := open.rows[len(open.rows)-1]
	at, ok, err := r.copyOf(last)
	if !ok || err != nil {
		return false, err
	}
	for _, w := range open.rows {
		put(&st.Alias, w.uuid, at)
	}
	st.Tip = at
	r.records.Skip(skipInherited, len(open.rows))
	return true, nil
}

// copyOf finds the message that a row is a copy of.
func (r *reader) copyOf(w *row) (place, bool, error) {
	if from, ok := history.Fields(w.Get("forkedFrom")); ok {
		id := plain(from.String("sessionId"))
		if id == "" || id == r.trunk {
			return place{}, false, nil
		}
		origin, err := r.known.Session(r.ctx, session.SourceClaudeCode, id)
		if err != nil || origin == nil {
			return place{}, false, err
		}
		uuid := plain(from.String("messageUuid"))
		found, err := r.known.Message(r.ctx, origin.ID, uuid)
		if err != nil || found == nil {
			return place{}, false, err
		}
		if !slices.Contains(r.state.Owners, origin.ID) {
			r.state.Owners = append(r.state.Owners, origin.ID)
		}
		return place{Key: uuid, Session: origin.ID}, true, nil
	}
	if !r.state.Copying {
		return place{}, false, nil
	}
	return r.original(w.uuid)
}
