package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// rollup gathers what a batch adds to daily_usage, so that it costs one statement for each key and not
// one for each append.
type rollup map[usageKey]*usageSum

// usageKey is the key of daily_usage. Sessions and messages have no model and no purpose.
type usageKey struct {
	Day     string          `db:"day"`
	Project string          `db:"project"`
	Source  session.Source  `db:"source"`
	Model   string          `db:"model"`
	Purpose session.Purpose `db:"purpose"`
}

// usageSum is what daily_usage counts.
type usageSum struct {
	Sessions    int64 `db:"sessions"`
	Subagents   int64 `db:"subagents"` // of the sessions
	Messages    int64 `db:"messages"`
	Prompts     int64 `db:"prompts"`
	Calls       int64 `db:"calls"`
	Input       int64 `db:"input_tokens"`
	CacheRead   int64 `db:"cache_read_tokens"`
	CacheWrite  int64 `db:"cache_write_tokens"`
	Output      int64 `db:"output_tokens"`
	CostNanoUSD int64 `db:"cost_nanousd"`
	Unpriced    int64 `db:"unpriced_calls"`
}

func (r rollup) at(k usageKey) *usageSum {
	if r[k] == nil {
		r[k] = &usageSum{}
	}
	return r[k]
}

func (r rollup) add(other rollup) {
	for k, u := range other {
		r.at(k).add(u, 1)
	}
}

// add adds sign times the numbers of another sum.
func (u *usageSum) add(other *usageSum, sign int64) {
	u.Sessions += sign * other.Sessions
	u.Subagents += sign * other.Subagents
	u.Messages += sign * other.Messages
	u.Prompts += sign * other.Prompts
	u.Calls += sign * other.Calls
	u.Input += sign * other.Input
	u.CacheRead += sign * other.CacheRead
	u.CacheWrite += sign * other.CacheWrite
	u.Output += sign * other.Output
	u.CostNanoUSD += sign * other.CostNanoUSD
	u.Unpriced += sign * other.Unpriced
}

// keyOfCall is where a call counts. project is its session's.
func keyOfCall(c *session.Call, project string) usageKey {
	return usageKey{Day: c.Day, Project: project, Source: c.Source, Model: c.Model, Purpose: c.Purpose}
}

// usageOfCall is what one call counts for.
func usageOfCall(c *session.Call) *usageSum {
	u := usageSum{
		Calls: 1, Input: c.InputTokens, CacheRead: c.CacheReadTokens, CacheWrite: c.CacheWriteTokens,
		Output: c.OutputTokens,
	}
	if c.CostNanoUSD == nil {
		u.Unpriced = 1
	} else {
		u.CostNanoUSD = *c.CostNanoUSD
	}
	return &u
}

// saveRollups adds what the writes of a transaction counted.
func (t *tx) saveRollups(carried []any) error {
	total := rollup{}
	for _, c := range carried {
		total.add(c.(rollup))
	}
	return t.saveRollup(total)
}

func (t *tx) saveRollup(r rollup) error {
	for k, u := range r {
		if *u == (usageSum{}) {
			continue
		}
		if err := t.Exec(`INSERT INTO daily_usage (`+usageKeys+`, `+usageColumns+`)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) `+addToUsage,
			k.Day, k.Project, k.Source, k.Model, k.Purpose, u.Sessions, u.Subagents, u.Messages, u.Prompts, u.Calls,
			u.Input, u.CacheRead, u.CacheWrite, u.Output, u.CostNanoUSD, u.Unpriced); err != nil {
			return fmt.Errorf("roll up %s: %w", k.Day, err)
		}
		if min(u.Sessions, u.Messages, u.Calls) >= 0 {
			continue
		}
		// A row that counts nothing any more would still name the project of what was purged.
		if err := t.Exec(`DELETE FROM daily_usage WHERE day = ? AND project = ? AND source = ? AND model = ? AND purpose = ?
			AND (`+usageColumns+`) = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`, k.Day, k.Project, k.Source, k.Model, k.Purpose); err != nil {
			return fmt.Errorf("roll up %s: %w", k.Day, err)
		}
	}
	return nil
}

