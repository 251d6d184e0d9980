package pi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// state is what a cursor of pi remembers beside the offset.
type state struct {
	// Adopted is how many entries, from the file's first one on, were stored when the file
	// was of version 1 and are named as they were then; but for those in Except.
	Adopted int   `json:"adopted,omitempty"`
	Except  []int `json:"except,omitempty"`
	// Shared are the runs of entries that lie in sessions which this one was forked from.
	Shared []shared `json:"shared,omitempty"`
	// Awaits is the session that this one was forked from, where it is not here yet.
	Awaits string `json:"awaits,omitempty"`
}

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) (problems []history.Problem, err error) {
	defer history.Guard(&err)
	file, info, err := history.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() == 0 {
		return nil, session.Errorf(session.Invalid, "the file is empty")
	}
	cuts := history.NewCuts(file, found, CutRule())
	for {
		r, err := s.open(ctx, file, info, cursor, known, cuts)
		if err != nil {
			return nil, err
		}
		r.cursor.Path, r.emit = found.Path, emit
		err = r.run(r.continues)
		r.nodes.Close()
		r.names.Close()
		if errors.Is(err, errForgotten) && cursor != nil {
			cursor = nil
			continue
		}
		return r.problems, err
	}
}

// open makes the reader of a file, from where the cursor says if that is still so.
func (s *Source) open(ctx context.Context, file *os.File, info os.FileInfo, cursor *history.Cursor, known history.Known, cuts *history.Cuts) (*reader, error) {
	sc, existing, err := s.survey(ctx, file, info.Size(), cursor, known, cuts)
	if err == nil && sc.stale {
		cursor = nil
		sc, existing, err = s.survey(ctx, file, info.Size(), nil, known, cuts)
	}
	if err != nil {
		return nil, err
	}
	modified := session.At(info.ModTime())
	r := &reader{
		scanned: sc, existing: existing, ctx: ctx, known: known, continues: cursor != nil,
		cursor: history.Cursor{Source: session.SourcePi, Size: info.Size(), ModifiedAt: &modified, Offset: sc.offset, Hash: sc.hash},
	}
	if cursor != nil {
		r.cursor.Counts, r.cursor.State = cursor.Counts, cursor.State
	}
	return r, nil
}

// survey scans the file and looks its session up. A cursor is stale, too, when the session
// that it belongs to is gone.
func (s *Source) survey(ctx context.Context, file *os.File, size int64, cursor *history.Cursor, known history.Known, cuts *history.Cuts) (*scanned, *session.Session, error) {
	sc, err := scan(ctx, file, size, cursor, cuts)
	if err != nil || sc.stale {
		return sc, nil, err
	}
	existing, err := known.Session(ctx, session.SourcePi, sc.header.String("id"))
	sc.stale = cursor != nil && existing == nil
	return sc, existing, err
}

// reader carries one file through the second pass.
type reader struct {
	*scanned
	ctx       context.Context
	known     history.Known
	emit      func(history.Batch) error
	cursor    history.Cursor
	continues bool // the cursor's reading goes on
	state     state
	existing  *session.Session
	session   history.NewSession
	batch     history.Batch
	size      int        // bytes in batch
	older     bool       // everything in the file is here under newer names
	late      []entry    // labels of entries that come after them
	awaits    string     // the source id of an origin that is not here
	linked    session.ID // an origin that was not here when the session came
	given     int        // messages that were given
	problems  []history.Problem
	buffer    []byte
}

func (r *reader) run(continues bool) error {
	if err := r.recognise(continues); err != nil {
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}
	if err := r.findTails(); err != nil {
		return err
	}
	d := &decoder{scanned: r.scanned, directory: r.session.Directory, last: *r.session.CreatedAt}
	copied, err := r.share(d, continues)
	if err != nil {
		return err
	}
	r.begin()
	r.batch.Records, r.batch.Marks, r.batch.Compactions = r.records, copied.marks, copied.compactions
	for i := range r.order {
		if err := r.take(d, i); err != nil {
			return err
		}
	}
	return r.finish(continues)
}

