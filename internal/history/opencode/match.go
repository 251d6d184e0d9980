package opencode

import (
	"context"
	"encoding/json"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// stored are the messages of a session that are here, or of the line that a fork comes from.
type stored struct {
	hashes map[string]string   // by external id
	last   map[string]string   // the last of the messages that one became
	parts  map[string][]string // the parts of those that have them
	says   map[string][]place
	head   place
}

// place names a stored message.
type place struct {
	session session.ID
	key     string
}

// load reads what is stored of a session.
func (s *stored) load(ctx context.Context, known history.Known, of *session.Session) error {
	if s.hashes == nil {
		*s = stored{hashes: map[string]string{}, last: map[string]string{}, parts: map[string][]string{}, says: map[string][]place{}}
	}
	return known.Entries(ctx, of.ID, func(m *session.Message) bool {
		if m.ExternalID == "" {
			return true // it was said here
		}
		base, _, _ := strings.Cut(m.ExternalID, "#")
		s.last[base] = m.ExternalID
		if of.HeadID != nil && m.RowID == *of.HeadID {
			s.head = place{of.ID, m.ExternalID}
		}
		var extra struct {
			Hash  string   `json:"hash"`
			Parts []idOnly `json:"parts"`
		}
		if json.Unmarshal(m.Extra, &extra) != nil {
			return true
		}
		if extra.Hash != "" {
			s.hashes[m.ExternalID] = extra.Hash
			s.says[extra.Hash] = append(s.says[extra.Hash], place{of.ID, m.ExternalID})
		}
		for _, p := range extra.Parts {
			s.parts[base] = append(s.parts[base], p.ID)
		}
		for i := range m.Parts {
			var p idOnly
			if json.Unmarshal(m.Parts[i].Extra, &p) == nil && p.ID != "" {
				s.parts[base] = append(s.parts[base], p.ID)
			}
		}
		return true
	})
}

type idOnly struct {
	ID string `json:"id"`
}

// match names the records and finds those that are here. The same id with other content is
// another version of the message, and both are history; unless it comes from a store that is
// trusted less than the one that it came from.
func (s *stored) match(records []record, trusted bool) {
	seen := map[string]int{}
	for i := range records {
		r := &records[i]
		if r.within != "" {
			continue
		}
		r.key = strings.ReplaceAll(clean(r.id), "#", "_")
		if r.key == "" {
			r.key = "h:" + r.hash
		}
		if n := seen[r.key]; n > 0 {
			r.key += "~" + r.hash[:12]
		}
		seen[r.key]++
		hash, here := s.hashes[r.key]
		switch {
		case here && (hash == r.hash || !trusted):
			r.known = true
		case here:
			r.key += "~" + r.hash[:12]
			_, r.known = s.hashes[r.key]
		}
		if r.last = s.last[r.key]; r.last == "" {
			r.last = r.key
		}
	}
}

// missing gives the parts of a known record that are not here.
func (s *stored) missing(r *record) map[string]bool {
	here := map[string]bool{}
	for _, id := range s.parts[r.key] {
		here[id] = true
	}
	lost := map[string]bool{}
	for _, id := range r.parts {
		if id != "" && !here[id] {
			lost[id] = true
		}
	}
	return lost
}

// copied marks the records at the beginning that are copies of what is stored in the line of
// another session, and gives their number. Copies have other ids.
func (s *stored) copied(records []record) int {
	claimed := map[place]bool{}
	for i := range records {
		r := &records[i]
		found := false
		for _, at := range s.says[r.hash] {
			if !claimed[at] && !r.open {
				claimed[at], found = true, true
				r.key, r.within, r.known, r.last = at.key, at.session, true, s.last[at.key]
				break
			}
		}
		if !found {
			return i
		}
	}
	return len(records)
}

// uncopy takes back what copied marked.
func uncopy(records []record) {
	for i := range records {
		r := &records[i]
		r.key, r.within, r.known, r.last = "", "", false, ""
	}
}

// line reads a session with all that it was forked from.
func line(ctx context.Context, known history.Known, s *session.Session) (*stored, error) {
	all := &stored{}
	for range maxForks {
		if err := all.load(ctx, known, s); err != nil {
			return nil, err
		}
		if s.ParentKind != session.ParentFork || s.ParentID == "" {
			break
		}
		parent, err := known.SessionByID(ctx, s.ParentID)
		if err != nil || parent == nil {
			return all, err
		}
		s = parent
	}
	return all, nil
}

// maxForks ends a chain of forks.
const maxForks = 64
