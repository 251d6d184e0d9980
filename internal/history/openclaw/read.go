package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) (problems []history.Problem, err error) {
	defer history.Guard(&err)
	name := parseName(filepath.Base(found.Path))
	if isDatabase(filepath.Base(found.Path)) {
		return s.readDatabase(ctx, found, cursor, known, emit)
	}
	if name.kind == fileIndex {
		return s.readIndex(ctx, found, cursor, known, emit)
	}
	file, info, err := history.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() == 0 {
		return nil, session.Errorf(session.Invalid, "the file is empty")
	}
	text := transcript{path: found.Path, file: file, size: info.Size()}
	if name.zstd {
		unpacked, err := unpack(file)
		if err != nil {
			return nil, err
		}
		defer unpacked.Close() //nolint:errcheck // it has no name any more
		text.file, text.size = unpacked, unpacked.size
	}
	text.cuts = history.NewCuts(text.file, found, pi.CutRule())
	modified := session.At(info.ModTime())
	r := reader{
		source: s, ctx: ctx, known: known, emit: emit, text: &text, name: name, backup: name.kind == fileBackup || movedAway(found.Path),
		agent:  s.agentFor(ctx, found.Path, nil),
		cursor: history.Cursor{Source: session.SourceOpenClaw, Path: found.Path, Size: info.Size(), ModifiedAt: &modified},
	}
	if err := r.survey(cursor); err != nil {
		return nil, err
	}
	r.cursor.Offset, r.cursor.Hash = r.offset, r.hash
	s.mu.Lock()
	asked := s.asked[found.Path]
	s.mu.Unlock()
	if name.kind == fileDeleted && !asked && kindOf(r.key()) != "cron" {
		return nil, r.pass(skipDeleted)
	}
	err = r.run()
	r.nodes.Close()
	r.names.Close()
	return r.problems, err
}

// reader carries one transcript through the second pass.
type reader struct {
	*scanned
	source    *Source
	ctx       context.Context
	known     history.Known
	emit      func(history.Batch) error
	text      *transcript
	name      fileName
	agent     *agent
	about     *about // never nil after the survey
	backup    bool   // it moves no head
	continues bool   // the cursor's reading goes on
	cursor    history.Cursor

	sid      string
	state    state
	existing *session.Session
	session  history.NewSession
	batch    history.Batch
	size     int // bytes in batch
	last     session.Time
	older    bool            // everything in the file is here under newer names
	head     string          // key of the head that the session has
	early    history.Records // of a database: what is no line of the transcript
	buffer   []byte
}

// state is what a cursor remembers beside the offset.
type state struct {
	// Adopted is how many entries, from the first one on, were stored when the file was of
	// version 1 and are named as they were then; but for those in Except.
	Adopted int   `json:"adopted,omitempty"`
	Except  []int `json:"except,omitempty"`
	// Shared are runs of entries that lie in the sessions which this one was forked from.
	Shared []shared `json:"shared,omitempty"`
}

type shared struct {
	From    int        `json:"from"` // index of the first entry
	To      int        `json:"to"`   // and of the one after the last
	Session session.ID `json:"session"`
}

// survey scans the transcript and looks its session up. A cursor is stale, too, when the
// session that it belongs to is gone.
func (r *reader) survey(cursor *history.Cursor) error {
	for {
		sc, err := scan(r.ctx, r.text, cursor, r.backup || r.name.kind == fileDeleted)
		if err != nil {
			return err
		}
		r.scanned = sc
		if !sc.stale {
			if err := r.identify(); err != nil {
				return err
			}
			if cursor == nil || r.existing != nil {
				break
			}
		}
		cursor = nil
	}
	r.continues = cursor != nil
	if cursor == nil {
		return nil
	}
	r.cursor.Counts = cursor.Counts
	if cursor.State == nil {
		return nil
	}
	if err := json.Unmarshal(cursor.State, &r.state); err != nil {
		return fmt.Errorf("the cursor of %s: %w", r.text.path, err)
	}
	return nil
}

