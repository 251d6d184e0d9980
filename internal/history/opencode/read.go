package opencode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader imports one session.
type reader struct {
	in      *history.Intake
	about   about
	records []*record
	older   func(first int64) []string // ids of older sessions whose first message has this time; nil: none

	c       *history.Conversation
	stored  *history.Prints
	trusted bool           // no better store had the session
	byID    map[string]int // the first record with an id
	line    int            // records at the beginning up to the head
	until   int64          // when outputs were last pruned, in milliseconds
	waits   bool           // a reply at the end is left to a later reading
}

// add takes a message, in any order.
func (r *reader) add(in *message) *record {
	in.limit()
	m := recordOf(in)
	r.records = append(r.records, m)
	return m
}

// run imports the session whose messages were added.
func (r *reader) run() {
	fillTimes(&r.about, r.records)
	slices.SortStableFunc(r.records, compareRecords)
	r.dropHandedOver()
	r.holdBack()
	r.open()
	r.match()
	r.messages()
	r.total()
}

// dropHandedOver leaves out the messages that sessiond wrote, if the conversation that they repeat is here.
func (r *reader) dropHandedOver() {
	repeats := func(m *record) (bool, *history.Handover) {
		for i := range m.body.parts {
			if is, of := history.MarkIn(m.body.parts[i].Inner("metadata")); is {
				return is, of
			}
		}
		return false, nil
	}
	if len(r.records) == 0 {
		return
	}
	if _, of := repeats(r.records[0]); of == nil || !r.in.HandOver(of) {
		return
	}
	r.records = slices.DeleteFunc(r.records, func(m *record) bool {
		is, _ := repeats(m)
		if is {
			r.in.Skip(history.SkipHandedOver, m.records)
		}
		return is
	})
}

// holdBack leaves a reply that may still be written, and the messages after it, to a later reading.
func (r *reader) holdBack() {
	newest, open, says, calls := r.about.updated, -1, false, false
	for i, m := range r.records {
		if m.at.After(newest.Time) {
			newest = m.at
		}
		if m.open {
			says, calls = m.says && (says || open < 0), calls || m.calls
		}
		if m.open && open < 0 {
			open = i
		}
	}
	if open < 0 || !r.in.ReplyWaitsSince(newest.Time, says, calls) {
		return
	}
	waiting := 0
	for _, m := range r.records[open:] {
		waiting += m.records
	}
	r.in.Wait(0, waiting)
	r.records, r.waits = r.records[:open], true
}

// open begins the session, with its origin or parent.
func (r *reader) open() {
	a := &r.about
	notes := append(a.notes, jsonx.MemberOf("store", a.store))
	if strings.HasPrefix(a.title, "[redacted:") {
		notes = append(notes, jsonx.MemberOf("redacted", true))
	}
	new := history.NewSession{
		Source: r.in.Source(), SourceID: a.id, Directory: clean(a.directory), CreatedAt: &a.created, Kind: "chat",
		Project: a.worktree, Provider: a.provider, Model: a.model,
		Metadata: jsonx.Object{{Key: string(r.in.Source()), Value: notes.Value()}}.Column(),
	}
	new.Title, new.TitleSource = history.Titled(a.named(), "")
	if a.parent != "" {
		new.Kind = "subagent"
	}
	r.c = r.in.Conversation(new)
	r.stored, r.trusted = history.NewPrints(recordKey), true
	if here := r.c.Here; here == nil {
		r.in.Import(a.records + a.todos)
	} else {
		if r.trusted = trustIn(a.store) >= trustIn(cmp.Or(history.Notes(here, string(r.in.Source())).String("store"),
			inDatabase)); !r.trusted {
			r.c.KnownReason = skipNewer
		}
		r.in.Skip(r.c.KnownReason, a.records+a.todos)
		r.stored.Load(r.in, here)
	}
	if r.trusted {
		r.c.Title = new.Title
		r.c.Fields = &history.Changes{
			Provider: a.provider, Model: a.model, Metadata: session.JSON(notes.Value()),
			ArchivedAt: a.archived, States: a.states(),
		}
	}
	if a.parent != "" {
		r.linkToParent()
	} else {
		r.findOrigin()
	}
}

