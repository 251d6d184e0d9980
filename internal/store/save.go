package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/session"
)

// Save yields a session as lines: its SavedSession, then all that belongs to it, but blobs and
// blocks, which Blob and Block return. It also saves what is left of a purged session for its
// forks. What can change later is read at one moment; messages, contexts and calls, which are
// only ever added, are read afterwards at any pace, as far as they went then. Codes: NotFound,
// Busy (it was purged meanwhile).
func (s *Store) Save(ctx context.Context, id session.ID, yield func(line any) error) error {
	v, err := s.readAtOnce(ctx, id)
	if err != nil {
		return fmt.Errorf("save %s: %w", id, err)
	}
	if err := yield(&v.session); err != nil {
		return err
	}
	if _, err := s.eachInRange(ctx, id, 1, v.session.Session.LastSeq, func(m *session.Message) error {
		row, err := s.savedMessage(ctx, m)
		if err != nil {
			return err
		}
		return yield(row)
	}); err != nil {
		return err
	}
	if err := yieldAll(yield, rowsOf(v.compactions), rowsOf(v.undos), rowsOf(v.frozen)); err != nil {
		return err
	}
	var contexts []int64 // rows
	if err := eachPage(ctx, s, savedContexts, id, v.lastContext, func(c *SavedContext) (int64, error) {
		contexts = append(contexts, c.RowID)
		c.ID = ContextRef{id, int64(len(contexts))}
		return c.RowID, yield(c)
	}); err != nil {
		return err
	}
	if err := eachPage(ctx, s, savedCalls, id, v.lastCall, func(c *SavedCall) (int64, error) {
		if c.ContextID != nil {
			if at, found := slices.BinarySearch(contexts, *c.ContextID); found {
				c.Context = ContextRef{id, int64(at) + 1}
			}
		}
		return c.RowID, yield(c)
	}); err != nil {
		return err
	}
	if err := yieldAll(yield, rowsOf(v.marks), rowsOf(v.states), rowsOf(v.flushes)); err != nil {
		return err
	}
	if v.session.PurgedAt != nil {
		return nil
	}
	return s.CheckNotPurged(ctx, id)
}

func rowsOf[T any](rows []T) (all []any) {
	for i := range rows {
		all = append(all, &rows[i])
	}
	return all
}

func yieldAll(yield func(line any) error, sets ...[]any) error {
	for _, line := range slices.Concat(sets...) {
		if err := yield(line); err != nil {
			return err
		}
	}
	return nil
}

// copyPage is how many rows one statement of a copy reads.
const copyPage = 200

// eachPage reads rows up to a row id in pages, so that no statement is open while they are worked on.
func eachPage[T any](ctx context.Context, s *Store, query string, id session.ID, upto int64, yield func(*T) (rowID int64, err error)) error {
	for after := int64(0); after < upto; {
		page, err := list[T](ctx, s, query, id, after, upto, copyPage)
		if err != nil {
			return fmt.Errorf("rows of %s: %w", id, err)
		}
		for i := range page {
			var err error
			if after, err = yield(&page[i]); err != nil {
				return err
			}
		}
		if len(page) < copyPage {
			return nil
		}
	}
	return nil
}

// atOnce is what can change of a session, and how far its contexts and calls had grown.
type atOnce struct {
	session     SavedSession
	compactions []SavedCompaction
	undos       []SavedUndo
	frozen      []SavedFrozen
	marks       []SavedMark
	states      []SavedState
	flushes     []SavedFlush
	lastContext int64
	lastCall    int64
}

// readAtOnce reads in one short transaction.
func (s *Store) readAtOnce(ctx context.Context, id session.ID) (*atOnce, error) {
	tx, err := s.readers.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	q := statements{stmt: func(ctx context.Context, query string) (*sqlx.Stmt, func(), error) {
		st, err := tx.PreparexContext(ctx, query)
		return st, func() { st.Close() }, err //nolint:errcheck // a reading statement
	}}
	v := &atOnce{}
	row := &v.session
	if row.Session, err = readAncestor(ctx, q, id); err != nil {
		return nil, err
	}
	row.Type, row.TurnOrigin = LineSession, row.Session.TurnOrigin
	row.Link, err = first[SavedLink](ctx, q, savedLinks, id)
	if err = cmp.Or(err,
		listInto(ctx, q, &v.compactions, savedCompactions, id),
		listInto(ctx, q, &v.undos, savedUndos, id),
		listInto(ctx, q, &v.frozen, savedFrozen, id),
		listInto(ctx, q, &v.marks, savedMarks, id),
		listInto(ctx, q, &v.states, savedStates, id),
		listInto(ctx, q, &v.flushes, savedFlushes, id)); err != nil {
		return nil, err
	}
	row.Lines = map[string]int64{
		"messages": row.Session.MessageCount, "compactions": int64(len(v.compactions)), "undos": int64(len(v.undos)), "frozen": int64(len(v.frozen)),
		"marks": int64(len(v.marks)), "states": int64(len(v.states)), "flushes": int64(len(v.flushes)),
	}
	var contexts, calls int64
	err = q.rows(ctx, func(r *sqlx.Rows) error {
		return r.Scan(&row.PurgedAt, &contexts, &v.lastContext, &calls, &v.lastCall)
	}, `SELECT purged_at,
		(SELECT COUNT(*) FROM contexts WHERE session_id = s.id), (SELECT COALESCE(MAX(id), 0) FROM contexts WHERE session_id = s.id),
		(SELECT COUNT(*) FROM calls WHERE session_id = s.id AND session_id <> ''),
		(SELECT COALESCE(MAX(id), 0) FROM calls WHERE session_id = s.id AND session_id <> '') FROM sessions s WHERE id = ?`, id)
	row.Lines["contexts"], row.Lines["calls"] = contexts, calls
	return v, err
}

