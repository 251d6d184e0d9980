package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Conversation is one session on its way into the store.
type Conversation struct {
	// New is what the session begins with. It may be changed until the first entry is stored.
	New NewSession
	// Here is the session as it is stored; nil: it is new.
	Here *session.Session
	// Title and Fields go with the last batch, Head with new messages, too. It is the key of an entry; "": it stays.
	Title  string
	Fields *Changes
	Head   string
	// KeepHead says that what the store has is newer: its head stays.
	KeepHead bool
	// CopyReason says why an entry is skipped that the session shares with its origin.
	CopyReason string
	// KnownReason says why an entry is skipped that is in the session already.
	KnownReason string
	// Passes tells of a message of the origin that a copy leaves out: what follows it there follows
	// the message before it here. nil: none.
	Passes func(m *session.Message) bool
	// Silent says why nothing of the session is stored as long as it is set: no person or model spoke yet.
	Silent string

	in       *Intake
	parent   *Conversation      // of the same thing, that started this one
	startKey string             // the parent's message whose call did; "": not known
	line     []*session.Session // that it was forked from, the nearest first
	places   map[string]Place   // of the entries that were added
	stored   map[string]bool    // keys of its messages that are here; nil: each is looked up
	starts   []start            // sessions that it started
	batch    Batch
	given    bool // a batch was given
	fresh    int  // entries that were new
	misdated bool // a message with an impossible date was reported
	moved    bool // its program moved the head since the reading before
	unused   bool // it was handed over, and nobody has continued it
}

// Entry is what one or some records of a source become.
type Entry struct {
	Key     string // its name in the session, the same in every reading
	Parent  string // the key of the entry that it follows; "": none
	At      int64  // where its last record begins, in files
	Records int    // that it stands for; 0: one
	// NoRecords says that it stands for no record of its own: another one holds it, too.
	NoRecords bool
	Line      int // of its record, from 1, for a problem

	// Decode gives what the entry holds. It is called only for an entry that is new, or may be a
	// copy of an origin's.
	Decode func() Decoded

	// Own says that the entry is the session's own, though an origin may have one with its key.
	Own bool
	// Same asks that an entry of the origin with this key says the same and follows the same
	// entry; else the key alone makes it a copy.
	Same bool
	// Copied is called when the entry is a copy, with the original's place. It may be nil.
	Copied func(of Place, d *Decoded)
}

// Decoded is what an entry holds.
type Decoded struct {
	Messages    []Message // each follows the one before; one without an ExternalID has the entry's key
	Calls       []Call
	Marks       []Mark
	Compactions []Compaction
	Raw         bool   // it was not understood and is kept as it is
	Problem     string // what is wrong with it
	Line        int    // of the record that the problem is of; 0: the entry's
}

// Conversation begins a session of the thing.
func (in *Intake) Conversation(new NewSession) *Conversation {
	new.WrittenOf = in.writtenOf
	c := &Conversation{New: new, in: in, places: map[string]Place{}, CopyReason: SkipCopied, KnownReason: SkipKnown}
	in.all = append(in.all, c)
	c.Here = in.Session(new.SourceID)
	if in.origin != nil && len(in.all) == 1 {
		c.continueFrom(in.origin)
	}
	if c.Here != nil && in.before == nil {
		c.stored = map[string]bool{}
		in.Fail(in.Known.ExternalIDs(in.ctx, c.Here.ID, func(key string) { c.stored[key] = true }))
	}
	return c
}

// ForkedFrom says which session this one is a fork of. Entries that it shares with that one, or
// with those that that one was forked from, are not stored again. Of several origins the first
// that has an entry counts.
func (c *Conversation) ForkedFrom(origins ...*session.Session) {
	c.line = nil
	for _, origin := range origins {
		for s := range c.in.Line(origin) {
			if c.Here == nil || s.ID != c.Here.ID {
				c.line = append(c.line, s)
			}
		}
	}
}

// Origins are the sessions that this one was forked from, the nearest first.
func (c *Conversation) Origins() []*session.Session { return c.line }

