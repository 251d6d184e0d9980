package goose

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader imports one session.
type reader struct {
	in      *history.Intake
	about   about
	origins func() []*session.Session // sessions that it may be a copy of; nil: none
	ledger  []usage

	records  []record
	seed     maphash.Seed
	created  session.Time
	talk     *history.Conversation
	overlays []summarised
	pairs    []*pair // calls that summaries replace, of which no overlay was considered

	superseded bool // the session came from a database, this is the older file
	last       int  // index of the newest record on the path, -1: none
}

func newReader(in *history.Intake, a about) *reader {
	return &reader{in: in, about: a, seed: maphash.MakeSeed(), last: -1}
}

// read adds the session of the records.
func (r *reader) read() {
	r.date()
	if _, of := history.MarkIn(r.about.notes.Inner("extension_data")); of != nil {
		r.in.WrittenOf(of)
	}
	r.talk = r.in.Conversation(history.NewSession{Source: session.SourceGoose, SourceID: r.identify()})
	r.match()
	r.arrange()
	r.describe()
	r.messages()
	if r.replaced(len(r.records)); !r.superseded {
		r.calls()
	}
}

// date sets the times of records that have none, to that of the one before, and of the session, to
// that of its first message. It sorts rows of a database as Goose does: by seconds, then by id.
func (r *reader) date() {
	last := session.Time{}
	if r.about.created != nil {
		last = *r.about.created
	}
	for i := range r.records {
		m := &r.records[i]
		if m.derived = m.at.IsZero(); m.derived {
			m.at = last
		}
		last = m.at
	}
	if !r.about.inFile {
		slices.SortStableFunc(r.records, func(a, b record) int {
			return cmp.Or(cmp.Compare(a.at.Unix(), b.at.Unix()), cmp.Compare(a.row.ID, b.row.ID))
		})
	}
	r.created = r.about.otherwise
	if i := slices.IndexFunc(r.records, func(m record) bool { return !m.at.IsZero() }); i >= 0 {
		r.created = r.records[i].at
	}
	if r.about.created != nil {
		r.created = *r.about.created
	}
	if r.created.IsZero() { // SQLite's dates begin somewhere
		r.created = session.At(time.Unix(0, 0))
	}
	for i := range r.records {
		if m := &r.records[i]; m.at.IsZero() {
			m.at = r.created
		}
	}
}

// identify returns the id of the session and finds the stored one. Goose reuses an id when the
// newest session of a day was deleted: then the time of creation is part of it.
func (r *reader) identify() (sourceID string) {
	sourceID = r.about.id
	for range 2 {
		found := r.in.Session(sourceID)
		if found == nil {
			return sourceID
		}
		before := timeText(history.Notes(found, "goose").String("created_at"))
		if before == nil || r.about.created == nil || before.Unix() == r.about.created.Unix() {
			return sourceID
		}
		sourceID = r.about.id + "@" + r.about.created.UTC().Format("20060102T150405Z")
	}
	return sourceID
}

// match names the records and finds those that are stored.
//
// A message is known by Goose's id of it and, since the rows of a streamed reply share that, by
// how often the id came before; one without an id, or with one that a migration made, by its
// print. The same id with another print is another version of the message: both are history.
func (r *reader) match() {
	own := history.NewPrints(nil)
	if r.talk.Here != nil {
		own.Load(r.in, r.talk.Here)
	}
	r.fork(own)
	times := map[string]int{}
	for i := range r.records {
		if m := &r.records[i]; m.copyOf == "" {
			name := cmp.Or(m.messageID, "h:"+m.print)
			r.identifyRecord(m, own, name, times[name])
			times[name]++
		}
	}
}

// identifyRecord finds the stored message that a record is.
func (r *reader) identifyRecord(m *record, own *history.Prints, name string, occurrence int) {
	m.key = name + "#" + strconv.Itoa(occurrence)
	here := own.Get(m.key)
	if here != nil && here.Print == m.print {
		m.known = true
		here.Take()
		return
	}
	nameless := m.messageID == "" || strings.HasPrefix(name, "msg_"+r.about.id+"_")
	same := own.Take(m.print, func(key string) bool {
		return nameless || strings.HasPrefix(key, name+"#") || strings.HasPrefix(key, "h:")
	})
	switch {
	case same != nil:
		m.key, m.known = same.Key, true
	case here != nil:
		m.key += "~" + m.print[:12]
		if here = own.Get(m.key); here != nil {
			m.known = true
			here.Take()
		}
	}
}

