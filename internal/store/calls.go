package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

const callColumns = `id, session_id, message_id, compaction_id, context_id, purpose, status, error, provider, model, source,
	external_id, directory, day, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
	service_tier, requests, cost_nanousd, cost_usd, price_source, latency_ms, created_at, metadata`

const (
	callByExternalID = `SELECT ` + callColumns + ` FROM calls WHERE source = ? AND external_id = ? AND external_id <> ''`
	callsOfSession   = `SELECT ` + callColumns + ` FROM calls WHERE session_id = ? AND session_id <> '' AND id > ? ORDER BY id LIMIT +?`
	lastReports      = `SELECT ` + callColumns + ` FROM (
			SELECT * FROM calls WHERE session_id = ?1 AND session_id <> '' AND purpose = 'chat' AND status = 'ok' AND message_id IS NOT NULL
			AND input_tokens + cache_read_tokens + cache_write_tokens > 0 ORDER BY id DESC LIMIT 8) c
		WHERE CASE WHEN context_id IS NULL THEN NOT EXISTS (SELECT 1 FROM compactions o WHERE o.id = ?3 AND o.activated_at >= c.created_at)
			ELSE EXISTS (SELECT 1 FROM contexts x WHERE x.id = c.context_id AND x.session_id = ?1 AND x.epoch = ?2) END
		ORDER BY id DESC`
	reportsOfContexts = `SELECT ` + callColumns + ` FROM calls
		WHERE session_id = ? AND session_id <> '' AND purpose = 'chat' AND status = 'ok'
		  AND message_id IS NOT NULL AND context_id IS NOT NULL AND input_tokens + cache_read_tokens + cache_write_tokens > 0
		ORDER BY id DESC LIMIT +?`
)

// AddCall records a model call. Codes: NotFound (its session). A call whose source and external id are
// known is not counted again; its tokens and cost rise to the greater of both reports.
func (s *Store) AddCall(ctx context.Context, c session.Call) (session.Call, error) {
	c.RowID, c.Day = 0, ""
	c, err := writeOnce(ctx, s, c.Idem, (*tx).replayCall, func(t *tx) (session.Call, outcome, error) {
		if err := t.recordCall(&c); err != nil || c.RowID == 0 {
			return c, outcome{}, err
		}
		return c, outcome{Status: 201, SessionID: string(c.SessionID), ObjectID: fmt.Sprintf("call_%d", c.RowID)}, nil
	})
	if err == nil && c.RowID == 0 {
		c, err = engine.Get[session.Call](ctx, s, callByExternalID, c.Source, c.ExternalID)
	}
	return c, err
}

// recordCall inserts a call that came by itself, and counts it on its session if it has one.
func (t *tx) recordCall(c *session.Call) error {
	if c.SessionID == "" {
		return t.addCall(c, nil)
	}
	sess, err := readSession(t.Ctx, t, c.SessionID)
	if err != nil {
		return err
	}
	if err := t.addCall(c, &sess); err != nil || c.RowID == 0 {
		return err
	}
	return t.saveProgress(&sess)
}

// addCall inserts a call and counts it on its session and in the roll-up. The call's RowID is 0
// when it is known already.
func (t *tx) addCall(c *session.Call, sess *session.Session) error {
	if err := t.insertCall(c, sess); err != nil || c.RowID == 0 || sess == nil {
		return err
	}
	return t.countCalls(sess, usageOfCall(c))
}

// insertCall inserts a call and counts it in the roll-up. What the call does not say of itself is
// its session's. The call's RowID is 0 when it is known already.
func (t *tx) insertCall(c *session.Call, sess *session.Session) error {
	c.Purpose, c.Status = orElse(c.Purpose, session.PurposeChat), orElse(c.Status, session.CallOK)
	if sess != nil {
		c.Source, c.Directory = orElse(c.Source, sess.Source), orElse(c.Directory, sess.Directory)
	}
	c.Source = orElse(c.Source, session.SourceSessiond)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = t.Now
	}
	c.Day = orElse(c.Day, c.CreatedAt.Day(t.opt.Zone))
	var err error
	c.RowID, err = t.Insert(insertCall,
		string(c.SessionID), optional(c.MessageID), optional(c.CompactionID), optional(c.ContextID), string(c.Purpose),
		c.Status, c.Error,
		c.Provider, c.Model, string(c.Source), c.ExternalID, c.Directory, c.Day,
		c.InputTokens, c.CacheReadTokens, c.CacheWriteTokens, c.CacheWrite1h, c.OutputTokens, c.ReasoningTokens,
		c.ServiceTier, c.Requests, optional(c.CostNanoUSD), c.PriceSource, optional(c.LatencyMS), c.CreatedAt.SQL(),
		optionalJSON(c.Metadata))
	if engine.NoRows(err) {
		return t.raiseCall(c, sess)
	}
	if err != nil {
		return fmt.Errorf("insert call: %w", err)
	}
	if c.CostNanoUSD != nil {
		usd := float64(*c.CostNanoUSD) / 1e9
		c.CostUSD = &usd
	}
	project := ""
	if sess != nil {
		if project, err = t.usageProject(sess); err != nil {
			return err
		}
	}
	t.usage.at(keyOfCall(c, project)).add(usageOfCall(c), 1)
	return nil
}