func (r *reader) begin() {
	used := r.batch
	clear(used.Messages) // one may have been large
	r.batch = history.Batch{Cuts: r.cuts}
	r.batch.Messages, r.batch.Calls = used.Messages[:0], used.Calls[:0]
	r.batch.Session = r.session
	if r.existing != nil {
		r.batch.ID = r.existing.ID
	}
	r.size = 0
}

// take decodes an entry into the batch and gives the batch away when it is full.
func (r *reader) take(d *decoder, i int32) error {
	n := r.nodes.At(i)
	e, size, err := r.entry(d, i)
	if err != nil {
		return err
	}
	if r.failed != nil {
		return fmt.Errorf("read its lines again: %w", r.failed)
	}
	if size > 1<<20 {
		r.buffer = nil // the store need not wait beside it
	}
	switch {
	case len(r.problems) >= history.MaxProblems:
	case e.problem != "":
		r.problems = append(r.problems, history.Problem{Path: r.cursor.Path, Line: int(n.line), Error: e.problem + "; kept raw"})
	case n.cut == cutCycle:
		r.problems = append(r.problems, history.Problem{Path: r.cursor.Path, Line: int(n.line), Error: "its parent is one of its own descendants: the cycle is cut here"})
	}
	b := &r.batch
	b.Messages = append(b.Messages, e.message)
	r.given++
	b.Calls = append(b.Calls, e.calls...)
	switch {
	case e.mark == nil:
	case e.early:
		r.late = append(r.late, entry{mark: e.mark, marked: e.marked})
	default:
		b.Marks = append(b.Marks, *e.mark)
	}
	if e.compaction != nil {
		b.Compactions = append(b.Compactions, *e.compaction)
	}
	if e.raw {
		b.Records.KeepRaw(1)
	} else {
		b.Records.Import(1)
	}
	if r.size += history.Size(&e.message); !history.Full(len(b.Messages), r.size) {
		return nil
	}
	if err := r.emit(*b); err != nil {
		return err
	}
	r.begin()
	return r.ctx.Err()
}

// entry decodes an entry, of a size in bytes, as the first pass took it apart, or from the file.
func (r *reader) entry(d *decoder, i int32) (e entry, size int, err error) {
	n := r.nodes.At(i)
	if line, t, ok := r.held.Take(n.offset); ok && n.kind != entryBroken {
		return d.talkOf(i, line, t, true), len(line), nil
	}
	line, err := r.line(n)
	if err != nil {
		return e, 0, err
	}
	return d.decode(i, line), len(line), nil
}

// line reads an entry's bytes again. They are good until the next call.
func (r *reader) line(n *node) ([]byte, error) {
	line, err := r.cuts.ReadAgain(r.file, r.buffer, n.offset, n.size)
	if err != nil {
		return nil, fmt.Errorf("read line %d again: %w", n.line, err)
	}
	r.buffer = line
	return line, nil
}

// finish gives the last batch: with the head, the title and the cursor.
func (r *reader) finish(continues bool) error {
	// A copy of a fork that has nothing of its own says nothing of where the fork is now.
	empty := r.given == 0 && r.existing != nil && !continues
	if head := r.leaf(); head >= 0 && !r.older && !empty {
		key := r.keyOf(head)
		r.batch.Head, r.batch.HeadSession = &key, r.sharedIn(head)
	}
	if (r.named || !continues) && !r.older && !empty {
		if r.title != "" {
			r.batch.Title = &r.title
		} else if r.named && r.existing != nil {
			r.batch.Title = &r.session.Title
		}
	}
	if r.linked != "" {
		r.batch.Fields = &history.Changes{ParentID: r.linked, ParentKind: session.ParentFork}
	}
	if r.existing != nil && r.existing.Model == "" && r.session.Model != "" { // all that it has are copies
		if r.batch.Fields == nil {
			r.batch.Fields = &history.Changes{}
		}
		r.batch.Fields.Provider, r.batch.Fields.Model = r.session.Provider, r.session.Model
	}
	for _, e := range r.late {
		e.mark.MessageKey, e.mark.MessageSession = r.keyOf(e.marked), r.sharedIn(e.marked)
		r.batch.Marks = append(r.batch.Marks, *e.mark)
	}
	r.state.Shared, r.state.Awaits = r.runs(), r.awaits
	r.cursor.State = nil
	if r.state.Adopted > 0 || r.state.Shared != nil || r.awaits != "" {
		r.cursor.State = session.JSONOf(r.state)
	}
	r.batch.Cursor = &r.cursor
	return r.emit(r.batch)
}

