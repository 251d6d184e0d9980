package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/session"
)

// RestoreBatch is a piece of a session that another sessiond wrote down whole, stored in one
// transaction. A session's pieces come in order, its messages by seq, and what they name
// (parents, calls, compactions) before them. Rows get other numbers here; names stay.
type RestoreBatch struct {
	Into     *Restoring
	Session  session.Session // in every piece; its counters are ignored: they are counted again
	PurgedAt *session.Time   // in every piece of a session that was purged: what its forks share of it
	Begin    bool            // the first piece
	End      bool            // the last piece: what the session says of itself is taken, and its sets
	Records  int             // of the file, that it stands for
	Store    *StoreData      // in the place of everything below: it belongs to no session

	Messages    []RestoreMessage
	Compactions []NumberedCompaction
	Frozen      []RestoreFrozen
	Blocks      []Block
	Contexts    []RestoreContext
	Calls       []RestoreCall

	Link *Link // with the last piece; nil: it shares nothing

	// Sets are replaced, with the last piece.
	Undos   []Undo
	Marks   []Mark
	States  []State
	Flushes []Flush
}

// Split divides a batch's messages over transactions of at most so many messages and about so
// many bytes; everything else stands in the last one.
func (b *RestoreBatch) Split(messages, bytes int) []RestoreBatch {
	var pieces []RestoreBatch
	rest := *b
	for {
		n, size := 0, 0
		for n < len(rest.Messages) && n < messages && (n == 0 || size < bytes) {
			size += sizeOf(&rest.Messages[n].Message)
			n++
		}
		if n == len(rest.Messages) {
			return append(pieces, rest)
		}
		records := min(n, rest.Records)
		pieces = append(pieces, RestoreBatch{Into: b.Into, Session: b.Session, PurgedAt: b.PurgedAt, Begin: rest.Begin, Records: records, Messages: rest.Messages[:n]})
		rest.Begin, rest.Records, rest.Messages = false, rest.Records-records, rest.Messages[n:]
	}
}

// RestoreMessage is a message with the calls that its results answer.
type RestoreMessage struct {
	session.Message
	Answers map[int64]PartRef // by the index of the result's part
}

// PartRef names a part.
type PartRef struct {
	Message session.MessageRef
	Idx     int64
}

// RestoreFrozen is a frozen content with the names of its message and compaction.
type RestoreFrozen struct {
	session.Frozen
	Message    session.MessageRef
	Compaction CompactionRef // zero: none
}

// RestoreContext is a context's record with the names of its head and compaction.
type RestoreContext struct {
	session.Context
	Head       *session.MessageRef
	Compaction CompactionRef // zero: none
}

// RestoreCall is a ledger row with the names of what it belongs to.
type RestoreCall struct {
	session.Call
	Message    *session.MessageRef
	Compaction CompactionRef // zero: none
	ContextN   int64         // the n-th context of its session, from 1; 0: none
}

// Restoring remembers, from one batch to the next, what the names in a file stand for here.
type Restoring struct {
	// Copy says that a session that is here with other content comes in under a new id.
	Copy bool

	now         restoringSession
	ids         map[session.ID]session.ID // of copies
	compactions map[CompactionRef]int64   // rows, by the file's names
	calls       map[string]int            // of no session, by what they say: how many the file has had so far
}

// restoringSession is what is known of the session whose pieces come in.
type restoringSession struct {
	id       session.ID // here
	mode     restoreMode
	changed  bool    // something of it was written
	contexts []int64 // rows of its contexts, in order
	calls    int64   // of the file, seen so far
	seen     int64   // contexts of the file, seen so far
	known    int64   // calls that were here before
}

type restoreMode int

const (
	restoreNew     restoreMode = iota // it was not here, or not whole
	restoreForward                    // the file's is newer, and goes on from what is here
	restoreVerify                     // what is here is the same or newer: nothing is written
)

