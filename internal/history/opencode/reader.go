package opencode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
	kept "sessiond/internal/store"
)

// reader carries one session into the store.
type reader struct {
	ctx   context.Context
	known history.Known
	emit  func(history.Batch) error
	path  string
	now   time.Time

	about   about
	from    conversation
	cuts    *history.Cuts                      // of it; nil: it is read whole
	origins func() ([]*session.Session, error) // what it may be a fork of; nil: nothing
	before  mark                               // what the last reading saw
	extra   history.Records                    // of the source, that are no messages

	existing *session.Session
	stored   *stored
	records  *records
	waits    bool // records at the end are unfinished: they were held back
	shared   int  // records at the beginning that are copies
	origin   *session.Session
	session  history.NewSession
	fields   *kept.ImportFields
	trusted  bool // no better store had the session
	last     int  // on the path: what the next message follows, -1: nothing
	head     place
	requests map[string]int // of compactions, the newest of each id until now
	tails    map[string]int // messages from which on something was kept: where they stand
	line     int            // records at the beginning up to the head
	fresh    int
	batch    history.Batch
	size     int
	problems []history.Problem
	until    int64 // when outputs were last pruned, in milliseconds
}

// run reads the session and gives its last batch with the cursor that now makes.
func (r *reader) run(now func(*reader) *history.Cursor) (err error) {
	defer history.Guard(&err)
	r.records, r.stored = newRecords(), newStored()
	defer r.records.close()
	defer func() { r.stored.Close() }()
	defer func() { err = errors.Join(err, r.from.close()) }()
	err = r.from.scan(r.ctx, func(in *message) error {
		m := recordOf(in, r.cuts)
		r.records.add(&m)
		return r.ctx.Err()
	})
	if err != nil {
		return err
	}
	r.times()
	r.records.inOrder()
	r.wait()
	if err := r.recognise(); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	if err := r.messages(); err != nil {
		return err
	}
	return r.finish(now)
}

// times gives messages without a time that of the one before, and the session its own.
func (r *reader) times() {
	last, first := r.about.created, session.Time{}
	for i := range r.records.n {
		m := r.records.at(i)
		if m.time().IsZero() {
			m.at = last.UnixMilli()
		}
		if last = m.time(); !last.IsZero() && (first.IsZero() || last.Before(first.Time)) {
			first = last
		}
	}
	if r.about.created.IsZero() {
		if r.about.created = first; first.IsZero() {
			r.about.created = session.At(time.Unix(0, 0))
		}
	}
	for i := range r.records.n {
		if m := r.records.at(i); m.time().IsZero() {
			m.at = r.about.created.UnixMilli()
		}
	}
}

// wait holds back a reply that may still be written, and what comes after it.
func (r *reader) wait() {
	newest, open := r.about.updated, -1
	for i := range r.records.n {
		m := r.records.at(i)
		if at := m.time(); at.After(newest.Time) {
			newest = at
		}
		if m.open && open < 0 {
			open = i
		}
	}
	if open >= 0 && r.now.Sub(newest.Time) < quietAfter {
		r.records.n, r.waits = open, true
	}
}

// recognise finds what is here already: the session, its messages, what it was copied from.
func (r *reader) recognise() (err error) {
	if r.existing, err = r.known.Session(r.ctx, session.SourceOpencode, r.about.id); err != nil {
		return err
	}
	r.trusted = true
	if r.existing != nil {
		r.trusted = r.about.store >= storeOf(notesOf(r.existing).String("store"))
		r.stored.withParts = !r.trusted
		if err := r.stored.load(r.ctx, r.known, r.existing); err != nil {
			return err
		}
	}
	if err := r.fork(); err != nil {
		return err
	}
	r.stored.match(r.records, r.trusted)
	if r.trusted { // nothing more is asked of them
		r.stored.Close()
	}
	return nil
}

