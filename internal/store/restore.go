package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// RestoreBatch is a piece of a session that another sessiond saved, committed in one transaction.
// A session's pieces come in order, its messages by seq, and what they name (parents, calls,
// compactions) before them. Rows get other numbers here; names stay.
type RestoreBatch struct {
	Into    *Restoring
	Session SavedSession // in every piece
	Begin   bool         // the first piece
	End     bool         // the last piece: the session's own fields and its sets apply
	Records int          // of the file, that it stands for
	Foreign string       // the file, if it is not known to be the user's own

	Messages []RestoreMessage
	Rows     []any // *SavedCompaction and what follows it in a file; of the sets all, in the last piece

	Store *StoreData // in the place of all but Into: it belongs to no session
}

// Split divides a batch's messages over transactions of at most so many messages and about so
// many bytes; all else goes with the last one.
func (b *RestoreBatch) Split(messages, bytes int) []RestoreBatch {
	runs := splitMessages(b.Messages, messages, bytes, func(m *RestoreMessage) int { return SizeOf(&m.Message) })
	pieces, rest := make([]RestoreBatch, len(runs)), *b
	for i, run := range runs[:len(runs)-1] {
		pieces[i] = RestoreBatch{
			Into: b.Into, Session: b.Session, Begin: rest.Begin, Foreign: b.Foreign,
			Records: min(len(run), rest.Records), Messages: run,
		}
		rest.Begin, rest.Records = false, rest.Records-pieces[i].Records
	}
	rest.Messages = runs[len(runs)-1]
	pieces[len(runs)-1] = rest
	return pieces
}

// RestoreMessage is a message with the calls that its results answer.
type RestoreMessage struct {
	session.Message
	Answers map[int64]PartRef // by the index of the result's part
}

// Restoring maps the names in a file to what is stored here, from one batch to the next.
type Restoring struct {
	// Copy says that a session that is here with other content comes in under a new id.
	Copy bool
	// Purged says that sessions come in that were purged here.
	Purged bool

	now         restoringSession
	ids         map[session.ID]session.ID // of copies
	compactions map[CompactionRef]int64   // rows, by the file's names
	calls       map[string]int            // of no session, by what they say: how many the file has had so far
	left        map[session.ID]bool       // sessions of the file that were left out, since they were purged here
}

// restoringSession is the progress of the session whose pieces are being restored.
type restoringSession struct {
	id       session.ID // here
	mode     restoreMode
	changed  bool    // something of it was written
	contexts []int64 // rows of its contexts, in order
	calls    int64   // calls of the file so far
	seen     int64   // contexts of the file so far
	known    int64   // calls stored here before
}

type restoreMode int

const (
	restoreNew     restoreMode = iota // it was not here, or not whole
	restoreForward                    // the file's is newer, and goes on from what is here
	restoreVerify                     // the stored session is the same or newer: compare, write nothing
	restorePurged                     // it was purged here: leave it out
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
	if err := checkStorable(textsOf(b.Session, b.Rows)); err != nil {
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
		to.ids, to.compactions, to.left = map[session.ID]session.ID{}, map[CompactionRef]int64{}, map[session.ID]bool{}
	}
	if r.res.Purged {
		to.left[b.Session.ID] = true
		return r.res, nil
	}
	if r.now.id != b.Session.ID {
		to.ids[b.Session.ID] = r.now.id
	}
	for ref, row := range r.newCompactions {
		to.compactions[ref] = row
	}
	return r.res, nil
}

