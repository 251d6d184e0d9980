package sessiond

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Reasons to skip that only these files have.
const (
	skipFailed  = "of a session that was not imported"
	skipUnknown = "of a kind that this version does not know"
	skipFrame   = "first and last line"
	skipStore   = "of the store itself, and refused"
)

// maxLine is the size of the longest line: a content of 64 MiB, each byte written as an escape of six.
const maxLine = 400 << 20

// Read implements history.Source. There is no cursor: what is here is known by its names, what
// was purged by its tombstone.
//
// The file is read twice: the first time to find out which of its sessions are whole, so that
// nothing of a damaged one is stored.
func (s *Source) Read(ctx context.Context, found history.Found, _ *history.Cursor, _ history.Known,
	emit func(history.Batch) error,
) ([]history.Problem, error) {
	file, info, err := history.Open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	check := reader{
		ctx: ctx, path: found.Path, bad: map[int]bool{}, into: &store.Restoring{},
		emit: func(history.Batch) error { return nil },
	}
	if err := check.run(file, info.Size()); err != nil {
		return check.problems, err
	}
	r := reader{
		ctx: ctx, path: found.Path, bad: check.bad, into: &store.Restoring{}, emit: emit, store: true,
		copies: s.AsCopy,
	}
	err = r.run(file, info.Size())
	if s.AsCopy && err == nil && len(r.foreign) > 0 {
		r.into.Copy = true
		r = reader{
			ctx: ctx, path: found.Path, bad: check.bad, into: r.into, emit: emit, store: true, only: r.foreign,
			problems: r.problems,
		}
		err = r.run(file, info.Size())
	}
	return append(check.problems, r.problems...), err
}

// reader carries a file through one pass.
type reader struct {
	ctx      context.Context
	path     string
	emit     func(history.Batch) error
	store    bool             // the second pass
	into     *store.Restoring // what names stand for in the store
	bad      map[int]bool     // sessions, by number, that are not whole
	copies   bool             // what took another way here comes in as a copy, in another pass
	only     map[int]bool     // of that pass: the sessions that it is for
	problems []history.Problem
	records  history.Records // not yet given away

	line    int // from 1
	number  int // of the session, from 1
	begun   bool
	ended   bool
	session store.SavedSession
	have    map[string]int64 // lines of the present session, by the names of session.Lines
	last    int64            // seq
	batch   store.RestoreBatch
	sets    []any // of the present session: they come with its last piece
	size    int
	blobs   map[string]*session.Blob // of lines whose message has not come
	failed  map[int]bool             // sessions that are not imported
	foreign map[int]bool             // … since they, or what they were forked from, are others here
	absent  map[session.ID]bool      // their names: what was forked from them is not imported either
}

func (r *reader) run(file io.ReaderAt, size int64) error {
	r.failed, r.foreign, r.absent, r.blobs = map[int]bool{}, map[int]bool{}, map[session.ID]bool{},
		map[string]*session.Blob{}
	lines := bufio.NewScanner(io.NewSectionReader(file, 0, size))
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if r.line++; r.line%256 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err := r.readLine(bytes.TrimSpace(history.Unmarked(lines.Bytes()))); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return session.Errorf(session.TooLarge, "line %d is longer than %d MiB: no sessiond wrote it", r.line+1, maxLine>>20)
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	switch {
	case r.line == 0:
		return session.Errorf(session.Invalid, "the file is empty")
	case !r.begun:
		return session.Errorf(session.Invalid, "no export of sessiond: its first line is no export line")
	}
	if err := r.close(); err != nil {
		return err
	}
	if !r.ended {
		r.report(r.line, "the file ends without its end line: it was cut, and what came behind is not in it")
	}
	if r.records.Read > 0 && r.store && r.only == nil {
		return r.emit(history.Batch{Records: r.records})
	}
	return nil
}

func (r *reader) report(line int, format string, args ...any) {
	if len(r.problems) < history.MaxProblems {
		r.problems = append(r.problems, history.Problem{Path: r.path, Line: line, Error: fmt.Sprintf(format, args...)})
	}
}

// rejectSession reports the first fault of the present session: nothing of it is imported.
func (r *reader) rejectSession(format string, args ...any) {
	if r.number == 0 || r.bad[r.number] {
		return
	}
	r.bad[r.number] = true
	r.report(r.line, "session "+string(r.session.ID)+" is not imported: "+format, args...)
}

