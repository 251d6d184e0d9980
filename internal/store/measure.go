package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Measures returns how large and how dear sessions are now. models knows the windows of models; a session's own window
// is preferred.
func (s *Store) Measures(
	ctx context.Context, sessions []session.Session, models func(string) (session.ModelInfo, bool),
) (map[session.ID]session.Measure, error) {
	ids := make([]session.ID, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].ID
	}
	sizes, err := s.reportedSizes(ctx, ids)
	if err != nil {
		return nil, err
	}
	rollups, err := s.Rollups(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[session.ID]session.Measure, len(sessions))
	for i := range sessions {
		sess := &sessions[i]
		m := session.Measure{Context: session.ContextSize{Tokens: sess.ContextTokens}}
		if size := sizes[sess.ID]; size > 0 {
			m.Context.Tokens, m.Context.Reported = size, true
		}
		if sess.Window != nil {
			m.Context.Window = *sess.Window
		} else if info, known := models(sess.Model); known {
			m.Context.Window = info.Window
		}
		if r := rollups[sess.ID]; r.Children > 0 {
			m.Rollup = &r
		}
		found[sess.ID] = m
	}
	return found, nil
}

// reportedSizes returns the sizes of contexts at the heads of sessions by the newest report of a provider, and the
// reference tokens of the messages since. It leaves out sessions without one that holds now: of their model, newer than
// their overlay, and on the path without a branch since.
func (s *Store) reportedSizes(ctx context.Context, ids []session.ID) (map[session.ID]int64, error) {
	type sized struct {
		ID     session.ID `db:"id"`
		Tokens int64      `db:"tokens"`
	}
	rows, err := engine.List[sized](ctx, s, reportedSizes, string(session.JSONOf(ids)))
	if err != nil {
		return nil, session.Wrap(err, "reported sizes of contexts")
	}
	found := make(map[session.ID]int64, len(rows))
	for _, r := range rows {
		found[r.ID] = r.Tokens
	}
	return found, nil
}

const reportedSizes = `
	SELECT s.id, c.input_tokens + c.cache_read_tokens + c.cache_write_tokens + c.output_tokens + h.path_tokens - m.path_tokens AS tokens
	FROM json_each(?) wanted CROSS JOIN sessions s ON s.id = wanted.value CROSS JOIN messages h ON h.id = s.head_id
	CROSS JOIN calls c ON c.id = (SELECT id FROM calls r WHERE r.session_id = s.id AND r.session_id <> '' AND r.purpose = 'chat' AND r.status = 'ok'
	    AND r.message_id IS NOT NULL AND r.input_tokens + r.cache_read_tokens + r.cache_write_tokens > 0 ORDER BY r.id DESC LIMIT 1)
	CROSS JOIN messages m ON m.id = c.message_id
	WHERE c.model IN ('', s.model) AND m.session_id = s.id AND h.session_id = s.id AND h.seq >= m.seq
	  AND NOT EXISTS (SELECT 1 FROM messages x WHERE x.session_id = s.id AND x.seq > m.seq AND x.seq <= h.seq AND x.jump = 1)
	  AND NOT EXISTS (SELECT 1 FROM compactions o WHERE o.id = s.compaction_id AND o.activated_at >= c.created_at)`

// Rollups sums up sessions, each with all that it started, directly or through others: its children, not its forks.
// Children in the trash are left out.
func (s *Store) Rollups(ctx context.Context, ids []session.ID) (map[session.ID]session.Rollup, error) {
	type summed struct {
		ID session.ID `db:"id"`
		session.Rollup
	}
	rows, err := engine.List[summed](ctx, s, sumsOfFamilies, string(session.JSONOf(ids)))
	if err != nil {
		return nil, session.Wrap(err, "sum up sessions with their sub-agents")
	}
	found := make(map[session.ID]session.Rollup, len(rows))
	for _, r := range rows {
		found[r.ID] = r.Rollup
	}
	return found, nil
}

// A union and not a union all, so that even a cycle made by hand ends.
const sumsOfFamilies = `
	WITH RECURSIVE family (root, id) AS (
		SELECT value, value FROM json_each(?)
		UNION
		SELECT f.root, s.id FROM family f JOIN sessions s ON s.parent_id = f.id AND s.parent_id <> '' AND s.parent_kind = 'child'
		  AND s.deleted_at IS NULL AND s.purged_at IS NULL)
	SELECT f.root AS id, COUNT(*) - 1 AS children, COALESCE(SUM(s.message_count), 0) AS message_count,
	       COALESCE(SUM(s.total_tokens), 0) AS total_tokens,
	       COALESCE(SUM(s.input_tokens), 0) AS input_tokens, COALESCE(SUM(s.output_tokens), 0) AS output_tokens,
	       COALESCE(SUM(s.cache_read_tokens), 0) AS cache_read_tokens, COALESCE(SUM(s.cache_write_tokens), 0) AS cache_write_tokens,
	       SUM(s.cost_nanousd) AS cost_nanousd, SUM(s.cost_nanousd) / 1e9 AS cost_usd, COALESCE(SUM(s.unpriced_calls), 0) AS unpriced_calls
	FROM family f JOIN sessions s ON s.id = f.id GROUP BY f.root`

// Dear is a session and what it cost.
type Dear struct {
	session.Session
	With session.Rollup // with all that it started
}

// Dearest returns the sessions, no sub-agents, that cost most with all that they started: of those active since a
// time, nil for any.
func (s *Store) Dearest(ctx context.Context, since *session.Time, limit int) ([]Dear, error) {
	from := session.Time{}
	if since != nil {
		from = *since
	}
	in, args := scopeOf(ctx)
	ids, err := engine.List[session.ID](ctx, s, fmt.Sprintf(dearest, in, in),
		slices.Concat([]any{from}, args, []any{4 * limit, from}, args, []any{4 * limit})...)
	if err != nil {
		return nil, session.Wrap(err, "the dearest sessions")
	}
	sums, err := s.Rollups(ctx, ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ids, func(a, b session.ID) int {
		return cmp.Or(cmp.Compare(nanoOf(sums[b].CostNanoUSD), nanoOf(sums[a].CostNanoUSD)), cmp.Compare(a, b))
	})
	ids = slices.Compact(ids)
	var all []Dear
	for _, id := range ids[:min(len(ids), limit)] {
		sess, err := s.Session(ctx, id)
		if session.CodeOf(err) == session.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Dear{sess, sums[id]})
	}
	return all, nil
}

func nanoOf(cost *int64) int64 {
	if cost == nil {
		return 0
	}
	return *cost
}

// Candidates: those that cost most alone, and those whose sub-agents did.
const dearest = `
	SELECT id FROM (SELECT s.id FROM sessions s WHERE s.active_at >= ? AND s.deleted_at IS NULL AND s.purged_at IS NULL
	  AND s.parent_kind <> 'child' AND s.cost_nanousd > 0%s ORDER BY s.cost_nanousd DESC LIMIT +?) alone
	UNION
	SELECT id FROM (SELECT s.parent_id AS id FROM sessions s JOIN sessions p ON p.id = s.parent_id
	  WHERE s.active_at >= ? AND s.deleted_at IS NULL AND s.purged_at IS NULL AND s.parent_id <> '' AND s.parent_kind = 'child'
	  AND p.parent_kind <> 'child' AND p.deleted_at IS NULL AND p.purged_at IS NULL AND s.cost_nanousd > 0%s
	  GROUP BY s.parent_id ORDER BY SUM(s.cost_nanousd) DESC LIMIT +?) helped`
