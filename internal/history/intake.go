package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"iter"
	"os"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Intake imports one found thing for a reader. A reader replays the whole history from its
// first record, every time that it changed, and adds each entry to a Conversation. The intake
// skips what is stored already, decodes and stores the rest, counts every record, and keeps the
// cursor. So a reader needs to remember nothing between two readings.
//
// An Intake remembers its first error: of the store, of the file, or one that Fail got. After it the
// Intake stores nothing, yields no more lines and finds nothing in the store. Err returns the error.
//
// A reader of lines says with At where the record at hand begins. Records before the cursor's
// offset were counted by an earlier reading, as long as the bytes before it are the same.
type Intake struct {
	Found Found
	Known Known
	Now   time.Time

	ctx       context.Context
	source    session.Source
	emit      func(Batch) error
	before    *Cursor // nil: nothing of it was read, or what was read has changed
	rewritten bool    // what was read has changed
	cursor    Cursor
	at        int64            // offset of the record at hand
	end       int64            // offset behind the last record that does not wait
	held      bool             // something waits: nothing from end on is settled
	counted   int64            // offset behind the last record that was counted, if a record before it waits
	settled   int64            // counted, of the earlier reading
	own       *session.Session // that the earlier reading stored
	waitFrom  int64            // 0: no line waits but for its end
	file      io.ReaderAt
	sum       hash.Hash // of the file's bytes before summed
	summed    int64
	records   Records // that no conversation counts
	all       []*Conversation
	sessions  int
	awaits    string
	problems  []Problem
	part      partState // of a part
	parts     []string  // ids of those that Part began
	earlier   []string  // those of the reading before
	length    int64     // of what can be read of the file
	messages  int       // of all conversations, that were not stored yet
	bytes     int       // in them
	again     bool      // the thing is read again, though it may not change
	err       error
	isPiece   bool // of another thing, whose size and time are not the cursor's

	said, saidBefore map[string]string // what Repeats remembers, now and in the reading before

	writtenOf *store.WrittenOf // what sessiond wrote the file of; nil: it did not

	origin *origin // of a file that sessiond wrote; nil: it wrote none, or the conversation is not here
	early  bool    // the conversation may come with the history of another program: only a second reading does without
}

// newIntake begins the reading of a found thing. Without open it is one that has no offsets, as a
// database, whose records are all counted each time.
func newIntake(ctx context.Context, source session.Source, found Found, cursor *Cursor, known Known,
	emit func(Batch) error,
) *Intake {
	before := readCursorState(cursor)
	return &Intake{
		Found: found, Known: known, ctx: ctx, source: source, emit: emit,
		cursor: Cursor{Source: source, Path: found.Path}, earlier: before.Parts, saidBefore: before.Said,
	}
}

// open begins the reading of a file, in which At's offsets count, behind what a cursor settled.
func (in *Intake) open(file io.ReaderAt, length int64, cursor *Cursor) {
	in.file, in.length = file, length
	if h := ReadHandover(file); h != nil {
		_, again := in.Known.(neverRead) // a purged session is asked for by name: nothing comes before it
		in.early = !in.HandOver(h) && cursor == nil && !again
	}
	if cursor == nil {
		return
	}
	same := in.hasPrefix(cursor)
	in.rewritten = !same && cursor.Offset > 0
	if same {
		in.before = cursor
		in.cursor.Counts = cursor.Counts
		in.settled = max(cursor.Offset, readCursorState(cursor).Counted)
	}
}

// cursorState is what the cursor of a found thing remembers beside its place.
type cursorState struct {
	Awaits string `json:"awaits,omitempty"` // source id of a session that is missing
	// records before this offset were counted, but for those that waited
	Counted int64             `json:"counted,omitempty"`
	Parts   []string          `json:"sessions,omitempty"` // ids of its parts
	Said    map[string]string `json:"said,omitempty"`     // what Repeats remembers
}

func readCursorState(c *Cursor) (s cursorState) {
	if c != nil && c.State != nil && json.Unmarshal(c.State, &s) != nil {
		return cursorState{}
	}
	return s
}