// readLine handles one line. Only what makes the rest of the file unreadable is an error.
func (r *reader) readLine(raw []byte) error {
	if len(raw) == 0 {
		r.records.Skip(history.SkipBlank, 1)
		return nil
	}
	kind, ok := typeOf(raw)
	switch {
	case !r.begun:
		return r.begin(raw, kind)
	case !ok:
		r.rejectSession("the line is no JSON object with a type")
		r.records.Skip(skipFailed, 1)
		return nil
	case kind == store.LineSession || kind == lineEnd || kind == store.LineStore:
		if err := r.close(); err != nil {
			return err
		}
		switch kind {
		case lineEnd:
			return r.end(raw)
		case store.LineStore:
			return r.storeData(raw)
		}
		return r.open(raw)
	case r.skipping():
		r.skipped(1)
		return nil
	}
	row, counted := store.NewRow(kind)
	if row == nil {
		r.records.Skip(skipUnknown, 1)
		return nil
	}
	err := unmarshal(raw, row)
	if err == nil {
		err = r.add(row)
	}
	if err != nil {
		r.rejectSession("%s", strings.TrimPrefix(err.Error(), "json: "))
		r.skipped(1)
		return nil
	}
	if counted != "" {
		r.have[counted]++
	}
	r.size += len(raw)
	r.batch.Records++
	full := len(r.batch.Messages) >= history.MaxBatch || r.size >= history.MaxBatchBytes ||
		r.batch.Records >= 2*history.MaxBatch
	if full && kind != store.LineBlob { // a blob's message comes next
		return r.flush(false)
	}
	return nil
}

// skipping reports whether the present session's lines are passed over.
func (r *reader) skipping() bool {
	return r.number == 0 || r.bad[r.number] || r.failed[r.number] || r.only != nil && !r.only[r.number]
}

// skipped counts lines that are passed over, unless another pass counts them.
func (r *reader) skipped(n int) {
	if r.only != nil && !r.only[r.number] || r.copies && r.foreign[r.number] {
		return
	}
	r.records.Skip(skipFailed, n)
}

func (r *reader) begin(raw []byte, kind string) error {
	var l exportLine
	if err := unmarshal(raw, &l); err != nil || kind != lineExport || l.Program != string(session.SourceSessiond) {
		return session.Errorf(session.Invalid, "no export of sessiond: its first line is no export line")
	}
	if l.Version < 1 || l.Version > Version {
		return session.Errorf(session.Invalid, "an export of version %d; this sessiond reads versions up to %d: update it",
			l.Version, Version)
	}
	r.begun = true
	r.frame()
	return nil
}

func (r *reader) end(raw []byte) error {
	var l endLine
	if err := unmarshal(raw, &l); err != nil || l.Sessions != r.number {
		r.report(r.line, "the end line counts %d sessions, the file holds %d", l.Sessions, r.number)
	}
	r.ended, r.session = true, store.SavedSession{}
	r.frame()
	return nil
}

func (r *reader) frame() {
	if r.only == nil {
		r.records.Skip(skipFrame, 1)
	}
}

// open begins a session.
func (r *reader) open(raw []byte) error {
	r.number++
	r.sets = nil
	r.session, r.have, r.last, r.size = store.SavedSession{}, map[string]int64{}, 0, 0
	clear(r.blobs)
	r.batch = store.RestoreBatch{}
	err := unmarshal(raw, &r.session)
	if err == nil {
		_, err = session.ParseID(string(r.session.ID))
	}
	if err == nil && r.session.Revision < 1 {
		err = errors.New("a session's revision is 1 or more")
	}
	if err != nil {
		r.rejectSession("%s", err)
	}
	if in := &r.session; r.store && in.ParentKind == session.ParentFork && r.absent[in.ParentID] && !r.skipping() {
		r.refused(session.Errorf(session.Conflict, "session %s is not imported: nor was %s, from which it was forked", in.ID,
			in.ParentID), 0)
	}
	if r.skipping() {
		if r.store && r.only == nil {
			r.absent[r.session.ID] = true
		}
		r.skipped(1)
		return nil
	}
	r.batch = store.RestoreBatch{Into: r.into, Session: r.session, Begin: true, Records: 1}
	return nil
}

// close ends the present session: the store takes it only now for whole.
func (r *reader) close() error {
	if r.number == 0 || r.ended || r.session.ID == "" {
		return nil
	}
	for name, want := range r.session.Lines {
		if r.have[name] != want {
			r.rejectSession("some of its lines are missing: it has %d %s, not %d", r.have[name], name, want)
		}
	}
	if r.skipping() {
		return nil
	}
	return r.flush(true)
}