// fork finds the session that this one is a copy of, as far as it goes: Goose keeps no link.
func (r *reader) fork(own *history.Prints) {
	if r.origins == nil || r.about.parent != "" || len(r.records) < history.LeastShared {
		return
	}
	copied := r.talk.FindOrigin(r.origins, nil, func(prints *history.Prints, i int) *history.Printed {
		if i == len(r.records) {
			return nil
		}
		m := &r.records[i]
		return prints.Take(m.print, func(key string) bool {
			return m.messageID == "" || strings.HasPrefix(key, m.messageID+"#") || strings.HasPrefix(key, "msg_") ||
				strings.HasPrefix(key, "h:")
		})
	})
	for i, of := range copied {
		m := &r.records[i]
		if own.Has(m.print) { // it was said here before it was copied there
			break
		}
		m.key, m.copyOf, m.known = of.Key, of.Session, true
	}
}

// describe says what the session is.
func (r *reader) describe() {
	a := &r.about
	notes := a.notes
	switch {
	case len(r.ledger) > 0:
		notes = append(notes, jsonx.MemberOf("usage", "ledger"))
	case !a.balance.isEmpty():
		notes = append(notes, jsonx.MemberOf("usage", "accumulated"))
	}
	if why := r.difference(); why != "" {
		r.in.Problem(0, why)
	}
	c := r.talk
	c.New.Directory, c.New.CreatedAt, c.New.Kind = a.directory, &r.created, a.kind
	c.New.Title, c.New.TitleSource = history.Titled(a.title, "")
	c.New.Provider, c.New.Model = a.provider, a.model
	c.New.Metadata = jsonx.Object{{Key: "goose", Value: notes.Value()}}.Column()
	switch {
	case r.talk.Here == nil:
		r.in.Import(a.records)
	case a.inFile && history.Notes(c.Here, "goose").Get("in_file") == nil: // the database says it better
		r.superseded, c.KnownReason = true, skipSuperseded
		r.in.Skip(skipSuperseded, a.records)
		return
	default:
		r.in.Skip(history.SkipKnown, a.records)
	}
	c.Title = a.title
	c.Fields = &history.Changes{
		Provider: a.provider, Model: a.model, Metadata: session.JSON(notes.Value()),
		ArchivedAt: a.archived,
	}
	r.startedBy()
}

// startedBy links the session to the one that started it. A circle, which a damaged database
// may have, is cut.
func (r *reader) startedBy() {
	a := &r.about
	if a.parent == "" || a.parent == a.id {
		return
	}
	parent := r.in.Session(a.parent)
	if parent == nil {
		return
	}
	r.talk.LinkTo(parent, session.ParentChild, nil)
	if key := a.delegatedBy(); r.talk.Here == nil && key != "" {
		r.talk.New.Started = r.in.Message(parent.ID, key)
	}
}

// messages adds the records, each after the one before it.
func (r *reader) messages() {
	reply, fresh := -1, r.talk.Here == nil
	for i := range r.records {
		m := &r.records[i]
		r.talk.Add(history.Entry{
			Key: m.key, Parent: r.head(), At: m.row.offset, Line: m.row.line, Own: m.copyOf == "",
			Decode: func() history.Decoded { return r.decoded(m) },
		})
		fresh = fresh || !m.known
		if m.made != nil && !m.known {
			r.replaced(i) // it was made of what was left
			r.overlay(m.made)
		}
		if m.why == "" {
			r.last = i
			if m.role == "assistant" && m.copyOf == "" && m.says.model {
				reply = i
			}
		}
		m.reply = reply
	}
	if fresh {
		r.talk.Head = r.head()
	}
}

// head returns the key of the message that the next one follows.
func (r *reader) head() string {
	if r.last < 0 {
		return ""
	}
	return r.records[r.last].key
}

func (r *reader) decoded(m *record) (d history.Decoded) {
	d = history.Alone(decode(m, m.row, r.about.author))
	if d.Raw = m.why != ""; d.Raw {
		d.Problem = fmt.Sprintf("%smessage %s: %s; kept raw", r.called(), m.key, m.why)
	}
	return d
}

// called returns the name of the session for a problem in a database, which holds several.
func (r *reader) called() string {
	if r.about.inFile {
		return ""
	}
	return "session " + r.about.id + ", "
}
