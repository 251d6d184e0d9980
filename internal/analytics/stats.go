package analytics

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"sessiond/internal/session"
)

// Filter narrows statistics. The zero value takes everything.
type Filter struct {
	Since, Until string // days, YYYY-MM-DD, both included
	Source       session.Source
	Project      string
}

// Stats are sums over what a Filter lets through. Tokens are a provider's, from the ledger,
// except those of compactions, which are the reference counter's. Money is in dollars, null
// when calls were made and none has a known price.
type Stats struct {
	Sessions      int64           `json:"sessions"` // created in the time
	Messages      int64           `json:"messages"`
	Prompts       int64           `json:"prompts"` // messages of a person
	Calls         int64           `json:"calls"`
	Tokens        Tokens          `json:"tokens"`
	CostUSD       *float64        `json:"cost_usd"`
	UnpricedCalls int64           `json:"unpriced_calls"`
	Compactions   CompactionStats `json:"compactions"`
	ByDay         []Bucket        `json:"by_day"`    // oldest first
	ByModel       []Bucket        `json:"by_model"`  // dearest first
	BySource      []Bucket        `json:"by_source"` // most messages first
}

// Tokens of calls by kind. Input is without cache, output with reasoning.
type Tokens struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
}

// CompactionStats sum the compactions that were done.
type CompactionStats struct {
	Count       int64    `json:"count"`
	TokensSaved int64    `json:"tokens_saved"` // from contexts, at the moment of each
	CostUSD     *float64 `json:"cost_usd"`     // of their summaries, also of the failed ones
}

// Bucket sums one day, model or source; the field it is not about is empty and left out.
// Sessions and messages belong to no model.
type Bucket struct {
	Day           string         `json:"day,omitempty"`
	Model         string         `json:"model,omitempty"`
	Source        session.Source `json:"source,omitempty"`
	Sessions      int64          `json:"sessions"`
	Messages      int64          `json:"messages"`
	Prompts       int64          `json:"prompts"`
	Calls         int64          `json:"calls"`
	Tokens        Tokens         `json:"tokens"`
	CostUSD       *float64       `json:"cost_usd"`
	UnpricedCalls int64          `json:"unpriced_calls"`
}

// usageRow is one row of daily_usage, or what it would be for a part of the sessions.
type usageRow struct {
	day                        string
	source                     session.Source
	model                      string
	sessions, messages         int64
	prompts, calls             int64
	tokens                     Tokens
	costNanoUSD, unpricedCalls int64
}

// The roll-up knows days, sources and models.
const rolledUp = `
	SELECT day, source, model, sessions, messages, prompts, calls, input_tokens, cache_read_tokens,
	       cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls
	FROM daily_usage
	WHERE day BETWEEN :since AND :until AND (:source = '' OR source = :source)`

// For anything else it is made anew, over the sessions in question.
const countedAnew = `
	WITH chosen AS MATERIALIZED (
	    SELECT id, day, source FROM sessions
	    WHERE project = :project AND (:source = '' OR source = :source)
	)
	SELECT day, source, '', COUNT(*), 0, 0, 0, 0, 0, 0, 0, 0, 0
	FROM chosen WHERE day BETWEEN :since AND :until GROUP BY day, source
	UNION ALL
	SELECT m.day, s.source, '', 0, COUNT(*), SUM(m.origin = 'person'), 0, 0, 0, 0, 0, 0, 0
	FROM chosen s JOIN messages m ON m.session_id = s.id
	WHERE m.day BETWEEN :since AND :until GROUP BY m.day, s.source
	UNION ALL
	SELECT c.day, c.source, c.model, 0, 0, 0, COUNT(*), SUM(c.input_tokens), SUM(c.cache_read_tokens),
	       SUM(c.cache_write_tokens), SUM(c.output_tokens), COALESCE(SUM(c.cost_nanousd), 0), SUM(c.cost_nanousd IS NULL)
	FROM chosen s JOIN calls c ON c.session_id = s.id AND c.session_id <> ''
	WHERE c.day BETWEEN :since AND :until GROUP BY c.day, c.source, c.model`