// hasPrefix reports whether the bytes before the cursor's offset are those that it was made of,
// and its session is still here.
func (in *Intake) hasPrefix(c *Cursor) bool {
	if c.Offset <= 0 {
		return false
	}
	if c.SessionID != "" {
		if in.own = in.SessionByID(c.SessionID); in.own == nil {
			return false
		}
	}
	return in.hash(c.Offset) == c.Hash
}

// hash returns the hash of the bytes before end. It reads only those that it has not hashed before.
func (in *Intake) hash(end int64) string {
	if in.sum == nil || end < in.summed {
		in.sum, in.summed = sha256.New(), in.Found.Slot
	}
	n, err := io.Copy(in.sum, io.NewSectionReader(in.file, in.summed, end-in.summed))
	in.summed += n
	in.Fail(err)
	return hex.EncodeToString(in.sum.Sum(nil))
}

// Restart forgets the cursor and what was counted: every record is offered again, from the first.
// A reader calls it before its first entry, when what it finds contradicts what an earlier reading
// must have found.
func (in *Intake) Restart() {
	in.before, in.own, in.cursor.Counts, in.settled = nil, nil, nil, 0
	in.all, in.records, in.problems, in.awaits = nil, Records{}, nil, ""
	in.at, in.end, in.counted, in.held, in.again = 0, 0, 0, false, false
}

// Continues reports whether an earlier reading is continued.
func (in *Intake) Continues() bool { return in.before != nil }

// Rewritten reports whether the thing was read before, and what was read has changed.
func (in *Intake) Rewritten() bool { return in.rewritten }

// Own is the session that the reading which is continued stored as the thing's own; nil: none.
func (in *Intake) Own() *session.Session {
	if in.before == nil {
		return nil
	}
	return in.own
}

// Source is the program whose history is imported.
func (in *Intake) Source() session.Source { return in.source }

// Context ends when the import is to stop.
func (in *Intake) Context() context.Context { return in.ctx }

// Quiet reports whether nothing more comes: the thing has not changed for QuietTime, its program has ended, or
// it is gone. A thing from the future says that clocks disagree: then waiting would have no end.
func (in *Intake) Quiet() bool {
	return in.quietFor(QuietTime, in.Found.ModifiedAt) || in.isOver()
}

func (in *Intake) isOver() bool {
	return in.Found.Held != nil || in.Found.Over != nil && in.Found.Over()
}

func (in *Intake) quietFor(d time.Duration, since time.Time) bool {
	age := in.Now.Sub(since)
	return in.Now.IsZero() || age >= d || age < -time.Minute
}

// ReplyWaits reports whether a reply that may go on is left to a later reading. says: it has text, open: it has a
// call without a result. A reply that is imported and goes on all the same becomes a longer one beside the
// shorter one, under a name of its own.
func (in *Intake) ReplyWaits(says, open bool) bool {
	return in.ReplyWaitsSince(in.Found.ModifiedAt, says, open)
}

// ReplyWaitsSince is ReplyWaits for a reply that was last written at a time, in a thing that others change, too.
func (in *Intake) ReplyWaitsSince(written time.Time, says, open bool) bool {
	patience := QuietTime
	if says && !open {
		patience = ReplyQuiet
	}
	return !in.Found.Last && !in.quietFor(patience, written) && !in.isOver()
}

// At says where the record at hand begins, and where it ends.
func (in *Intake) At(offset, end int64) {
	in.at = offset
	in.counted = max(in.counted, end)
	if !in.held {
		in.end = max(in.end, end)
	}
}

// Old reports whether an earlier reading settled the record at an offset.
func (in *Intake) Old(at int64) bool { return in.before != nil && at < in.before.Offset }

// wasCounted reports whether an earlier reading counted the record at an offset. One that waited
// then, and comes now, was not.
func (in *Intake) wasCounted(at int64) bool { return in.before != nil && at < in.settled }

// Skip counts records that no entry stands for, with a reason.
func (in *Intake) Skip(reason string, n int) {
	if !in.wasCounted(in.at) {
		in.records.Skip(reason, n)
	}
}