// identify finds out which session the transcript is of. A copy is of the one that its name
// says: its header may have an id of its own.
func (r *reader) identify() error {
	id := r.header.String("id")
	if id == "" || r.backup && r.name.id != "" {
		id = r.name.id
	}
	if r.sid = sidOf(id, r.name.topic); r.sid == "" {
		return session.Errorf(session.Invalid, "no transcript: neither its header nor its name says which session it is")
	}
	if r.about = r.agent.sessions[r.sid]; r.about == nil {
		r.about = &about{sid: r.sid}
	}
	if r.about.stored && r.text.rows == nil {
		r.backup = true
	}
	var err error
	r.existing, err = r.known.Session(r.ctx, session.SourceOpenClaw, r.agent.id+"/"+r.sid)
	return err
}

// pass accounts for a file of which nothing is kept.
func (r *reader) pass(reason string) error {
	read := r.records.Read - r.records.Waiting
	b := history.Batch{Records: history.Records{}}
	b.Records.Skip(reason, read+r.fresh())
	b.Cursor = &r.cursor
	return r.emit(b)
}

// fresh counts the entries that no earlier reading took.
func (r *reader) fresh() int {
	n := 0
	for i := range r.next() {
		if !r.nodes.At(i).known {
			n++
		}
	}
	return n
}

func (r *reader) run() error {
	if r.backup && r.existing == nil {
		r.backup = r.about.stored // the only trace of its session: all of it is new
	}
	if err := r.describe(); err != nil {
		return err
	}
	if err := r.recognise(); err != nil {
		return err
	}
	r.begin()
	r.batch.Records = r.records
	for i := range r.next() {
		if r.nodes.At(i).known {
			continue
		}
		if err := r.take(i); err != nil {
			return err
		}
	}
	return r.finish()
}

func (r *reader) begin() {
	used := r.batch
	clear(used.Messages) // one may have been large
	r.batch = history.Batch{Cuts: r.text.cuts}
	r.batch.Messages, r.batch.Calls = used.Messages[:0], used.Calls[:0]
	r.batch.Session = r.session
	if r.existing != nil {
		r.batch.ID = r.existing.ID
	}
	r.size = 0
}

// take decodes an entry into the batch and gives the batch away when it is full.
func (r *reader) take(i int32) error {
	n := *r.nodes.At(i)
	line, err := r.line(&n)
	if err != nil {
		return err
	}
	e := r.decode(i, line)
	if r.failed != nil {
		return fmt.Errorf("read its lines again: %w", r.failed)
	}
	if len(line) > 1<<20 {
		r.buffer = nil // the store need not wait beside it
	}
	if e.problem != "" && len(r.problems) < history.MaxProblems {
		r.problems = append(r.problems, history.Problem{Path: r.text.path, Line: int(n.line), Error: e.problem + "; kept raw"})
	}
	b := &r.batch
	b.Messages = append(b.Messages, e.message)
	b.Calls = append(b.Calls, e.calls...)
	if e.mark != nil {
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

// line reads an entry's bytes again. They are good until the next call.
func (r *reader) line(n *node) ([]byte, error) {
	line, err := r.text.cuts.ReadAgain(r.text.file, r.buffer, n.offset, n.size)
	if err != nil {
		return nil, fmt.Errorf("read line %d again: %w", n.line, err)
	}
	r.buffer = line
	return line, nil
}

// finish gives the last batch: with the head, the title and the cursor.
func (r *reader) finish() error {
	if r.leaf >= 0 && !r.older && !r.backup {
		key := r.keyOf(r.leaf)
		r.batch.Head = &key
		r.batch.HeadSession = r.sharedIn(r.leaf)
	}
	if r.backup || r.older {
		if err := r.keepHead(); err != nil {
			return err
		}
	}
	if !r.older && !r.backup && r.session.Title != "" && (r.existing == nil || r.session.TitleSource == "source" || r.named) {
		r.batch.Title = &r.session.Title
	}
	if !r.backup && !r.older {
		r.batch.Fields = r.fields()
	}
	if r.state.Adopted > 0 || len(r.state.Shared) > 0 {
		r.cursor.State = session.JSONOf(r.state)
	}
	r.batch.Cursor = &r.cursor
	return r.emit(r.batch)
}
