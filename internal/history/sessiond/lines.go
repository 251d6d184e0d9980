// Package sessiond writes sessions down whole as lines of JSON, and reads such a file back
// with every name, so that writing it again gives the same bytes. docs/export.md is the format.
package sessiond

import (
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Version is that of the format. A reader takes files of its own and all earlier ones; kinds
// of lines and fields that it does not know, which a later program of the same version may
// write, are skipped.
const Version = 1

// The kinds of lines, in the order in which they stand: one export line, then for each session
// its line and what belongs to it, then the store's own data, then one end line.
const (
	lineExport     = "export"
	lineSession    = "session"
	lineBlob       = "blob"
	lineMessage    = "message"
	lineCompaction = "compaction"
	lineUndo       = "undo"
	lineFrozen     = "frozen"
	lineBlock      = "block"
	lineContext    = "context"
	lineCall       = "call"
	lineMark       = "mark"
	lineState      = "state"
	lineFlush      = "flush"
	lineStore      = "store"
	lineEnd        = "end"
)

type exportLine struct {
	Type    string `json:"type"`
	Program string `json:"program"` // sessiond
	Version int    `json:"version"`
}

type endLine struct {
	Type     string `json:"type"`
	Sessions int    `json:"sessions"`
}

type sessionLine struct {
	Type        string              `json:"type"`
	ID          session.ID          `json:"id"`
	Day         string              `json:"day"`
	Title       string              `json:"title"`
	TitleSource string              `json:"title_source,omitempty"`
	Kind        string              `json:"kind"`
	Draft       bool                `json:"draft,omitempty"`
	Source      session.Source      `json:"source"`
	SourceID    string              `json:"source_id,omitempty"`
	Key         string              `json:"key,omitempty"`
	Generation  int64               `json:"generation,omitempty"`
	Directory   string              `json:"directory,omitempty"`
	Project     string              `json:"project,omitempty"`
	GitBranch   string              `json:"git_branch,omitempty"`
	Provider    string              `json:"provider,omitempty"`
	Model       string              `json:"model,omitempty"`
	Window      *int64              `json:"window,omitempty"`
	ParentID    session.ID          `json:"parent_id,omitempty"`
	ParentKind  string              `json:"parent_kind,omitempty"`
	Link        *linkFields         `json:"link,omitempty"`
	Head        *session.MessageRef `json:"head"`
	Epoch       int64               `json:"epoch"`
	Revision    int64               `json:"revision"`
	TurnOrigin  session.Origin      `json:"turn_origin,omitempty"`
	CreatedAt   session.Time        `json:"created_at"`
	UpdatedAt   session.Time        `json:"updated_at"`
	ActiveAt    session.Time        `json:"active_at"`
	InboundAt   *session.Time       `json:"inbound_at,omitempty"`
	ArchivedAt  *session.Time       `json:"archived_at,omitempty"`
	DeletedAt   *session.Time       `json:"deleted_at,omitempty"`
	PurgedAt    *session.Time       `json:"purged_at,omitempty"` // only what its forks share is left of it
	EndedAt     *session.Time       `json:"ended_at,omitempty"`
	EndReason   string              `json:"end_reason,omitempty"`
	Settings    session.JSON        `json:"settings,omitempty"`
	Metadata    session.JSON        `json:"metadata"`
	Lines       lineCounts          `json:"lines"`
}

// linkFields say how the session hangs on its parent: where a fork leaves it, or what started a
// child, and how many of the parent's compactions and frozen texts a fork inherits, -1 for all.
type linkFields struct {
	Message     *session.MessageRef `json:"message,omitempty"`
	Call        string              `json:"call_id,omitempty"`
	Root        session.ID          `json:"root_id,omitempty"`
	Number      int64               `json:"number,omitempty"`
	Compactions int64               `json:"compactions"`
	Frozen      int64               `json:"frozen"`
	ActivatedAt *session.Time       `json:"activated_at,omitempty"`
}

// lineCounts says how many lines of a kind follow, so that a file that was cut is noticed.
type lineCounts struct {
	Messages    int64 `json:"messages"`
	Compactions int64 `json:"compactions"`
	Undos       int64 `json:"undos"`
	Frozen      int64 `json:"frozen"`
	Contexts    int64 `json:"contexts"`
	Calls       int64 `json:"calls"`
	Marks       int64 `json:"marks"`
	States      int64 `json:"states"`
	Flushes     int64 `json:"flushes"`
}

func sessionLineOf(snap *store.Snapshot) sessionLine {
	s := &snap.Session
	return sessionLine{
		Link: (*linkFields)(snap.Link),
		Type: lineSession, ID: s.ID, Day: s.Day, Title: s.Title, TitleSource: s.TitleSource, Kind: s.Kind, Draft: s.Draft,
		Source: s.Source, SourceID: s.SourceID, Key: s.Key, Generation: s.Generation,
		Directory: s.Directory, Project: s.Project, GitBranch: s.GitBranch, Provider: s.Provider, Model: s.Model, Window: s.Window,
		ParentID: s.ParentID, ParentKind: s.ParentKind, Head: s.Head, Epoch: s.Epoch, Revision: s.Revision, TurnOrigin: s.TurnOrigin,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, ActiveAt: s.ActiveAt, InboundAt: s.InboundAt, ArchivedAt: s.ArchivedAt,
		DeletedAt: s.DeletedAt, PurgedAt: snap.PurgedAt, EndedAt: s.EndedAt, EndReason: s.EndReason, Settings: s.Settings, Metadata: s.Metadata,
		Lines: lineCounts{
			Messages: s.MessageCount, Compactions: int64(len(snap.Compactions)), Undos: int64(len(snap.Undos)),
			Frozen: int64(len(snap.Frozen)), Contexts: snap.Contexts.Rows, Calls: snap.Calls.Rows,
			Marks: int64(len(snap.Marks)), States: int64(len(snap.States)), Flushes: int64(len(snap.Flushes)),
		},
	}
}

func (l *sessionLine) session() session.Session {
	return session.Session{
		ID: l.ID, Day: l.Day, Title: l.Title, TitleSource: l.TitleSource, Kind: l.Kind, Draft: l.Draft,
		Source: l.Source, SourceID: l.SourceID, Key: l.Key, Generation: l.Generation,
		Directory: l.Directory, Project: l.Project, GitBranch: l.GitBranch, Provider: l.Provider, Model: l.Model, Window: l.Window,
		ParentID: l.ParentID, ParentKind: l.ParentKind, Head: l.Head, Epoch: l.Epoch, Revision: l.Revision, TurnOrigin: l.TurnOrigin,
		CreatedAt: l.CreatedAt, UpdatedAt: l.UpdatedAt, ActiveAt: l.ActiveAt, InboundAt: l.InboundAt, ArchivedAt: l.ArchivedAt,
		DeletedAt: l.DeletedAt, EndedAt: l.EndedAt, EndReason: l.EndReason, Settings: l.Settings, Metadata: l.Metadata,
	}
}

// blobLine stands before the first message of its session that holds it.
type blobLine struct {
	Type      string  `json:"type"`
	SHA256    string  `json:"sha256"`
	MediaType string  `json:"media_type"`
	Text      *string `json:"text,omitempty"` // of a text
	Base64    []byte  `json:"base64,omitempty"`
}

type messageLine struct {
	Type       string              `json:"type"`
	ID         session.MessageRef  `json:"id"`
	Parent     *session.MessageRef `json:"parent"`
	Kind       session.Kind        `json:"kind"`
	Role       session.Role        `json:"role"`
	Origin     session.Origin      `json:"origin"`
	Finish     session.Finish      `json:"finish,omitempty"`
	Author     string              `json:"author,omitempty"`
	Tokens     int64               `json:"tokens"` // for reading; counted again when it comes in
	InContext  bool                `json:"in_context"`
	Display    bool                `json:"display"`
	Provider   string              `json:"provider,omitempty"`
	Model      string              `json:"model,omitempty"`
	Dialect    string              `json:"dialect,omitempty"`
	ExternalID string              `json:"external_id,omitempty"`
	Day        string              `json:"day"`
	CreatedAt  session.Time        `json:"created_at"`
	Metadata   session.JSON        `json:"metadata,omitempty"`
	Extra      session.JSON        `json:"extra,omitempty"`
	Parts      []partLine          `json:"parts"`
}

type partLine struct {
	Kind       session.PartKind `json:"kind"`
	Text       string           `json:"text,omitempty"`
	ToolName   string           `json:"tool_name,omitempty"`
	CallID     string           `json:"call_id,omitempty"`
	Answers    *partRef         `json:"answers,omitempty"` // of a result: the part that calls
	Arguments  string           `json:"arguments,omitempty"`
	IsError    *bool            `json:"is_error,omitempty"`
	DurationMS *int64           `json:"duration_ms,omitempty"`
	Blob       *string          `json:"blob,omitempty"` // sha256 of a blob line
	Extra      session.JSON     `json:"extra,omitempty"`
}

// partRef names a part: 20260211_001.42/0 is the first one of message 42.
type partRef struct{ store.PartRef }

func (p partRef) MarshalText() ([]byte, error) {
	return []byte(p.Message.String() + "/" + strconv.FormatInt(p.Idx, 10)), nil
}

func (p *partRef) UnmarshalText(b []byte) error {
	name, idx, _ := strings.Cut(string(b), "/")
	ref, err := session.ParseRef(name)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(idx, 10, 64)
	if err != nil || n < 0 || n >= session.MaxParts {
		return session.Errorf(session.Invalid, "%q is no name of a part: it looks like 20260211_001.42/0", clip(string(b)))
	}
	p.Message, p.Idx = ref, n
	return nil
}

// numbered names the n-th compaction or context of a session: 20260211_001/compaction/2.
type numbered struct {
	Session session.ID
	Noun    string
	N       int64
}

func (n numbered) MarshalText() ([]byte, error) {
	return []byte(string(n.Session) + "/" + n.Noun + "/" + strconv.FormatInt(n.N, 10)), nil
}

func (n *numbered) UnmarshalText(b []byte) error {
	fields := strings.Split(string(b), "/")
	if len(fields) == 3 && (fields[1] == lineCompaction || fields[1] == lineContext) {
		id, err := session.ParseID(fields[0])
		number, errNumber := strconv.ParseInt(fields[2], 10, 64)
		if err == nil && errNumber == nil && number > 0 {
			*n = numbered{id, fields[1], number}
			return nil
		}
	}
	return session.Errorf(session.Invalid, "%q is no name of a compaction or context: it looks like 20260211_001/compaction/2", clip(string(b)))
}

func compactionName(ref store.CompactionRef) *numbered {
	if ref == (store.CompactionRef{}) {
		return nil
	}
	return &numbered{ref.Session, lineCompaction, ref.N}
}

func (n *numbered) compaction() store.CompactionRef {
	if n == nil {
		return store.CompactionRef{}
	}
	return store.CompactionRef{Session: n.Session, N: n.N}
}

type compactionLine struct {
	Type          string              `json:"type"`
	ID            numbered            `json:"id"`
	Previous      *numbered           `json:"previous,omitempty"`
	Strategy      session.Strategy    `json:"strategy"`
	Trigger       session.Trigger     `json:"trigger"`
	Status        session.Status      `json:"status"`
	Reason        string              `json:"reason,omitempty"`
	Through       *session.MessageRef `json:"through,omitempty"`
	FirstKept     *session.MessageRef `json:"first_kept,omitempty"`
	HiddenTokens  int64               `json:"hidden_tokens"`
	SummaryTokens int64               `json:"summary_tokens"`
	SpanSummary   string              `json:"span_summary,omitempty"`
	Summary       string              `json:"summary,omitempty"`
	PrefixSummary string              `json:"prefix_summary,omitempty"`
	Replacement   session.JSON        `json:"replacement,omitempty"`
	Details       session.JSON        `json:"details,omitempty"`
	TokensBefore  int64               `json:"tokens_before"`
	TokensAfter   int64               `json:"tokens_after"`
	MessageCount  int64               `json:"message_count"`
	Provider      string              `json:"provider,omitempty"`
	Model         string              `json:"model,omitempty"`
	DurationMS    int64               `json:"duration_ms"`
	CreatedAt     session.Time        `json:"created_at"`
	ActivatedAt   *session.Time       `json:"activated_at,omitempty"`
}

type undoLine struct {
	Type       string       `json:"type"`
	Compaction numbered     `json:"compaction"`
	At         session.Time `json:"at"`
}

type frozenLine struct {
	Type       string             `json:"type"`
	Message    session.MessageRef `json:"message"`
	Kind       string             `json:"kind"`
	Compaction *numbered          `json:"compaction,omitempty"`
	Content    session.JSON       `json:"content"`
}

// blockLine stands before the first context of its session that is made of it.
type blockLine struct {
	Type      string       `json:"type"`
	Hash      string       `json:"hash"`
	Kind      string       `json:"kind"`
	Content   string       `json:"content"`
	CreatedAt session.Time `json:"created_at"`
}

type contextLine struct {
	Type           string              `json:"type"`
	ID             numbered            `json:"id"`
	Head           *session.MessageRef `json:"head,omitempty"`
	Compaction     *numbered           `json:"compaction,omitempty"`
	Epoch          int64               `json:"epoch"`
	Model          string              `json:"model,omitempty"`
	Dialect        string              `json:"dialect,omitempty"`
	System         string              `json:"system,omitempty"` // hashes of blocks
	Initial        string              `json:"initial,omitempty"`
	Tools          string              `json:"tools,omitempty"`
	OverheadTokens int64               `json:"overhead_tokens"`
	Tokens         int64               `json:"tokens"`
	CreatedAt      session.Time        `json:"created_at"`
	Limits         session.JSON        `json:"limits,omitempty"` // as contexts.limits
}

type callLine struct {
	Type       string              `json:"type"`
	Message    *session.MessageRef `json:"message,omitempty"`
	Compaction *numbered           `json:"compaction,omitempty"`
	Context    *numbered           `json:"context,omitempty"`
	callFields
}

// callFields are those of a call, also of one without a session.
type callFields struct {
	Purpose          session.Purpose `json:"purpose"`
	Status           string          `json:"status"`
	Error            string          `json:"error,omitempty"`
	Provider         string          `json:"provider,omitempty"`
	Model            string          `json:"model,omitempty"`
	Source           session.Source  `json:"source"`
	ExternalID       string          `json:"external_id,omitempty"`
	Directory        string          `json:"directory,omitempty"`
	Day              string          `json:"day"`
	InputTokens      int64           `json:"input_tokens"`
	CacheReadTokens  int64           `json:"cache_read_tokens"`
	CacheWriteTokens int64           `json:"cache_write_tokens"`
	OutputTokens     int64           `json:"output_tokens"`
	ReasoningTokens  int64           `json:"reasoning_tokens"`
	CostNanoUSD      *int64          `json:"cost_nanousd"`
	PriceSource      string          `json:"price_source,omitempty"`
	LatencyMS        *int64          `json:"latency_ms,omitempty"`
	CreatedAt        session.Time    `json:"created_at"`
	Metadata         session.JSON    `json:"metadata,omitempty"`
}

func (w *Writer) callFields(c *session.Call) callFields {
	return callFields{
		Purpose: c.Purpose, Status: c.Status, Error: w.mask.Text(c.Error), Provider: c.Provider, Model: c.Model, Source: c.Source,
		ExternalID: c.ExternalID, Directory: c.Directory, Day: c.Day, InputTokens: c.InputTokens, CacheReadTokens: c.CacheReadTokens,
		CacheWriteTokens: c.CacheWriteTokens, OutputTokens: c.OutputTokens, ReasoningTokens: c.ReasoningTokens, CostNanoUSD: c.CostNanoUSD,
		PriceSource: c.PriceSource, LatencyMS: c.LatencyMS, CreatedAt: c.CreatedAt, Metadata: w.mask.JSON(c.Metadata),
	}
}

func (f *callFields) call() session.Call {
	return session.Call{
		Purpose: f.Purpose, Status: f.Status, Error: f.Error, Provider: f.Provider, Model: f.Model, Source: f.Source, ExternalID: f.ExternalID,
		Directory: f.Directory, Day: f.Day, InputTokens: f.InputTokens, CacheReadTokens: f.CacheReadTokens, CacheWriteTokens: f.CacheWriteTokens,
		OutputTokens: f.OutputTokens, ReasoningTokens: f.ReasoningTokens, CostNanoUSD: f.CostNanoUSD, PriceSource: f.PriceSource,
		LatencyMS: f.LatencyMS, CreatedAt: f.CreatedAt, Metadata: f.Metadata,
	}
}

type markLine struct {
	Type    string             `json:"type"`
	Message session.MessageRef `json:"message"`
	Kind    string             `json:"kind"`
	Text    string             `json:"text,omitempty"`
	At      session.Time       `json:"created_at"`
}

type stateLine struct {
	Type      string        `json:"type"`
	Name      string        `json:"name"`
	Revision  int64         `json:"revision"`
	Value     session.JSON  `json:"value"`
	UpdatedAt session.Time  `json:"updated_at"`
	DeletedAt *session.Time `json:"deleted_at,omitempty"`
}

type flushLine struct {
	Type       string       `json:"type"`
	Compaction *numbered    `json:"compaction,omitempty"` // absent: before the first
	At         session.Time `json:"at"`
	Outcome    string       `json:"outcome"`
}

// storeLine is a piece of what belongs to the store and to no session.
type storeLine struct {
	Type string `json:"type"`
	store.StoreData
	Calls []callFields `json:"calls,omitempty"`
}

func clip(s string) string { return s[:min(len(s), 60)] }
