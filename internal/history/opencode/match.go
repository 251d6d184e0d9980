package opencode

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// stored are the messages of a session that are here, or of the line that a fork comes from:
// each with the others that one message of opencode became.
type stored struct {
	table     history.Table[held]
	texts     history.Texts
	keys      *history.Names // by external id
	says      *history.Names // by hash: the first one that nothing is the same as yet
	sessions  []session.ID
	head      place
	withParts bool // it is asked which parts there are
	of        int32
	parts     []byte // of the message that was met last
}

// held is a message that is here.
type held struct {
	key     history.TextAt
	last    history.TextAt // the last one that it became
	parts   history.TextAt // their ids, if they were asked for
	hash    [16]byte
	hashed  bool
	session int32
	next    int32 // the next one that says the same, -1: none
	claimed bool  // a record is a copy of it
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
func (s *stored) load(ctx context.Context, known history.Known, of *session.Session) error {
	s.sessions = append(s.sessions, of.ID)
	defer s.keepParts()
	return known.Entries(ctx, of.ID, func(m *session.Message) bool {
		if m.ExternalID == "" {
			return true // it was said here
		}
		if of.HeadID != nil && m.RowID == *of.HeadID {
			s.head = place{of.ID, m.ExternalID}
		}
		base, _, _ := strings.Cut(m.ExternalID, "#")
		i := s.entry(base)
		e := s.table.At(i)
		e.last = s.texts.Put(m.ExternalID)
		var extra struct {
			Hash  string   `json:"hash"`
			Parts []idOnly `json:"parts"`
		}
		if json.Unmarshal(m.Extra, &extra) != nil {
			return true
		}
		if n, err := hex.Decode(e.hash[:], []byte(extra.Hash[:min(len(extra.Hash), 2*len(e.hash))])); err == nil && n > 0 && base == m.ExternalID {
			e.hashed = true
		}
		if s.withParts {
			s.take(i, m, extra.Parts)
		}
		return true
	})
}

type idOnly struct {
	ID string `json:"id"`
}

// entry finds what is held of a message, beginning it if this is the first of it.
func (s *stored) entry(base string) int32 {
	sum, of := s.keys.Sum(base), int32(len(s.sessions)-1)
	if i, here := s.keys.Get(sum); here && s.table.At(i).session == of {
		return i
	}
	i := int32(s.table.Len())
	s.table.Append(held{key: s.texts.Put(base), session: of, next: -1})
	s.keys.Set(sum, i)
	return i
}

// take notes which parts a message has.
func (s *stored) take(of int32, m *session.Message, aside []idOnly) {
	if s.parts == nil || s.of != of {
		s.keepParts()
		s.of, s.parts = of, append([]byte{}, s.texts.Get(s.table.At(of).parts)...)
	}
	for _, p := range aside {
		s.parts = appendText(s.parts, p.ID)
	}
	for i := range m.Parts {
		var p idOnly
		if json.Unmarshal(m.Parts[i].Extra, &p) == nil && p.ID != "" {
			s.parts = appendText(s.parts, p.ID)
		}
	}
}

// keepParts puts away what was noted last.
func (s *stored) keepParts() {
	if s.parts != nil {
		s.table.At(s.of).parts = s.texts.Put(string(s.parts))
		s.parts = nil
	}
}

// index makes ready to find messages by what they say. None is claimed then.
func (s *stored) index() {
	if s.says != nil {
		s.says.Close()
	}
	s.says = history.NewNames(func(i int32) uint64 { return s.sum(s.table.At(i).hash) })
	for i := s.table.Len() - 1; i >= 0; i-- {
		e := *s.table.At(int32(i))
		if !e.hashed {
			continue
		}
		sum := s.sum(e.hash)
		next, more := s.says.Get(sum)
		if !more {
			next = -1
		}
		at := s.table.At(int32(i))
		at.next, at.claimed = next, false
		s.says.Set(sum, int32(i))
	}
}

func (s *stored) sum(hash [16]byte) uint64 { return s.says.Sum(string(hash[:])) }

// claim takes the first message that says something and was not taken yet.
func (s *stored) claim(hash [16]byte) (e held, ok bool) {
	if s.table.Len() == 0 {
		return held{}, false
	}
	sum := s.sum(hash)
	begin, ok := s.says.Get(sum)
	for i := begin; ok && i >= 0; i = e.next {
		if e = *s.table.At(i); e.claimed {
			continue
		}
		s.table.At(i).claimed = true
		if i != begin { // those before it are not gone through again
			s.says.Set(sum, i)
		}
		return e, true
	}
	return held{}, false
}

// here gives the message that has a key, if what it says is known.
func (s *stored) here(key string) (e held, ok bool) {
	if s.table.Len() == 0 {
		return held{}, false
	}
	if i, has := s.keys.Get(s.keys.Sum(key)); has {
		e = *s.table.At(i)
	}
	return e, e.hashed
}

// has tells whether a message has a key.
func (s *stored) has(key string) bool {
	_, ok := s.keys.Get(s.keys.Sum(key))
	return ok
}

// match names the records and finds those that are here. The same id with other content is
// another version of the message, and both are history; unless it comes from a store that is
// trusted less than the one that it came from.
func (s *stored) match(l *records, trusted bool) {
	for i := range l.n {
		b := l.at(i)
		if b.within != 0 {
			continue
		}
		key := l.named(b)
		named := key
		if _, again := l.names.Get(l.names.Sum(key)); again {
			key += "~" + b.hex()[:12]
		}
		b.sum = l.names.Sum(key)
		l.names.Set(b.sum, int32(i))
		e, here := s.here(key)
		b = l.at(i)
		switch {
		case here && (e.hash == b.hash || !trusted):
			b.known = true
		case here:
			key += "~" + b.hex()[:12]
			e, b.known = s.here(key)
		}
		if key != named {
			b.key = l.texts.Put(key)
		}
		if e.last != 0 {
			if last := s.texts.Get(e.last); last != key {
				b.last = l.texts.Put(last)
			}
		}
	}
}

// missing gives the parts of a known record that are not here.
func (s *stored) missing(l *records, i int) map[string]bool {
	b := *l.at(i)
	e, _ := s.here(l.key(&b))
	here := map[string]bool{}
	for _, id := range divided(s.texts.Get(e.parts)) {
		here[id] = true
	}
	lost := map[string]bool{}
	for _, id := range divided(l.texts.Get(b.parts)) {
		if id != "" && !here[id] {
			lost[id] = true
		}
	}
	return lost
}

// copied marks the records at the beginning that are copies of what is stored in the line of
// another session, and gives their number. Copies have other ids.
func (s *stored) copied(l *records) int {
	s.index()
	for i := range l.n {
		b := l.at(i)
		if b.open {
			return i
		}
		e, found := s.claim(b.hash)
		if !found {
			return i
		}
		l.copied(i, place{s.sessions[e.session], s.texts.Get(e.key)}, s.texts.Get(e.last))
	}
	return l.n
}

// line reads a session with all that it was forked from.
func line(ctx context.Context, known history.Known, s *session.Session) (*stored, error) {
	all := newStored()
	err := history.Line(ctx, known, s, func(s *session.Session) error { return all.load(ctx, known, s) })
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}