// SkipAt is Skip of records before the one at hand.
func (in *Intake) SkipAt(at int64, reason string, n int) {
	if !in.wasCounted(at) {
		in.records.Skip(reason, n)
	}
}

// SkipAll counts n records with one reason, in the place of everything that was counted.
func (in *Intake) SkipAll(reason string, n int) {
	n += in.records.Read - in.records.Waiting
	waiting := in.records.Waiting
	in.records = Records{}
	in.records.Skip(reason, n)
	in.records.Wait(waiting)
}

// Count adds records that belong to the thing, beside those of its entries.
func (in *Intake) Count(records Records) { in.records.Add(records) }

// CountSession counts a session among those that were found, for a reader that needs no Part for it.
func (in *Intake) CountSession() { in.sessions++ }

// Mark puts a mark of the thing's state into the cursor, as its hash; for one that is no file.
func (in *Intake) Mark(hash string) { in.cursor.Hash = hash }

// Repeats reports whether the reading before remembered the same of a piece of the thing, as its
// fingerprint, and remembers it for the next one.
func (in *Intake) Repeats(piece, says string) bool {
	if in.said == nil {
		in.said = map[string]string{}
	}
	in.said[piece] = says
	return in.saidBefore[piece] == says
}

// Emit stores a batch of its own, as one that says something of a session in another thing.
func (in *Intake) Emit(b Batch) {
	if in.err == nil {
		in.Fail(in.emit(b))
	}
}

// Fail ends the reading with an error, unless that is nil or it failed before.
func (in *Intake) Fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

// Err returns why the reading ends, nil as long as it goes on.
func (in *Intake) Err() error {
	in.Fail(in.ctx.Err())
	return in.err
}

// Lines yields the lines of the file, and counts nothing.
func (in *Intake) Lines() iter.Seq[FileLine] {
	return func(yield func(FileLine) bool) {
		for l, err := range Lines(in.file, in.length) {
			if in.Fail(err); in.err != nil || l.Number%256 == 0 && in.Err() != nil || !yield(l) {
				return
			}
		}
	}
}

// Import counts records that became a part of the session itself, as a header does.
func (in *Intake) Import(n int) {
	if !in.wasCounted(in.at) {
		in.records.Import(n)
	}
}

// ImportOnce counts n records like Import, or as known where the session of a conversation was stored
// by the reading of another file, or of this one before it changed.
func (in *Intake) ImportOnce(of *Conversation, n int) {
	if of.Here != nil && in.before == nil {
		in.Skip(of.KnownReason, n)
		return
	}
	in.Import(n)
}

// ImportInto is ImportOnce for a session that is stored as here, nil if it is not, and not begun yet.
func (in *Intake) ImportInto(here *session.Session, n int) {
	if here != nil && in.before == nil {
		in.Skip(SkipKnown, n)
		return
	}
	in.Import(n)
}

// Wait leaves the n records from an offset on to a later reading: they are not finished, and
// none of them was added. The thing is read again then, though it may not change.
func (in *Intake) Wait(at int64, n int) {
	in.WaitAmong(at, n)
	in.counted = min(in.counted, at)
}

// WaitFrom leaves the lines from an offset on to a later reading: EachLine does not visit them.
func (in *Intake) WaitFrom(at int64) { in.waitFrom = at }

// WaitAmong is Wait for n records among others that were added, as those of one conversation
// of several.
func (in *Intake) WaitAmong(at int64, n int) {
	if !in.held || at < in.end {
		in.end = at
	}
	in.held = true
	in.records.Wait(n)
	in.again = true
}

// LookAgain has the thing read again, though it may not change, without holding a record back.
func (in *Intake) LookAgain() { in.again = true }

// Await names a session of the program that must be here for the links of this thing: it is
// read again when that has come. "" takes it back.
func (in *Intake) Await(sourceID string) {
	if in.awaits = sourceID; sourceID != "" {
		in.NeedsOrigin()
	}
}

// NeedsOrigin says that the thing comes, or may come, from one that is not in the store. Before its turn it is not
// read.
func (in *Intake) NeedsOrigin() {
	if in.Found.Alone {
		in.Fail(errNeedsOrigin)
	}
}

