package store

import (
	"strconv"
	"strings"

	"sessiond/internal/session"
)

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

// IsSet tells whether a row belongs to a set, which a restored session replaces at the end.
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
	TurnOrigin session.Origin   `json:"turn_origin,omitempty"`
	PurgedAt   *session.Time    `json:"purged_at,omitempty"` // only what its forks share is left of it
	Link       *SavedLink       `json:"link,omitempty"`      // nil: it shares nothing and nothing started it
	Lines      map[string]int64 `json:"lines"`               // how many lines of a type follow, so that a cut file is noticed

	LastSeq          hidden `json:"last_seq,omitempty"`
	MessageCount     hidden `json:"message_count,omitempty"`
	TotalTokens      hidden `json:"total_tokens,omitempty"`
	ContextTokens    hidden `json:"context_tokens,omitempty"`
	CompactionCount  hidden `json:"compaction_count,omitempty"`
	InputTokens      hidden `json:"input_tokens,omitempty"`
	OutputTokens     hidden `json:"output_tokens,omitempty"`
	CacheReadTokens  hidden `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens hidden `json:"cache_write_tokens,omitempty"`
	CostUSD          hidden `json:"cost_usd,omitempty"`
	UnpricedCalls    hidden `json:"unpriced_calls,omitempty"`
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

// SavedMark is a pin or label on a message of the session's tree.
type SavedMark struct {
	Type    string             `db:"type" json:"type"`
	Message session.MessageRef `db:"message" json:"message"`
	Kind    string             `db:"kind" json:"kind"`
	Text    string             `db:"text" json:"text,omitempty"`
	At      session.Time       `db:"created_at" json:"created_at"`
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
	return "", 0, session.Errorf(session.Invalid, "%.60q is no name of a %s: it looks like 20260211_001/%s/2", name, noun, noun)
}
