package store

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// rollup gathers what a batch adds to daily_usage, so that it costs one statement for each
// (day, source, model) and not one for each append.
type rollup map[usageKey]*usageDelta

type usageKey struct {
	day    string
	source session.Source
	model  string
}

type usageDelta struct {
	sessions, messages, prompts, calls   int64
	input, cacheRead, cacheWrite, output int64
	costNanoUSD, unpriced                int64
}

func (r rollup) at(day string, source session.Source, model string) *usageDelta {
	k := usageKey{day, source, model}
	if r[k] == nil {
		r[k] = &usageDelta{}
	}
	return r[k]
}

func (r rollup) add(other rollup) {
	for k, d := range other {
		r.at(k.day, k.source, k.model).add(d)
	}
}

func (d *usageDelta) add(other *usageDelta) {
	d.sessions += other.sessions
	d.messages += other.messages
	d.prompts += other.prompts
	d.calls += other.calls
	d.input += other.input
	d.cacheRead += other.cacheRead
	d.cacheWrite += other.cacheWrite
	d.output += other.output
	d.costNanoUSD += other.costNanoUSD
	d.unpriced += other.unpriced
}

func (d *usageDelta) addCall(c *session.Call)    { d.countCall(c, 1) }
func (d *usageDelta) removeCall(c *session.Call) { d.countCall(c, -1) }

func (d *usageDelta) countCall(c *session.Call, sign int64) {
	d.calls += sign
	d.input += sign * c.InputTokens
	d.cacheRead += sign * c.CacheReadTokens
	d.cacheWrite += sign * c.CacheWriteTokens
	d.output += sign * c.OutputTokens
	if c.CostNanoUSD == nil {
		d.unpriced += sign
	} else {
		d.costNanoUSD += sign * *c.CostNanoUSD
	}
}

func (t *tx) saveRollup(r rollup) error {
	for k, d := range r {
		if err := t.exec(`INSERT INTO daily_usage (day, source, model, sessions, messages, prompts, calls,
			input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (day, source, model) DO UPDATE SET sessions = sessions + excluded.sessions, messages = messages + excluded.messages,
			prompts = prompts + excluded.prompts, calls = calls + excluded.calls, input_tokens = input_tokens + excluded.input_tokens,
			cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens, cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
			output_tokens = output_tokens + excluded.output_tokens, cost_nanousd = cost_nanousd + excluded.cost_nanousd,
			unpriced_calls = unpriced_calls + excluded.unpriced_calls`,
			k.day, k.source, k.model, d.sessions, d.messages, d.prompts, d.calls,
			d.input, d.cacheRead, d.cacheWrite, d.output, d.costNanoUSD, d.unpriced); err != nil {
			return fmt.Errorf("roll up %s: %w", k.day, err)
		}
	}
	return nil
}

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
	err := s.reports.SelectContext(ctx, &totals, `SELECT status, strategy, trigger, COUNT(*) AS n,
		COALESCE(SUM(CASE WHEN status = 'done' THEN MAX(tokens_before - tokens_after, 0) END), 0) AS saved, SUM(duration_ms) AS duration
		FROM compactions GROUP BY status, strategy, trigger`)
	return totals, wrap(err, "count compactions")
}

// CallTotal sums up the ledger by what calls were made for.
type CallTotal struct {
	Purpose     session.Purpose `db:"purpose"`
	Status      string          `db:"status"`
	Count       int64           `db:"n"`
	CostNanoUSD int64           `db:"cost"` // of the priced ones
}

// CallTotals counts model calls by purpose and status, as CompactionTotals does compactions.
func (s *Store) CallTotals(ctx context.Context) ([]CallTotal, error) {
	var totals []CallTotal
	err := s.reports.SelectContext(ctx, &totals, `SELECT purpose, status, COUNT(*) AS n, COALESCE(SUM(cost_nanousd), 0) AS cost FROM calls GROUP BY purpose, status`)
	return totals, wrap(err, "count calls")
}

// ProjectFilter selects the sessions of ProjectTotals.
type ProjectFilter struct {
	Since  string // day on which they were active, or later
	Source session.Source
	Limit  int
}

// ProjectTotal sums up the sessions of a project.
type ProjectTotal struct {
	Project     string `db:"project"`
	Sessions    int64  `db:"sessions"`
	Input       int64  `db:"input"` // cached or not
	Output      int64  `db:"output"`
	CostNanoUSD *int64 `db:"cost"`
	Unpriced    int64  `db:"unpriced"`
}

// ProjectTotals sums up sessions by their project, sub-agents included, the highest cost first.
func (s *Store) ProjectTotals(ctx context.Context, f ProjectFilter) ([]ProjectTotal, error) {
	var totals []ProjectTotal
	err := s.reports.SelectContext(ctx, &totals, `
		SELECT project, COUNT(*) AS sessions, SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS input, SUM(output_tokens) AS output,
		       SUM(cost_nanousd) AS cost, SUM(unpriced_calls) AS unpriced
		FROM sessions WHERE purged_at IS NULL AND draft = 0 AND active_at >= ? AND (? = '' OR source = ?)
		GROUP BY project ORDER BY cost DESC, output DESC LIMIT +?`, f.Since, f.Source, f.Source, f.Limit)
	return totals, wrap(err, "sum up projects")
}

// Sources lists the programs of which anything is stored, those with the most messages first.
func (s *Store) Sources(ctx context.Context) (found []session.Source, err error) {
	err = s.reports.SelectContext(ctx, &found, `SELECT source FROM daily_usage GROUP BY source ORDER BY SUM(messages) DESC, source`)
	return found, wrap(err, "list the programs of sessions")
}
