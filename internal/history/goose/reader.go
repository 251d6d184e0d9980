package goose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// conversation gives the messages of one session, from wherever they are.
type conversation interface {
	// scan yields all of them in the source's order. What a row points to is good until
	// the next one.
	scan(ctx context.Context, yield func(*row) error) error
	// load reads a record again. Of those after it the ones that are not known are likely to
	// be asked for next.
	load(ctx context.Context, l *records, i int) (*row, error)
	close() error
}

// reader carries one session into the store.
type reader struct {
	ctx   context.Context
	known history.Known
	emit  func(history.Batch) error
	path  string

	about   about
	from    conversation
	cuts    *history.Cuts // of it; nil: it is read whole
	ledger  ledger
	counted int // of its rows, by earlier readings
	origins func() ([]*session.Session, error)

	sourceID string
	created  *session.Time
	existing *session.Session
	records  *records
	shared   int // records at the beginning that are copies
	origin   *session.Session
	overlays []summarised
	markers  map[int]*summarised // the rows of compactions; with what it made, a summary
	again    map[int]int         // prompts that repeat another one
	repeated map[int]bool        // prompts that are repeated
	hidden   int                 // how many records at the beginning compactions hide
	pairs    []pair              // calls that summaries stand for
	paired   map[int]int         // their records, and those of the summaries
	told     int                 // pairs that were looked at for an overlay
	here     map[int]bool        // summaries of pairs that earlier readings had
	problems []history.Problem

	session    history.NewSession
	fields     *store.ImportFields
	superseded bool // the session came from a database, this is the older file
	last       int  // on the path: what the next message follows, -1: nothing
	fresh      int  // messages that are new
	batch      history.Batch
	size       int // bytes in batch
}

// run reads the session and gives its last batch with the cursor.
func (r *reader) run(cursor func() *history.Cursor) (err error) {
	defer history.Guard(&err)
	r.records = newRecords()
	defer r.records.close()
	defer func() { err = errors.Join(err, r.from.close()) }()
	s := scanner{records: r.records, cuts: r.cuts}
	if r.about.created != nil {
		s.last = *r.about.created
	}
	if err := r.from.scan(r.ctx, func(in *row) error { s.add(in); return r.ctx.Err() }); err != nil {
		return err
	}
	if _, isFile := r.from.(*lines); !isFile {
		r.records.inOrder()
	}
	r.last = -1
	r.begins()
	if err := r.recognise(); err != nil {
		return err
	}
	r.overlays = compactions(r.records)
	r.arrange()
	if err := r.open(); err != nil {
		return err
	}
	r.account()
	if err := r.messages(); err != nil {
		return err
	}
	return r.finish(cursor())
}

// begins finds the session's time: its own, else that of its first message.
func (r *reader) begins() {
	r.created = r.about.created
	if r.created != nil && !r.created.IsZero() {
		return
	}
	for i := range r.records.len() {
		if at := r.records.at(i).time(); !at.IsZero() {
			r.created = &at
			break
		}
	}
	if r.created == nil {
		r.created = &r.about.otherwise
	}
	if r.created.IsZero() { // nothing at all is known: SQLite's dates begin somewhere
		at := session.At(time.Unix(0, 0))
		r.created = &at
	}
	for i := range r.records.len() {
		if m := r.records.at(i); m.time().IsZero() {
			m.at = r.created.UnixMilli()
		}
	}
}

// identify finds the session that this one became. Goose gives an id again when the newest
// session of a day was deleted: then it is known by its time of creation, too.
func (r *reader) identify() error {
	r.sourceID = r.about.id
	for range 2 {
		found, err := r.known.Session(r.ctx, session.SourceGoose, r.sourceID)
		if err != nil || found == nil {
			return err
		}
		before := timeText(notesOf(found).String("created_at"))
		if before == nil || r.about.created == nil || before.Unix() == r.about.created.Unix() {
			r.existing = found
			return nil
		}
		r.sourceID = r.about.id + "@" + r.about.created.UTC().Format("20060102T150405Z")
	}
	return nil
}

// notesOf gives what was noted of a session when it was imported.
func notesOf(s *session.Session) history.Object {
	o, _ := history.ParseObject(s.Metadata)
	notes, _ := history.Fields(o.Get("goose"))
	return notes
}

func (r *reader) usageOf() string {
	if r.existing == nil {
		return ""
	}
	return notesOf(r.existing).String("usage")
}