// leaf gives the entry that the next one would follow: the last one of the file, or what
// the last one, when it only moves the leaf, points at.
func (s *scanned) leaf() int32 {
	if s.version == 4 && s.lane >= 0 {
		return s.lane
	}
	for i := s.next() - 1; i >= 0; i-- {
		switch s.nodes.At(i).kind {
		case entryBroken, entrySide:
		case entryLeaf:
			if target, ok := s.names.Get(s.targets[i]); ok && target != i {
				return target
			}
			return i
		default:
			return i
		}
	}
	return -1
}

// describe says what the session is: from the header, the entries and the store.
func (r *reader) describe() error {
	created, err := r.firstTime()
	if err != nil {
		return err
	}
	id := r.header.String("id")
	s := history.NewSession{
		Source: session.SourcePi, SourceID: id, Directory: r.header.String("cwd"), CreatedAt: &created,
		Title: r.title, TitleSource: "source",
		Metadata: history.Object{{Key: "pi", Raw: objectJSON(r.header.Without("type", "id", "cwd"))}}.JSON(),
	}
	if s.Title == "" {
		s.Title, s.TitleSource = r.firstUser, "first_message"
	}
	if s.Title == "" {
		s.TitleSource = ""
	}
	if s.Provider, s.Model, err = r.model(); err != nil {
		return err
	}
	r.session = s
	return r.hang(id)
}

// titleRunes is how much of a first message stands for a title.
const titleRunes = 80

// firstLine gives the beginning of the first text that is not blank.
func firstLine(parts []session.Part) string {
	for i := range parts {
		text := strings.TrimSpace(parts[i].Text)
		if parts[i].Kind != session.PartText || text == "" {
			continue
		}
		line, _, _ := strings.Cut(text[:min(len(text), 8*titleRunes)], "\n")
		runes := []rune(strings.TrimSpace(strings.ToValidUTF8(line, "")))
		if len(runes) > titleRunes {
			return string(runes[:titleRunes-1]) + "…"
		}
		return string(runes)
	}
	return ""
}

// firstTime gives the time of the first entry: its day is that of the session.
func (r *reader) firstTime() (session.Time, error) {
	created, ok := r.made()
	if !ok {
		created = *r.cursor.ModifiedAt
	}
	for i := range r.next() {
		n := r.nodes.At(i)
		if n.kind.aside() {
			continue
		}
		line, err := r.line(n)
		if err != nil {
			return created, err
		}
		o, _ := parse(line)
		d := decoder{scanned: r.scanned, last: created}
		fields := take(o)
		return d.time(&fields), nil
	}
	return created, nil
}

// made gives the time of the header, in which a fork was made.
func (r *reader) made() (session.Time, bool) {
	if at, ok := parseTime(r.header.String("timestamp")); ok {
		return at, true
	}
	return unixMilli(r.header.Get("createdAt"))
}

// modelSearch is how far back from the leaf the model is looked for.
const modelSearch = 1000

// model gives the newest model on the path of the leaf, else the header's.
func (r *reader) model() (provider, model string, err error) {
	at := r.leaf()
	for range modelSearch {
		if at < 0 {
			break
		}
		line, err := r.line(r.nodes.At(at))
		if err != nil {
			return "", "", err
		}
		o, _ := parse(line)
		message, _ := history.Fields(o.Get("message"))
		switch {
		case o.String("type") == lineModel:
			return o.String("provider"), o.String("modelId"), nil
		case message.String("role") == "assistant" && message.String("model") != "":
			return message.String("provider"), message.String("model"), nil
		}
		at = r.nodes.At(at).parent
	}
	return r.header.String("provider"), r.header.String("modelId"), nil
}