const compactionSums = `
	SELECT COUNT(*), COALESCE(SUM(c.tokens_before - c.tokens_after), 0)
	FROM compactions c JOIN sessions s ON s.id = c.session_id
	WHERE c.status = 'done' AND c.created_at >= :from AND c.created_at < :to
	  AND (:source = '' OR s.source = :source) AND (:project = '' OR s.project = :project)`

const compactionCost = `
	SELECT COUNT(*), COUNT(c.cost_nanousd), COALESCE(SUM(c.cost_nanousd), 0)
	FROM calls c LEFT JOIN sessions s ON s.id = c.session_id
	WHERE c.compaction_id IS NOT NULL AND c.day BETWEEN :since AND :until
	  AND (:source = '' OR c.source = :source) AND (:project = '' OR s.project = :project)`

// Stats sums what the filter lets through, as of one moment. Codes: Invalid (a day that is
// none), Busy.
func (r *Reports) Stats(ctx context.Context, f Filter) (Stats, error) {
	args, err := r.filterArgs(f)
	if err != nil {
		return Stats{}, err
	}
	var stats Stats
	err = r.withConn(ctx, defaultTime, func(ctx context.Context, conn *sql.Conn) error {
		return inSnapshot(ctx, conn, func() error {
			stats, err = readStats(ctx, conn, f, args)
			return err
		})
	})
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	return stats, nil
}

// filterArgs gives the statements' parameters. A day begins and ends in the database's zone.
func (r *Reports) filterArgs(f Filter) ([]any, error) {
	since, until := orElse(f.Since, "0001-01-01"), orElse(f.Until, "9998-12-31")
	from, err := time.ParseInLocation(time.DateOnly, since, r.zone)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "since %q is no day: it looks like 2026-02-11", clip(since)).At("since", "not a day")
	}
	to, err := time.ParseInLocation(time.DateOnly, until, r.zone)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "until %q is no day: it looks like 2026-02-11", clip(until)).At("until", "not a day")
	}
	return []any{
		sql.Named("since", since), sql.Named("until", until),
		sql.Named("from", session.At(from)), sql.Named("to", session.At(to.AddDate(0, 0, 1))),
		sql.Named("source", string(f.Source)), sql.Named("project", f.Project),
	}, nil
}