// open says what the session is.
func (r *reader) open() error {
	a := &r.about
	notes := a.notes
	notes = append(notes, history.Field{Key: "store", Raw: raw(session.JSONOf(a.store.String()))})
	if a.redacted {
		notes = append(notes, history.Field{Key: "redacted", Raw: raw("true")})
	}
	r.session = history.NewSession{
		Source: session.SourceOpencode, SourceID: a.id, Directory: clean(a.directory), CreatedAt: &a.created, Kind: "chat",
		Title: a.named(), Project: a.worktree, Provider: a.provider, Model: a.model,
		Metadata: history.Object{{Key: "opencode", Raw: objectJSON(notes)}}.JSON(),
	}
	if r.session.Title != "" {
		r.session.TitleSource = "source"
	}
	if a.parent != "" {
		r.session.Kind = "subagent"
	}
	if r.trusted {
		r.fields = &kept.ImportFields{Provider: a.provider, Model: a.model, Metadata: objectJSON(notes), ArchivedAt: a.archived}
	}
	if err := r.family(); err != nil {
		return err
	}
	r.begin()
	if r.existing == nil {
		r.batch.Records.Import(a.records)
	} else {
		r.batch.Records.Skip(r.why(), a.records)
	}
	r.batch.Records.Add(r.extra)
	for i := range r.records.n {
		switch m := *r.records.at(i); {
		case m.within != 0:
			r.batch.Records.Skip(skipCopy+r.origin.SourceID, int(m.records))
		case m.known && len(r.lost(i)) == 0:
			r.batch.Records.Skip(r.why(), int(m.records))
		}
	}
	if r.waits {
		r.batch.Records.Wait(r.records.count(r.records.n, r.records.table.Len()))
	}
	return nil
}

// why says why what is here is not read again.
func (r *reader) why() string {
	if r.trusted {
		return history.SkipKnown
	}
	return skipNewer
}

// lost are the parts of a known message that only an older store has.
func (r *reader) lost(i int) map[string]bool {
	if r.trusted || r.records.at(i).within != 0 {
		return nil
	}
	return r.stored.missing(r.records, i)
}

// family links the session to the one that started it, or that it was forked from.
func (r *reader) family() error {
	if r.origin != nil {
		r.session.ParentID, r.session.ParentKind = r.origin.ID, session.ParentFork
		return nil
	}
	if r.about.parent == "" || r.about.parent == r.about.id {
		return nil
	}
	parent, err := r.known.Session(r.ctx, session.SourceOpencode, r.about.parent)
	if err != nil || parent == nil {
		return err
	}
	if loop, err := history.ComesFrom(r.ctx, r.known, parent, r.existing); err != nil || loop {
		return err // a circle is cut at the older one
	}
	r.session.ParentID, r.session.ParentKind = parent.ID, session.ParentChild
	if r.existing == nil {
		if err := r.started(parent.ID); err != nil {
			return err
		}
	}
	if r.fields != nil {
		r.fields.ParentID, r.fields.ParentKind = parent.ID, session.ParentChild
	}
	return nil
}

// started finds the call of the parent that started the session: its result names it.
func (r *reader) started(parent session.ID) error {
	id := []byte(r.about.id)
	return r.known.Entries(r.ctx, parent, func(m *session.Message) bool {
		for _, p := range m.Calls() {
			if bytes.Contains(p.Extra, id) {
				r.session.Started, r.session.StartedCall = &m.ID, p.CallID
				return false
			}
		}
		return true
	})
}

// begin starts a batch.
func (r *reader) begin() {
	r.batch, r.size = history.Batch{Cuts: r.cuts}, 0
	r.batch.Session = r.session
	if r.existing != nil {
		r.batch.ID = r.existing.ID
	}
}

// messages gives those that are new, each after the one before it. The head is the last one
// before the mark of a revert.
func (r *reader) messages() error {
	reverted := false
	r.last = -1
	r.keeps()
	for i := range r.records.n {
		m := *r.records.at(i)
		reverted = reverted || r.about.revert != "" && r.records.texts.Get(m.id) == r.about.revert
		r.records.at(i).plain = int32(r.last)
		if !m.known {
			if err := r.message(i); err != nil {
				return err
			}
		} else if lost := r.lost(i); len(lost) > 0 {
			if err := r.remainder(i, lost); err != nil {
				return err
			}
		}
		if !r.records.at(i).aside {
			r.last = i
			if !reverted {
				r.head, r.line = r.records.last(i), i+1
			}
		}
		if err := r.overlay(i); err != nil {
			return err
		}
	}
	return nil
}