// countSession adds a session to the roll-up, or takes it out with sign -1. A draft is not counted.
func (t *tx) countSession(sess *session.Session, sign int64) error {
	if sess.Draft {
		return nil
	}
	project, err := t.usageProject(sess)
	if err != nil {
		return err
	}
	u := t.usage.at(usageKey{Day: sess.Day, Project: project, Source: sess.Source})
	u.Sessions += sign
	if sess.Kind == session.KindSubagent {
		u.Subagents += sign
	}
	return nil
}

// usageProject returns the project that a session counts for. A sub-agent counts for the project of the
// session that started it, at any depth; a purged session for none.
func (t *tx) usageProject(sess *session.Session) (string, error) {
	if sess.ParentKind != session.ParentChild {
		return sess.Project, nil
	}
	if project, known := t.projects[sess.ID]; known {
		return project, nil
	}
	project, err := t.usageProjectOf(sess.ID)
	if err == nil {
		t.projects[sess.ID] = project
	}
	return project, err
}

func (t *tx) usageProjectOf(id session.ID) (project string, _ error) {
	for id != "" {
		err := t.Row(`SELECT project, CASE WHEN parent_kind = 'child' AND purged_at IS NULL THEN parent_id ELSE '' END FROM sessions WHERE id = ?`,
			[]any{string(id)}, &project, &id)
		if engine.NoRows(err) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("project of %s: %w", id, err)
		}
	}
	return project, nil
}

// messageUsage is what the messages of a session count for. It is read before a transaction, which the
// count of many messages would hold up.
type messageUsage struct {
	LastSeq int64 `db:"last_seq"`
	Count   int64 `db:"message_count"`
	usage   []usageRow
}

type usageRow struct {
	usageKey
	usageSum
}

// readMessageUsage counts the messages of a session that is about to lose its project.
func (s *Store) readMessageUsage(ctx context.Context, id session.ID) (*messageUsage, error) {
	read, err := engine.First[messageUsage](ctx, s, messageExtent, string(id))
	if err != nil || read == nil {
		return nil, session.Wrap(err, "messages of %s", id)
	}
	err = s.Reader().SelectContext(ctx, &read.usage,
		`WITH counted (id, project) AS (SELECT ?, '') `+messagesOfCounted+groupMessages, string(id))
	return read, session.Wrap(err, "messages of %s", id)
}

const messageExtent = `SELECT last_seq, message_count FROM sessions WHERE id = ?`

