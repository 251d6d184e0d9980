package opencode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
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
	origins func() ([]*session.Session, error) // what it may be a fork of; nil: nothing
	before  mark                               // what the last reading saw
	extra   history.Records                    // of the source, that are no messages

	existing *session.Session
	stored   *stored
	records  []record
	waiting  []record // unfinished, and what comes after
	shared   int      // records at the beginning that are copies
	origin   *session.Session
	session  history.NewSession
	fields   *kept.ImportFields
	trusted  bool // no better store had the session
	last     place
	head     place
	fresh    int
	batch    history.Batch
	size     int
	problems []history.Problem
}

// mark is what the cursor of a session remembers, to see whether it changed.
type mark struct {
	Mark   string `json:"mark"`
	Reads  int    `json:"reads"`
	Copies int    `json:"copies,omitempty"` // records
	Of     string `json:"of,omitempty"`     // what they are copies of
	Head   string `json:"head,omitempty"`   // where the source's head was

	Records int `json:"records,omitempty"` // all of them
}

// run reads the session and gives its last batch with the cursor that now makes.
func (r *reader) run(now func(*reader) *history.Cursor) (err error) {
	defer func() { err = errors.Join(err, r.from.close()) }()
	err = r.from.scan(r.ctx, func(in *message) error {
		r.records = append(r.records, recordOf(in))
		return r.ctx.Err()
	})
	if err != nil {
		return err
	}
	r.times()
	slices.SortStableFunc(r.records, func(a, b record) int { return before(&a, &b) })
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
	last := r.about.created
	for i := range r.records {
		if r.records[i].at.IsZero() {
			r.records[i].at = last
		}
		last = r.records[i].at
	}
	if r.about.created.IsZero() {
		r.about.created = session.At(time.Unix(0, 0))
		for i := range r.records {
			if at := r.records[i].at; !at.IsZero() && (r.about.created.Unix() == 0 || at.Before(r.about.created.Time)) {
				r.about.created = at
			}
		}
	}
	for i := range r.records {
		if r.records[i].at.IsZero() {
			r.records[i].at = r.about.created
		}
	}
}

// wait holds back a reply that may still be written, and what comes after it.
func (r *reader) wait() {
	newest := r.about.updated
	for i := range r.records {
		if r.records[i].at.After(newest.Time) {
			newest = r.records[i].at
		}
	}
	if r.now.Sub(newest.Time) >= quietAfter {
		return
	}
	if i := slices.IndexFunc(r.records, func(m record) bool { return m.open }); i >= 0 {
		r.records, r.waiting = r.records[:i], r.records[i:]
	}
}

// recognise finds what is here already: the session, its messages, what it was copied from.
func (r *reader) recognise() (err error) {
	if r.existing, err = r.known.Session(r.ctx, session.SourceOpencode, r.about.id); err != nil {
		return err
	}
	r.stored, r.trusted = &stored{}, true
	if r.existing != nil {
		if err := r.stored.load(r.ctx, r.known, r.existing); err != nil {
			return err
		}
		r.trusted = r.about.store >= storeOf(notesOf(r.existing).String("store"))
	}
	if err := r.fork(); err != nil {
		return err
	}
	r.stored.match(r.records, r.trusted)
	return nil
}

// leastShared is how many equal messages make a fork: one alone may be a coincidence.
const leastShared = 2

