package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"sessiond/internal/session"
)

// Snapshot is a session as it stood at one moment, for whoever copies it whole. What can
// change later is in it; of what only grows it says how far that went then, so that it can be
// read afterwards at any pace, without a transaction that stays open.
type Snapshot struct {
	Session     session.Session
	PurgedAt    *session.Time        // it was purged: what is left of it is what forks share
	Compactions []NumberedCompaction // its own, oldest first
	Undos       []Undo
	Marks       []Mark
	States      []State
	Flushes     []Flush
	Link        *Link   // nil: it shares nothing and nothing started it
	Frozen      []int64 // rows, in the order in which they came
	Contexts    Growth
	Calls       Growth
}

// Link is how a session hangs on its parent, without rows: of what a fork inherits it says how
// many of the parent's records and frozen texts were there, -1 for all.
type Link struct {
	Message     *session.MessageRef
	Call        string
	Root        session.ID
	Number      int64
	Compactions int64
	Frozen      int64
	ActivatedAt *session.Time
}

// Growth is how far a table of a session's rows had grown.
type Growth struct {
	Rows int64 `db:"n"`
	Last int64 `db:"last"` // row id of the newest; 0: none
}

// CompactionRef names a compaction without its row, which is another one in another file:
// the n-th of its session, from 1.
type CompactionRef struct {
	Session session.ID `db:"session_id"`
	N       int64      `db:"n"`
}

// NumberedCompaction is a record with its place among its session's.
type NumberedCompaction struct {
	session.Compaction
	Ref  CompactionRef
	From CompactionRef // the one that it was built on; zero: none
}

// Undo says that a compaction, the session's own or an inherited one, is undone in it.
type Undo struct {
	CompactionID int64 `db:"compaction_id"`
	Compaction   CompactionRef
	At           session.Time `db:"at"`
}

// Mark is a pin or label on a message of the session's tree.
type Mark struct {
	Message session.MessageRef
	Kind    string
	Text    string
	At      session.Time
}

// State is a named document of a session.
type State struct {
	Name      string        `db:"name"`
	Revision  int64         `db:"revision"`
	Value     session.JSON  `db:"value"`
	UpdatedAt session.Time  `db:"updated_at"`
	DeletedAt *session.Time `db:"deleted_at"` // it was taken away, and keeps its revision
}

// Flush is a memory flush that a caller reported.
type Flush struct {
	CompactionID int64 `db:"compaction_id"` // 0: before the first
	Compaction   CompactionRef
	At           session.Time `db:"at"`
	Outcome      string       `db:"outcome"`
}

// Block is what a caller gave beside the messages.
type Block struct {
	Hash      string       `db:"hash"`
	Kind      string       `db:"kind"`
	Content   string       `db:"content"`
	CreatedAt session.Time `db:"created_at"`
}

// Snapshot reads a session in one short transaction, also what is left of one that was purged
// and has forks. Codes: NotFound.
func (s *Store) Snapshot(ctx context.Context, id session.ID) (*Snapshot, error) {
	tx, err := s.readers.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	q := &readTx{tx}
	snap := &Snapshot{}
	if snap.Session, err = readAncestor(ctx, q, id); err != nil {
		return nil, err
	}
	if err := q.get(ctx, &snap.PurgedAt, `SELECT purged_at FROM sessions WHERE id = ?`, id); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	for _, read := range []func(context.Context, *readTx) error{snap.compactions, snap.link, snap.sets, snap.growth} {
		if err := read(ctx, q); err != nil {
			return nil, fmt.Errorf("snapshot of %s: %w", id, err)
		}
	}
	return snap, nil
}

func (snap *Snapshot) compactions(ctx context.Context, q *readTx) error {
	var own []session.Compaction
	id := snap.Session.ID
	if err := q.list(ctx, &own, `SELECT `+compactionColumns+` FROM compactions c WHERE c.session_id = ? ORDER BY c.id`, id); err != nil {
		return err
	}
	for i := range own {
		c := NumberedCompaction{Compaction: own[i], Ref: CompactionRef{id, int64(i) + 1}}
		if err := nameCompaction(ctx, q, &c.Compaction); err != nil {
			return err
		}
		if c.PreviousID != nil {
			var err error
			if c.From, err = compactionRef(ctx, q, *c.PreviousID); err != nil {
				return err
			}
		}
		snap.Compactions = append(snap.Compactions, c)
	}
	return nil
}

// compactionRef numbers a record.
func compactionRef(ctx context.Context, q queryer, rowID int64) (CompactionRef, error) {
	var ref CompactionRef
	err := q.each(ctx, func(row scanner) error { return row.Scan(&ref.Session, &ref.N) }, numberOfCompaction, rowID)
	if err == nil && ref.N == 0 {
		err = session.Errorf(session.NotFound, "a compaction that should be there is gone (row %d): run `sessiond doctor`", rowID)
	}
	return ref, err
}

