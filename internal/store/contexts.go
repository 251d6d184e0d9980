package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

const contextColumns = `id, session_id, head_id, compaction_id, epoch, model, dialect, system_hash, initial_hash, tools_hash,
	overhead_tokens, tokens, created_at, limits`

// SaveContext records a context that is handed out, with the caller's blocks (kind →
// content, kept once per content) and what was frozen into it. A message that has something
// frozen of a kind already keeps what it has.
func (s *Store) SaveContext(ctx context.Context, c session.Context, blocks map[string]string,
	frozen []session.Frozen,
) (session.Context, error) {
	err := s.write(ctx, func(t *tx) error {
		if err := t.checkExists(c.SessionID); err != nil {
			return err
		}
		for kind, content := range blocks {
			h := hash([]byte(content))
			switch kind {
			case session.BlockSystem:
				c.SystemHash = h
			case session.BlockInitial:
				c.InitialHash = h
			case session.BlockTools:
				c.ToolsHash = h
			}
			if err := t.keepBlock(Block{Hash: h, Kind: kind, Content: content, CreatedAt: t.Now}); err != nil {
				return err
			}
		}
		for _, f := range frozen {
			if err := t.freeze(f); err != nil {
				return err
			}
		}
		if c.CreatedAt.IsZero() {
			c.CreatedAt = t.Now
		}
		return t.insertContext(&c)
	})
	return c, err
}

func (t *tx) keepBlock(b Block) error {
	return session.Wrap(t.Exec(`INSERT INTO blocks (hash, kind, content, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		b.Hash, b.Kind, b.Content, b.CreatedAt), "keep the %s block", b.Kind)
}

func (t *tx) freeze(f session.Frozen) error {
	return session.Wrap(t.Exec(`INSERT INTO frozen (session_id, message_id, kind, compaction_id, content) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		f.SessionID, f.MessageID, f.Kind, f.CompactionID, f.Content), "freeze %s", f.Kind)
}

