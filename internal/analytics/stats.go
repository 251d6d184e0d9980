package analytics

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"sessiond/internal/session"
)

// Filter selects data for statistics. The zero value selects everything.
type Filter struct {
	Since, Until string // days, YYYY-MM-DD, both included
	Source       session.Source
	Project      string
}

// Stats are the sums over the data of a Filter. Tokens are the providers' numbers from the ledger,
// except those of compactions, which are the reference counter's. Money is in dollars, null when there
// are calls and none has a known price.
type Stats struct {
	Sessions      int64           `json:"sessions"` // created in the time range
	Messages      int64           `json:"messages"`
	Prompts       int64           `json:"prompts"` // messages of a person
	Calls         int64           `json:"calls"`
	Tokens        Tokens          `json:"tokens" doc:"Tokens as providers reported them"`
	CostUSD       *float64        `json:"cost_usd"`
	UnpricedCalls int64           `json:"unpriced_calls"`
	Compactions   CompactionStats `json:"compactions" doc:"Compactions and what they saved"`
	ByDay         []Bucket        `json:"by_day" doc:"Sums by day, oldest first"`
	ByModel       []Bucket        `json:"by_model" doc:"Sums by model, highest cost first"`
	BySource      []Bucket        `json:"by_source" doc:"Sums by program, most messages first"`
}

// Tokens are the tokens of calls by kind. Input excludes cache, output includes reasoning.
type Tokens struct {
	Input      int64 `json:"input" doc:"Input tokens without cached tokens"`
	CacheRead  int64 `json:"cache_read" doc:"Input tokens read from the provider's cache"`
	CacheWrite int64 `json:"cache_write" doc:"Input tokens written to the provider's cache"`
	Output     int64 `json:"output" doc:"Output tokens including reasoning"`
}

// CompactionStats are the sums over finished compactions.
type CompactionStats struct {
	Count       int64    `json:"count" doc:"Compactions that took effect"`
	TokensSaved int64    `json:"tokens_saved" doc:"Reference tokens removed from contexts"`
	CostUSD     *float64 `json:"cost_usd" doc:"US dollars of their summaries, also of failed ones; null: no price is known"`
}

// Bucket is the sums of one day, model or source; the other two fields are empty. Sessions and messages
// belong to no model.
type Bucket struct {
	Day           string         `json:"day,omitempty" doc:"Local day, YYYY-MM-DD; only in by_day"`
	Model         string         `json:"model,omitempty" doc:"The model's id; only in by_model"`
	Source        session.Source `json:"source,omitempty" doc:"The program; only in by_source"`
	Sessions      int64          `json:"sessions"`
	Messages      int64          `json:"messages"`
	Prompts       int64          `json:"prompts"`
	Calls         int64          `json:"calls"`
	Tokens        Tokens         `json:"tokens" doc:"Tokens as providers reported them"`
	CostUSD       *float64       `json:"cost_usd"`
	UnpricedCalls int64          `json:"unpriced_calls"`
}

// usageRow is one row of daily_usage, or the same for a part of the sessions.
type usageRow struct {
	day                        string
	source                     session.Source
	model                      string
	sessions, messages         int64
	prompts, calls             int64
	tokens                     Tokens
	costNanoUSD, unpricedCalls int64
}

// The roll-up has days, sources and models.
const usageFromRollUp = `
	SELECT day, source, model, sessions, messages, prompts, calls, input_tokens, cache_read_tokens,
	       cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls
	FROM daily_usage
	WHERE day BETWEEN :since AND :until AND (:source = '' OR source = :source)`

// For a project the same rows are counted over its sessions.
const usageOfProject = `
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

// Stats returns the sums over the filter's data, from one snapshot. Codes: Invalid (a day), Busy.
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

// filterArgs returns the statements' parameters. A day begins and ends in the database's zone.
func (r *Reports) filterArgs(f Filter) ([]any, error) {
	since, until := cmp.Or(f.Since, "0001-01-01"), cmp.Or(f.Until, "9998-12-31")
	from, err := r.parseDay("since", since)
	if err != nil {
		return nil, err
	}
	to, err := r.parseDay("until", until)
	if err != nil {
		return nil, err
	}
	return []any{
		sql.Named("since", since), sql.Named("until", until),
		sql.Named("from", session.At(from)), sql.Named("to", session.At(to.AddDate(0, 0, 1))),
		sql.Named("source", string(f.Source)), sql.Named("project", f.Project),
	}, nil
}

// parseDay returns the start of a day. Codes: Invalid.
func (r *Reports) parseDay(name, day string) (time.Time, error) {
	start, err := time.ParseInLocation(time.DateOnly, day, r.zone)
	if err != nil {
		return start, session.Errorf(session.Invalid, "%s %q is not a day; use the form 2026-02-11", name, clip(day)).At(name, "not a day")
	}
	return start, nil
}

// inSnapshot runs f's statements on one snapshot of the database. The driver's own transactions may be
// immediate ones, which a read-only connection cannot begin.
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
	source := usageFromRollUp
	if f.Project != "" {
		source = usageOfProject
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
	var all usageRow
	for i := range usage {
		all.add(&usage[i])
	}
	stats := Stats{
		Sessions: all.sessions, Messages: all.messages, Prompts: all.prompts, Calls: all.calls, Tokens: all.tokens,
		CostUSD: dollars(all.costNanoUSD, all.calls, all.unpricedCalls), UnpricedCalls: all.unpricedCalls,
		ByDay:    group(usage, func(u *usageRow) string { return u.day }, func(b *Bucket, u *usageRow) { b.Day = u.day }),
		ByModel:  group(usage, func(u *usageRow) string { return u.model }, func(b *Bucket, u *usageRow) { b.Model = u.model }),
		BySource: group(usage, func(u *usageRow) string { return string(u.source) }, func(b *Bucket, u *usageRow) { b.Source = u.source }),
	}
	stats.ByModel = slices.DeleteFunc(stats.ByModel, func(b Bucket) bool { return b.Calls == 0 })
	slices.SortStableFunc(stats.ByModel, func(a, b Bucket) int { return cmp.Compare(costOf(b), costOf(a)) })
	slices.SortStableFunc(stats.BySource, func(a, b Bucket) int { return cmp.Compare(b.Messages, a.Messages) })
	return stats
}

// group sums the rows with the same key, in the order of the keys.
func group(usage []usageRow, key func(*usageRow) string, name func(*Bucket, *usageRow)) []Bucket {
	sums := map[string]*usageRow{}
	for i := range usage {
		u := &usage[i]
		if sums[key(u)] == nil {
			sums[key(u)] = &usageRow{day: u.day, source: u.source, model: u.model}
		}
		sums[key(u)].add(u)
	}
	buckets := make([]Bucket, len(sums))
	for i, k := range slices.Sorted(maps.Keys(sums)) {
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

// dollars returns a sum of money, nil when there are calls and none has a price.
func dollars(nanoUSD, calls, unpriced int64) *float64 {
	if calls > 0 && unpriced == calls {
		return nil
	}
	usd := float64(nanoUSD) / 1e9
	return &usd
}

func costOf(b Bucket) float64 {
	if b.CostUSD == nil {
		return -1
	}
	return *b.CostUSD
}