const numberOfCompaction = `
	SELECT c.session_id, (SELECT COUNT(*) FROM compactions d WHERE d.session_id = c.session_id AND d.id <= c.id)
	FROM compactions c WHERE c.id = ?`

func (snap *Snapshot) link(ctx context.Context, q *readTx) error {
	l, err := readLink(ctx, q, snap.Session.ID)
	if err != nil || l.messageID == nil && l == (link{}) {
		return err
	}
	out := Link{Call: l.callID, Root: l.root, Number: l.number, Compactions: -1, Frozen: -1}
	if l.messageID != nil {
		ref, err := refOf(ctx, q, *l.messageID)
		if err != nil {
			return err
		}
		out.Message = &ref
	}
	if l.activatedAt != "" {
		out.ActivatedAt = &session.Time{}
		if err := out.ActivatedAt.Scan(l.activatedAt); err != nil {
			return err
		}
	}
	for _, bound := range []struct {
		to    *int64
		upto  int64
		query string
	}{
		{&out.Compactions, l.compactionID, `SELECT COUNT(*) FROM compactions WHERE session_id = ? AND id <= ?`},
		{&out.Frozen, l.frozenID, `SELECT COUNT(*) FROM frozen WHERE session_id = ? AND id <= ?`},
	} {
		if bound.upto == math.MaxInt64 {
			continue
		}
		if err := q.get(ctx, bound.to, bound.query, snap.Session.ParentID, bound.upto); err != nil {
			return err
		}
	}
	snap.Link = &out
	return nil
}

// sets reads what is replaced and taken away, in an order that is the same in every file.
func (snap *Snapshot) sets(ctx context.Context, q *readTx) error {
	id := snap.Session.ID
	if err := q.list(ctx, &snap.Undos, `SELECT compaction_id, at FROM compaction_undos WHERE session_id = ?`, id); err != nil {
		return err
	}
	var err error
	for i := range snap.Undos {
		u := &snap.Undos[i]
		if u.Compaction, err = compactionRef(ctx, q, u.CompactionID); err != nil {
			return err
		}
	}
	slices.SortFunc(snap.Undos, func(a, b Undo) int { return compareRefs(a.Compaction, b.Compaction) })
	err = q.each(ctx, func(row scanner) error {
		var m Mark
		err := row.Scan(&m.Message.Session, &m.Message.Seq, &m.Kind, &m.Text, &m.At)
		snap.Marks = append(snap.Marks, m)
		return err
	}, marksOfSession, id)
	if err != nil {
		return err
	}
	slices.SortFunc(snap.Marks, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.Message.Session, b.Message.Session), cmp.Compare(a.Message.Seq, b.Message.Seq), cmp.Compare(a.Kind, b.Kind))
	})
	if err := q.list(ctx, &snap.States, `SELECT name, revision, value, updated_at, deleted_at FROM states WHERE session_id = ? ORDER BY name`, id); err != nil {
		return err
	}
	if err := q.list(ctx, &snap.Flushes, `SELECT compaction_id, at, outcome FROM flushes WHERE session_id = ?`, id); err != nil {
		return err
	}
	for i := range snap.Flushes {
		f := &snap.Flushes[i]
		if f.CompactionID == 0 {
			continue
		}
		if f.Compaction, err = compactionRef(ctx, q, f.CompactionID); err != nil {
			return err
		}
	}
	slices.SortFunc(snap.Flushes, func(a, b Flush) int { return compareRefs(a.Compaction, b.Compaction) })
	return nil
}

func compareRefs(a, b CompactionRef) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.N, b.N))
}

const marksOfSession = `
	SELECT m.session_id, m.seq, k.kind, k.text, k.created_at FROM marks k JOIN messages m ON m.id = k.message_id WHERE k.session_id = ?`

func (snap *Snapshot) growth(ctx context.Context, q *readTx) error {
	if err := q.list(ctx, &snap.Frozen, `SELECT id FROM frozen WHERE session_id = ?`, snap.Session.ID); err != nil {
		return err
	}
	slices.Sort(snap.Frozen)
	for _, g := range []struct {
		to    *Growth
		query string
	}{
		{&snap.Contexts, `SELECT COUNT(*) AS n, COALESCE(MAX(id), 0) AS last FROM contexts WHERE session_id = ?`},
		{&snap.Calls, `SELECT COUNT(*) AS n, COALESCE(MAX(id), 0) AS last FROM calls WHERE session_id = ? AND session_id <> ''`},
	} {
		if err := q.get(ctx, g.to, g.query, snap.Session.ID); err != nil {
			return err
		}
	}
	return nil
}

// copyPage is how many rows one statement of a copy reads.
const copyPage = 200

