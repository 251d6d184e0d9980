package openclaw

import (
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// recognise names the entries as they are stored: those of version 1 are known by place and by
// what they say, since a later version gives them random ids when it opens the file.
func (r *reader) recognise() error {
	here := r.talk.Here
	if here == nil {
		return nil
	}
	if r.version == 1 && here.LastSeq > 0 && r.places > 0 {
		has, err := r.talk.Has(v1Key(0))
		if err != nil {
			return err
		}
		if r.older = !has && r.hasPlaces(); r.older {
			return nil
		}
	}
	hashes, err := pi.HashesByPlace(r.in, here.ID)
	if err != nil || len(hashes) == 0 {
		return err
	}
	for i := range r.next() {
		n := &r.nodes[i]
		before, ok := hashes[v1Key(max(n.place, 0))]
		if !ok || n.place < 0 {
			continue
		}
		o, err := r.reread(i)
		if err != nil {
			return err
		}
		switch says := pi.Fingerprint(o); {
		case before == says:
			n.key = v1Key(n.place)
		case r.version == 1:
			n.key = v1Key(n.place) + "#" + says[:12]
		}
	}
	return nil
}

// hasPlaces reports whether an entry is named by its place.
func (r *reader) hasPlaces() bool {
	for i := range r.nodes {
		if r.nodes[i].id == "" && r.nodes[i].place >= 0 {
			return true
		}
	}
	return false
}

// keepHead leaves the head of the session where it is, which a copy must not move.
func (r *reader) keepHead() error {
	here := r.talk.Here
	if here == nil || here.Head == nil {
		return nil
	}
	head, err := r.in.Known.Load(r.in.Context(), *here.Head)
	if session.CodeOf(err) == session.NotFound {
		return nil
	}
	if err == nil {
		r.talk.Head = head.ExternalID
	}
	return err
}