// moveUsage runs change, which gives a session another project or parent. What the session and its
// sub-agents count for moves to the project that they have then. known, or nil, is what the session's
// messages count for; they are counted anew if there are others by now.
func (t *tx) moveUsage(id session.ID, known *messageUsage, change func() error) error {
	from, err := t.usageProjectOf(id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	clear(t.projects)
	to, err := t.usageProjectOf(id)
	if err != nil || to == from {
		return err
	}
	move := func(r *usageRow) error {
		r.Project = to
		t.usage.at(r.usageKey).add(&r.usageSum, 1)
		r.Project = from
		t.usage.at(r.usageKey).add(&r.usageSum, -1)
		return nil
	}
	var counted session.ID // whose messages are counted already
	if known != nil {
		now, err := engine.Get[messageUsage](t.Ctx, t, messageExtent, string(id))
		if err != nil {
			return fmt.Errorf("usage of %s: %w", id, err)
		}
		if now.LastSeq == known.LastSeq && now.Count == known.Count { // messages are immutable
			counted = id
			for i := range known.usage {
				_ = move(&known.usage[i])
			}
		}
	}
	return session.Wrap(engine.Each(t.Ctx, t, move, usageOfFamily, string(id), string(counted)), "usage of %s", id)
}

const usageOfFamily = `
	WITH RECURSIVE counted (id, project) AS (
		SELECT ?1, ''
		UNION ALL SELECT s.id, '' FROM counted p JOIN sessions s ON s.parent_id = p.id AND s.parent_id <> '' AND s.parent_kind = 'child' AND s.purged_at IS NULL)
	SELECT * FROM (` + callsOfCounted + ` UNION ALL ` + messagesOfCounted + ` WHERE counted.id <> ?2 ` + groupMessages + `) AS counts`

// callsOfCounted is what the sessions of a table counted(id, project) and their calls count for.
const callsOfCounted = `
	SELECT day, project, source, model, purpose, 0 AS sessions, 0 AS subagents, 0 AS messages, 0 AS prompts, COUNT(*) AS calls,
	       SUM(input_tokens) AS input_tokens, SUM(cache_read_tokens) AS cache_read_tokens, SUM(cache_write_tokens) AS cache_write_tokens,
	       SUM(output_tokens) AS output_tokens, COALESCE(SUM(cost_nanousd), 0) AS cost_nanousd, SUM(cost_nanousd IS NULL) AS unpriced_calls
	FROM counted JOIN calls ON session_id = counted.id AND session_id <> '' GROUP BY day, project, source, model, purpose
	UNION ALL
	SELECT day, counted.project, source, '', '', COUNT(*), SUM(kind = 'subagent'), 0, 0, 0, 0, 0, 0, 0, 0, 0
	FROM counted JOIN sessions s ON s.id = counted.id WHERE draft = 0 GROUP BY day, counted.project, source`

// messagesOfCounted is the same for their messages.
const messagesOfCounted = `
	SELECT m.day, counted.project, s.source, '' AS model, '' AS purpose, 0 AS sessions, 0 AS subagents, COUNT(*) AS messages,
	       SUM(m.origin = 'person') AS prompts, 0 AS calls, 0 AS input_tokens,
	       0 AS cache_read_tokens, 0 AS cache_write_tokens, 0 AS output_tokens, 0 AS cost_nanousd, 0 AS unpriced_calls
	FROM counted JOIN sessions s ON s.id = counted.id JOIN messages m ON m.session_id = counted.id`

const groupMessages = ` GROUP BY m.day, counted.project, s.source`

const usageColumns = `sessions, subagents, messages, prompts, calls, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls`

const usageKeys = `day, project, source, model, purpose`

// addToUsage adds a row to the one that daily_usage has.
const addToUsage = `
	ON CONFLICT (` + usageKeys + `) DO UPDATE SET sessions = daily_usage.sessions + excluded.sessions,
	subagents = daily_usage.subagents + excluded.subagents, messages = daily_usage.messages + excluded.messages,
	prompts = daily_usage.prompts + excluded.prompts, calls = daily_usage.calls + excluded.calls,
	input_tokens = daily_usage.input_tokens + excluded.input_tokens, cache_read_tokens = daily_usage.cache_read_tokens + excluded.cache_read_tokens,
	cache_write_tokens = daily_usage.cache_write_tokens + excluded.cache_write_tokens, output_tokens = daily_usage.output_tokens + excluded.output_tokens,
	cost_nanousd = daily_usage.cost_nanousd + excluded.cost_nanousd, unpriced_calls = daily_usage.unpriced_calls + excluded.unpriced_calls`

// recountedUsage is daily_usage without the roll-up: sums over all that it counts.
const recountedUsage = `
	WITH RECURSIVE counted (id, project) AS (
		SELECT id, project FROM sessions WHERE parent_kind <> 'child' OR purged_at IS NOT NULL OR parent_id NOT IN (SELECT id FROM sessions)
		UNION ALL SELECT s.id, p.project FROM counted p JOIN sessions s ON s.parent_id = p.id AND s.parent_id <> '' AND s.parent_kind = 'child' AND s.purged_at IS NULL)
	SELECT day, project, source, model, purpose, SUM(sessions), SUM(subagents), SUM(messages), SUM(prompts), SUM(calls), SUM(input_tokens),
	       SUM(cache_read_tokens), SUM(cache_write_tokens), SUM(output_tokens), SUM(cost_nanousd), SUM(unpriced_calls)
	FROM (` + callsOfCounted + ` UNION ALL ` + messagesOfCounted + groupMessages + `
	UNION ALL
	SELECT day, '', source, model, purpose, 0, 0, 0, 0, 1, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
	       COALESCE(cost_nanousd, 0), CASE WHEN cost_nanousd IS NULL THEN 1 ELSE 0 END FROM calls WHERE session_id = ''
	UNION ALL
	SELECT day, '', source, '', '', sessions, subagents, messages, prompts, 0, 0, 0, 0, 0, 0, 0 FROM purged_days) AS counts
	GROUP BY day, project, source, model, purpose`

// CompactionTotal sums up the compactions of one kind over all sessions.
type CompactionTotal struct {
	Status      session.Status   `db:"status"`
	Strategy    session.Strategy `db:"strategy"`
	Trigger     session.Trigger  `db:"trigger"`
	Count       int64            `db:"n"`
	SavedTokens int64            `db:"saved"` // of contexts, by done ones
	DurationMS  int64            `db:"duration"`
}

// CompactionTotals counts compactions by status, strategy and trigger. It reads all of them, on
// the connections of reports.
func (s *Store) CompactionTotals(ctx context.Context) ([]CompactionTotal, error) {
	var totals []CompactionTotal
	err := s.Reader().SelectContext(ctx, &totals, `SELECT status, strategy, trigger, COUNT(*) AS n,
		COALESCE(SUM(CASE WHEN status = 'done' THEN MAX(tokens_before - tokens_after, 0) END), 0) AS saved, SUM(duration_ms) AS duration
		FROM compactions GROUP BY status, strategy, trigger`)
	return totals, session.Wrap(err, "count compactions")
}

// CallTotal sums up the ledger by what calls were made for.
type CallTotal struct {
	Purpose     session.Purpose `db:"purpose"`
	Status      string          `db:"status"`
	Count       int64           `db:"n"`
	CostNanoUSD int64           `db:"cost"` // of the priced ones
}

// CallTotals counts model calls by purpose and status: the failed ones by their index, the others as what
// the roll-up has beyond them.
func (s *Store) CallTotals(ctx context.Context) ([]CallTotal, error) {
	var totals []CallTotal
	err := s.Reader().SelectContext(ctx, &totals, `
		WITH failed AS MATERIALIZED (
			SELECT purpose, COUNT(*) AS n, COALESCE(SUM(cost_nanousd), 0) AS cost FROM calls WHERE status = 'failed' GROUP BY purpose),
		made AS (SELECT purpose, SUM(calls) AS n, SUM(cost_nanousd) AS cost FROM daily_usage WHERE purpose <> '' GROUP BY purpose)
		SELECT purpose, 'failed' AS status, n, cost FROM failed
		UNION ALL
		SELECT m.purpose, 'ok', m.n - COALESCE(f.n, 0), m.cost - COALESCE(f.cost, 0) FROM made m LEFT JOIN failed f ON f.purpose = m.purpose
		WHERE m.n > COALESCE(f.n, 0)`)
	return totals, session.Wrap(err, "count calls")
}

// Sources lists the programs of which anything is stored, those with the most messages first.
func (s *Store) Sources(ctx context.Context) (found []session.Source, err error) {
	err = s.Reader().SelectContext(ctx, &found, `SELECT source FROM daily_usage GROUP BY source ORDER BY SUM(messages) DESC, source`)
	return found, session.Wrap(err, "list the programs of sessions")
}