// EachMessage yields a session's own messages up to a seq, in order, without the contents of
// their blobs, which Blob gives: whoever copies a session holds one at a time. Codes: NotFound
// (some were purged meanwhile).
func (s *Store) EachMessage(ctx context.Context, id session.ID, upto int64, yield func(*session.Message) error) error {
	_, err := s.eachInRange(ctx, id, 1, upto, yield)
	return err
}

// RefOf names a message by its row. Codes: NotFound.
func (s *Store) RefOf(ctx context.Context, rowID int64) (session.MessageRef, error) {
	return refOf(ctx, s, rowID)
}

// RefOfCompaction numbers a compaction by its row. Codes: NotFound.
func (s *Store) RefOfCompaction(ctx context.Context, rowID int64) (CompactionRef, error) {
	return compactionRef(ctx, s, rowID)
}

// EachFrozen yields what was frozen, by its rows.
func (s *Store) EachFrozen(ctx context.Context, rows []int64, yield func(*session.Frozen) error) error {
	for _, row := range rows {
		var f session.Frozen
		if err := s.get(ctx, &f, `SELECT id, session_id, message_id, kind, compaction_id, content FROM frozen WHERE id = ?`, row); err != nil {
			return fmt.Errorf("frozen row %d: %w", row, err)
		}
		if err := yield(&f); err != nil {
			return err
		}
	}
	return nil
}

// EachContext yields the contexts that were handed out for a session, in order, up to a row.
func (s *Store) EachContext(ctx context.Context, id session.ID, upto int64, yield func(*session.Context) error) error {
	return eachOf(ctx, s, contextsOfSession, id, upto, func(c *session.Context) int64 { return c.RowID }, yield)
}

const contextsOfSession = `SELECT ` + contextColumns + ` FROM contexts WHERE session_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT +?`

// EachCall yields a session's calls, in order, up to a row.
func (s *Store) EachCall(ctx context.Context, id session.ID, upto int64, yield func(*session.Call) error) error {
	return eachOf(ctx, s, callsUpTo, id, upto, func(c *session.Call) int64 { return c.RowID }, yield)
}

const callsUpTo = `SELECT ` + callColumns + ` FROM calls WHERE session_id = ? AND session_id <> '' AND id > ? AND id <= ? ORDER BY id LIMIT +?`

// eachOf reads rows in pages, so that no statement is open while they are worked on.
func eachOf[T any](ctx context.Context, s *Store, query string, id session.ID, upto int64, rowID func(*T) int64, yield func(*T) error) error {
	for after := int64(0); after < upto; {
		var page []T
		if err := s.list(ctx, &page, query, id, after, upto, copyPage); err != nil {
			return fmt.Errorf("rows of %s: %w", id, err)
		}
		for i := range page {
			if err := yield(&page[i]); err != nil {
				return err
			}
		}
		if len(page) < copyPage {
			return nil
		}
		after = rowID(&page[len(page)-1])
	}
	return nil
}

// Block reads a block. Codes: NotFound.
func (s *Store) Block(ctx context.Context, hash string) (Block, error) {
	var b Block
	err := s.get(ctx, &b, `SELECT hash, kind, content, created_at FROM blocks WHERE hash = ?`, hash)
	if noRows(err) {
		err = session.Errorf(session.NotFound, "there is no block %s", hash)
	}
	return b, err
}

// Kin is a session and where it comes from.
type Kin struct {
	ID         session.ID   `db:"id"`
	ParentID   session.ID   `db:"parent_id"`
	ParentKind string       `db:"parent_kind"`
	CreatedAt  session.Time `db:"created_at"`
}

// AllKin lists every session of the file, also archived and trashed ones and drafts, not those
// that were purged.
func (s *Store) AllKin(ctx context.Context) ([]Kin, error) {
	var all []Kin
	err := s.reports.SelectContext(ctx, &all, `SELECT id, parent_id, parent_kind, created_at FROM sessions WHERE purged_at IS NULL`)
	return all, err
}

// Shells lists what is left of purged sessions for the forks that share their messages.
func (s *Store) Shells(ctx context.Context) ([]Kin, error) {
	var all []Kin
	err := s.reports.SelectContext(ctx, &all, `SELECT id, parent_id, parent_kind, created_at FROM sessions WHERE purged_at IS NOT NULL`)
	return all, err
}

// readTx is a reading transaction as reading helpers take it.
type readTx struct {
	tx interface {
		GetContext(ctx context.Context, dest any, query string, args ...any) error
		SelectContext(ctx context.Context, dest any, query string, args ...any) error
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

func (r *readTx) get(ctx context.Context, dest any, query string, args ...any) error {
	return r.tx.GetContext(ctx, dest, query, args...)
}

func (r *readTx) list(ctx context.Context, dest any, query string, args ...any) error {
	return r.tx.SelectContext(ctx, dest, query, args...)
}

func (r *readTx) each(ctx context.Context, row func(scanner) error, query string, args ...any) error {
	rows, err := r.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return forEach(rows, row)
}