// linkToParent links the session to the one that started it, and to the call in that, whose result
// names the session.
func (r *reader) linkToParent() {
	if r.about.parent == r.about.id || !r.trusted {
		return
	}
	parent := r.in.Session(r.about.parent)
	if parent == nil || !r.c.LinkTo(parent, session.ParentChild, nil) || r.c.Here != nil {
		return
	}
	id := []byte(r.about.id)
	r.c.StartedIn(parent.ID, func(m *session.Message) string {
		for _, p := range m.Calls() {
			if bytes.Contains(p.Extra, id) {
				return p.CallID
			}
		}
		return ""
	})
}

// findOrigin finds the session that this one is a copy of, as far as it goes. Before version 2
// opencode keeps no link.
func (r *reader) findOrigin() {
	copied := r.c.FindOrigin(r.candidates, recordKey, func(prints *history.Prints, i int) *history.Printed {
		if i == len(r.records) || r.records[i].open {
			return nil
		}
		return prints.Take(r.records[i].hash, nil)
	})
	for i, of := range copied {
		r.records[i].copyOf = of
	}
}

// candidates returns the sessions that this one may be a copy of: the one that version 2 names;
// else those that begin at the same moment, and the one that has its calls.
func (r *reader) candidates() (found []*session.Session) {
	if len(r.records) < history.LeastShared {
		return nil
	}
	if r.about.forked != "" {
		if origin := r.in.Session(r.about.forked); origin != nil {
			return []*session.Session{origin}
		}
	}
	if r.older != nil {
		found = r.in.Origins(r.older(r.firstAt()))
	}
	if call := r.firstCall(); call != nil {
		if origin := r.in.CallOwner(call.ExternalID); origin != nil && origin.CreatedAt.Before(r.about.created.Time) {
			found = append(found, origin)
		}
	}
	return found
}

// firstCall returns the first model call of the session; nil: there is none.
func (r *reader) firstCall() *history.Call {
	for _, m := range r.records {
		if m.role != "assistant" || m.why != "" || m.large {
			continue
		}
		if call := callOf(m, m.body.data.Object, m.body.parts); call != nil {
			return call
		}
	}
	return nil
}

// firstAt returns the time of the first message in milliseconds.
func (r *reader) firstAt() int64 {
	first := int64(0)
	for _, m := range r.records {
		if at := m.at.UnixMilli(); first == 0 || at < first {
			first = at
		}
	}
	return first
}

// match names the records and finds those that the store has. The same id with other content is
// another version of the message, and both are history; unless it comes from a store that is
// trusted less than the one that it came from.
func (r *reader) match() {
	taken := map[string]bool{}
	r.byID = map[string]int{}
	for i, m := range r.records {
		if _, twice := r.byID[m.id]; !twice {
			r.byID[m.id] = i
		}
		if m.copyOf != nil {
			m.key, m.last = m.copyOf.Key, m.copyOf.Last
			continue
		}
		m.key = m.name()
		version := m.key + "~" + m.hash[:12]
		if taken[m.key] {
			m.key = version
		}
		taken[m.key] = true
		stored := r.stored.Get(m.key)
		if stored != nil && stored.Print != m.hash && stored.Print != "" && r.trusted {
			m.key, stored = version, r.stored.Get(version)
		}
		if m.last, m.known = m.key, stored != nil && stored.Print != ""; m.known {
			m.last = stored.Last
		}
	}
}