const insertCall = `
	INSERT INTO calls (session_id, message_id, compaction_id, context_id, purpose, status, error, provider, model,
		source, external_id, directory, day, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens,
		reasoning_tokens, service_tier, requests, cost_nanousd, price_source, latency_ms, created_at, metadata)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (source, external_id) WHERE external_id <> '' DO NOTHING`

// raiseCall raises a known call to what a later report says: of each number the greater one. A reply
// that was read while it was written, or first seen in a fork, reports more later.
func (t *tx) raiseCall(c *session.Call, sess *session.Session) error {
	known, err := engine.Get[session.Call](t.Ctx, t, callByExternalID, c.Source, c.ExternalID)
	if _, limited := session.ScopeOf(t.Ctx); limited {
		if err == nil {
			_, err = readSession(t.Ctx, t, known.SessionID)
		}
		if engine.NoRows(err) || session.CodeOf(err) == session.NotFound { // it is another owner's
			return session.Errorf(session.Conflict,
				"the external_id %.60q is of another call already: ids are unique over all owners", c.ExternalID)
		}
	}
	if err != nil {
		return fmt.Errorf("read known call: %w", err)
	}
	now := known
	for _, n := range []struct {
		known *int64
		said  int64
	}{
		{&now.InputTokens, c.InputTokens},
		{&now.CacheReadTokens, c.CacheReadTokens},
		{&now.CacheWriteTokens, c.CacheWriteTokens},
		{&now.CacheWrite1h, c.CacheWrite1h},
		{&now.OutputTokens, c.OutputTokens},
		{&now.ReasoningTokens, c.ReasoningTokens},
		{&now.Requests, c.Requests},
	} {
		*n.known = max(*n.known, n.said)
	}
	now.ServiceTier, now.Model = orElse(now.ServiceTier, c.ServiceTier), orElse(now.Model, c.Model)
	dearer := c.CostNanoUSD != nil && (known.CostNanoUSD == nil || *known.CostNanoUSD < *c.CostNanoUSD)
	if otherTier := now.ServiceTier != known.ServiceTier; dearer || otherTier && c.CostNanoUSD != nil {
		now.CostNanoUSD, now.PriceSource = c.CostNanoUSD, c.PriceSource
	}
	more := *usageOfCall(&now)
	more.add(usageOfCall(&known), -1)
	same := now.ReasoningTokens == known.ReasoningTokens && now.CacheWrite1h == known.CacheWrite1h &&
		now.Requests == known.Requests
	if more == (usageSum{}) && same && now.ServiceTier == known.ServiceTier && now.Model == known.Model {
		return nil
	}
	if err := t.Exec(`UPDATE calls SET input_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, cache_write_1h_tokens = ?,
		output_tokens = ?, reasoning_tokens = ?, model = ?, service_tier = ?, requests = ?, cost_nanousd = ?, price_source = ? WHERE id = ?`,
		now.InputTokens, now.CacheReadTokens, now.CacheWriteTokens, now.CacheWrite1h,
		now.OutputTokens, now.ReasoningTokens, now.Model, now.ServiceTier, now.Requests, optional(now.CostNanoUSD),
		now.PriceSource, known.RowID); err != nil {
		return fmt.Errorf("raise call: %w", err)
	}
	project, err := t.usageProjectOf(known.SessionID)
	if err != nil {
		return err
	}
	t.usage.at(keyOfCall(&known, project)).add(usageOfCall(&known), -1)
	t.usage.at(keyOfCall(&now, project)).add(usageOfCall(&now), 1)
	switch {
	case known.SessionID == "":
		return nil
	case sess == nil || sess.ID != known.SessionID:
		sess = &session.Session{ID: known.SessionID}
	}
	return t.countCalls(sess, &more)
}