// recognise finds what is here already: the session, its messages, what it was copied from.
func (r *reader) recognise() error {
	if err := r.identify(); err != nil {
		return err
	}
	own := newStored()
	defer own.Close()
	var err error
	if r.existing != nil {
		err = own.load(r.ctx, r.known, r.existing.ID)
	}
	if err == nil {
		own.index()
		err = r.fork(own)
	}
	if err != nil {
		return err
	}
	own.match(r.records, "msg_"+r.about.id+"_")
	return nil
}

func (r *reader) byID(id session.ID) (*session.Session, error) { return r.known.SessionByID(r.ctx, id) }

func notesHas(s *session.Session, key string) bool { return notesOf(s).Get(key) != nil }

// fork finds the session that this one is a copy of, as far as it goes.
func (r *reader) fork(own *stored) error {
	var candidates []*session.Session
	switch {
	case r.existing != nil && r.existing.ParentKind != session.ParentFork, r.about.parent != "", r.records.len() < history.LeastShared:
		return nil
	case r.existing != nil:
		origin, err := r.byID(r.existing.ParentID)
		if err != nil || origin == nil {
			return err
		}
		candidates = append(candidates, origin)
	case r.origins != nil:
		var err error
		if candidates, err = r.origins(); err != nil {
			return err
		}
	}
	origin, best, shared, err := history.Nearest(candidates,
		func(s *session.Session) (*stored, error) { return line(r.ctx, r.known, s) },
		func(all *stored) int {
			n := all.copied(r.records)
			r.records.uncopy(0, n)
			return n
		})
	if err != nil || origin == nil {
		return err
	}
	defer best.Close()
	r.origin, r.shared = origin, shared
	best.copied(r.records)
	if last := r.records.place(r.shared - 1).session; last != r.origin.ID {
		origin, err := r.byID(last)
		if err != nil {
			return err
		}
		r.origin = origin
	}
	for i := range r.shared { // what was said here before it was copied there stays
		if _, here := own.alike(r.records.at(i).hash); here {
			r.records.uncopy(i, r.shared)
			r.shared = i
			break
		}
	}
	return nil
}

// open says what the session is.
func (r *reader) open() error {
	a := &r.about
	notes := a.notes
	switch {
	case r.ledger.rows > 0:
		notes = append(notes, history.Field{Key: "usage", Raw: raw(`"ledger"`)})
	case a.balance != nil:
		notes = append(notes, history.Field{Key: "usage", Raw: raw(`"accumulated"`)})
	}
	if why := r.difference(); why != "" {
		r.problem(0, why)
	}
	r.session = history.NewSession{
		Source: session.SourceGoose, SourceID: r.sourceID, Directory: a.directory, CreatedAt: r.created, Kind: a.kind,
		Title: a.title, Provider: a.provider, Model: a.model,
		Metadata: history.Object{{Key: "goose", Raw: objectJSON(notes)}}.JSON(),
	}
	if a.title != "" {
		r.session.TitleSource = "source"
	}
	if r.origin != nil {
		r.session.ParentID, r.session.ParentKind = r.origin.ID, session.ParentFork
	}
	r.fields = &store.ImportFields{Provider: a.provider, Model: a.model, Metadata: objectJSON(notes), ArchivedAt: a.archived}
	if err := r.startedBy(); err != nil {
		return err
	}
	if r.existing != nil && a.inFile && string(notesOf(r.existing).Get("in_file")) != "true" {
		r.fields, r.superseded = nil, true // the database says it better
	}
	r.begin()
	switch {
	case r.existing == nil:
		r.batch.Records.Import(a.records)
	case r.superseded:
		r.batch.Records.Skip(skipSuperseded, a.records)
	default:
		r.batch.Records.Skip(history.SkipKnown, a.records)
	}
	return nil
}

// startedBy links the session to the one that started it. A circle, which a damaged database
// may have, is cut.
func (r *reader) startedBy() error {
	a := &r.about
	if a.parent == "" || a.parent == a.id || r.origin != nil {
		return nil
	}
	parent, err := r.known.Session(r.ctx, session.SourceGoose, a.parent)
	if err != nil || parent == nil {
		return err
	}
	if loop, err := history.ComesFrom(r.ctx, r.known, parent, r.existing); err != nil || loop {
		return err
	}
	r.session.ParentID, r.session.ParentKind = parent.ID, session.ParentChild
	r.fields.ParentID, r.fields.ParentKind = parent.ID, session.ParentChild
	if key := a.delegatedBy(); r.existing == nil && key != "" {
		r.session.Started, err = r.known.Message(r.ctx, parent.ID, key)
	}
	return err
}