// Restore stores a piece of a session, keeping its names. What is here already is compared
// and left; a session that is the file's at an earlier time goes on. Its messages must be the
// file's: a session that took another way is refused, before anything of it is written, with
// code Conflict. Codes: Invalid, TooLarge, Conflict.
func (s *Store) Restore(ctx context.Context, b RestoreBatch) (ImportResult, error) {
	if b.Store != nil {
		return s.restoreStoreData(ctx, b.Into, b.Store)
	}
	for i := range b.Messages {
		m := &b.Messages[i].Message
		if err := s.fetchBlobs(ctx, m); err != nil {
			return ImportResult{}, fmt.Errorf("message %s: %w", m.ID, err)
		}
		day := m.Day
		if err := s.prepare(m); err != nil {
			return ImportResult{}, fmt.Errorf("message %s: %w", m.ID, err)
		}
		m.Day = day
	}
	if err := checkStorable(b.texts()); err != nil {
		return ImportResult{}, fmt.Errorf("session %s: %w", b.Session.ID, err)
	}
	var r restorer
	err := s.write(ctx, func(t *tx) error {
		r = restorer{tx: t, batch: &b, now: b.Into.now, newCompactions: map[CompactionRef]int64{}}
		r.now.contexts = slices.Clip(r.now.contexts)
		return r.run()
	})
	if err != nil {
		return ImportResult{}, err
	}
	to := b.Into
	to.now = r.now
	if to.ids == nil {
		to.ids, to.compactions = map[session.ID]session.ID{}, map[CompactionRef]int64{}
	}
	if r.now.id != b.Session.ID {
		to.ids[b.Session.ID] = r.now.id
	}
	for ref, row := range r.newCompactions {
		to.compactions[ref] = row
	}
	return r.res, nil
}

// fetchBlobs finds the contents that a message names and that came with an earlier one: they
// are measured again. Codes: Invalid (one is nowhere).
func (s *Store) fetchBlobs(ctx context.Context, m *session.Message) (err error) {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.BlobSHA != nil && p.Blob == nil {
			if p.Blob, err = readBlob(ctx, s, *p.BlobSHA); err != nil {
				return err
			}
			if p.Blob == nil {
				return session.Errorf(session.Invalid, "message %s holds a content with the sha256 %.12s…, which is neither in the file nor here: the file is not whole", m.ID, *p.BlobSHA)
			}
		}
	}
	return nil
}

// restorer carries one batch through its transaction.
type restorer struct {
	*tx
	batch          *RestoreBatch
	res            ImportResult
	now            restoringSession
	sess           session.Session
	draft          bool // as its row says
	newCompactions map[CompactionRef]int64
}

func (r *restorer) run() error {
	if r.batch.Begin {
		r.now = restoringSession{}
		if err := r.open(); err != nil {
			return err
		}
	}
	var err error
	if r.sess, err = readAncestor(r.ctx, r.tx, r.now.id); err != nil {
		return err
	}
	first := r.sess.LastSeq + 1
	r.draft = r.sess.Draft
	for _, step := range []func() error{r.messages, r.compactions, r.frozen, r.contexts, r.calls} {
		if err := step(); err != nil {
			return err
		}
	}
	if r.now.mode == restoreVerify || !r.now.changed {
		r.res.Session, r.res.Duplicates = r.sess, r.batch.Records
		return nil
	}
	if err := r.settleOverlay(&r.sess); err != nil {
		return err
	}
	if r.batch.End {
		err = r.finish()
	} else {
		err = r.saveCounts()
	}
	if err == nil && r.res.Messages > 0 && !r.isShell() {
		err = r.event(r.sess.ID, EventMessagesAppended, r.sess.LastSeq, session.JSON(fmt.Sprintf(`{"from":%d}`, first)))
	}
	r.res.Session = r.sess
	return err
}