// StartedBy says which conversation of the same thing started this one: the session becomes its
// child.
func (c *Conversation) StartedBy(parent *Conversation) { c.parent = parent }

// StartedByCall is StartedBy with the call that did it, and the key of the message that holds the call.
func (c *Conversation) StartedByCall(parent *Conversation, key, call string) {
	c.parent, c.startKey, c.New.StartedCall = parent, key, call
}

// LinkTo links the session to one that is in the store: as New, or late if it is stored without
// a parent, or with standIn, which only took the place of this one. linked is false for a session
// that has its parent already, and for a link that would close a circle.
func (c *Conversation) LinkTo(parent *session.Session, kind string, standIn *session.Session) (linked bool) {
	c.New.ParentID, c.New.ParentKind = parent.ID, kind
	if c.Here == nil {
		return true
	}
	stands := standIn != nil && c.Here.ParentID == standIn.ID
	if c.Here.ParentID != "" && !stands || c.Here.ParentID == parent.ID || c.Here.ID == parent.ID ||
		c.in.ComesFrom(parent, c.Here) {
		return false
	}
	f := c.Change()
	f.ParentID, f.ParentKind, f.Instead = parent.ID, kind, c.Here.ParentID
	return true
}

// Change returns the Fields, which may be changed.
func (c *Conversation) Change() *Changes {
	if c.Fields == nil {
		c.Fields = &Changes{}
	}
	return c.Fields
}

// LinkOrAwait links the session to the one with an id in the program, now or when that comes. It
// returns the session, nil if it is not here.
func (c *Conversation) LinkOrAwait(sourceID, kind string) *session.Session {
	parent := c.in.Session(sourceID)
	if parent == nil {
		c.in.Await(sourceID)
		return nil
	}
	c.LinkTo(parent, kind, nil)
	return parent
}

// start is a session that a call of a conversation started.
type start struct{ sourceID, key, call string }

// Starts says which session of the program a call started, and the key of the message that makes the
// call, at a record that tells it. A session that is here already is linked to the call; one that comes
// later finds it by StartedIn.
func (c *Conversation) Starts(at int64, sourceID, key, call string) {
	s := start{sourceID, key, call}
	if !c.in.Old(at) && sourceID != "" && key != "" && !slices.Contains(c.starts, s) {
		c.starts = append(c.starts, s)
	}
}

// linkStarted links the sessions that this one, which is stored, started.
func (c *Conversation) linkStarted() {
	if len(c.starts) == 0 {
		return
	}
	own := c.in.Session(c.New.SourceID)
	if own == nil {
		return
	}
	for _, s := range c.starts {
		child := c.in.Session(s.sourceID)
		if child == nil || child.ParentID != "" && child.ParentID != own.ID {
			continue
		}
		if c.in.ComesFrom(own, child) {
			return
		}
		if at := c.in.Message(own.ID, s.key); at != nil {
			b := Batch{Aside: true}
			b.ID = child.ID
			b.Fields = &Changes{
				ParentID: own.ID, ParentKind: session.ParentChild, Instead: child.ParentID, Started: at,
				StartedCall: s.call,
			}
			c.in.Emit(b)
		}
	}
}

// StartedIn links the session, which was linked to its parent, to the call in that which started it.
func (c *Conversation) StartedIn(parent session.ID, callOf func(*session.Message) string) {
	at, call := c.in.StartOf(parent, callOf)
	c.New.Started, c.New.StartedCall = at, call
	if c.Fields != nil {
		c.Fields.Started, c.Fields.StartedCall = at, call
	}
}

// StartOf finds the call in a session that started another one, and the message that makes it. callOf gets
// the session's messages in order, until it returns the id of that call. at is nil if there is none.
func (in *Intake) StartOf(parent session.ID,
	callOf func(*session.Message) string,
) (at *session.MessageRef, call string) {
	made := map[string]session.MessageRef{} // by the id of the call
	in.Entries(parent, func(m *session.Message) bool {
		for _, p := range m.Calls() {
			made[p.CallID] = m.ID
		}
		if call == "" {
			call = callOf(m)
		}
		if ref, ok := made[call]; ok && call != "" {
			at = &ref
		}
		return at == nil
	})
	if at == nil {
		call = ""
	}
	return at, call
}