// follows is where the next message hangs.
func (r *reader) follows() place {
	if r.last < 0 {
		return place{}
	}
	return r.records.last(r.last)
}

func (r *reader) message(i int) error {
	in, err := r.from.load(r.ctx, r.records, i)
	if err != nil {
		return err
	}
	m := r.records.record(i)
	size := r.cuts.Size(in.data)
	for i := range in.parts {
		size += r.cuts.Size(in.parts[i].data)
	}
	if size > history.MaxLine {
		r.batch.Records.Skip(skipLarge, m.records)
		r.problem(fmt.Sprintf("session %s, message %s is larger than 64 MiB and was left out", r.about.id, m.id))
		r.records.at(i).aside = true // nothing hangs on it
		return nil
	}
	author := session.Person
	if r.about.parent != "" {
		author = session.Model
	}
	made := decode(&m, in, setting{author: author})
	parent := r.follows()
	made.messages[0].ParentKey, made.messages[0].ParentSession = parent.key, parent.session
	if m.why != "" {
		r.batch.Records.KeepRaw(m.records)
		r.problem(fmt.Sprintf("session %s, message %s: %s; kept raw", r.about.id, m.id, m.why))
	} else {
		r.batch.Records.Import(m.records)
		last := history.TextAt(0)
		if n := len(made.messages); n > 1 {
			last = r.records.texts.Put(made.messages[n-1].ExternalID)
		}
		r.records.at(i).last = last
	}
	if made.call != nil {
		made.call.Directory = clean(r.about.directory)
		r.batch.Calls = append(r.batch.Calls, *made.call)
	}
	r.fresh++
	return r.add(made.messages)
}

// add puts messages into the batch, and gives it away when it is full.
func (r *reader) add(messages []history.Message) error {
	r.batch.Messages = append(r.batch.Messages, messages...)
	for i := range messages {
		r.size += history.Size(&messages[i])
	}
	if !history.Full(len(r.batch.Messages), r.size) {
		return nil
	}
	if err := r.emit(r.batch); err != nil {
		return err
	}
	r.begin()
	return r.ctx.Err()
}

// remainder keeps the parts that only an older store has of a message, beside it.
func (r *reader) remainder(i int, lost map[string]bool) error {
	m := r.records.record(i)
	in, err := r.from.load(r.ctx, r.records, i)
	if err != nil {
		return err
	}
	var text []byte
	n := 0
	for i := range in.parts {
		if lost[in.parts[i].id] {
			text = append(append(text, in.parts[i].data...), '\n')
			n++
		}
	}
	rest := history.Verbatim(text, "parts of "+m.key+" that the newer store does not have")
	key := m.key + "+" + m.hash[:12]
	if r.stored.has(key) {
		r.batch.Records.Skip(r.why(), m.records)
		return nil
	}
	rest.Dialect, rest.ExternalID, rest.CreatedAt = "opencode", key, m.at
	r.batch.Records.KeepRaw(n)
	r.batch.Records.Skip(r.why(), m.records-n)
	r.fresh++
	return r.add([]history.Message{{Message: rest, ParentKey: r.records.last(i).key}})
}

func (r *reader) problem(why string) {
	if len(r.problems) < history.MaxProblems {
		r.problems = append(r.problems, history.Problem{Path: r.path, Error: why})
	}
}

// finish gives the last batch: with the head, the title and the cursor.
func (r *reader) finish(now func(*reader) *history.Cursor) error {
	if err := r.prunings(math.MaxInt64); err != nil {
		return err
	}
	b := &r.batch
	moved := r.head.key != r.before.Head && r.before.Head != ""
	switch {
	case !r.trusted && r.fresh > 0:
		if r.stored.head.key != "" { // an older store does not move it
			b.Head, b.HeadSession = &r.stored.head.key, ""
		}
	case r.trusted && (r.fresh > 0 || moved || r.existing == nil) && r.head.key != "":
		b.Head, b.HeadSession = &r.head.key, r.head.session
	}
	if r.trusted {
		b.Fields = r.fields
		if title := r.about.named(); title != "" {
			b.Title = &title
		}
	}
	b.Cursor = now(r)
	return r.emit(*b)
}
