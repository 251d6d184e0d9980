package pi

import (
	"cmp"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// A fork's file begins with copies of entries of its origin, with their ids: those of a path,
// or all of them. What the origin has stays there; the fork's own entries hang on it. Labels
// belong to a session and not to a message, so that the fork has its own; and overlays that its
// origin has not in force are given to it.

// link finds the session that this one was forked from. One that was here before its origin is
// linked when it is read again, and keeps the copies that it has.
func (r *reader) link() {
	origin := r.origin()
	if origin == nil {
		return
	}
	here := r.talk.Here
	forks := here == nil || here.ParentID == origin.ID && here.ParentKind == session.ParentFork
	r.talk.LinkTo(origin, session.ParentFork, nil)
	if forks {
		r.forked = true
		r.talk.Passes = isLabel
		r.talk.ForkedFrom(origin)
	}
}

// origin finds the session that this one was forked from: by the path that the header names,
// then by the id in its file name. It is nil when that one was not imported.
func (r *reader) origin() *session.Session {
	if r.talk.Here != nil && r.talk.Here.ParentID != "" {
		return r.In.SessionByID(r.talk.Here.ParentID)
	}
	own := r.Header.String("id")
	awaits := ""
	if id := r.Header.String("parentSessionId"); id != "" && id != own { // version 4
		if found := r.In.Session(id); found != nil {
			return found
		}
		awaits = id
	}
	path := cmp.Or(r.Header.String("parentSession"), r.Header.String("branchedFrom"),
		r.Header.String("legacyParentSessionPath"))
	if real, err := filepath.EvalSymlinks(path); err == nil && path != "" {
		if cursor := r.In.Cursor(real); cursor != nil && cursor.SessionID != "" {
			return r.In.SessionByID(cursor.SessionID)
		}
	}
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if _, id, ok := strings.Cut(strings.TrimSuffix(name, ".jsonl"), "_"); ok && id != own {
		if found := r.In.Session(id); found != nil {
			return found
		}
		awaits = id
	}
	if r.In.Await(awaits); path != "" {
		r.In.NeedsOrigin()
	}
	return nil
}

func isLabel(m *session.Message) bool {
	if m.Kind != session.KindMarker {
		return false
	}
	extra, _ := jsonx.ReadObject(m.Extra)
	return extra.Inner("line").String("type") == lineLabel
}

// copied is what a fork keeps of the entries that it shares.
type copied struct {
	n        int
	inherits session.Time         // when the newest overlay took effect that it shares
	aside    []history.Compaction // of branches that the file does not show now
	heads    map[session.ID]map[int64]bool
}

// copy is called for each entry that lies in an origin.
func (r *reader) copy(i int32, of history.Place, d *history.Decoded) {
	r.copies.n++
	for _, c := range d.Compactions {
		c.Record = history.Place{Key: of.Key, Session: of.Session}
		switch {
		case !r.Nodes[i].onPath:
			r.copies.aside = append(r.copies.aside, c)
		case r.left(of):
			r.talk.Compact(c)
		case c.CreatedAt.After(r.copies.inherits.Time):
			r.copies.inherits = c.CreatedAt
		}
	}
	if made, ok := r.made(); ok {
		r.talk.New.CreatedAt = &made
	}
	r.talk.New.Inherits = new(r.copies.inherits)
	if r.talk.Here != nil && !r.copies.inherits.IsZero() { // it came in before its file had this overlay of its origin
		r.talk.Change().Inherits = r.talk.New.Inherits
	}
}

// shareAside adds to the fork the overlays of branches that it may turn to.
func (r *reader) shareAside() {
	for _, c := range r.copies.aside {
		if c.CreatedAt.After(r.copies.inherits.Time) {
			r.talk.Compact(c)
		}
	}
}

// left reports whether the session of a message went on elsewhere: its head does not follow it.
func (r *reader) left(of history.Place) bool {
	ref := r.In.Message(of.Session, of.Key)
	if ref == nil {
		return false
	}
	onPath, ok := r.copies.heads[of.Session]
	if !ok {
		parents := map[int64]int64{}
		r.In.Entries(of.Session, func(m *session.Message) bool {
			if m.Parent != nil && m.Parent.Session == of.Session {
				parents[m.Seq] = m.Parent.Seq
			}
			return true
		})
		onPath = map[int64]bool{}
		if s := r.In.SessionByID(of.Session); s != nil && s.Head != nil && s.Head.Session == s.ID {
			for at := s.Head.Seq; at > 0 && !onPath[at]; at = parents[at] {
				onPath[at] = true
			}
		}
		r.copies.heads[of.Session] = onPath
	}
	return !onPath[ref.Seq]
}