// Find returns where the message with a key lies: here, or in a session that this one was forked
// from. ok is false if there is none.
func (c *Conversation) Find(key string) (at Place, ok bool) {
	if at, ok = c.places[key]; ok || key == "" {
		return at, ok
	}
	if c.Has(key) {
		at, ok = Place{Key: key}, true
	} else if at, _ = c.original(key); at.Key != "" {
		ok = true
	}
	if ok {
		c.places[key] = at
	}
	return at, ok
}

// Has reports whether the session is in the store with a message of this key.
func (c *Conversation) Has(key string) bool {
	if c.Here == nil {
		return false
	}
	if c.stored != nil {
		return c.stored[key]
	}
	return c.in.Message(c.Here.ID, key) != nil
}

// original finds the message with a key in the sessions that this one was forked from; nil: they have
// none.
func (c *Conversation) original(key string) (at Place, ref *session.MessageRef) {
	for _, s := range c.line {
		if ref = c.in.Message(s.ID, key); ref != nil {
			return Place{Key: key, Session: s.ID}, ref
		}
	}
	return Place{}, nil
}

// Add takes an entry. Its parent must have been added before.
func (c *Conversation) Add(e Entry) {
	if c.in.Old(e.At) || c.in.err != nil {
		return
	}
	records := max(e.Records, 1)
	if e.NoRecords {
		records = 0
	}
	if c.Has(e.Key) {
		c.places[e.Key] = Place{Key: e.Key}
		if !c.in.wasCounted(e.At) {
			c.batch.Records.Skip(c.KnownReason, records)
		}
		return
	}
	copied, d := c.copied(&e)
	if copied {
		if !c.in.wasCounted(e.At) {
			c.batch.Records.Skip(c.CopyReason, records)
		}
		return
	}
	if d == nil {
		d = new(e.Decode())
	}
	if c.in.err == nil {
		c.add(&e, d, records)
	}
}

// AddCopy takes records of which an origin has a copy at a place, under whatever key. The next
// entry may follow it.
func (c *Conversation) AddCopy(of Place, records int) {
	c.places[of.Key] = of
	c.batch.Records.Skip(c.CopyReason, records)
}

// copied reports whether an entry is one of the origin's, and notes its place.
func (c *Conversation) copied(e *Entry) (is bool, d *Decoded) {
	if e.Own {
		return false, nil
	}
	at, ref := c.original(e.Key)
	if ref == nil {
		return false, nil
	}
	if e.Same || e.Copied != nil {
		d = new(e.Decode())
	}
	if e.Same && !c.saysTheSame(e, d, *ref) {
		return false, d
	}
	c.places[e.Key] = at
	if e.Copied != nil {
		e.Copied(at, d)
	}
	return true, d
}

// saysTheSame compares an entry with a stored message: what both say, and what they follow.
func (c *Conversation) saysTheSame(e *Entry, d *Decoded, ref session.MessageRef) bool {
	theirs := c.in.Load(ref)
	if theirs == nil || len(d.Messages) == 0 || says(theirs) != says(&d.Messages[0].Message) {
		return false
	}
	parent, _ := c.Find(e.Parent)
	for theirs.Parent != nil {
		if theirs = c.in.Load(*theirs.Parent); theirs == nil {
			return false
		}
		if theirs.ExternalID == parent.Key && theirs.ID.Session == parent.Session {
			return true
		}
		if c.Passes == nil || !c.Passes(theirs) {
			return false
		}
	}
	return parent.Key == ""
}