// inSnapshot has all of f's statements see the database as of one moment. The driver's own
// transactions may be immediate ones, which a read-only connection cannot begin.
func inSnapshot(ctx context.Context, conn *sql.Conn, f func() error) (err error) {
	if _, err := conn.ExecContext(ctx, `BEGIN DEFERRED`); err != nil {
		return err
	}
	defer func() {
		if _, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`); err == nil {
			err = end
		}
	}()
	return f()
}

func readStats(ctx context.Context, conn *sql.Conn, f Filter, args []any) (Stats, error) {
	source := rolledUp
	if f.Project != "" {
		source = countedAnew
	}
	usage, err := readUsage(ctx, conn, source, args)
	if err != nil {
		return Stats{}, err
	}
	stats := sumUp(usage)
	c := &stats.Compactions
	if err := conn.QueryRowContext(ctx, compactionSums, args...).Scan(&c.Count, &c.TokensSaved); err != nil {
		return Stats{}, err
	}
	var calls, priced, nanoUSD int64
	if err := conn.QueryRowContext(ctx, compactionCost, args...).Scan(&calls, &priced, &nanoUSD); err != nil {
		return Stats{}, err
	}
	c.CostUSD = dollars(nanoUSD, calls, calls-priced)
	return stats, nil
}

func readUsage(ctx context.Context, conn *sql.Conn, statement string, args []any) ([]usageRow, error) {
	rows, err := conn.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var usage []usageRow
	for rows.Next() {
		var u usageRow
		if err := rows.Scan(&u.day, &u.source, &u.model, &u.sessions, &u.messages, &u.prompts, &u.calls, &u.tokens.Input,
			&u.tokens.CacheRead, &u.tokens.CacheWrite, &u.tokens.Output, &u.costNanoUSD, &u.unpricedCalls); err != nil {
			return nil, err
		}
		usage = append(usage, u)
	}
	return usage, rows.Err()
}

func sumUp(usage []usageRow) Stats {
	all := group(usage, func(*usageRow) string { return "" }, func(*Bucket, *usageRow) {})
	stats := Stats{
		ByDay:    group(usage, func(u *usageRow) string { return u.day }, func(b *Bucket, u *usageRow) { b.Day = u.day }),
		ByModel:  group(usage, func(u *usageRow) string { return u.model }, func(b *Bucket, u *usageRow) { b.Model = u.model }),
		BySource: group(usage, func(u *usageRow) string { return string(u.source) }, func(b *Bucket, u *usageRow) { b.Source = u.source }),
	}
	if len(all) == 1 {
		b := all[0]
		stats.Sessions, stats.Messages, stats.Prompts, stats.Calls = b.Sessions, b.Messages, b.Prompts, b.Calls
		stats.Tokens, stats.CostUSD, stats.UnpricedCalls = b.Tokens, b.CostUSD, b.UnpricedCalls
	} else {
		stats.CostUSD = dollars(0, 0, 0)
	}
	stats.ByModel = slices.DeleteFunc(stats.ByModel, func(b Bucket) bool { return b.Calls == 0 })
	slices.SortStableFunc(stats.ByModel, func(a, b Bucket) int { return cmp.Compare(cost(b), cost(a)) })
	slices.SortStableFunc(stats.BySource, func(a, b Bucket) int { return cmp.Compare(b.Messages, a.Messages) })
	return stats
}

// group sums the rows that share a key; the groups come in the order of their keys.
func group(usage []usageRow, key func(*usageRow) string, name func(*Bucket, *usageRow)) []Bucket {
	sums := map[string]*usageRow{}
	var keys []string
	for i := range usage {
		u := &usage[i]
		sum := sums[key(u)]
		if sum == nil {
			sum = &usageRow{day: u.day, source: u.source, model: u.model}
			sums[key(u)] = sum
			keys = append(keys, key(u))
		}
		sum.add(u)
	}
	slices.Sort(keys)
	buckets := make([]Bucket, len(keys))
	for i, k := range keys {
		u := sums[k]
		buckets[i] = Bucket{
			Sessions: u.sessions, Messages: u.messages, Prompts: u.prompts, Calls: u.calls, Tokens: u.tokens,
			CostUSD: dollars(u.costNanoUSD, u.calls, u.unpricedCalls), UnpricedCalls: u.unpricedCalls,
		}
		name(&buckets[i], u)
	}
	return buckets
}

func (u *usageRow) add(other *usageRow) {
	u.sessions += other.sessions
	u.messages += other.messages
	u.prompts += other.prompts
	u.calls += other.calls
	u.tokens.Input += other.tokens.Input
	u.tokens.CacheRead += other.tokens.CacheRead
	u.tokens.CacheWrite += other.tokens.CacheWrite
	u.tokens.Output += other.tokens.Output
	u.costNanoUSD += other.costNanoUSD
	u.unpricedCalls += other.unpricedCalls
}

// dollars gives a sum of money, nil when there were calls and none had a price.
func dollars(nanoUSD, calls, unpriced int64) *float64 {
	if calls > 0 && unpriced == calls {
		return nil
	}
	usd := float64(nanoUSD) / 1e9
	return &usd
}

func cost(b Bucket) float64 {
	if b.CostUSD == nil {
		return -1
	}
	return *b.CostUSD
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