// open finds the session, or makes it: hidden, as a draft of revision 0, until it is whole.
func (r *restorer) open() error {
	in := &r.batch.Session
	want, source, sourceID := in.ID, in.Source, in.SourceID
	if r.batch.Into.Copy {
		sourceID = string(in.ID)
		err := r.row(`SELECT id FROM sessions WHERE source = ? AND source_id = ? AND source_id <> ''`, []any{source, sourceID}, &want)
		if noRows(err) {
			return r.create("", sourceID)
		} else if err != nil {
			return err
		}
	}
	if r.isShell() {
		return r.openShell(want, sourceID)
	}
	here, err := readSession(r.ctx, r.tx, want)
	switch {
	case session.CodeOf(err) == session.NotFound:
		if _, err := readAncestor(r.ctx, r.tx, want); err == nil {
			return session.Errorf(session.Conflict, "session %s was purged here, and forks still share messages of it; --as-copy brings it in under a new id", want)
		}
		return r.create(want, sourceID)
	case err != nil:
		return err
	case here.Source != source || here.SourceID != sourceID:
		return session.Errorf(session.Conflict, "another session has the id %s here; --as-copy brings this one in under a new id", want)
	}
	r.now.id = want
	if here.Revision > in.Revision {
		r.now.mode = restoreVerify
		return nil
	}
	// A compaction that is not done, and a context that was handed out, do not count as a change.
	r.now.mode, r.now.changed = restoreForward, here.Revision < in.Revision
	err = r.list(r.ctx, &r.now.contexts, `SELECT id FROM contexts WHERE session_id = ? ORDER BY id`, want)
	if err != nil {
		return err
	}
	return r.row(`SELECT COUNT(*) FROM calls WHERE session_id = ? AND session_id <> ''`, []any{want}, &r.now.known)
}

// create makes the session, with an id of its own when want is "". The day's counter moves
// past the id, so that it is never given again.
func (r *restorer) create(want session.ID, sourceID string) error {
	in := &r.batch.Session
	if sourceID != "" {
		var other session.ID
		err := r.row(`SELECT id FROM sessions WHERE source = ? AND source_id = ? AND source_id <> ''`, []any{in.Source, sourceID}, &other)
		if err == nil {
			return session.Errorf(session.Conflict, "session %s is here already, as %s, under its id of %s, %q; --as-copy brings it in once more", in.ID, other, in.Source, sourceID)
		} else if !noRows(err) {
			return err
		}
	}
	if _, err := r.exec(`DELETE FROM purged_sources WHERE source = ? AND id_hash = ?`, in.Source, hash([]byte(sourceID))); err != nil {
		return fmt.Errorf("bring a purged session back: %w", err)
	}
	if _, err := time.Parse(time.DateOnly, in.Day); err != nil {
		return session.Errorf(session.Invalid, "session %s has no day", in.ID)
	}
	if want == "" {
		var n int64
		if err := r.row(nextOfDay, []any{in.Day}, &n); err != nil {
			return fmt.Errorf("count the day's sessions: %w", err)
		}
		want = session.NewID(in.Day, n)
	} else if err := r.passID(want); err != nil {
		return err
	}
	_, err := r.exec(`INSERT INTO sessions (id, day, draft, source, source_id, directory, revision, created_at, updated_at, active_at, purged_at)
		VALUES (?, ?, 1, ?, ?, ?, 0, ?, ?, ?, ?)`,
		want, in.Day, orElse(in.Source, session.SourceSessiond), sourceID, in.Directory, in.CreatedAt, r.tx.now, in.CreatedAt, r.batch.PurgedAt)
	if err != nil {
		return fmt.Errorf("insert session: %w", err)
	}
	r.now.id, r.now.changed, r.res.Created = want, true, true
	if r.isShell() {
		return nil
	}
	return r.event(want, EventSessionCreated, 0, nil)
}

// passID moves the counter of the id's day up to its number.
func (r *restorer) passID(id session.ID) error {
	if _, err := session.ParseID(string(id)); err != nil {
		return err
	}
	digits, number, _ := strings.Cut(string(id), "_")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return session.Errorf(session.Invalid, "%q is no session id", id)
	}
	_, err = r.exec(`INSERT INTO session_days (day, last) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET last = max(last, excluded.last)`,
		digits[:4]+"-"+digits[4:6]+"-"+digits[6:], n)
	return err
}

// here gives what a name in the file names here.
func (r *restorer) here(ref session.MessageRef) session.MessageRef {
	ref.Session = r.hereID(ref.Session)
	return ref
}

func (r *restorer) hereID(id session.ID) session.ID {
	if id == r.batch.Session.ID {
		return r.now.id
	}
	if copied, ok := r.batch.Into.ids[id]; ok {
		return copied
	}
	return id
}