// says tells two messages apart by what they say and when, as far as both a reader and the
// store know it: not by their names, nor by what is kept beside them.
func says(m *session.Message) string {
	all := []string{m.CreatedAt.SQL(), string(m.Kind), string(m.Role)}
	for i := range m.Parts {
		p := &m.Parts[i]
		arguments := p.Arguments
		if o, ok := jsonx.ReadObject([]byte(arguments)); ok {
			arguments = jsonx.Fingerprint(o) // a program may write them anew
		}
		all = append(all, string(p.Kind), p.CallID, p.Content(), arguments)
	}
	return strings.Join(all, "\x00")
}

func (c *Conversation) add(e *Entry, d *Decoded, records int) {
	if d.Problem != "" {
		c.in.problem(cmp.Or(d.Line, e.Line), d.Problem)
	}
	if c.in.messages >= MaxBatch || c.in.bytes >= MaxBatchBytes {
		c.in.flushAll() // before this entry, so that the last one is never stored without the head
	}
	b := &c.batch
	if len(d.Messages) > 0 {
		parent, ok := c.Find(e.Parent)
		if !ok && e.Parent != "" {
			c.in.Fail(session.Errorf(session.Invalid, "entry %q of session %s follows %q: %w", e.Key, c.New.SourceID, e.Parent,
				errMissing))
			return
		}
		for i := range d.Messages {
			m := &d.Messages[i]
			if m.Origin == session.Person && session.IsHandoverNote(m.Text()) {
				m.Origin = session.Program
			}
			c.unused = c.unused && session.TalkOf(&m.Message) != session.Said
			m.ExternalID = cmp.Or(m.ExternalID, e.Key)
			m.ParentKey, m.ParentSession, m.Records = parent.Key, parent.Session, 0
			if i == 0 {
				m.Records = records
			}
			c.checkDate(m, e)
			parent = Place{Key: m.ExternalID}
			c.places[m.ExternalID] = parent
			c.in.bytes += store.SizeOf(&m.Message)
		}
		b.Messages = append(b.Messages, d.Messages...)
		c.in.messages += len(d.Messages)
		c.fresh++
	}
	for i := range d.Calls {
		c.addCall(d.Calls[i])
	}
	for _, m := range d.Marks {
		c.Mark(m)
	}
	for i := range d.Compactions {
		c.Compact(d.Compactions[i])
	}
	if d.Raw {
		b.Records.KeepRaw(records)
	} else {
		b.Records.Import(records)
	}
}

// checkDate reports the first message of a session with a date that no clock gave.
func (c *Conversation) checkDate(m *Message, e *Entry) {
	if c.misdated || m.CreatedAt.IsZero() || m.CreatedAt.CheckDate("", cmp.Or(c.in.Now, time.Now())) == nil {
		return
	}
	c.misdated = true
	c.in.problem(e.Line,
		fmt.Sprintf("the message is dated %s; it is imported with this date, and the session is sorted by today's",
			m.CreatedAt.Format(time.RFC3339)))
}

// Call counts a model call. The store counts one that it knows no second time, but raises it to what
// is reported now; one of a message that an origin has is the origin's.
func (c *Conversation) Call(call Call) {
	at, ok := c.Find(call.MessageKey)
	if at.Session != "" {
		return
	}
	if !ok {
		call.MessageKey = ""
	}
	c.addCall(call)
}

// Limit notes a limit of the program, in a record that is new.
func (c *Conversation) Limit(l session.Limit) {
	l.Source = c.in.source
	c.batch.Limits = slices.DeleteFunc(c.batch.Limits, func(had session.Limit) bool { return had.Name == l.Name })
	c.batch.Limits = append(c.batch.Limits, l)
}

// Copied says that a call is of another session. A reading before may have counted it for this one.
func (c *Conversation) Copied(externalID string) {
	if c.Here != nil && c.in.before == nil {
		c.batch.Copied = append(c.batch.Copied, externalID)
	}
}

// addCall adds a call, of the program's if it does not say more: a chat that went well, at the cost that
// was reported.
func (c *Conversation) addCall(call Call) {
	call.Source = cmp.Or(call.Source, c.in.source)
	call.Purpose, call.Status = cmp.Or(call.Purpose, session.PurposeChat), cmp.Or(call.Status, session.CallOK)
	if call.CostNanoUSD != nil {
		call.PriceSource = "reported"
	}
	c.batch.Calls = append(c.batch.Calls, call)
}

