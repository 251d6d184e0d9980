package goose

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// stored are the messages of a session that are here, or of the line that a fork comes from.
type stored struct {
	hashes map[string]string // by external id
	says   map[string][]place
}

// place names a stored message.
type place struct {
	session session.ID
	key     string
}

// load reads what is stored of a session.
func (s *stored) load(ctx context.Context, known history.Known, id session.ID) error {
	if s.hashes == nil {
		s.hashes, s.says = map[string]string{}, map[string][]place{}
	}
	return known.Entries(ctx, id, func(m *session.Message) bool {
		var extra struct {
			Hash string `json:"hash"`
		}
		if m.ExternalID == "" || json.Unmarshal(m.Extra, &extra) != nil || extra.Hash == "" {
			return true // it was said here
		}
		s.hashes[m.ExternalID] = extra.Hash
		s.says[extra.Hash] = append(s.says[extra.Hash], place{id, m.ExternalID})
		return true
	})
}

// match names the records and finds those that are here.
//
// A message is known by Goose's id of it and, since the rows of a streamed reply share that,
// by how often it came before; one without an id, or with one that a migration gave it, by
// what it says. The same id with other content is another version of the message: both are
// history.
func (s *stored) match(records []record, generated string) {
	occurrence, claimed := map[string]int{}, map[string]bool{}
	for i := range records {
		r := &records[i]
		if r.within != "" {
			continue
		}
		name := r.messageID
		if name == "" {
			name = "h:" + r.hash
		}
		r.key = fmt.Sprintf("%s#%d", name, occurrence[name])
		occurrence[name]++
		hash, here := s.hashes[r.key]
		switch {
		case here && hash == r.hash:
			r.known = true
		case s.alias(r, name, generated, claimed):
		case here:
			r.key += "~" + r.hash[:12]
			_, r.known = s.hashes[r.key]
		}
		claimed[r.key] = true
	}
}

// alias finds a record that is stored under another name.
func (s *stored) alias(r *record, name, generated string, claimed map[string]bool) bool {
	nameless := r.messageID == "" || strings.HasPrefix(r.messageID, generated)
	for _, at := range s.says[r.hash] {
		if claimed[at.key] || !nameless && !strings.HasPrefix(at.key, name+"#") && !strings.HasPrefix(at.key, "h:") {
			continue
		}
		r.key, r.known = at.key, true
		return true
	}
	return false
}

// copied marks the records at the beginning that are copies of what is stored in the line of
// another session, and gives their number.
func (s *stored) copied(records []record) int {
	claimed := map[place]bool{}
	for i := range records {
		r := &records[i]
		found := false
		for _, at := range s.says[r.hash] {
			if !claimed[at] && (r.messageID == "" || strings.HasPrefix(at.key, r.messageID+"#") || strings.HasPrefix(at.key, "msg_") || strings.HasPrefix(at.key, "h:")) {
				claimed[at], found = true, true
				r.key, r.within, r.known = at.key, at.session, true
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
		records[i].key, records[i].within, records[i].known = "", "", false
	}
}

// line reads a session with all that it was forked from.
func line(ctx context.Context, known history.Known, s *session.Session) (*stored, error) {
	all := &stored{}
	for range maxForks {
		if err := all.load(ctx, known, s.ID); err != nil {
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