// fetchBlobs reads the blobs that came with an earlier message: prepare measures them again.
// Codes: Invalid (one is neither in the file nor here).
func (s *Store) fetchBlobs(ctx context.Context, m *session.Message) (err error) {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.BlobSHA != nil && p.Blob == nil {
			if p.Blob, err = readBlob(ctx, s, *p.BlobSHA); err != nil {
				return err
			}
			if p.Blob == nil {
				return session.Errorf(session.Invalid,
					"message %s holds a content with the sha256 %.12s…, which is neither in the file nor here: the file is not whole",
					m.ID, *p.BlobSHA)
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
	unknown        error // of the first name that is neither in the file nor here
}

func (r *restorer) run() error {
	if s := &r.batch.Session; s.ParentKind == session.ParentChild && r.batch.Into.left[s.ParentID] {
		s.ParentID, s.ParentKind, s.Link = "", "", nil // as a purge releases sub-agents
	}
	if r.batch.Begin {
		r.now = restoringSession{}
		if err := r.open(); err != nil {
			return err
		}
	}
	if r.res.Purged = r.now.mode == restorePurged; r.res.Purged {
		return nil
	}
	var err error
	if r.sess, err = readAncestor(r.Ctx, r.tx, r.now.id); err != nil {
		return err
	}
	first := r.sess.LastSeq + 1
	r.draft = r.sess.Draft
	if err := r.messages(); err != nil {
		return err
	}
	for _, row := range r.batch.Rows {
		_, isCompaction := row.(*SavedCompaction)
		if IsSet(row) || r.now.mode == restoreVerify && !isCompaction {
			continue
		}
		if err := row.(restorable).restore(r); err != nil {
			return err
		}
	}
	if r.now.mode == restoreVerify || !r.now.changed {
		r.res.Session, r.res.Duplicates = r.sess, r.batch.Records
		return nil
	}
	if err := r.updateOverlay(&r.sess); err != nil {
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

// restorable is a row of a file: a compaction, a frozen text, a block, a context, a call, or one of a
// set, which applies at the end.
type restorable interface{ restore(r *restorer) error }

// open finds the session, or creates it: as a draft of revision 0, which is not listed, until it is whole.
func (r *restorer) open() error {
	in := &r.batch.Session.Session
	want, source, sourceID := in.ID, in.Source, in.SourceID
	if r.batch.Into.Copy {
		sourceID = string(in.ID)
		copied, err := sessionOfSource(r.Ctx, r, source, sourceID)
		if err != nil {
			return err
		}
		if copied == "" {
			return r.create("", sourceID)
		}
		want = copied
	}
	here, err := readAncestor(r.Ctx, r.tx, want)
	if session.CodeOf(err) == session.NotFound {
		return r.create(want, sourceID)
	}
	if err != nil {
		return err
	}
	if _, err := readSession(r.Ctx, r.tx, want); !r.isShell() && session.CodeOf(err) == session.NotFound {
		return r.openPurged(want)
	}
	if here.Source != source || !r.isShell() && here.SourceID != sourceID {
		return session.Errorf(session.Conflict,
			"another session has the id %s here; --as-copy brings this one in under a new id", want)
	}
	r.now.id = want
	switch {
	case r.isShell() && here.Revision == 0: // an import of it was broken off
		r.now.mode, r.now.changed = restoreForward, true
	case r.isShell() || here.Revision > in.Revision:
		r.now.mode = restoreVerify
	default: // a compaction that is not done, and a context that was handed out, do not count as a change
		r.now.mode, r.now.changed = restoreForward, here.Revision < in.Revision
		if r.now.contexts, err = engine.List[int64](r.Ctx, r, `SELECT id FROM contexts WHERE session_id = ? ORDER BY id`,
			want); err != nil {
			return err
		}
		r.now.known, err = engine.Get[int64](r.Ctx, r, `SELECT COUNT(*) FROM calls WHERE session_id = ? AND session_id <> ''`, want)
		return err
	}
	return nil
}

// isShell reports whether the session was purged where the file was written: what forks share of it is
// left, without a name, and visible only through them. Where the session is here, whole or as a
// shell, its messages only have to be the file's.
func (r *restorer) isShell() bool { return r.batch.Session.PurgedAt != nil }

// create makes the session, with an id of its own when want is "". The day's counter moves
// past the id, so that it is never given again.
func (r *restorer) create(want session.ID, sourceID string) error {
	in := &r.batch.Session.Session
	other, err := sessionOfSource(r.Ctx, r, in.Source, sourceID)
	if err == nil && other != "" {
		err = session.Errorf(session.Conflict,
			"session %s is here already, as %s, under its id of %s, %q; --as-copy brings it in once more", in.ID, other,
			in.Source, sourceID)
	}
	if err != nil {
		return err
	}
	if out, err := r.leaveOut(); err != nil || out {
		return err
	}
	if _, err := time.Parse(time.DateOnly, in.Day); err != nil {
		return session.Errorf(session.Invalid, "session %s has no day", in.ID)
	}
	if want == "" {
		if want, err = r.newID(in.Day); err != nil {
			return err
		}
	} else if err := r.passID(want); err != nil {
		return err
	}
	err = r.Exec(`INSERT INTO sessions (id, day, draft, source, source_id, owner, host, directory, project, foreign_from, revision,
		created_at, updated_at, active_at, purged_at)
		VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
		want, in.Day, orElse(in.Source, session.SourceSessiond), sourceID, in.Owner, in.Host, in.Directory, in.Project,
		orElse(r.batch.Foreign, in.ForeignFrom), in.CreatedAt, r.tx.Now, earlier(in.CreatedAt, r.tx.Now),
		r.batch.Session.PurgedAt)
	if err != nil {
		return fmt.Errorf("insert session: %w", err)
	}
	r.now.id, r.now.changed, r.res.Created = want, true, true
	if r.isShell() {
		return nil
	}
	return r.event(want, EventSessionCreated, 0, nil)
}

// openPurged handles a session of which only what its forks share is here. It cannot come back under its own id while
// they share that.
func (r *restorer) openPurged(want session.ID) error {
	if r.batch.Into.Purged {
		return session.Errorf(session.Conflict,
			"session %s was purged here, and forks still share messages of it; --purged --as-copy brings it in under a new id",
			want)
	}
	r.now.mode = restorePurged
	return nil
}

// leaveOut reports whether the session was purged here and stays out. A fork of one that stays out has no messages to
// begin with. Codes: Conflict.
func (r *restorer) leaveOut() (bool, error) {
	in, into := &r.batch.Session, r.batch.Into
	if r.isShell() { // its forks need it
		return false, nil
	}
	gone, err := r.purgedHere(tombstonesOf(&in.Session), into.Purged)
	if err != nil {
		return false, err
	}
	if gone {
		r.now.mode = restorePurged
		return true, r.purgeShell()
	}
	if in.ParentKind != session.ParentFork || !into.left[in.ParentID] {
		return false, nil
	}
	if kept, err := r.Exists(`SELECT 1 FROM sessions WHERE id = ?`, in.ParentID); err != nil || kept {
		return false, err
	}
	return false, session.Errorf(session.Conflict,
		"session %s is not imported: %s, from which it was forked, was purged here; --purged brings both back", in.ID,
		in.ParentID)
}

// purgeShell begins the purge of what the file has of a purged session for a fork that stays out. A fork that comes in
// later keeps what it shares.
func (r *restorer) purgeShell() error {
	in := &r.batch.Session
	if in.ParentKind != session.ParentFork {
		return nil
	}
	return r.Exec(`INSERT INTO purging (session_id, started_at, told) SELECT id, ?, 1 FROM sessions WHERE id = ? AND purged_at IS NOT NULL
		ON CONFLICT DO NOTHING`, r.tx.Now, in.ParentID)
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
	return r.Exec(raiseIDCounter, digits[:4]+"-"+digits[4:6]+"-"+digits[6:], n)
}

// here returns the name that a message of the file has here: a copied session has another id.
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

// messageRow returns the row of a message that the file names, nil for none. The first name that
// is nowhere stays in r.unknown.
func (r *restorer) messageRow(what string, ref *session.MessageRef) *int64 {
	if ref == nil || r.unknown != nil {
		return nil
	}
	at, err := r.placeAfter(r.here(*ref))
	if session.CodeOf(err) == session.NotFound {
		err = session.Errorf(session.Invalid,
			"%s of session %s names message %s, which is neither in the file before it nor here", what, r.batch.Session.ID, ref)
	}
	r.unknown = err
	return at.id
}

// compactionRow returns the row of a compaction that the file names, nil for none: one of the
// file, else, of a session that is not in it, one that is here.
func (r *restorer) compactionRow(ref CompactionRef) *int64 {
	if ref == (CompactionRef{}) || r.unknown != nil {
		return nil
	}
	for _, known := range []map[CompactionRef]int64{r.newCompactions, r.batch.Into.compactions} {
		if row, ok := known[ref]; ok {
			return &row
		}
	}
	row, err := engine.Get[int64](r.Ctx, r, nthCompaction, r.hereID(ref.Session), max(0, ref.N-1))
	if engine.NoRows(err) {
		err = session.Errorf(session.Invalid,
			"session %s names compaction %d of %s, which is neither in the file before it nor here", r.batch.Session.ID, ref.N,
			ref.Session)
	}
	r.unknown = err
	return &row
}

const nthCompaction = `SELECT id FROM compactions WHERE session_id = ? ORDER BY id LIMIT 1 OFFSET ?`

// messages compares those that are here and inserts the others.
func (r *restorer) messages() error {
	batch := r.batch.Messages
	known := 0
	for known < len(batch) && batch[known].ID.Seq <= r.sess.LastSeq {
		known++
	}
	most := len(batch)
	if r.isShell() {
		most = 1 // of its messages not all are there
	}
	for run := range slices.Chunk(batch[:known], max(1, most)) {
		if err := r.compare(run); err != nil {
			return err
		}
	}
	if r.now.mode == restoreVerify || !r.now.changed {
		if known < len(batch) {
			return r.conflict(batch[known].ID)
		}
		return nil
	}
	for i := known; i < len(batch); i++ {
		if err := r.message(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// compare refuses a session whose messages are others than the file's.
func (r *restorer) compare(batch []RestoreMessage) error {
	if len(batch) == 0 {
		return nil
	}
	from, to := batch[0].ID.Seq, batch[len(batch)-1].ID.Seq
	here, err := readRangeRows(r.Ctx, r, r.now.id, from, to)
	if err != nil {
		return err
	}
	for i := range batch {
		if i >= len(here) || !r.same(&batch[i].Message, &here[i]) {
			return r.conflict(batch[i].ID)
		}
		r.res.Duplicates++
	}
	return nil
}

func (r *restorer) conflict(ref session.MessageRef) error {
	return session.Errorf(session.Conflict,
		"session %s is here with other content, from message %s on; --as-copy brings the file's in under a new id",
		ref.Session, ref)
}

// same reports whether a message of the file is the one that is here, in everything that was said.
func (r *restorer) same(in, here *session.Message) bool {
	if in.Seq != here.Seq || (in.Parent == nil) != (here.Parent == nil) ||
		in.Parent != nil && r.here(*in.Parent) != *here.Parent {
		return false
	}
	if in.Kind != here.Kind || in.Role != here.Role || in.Origin != here.Origin || in.Finish != here.Finish ||
		in.Author != here.Author ||
		in.InContext != here.InContext || in.Display != here.Display || in.ExternalID != here.ExternalID ||
		!in.CreatedAt.Equal(here.CreatedAt.Time) || !equalJSON(in.Extra, here.Extra) || len(in.Parts) != len(here.Parts) {
		return false
	}
	for i := range in.Parts {
		a, b := &in.Parts[i], &here.Parts[i]
		if a.Kind != b.Kind || a.Text != b.Text || a.ToolName != b.ToolName || a.CallID != b.CallID ||
			a.Arguments != b.Arguments ||
			!sameText(a.BlobSHA, b.BlobSHA) || !equalJSON(a.Extra, b.Extra) {
			return false
		}
	}
	return true
}

func sameText(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func (r *restorer) message(in *RestoreMessage) error {
	m := &in.Message
	if m.ID.Seq <= r.sess.LastSeq {
		return session.Errorf(session.Invalid, "message %s does not stand in order of seq", m.ID)
	}
	var at place
	if m.Parent != nil {
		var err error
		if at, err = r.placeAfter(r.here(*m.Parent)); session.CodeOf(err) == session.NotFound {
			return session.Errorf(session.Invalid,
				"message %s follows message %s, which is neither in the file before it nor here", m.ID, *m.Parent)
		} else if err != nil {
			return err
		}
	}
	named := m.ID
	r.sess.LastSeq = named.Seq - 1
	if err := r.insertRow(&r.sess, at, m); err != nil {
		return fmt.Errorf("message %s: %w", named, err)
	}
	err := r.insertParts(&r.sess, m, func(i int) (*int64, error) {
		call, ok := in.Answers[int64(i)]
		if !ok {
			return nil, nil
		}
		if call.Message == named {
			row := m.RowID<<10 | call.Idx
			return &row, nil
		}
		id := r.messageRow("a result", &call.Message)
		if r.unknown != nil {
			return nil, r.unknown
		}
		row := *id<<10 | call.Idx
		return &row, nil
	})
	if err != nil {
		return fmt.Errorf("message %s: %w", named, err)
	}
	progress(&r.sess, m, r.tx.Now)
	r.res.Messages++
	return nil
}

// restore inserts a compaction that is not here; one is known again by its time of creation.
func (in *SavedCompaction) restore(r *restorer) error {
	known, err := engine.First[int64](r.Ctx, r, `SELECT id FROM compactions WHERE session_id = ? AND created_at = ? ORDER BY id LIMIT 1`, r.now.id, in.CreatedAt)
	if err != nil {
		return err
	}
	if known != nil && r.now.mode != restoreNew && !r.taken(*known) {
		r.newCompactions[in.ID] = *known
		return r.outcome(*known, in)
	}
	if r.now.mode == restoreVerify {
		return nil
	}
	c := in.Compaction
	c.SessionID, c.Details = r.now.id, r.detailsHere(c.Details)
	c.PreviousID = r.compactionRow(in.Previous)
	c.ThroughID, c.FirstKeptID = r.messageRow("a compaction", in.Through), r.messageRow("a compaction", in.FirstKept)
	if r.unknown != nil {
		return r.unknown
	}
	if err := r.insertCompaction(&c); err != nil {
		return err
	}
	r.newCompactions[in.ID], r.now.changed = c.RowID, true
	return nil
}

// taken reports whether a row stands for a compaction of the file already.
func (r *restorer) taken(row int64) bool {
	for _, known := range []map[CompactionRef]int64{r.newCompactions, r.batch.Into.compactions} {
		for _, have := range known {
			if have == row {
				return true
			}
		}
	}
	return false
}

// outcome updates a compaction that is running or staged here with its outcome in the file.
func (r *restorer) outcome(row int64, in *SavedCompaction) error {
	if r.now.mode != restoreForward {
		return nil
	}
	here, err := readCompaction(r.Ctx, r.tx, row)
	if err != nil || here.Status == in.Status ||
		here.Status != session.StatusRunning && here.Status != session.StatusStaged {
		return err
	}
	c := in.Compaction
	c.RowID, c.PreviousID, c.Details = row, here.PreviousID, r.detailsHere(in.Details)
	c.ThroughID, c.FirstKeptID = r.messageRow("a compaction", in.Through), r.messageRow("a compaction", in.FirstKept)
	if r.unknown != nil {
		return r.unknown
	}
	r.now.changed = true
	return r.updateCompaction(&c)
}

// detailsHere renames the messages in an overlay's details: a copy's messages have other names.
func (r *restorer) detailsHere(raw session.JSON) session.JSON {
	var d session.CompactionDetails
	if r.now.id == r.batch.Session.ID && len(r.batch.Into.ids) == 0 || json.Unmarshal(raw, &d) != nil {
		return raw
	}
	d.TurnStart, d.LastPerson, d.Record = r.hereName(d.TurnStart), r.hereName(d.LastPerson), r.hereName(d.Record)
	for i, output := range d.Pruned {
		d.Pruned[i] = r.hereName(output)
	}
	for i := range d.Replaced {
		for j, name := range d.Replaced[i].Messages {
			d.Replaced[i].Messages[j] = r.hereName(name)
		}
	}
	return session.JSONOf(d)
}

// hereName is here for the written name of a message, or of an output of one.
func (r *restorer) hereName(name string) string {
	message, output, of := strings.Cut(name, "/")
	ref, err := session.ParseRef(message)
	if err != nil {
		return name
	}
	if message = r.here(ref).String(); of {
		message += "/" + output
	}
	return message
}

func (in *SavedFrozen) restore(r *restorer) error {
	f := in.Frozen
	message := r.messageRow("what was frozen", &in.Message)
	f.SessionID, f.CompactionID = r.now.id, r.compactionRow(in.Compaction)
	if r.unknown != nil {
		return r.unknown
	}
	f.MessageID = *message
	return r.freeze(f)
}

// restore keeps a block, which must be what its hash says.
func (b *Block) restore(r *restorer) error {
	if b.Hash != hash([]byte(b.Content)) {
		return session.Errorf(session.Invalid, "the block %s of session %s is not what its hash says", b.Hash,
			r.batch.Session.ID)
	}
	return r.keepBlock(*b)
}

// checkBlocks refuses a context that names a block which is not here: an export could not write it.
func (r *restorer) checkBlocks(c *session.Context) error {
	for _, hash := range []string{c.SystemHash, c.InitialHash, c.ToolsHash} {
		if hash == "" {
			continue
		}
		if kept, err := r.Exists(`SELECT 1 FROM blocks WHERE hash = ?`, hash); err != nil {
			return err
		} else if !kept {
			return session.Errorf(session.Invalid,
				"a context of session %s is made of the block %s, which is not in the file before it", r.batch.Session.ID, hash)
		}
	}
	return nil
}

// restore inserts a context beyond the ones that are here.
func (in *SavedContext) restore(r *restorer) error {
	if r.now.seen++; r.now.seen <= int64(len(r.now.contexts)) {
		return nil
	}
	c := in.Context
	c.SessionID, c.SystemHash, c.InitialHash, c.ToolsHash, c.Limits = r.now.id, in.System, in.Initial, in.Tools, in.Limits
	if err := r.checkBlocks(&c); err != nil {
		return err
	}
	if c.HeadID, c.CompactionID = r.messageRow("a context", in.Head), r.compactionRow(in.Compaction); r.unknown != nil {
		return r.unknown
	}
	if err := r.insertContext(&c); err != nil {
		return err
	}
	r.now.contexts, r.now.changed = append(r.now.contexts, c.RowID), true
	return nil
}

// restore counts a call beyond the ones that are here. One that is known by its source's id is
// counted nowhere again.
func (in *SavedCall) restore(r *restorer) error {
	if r.now.calls++; r.now.calls <= r.now.known {
		return nil
	}
	c := in.call()
	c.SessionID = r.now.id
	if c.MessageID, c.CompactionID = r.messageRow("a call", in.Message), r.compactionRow(in.Compaction); r.unknown != nil {
		return r.unknown
	}
	switch n := in.Context.N; {
	case n == 0:
	case n < 0 || n > int64(len(r.now.contexts)):
		return session.Errorf(session.Invalid, "a call names context %d of session %s, which has %d", n, r.batch.Session.ID,
			len(r.now.contexts))
	default:
		c.ContextID = &r.now.contexts[n-1]
	}
	if err := r.addCall(&c, &r.sess); err != nil {
		return err
	}
	if c.RowID != 0 {
		r.res.Calls++
		r.now.changed = true
	}
	return nil
}

// call returns the row that a line stands for, without what it belongs to.
func (in *SavedCall) call() session.Call {
	c := in.Call
	c.RowID, c.ExternalID, c.CostNanoUSD = 0, in.ExternalID, in.CostNanoUSD
	return c
}

// finish replaces the sets and updates the session's own fields from the file.
func (r *restorer) finish() error {
	if err := r.sets(); err != nil {
		return err
	}
	if err := r.link(); err != nil {
		return err
	}
	in, s := r.batch.Session.Session, &r.sess
	if s.HeadID = r.messageRow("the head", in.Head); r.unknown != nil {
		return r.unknown
	}
	s.ParentID, s.ParentKind, s.CreatedAt, s.Project = r.hereID(in.ParentID), in.ParentKind, in.CreatedAt, in.Project
	in.UpdatedAt, in.ActiveAt = earlier(in.UpdatedAt, r.tx.Now), earlier(in.ActiveAt, r.tx.Now) // lists are in their order
	if in.InboundAt != nil {
		at := earlier(*in.InboundAt, r.tx.Now)
		in.InboundAt = &at
	}
	was := *s
	was.Draft = r.draft
	if err := r.updateOverlay(s); err != nil {
		return err
	}
	if in.Metadata == nil {
		in.Metadata = session.JSON(`{}`)
	}
	if err := r.keepOneGenerationOpen(&in); err != nil {
		return err
	}
	err := r.moveUsage(s.ID, nil, func() error {
		return r.Exec(`UPDATE sessions SET project = ?, parent_id = ?, parent_kind = ? WHERE id = ?`, in.Project, s.ParentID, s.ParentKind, s.ID)
	})
	if err != nil {
		return fmt.Errorf("update session: %w", err)
	}
	err = r.Exec(`UPDATE sessions SET title = ?, title_source = ?, kind = ?, draft = ?, settings = ?, key = ?, generation = ?,
		git_branch = ?, foreign_from = ?, provider = ?, model = ?, "window" = ?, head_id = ?, last_seq = ?,
		compaction_id = ?, epoch = ?, revision = ?, message_count = ?, said_count = ?, total_tokens = ?, context_tokens = ?, compaction_count = (`+countedCompactions+`),
		turn_origin = ?, created_at = ?, updated_at = ?, active_at = ?, inbound_at = ?, archived_at = ?, starred_at = ?, deleted_at = ?, ended_at = ?,
		end_reason = ?, metadata = ? WHERE id = ?`,
		in.Title, in.TitleSource, orElse(in.Kind, "chat"), in.Draft, in.Settings, in.Key, in.Generation,
		in.GitBranch, orElse(r.batch.Foreign, in.ForeignFrom), in.Provider, in.Model, in.Window, s.HeadID, s.LastSeq,
		s.CompactionID, in.Epoch, in.Revision, s.MessageCount, s.SaidCount, s.TotalTokens, s.ContextTokens, s.ID, s.ID,
		r.batch.Session.TurnOrigin, in.CreatedAt, in.UpdatedAt, in.ActiveAt, in.InboundAt, in.ArchivedAt, in.StarredAt,
		in.DeletedAt, in.EndedAt,
		in.EndReason, in.Metadata, s.ID)
	if err != nil {
		return fmt.Errorf("update session: %w", err)
	}
	if !r.isShell() {
		if err := r.event(s.ID, EventSessionChanged, 0, nil); err != nil {
			return err
		}
	}
	if r.sess, err = readAncestor(r.Ctx, r.tx, s.ID); err != nil {
		return err
	}
	if err := r.countSession(&was, -1); err != nil {
		return err
	}
	return r.countSession(&r.sess, 1)
}

const countedCompactions = `SELECT COUNT(*) FROM compactions c WHERE c.session_id = ? AND c.status = 'done'
	AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = ? AND u.compaction_id = c.id)`

// keepOneGenerationOpen sees to it that the session's key has one open generation: a conversation that goes on
// under it here goes on, and the one that comes in has ended where it was.
func (r *restorer) keepOneGenerationOpen(in *session.Session) error {
	if in.Key == "" || in.EndedAt != nil || in.DeletedAt != nil || r.isShell() {
		return nil
	}
	open, err := r.openGenerations(in.Key, r.now.id)
	if err != nil || len(open) == 0 {
		return err
	}
	at := in.ActiveAt
	in.EndedAt, in.EndReason = &at, endedByProgram
	return r.renumberGeneration(&open[len(open)-1], in.Generation)
}

// sets replaces undos, marks, states and flushes.
func (r *restorer) sets() error {
	for _, table := range []string{"compaction_undos", "marks", "states", "flushes"} {
		if err := r.Exec(`DELETE FROM `+table+` WHERE session_id = ?`, r.now.id); err != nil {
			return err
		}
	}
	for _, row := range r.batch.Rows {
		if !IsSet(row) {
			continue
		}
		if err := row.(restorable).restore(r); err != nil {
			return err
		}
	}
	return nil
}

func (in *SavedUndo) restore(r *restorer) error {
	return r.set(`INSERT INTO compaction_undos (session_id, compaction_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		r.compactionRow(in.Compaction), in.At)
}

func (in *SavedMark) restore(r *restorer) error {
	row, kind := new(int64), in.Kind
	if in.Message != nil {
		row = r.messageRow("a mark", in.Message)
	}
	if kind == MarkLabel {
		kind = MarkTag
	}
	return r.set(`INSERT INTO marks (session_id, message_id, kind, text, created_at, place, revision) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		row, kind, in.Text, in.At, in.Place, in.Revision)
}

func (in *SavedState) restore(r *restorer) error {
	return r.set(`INSERT INTO states (session_id, name, revision, value, updated_at, deleted_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		in.Name, in.Revision, in.Value, in.UpdatedAt, in.DeletedAt)
}

func (in *SavedFlush) restore(r *restorer) error {
	return r.set(`INSERT INTO flushes (session_id, compaction_id, at, outcome) VALUES (?, COALESCE(?, 0), ?, ?) ON CONFLICT DO NOTHING`,
		r.compactionRow(in.Compaction), in.At, in.Outcome)
}

// set inserts a row of a set; the first argument of the statement is the session.
func (r *restorer) set(query string, args ...any) error {
	if r.unknown != nil {
		return r.unknown
	}
	return r.Exec(query, append([]any{r.now.id}, args...)...)
}

// link stores how the session hangs on its parent. What a fork inherits ends with a row of its
// parent's; those of sessions further up came in before any of the parent's.
func (r *restorer) link() error {
	in := r.batch.Session.Link
	if in == nil {
		if r.batch.Session.ParentID == "" {
			return nil
		}
		return r.saveLink(r.now.id, link{}) // it shares nothing
	}
	l := link{CallID: in.Call, Root: r.hereID(in.Root), Number: in.Number}
	l.MessageID = r.messageRow("the link", in.Message)
	if session.CodeOf(r.unknown) == session.Invalid && r.batch.Session.ParentKind == session.ParentChild {
		r.unknown = nil // a sub-agent came in without the session that started it
	}
	if r.unknown != nil {
		return r.unknown
	}
	if in.ActivatedAt != nil {
		l.ActivatedAt = in.ActivatedAt.SQL()
	}
	parent := r.batch.Session.ParentID
	var err error
	if l.CompactionID, err = r.nthOf("compactions", r.hereID(parent), in.Compactions); err != nil {
		return err
	}
	if row := r.batch.Into.compactions[CompactionRef{parent, in.Compactions}]; row > 0 { // of the file
		l.CompactionID = row
	}
	if l.FrozenID, err = r.nthOf("frozen", r.hereID(parent), in.Frozen); err != nil {
		return err
	}
	return r.saveLink(r.now.id, l)
}

// nthOf returns the last row that a fork inherits of its parent's first n: for 0 one before the first,
// the newest of all where the parent has fewer, and the highest number for -1.
func (r *restorer) nthOf(table string, parent session.ID, n int64) (int64, error) {
	if n < 0 {
		return math.MaxInt64, nil
	}
	return engine.Get[int64](r.Ctx, r, `SELECT COALESCE((SELECT id FROM `+table+` WHERE session_id = ?1 ORDER BY id LIMIT 1 OFFSET MAX(?2 - 1, 0)) - CASE WHEN ?2 = 0 THEN 1 ELSE 0 END,
		(SELECT COALESCE(MAX(id), 0) FROM `+table+`))`, parent, n)
}

// saveCounts updates the counters after a piece; finish writes the other fields with the last one.
func (r *restorer) saveCounts() error {
	s := &r.sess
	return r.Exec(`UPDATE sessions SET head_id = ?, last_seq = ?, message_count = ?, said_count = ?, total_tokens = ?, compaction_id = ?,
		context_tokens = ? WHERE id = ?`,
		s.HeadID, s.LastSeq, s.MessageCount, s.SaidCount, s.TotalTokens, s.CompactionID, s.ContextTokens, s.ID)
}

// equalJSON reports whether two values are written the same but for white space.
func equalJSON(a, b session.JSON) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := jsontext.AppendFormat(nil, a, compactly)
	y, errY := jsontext.AppendFormat(nil, b, compactly)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

var compactly = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	jsontext.PreserveRawStrings(true))

// textsOf lists every text in the fields of values, which SQLite must be able to hold.
func textsOf(values ...any) (all []field) {
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			all = append(all, field{name, v.String()})
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(name, v.Elem())
			}
		case reflect.Slice:
			if v.Type() == reflect.TypeFor[session.JSON]() {
				all = append(all, field{name, string(v.Bytes())})
				return
			}
			for i := range v.Len() {
				walk(name, v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[session.Time]() {
				return
			}
			for i := range v.NumField() {
				walk(strings.ToLower(v.Type().Field(i).Name), v.Field(i))
			}
		}
	}
	for _, v := range values {
		walk("", reflect.ValueOf(v))
	}
	return all
}