// Mark labels or pins a message.
func (c *Conversation) Mark(m Mark) {
	if at, ok := c.Find(m.MessageKey); ok {
		m.MessageSession = at.Session
		c.batch.Marks = append(c.batch.Marks, m)
	}
}

// Compact adds an overlay, a summary if it does not say more. Its places are filled from its keys.
func (c *Conversation) Compact(o Compaction) {
	o.Strategy = cmp.Or(o.Strategy, session.StrategySummarize)
	o.Trigger, o.Status = session.TriggerImport, session.StatusDone
	fill := func(key string, of *session.ID) {
		if at, ok := c.Find(key); ok {
			*of = at.Session
		}
	}
	fill(o.ThroughKey, &o.ThroughSession)
	fill(o.FirstKeptKey, &o.FirstKeptSession)
	fill(o.Record.Key, &o.Record.Session)
	fill(o.At.Key, &o.At.Session)
	for i := range o.Pruned {
		fill(o.Pruned[i].Place.Key, &o.Pruned[i].Place.Session)
	}
	for _, piece := range o.Replaced {
		for i := range piece.Messages {
			fill(piece.Messages[i].Key, &piece.Messages[i].Session)
		}
	}
	c.batch.Compactions = append(c.batch.Compactions, o)
}

// Fresh is how many entries were new until now.
func (c *Conversation) Fresh() int { return c.fresh }

func (c *Conversation) empty() bool {
	b := &c.batch
	return len(b.Messages)+len(b.Calls)+len(b.Copied)+len(b.Compactions)+len(b.Marks)+len(b.Limits)+b.Records.Read == 0 &&
		c.Title == "" && c.Fields == nil
}

// flush stores what was gathered. New messages are stored with the head, as far as it is known: an import that is
// killed behind them finds nothing new at the next reading, and leaves the head alone.
func (c *Conversation) flush() {
	c.linkToParent()
	if c.fresh > 0 {
		c.setHead()
	}
	b := c.batch
	b.KeepHead = c.KeepHead
	c.batch = Batch{}
	b.Session = c.New
	if c.Here != nil {
		b.ID = c.Here.ID
	}
	c.given = true
	if c.in.err != nil {
		return
	}
	if err := c.in.emit(b); err != nil {
		c.in.Fail(fmt.Errorf("session %s: %w", c.New.SourceID, err))
	}
}

// linkToParent links a new session to the conversation that started it, which is stored first.
func (c *Conversation) linkToParent() {
	if c.parent == nil || c.Here != nil || c.given {
		return
	}
	if c.parent.Here == nil && !c.parent.given || c.startKey != "" && len(c.parent.batch.Messages) > 0 {
		c.parent.flush()
	}
	if parent := c.in.Session(c.parent.New.SourceID); parent != nil {
		c.New.ParentID, c.New.ParentKind = parent.ID, session.ParentChild
		if c.startKey != "" {
			c.New.Started = c.in.Message(parent.ID, c.startKey)
		}
	}
}

// setHead moves the head to the program's, if that is stored or about to be.
func (c *Conversation) setHead() {
	if at, ok := c.Find(c.Head); ok && c.Head != "" {
		c.batch.Head, c.batch.HeadSession = &at.Key, at.Session
	}
}

// finish stores the rest, with what the session is now.
func (c *Conversation) finish(cursor *Cursor) {
	b := &c.batch
	if c.Head != "" {
		moved := c.moved || c.in.part.Head != "" && c.in.part.Head != c.Head // in the program, since the last reading
		if c.fresh > 0 || c.Here == nil || c.in.before != nil || moved {
			c.setHead()
		}
		c.in.part.Head = c.Head
	}
	if c.Title != "" {
		b.Title = &c.Title
	}
	b.Fields = c.Fields
	if cursor != nil {
		b.Records.Add(c.in.records)
		b.Cursor, b.Sessions = cursor, c.in.sessions
	}
	c.flush()
}