// The queries name messages and compactions as MessageRef and CompactionRef write themselves.
var (
	savedCompactions = `SELECT 'compaction' AS type, ` + compactionName("c.id") + ` AS name, ` + compactionName("c.previous_id") + ` AS previous,
		` + compactionColumns + `
		FROM compactions c WHERE c.session_id = ? ORDER BY c.id`
	savedUndos = `SELECT 'undo' AS type, ` + compactionName("c.id") + ` AS compaction, u.at
		FROM compaction_undos u JOIN compactions c ON c.id = u.compaction_id WHERE u.session_id = ? ORDER BY c.session_id, c.id`
	savedFrozen = `SELECT 'frozen' AS type, ` + messageName("message_id") + ` AS message, ` + compactionName("compaction_id") + ` AS compaction, kind, content
		FROM frozen WHERE session_id = ? ORDER BY +id`
	savedContexts = `SELECT 'context' AS type, ` + messageName("head_id") + ` AS head, ` + compactionName("compaction_id") + ` AS compaction,
		system_hash AS system, initial_hash AS initial, tools_hash AS tools, ` + contextColumns + `
		FROM contexts WHERE session_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT +?`
	savedCalls = `SELECT 'call' AS type, ` + messageName("message_id") + ` AS message, ` + compactionName("compaction_id") + ` AS compaction, ` + callColumns + `
		FROM calls WHERE session_id = ? AND session_id <> '' AND id > ? AND id <= ? ORDER BY id LIMIT +?`
	savedMarks = `SELECT 'mark' AS type, ` + messageName("m.id") + ` AS message, k.kind, k.text, k.created_at
		FROM marks k JOIN messages m ON m.id = k.message_id WHERE k.session_id = ? ORDER BY m.session_id, m.seq, k.kind`
	savedStates  = `SELECT 'state' AS type, name, revision, value, updated_at, deleted_at FROM states WHERE session_id = ? ORDER BY name`
	savedFlushes = `SELECT 'flush' AS type, ` + compactionName("f.compaction_id") + ` AS compaction, f.at, f.outcome
		FROM flushes f LEFT JOIN compactions c ON c.id = f.compaction_id WHERE f.session_id = ? ORDER BY c.session_id, c.id`
	savedLinks = `SELECT ` + messageName("l.message_id") + ` AS message, l.call_id, l.root_id, l.Number, NULLIF(l.activated_at, '') AS activated_at,
		CASE l.compaction_id WHEN 9223372036854775807 THEN -1 ELSE (SELECT COUNT(*) FROM compactions WHERE session_id = s.parent_id AND id <= l.compaction_id) END AS compactions,
		CASE l.frozen_id WHEN 9223372036854775807 THEN -1 ELSE (SELECT COUNT(*) FROM frozen WHERE session_id = s.parent_id AND id <= l.frozen_id) END AS frozen
		FROM links l JOIN sessions s ON s.id = l.session_id WHERE l.session_id = ?
		AND (l.message_id IS NOT NULL OR l.call_id <> '' OR l.root_id <> '' OR l.Number <> 0 OR l.compaction_id <> 0 OR l.activated_at <> '' OR l.frozen_id <> 0)`
)

func messageName(row string) string {
	return `(SELECT session_id || '.' || seq FROM messages WHERE id = ` + row + `)`
}

func compactionName(row string) string {
	return `(SELECT session_id || '/compaction/' || (SELECT COUNT(*) FROM compactions before WHERE before.session_id = named.session_id AND before.id <= named.id)
		FROM compactions named WHERE id = ` + row + `)`
}

func (s *Store) savedMessage(ctx context.Context, m *session.Message) (*SavedMessage, error) {
	row := &SavedMessage{Type: LineMessage, MessageColumns: MessageColumns(*m), Extra: m.Extra, Parts: make([]SavedPart, len(m.Parts))}
	for i := range m.Parts {
		p := &row.Parts[i]
		if p.Part = m.Parts[i]; p.CallPartID != nil {
			call, err := refOf(ctx, s, *p.CallPartID>>10)
			if err != nil {
				return nil, err
			}
			p.Answers = PartRef{call, *p.CallPartID & (session.MaxParts - 1)}
		}
	}
	return row, nil
}

// Block reads a block. Codes: NotFound.
func (s *Store) Block(ctx context.Context, hash string) (Block, error) {
	b, err := get[Block](ctx, s, `SELECT 'block' AS type, hash, kind, content, created_at FROM blocks WHERE hash = ?`, hash)
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
