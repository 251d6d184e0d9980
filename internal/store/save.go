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

// Save yields a session as lines: its SavedSession, then all that belongs to it, but blobs and
// blocks, which Blob and Block return. It also saves what is left of a purged session for its
// forks. What can change later is read at one moment; rows that are only ever added are read
// afterwards at any pace, as far as they went then. Codes: NotFound, Busy (it was purged meanwhile).
func (s *Store) Save(ctx context.Context, id session.ID, yield func(line any) error) error {
	v := saver{ctx: ctx, q: s, id: id, yield: yield, compactions: map[int64]CompactionRef{}}
	if err := v.readAtOnce(s); err != nil {
		return fmt.Errorf("save %s: %w", id, err)
	}
	if err := yield(&v.session); err != nil {
		return err
	}
	if _, err := s.eachInRange(ctx, id, 1, v.session.Session.LastSeq, v.message); err != nil {
		return err
	}
	if err := v.all(v.records); err != nil {
		return err
	}
	for _, row := range v.frozen {
		var f session.Frozen
		if err := s.get(ctx, &f, `SELECT id, session_id, message_id, kind, compaction_id, content FROM frozen WHERE id = ?`, row); err != nil {
			return fmt.Errorf("frozen row %d: %w", row, err)
		}
		message, err := refOf(ctx, s, f.MessageID)
		if err != nil {
			return err
		}
		compaction, err := v.compactionRef(f.CompactionID)
		if err == nil {
			err = yield(&SavedFrozen{Type: LineFrozen, Message: message, Compaction: compaction, Frozen: f})
		}
		if err != nil {
			return err
		}
	}
	if err := eachOf(ctx, s, contextsUpTo, id, v.lastContext, func(c *session.Context) int64 { return c.RowID }, v.context); err != nil {
		return err
	}
	if err := eachOf(ctx, s, callsUpTo, id, v.lastCall, func(c *session.Call) int64 { return c.RowID }, v.call); err != nil {
		return err
	}
	if err := v.all(v.sets); err != nil || v.session.PurgedAt != nil {
		return err
	}
	return s.CheckNotPurged(ctx, id)
}

type saver struct {
	ctx         context.Context
	q           queryer
	id          session.ID
	yield       func(line any) error
	session     SavedSession
	records     []any   // compactions and undos
	sets        []any   // marks, states and flushes
	frozen      []int64 // rows, in order
	lastContext int64
	lastCall    int64
	contexts    []int64 // rows, in order
	compactions map[int64]CompactionRef
}

func (v *saver) all(lines []any) error {
	for _, line := range lines {
		if err := v.yield(line); err != nil {
			return err
		}
	}
	return nil
}

// readAtOnce reads what can change in one short transaction.
func (v *saver) readAtOnce(s *Store) error {
	tx, err := s.readers.BeginTxx(v.ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	q := &readTx{tx}
	v.q = q
	defer func() { v.q = s }()
	row := &v.session
	row.Type = LineSession
	if row.Session, err = readAncestor(v.ctx, q, v.id); err != nil {
		return err
	}
	row.TurnOrigin, row.Lines.Messages = row.Session.TurnOrigin, row.Session.MessageCount
	if err := q.get(v.ctx, &row.PurgedAt, `SELECT purged_at FROM sessions WHERE id = ?`, v.id); err != nil {
		return err
	}
	for _, read := range []func() error{v.readCompactions, v.readLink, v.readMarks, v.readStates, v.readFlushes} {
		if err := read(); err != nil {
			return err
		}
	}
	if err := q.list(v.ctx, &v.frozen, `SELECT id FROM frozen WHERE session_id = ?`, v.id); err != nil {
		return err
	}
	slices.Sort(v.frozen)
	row.Lines.Frozen = int64(len(v.frozen))
	return q.each(v.ctx, func(r scanner) error {
		return r.Scan(&row.Lines.Contexts, &v.lastContext, &row.Lines.Calls, &v.lastCall)
	}, `SELECT (SELECT COUNT(*) FROM contexts WHERE session_id = ?1), (SELECT COALESCE(MAX(id), 0) FROM contexts WHERE session_id = ?1),
		(SELECT COUNT(*) FROM calls WHERE session_id = ?1 AND session_id <> ''),
		(SELECT COALESCE(MAX(id), 0) FROM calls WHERE session_id = ?1 AND session_id <> '')`, v.id)
}

func (v *saver) readCompactions() error {
	var own []session.Compaction
	if err := v.q.list(v.ctx, &own, `SELECT `+compactionColumns+` FROM compactions c WHERE c.session_id = ? ORDER BY c.id`, v.id); err != nil {
		return err
	}
	for i := range own {
		c := SavedCompaction{Type: LineCompaction, Compaction: own[i], ID: CompactionRef{v.id, int64(i) + 1}}
		v.compactions[c.RowID] = c.ID
		err := nameCompaction(v.ctx, v.q, &c.Compaction)
		if err == nil {
			c.Previous, err = v.compactionRef(c.PreviousID)
		}
		if err != nil {
			return err
		}
		v.records = append(v.records, &c)
	}
	undone, err := undosOf(v.ctx, v.q, v.id)
	if err != nil {
		return err
	}
	undos := make([]*SavedUndo, 0, len(undone))
	for row, at := range undone {
		ref, err := v.compactionRef(&row)
		if err != nil {
			return err
		}
		undos = append(undos, &SavedUndo{LineUndo, ref, at})
	}
	slices.SortFunc(undos, func(a, b *SavedUndo) int { return compareRefs(a.Compaction, b.Compaction) })
	for _, u := range undos {
		v.records = append(v.records, u)
	}
	v.session.Lines.Compactions, v.session.Lines.Undos = int64(len(own)), int64(len(undos))
	return nil
}

func compareRefs(a, b CompactionRef) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.N, b.N))
}