func (t *tx) insertContext(c *session.Context) (err error) {
	c.RowID, err = t.Insert(`INSERT INTO contexts (session_id, head_id, compaction_id, epoch, model, dialect, system_hash, initial_hash,
		tools_hash, overhead_tokens, tokens, created_at, limits) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.SessionID, c.HeadID, c.CompactionID, c.Epoch, c.Model, c.Dialect, c.SystemHash, c.InitialHash,
		c.ToolsHash, c.OverheadTokens, c.Tokens, c.CreatedAt, c.Limits)
	return session.Wrap(err, "record the context")
}

// Context reads a record of a context. Codes: NotFound.
func (s *Store) Context(ctx context.Context, id session.ID, rowID int64) (session.Context, error) {
	c, err := engine.Get[session.Context](ctx, s,
		`SELECT `+contextColumns+` FROM contexts WHERE id = ? AND session_id = ?`, rowID, id)
	if engine.NoRows(err) {
		return c, session.Errorf(session.NotFound, "session %s was given no context %s", id, session.ContextName(rowID))
	}
	return c, err
}

// ContextBasis reads what a context of the session, at its head and with its overlay, is made of.
func (s *Store) ContextBasis(ctx context.Context, sess session.Session) (session.ContextBasis, error) {
	var b session.ContextBasis
	var last *contextWithBlocks
	var reports []session.Call
	err := s.Read(ctx,
		engine.IntoFirst(&last, lastContext, sess.ID),
		engine.IntoFirst(&b.Overlay, compactionByID, sess.CompactionID),
		engine.IntoList(&b.Frozen, frozenOfSession, sess.ID, int64(math.MaxInt64), int64(math.MaxInt64)),
		engine.IntoList(&b.Pins, pinsOfSession, sess.ID),
		engine.IntoList(&reports, lastReports, sess.ID, sess.Epoch, sess.CompactionID),
		engine.IntoList(&b.Reports, reportsOfContexts, sess.ID, maxReports))
	if err == nil && last != nil {
		b.Last = &last.Context
		b.Blocks, err = last.blocks()
	}
	switch {
	case err != nil:
	case b.Overlay != nil:
		err = nameCompaction(b.Overlay)
	case sess.CompactionID != nil:
		err = noCompaction(*sess.CompactionID)
	}
	if err == nil {
		b.Frozen, err = inheritFrozen(ctx, s, sess, b.Frozen)
	}
	if err == nil {
		b.Report, err = s.firstOnPath(ctx, sess, reports)
	}
	return b, session.Wrap(err, "the context of %s", sess.ID)
}

// contextWithBlocks is a record of a context with the content of its blocks; nil: it has none.
type contextWithBlocks struct {
	session.Context
	System  *string `db:"system"`
	Initial *string `db:"initial"`
	Tools   *string `db:"tools"`
}

const lastContext = `SELECT ` + contextColumns + `, (SELECT content FROM blocks WHERE hash = system_hash) AS system,
	(SELECT content FROM blocks WHERE hash = initial_hash) AS initial, (SELECT content FROM blocks WHERE hash = tools_hash) AS tools
	FROM contexts WHERE session_id = ? ORDER BY id DESC LIMIT 1`

// blocks returns kind → content.
func (c *contextWithBlocks) blocks() (map[string]string, error) {
	blocks := map[string]string{}
	for _, b := range []struct {
		kind, hash string
		content    *string
	}{
		{session.BlockSystem, c.SystemHash, c.System},
		{session.BlockInitial, c.InitialHash, c.Initial},
		{session.BlockTools, c.ToolsHash, c.Tools},
	} {
		switch {
		case b.content != nil:
			blocks[b.kind] = *b.content
		case b.hash != "":
			return nil, session.Errorf(session.NotFound, "the %s block of context %s is gone: run `sessiond doctor`", b.kind,
				session.ContextName(c.RowID))
		}
	}
	return blocks, nil
}

// LastContext reads the newest record of a session with its blocks; nil when there is none.
func (s *Store) LastContext(ctx context.Context, id session.ID) (*session.Context, map[string]string, error) {
	c, err := engine.First[contextWithBlocks](ctx, s, lastContext, id)
	if err != nil || c == nil {
		return nil, nil, session.Wrap(err, "last context of %s", id)
	}
	blocks, err := c.blocks()
	return &c.Context, blocks, err
}

// Frozen lists what was frozen into a session's contexts, by message; of a fork also what was
// frozen with the messages that it shares until it was made, so that they stay as they were.
func (s *Store) Frozen(ctx context.Context, sess session.Session) ([]session.Frozen, error) {
	own, err := engine.List[session.Frozen](ctx, s, frozenOfSession, sess.ID, int64(math.MaxInt64), int64(math.MaxInt64))
	if err != nil {
		return nil, err
	}
	return inheritFrozen(ctx, s, sess, own)
}

func inheritFrozen(ctx context.Context, q engine.Queryer, sess session.Session,
	all []session.Frozen,
) ([]session.Frozen, error) {
	err := ancestors(ctx, q, sess, func(id session.ID, l link) error {
		more, err := engine.List[session.Frozen](ctx, q, frozenOfSession, id, *l.MessageID, l.FrozenID)
		all = append(more, all...)
		return err
	})
	return all, err
}

const frozenOfSession = `SELECT id, session_id, message_id, kind, compaction_id, content FROM frozen
	WHERE session_id = ? AND message_id <= ? AND id <= ? ORDER BY message_id, kind`

// CounterStep is something that changed what is known of a context's size: a call's report,
// or a compaction that took effect.
type CounterStep struct {
	At         session.Time
	Call       *session.Call
	Compaction *session.Compaction
}

// counterCalls bounds how far back a call is looked for that tells of its prompt.
const counterCalls = 20

// Counters returns the steps that say how full a session's context is, oldest first: its
// compactions, and of its calls for chat the newest back to one that tells of its prompt.
func (s *Store) Counters(ctx context.Context, id session.ID) ([]CounterStep, error) {
	var steps []CounterStep
	err := engine.Each(ctx, s, func(row *session.Call) error {
		c := *row
		steps = append(steps, CounterStep{At: c.CreatedAt, Call: &c})
		if c.InputTokens+c.CacheReadTokens+c.CacheWriteTokens > 0 {
			return engine.ErrEnough
		}
		return nil
	}, callsThatCount, id, counterCalls)
	if err != nil {
		return nil, fmt.Errorf("calls of %s: %w", id, err)
	}
	err = engine.Each(ctx, s, func(row *session.Compaction) error {
		if c := *row; c.ActivatedAt != nil {
			steps = append(steps, CounterStep{At: *c.ActivatedAt, Compaction: &c})
		}
		return nil
	}, compactionsThatCount, id)
	if err != nil {
		return nil, fmt.Errorf("compactions of %s: %w", id, err)
	}
	slices.SortStableFunc(steps, func(a, b CounterStep) int { return a.At.Compare(b.At.Time) })
	return steps, nil
}

const (
	callsThatCount = `SELECT created_at, provider, model, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens
		FROM calls WHERE session_id = ? AND session_id <> '' AND purpose = 'chat' AND status = 'ok' ORDER BY id DESC LIMIT +?`
	compactionsThatCount = `SELECT activated_at, tokens_after FROM compactions WHERE session_id = ? AND status = 'done' ORDER BY id`
)