// messages adds the records, each after the one before it. The head is the last one before the
// mark of a revert.
func (r *reader) messages() {
	parts := r.storedParts()
	reverted, last, head := false, -1, ""
	for i, m := range r.records {
		reverted = reverted || r.about.revert != "" && m.id == r.about.revert
		m.before = last
		lost := r.addLost(m, parts)
		fresh := r.addRecord(m, last, m.records-lost)
		if !m.aside {
			last = i
			if !reverted {
				head, r.line = m.last, i+1
			}
		}
		if fresh && m.summary && !m.failed && !m.open && i > 0 {
			r.summarise(i)
		}
	}
	r.prune(math.MaxInt64)
	if r.trusted {
		r.c.Head = head
	} else if at := r.c.Here.Head; at != nil && at.Session == r.c.Here.ID { // an older store does not move it
		if m := r.in.Load(*at); m != nil {
			r.c.Head = m.ExternalID
		}
	}
}

// addRecord adds a record, after the one with an index, and counts it as some of the source's.
// fresh: it was not stored.
func (r *reader) addRecord(m *record, after, records int) (fresh bool) {
	if m.copyOf != nil {
		r.c.AddCopy(history.Place{Key: m.last, Session: m.copyOf.Session}, m.records)
		return false
	}
	if m.large && !m.known {
		r.in.Skip(history.SkipTooLarge, m.records)
		r.in.Problem(0, fmt.Sprintf("session %s, message %s is larger than 64 MiB and was left out", r.about.id, m.key))
		m.aside = true
		return false
	}
	e := history.Entry{Key: m.key, Parent: r.c.Base(), Records: records, NoRecords: records == 0}
	if after >= 0 {
		e.Parent = r.records[after].last
	}
	e.Decode = func() history.Decoded {
		fresh = true
		author := session.Person
		if r.about.parent != "" {
			author = session.Model
		}
		d := decode(m, m.body, author)
		m.last = d.Messages[len(d.Messages)-1].ExternalID
		for i := range d.Calls {
			d.Calls[i].Directory = clean(r.about.directory)
		}
		if m.why != "" {
			d.Raw, d.Problem = true, fmt.Sprintf("session %s, message %s: %s; kept raw", r.about.id, m.key, m.why)
		}
		return d
	}
	r.c.Add(e)
	return fresh
}

// storedParts returns the ids of the parts that the store has of each record, where it has the
// session from a better store; else nil.
func (r *reader) storedParts() map[string]map[string]bool {
	if r.trusted {
		return nil
	}
	type idOnly struct {
		ID string `json:"id"`
	}
	all := map[string]map[string]bool{}
	r.in.Entries(r.c.Here.ID, func(m *session.Message) bool {
		ids := all[recordKey(m.ExternalID)]
		if ids == nil {
			ids = map[string]bool{}
			all[recordKey(m.ExternalID)] = ids
		}
		var extra struct {
			Parts []idOnly `json:"parts"`
		}
		_ = json.Unmarshal(m.Extra, &extra) // most have none
		for i := range m.Parts {
			var p idOnly
			_ = json.Unmarshal(m.Parts[i].Extra, &p)
			extra.Parts = append(extra.Parts, p)
		}
		for _, p := range extra.Parts {
			ids[p.ID] = true
		}
		return true
	})
	return all
}

// addLost adds the parts that only an older store has of a message, beside it, and returns how many
// they are. stored are the parts that the better store has; nil: this one is trusted.
func (r *reader) addLost(m *record, stored map[string]map[string]bool) (n int) {
	if stored == nil || !m.known {
		return 0
	}
	var text []byte
	for _, p := range m.body.parts {
		if p.id != "" && !stored[m.key][p.id] {
			text = append(append(text, p.json()...), '\n')
			n++
		}
	}
	if n == 0 {
		return 0
	}
	r.c.Add(history.Entry{Key: m.key + "+" + m.hash[:12], Parent: m.last, Records: n, Decode: func() history.Decoded {
		rest := history.Verbatim(text, "parts of "+m.key+" that the newer store does not have")
		rest.Dialect, rest.CreatedAt = "opencode", m.at
		return history.Decoded{Messages: []history.Message{{Message: rest}}, Raw: true}
	}})
	return n
}