// begin starts a batch.
func (r *reader) begin() {
	r.batch, r.size = history.Batch{Cuts: r.cuts}, 0
	r.batch.Session = r.session
	if r.existing != nil {
		r.batch.ID = r.existing.ID
	}
}

// account counts what is not read again: copies, and what is here already.
func (r *reader) account() {
	why := history.SkipKnown
	if r.superseded {
		why = skipSuperseded
	}
	for i := range r.records.len() {
		switch m := r.records.at(i); {
		case m.within != 0:
			r.batch.Records.Skip(skipCopy+r.origin.SourceID, 1)
		case m.known:
			r.batch.Records.Skip(why, 1)
		}
	}
}

// messages gives those that are new, each after the one before it.
func (r *reader) messages() error {
	reply := int32(-1)
	r.here = map[int]bool{}
	for _, p := range r.pairs {
		for _, i := range p.summaries {
			r.here[i] = r.records.at(i).known
		}
	}
	for i := range r.records.len() {
		if !r.records.at(i).known {
			if err := r.message(i); err != nil {
				return err
			}
		}
		m := r.records.at(i)
		if !m.aside {
			r.last = i
			if m.role == assistantRole && m.within == 0 && m.says.model {
				reply = int32(i)
			}
		}
		m.reply = reply
	}
	return nil
}

// parent is the message that the next one follows.
func (r *reader) parent() place {
	if r.last < 0 {
		return place{}
	}
	return r.records.place(r.last)
}

func (r *reader) message(i int) error {
	in, err := r.from.load(r.ctx, r.records, i)
	if err != nil {
		return err
	}
	m := r.records.record(i)
	if r.cuts.Size(in.content) > largest {
		r.batch.Records.Skip(skipLarge, 1)
		r.problem(m.id, fmt.Sprintf("message %s is larger than 64 MiB and was left out", m.key))
		r.records.at(i).aside = true // nothing hangs on it
		return nil
	}
	parent := r.parent()
	made := history.Message{Message: decode(&m, in, r.shown(i)), ParentKey: parent.key, ParentSession: parent.session}
	b := &r.batch
	b.Messages = append(b.Messages, made)
	r.fresh++
	if m.raw() {
		b.Records.KeepRaw(1)
		r.problem(m.id, fmt.Sprintf("%smessage %s: %s; kept raw", r.called(), m.key, m.why))
	} else {
		b.Records.Import(1)
	}
	if c := r.markers[i]; c != nil && c.through >= 0 {
		if err := r.replaced(i); err != nil { // it was made of what was left
			return err
		}
		if err := r.overlay(c); err != nil {
			return err
		}
	}
	if r.size += history.Size(&made); !history.Full(len(b.Messages), r.size) {
		return nil
	}
	return r.flush()
}

// flush gives the batch and begins the next.
func (r *reader) flush() error {
	if err := r.emit(r.batch); err != nil {
		return err
	}
	r.begin()
	return r.ctx.Err()
}

// called names the session in a problem, where a file holds several.
func (r *reader) called() string {
	if _, isFile := r.from.(*lines); isFile {
		return ""
	}
	return "session " + r.about.id + ", "
}

// largest is how much content the store takes in one piece.
const largest = 64 << 20

// finish gives the last batch: with the head, the title, the calls and the cursor.
func (r *reader) finish(cursor *history.Cursor) error {
	if err := r.replaced(r.records.len()); err != nil {
		return err
	}
	if !r.superseded {
		if err := r.calls(); err != nil {
			return err
		}
	}
	b := &r.batch
	if r.last >= 0 && (r.fresh > 0 || r.existing == nil) {
		head := r.parent()
		b.Head, b.HeadSession = &head.key, head.session
	}
	if !r.superseded {
		b.Fields = r.fields
		if r.about.title != "" {
			b.Title = &r.about.title
		}
	}
	if n := r.ledger.rows; n > 0 {
		had := min(n, r.counted)
		b.Records.Skip(history.SkipKnown, had)
		b.Records.Import(n - had)
	}
	b.Cursor = cursor
	return r.emit(*b)
}

func (r *reader) problem(line int64, why string) {
	if len(r.problems) >= history.MaxProblems {
		return
	}
	p := history.Problem{Path: r.path, Error: why}
	if _, isFile := r.from.(*lines); isFile {
		p.Line = int(line)
	}
	r.problems = append(r.problems, p)
}
