package store

import (
	"context"

	"sessiond/internal/session"
)

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
