package goose

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// stored are the messages of a session that are here, or of the line that a fork comes from.
type stored struct {
	table    history.Table[held]
	texts    history.Texts
	keys     *history.Names // by external id
	says     *history.Names // by hash: the first one that nothing is the same as yet
	sessions []session.ID
}

// held is a message that is here.
type held struct {
	key     history.TextAt
	hash    [16]byte
	session int32
	next    int32 // the next one that says the same, -1: none
	claimed bool  // a record is this message
}

// place names a stored message.
type place struct {
	session session.ID
	key     string
}

func newStored() *stored {
	s := &stored{}
	s.keys = history.NewNames(func(i int32) uint64 { return s.keys.Sum(s.texts.Get(s.table.At(i).key)) })
	return s
}

// Close gives back what it took.
func (s *stored) Close() {
	s.table.Close()
	s.texts.Close()
	s.keys.Close()
	if s.says != nil {
		s.says.Close()
	}
}

// load reads what is stored of a session.
func (s *stored) load(ctx context.Context, known history.Known, id session.ID) error {
	s.sessions = append(s.sessions, id)
	return known.Entries(ctx, id, func(m *session.Message) bool {
		var extra struct {
			Hash string `json:"hash"`
		}
		e := held{session: int32(len(s.sessions) - 1)}
		if m.ExternalID == "" || json.Unmarshal(m.Extra, &extra) != nil || len(extra.Hash) != hex.EncodedLen(len(e.hash)) {
			return true // it was said here
		}
		if _, err := hex.Decode(e.hash[:], []byte(extra.Hash)); err != nil {
			return true
		}
		e.key = s.texts.Put(m.ExternalID)
		s.keys.Set(s.keys.Sum(m.ExternalID), int32(s.table.Len()))
		s.table.Append(e)
		return true
	})
}

// index makes ready to find messages by what they say. None is claimed then.
func (s *stored) index() {
	if s.says != nil {
		s.says.Close()
	}
	s.says = history.NewNames(func(i int32) uint64 { return s.sum(s.table.At(i).hash) })
	for i := s.table.Len() - 1; i >= 0; i-- {
		e := s.table.At(int32(i))
		sum := s.sum(e.hash)
		next, more := s.says.Get(sum)
		if !more {
			next = -1
		}
		e = s.table.At(int32(i))
		e.next, e.claimed = next, false
		s.says.Set(sum, int32(i))
	}
}

func (s *stored) sum(hash [16]byte) uint64 { return s.says.Sum(string(hash[:])) }

// alike gives the first message that says something, of those that may not be claimed yet.
func (s *stored) alike(hash [16]byte) (i int32, ok bool) {
	if s.table.Len() == 0 {
		return -1, false
	}
	sum := s.sum(hash)
	begin, ok := s.says.Get(sum)
	if !ok {
		return -1, false
	}
	for i = begin; ; {
		e := s.table.At(i)
		if !e.claimed || e.next < 0 {
			break
		}
		i = e.next
	}
	if i != begin { // they are not gone through again
		s.says.Set(sum, i)
	}
	return i, true
}

// find claims the first message that says what a record does and may be it by its name.
func (s *stored) find(r *brief, may func(key string) bool) (place, bool) {
	for i, ok := s.alike(r.hash); ok && i >= 0; {
		e := *s.table.At(i)
		if !e.claimed {
			if key := s.texts.Get(e.key); may(key) {
				s.table.At(i).claimed = true
				return place{s.sessions[e.session], key}, true
			}
		}
		i = e.next
	}
	return place{}, false
}

// here gives the message that has a key.
func (s *stored) here(key string) (*held, bool) {
	i, ok := s.keys.Get(s.keys.Sum(key))
	if !ok {
		return nil, false
	}
	return s.table.At(i), true
}

// match names the records and finds those that are here.
//
// A message is known by Goose's id of it and, since the rows of a streamed reply share that,
// by how often it came before; one without an id, or with one that a migration gave it, by
// what it says. The same id with other content is another version of the message: both are
// history.
func (s *stored) match(l *records, generated string) {
	s.index()
	for i := range l.len() {
		r := l.at(i)
		if r.within != 0 {
			continue
		}
		name := l.name(r)
		sum := l.names.Sum(name)
		if earlier, again := l.names.Get(sum); again {
			r.occurrence = l.at(int(earlier)).occurrence + 1
		}
		l.names.Set(sum, int32(i))
		if s.table.Len() > 0 {
			s.identify(l, l.at(i), name, generated)
		}
	}
}

// identify finds the stored message that a record is.
func (s *stored) identify(l *records, r *brief, name, generated string) {
	nameless := r.name == 0 || strings.HasPrefix(name, generated)
	key := l.key(r)
	e, here := s.here(key)
	if here && e.hash == r.hash {
		r.known, e.claimed = true, true
		return
	}
	at, found := s.find(r, func(key string) bool {
		return nameless || strings.HasPrefix(key, name+"#") || strings.HasPrefix(key, "h:")
	})
	switch {
	case found:
		key, r.known = at.key, true
		r.key = l.texts.Put(key)
	case here:
		key += "~" + r.hex()[:12]
		r.key = l.texts.Put(key)
		_, r.known = s.here(key)
	}
	if e, here := s.here(key); here {
		e.claimed = true
	}
}

// copied marks the records at the beginning that are copies of what is stored in the line of
// another session, and gives their number.
func (s *stored) copied(l *records) int {
	s.index()
	for i := range l.len() {
		r := l.at(i)
		name := l.texts.Get(r.name)
		of, found := s.find(r, func(key string) bool {
			return name == "" || strings.HasPrefix(key, name+"#") || strings.HasPrefix(key, "msg_") || strings.HasPrefix(key, "h:")
		})
		if !found {
			return i
		}
		l.copied(l.at(i), of)
	}
	return l.len()
}

// line reads a session with all that it was forked from.
func line(ctx context.Context, known history.Known, s *session.Session) (*stored, error) {
	all := newStored()
	err := history.Line(ctx, known, s, func(s *session.Session) error { return all.load(ctx, known, s.ID) })
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}
