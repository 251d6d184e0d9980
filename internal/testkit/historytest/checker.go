package historytest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Checker takes the batches of a first reading of a file.
type Checker struct {
	testing.TB
	keys  map[string]map[string]bool // by session
	calls map[string]session.Call
}

// NewChecker makes a checker that reports to t.
func NewChecker(t testing.TB) *Checker {
	return &Checker{TB: t, keys: map[string]map[string]bool{}, calls: map[string]session.Call{}}
}

// Batch fails the test for what the store would refuse, and for records that do not add up.
func (c *Checker) Batch(b history.Batch) error {
	c.Helper()
	if !b.Records.Balanced() {
		c.Errorf("records do not add up: %+v", b.Records)
	}
	if len(b.Messages) > history.MaxBatch*2 {
		c.Errorf("a batch of %d messages", len(b.Messages))
	}
	keys := c.keys[b.Session.SourceID]
	if keys == nil {
		keys = map[string]bool{"": true}
		c.keys[b.Session.SourceID] = keys
	}
	c.clean(b.Session.SourceID, b.Session.Title, b.Session.Directory, b.Session.GitBranch, b.Session.Model,
		b.Session.Provider)
	c.valid(b.Session.Metadata)
	for i := range b.Messages {
		c.message(&b.Messages[i], keys)
	}
	for _, compaction := range b.Compactions {
		hides := len(compaction.Pruned)+len(compaction.Replaced) > 0
		if !keys[compaction.ThroughKey] || compaction.ThroughKey == "" && !hides || !keys[compaction.FirstKeptKey] {
			c.Errorf("a compaction names %q and %q", compaction.ThroughKey, compaction.FirstKeptKey)
		}
		for _, output := range compaction.Pruned {
			if place := output.Place; place.Session == "" && !keys[place.Key] || place.Key == "" && compaction.ThroughKey == "" {
				c.Errorf("a compaction hides an output of %q", place.Key)
			}
		}
		for _, piece := range compaction.Replaced {
			c.clean(piece.Text)
			for _, place := range piece.Messages {
				if place.Session == "" && !keys[place.Key] || place.Key == "" {
					c.Errorf("a compaction replaces %q", place.Key)
				}
			}
		}
		c.clean(compaction.Summary)
		c.valid(compaction.Replacement)
	}
	for _, call := range b.Calls {
		if !keys[call.MessageKey] {
			c.Errorf("a call names %q", call.MessageKey)
		}
		if call.ExternalID == "" {
			c.Errorf("a call has no name: %+v", call.Call)
		}
		if before, again := c.calls[call.ExternalID]; again && !sameUsage(&before, &call.Call) {
			c.Errorf("two calls are named %q: %+v, %+v", call.ExternalID, before, call.Call)
		}
		c.calls[call.ExternalID] = call.Call
		if call.InputTokens < 0 || call.OutputTokens < 0 || call.CacheReadTokens < 0 || call.CacheWriteTokens < 0 {
			c.Errorf("a call of less than nothing: %+v", call)
		}
		c.clean(call.ExternalID, call.Model, call.Provider, call.Directory)
		c.valid(call.Metadata)
	}
	for _, mark := range b.Marks {
		if !keys[mark.MessageKey] {
			c.Errorf("a mark names %q", mark.MessageKey)
		}
	}
	if b.Head != nil && (b.HeadSession == "" && !keys[*b.Head] || *b.Head == "") {
		c.Errorf("the head is %q", *b.Head)
	}
	if b.Cursor != nil {
		c.valid(b.Cursor.State)
	}
	return nil
}

// sameUsage reports whether a call that is seen again is the same one: the store counts it once.
func sameUsage(a, b *session.Call) bool {
	return a.InputTokens == b.InputTokens && a.OutputTokens == b.OutputTokens && a.CacheReadTokens == b.CacheReadTokens &&
		a.CacheWriteTokens == b.CacheWriteTokens && a.Model == b.Model
}

func (c *Checker) message(m *history.Message, keys map[string]bool) {
	c.Helper()
	if keys[m.ExternalID] || m.ParentSession == "" && !keys[m.ParentKey] {
		c.Errorf("message %q under %q", m.ExternalID, m.ParentKey)
	}
	keys[m.ExternalID] = true
	if m.CreatedAt.IsZero() {
		c.Errorf("message %q has no time", m.ExternalID)
	}
	c.clean(m.ExternalID, m.Provider, m.Model, string(m.Finish), m.Author)
	c.valid(m.Extra)
	c.valid(m.Metadata)
	if len(m.Parts) > session.MaxParts {
		c.Errorf("%d parts", len(m.Parts))
	}
	for _, p := range m.Parts {
		c.clean(p.Text, p.ToolName, p.CallID, p.Arguments)
		c.valid(p.Extra)
	}
}

// clean checks what a column of text can hold.
func (c *Checker) clean(texts ...string) {
	c.Helper()
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			c.Errorf("text %q", text)
		}
	}
}

func (c *Checker) valid(raw session.JSON) {
	c.Helper()
	c.clean(string(raw))
	if len(raw) > 0 && !json.Valid(raw) {
		c.Errorf("JSON %.300s", raw)
	}
}

// Nobody is a history.Known that knows nothing.
type Nobody struct{}

var errNone = session.Errorf(session.NotFound, "there is none")

// SessionBySource implements history.Known.
func (Nobody) SessionBySource(context.Context, session.Source, string) (session.Session, error) {
	return session.Session{}, errNone
}

// Session implements history.Known.
func (Nobody) Session(context.Context, session.ID) (session.Session, error) {
	return session.Session{}, errNone
}

// ImportCursor implements history.Known.
func (Nobody) ImportCursor(context.Context, session.Source, string) (*store.ImportCursor, error) {
	return nil, nil
}

// MessageByKey implements history.Known.
func (Nobody) MessageByKey(context.Context, session.ID, string) (*session.MessageRef, error) {
	return nil, nil
}

// SessionOfCall implements history.Known.
func (Nobody) SessionOfCall(context.Context, session.Source, string) (session.ID, error) {
	return "", nil
}

// Message implements history.Known.
func (Nobody) Message(context.Context, session.MessageRef) (session.Message, error) {
	return session.Message{}, errNone
}

// Untitled implements history.Known.
func (Nobody) Untitled(context.Context, session.Source, string) ([]session.ID, error) {
	return nil, nil
}

// ExternalIDs implements history.Known.
func (Nobody) ExternalIDs(context.Context, session.ID, func(string)) error { return nil }

// Messages implements history.Known.
func (Nobody) Messages(context.Context, session.ID, store.MessagePage) ([]session.Message, bool, error) {
	return nil, false, nil
}

// Calls implements history.Known.
func (Nobody) Calls(context.Context, session.ID, store.Page) ([]session.Call, string, error) {
	return nil, "", nil
}
