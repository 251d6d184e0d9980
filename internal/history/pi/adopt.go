package pi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// recognise finds out which entries of a session that is here already are the file's.
//
// Entries with ids are known by them, in the store. Those of version 1 are known by place
// and by what they say: pi gives them random ids when it opens the file with a later version,
// and must not double them by that.
func (r *reader) recognise(continues bool) error {
	switch {
	case continues:
		if r.cursor.State != nil {
			if err := json.Unmarshal(r.cursor.State, &r.state); err != nil {
				return fmt.Errorf("the cursor of %s: %w", r.cursor.Path, err)
			}
		}
		r.alias()
		return r.recall()
	case r.existing == nil:
		return nil
	}
	r.records.Imported, r.records.Read = r.records.Imported-1, r.records.Read-1 // the header
	r.records.Skip(history.SkipKnown, 1)
	if r.version == 4 {
		return nil // never had another version
	}
	hashes, older, err := r.stored()
	switch {
	case err != nil:
		return err
	case older:
		for i := range r.next() {
			r.nodes.At(i).known = true
		}
		r.records.Skip(skipOlder, r.nodes.Len())
		r.older = true
		return nil
	case r.version == 1:
		return r.branch(hashes)
	}
	return r.match(hashes)
}

// stored gives the hashes of what was stored of version 1, by key. older is true when the
// file is of version 1 and what is here came from a later one.
func (r *reader) stored() (hashes map[string]string, older bool, err error) {
	hashes = map[string]string{}
	err = r.known.Entries(r.ctx, r.existing.ID, func(m *session.Message) bool {
		switch {
		case strings.HasPrefix(m.ExternalID, "broken:"), strings.Contains(m.ExternalID, "#"):
			return true
		case !strings.HasPrefix(m.ExternalID, "v1:"):
			older = r.version == 1 && len(hashes) == 0
			return false
		}
		var extra struct {
			Hash string `json:"hash"`
		}
		if json.Unmarshal(m.Extra, &extra) == nil {
			hashes[m.ExternalID] = extra.Hash
		}
		return true
	})
	return hashes, older, err
}

// places calls visit with the places of the entries, and what they say, in file order.
func (r *reader) places(visit func(place int, i int32, hash string) bool) error {
	place, prints := 0, history.Prints{}
	for i := range r.next() {
		n := r.nodes.At(i)
		if n.kind.aside() {
			continue
		}
		line, err := r.line(n)
		if err != nil {
			return err
		}
		o, _ := parse(line)
		if !visit(place, i, fingerprint(&prints, r.cuts, history.TalkOf(o), r.version)) {
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
	last := -1 // of the places; a fork has none of those that its origin has
	for key := range hashes {
		if place, err := strconv.Atoi(strings.TrimPrefix(key, "v1:")); err == nil {
			last = max(last, place)
		}
	}
	err := r.places(func(place int, _ int32, hash string) bool {
		if place > last {
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
		if n.kind.aside() {
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

// byPlace names an entry by its place.
func (s *scanned) byPlace(i int32, place int) {
	delete(s.keys, i)
	s.nodes.At(i).place = int32(place)
}

func v1Key(place int) string { return "v1:" + strconv.Itoa(place) }