// flush gives the batch away. A session that the store refuses does not stop the others.
func (r *reader) flush(end bool) error {
	b := r.batch
	if b.End = end; end {
		b.Rows, r.sets = append(b.Rows, r.sets...), nil
	}
	r.batch, r.size = store.RestoreBatch{Into: r.into, Session: b.Session}, 0
	defer clear(r.blobs) // the store has those that come again
	if !r.store {
		return nil
	}
	out := history.Batch{Records: r.records, Restore: &b, Aside: b.Session.PurgedAt != nil} // a shell is no session
	out.Records.Import(b.Records)
	refusal, err := r.give(out)
	if refusal != nil {
		r.refused(refusal, b.Records)
	}
	return err
}

// give emits a batch. refusal is why the store refuses it; the rest of the file goes on.
func (r *reader) give(out history.Batch) (refusal, err error) {
	err = r.emit(out)
	switch session.CodeOf(err) {
	case "":
		r.records = history.Records{}
		return nil, nil
	case session.Conflict, session.Invalid, session.TooLarge:
		if known, ok := errors.AsType[*session.Error](err); ok {
			err = known
		}
		return err, nil
	}
	return nil, err
}

// refused gives the present session up, for what the store says of it.
func (r *reader) refused(refusal error, records int) {
	r.failed[r.number], r.absent[r.session.ID] = true, true
	if session.CodeOf(refusal) == session.Conflict {
		r.foreign[r.number] = true
	}
	r.skipped(records)
	if !r.copies || !r.foreign[r.number] { // else another pass tells
		r.report(r.line, "%s", refusal)
	}
}

// storeData gives a piece of the store's own data away.
func (r *reader) storeData(raw []byte) error {
	r.session = store.SavedSession{}
	if r.only != nil {
		return nil
	}
	var l store.StoreData
	if err := unmarshal(raw, &l); err != nil {
		if !r.store { // the first pass tells what is damaged
			r.report(r.line, "%s", strings.TrimPrefix(err.Error(), "json: "))
		}
		r.records.Skip(skipStore, 1)
		return nil
	}
	if !r.store {
		return nil
	}
	out := history.Batch{
		Records: r.records, Restore: &store.RestoreBatch{Into: r.into, Store: &l, Records: 1},
		Aside: true,
	}
	out.Records.Import(1)
	refusal, err := r.give(out)
	if refusal != nil {
		r.records.Skip(skipStore, 1)
		r.report(r.line, "%s", refusal)
	}
	return err
}

// add adds a row of a session to the batch.
func (r *reader) add(row any) error {
	switch row := row.(type) {
	case *store.SavedBlob:
		return r.blob(row)
	case *store.SavedMessage:
		return r.message(row)
	}
	if store.IsSet(row) {
		r.sets = append(r.sets, row)
	} else {
		r.batch.Rows = append(r.batch.Rows, row)
	}
	return nil
}

func (r *reader) blob(l *store.SavedBlob) error {
	b := session.Blob{SHA256: l.SHA256, MediaType: l.MediaType, Data: l.Base64}
	if l.Text != nil {
		b.Data = []byte(*l.Text)
	}
	b.Size = int64(len(b.Data))
	if sum := sha256.Sum256(b.Data); hex.EncodeToString(sum[:]) != l.SHA256 {
		return fmt.Errorf("the blob is not what its sha256 %.60q says", l.SHA256)
	}
	r.blobs[l.SHA256] = &b
	return nil
}

func (r *reader) message(l *store.SavedMessage) error {
	switch {
	case l.ID.Session != r.session.ID:
		return fmt.Errorf("message %s stands in session %s", l.ID, r.session.ID)
	case l.ID.Seq <= r.last:
		return fmt.Errorf("message %s stands behind message %d", l.ID, r.last)
	case l.Parent != nil && l.Parent.Session == l.ID.Session && l.Parent.Seq >= l.ID.Seq:
		return fmt.Errorf("message %s follows %s, which comes later", l.ID, *l.Parent)
	case l.CreatedAt.IsZero():
		return fmt.Errorf("message %s has no created_at", l.ID)
	}
	r.last = l.ID.Seq
	m := store.RestoreMessage{Message: session.Message(l.MessageColumns), Answers: map[int64]store.PartRef{}}
	m.SessionID, m.Seq, m.Extra, m.Parts = l.ID.Session, l.ID.Seq, l.Extra, make([]session.Part, len(l.Parts))
	for i := range l.Parts {
		p := &l.Parts[i]
		if m.Parts[i] = p.Part; p.BlobSHA != nil {
			m.Parts[i].Blob = r.blobs[*p.BlobSHA]
		}
		if p.Answers != (store.PartRef{}) {
			m.Answers[int64(i)] = p.Answers
		}
	}
	r.batch.Messages = append(r.batch.Messages, m)
	r.size += store.SizeOf(&m.Message) // with its blobs
	return nil
}
