package history

import (
	"encoding/json"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Prints are stored messages by their print: a fingerprint of what the record says that they were
// made of, which its reader keeps as `hash` in their extra. Readers use them for programs whose
// records change in place, or get other ids when a session is copied.
type Prints struct {
	record  func(key string) string
	byKey   map[string]*Printed
	byPrint map[string][]*Printed // in the order of the session
	keys    map[session.MessageRef]string
}

// Printed is a stored record.
type Printed struct {
	Place                      // of its first message
	Last   string              // key of its last message
	Print  string              // "": not kept
	Parent *session.MessageRef // that the first message follows; nil: none

	taken bool
}

// follow reports whether a stored record may be the one that follows a message now, by its key: it does, or which one
// it follows is not known, then or now.
func (p *Prints) follow(e *Printed, parent string) bool {
	if e.Parent == nil || parent == "" {
		return parent == ""
	}
	key, isKnown := p.keys[*e.Parent]
	return !isKnown || key == parent
}

// NewPrints makes an empty set. record returns the key of the record that a message was made of,
// from the message's key; nil: each message is a record.
func NewPrints(record func(key string) string) *Prints {
	if record == nil {
		record = func(key string) string { return key }
	}
	return &Prints{
		record: record, byKey: map[string]*Printed{}, byPrint: map[string][]*Printed{},
		keys: map[session.MessageRef]string{},
	}
}

// Load adds the imported messages of a session. Of records with one key the first one loaded counts.
func (p *Prints) Load(in *Intake, of *session.Session) {
	own := map[string]*Printed{}
	in.Entries(of.ID, func(m *session.Message) bool {
		if m.ExternalID == "" {
			return true // it was said here
		}
		key := p.record(m.ExternalID)
		p.keys[m.ID] = m.ExternalID
		e := own[key]
		if e == nil {
			var extra struct {
				Hash string `json:"hash"`
			}
			_ = json.Unmarshal(m.Extra, &extra) // without a print it is found by its key only
			e = &Printed{Place: Place{Key: key, Session: of.ID}, Print: extra.Hash, Parent: m.Parent}
			own[key] = e
			if p.byKey[key] == nil {
				p.byKey[key] = e
			}
			if e.Print != "" {
				p.byPrint[e.Print] = append(p.byPrint[e.Print], e)
			}
		}
		e.Last = m.ExternalID
		return true
	})
}

// Get returns the record with a key, nil if there is none.
func (p *Prints) Get(key string) *Printed { return p.byKey[key] }

// Take returns the first record with a print that was not taken yet and whose key matches; nil if
// there is none. A nil match matches any key.
func (p *Prints) Take(print string, match func(key string) bool) *Printed {
	for i, e := range p.byPrint[print] {
		if e.taken || match != nil && !match(e.Key) {
			continue
		}
		e.Take()
		if i == 0 { // the next search need not pass it
			p.byPrint[print] = p.byPrint[print][1:]
		}
		return e
	}
	return nil
}

// Has reports whether any record has a print.
func (p *Prints) Has(print string) bool { return len(p.byPrint[print]) > 0 }

// Take keeps Prints.Take from returning the record.
func (e *Printed) Take() { e.taken = true }

// FindOrigin finds the session that a conversation is a copy of, as far as it goes, for programs
// that keep no link: of the candidates, each with those that it was forked from, the first that
// shares the most records, LeastShared at least. A conversation that is stored has the origin that
// it has. take takes the record that the i-th record of the copy is a copy of from prints; nil ends
// the search. copied are the records that the two share, nil if there is no origin.
func (c *Conversation) FindOrigin(candidates func() []*session.Session, record func(key string) string,
	take func(prints *Prints, i int) *Printed,
) (copied []*Printed) {
	if c.Here != nil {
		candidates = c.storedOrigin
	}
	var origin *session.Session
	for _, candidate := range candidates() {
		prints := NewPrints(record)
		line := map[session.ID]*session.Session{}
		for s := range c.in.Line(candidate) {
			line[s.ID] = s
			prints.Load(c.in, s)
		}
		var shared []*Printed
		for e := take(prints, 0); e != nil; e = take(prints, len(shared)) {
			shared = append(shared, e)
		}
		if n := len(shared); n >= LeastShared && n > len(copied) {
			origin, copied = line[shared[n-1].Session], shared // that holds the last of them
		}
	}
	if origin != nil {
		c.CopyReason = "copy of " + origin.SourceID
		c.ForkedFrom(origin)
		c.LinkTo(origin, session.ParentFork, nil)
	}
	return copied
}

// storedOrigin returns the session that this one was forked from when it was stored.
func (c *Conversation) storedOrigin() []*session.Session {
	if c.Here.ParentKind != session.ParentFork {
		return nil
	}
	return []*session.Session{c.in.SessionByID(c.Here.ParentID)}
}

// maxOrigins bounds how many sessions with one beginning are compared.
const maxOrigins = 16

// Origins returns the first of the sessions with these ids that are here, as candidates of FindOrigin.
func (in *Intake) Origins(ids []string) (found []*session.Session) {
	for _, id := range ids[:min(len(ids), maxOrigins)] {
		if s := in.Session(id); s != nil {
			found = append(found, s)
		}
	}
	return found
}

// Notes returns what the metadata of a stored session say under the name of its program; nil: it
// is not stored.
func Notes(s *session.Session, program string) jsonx.Object {
	if s == nil {
		return nil
	}
	o, _ := jsonx.ReadObject(s.Metadata)
	notes, _ := jsonx.ReadFields(o.Get(program))
	return notes
}