// Problem reports what could not be read, once: an earlier reading reported those before its end.
func (in *Intake) Problem(line int, why string) {
	if !in.wasCounted(in.at) {
		in.problem(line, why)
	}
}

// ProblemIn reports what could not be read of another file of the thing.
func (in *Intake) ProblemIn(path, why string) { in.addProblem(Problem{Path: path, Error: why}) }

func (in *Intake) problem(line int, why string) {
	in.addProblem(Problem{Path: in.Found.Path, Line: line, Error: why})
}

func (in *Intake) addProblem(p Problem) {
	if len(in.problems) < MaxProblems {
		in.problems = append(in.problems, p)
	}
}

// finish stores what is left. The conversation that was begun first is the thing's own: the
// cursor goes with it, behind those that it started.
func (in *Intake) finish() {
	if !in.isPiece {
		in.cursor.Size, in.cursor.ModifiedAt = in.Found.Size, new(session.At(in.Found.ModifiedAt))
	}
	if in.again {
		in.cursor.Size = -1
	}
	if in.file != nil {
		in.cursor.Offset, in.cursor.Hash = in.end, in.hash(in.end)
	}
	in.cursor.State = nil
	state := cursorState{Awaits: in.awaits, Parts: in.parts, Said: in.said}
	if in.counted > in.end {
		state.Counted = in.counted
	}
	if state.Awaits != "" || state.Counted > 0 || len(state.Parts)+len(state.Said) > 0 {
		in.cursor.State = session.JSONOf(state)
	}
	if len(in.all) == 0 {
		in.emitCursor()
		return
	}
	own := in.all[0]
	for _, c := range in.all[1:] {
		if c.empty() {
			continue
		}
		if own.Here == nil && !own.given && !own.empty() {
			own.flush()
		}
		c.finish(nil)
	}
	if own.unused {
		own.Silent = skipUnused
	}
	if own.Silent != "" && own.Here == nil && !own.given {
		in.finishSilent(own)
		return
	}
	in.linkStarted()
	own.finish(&in.cursor)
}

// linkStarted links the sessions that the conversations started. The conversations must be in the
// store by then; the cursor is not, so that the links are not lost if this reading ends here.
func (in *Intake) linkStarted() {
	for _, c := range in.all {
		if len(c.starts) > 0 && len(c.batch.Messages) > 0 {
			c.flush()
		}
		c.linkStarted()
	}
}

// finishSilent counts the records of a session that is not stored. They are offered again when
// there is more of them.
func (in *Intake) finishSilent(c *Conversation) {
	in.records.Skip(c.Silent, c.batch.Records.Imported+c.batch.Records.Raw)
	for reason, n := range c.batch.Records.Skipped {
		in.records.Skip(reason, n)
	}
	in.cursor.Offset, in.cursor.Hash, in.cursor.State = 0, "", nil
	in.emitCursor()
}

// emitCursor stores the cursor alone, for a thing of which no session is stored now.
func (in *Intake) emitCursor() {
	last := Batch{Records: in.records, Sessions: in.sessions}
	last.Cursor = &in.cursor
	in.Emit(last)
}

// flushAll stores what all conversations have, the thing's own first: the others hang on it.
func (in *Intake) flushAll() {
	in.messages, in.bytes = 0, 0
	for _, c := range in.all {
		if len(c.batch.Messages)+len(c.batch.Calls) > 0 && c.Silent == "" && !c.unused {
			c.flush()
		}
	}
}

// errMissing is within the error of an entry that follows one which the store must have, and
// has not.
var errMissing = errors.New("it was not read")

// errShrunk says that a file became shorter, or another one, while it was read.
var errShrunk = session.Errorf(session.Busy, "the file changed while it was read: import again")

// Bytes reads a stretch of the file again. Codes: Busy (it is not there any more).
func (in *Intake) Bytes(at, size int64) []byte {
	raw := make([]byte, size)
	if n, err := in.file.ReadAt(raw, at); n < len(raw) {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			err = errShrunk
		}
		in.Fail(err)
		return nil
	}
	return raw
}