// dropCall removes a session's call that an earlier import counted there though it is another session's. dropped is
// false if the session has no such call.
func (t *tx) dropCall(source session.Source, externalID string, sess *session.Session) (dropped bool, err error) {
	known, err := engine.Get[session.Call](t.Ctx, t, callByExternalID, source, externalID)
	if engine.NoRows(err) || err == nil && known.SessionID != sess.ID {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read call to drop: %w", err)
	}
	project, err := t.usageProjectOf(sess.ID)
	if err != nil {
		return false, err
	}
	if err := t.Exec(`DELETE FROM calls WHERE id = ?`, known.RowID); err != nil {
		return false, fmt.Errorf("drop call: %w", err)
	}
	var less usageSum
	less.add(usageOfCall(&known), -1)
	t.usage.at(keyOfCall(&known, project)).add(&less, 1)
	return true, t.countCalls(sess, &less)
}

// countCalls adds the sum of calls to their session, in memory and in its row.
func (t *tx) countCalls(sess *session.Session, sum *usageSum) error {
	sess.InputTokens += sum.Input
	sess.OutputTokens += sum.Output
	sess.CacheReadTokens += sum.CacheRead
	sess.CacheWriteTokens += sum.CacheWrite
	sess.UnpricedCalls += sum.Unpriced
	// The sum of a known and an unknown cost is the known one, and of unknown ones unknown.
	var cost *int64
	if sum.Calls > sum.Unpriced || sum.CostNanoUSD != 0 {
		cost = &sum.CostNanoUSD
		all := *cost
		if sess.CostNanoUSD != nil {
			all += *sess.CostNanoUSD
		}
		usd := float64(all) / 1e9
		sess.CostNanoUSD, sess.CostUSD = &all, &usd
	}
	return session.Wrap(t.Exec(`UPDATE sessions SET input_tokens = input_tokens + ?1, output_tokens = output_tokens + ?2,
		cache_read_tokens = cache_read_tokens + ?3, cache_write_tokens = cache_write_tokens + ?4,
		cost_nanousd = COALESCE(cost_nanousd + ?5, cost_nanousd, ?5), unpriced_calls = unpriced_calls + ?6 WHERE id = ?7`,
		sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite, optional(cost), sum.Unpriced, string(sess.ID)), "count calls")
}

// Calls lists a session's calls, oldest first. Codes: NotFound, Invalid (cursor).
func (s *Store) Calls(ctx context.Context, id session.ID, p Page) (calls []session.Call, next string, err error) {
	if _, err := s.Session(ctx, id); err != nil {
		return nil, "", err
	}
	after := int64(0)
	if p.Cursor != "" {
		if after, err = session.ParseName("call", p.Cursor); err != nil {
			return nil, "", p.invalidCursor()
		}
	}
	limit := p.limit()
	if calls, err = engine.List[session.Call](ctx, s, callsOfSession, id, after, limit+1); err != nil {
		return nil, "", fmt.Errorf("calls of %s: %w", id, err)
	}
	if len(calls) > limit {
		calls = calls[:limit]
		next = fmt.Sprintf("call_%d", calls[limit-1].RowID)
	}
	return calls, next, nil
}

// LastReport returns the newest successful chat call that reported tokens, whose message is on
// the session's path and which was made in its epoch: either for a context of that epoch, or,
// without one, after the last activation. nil when there is none.
func (s *Store) LastReport(ctx context.Context, sess session.Session) (*session.Call, error) {
	calls, err := engine.List[session.Call](ctx, s, lastReports, sess.ID, sess.Epoch, sess.CompactionID)
	if err != nil {
		return nil, fmt.Errorf("last report of %s: %w", sess.ID, err)
	}
	return s.firstOnPath(ctx, sess, calls)
}

// firstOnPath returns the first call whose message is on the session's path; nil: none.
func (s *Store) firstOnPath(ctx context.Context, sess session.Session, calls []session.Call) (*session.Call, error) {
	if sess.HeadID == nil {
		return nil, nil
	}
	for i := range calls {
		if on, err := s.OnPath(ctx, *sess.HeadID, *calls[i].MessageID); on || err != nil {
			return &calls[i], err
		}
	}
	return nil, nil
}

// Reports returns the newest successful chat calls of a session that were made for a context
// of ours and reported what went in, newest first.
func (s *Store) Reports(ctx context.Context, id session.ID, most int) ([]session.Call, error) {
	calls, err := engine.List[session.Call](ctx, s, reportsOfContexts, id, most)
	return calls, session.Wrap(err, "reports of %s", id)
}