// fork finds the session that this one is a copy of, as far as it goes. opencode keeps no
// link.
func (r *reader) fork() error {
	var candidates []*session.Session
	switch {
	case r.existing != nil && r.existing.ParentKind != session.ParentFork, r.about.parent != "":
		return nil
	case r.existing != nil:
		origin, err := r.known.SessionByID(r.ctx, r.existing.ParentID)
		if err != nil || origin == nil {
			return err
		}
		candidates = append(candidates, origin)
	case len(r.records) >= leastShared:
		var err error
		if candidates, err = r.candidates(); err != nil {
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
	last := r.records[r.shared-1].within
	if last == r.origin.ID {
		return nil
	}
	origin, err := r.known.SessionByID(r.ctx, last)
	if err == nil && origin != nil {
		r.origin = origin
	}
	return err
}

// candidates are the older sessions that this one may be a copy of: those that begin at the
// same moment, and the one that has its calls.
func (r *reader) candidates() (found []*session.Session, err error) {
	if r.origins != nil {
		if found, err = r.origins(); err != nil {
			return nil, err
		}
	}
	for i := range r.records {
		if r.records[i].call == "" {
			continue
		}
		owner, err := r.known.CallOwner(r.ctx, session.SourceOpencode, r.records[i].call)
		if err != nil || owner == "" {
			return found, err
		}
		origin, err := r.known.SessionByID(r.ctx, owner)
		if err == nil && origin != nil && origin.CreatedAt.Before(r.about.created.Time) {
			found = append(found, origin)
		}
		return found, err
	}
	return found, nil
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
	for i := range r.records {
		switch m := &r.records[i]; {
		case m.within != "":
			r.batch.Records.Skip(skipCopy+r.origin.SourceID, m.records)
		case m.known && len(r.lost(m)) == 0:
			r.batch.Records.Skip(r.why(), m.records)
		}
	}
	for i := range r.waiting {
		r.batch.Records.Skip(skipUnfinished, r.waiting[i].records)
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
func (r *reader) lost(m *record) map[string]bool {
	if r.trusted || m.within != "" {
		return nil
	}
	return r.stored.missing(m)
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
	above := parent
	for n := 0; r.existing != nil && above != nil && n < maxForks; n++ {
		if above.ID == r.existing.ID {
			return nil // a circle is cut at the older one
		}
		if above.ParentID == "" {
			break
		}
		if above, err = r.known.SessionByID(r.ctx, above.ParentID); err != nil {
			return err
		}
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
	r.batch, r.size = history.Batch{}, 0
	r.batch.Session = r.session
	if r.existing != nil {
		r.batch.ID = r.existing.ID
	}
}

// messages gives those that are new, each after the one before it. The head is the last one
// before the mark of a revert.
func (r *reader) messages() error {
	reverted := false
	for i := range r.records {
		m := &r.records[i]
		reverted = reverted || r.about.revert != "" && m.id == r.about.revert
		if !m.known {
			if err := r.message(i); err != nil {
				return err
			}
		} else if lost := r.lost(m); len(lost) > 0 {
			if err := r.remainder(i, lost); err != nil {
				return err
			}
		}
		if m.why == "" {
			r.last = place{m.within, m.last}
			if !reverted {
				r.head = r.last
			}
		}
		if err := r.overlay(i); err != nil {
			return err
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
	size := len(in.data)
	for i := range in.parts {
		size += len(in.parts[i].data)
	}
	if size > history.MaxLine {
		r.batch.Records.Skip(skipLarge, m.records)
		r.problem(fmt.Sprintf("session %s, message %s is larger than 60 MB and was left out", r.about.id, m.id))
		m.why = skipLarge // nothing hangs on it
		return nil
	}
	author := session.Person
	if r.about.parent != "" {
		author = session.Model
	}
	made := decode(m, in, setting{author: author})
	made.messages[0].ParentKey, made.messages[0].ParentSession = r.last.key, r.last.session
	if m.why != "" {
		r.batch.Records.KeepRaw(m.records)
		r.problem(fmt.Sprintf("session %s, message %s: %s; kept raw", r.about.id, m.id, m.why))
	} else {
		r.batch.Records.Import(m.records)
		m.last = made.messages[len(made.messages)-1].ExternalID
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
	if len(r.batch.Messages) < history.MaxBatch && r.size < history.MaxBatchBytes {
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
	m := &r.records[i]
	in, err := r.from.load(r.ctx, r.records[i:])
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
	if _, here := r.stored.last[key]; here {
		r.batch.Records.Skip(r.why(), m.records)
		return nil
	}
	rest.Dialect, rest.ExternalID, rest.CreatedAt = "opencode", key, m.at
	r.batch.Records.KeepRaw(n)
	r.batch.Records.Skip(r.why(), m.records-n)
	r.fresh++
	return r.add([]history.Message{{Message: rest, ParentKey: m.last}})
}

func (r *reader) problem(why string) {
	if len(r.problems) < history.MaxProblems {
		r.problems = append(r.problems, history.Problem{Path: r.path, Error: why})
	}
}

// finish gives the last batch: with the head, the title and the cursor.
func (r *reader) finish(now func(*reader) *history.Cursor) error {
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

// state is what the session's cursor remembers.
func (r *reader) state(changed string) session.JSON {
	m := mark{Mark: changed, Reads: reads, Head: r.head.key}
	if len(r.waiting) > 0 {
		m.Mark = "" // look again
	}
	m.Records = r.about.records + r.extra.Read
	for _, of := range [][]record{r.records, r.waiting} {
		for i := range of {
			m.Records += of[i].records
		}
	}
	for i := range r.records[:r.shared] {
		m.Copies += r.records[i].records
	}
	if r.origin != nil {
		m.Of = r.origin.SourceID
	}
	return session.JSONOf(m)
}
