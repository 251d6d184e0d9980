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
	// load reads the first of the records again. Of the others those that are not known are
	// likely to be asked for next.
	load(ctx context.Context, r []record) (*row, error)
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
	entries []entry // of the usage ledger
	counted int     // of them, by earlier readings
	origins func() ([]*session.Session, error)

	sourceID string
	created  *session.Time
	existing *session.Session
	records  []record
	shared   int // records at the beginning that are copies
	origin   *session.Session
	overlays []summarised
	show     map[int]shown
	problems []history.Problem

	session    history.NewSession
	fields     *store.ImportFields
	superseded bool  // the session came from a database, this is the older file
	last       place // on the path: what the next message follows
	fresh      int   // messages that are new
	batch      history.Batch
	size       int // bytes in batch
}

// run reads the session and gives its last batch with the cursor.
func (r *reader) run(cursor func() *history.Cursor) (err error) {
	defer func() { err = errors.Join(err, r.from.close()) }()
	created := r.about.created
	if created == nil {
		created = &session.Time{}
	}
	s := newScanner(*created)
	if err := r.from.scan(r.ctx, func(in *row) error { s.add(in); return r.ctx.Err() }); err != nil {
		return err
	}
	r.records = s.records
	if _, isFile := r.from.(*lines); !isFile {
		r.records = inOrder(r.records)
	}
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
	for i := range r.records {
		if at := r.records[i].at; !at.IsZero() {
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
	for i := range r.records {
		if r.records[i].at.IsZero() {
			r.records[i].at = *r.created
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
	own := &stored{}
	var err error
	if r.existing != nil {
		err = own.load(r.ctx, r.known, r.existing.ID)
	}
	if err == nil {
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

// leastShared is how many equal messages make a fork: one alone may be a coincidence.
const leastShared = 2

// fork finds the session that this one is a copy of, as far as it goes.
func (r *reader) fork(own *stored) error {
	var candidates []*session.Session
	switch {
	case r.existing != nil && r.existing.ParentKind != session.ParentFork, r.about.parent != "", len(r.records) < leastShared:
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
	var best *stored
	for _, candidate := range candidates {
		all, err := line(r.ctx, r.known, candidate)
		if err != nil {
			return err
		}
		if n := all.copied(r.records); n > r.shared && n >= leastShared {
			r.shared, r.origin, best = n, candidate, all
		}
		uncopy(r.records)
	}
	if best == nil {
		return nil
	}
	best.copied(r.records)
	if last := r.records[r.shared-1].within; last != r.origin.ID {
		origin, err := r.byID(last)
		if err != nil {
			return err
		}
		r.origin = origin
	}
	for i := range r.shared { // what was said here before it was copied there stays
		if _, here := own.says[r.records[i].hash]; here {
			uncopy(r.records[i:])
			r.shared = i
			break
		}
	}
	return nil
}

// arrange says how the records stand: which are of a compaction, hidden, said again.
func (r *reader) arrange() {
	r.show = map[int]shown{}
	hidden := -1
	prompts := map[uint64]int{}
	for k := range r.overlays {
		c := &r.overlays[k]
		if k > 0 {
			c.previous = r.overlays[k-1].through + 1
		}
		r.show[c.summary] = shown{marker: true}
		if c.proceed >= 0 {
			r.show[c.proceed] = shown{marker: true}
		}
		hidden = c.summary
	}
	for i := range r.records {
		m, how := &r.records[i], r.show[i]
		how.hidden = i < hidden
		how.author = r.about.author
		if i > hidden && i > 0 && !how.marker && isSummary(m) && r.betweenPairs(i) {
			how.between, how.note = true, "stands for calls that the model does not see any more"
		}
		if m.role == "user" && m.text != 0 && !how.marker {
			if first, ok := prompts[m.text]; ok && r.repeats(i) {
				how.again = r.records[first].key
			}
			prompts[m.text] = i
		}
		r.show[i] = how
	}
}

// betweenPairs tells whether the calls just before a summary are hidden from the model.
func (r *reader) betweenPairs(i int) bool {
	before := before(r.records, i)
	return before >= 0 && !r.records[before].agent && (r.records[before].says.results || r.records[before].says.calls)
}

// repeats tells whether a prompt follows a compaction, which says the last one again.
func (r *reader) repeats(i int) bool {
	for _, c := range r.overlays {
		if c.kept == i {
			return true
		}
	}
	return false
}

// open says what the session is.
func (r *reader) open() error {
	a := &r.about
	notes := a.notes
	switch {
	case len(r.entries) > 0:
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
	if a.parent != "" && a.parent != a.id && r.origin == nil {
		parent, err := r.known.Session(r.ctx, session.SourceGoose, a.parent)
		if err != nil {
			return err
		}
		loop, err := r.above(parent)
		if err != nil {
			return err
		}
		if parent != nil && !loop {
			r.session.ParentID, r.session.ParentKind = parent.ID, session.ParentChild
			r.fields.ParentID, r.fields.ParentKind = parent.ID, session.ParentChild
			if key := a.delegatedBy(); r.existing == nil && key != "" {
				if r.session.Started, err = r.known.Message(r.ctx, parent.ID, key); err != nil {
					return err
				}
			}
		}
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

// above tells whether a parent lies below the session itself: a damaged database may say so.
func (r *reader) above(parent *session.Session) (loop bool, err error) {
	for n := 0; parent != nil && r.existing != nil && n < maxForks; n++ {
		if parent.ID == r.existing.ID {
			return true, nil
		}
		if parent.ParentID == "" {
			break
		}
		if parent, err = r.byID(parent.ParentID); err != nil {
			return false, err
		}
	}
	return false, nil
}

// begin starts a batch.
func (r *reader) begin() {
	r.batch, r.size = history.Batch{}, 0
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
	for i := range r.records {
		switch m := &r.records[i]; {
		case m.within != "":
			r.batch.Records.Skip(skipCopy+r.origin.SourceID, 1)
		case m.known:
			r.batch.Records.Skip(why, 1)
		}
	}
}

// messages gives those that are new, each after the one before it.
func (r *reader) messages() error {
	for i := range r.records {
		m := &r.records[i]
		if !m.known {
			if err := r.message(i); err != nil {
				return err
			}
		}
		if !m.raw() {
			r.last = place{m.within, m.key}
		}
	}
	return nil
}

func (r *reader) message(i int) error {
	m := &r.records[i]
	in, err := r.from.load(r.ctx, r.records[i:])
	if err != nil {
		return err
	}
	if len(in.content) > largest {
		r.batch.Records.Skip(skipLarge, 1)
		r.problem(m.id, fmt.Sprintf("message %s is larger than 64 MiB and was left out", m.key))
		m.why = skipLarge // nothing hangs on it
		return nil
	}
	made := history.Message{Message: decode(m, in, r.show[i]), ParentKey: r.last.key, ParentSession: r.last.session}
	b := &r.batch
	b.Messages = append(b.Messages, made)
	r.fresh++
	if m.raw() {
		b.Records.KeepRaw(1)
		r.problem(m.id, fmt.Sprintf("%smessage %s: %s; kept raw", r.called(), m.key, m.why))
	} else {
		b.Records.Import(1)
	}
	for _, c := range r.overlays {
		if c.summary == i && c.through >= 0 {
			if err := r.overlay(&c); err != nil {
				return err
			}
		}
	}
	if r.size += history.Size(&made); len(b.Messages) < history.MaxBatch && r.size < history.MaxBatchBytes {
		return nil
	}
	if err := r.emit(*b); err != nil {
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
	b := &r.batch
	if r.fresh > 0 || r.existing == nil {
		if r.last.key != "" {
			b.Head, b.HeadSession = &r.last.key, r.last.session
		}
	}
	if !r.superseded {
		b.Fields = r.fields
		if r.about.title != "" {
			b.Title = &r.about.title
		}
		b.Calls = r.calls()
	}
	if n := len(r.entries); n > 0 {
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