// maxReports is the number of reports from which a context's overhead is learned.
const maxReports = 4

// CallCost is what a call of a message cost.
type CallCost struct {
	Message int64  `db:"message_id"` // its row
	NanoUSD *int64 `db:"cost_nanousd"`
}

// CallCosts returns the costs of a session's calls that made messages, in their order.
func (s *Store) CallCosts(ctx context.Context, id session.ID) ([]CallCost, error) {
	all, err := engine.List[CallCost](ctx, s, `SELECT message_id, cost_nanousd FROM calls
		WHERE session_id = ? AND session_id <> '' AND message_id IS NOT NULL ORDER BY id`, id)
	return all, session.Wrap(err, "costs of the calls of %s", id)
}

// LedgerEnd is how far calls, parts and events are written.
type LedgerEnd struct {
	Epoch string `json:"epoch"` // of the database
	Call  int64  `json:"call"`
	Part  int64  `json:"part"`
	Event int64  `json:"event"`
}

// LedgerEnd returns the end of the ledger now.
func (s *Store) LedgerEnd(ctx context.Context) (end LedgerEnd, err error) {
	if end.Epoch, _, end.Event, err = s.EventRange(ctx); err != nil {
		return end, err
	}
	if end.Call, err = engine.Get[int64](ctx, s, `SELECT COALESCE(MAX(id), 0) FROM calls`); err == nil {
		end.Part, err = engine.Get[int64](ctx, s, `SELECT COALESCE(MAX(id), 0) FROM parts`)
	}
	return end, session.Wrap(err, "end of the ledger")
}

// promptBefore is the message of a person that began the turn of a message: the newest one in its session, of those
// not far before it.
const promptBefore = `(SELECT u.id FROM messages u
	WHERE u.session_id = m.session_id AND u.seq <= m.seq AND u.seq > m.seq - 2000 AND u.origin = 'person' AND u.role = 'user' ORDER BY u.seq DESC LIMIT 1)`

// LedgerCall is a model call with the message of a person that began its turn.
type LedgerCall struct {
	session.Call
	PromptID *int64 `db:"prompt_id"` // nil: it is not known
}

// LedgerCalls reads calls behind one, up to another, in the order of their rows.
func (s *Store) LedgerCalls(ctx context.Context, after, through int64, limit int) ([]LedgerCall, error) {
	calls, err := engine.List[LedgerCall](ctx, s, `SELECT `+callColumns+`,
			(SELECT `+promptBefore+` FROM messages m WHERE m.id = message_id) AS prompt_id
		FROM calls WHERE id > ? AND id <= ? ORDER BY id LIMIT +?`, after, through, limit)
	return calls, session.Wrap(err, "calls of the ledger")
}

// LedgerTool is a tool's run: a result and what called it.
type LedgerTool struct {
	PartID     int64          `db:"id"`
	MessageID  int64          `db:"message_id"`
	SessionID  session.ID     `db:"session_id"`
	Source     session.Source `db:"source"`
	Project    string         `db:"project"`
	Directory  string         `db:"directory"`
	ToolName   string         `db:"tool_name"`
	CallID     string         `db:"call_id"`
	CallPartID *int64         `db:"call_part_id"`
	IsError    *bool          `db:"is_error"`
	DurationMS *int64         `db:"duration_ms"`
	CalledAt   *session.Time  `db:"called_at"` // of the reply that called it
	CreatedAt  session.Time   `db:"created_at"`
	PromptID   *int64         `db:"prompt_id"`
}

// LedgerTools reads the runs of tools whose results are behind a part, up to another, in the order of their rows.
func (s *Store) LedgerTools(ctx context.Context, after, through int64, limit int) ([]LedgerTool, error) {
	tools, err := engine.List[LedgerTool](ctx, s, `SELECT p.id, p.message_id, m.session_id, s.source, s.project, s.directory,
			COALESCE(NULLIF(p.tool_name, ''), c.tool_name, '') AS tool_name, p.call_id, p.call_part_id, p.is_error, p.duration_ms,
			r.created_at AS called_at, m.created_at, `+promptBefore+` AS prompt_id
		FROM parts p JOIN messages m ON m.id = p.message_id JOIN sessions s ON s.id = m.session_id
		LEFT JOIN parts c ON c.id = p.call_part_id LEFT JOIN messages r ON r.id = c.message_id
		WHERE p.kind = 'tool_result' AND p.id > ? AND p.id <= ? ORDER BY p.id LIMIT +?`, after, through, limit)
	return tools, session.Wrap(err, "tools of the ledger")
}