// compactionRef names the compaction in a row, or none.
func (v *saver) compactionRef(row *int64) (CompactionRef, error) {
	if row == nil {
		return CompactionRef{}, nil
	}
	ref, ok := v.compactions[*row]
	if ok {
		return ref, nil
	}
	err := v.q.each(v.ctx, func(r scanner) error { return r.Scan(&ref.Session, &ref.N) }, numberOfCompaction, *row)
	if err == nil && ref.N == 0 {
		err = session.Errorf(session.NotFound, "a compaction that should be there is gone (row %d): run `sessiond doctor`", *row)
	}
	v.compactions[*row] = ref
	return ref, err
}

const numberOfCompaction = `
	SELECT c.session_id, (SELECT COUNT(*) FROM compactions d WHERE d.session_id = c.session_id AND d.id <= c.id)
	FROM compactions c WHERE c.id = ?`

func (v *saver) readLink() error {
	l, err := readLink(v.ctx, v.q, v.id)
	if err != nil || l.messageID == nil && l == (link{}) {
		return err
	}
	out := SavedLink{Call: l.callID, Root: l.root, Number: l.number, Compactions: -1, Frozen: -1}
	if out.Message, err = v.messageRef(l.messageID); err != nil {
		return err
	}
	if l.activatedAt != "" {
		out.ActivatedAt = &session.Time{}
		if err := out.ActivatedAt.Scan(l.activatedAt); err != nil {
			return err
		}
	}
	if l.compactionID != math.MaxInt64 {
		err = v.q.get(v.ctx, &out.Compactions, `SELECT COUNT(*) FROM compactions WHERE session_id = ? AND id <= ?`, v.session.ParentID, l.compactionID)
	}
	if err == nil && l.frozenID != math.MaxInt64 {
		err = v.q.get(v.ctx, &out.Frozen, `SELECT COUNT(*) FROM frozen WHERE session_id = ? AND id <= ?`, v.session.ParentID, l.frozenID)
	}
	v.session.Link = &out
	return err
}

func (v *saver) messageRef(row *int64) (*session.MessageRef, error) {
	if row == nil {
		return nil, nil
	}
	ref, err := refOf(v.ctx, v.q, *row)
	return &ref, err
}

func (v *saver) readMarks() error {
	var marks []*SavedMark
	err := v.q.each(v.ctx, func(row scanner) error {
		m := SavedMark{Type: LineMark}
		marks = append(marks, &m)
		return row.Scan(&m.Message.Session, &m.Message.Seq, &m.Kind, &m.Text, &m.At)
	}, marksOfSession, v.id)
	slices.SortFunc(marks, func(a, b *SavedMark) int {
		return cmp.Or(cmp.Compare(a.Message.Session, b.Message.Session), cmp.Compare(a.Message.Seq, b.Message.Seq), cmp.Compare(a.Kind, b.Kind))
	})
	for _, m := range marks {
		v.sets = append(v.sets, m)
	}
	v.session.Lines.Marks = int64(len(marks))
	return err
}