// mustFind gives the row of a message that the file names.
func (r *restorer) mustFind(what string, ref session.MessageRef) (int64, error) {
	at, err := r.placeAfter(r.here(ref))
	if session.CodeOf(err) == session.NotFound {
		return 0, session.Errorf(session.Invalid, "%s of session %s names message %s, which is neither in the file before it nor here", what, r.batch.Session.ID, ref)
	}
	if err != nil {
		return 0, err
	}
	return *at.id, nil
}

func (r *restorer) findOptional(what string, ref *session.MessageRef) (*int64, error) {
	if ref == nil {
		return nil, nil
	}
	id, err := r.mustFind(what, *ref)
	return &id, err
}

// findCompaction gives the row of a compaction that the file names: one of the file, else,
// of a session that is not in it, one that is here.
func (r *restorer) findCompaction(ref CompactionRef) (*int64, error) {
	if ref == (CompactionRef{}) {
		return nil, nil
	}
	for _, known := range []map[CompactionRef]int64{r.newCompactions, r.batch.Into.compactions} {
		if row, ok := known[ref]; ok {
			return &row, nil
		}
	}
	var row int64
	err := r.row(nthCompaction, []any{r.hereID(ref.Session), max(0, ref.N-1)}, &row)
	if noRows(err) {
		return nil, session.Errorf(session.Invalid, "session %s names compaction %d of %s, which is neither in the file before it nor here", r.batch.Session.ID, ref.N, ref.Session)
	}
	return &row, err
}

const nthCompaction = `SELECT id FROM compactions WHERE session_id = ? ORDER BY id LIMIT 1 OFFSET ?`

// link stores how the session hangs on its parent. What a fork inherits ends with a row of its
// parent's; those of sessions further up came in before any of the parent's.
func (r *restorer) link() error {
	in := r.batch.Link
	if in == nil {
		if r.batch.Session.ParentID == "" {
			return nil
		}
		return r.saveLink(r.now.id, link{}) // it shares nothing
	}
	l := link{callID: in.Call, root: r.hereID(in.Root), number: in.Number}
	var err error
	l.messageID, err = r.findOptional("the link", in.Message)
	if session.CodeOf(err) == session.Invalid && r.batch.Session.ParentKind == session.ParentChild {
		l.messageID, err = nil, nil // a sub-agent came in without the session that started it
	}
	if err != nil {
		return err
	}
	if in.ActivatedAt != nil {
		l.activatedAt = in.ActivatedAt.SQL()
	}
	parent := r.hereID(r.batch.Session.ParentID)
	for _, bound := range []struct {
		to          *int64
		n           int64
		nth, newest string
	}{
		{&l.compactionID, in.Compactions, nthCompaction, `SELECT COALESCE(MAX(id), 0) FROM compactions`},
		{&l.frozenID, in.Frozen, nthFrozen, `SELECT COALESCE(MAX(id), 0) FROM frozen`},
	} {
		switch {
		case bound.n < 0:
			*bound.to = math.MaxInt64
			continue
		case bound.to == &l.compactionID && r.batch.Into.compactions[CompactionRef{r.batch.Session.ParentID, bound.n}] > 0: // of the file
			*bound.to = r.batch.Into.compactions[CompactionRef{r.batch.Session.ParentID, bound.n}]
		case bound.n > 0:
			err = r.row(bound.nth, []any{parent, bound.n - 1}, bound.to)
		default: // none of the parent's
			if err = r.row(bound.nth, []any{parent, 0}, bound.to); err == nil {
				*bound.to--
			}
		}
		if noRows(err) {
			err = r.row(bound.newest, nil, bound.to)
		}
		if err != nil {
			return err
		}
	}
	return r.saveLink(r.now.id, l)
}

const nthFrozen = `SELECT id FROM frozen WHERE session_id = ? ORDER BY id LIMIT 1 OFFSET ?`

// saveCounts keeps what a piece added; the session says the rest of itself with its last one.
func (r *restorer) saveCounts() error {
	s := &r.sess
	_, err := r.exec(`UPDATE sessions SET head_id = ?, last_seq = ?, message_count = ?, total_tokens = ?, compaction_id = ?,
		context_tokens = ? WHERE id = ?`,
		s.HeadID, s.LastSeq, s.MessageCount, s.TotalTokens, s.CompactionID, s.ContextTokens, s.ID)
	return err
}

// equalJSON tells whether two values are spelled the same but for white space.
func equalJSON(a, b session.JSON) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
