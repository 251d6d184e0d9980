package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
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
func eachPage[T any](ctx context.Context, s *Store, query string, id session.ID, upto int64,
	yield func(*T) (rowID int64, err error),
) error {
	for after := int64(0); after < upto; {
		page, err := engine.List[T](ctx, s, query, id, after, upto, copyPage)
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
	v := &atOnce{}
	return v, s.Snapshot(ctx, func(q engine.Queryer) error { return v.read(ctx, q, id) })
}

func (v *atOnce) read(ctx context.Context, q engine.Queryer, id session.ID) error {
	row := &v.session
	var err error
	if row.Session, err = readAncestor(ctx, q, id); err != nil {
		return err
	}
	row.Type, row.TurnOrigin = LineSession, row.Session.TurnOrigin
	if err := q.Read(ctx, engine.IntoFirst(&row.Link, savedLinks, id),
		engine.IntoList(&v.compactions, savedCompactions, id),
		engine.IntoList(&v.undos, savedUndos, id),
		engine.IntoList(&v.frozen, savedFrozen, id),
		engine.IntoList(&v.marks, savedMarks, id),
		engine.IntoList(&v.states, savedStates, id),
		engine.IntoList(&v.flushes, savedFlushes, id)); err != nil {
		return err
	}
	row.Lines = map[string]int64{
		"messages": row.Session.MessageCount, "compactions": int64(len(v.compactions)), "undos": int64(len(v.undos)),
		"frozen": int64(len(v.frozen)),
		"marks":  int64(len(v.marks)), "states": int64(len(v.states)), "flushes": int64(len(v.flushes)),
	}
	var contexts, calls int64
	err = q.Read(ctx, engine.NewReading(savedCounts, []any{id}, func(r *sqlx.Rows) error {
		return r.Scan(&row.PurgedAt, &contexts, &v.lastContext, &calls, &v.lastCall)
	}))
	row.Lines["contexts"], row.Lines["calls"] = contexts, calls
	return err
}

const savedCounts = `SELECT purged_at,
	(SELECT COUNT(*) FROM contexts WHERE session_id = s.id), (SELECT COALESCE(MAX(id), 0) FROM contexts WHERE session_id = s.id),
	(SELECT COUNT(*) FROM calls WHERE session_id = s.id AND session_id <> ''),
	(SELECT COALESCE(MAX(id), 0) FROM calls WHERE session_id = s.id AND session_id <> '') FROM sessions s WHERE id = ?`

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
	savedMarks = `SELECT 'mark' AS type, ` + messageName("m.id") + ` AS message, k.kind, k.text, k.created_at, k.place, k.revision
		FROM marks k LEFT JOIN messages m ON m.id = k.message_id WHERE k.session_id = ? AND (k.message_id = 0 OR m.id IS NOT NULL)
		ORDER BY k.message_id <> 0, m.session_id, m.seq, k.kind, k.place`
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
	row := &SavedMessage{
		Type: LineMessage, MessageColumns: MessageColumns(*m), Extra: m.Extra,
		Parts: make([]SavedPart, len(m.Parts)),
	}
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
	b, err := engine.Get[Block](ctx, s, `SELECT 'block' AS type, hash, kind, content, created_at FROM blocks WHERE hash = ?`, hash)
	if engine.NoRows(err) {
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
	err := s.Reader().SelectContext(ctx, &all, `SELECT id, parent_id, parent_kind, created_at FROM sessions WHERE purged_at IS NULL`)
	return all, err
}

// Shells lists what is left of purged sessions for the forks that share their messages.
func (s *Store) Shells(ctx context.Context) ([]Kin, error) {
	var all []Kin
	err := s.Reader().SelectContext(ctx, &all, `SELECT id, parent_id, parent_kind, created_at FROM sessions WHERE purged_at IS NOT NULL`)
	return all, err
}

// The types of lines in a file of sessions that stand between others in a way of their own.
// docs/export.md describes all types. Each is a struct here: the columns of a row, with names in
// the place of row ids.
const (
	LineSession = "session"
	LineBlob    = "blob"
	LineMessage = "message"
	LineBlock   = "block"
	LineStore   = "store"
)

// NewRow returns what a line of a session is decoded into, and under which name its session
// counts such lines, "" for none. The row is nil for a type that a later program may write.
func NewRow(kind string) (row any, counted string) {
	switch kind {
	case LineBlob:
		return &SavedBlob{}, ""
	case LineMessage:
		return &SavedMessage{}, "messages"
	case "compaction":
		return &SavedCompaction{}, "compactions"
	case "undo":
		return &SavedUndo{}, "undos"
	case "frozen":
		return &SavedFrozen{}, "frozen"
	case LineBlock:
		return &Block{}, ""
	case "context":
		return &SavedContext{}, "contexts"
	case "call":
		return &SavedCall{}, "calls"
	case "mark":
		return &SavedMark{}, "marks"
	case "state":
		return &SavedState{}, "states"
	case "flush":
		return &SavedFlush{}, "flushes"
	}
	return nil, ""
}

// IsSet reports whether a row belongs to a set, which a restored session replaces at the end.
func IsSet(row any) bool {
	switch row.(type) {
	case *SavedUndo, *SavedMark, *SavedState, *SavedFlush:
		return true
	}
	return false
}

// hidden takes the place of a field of an embedded struct that a line does not have.
type hidden = *struct{}

// SavedSession is the columns of sessions that are no counters.
type SavedSession struct {
	Type string `json:"type"`
	session.Session
	TurnOrigin session.Origin `json:"turn_origin,omitempty"`
	PurgedAt   *session.Time  `json:"purged_at,omitempty"` // only what its forks share is left of it
	Link       *SavedLink     `json:"link,omitempty"`      // nil: it shares nothing and nothing started it
	// how many lines of a type follow, so that a cut file is noticed
	Lines map[string]int64 `json:"lines"`

	LastSeq          hidden `json:"last_seq,omitempty"`
	MessageCount     hidden `json:"message_count,omitempty"`
	SaidCount        hidden `json:"said_count,omitempty"`
	TotalTokens      hidden `json:"total_tokens,omitempty"`
	ContextTokens    hidden `json:"context_tokens,omitempty"`
	CompactionCount  hidden `json:"compaction_count,omitempty"`
	InputTokens      hidden `json:"input_tokens,omitempty"`
	OutputTokens     hidden `json:"output_tokens,omitempty"`
	CacheReadTokens  hidden `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens hidden `json:"cache_write_tokens,omitempty"`
	CostUSD          hidden `json:"cost_usd,omitempty"`
	UnpricedCalls    hidden `json:"unpriced_calls,omitempty"`
	Tags             hidden `json:"tags,omitempty"` // lines of the type mark
}

// SavedLink says how a session hangs on its parent. Of what a fork inherits it counts the
// parent's compactions and frozen texts, -1 for all.
type SavedLink struct {
	Message     *session.MessageRef `db:"message" json:"message,omitempty"`
	Call        string              `db:"call_id" json:"call_id,omitempty"`
	Root        session.ID          `db:"root_id" json:"root_id,omitempty"`
	Number      int64               `db:"number" json:"number,omitempty"`
	Compactions int64               `db:"compactions" json:"compactions"`
	Frozen      int64               `db:"frozen" json:"frozen"`
	ActivatedAt *session.Time       `db:"activated_at" json:"activated_at,omitempty"`
}

// SavedBlob stands before the first message of its session that holds it.
type SavedBlob struct {
	Type      string  `json:"type"`
	SHA256    string  `json:"sha256"`
	MediaType string  `json:"media_type"`
	Text      *string `json:"text,omitempty"`
	Base64    []byte  `json:"base64,omitempty"` // of what is no text
}

// MessageColumns are a message's without its methods, so that a line can embed them.
type MessageColumns session.Message

// SavedMessage is a message. Tokens are for reading: they are counted again when it comes in.
type SavedMessage struct {
	Type string `json:"type"`
	MessageColumns
	Extra session.JSON `json:"extra,omitempty"`
	Parts []SavedPart  `json:"parts"`
	Seq   hidden       `json:"seq,omitempty"`
}

// SavedPart is a part of a message.
type SavedPart struct {
	session.Part
	Answers PartRef `json:"answers,omitzero"` // of a result: the part that calls
	Tokens  hidden  `json:"tokens,omitempty"`
}

// SavedCompaction is a compaction.
type SavedCompaction struct {
	Type     string        `db:"type" json:"type"`
	ID       CompactionRef `db:"name" json:"id"`
	Previous CompactionRef `db:"previous" json:"previous,omitzero"`
	session.Compaction
	SessionID hidden `json:"session_id,omitempty"`
}

// SavedUndo says that a compaction, the session's own or an inherited one, is undone in it.
type SavedUndo struct {
	Type       string        `db:"type" json:"type"`
	Compaction CompactionRef `db:"compaction" json:"compaction"`
	At         session.Time  `db:"at" json:"at"`
}

// SavedFrozen is something that was frozen into a context.
type SavedFrozen struct {
	Type       string             `db:"type" json:"type"`
	Message    session.MessageRef `db:"message" json:"message"`
	Compaction CompactionRef      `db:"compaction" json:"compaction,omitzero"`
	session.Frozen
}

// Block is what a caller gave beside the messages. In a file it stands before the first context
// of its session that is made of it.
type Block struct {
	Type      string       `db:"type" json:"type"`
	Hash      string       `db:"hash" json:"hash"`
	Kind      string       `db:"kind" json:"kind"`
	Content   string       `db:"content" json:"content"`
	CreatedAt session.Time `db:"created_at" json:"created_at"`
}

// SavedContext is the record of a context, with the blocks that it was made of by their hashes.
type SavedContext struct {
	Type       string              `db:"type" json:"type"`
	ID         ContextRef          `db:"-" json:"id"`
	Head       *session.MessageRef `db:"head" json:"head,omitempty"`
	Compaction CompactionRef       `db:"compaction" json:"compaction,omitzero"`
	session.Context
	System  string       `db:"system" json:"system,omitempty"`
	Initial string       `db:"initial" json:"initial,omitempty"`
	Tools   string       `db:"tools" json:"tools,omitempty"`
	Limits  session.JSON `db:"limits" json:"limits,omitempty"`
}

// SavedCall is a row of the ledger.
type SavedCall struct {
	Type       string              `db:"type" json:"type,omitempty"` // "" inside a line of the type store
	Message    *session.MessageRef `db:"message" json:"message,omitempty"`
	Compaction CompactionRef       `db:"compaction" json:"compaction,omitzero"`
	Context    ContextRef          `db:"-" json:"context,omitzero"`
	session.Call
	ExternalID  string `db:"external_id" json:"external_id,omitempty"`
	CostNanoUSD *int64 `db:"cost_nanousd" json:"cost_nanousd"`
	SessionID   hidden `json:"session_id,omitempty"`
	CostUSD     hidden `json:"cost_usd,omitempty"`
}

// SavedMark is a pin, a tag or a note on the session, or on a message of its tree. Files of earlier versions have
// labels, which are tags in place 0.
type SavedMark struct {
	Type     string              `db:"type" json:"type"`
	Message  *session.MessageRef `db:"message" json:"message,omitempty"`
	Kind     string              `db:"kind" json:"kind"`
	Text     string              `db:"text" json:"text,omitempty"`
	Place    int64               `db:"place" json:"place,omitempty"`
	Revision int64               `db:"revision" json:"revision,omitempty"`
	At       session.Time        `db:"created_at" json:"created_at"`
}

// SavedState is a named document of a session.
type SavedState struct {
	Type      string        `db:"type" json:"type"`
	Name      string        `db:"name" json:"name"`
	Revision  int64         `db:"revision" json:"revision"`
	Value     session.JSON  `db:"value" json:"value"`
	UpdatedAt session.Time  `db:"updated_at" json:"updated_at"`
	DeletedAt *session.Time `db:"deleted_at" json:"deleted_at,omitempty"` // it was taken away, and keeps its revision
}

// SavedFlush is a memory flush that a caller reported.
type SavedFlush struct {
	Type       string        `db:"type" json:"type"`
	Compaction CompactionRef `db:"compaction" json:"compaction,omitzero"` // zero: before the first
	At         session.Time  `db:"at" json:"at"`
	Outcome    string        `db:"outcome" json:"outcome"`
}

// PartRef names a part: 20260211_001.42/0 is the first one of message 42.
type PartRef struct {
	Message session.MessageRef
	Idx     int64
}

// MarshalText implements encoding.TextMarshaler.
func (p PartRef) MarshalText() ([]byte, error) {
	return []byte(p.Message.String() + "/" + strconv.FormatInt(p.Idx, 10)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *PartRef) UnmarshalText(b []byte) error {
	name, idx, _ := strings.Cut(string(b), "/")
	ref, err := session.ParseRef(name)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(idx, 10, 64)
	if err != nil || n < 0 || n >= session.MaxParts {
		return session.Errorf(session.Invalid, "%.60q is no name of a part: it looks like 20260211_001.42/0", b)
	}
	p.Message, p.Idx = ref, n
	return nil
}

// CompactionRef names the n-th compaction of a session, from 1: 20260211_001/compaction/2. Its
// row has another number in another file.
type CompactionRef struct {
	Session session.ID
	N       int64
}

// Scan implements sql.Scanner: a query names the compaction in its written form, NULL is none.
func (c *CompactionRef) Scan(src any) error {
	name, ok := src.(string)
	if !ok {
		return nil
	}
	return c.UnmarshalText([]byte(name))
}

// MarshalText implements encoding.TextMarshaler.
func (c CompactionRef) MarshalText() ([]byte, error) {
	return nthName(c.Session, "compaction", c.N), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *CompactionRef) UnmarshalText(b []byte) (err error) {
	c.Session, c.N, err = parseNth(string(b), "compaction")
	return err
}

// ContextRef names the n-th context of a session, from 1: 20260211_001/context/7.
type ContextRef struct {
	Session session.ID
	N       int64
}

// MarshalText implements encoding.TextMarshaler.
func (c ContextRef) MarshalText() ([]byte, error) { return nthName(c.Session, "context", c.N), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *ContextRef) UnmarshalText(b []byte) (err error) {
	c.Session, c.N, err = parseNth(string(b), "context")
	return err
}

func nthName(id session.ID, noun string, n int64) []byte {
	return []byte(string(id) + "/" + noun + "/" + strconv.FormatInt(n, 10))
}

func parseNth(name, noun string) (session.ID, int64, error) {
	id, number, ok := strings.Cut(name, "/"+noun+"/")
	n, err := strconv.ParseInt(number, 10, 64)
	if ok && err == nil && n > 0 {
		id, err := session.ParseID(id)
		return id, n, err
	}
	return "", 0, session.Errorf(session.Invalid, "%.60q is no name of a %s: it looks like 20260211_001/%s/2", name, noun,
		noun)
}