const marksOfSession = `
	SELECT m.session_id, m.seq, k.kind, k.text, k.created_at FROM marks k JOIN messages m ON m.id = k.message_id WHERE k.session_id = ?`

func (v *saver) readStates() error {
	var states []SavedState
	err := v.q.list(v.ctx, &states, `SELECT name, revision, value, updated_at, deleted_at FROM states WHERE session_id = ? ORDER BY name`, v.id)
	for i := range states {
		states[i].Type = LineState
		v.sets = append(v.sets, &states[i])
	}
	v.session.Lines.States = int64(len(states))
	return err
}

func (v *saver) readFlushes() error {
	var flushes []session.Flush
	if err := v.q.list(v.ctx, &flushes, `SELECT `+flushColumns+` FROM flushes WHERE session_id = ?`, v.id); err != nil {
		return err
	}
	var saved []*SavedFlush
	for _, f := range flushes {
		var ref CompactionRef
		if f.CompactionID != 0 {
			var err error
			if ref, err = v.compactionRef(&f.CompactionID); err != nil {
				return err
			}
		}
		saved = append(saved, &SavedFlush{LineFlush, ref, f.At, f.Outcome})
	}
	slices.SortFunc(saved, func(a, b *SavedFlush) int { return compareRefs(a.Compaction, b.Compaction) })
	for _, f := range saved {
		v.sets = append(v.sets, f)
	}
	v.session.Lines.Flushes = int64(len(saved))
	return nil
}

func (v *saver) message(m *session.Message) error {
	row := SavedMessage{Type: LineMessage, MessageColumns: MessageColumns(*m), Extra: m.Extra, Parts: make([]SavedPart, len(m.Parts))}
	for i := range m.Parts {
		p := &row.Parts[i]
		if p.Part = m.Parts[i]; p.CallPartID != nil {
			call, err := refOf(v.ctx, v.q, *p.CallPartID>>10)
			if err != nil {
				return err
			}
			p.Answers = PartRef{call, *p.CallPartID & (session.MaxParts - 1)}
		}
	}
	return v.yield(&row)
}

func (v *saver) context(c *session.Context) error {
	v.contexts = append(v.contexts, c.RowID)
	row := SavedContext{
		Type: LineContext, ID: ContextRef{v.id, int64(len(v.contexts))}, Context: *c,
		System: c.SystemHash, Initial: c.InitialHash, Tools: c.ToolsHash, Limits: c.Limits,
	}
	var err error
	if row.Head, err = v.messageRef(c.HeadID); err == nil {
		row.Compaction, err = v.compactionRef(c.CompactionID)
	}
	if err != nil {
		return err
	}
	return v.yield(&row)
}

func (v *saver) call(c *session.Call) error {
	row := savedCall(c)
	row.Type = LineCall
	var err error
	if row.Message, err = v.messageRef(c.MessageID); err == nil {
		row.Compaction, err = v.compactionRef(c.CompactionID)
	}
	if err != nil {
		return err
	}
	if c.ContextID != nil {
		if at, found := slices.BinarySearch(v.contexts, *c.ContextID); found {
			row.Context = ContextRef{v.id, int64(at) + 1}
		}
	}
	return v.yield(&row)
}

func savedCall(c *session.Call) SavedCall {
	return SavedCall{Call: *c, ExternalID: c.ExternalID, CostNanoUSD: c.CostNanoUSD}
}

// copyPage is how many rows one statement of a copy reads.
const copyPage = 200

const (
	contextsUpTo = `SELECT ` + contextColumns + ` FROM contexts WHERE session_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT +?`
	callsUpTo    = `SELECT ` + callColumns + ` FROM calls WHERE session_id = ? AND session_id <> '' AND id > ? AND id <= ? ORDER BY id LIMIT +?`
)

// EachCall yields a session's calls, in order.
func (s *Store) EachCall(ctx context.Context, id session.ID, yield func(*session.Call) error) error {
	return eachOf(ctx, s, callsUpTo, id, math.MaxInt64, func(c *session.Call) int64 { return c.RowID }, yield)
}

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
	b := Block{Type: LineBlock}
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
