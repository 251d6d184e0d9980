package openclaw

import (
	"encoding/json"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// recognise finds out which entries are here already: of the same session, read before from
// this file or another one, or of the session that this one was forked from.
//
// Entries with ids are known by them, in the store. Those of version 1 are known by place
// and by what they say: a later version gives them random ids when it opens the file.
func (r *reader) recognise() error {
	if r.continues {
		r.alias()
		r.recall()
		return nil
	}
	if r.existing != nil {
		if err := r.again(); err != nil || r.older {
			return err
		}
	}
	return r.share()
}

// again deals with a session of which something is here.
func (r *reader) again() error {
	reason := history.SkipKnown
	if r.backup {
		reason = skipBackup
	}
	if r.header != nil {
		r.records.Imported, r.records.Read = r.records.Imported-1, r.records.Read-1
		r.records.Skip(reason, 1)
	}
	keys, hashes := map[uint64]bool{}, map[string]string{}
	later := false
	err := r.known.Entries(r.ctx, r.existing.ID, func(m *session.Message) bool {
		keys[r.names.Sum(m.ExternalID)] = true
		r.isHead(m)
		switch {
		case strings.HasPrefix(m.ExternalID, "broken:"), strings.Contains(m.ExternalID, "#"):
		case !strings.HasPrefix(m.ExternalID, "v1:"):
			later = true
		default:
			var extra struct {
				Hash string `json:"hash"`
			}
			if json.Unmarshal(m.Extra, &extra) == nil {
				hashes[m.ExternalID] = extra.Hash
			}
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case r.version == 1 && later && len(hashes) == 0:
		r.records.Skip(skipOlder, r.fresh())
		r.older = true
		for i := range r.next() {
			r.nodes.At(i).known = true
		}
		return nil
	case r.version == 1:
		err = r.branch(hashes)
	case len(hashes) > 0:
		err = r.match(hashes)
	}
	if err != nil || !r.backup {
		return err
	}
	for i := range r.next() {
		if n := r.nodes.At(i); !n.known && keys[r.keySum(i)] {
			r.nodes.At(i).known = true
			r.records.Skip(skipBackup, 1)
		}
	}
	return nil
}

// isHead remembers the key of the session's head, which a copy must leave where it is.
func (r *reader) isHead(m *session.Message) {
	if r.existing.HeadID != nil && *r.existing.HeadID == m.RowID {
		r.head = m.ExternalID
	}
}

// keepHead gives the last batch of a copy the head that the session has.
func (r *reader) keepHead() error {
	if r.existing == nil || r.existing.Head == nil {
		return nil
	}
	if in := r.existing.Head.Session; r.head == "" && in != r.existing.ID { // of a fork
		if err := r.known.Entries(r.ctx, in, func(m *session.Message) bool { r.isHead(m); return r.head == "" }); err != nil {
			return err
		}
		r.batch.HeadSession = in
	}
	if r.head != "" {
		r.batch.Head = &r.head
	}
	return nil
}

// places calls visit with the places of the entries, and what they say, in file order.
func (r *reader) places(visit func(place int, i int32, hash string) bool) error {
	place := 0
	for i := range r.next() {
		n := r.nodes.At(i)
		if n.kind == entryBroken {
			continue
		}
		line, err := r.line(n)
		if err != nil {
			return err
		}
		o, _ := pi.Parse(line)
		if !visit(place, i, pi.Fingerprint(r.text.cuts, o)) {
			return nil
		}
		place++
	}
	return nil
}

// branch keeps an entry of version 1 whose place was taken by another one: the file was
// changed, and both are history.
func (r *reader) branch(hashes map[string]string) error {
	return r.places(func(_ int, i int32, hash string) bool {
		key := r.keyOf(i)
		if before, ok := hashes[key]; ok && before != hash {
			r.keys[i] = key + "#" + hash[:12]
		}
		return true
	})
}

// match recognises the entries of an upgraded file.
func (r *reader) match(hashes map[string]string) error {
	err := r.places(func(place int, _ int32, hash string) bool {
		if place == len(hashes) {
			return false
		}
		if hashes[v1Key(place)] != hash {
			r.state.Except = append(r.state.Except, place)
		}
		r.state.Adopted = place + 1
		return true
	})
	r.alias()
	return err
}

// alias names the adopted entries as they are stored.
func (r *reader) alias() {
	except := map[int]bool{}
	for _, place := range r.state.Except {
		except[place] = true
	}
	place, adopted := 0, 0
	for i := range r.next() {
		n := r.nodes.At(i)
		if n.kind == entryBroken {
			continue
		}
		if place == r.state.Adopted {
			break
		}
		if !except[place] {
			r.byPlace(i, place)
			if !n.known {
				n.known = true
				adopted++
			}
		}
		place++
	}
	r.records.Skip(history.SkipKnown, adopted)
}

// share finds the entries that the transcript has in common with the session that it was
// forked from: the same id, saying the same, with nothing of its own before it. They are not
// stored a second time.
func (r *reader) share() error {
	origin, kind := r.session.ParentID, r.session.ParentKind
	if r.existing != nil {
		origin, kind = r.existing.ParentID, r.existing.ParentKind
	}
	if origin == "" || kind != session.ParentFork {
		return nil
	}
	theirs, err := r.entriesOf(origin)
	if err != nil {
		return err
	}
	copied := 0
	for i := range r.next() {
		there, ok := theirs[r.keySum(i)]
		n := *r.nodes.At(i)
		if !ok || n.parent >= 0 && r.sharedIn(n.parent) == "" {
			continue
		}
		line, err := r.line(&n)
		if err != nil {
			return err
		}
		e := r.decode(i, line)
		if there.says != r.says(&e.message.Message) {
			continue
		}
		if at := r.nodes.At(i); !at.known {
			at.known = true
			copied++
		}
		r.mark(int(i), there.session)
	}
	r.records.Skip(skipCopy, copied)
	return nil
}

// theirs is an entry of another session.
type theirs struct {
	session session.ID
	says    uint64
}

// entriesOf gives what a session's path may hold: its own entries, and those of the sessions
// that it was forked from itself, by the sums of their keys.
func (r *reader) entriesOf(id session.ID) (map[uint64]theirs, error) {
	all, seen := map[uint64]theirs{}, map[session.ID]bool{id: true}
	for queue := []session.ID{id}; len(queue) > 0; queue = queue[1:] {
		err := r.known.Entries(r.ctx, queue[0], func(m *session.Message) bool {
			key := r.names.Sum(m.ExternalID)
			if _, ok := all[key]; !ok {
				all[key] = theirs{queue[0], r.says(m)}
			}
			if m.Parent != nil && !seen[m.Parent.Session] {
				seen[m.Parent.Session] = true
				queue = append(queue, m.Parent.Session)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// says tells what an entry says, within this run of the program.
func (r *reader) says(m *session.Message) uint64 { return r.text.cuts.Says(r.source.seed, m) }

// mark remembers that an entry lies in another session.
func (r *reader) mark(i int, in session.ID) {
	if last := len(r.state.Shared) - 1; last >= 0 && r.state.Shared[last].Session == in && r.state.Shared[last].To == i {
		r.state.Shared[last].To++
		return
	}
	r.state.Shared = append(r.state.Shared, shared{From: i, To: i + 1, Session: in})
}

// recall forgets what an earlier reading found to be shared, if there is no such entry.
func (r *reader) recall() {
	for i, run := range r.state.Shared {
		if run.To > r.nodes.Len() {
			r.state.Shared = r.state.Shared[:i]
			return
		}
	}
}

// sharedIn gives the session that an entry lies in if that is not the transcript's own, else "".
func (r *reader) sharedIn(i int32) session.ID {
	for _, run := range r.state.Shared {
		if int(i) >= run.From && int(i) < run.To {
			return run.Session
		}
	}
	return ""
}
