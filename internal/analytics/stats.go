package analytics

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
)

// Filter selects data for statistics. The zero value selects everything.
type Filter struct {
	Since, Until string // days, YYYY-MM-DD, both included
	Source       session.Source
	Project      string
	Tag          string // of sessions or one of their messages; their sub-agents count, too
}

// Dimension is a column by which usage is grouped.
type Dimension string

// Dimensions of usage. A sub-agent belongs to the project of the session that started it.
const (
	ByDay     Dimension = "day"
	ByWeek    Dimension = "week"  // of ISO 8601; of Usage alone
	ByMonth   Dimension = "month" // of Usage alone
	ByProject Dimension = "project"
	BySource  Dimension = "source"
	ByModel   Dimension = "model"
	ByPurpose Dimension = "purpose"
)

// Dimensions returns those of Stats.
func Dimensions() []Dimension { return []Dimension{ByDay, ByProject, BySource, ByModel, ByPurpose} }

// Groups returns all by which Usage groups.
func Groups() []Dimension { return append([]Dimension{ByDay, ByWeek, ByMonth}, Dimensions()[1:]...) }

// periodOf returns the week (2026-W07) or the month (2026-02) of a day.
func periodOf(d Dimension, day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	if d == ByMonth {
		return at.Format("2006-01")
	}
	year, week := at.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, week)
}

// Stats are the sums over the data of a Filter. Tokens are the providers' numbers from the ledger,
// except those of compactions, which are the reference counter's. Money is in dollars, null when there
// are calls and none has a known price.
type Stats struct {
	Sums
	Compactions CompactionStats `json:"compactions" doc:"Compactions and what they saved"`
	ByDay       []Bucket        `json:"by_day" doc:"Sums by day, oldest first"`
	ByProject   []Bucket        `json:"by_project" doc:"Sums by project, highest cost first"`
	BySource    []Bucket        `json:"by_source" doc:"Sums by program, highest cost first"`
	ByModel     []Bucket        `json:"by_model" doc:"Sums by model, highest cost first"`
	ByPurpose   []Bucket        `json:"by_purpose" doc:"Sums by purpose of the calls, highest cost first"`
}

// Sums are what sessions count for.
type Sums struct {
	Sessions      int64    `json:"sessions" doc:"Sessions created in the time range, sub-agents included"`
	Subagents     int64    `json:"subagents" doc:"The sub-agents among the sessions"`
	Messages      int64    `json:"messages"`
	Prompts       int64    `json:"prompts" doc:"Messages of a person"`
	Calls         int64    `json:"calls" doc:"Model calls"`
	Tokens        Tokens   `json:"tokens" doc:"Tokens as providers reported them"`
	CostUSD       *float64 `json:"cost_usd" doc:"US dollars of the calls with a price; null: no call has one"`
	UnpricedCalls int64    `json:"unpriced_calls" doc:"Calls without a known price"`

	nanoUSD int64
}

// Tokens are the tokens of calls by kind. Input excludes cache, output includes reasoning.
type Tokens struct {
	Input      int64 `json:"input" doc:"Input tokens without cached tokens"`
	CacheRead  int64 `json:"cache_read" doc:"Input tokens read from the provider's cache"`
	CacheWrite int64 `json:"cache_write" doc:"Input tokens written to the provider's cache"`
	Output     int64 `json:"output" doc:"Output tokens including reasoning"`
}

// AllInput is all input, cached or not.
func (t Tokens) AllInput() int64 { return t.Input + t.CacheRead + t.CacheWrite }

// CompactionStats are the sums over finished compactions.
type CompactionStats struct {
	Count       int64    `json:"count" doc:"Compactions that took effect and were not undone"`
	TokensSaved int64    `json:"tokens_saved" doc:"Reference tokens removed from contexts"`
	CostUSD     *float64 `json:"cost_usd" doc:"US dollars of their summaries, also of failed ones; null: no price is known"`
}

// Bucket is the sums of one group. Only the fields by which it is grouped are set. Sessions and messages
// belong to no model and no purpose.
type Bucket struct {
	Day     string          `json:"day,omitempty" doc:"Local day, YYYY-MM-DD; when grouped by day"`
	Week    string          `json:"week,omitempty" doc:"ISO week, 2026-W07; when grouped by week"`
	Month   string          `json:"month,omitempty" doc:"Month, 2026-02; when grouped by month"`
	Project string          `json:"project,omitempty" doc:"The project's folder; when grouped by project. Left out: none, or the session was purged"`
	Source  session.Source  `json:"source,omitempty" doc:"The program; when grouped by source"`
	Model   string          `json:"model,omitempty" doc:"The model's id; when grouped by model"`
	Purpose session.Purpose `json:"purpose,omitempty" doc:"What calls were made for; when grouped by purpose"`
	Sums
}

// Of returns the bucket's value in a dimension.
func (b *Bucket) Of(d Dimension) string {
	return map[Dimension]string{
		ByDay: b.Day, ByWeek: b.Week, ByMonth: b.Month, ByProject: b.Project,
		BySource: string(b.Source), ByModel: b.Model, ByPurpose: string(b.Purpose),
	}[d]
}

const compactionSums = `
	SELECT COUNT(*), COALESCE(SUM(c.tokens_before - c.tokens_after), 0)
	FROM compactions c JOIN sessions s ON s.id = c.session_id
	WHERE c.status = 'done' AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = c.session_id AND u.compaction_id = c.id)
	  AND c.created_at >= :from AND c.created_at < :to
	  AND (:source = '' OR s.source = :source) AND (:project = '' OR s.project = :project)
	  AND (:tag = '' OR s.id IN (SELECT session_id FROM marks WHERE kind = 'tag' AND text = :tag))`

const compactionCost = `
	SELECT COUNT(*), COUNT(c.cost_nanousd), COALESCE(SUM(c.cost_nanousd), 0)
	FROM calls c INDEXED BY calls_compaction LEFT JOIN sessions s ON s.id = c.session_id
	WHERE c.compaction_id IS NOT NULL AND c.day BETWEEN :since AND :until
	  AND (:source = '' OR c.source = :source) AND (:project = '' OR s.project = :project)
	  AND (:tag = '' OR c.session_id IN (SELECT session_id FROM marks WHERE kind = 'tag' AND text = :tag))`

// Stats returns the sums over the filter's data, from one snapshot: over all, and by each of some
// dimensions; none: by all. Codes: Invalid (a day), Busy.
func (r *Reports) Stats(ctx context.Context, f Filter, by ...Dimension) (Stats, error) {
	if len(by) == 0 {
		by = Dimensions()
	}
	stats := Stats{
		ByDay: []Bucket{}, ByProject: []Bucket{}, BySource: []Bucket{}, ByModel: []Bucket{},
		ByPurpose: []Bucket{},
	}
	lists := map[Dimension]*[]Bucket{
		ByDay: &stats.ByDay, ByProject: &stats.ByProject, BySource: &stats.BySource,
		ByModel: &stats.ByModel, ByPurpose: &stats.ByPurpose,
	}
	err := r.snapshot(ctx, f, func(ctx context.Context, conn *sql.Conn, args []any) error {
		for _, d := range by {
			if lists[d] == nil {
				return session.Errorf(session.Invalid, "usage has no dimension %q", d)
			}
			buckets, all, err := readUsage(ctx, conn, args, f.Tag != "", d)
			if err != nil {
				return err
			}
			*lists[d], stats.Sums = buckets, all
		}
		return readCompactions(ctx, conn, args, &stats.Compactions)
	})
	return stats, err
}

// Usage returns the sums over the filter's data for each combination of some dimensions, in their order:
// days oldest first, other values by their cost. At least one dimension is needed. Codes: Invalid (a day, a dimension),
// Busy.
func (r *Reports) Usage(ctx context.Context, f Filter, by ...Dimension) (buckets []Bucket, err error) {
	for _, d := range by {
		if !slices.Contains(Groups(), d) {
			return nil, session.Errorf(session.Invalid, "usage has no dimension %q", d)
		}
	}
	err = r.snapshot(ctx, f, func(ctx context.Context, conn *sql.Conn, args []any) error {
		buckets, _, err = readUsage(ctx, conn, args, f.Tag != "", by...)
		return err
	})
	return buckets, err
}

// snapshot runs f on one snapshot of the database, with the arguments of the filter.
func (r *Reports) snapshot(ctx context.Context, filter Filter, f func(context.Context, *sql.Conn, []any) error) error {
	args, err := r.filterArgs(filter)
	if err != nil {
		return err
	}
	err = r.withConn(ctx, r.db, defaultTime, func(ctx context.Context, conn *sql.Conn) error {
		return inSnapshot(ctx, conn, func() error { return f(ctx, conn, args) })
	})
	if err != nil {
		return fmt.Errorf("stats: %w", err)
	}
	return nil
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
		sql.Named("source", string(f.Source)), sql.Named("project", f.Project), sql.Named("tag", f.Tag),
	}, nil
}

// parseDay returns the start of a day. Codes: Invalid.
func (r *Reports) parseDay(name, day string) (time.Time, error) {
	start, err := time.ParseInLocation(time.DateOnly, day, r.zone)
	if err != nil {
		return start, session.Errorf(session.Invalid, "%s %q is not a day; use the form 2026-02-11", name, clip(day)).
			At(name, "not a day")
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

func readCompactions(ctx context.Context, conn *sql.Conn, args []any, c *CompactionStats) error {
	if err := conn.QueryRowContext(ctx, compactionSums, args...).Scan(&c.Count, &c.TokensSaved); err != nil {
		return err
	}
	var calls, priced, nanoUSD int64
	if err := conn.QueryRowContext(ctx, compactionCost, args...).Scan(&calls, &priced, &nanoUSD); err != nil {
		return err
	}
	c.CostUSD = dollars(nanoUSD, calls, calls-priced)
	return nil
}

// usageQuery groups the roll-up, which has a row for each day, project, source, model and purpose.
func usageQuery(by []Dimension, tagged bool) string {
	var columns, groups []string
	ofDays := slices.Contains(by, ByDay) || slices.Contains(by, ByWeek) || slices.Contains(by, ByMonth)
	for _, d := range Dimensions() {
		if slices.Contains(by, d) || d == ByDay && ofDays {
			columns = append(columns, string(d))
		} else {
			columns = append(columns, "''")
		}
	}
	for _, d := range by {
		if d == ByWeek || d == ByMonth {
			d = ByDay
		}
		groups = append(groups, string(d))
	}
	with, from := "", "daily_usage"
	if tagged {
		with, from = usageOfTag, "usage_of_tag"
	}
	return with + `SELECT ` + strings.Join(columns, ", ") + `, SUM(sessions), SUM(subagents), SUM(messages), SUM(prompts), SUM(calls), SUM(input_tokens),
	       SUM(cache_read_tokens), SUM(cache_write_tokens), SUM(output_tokens), SUM(cost_nanousd), SUM(unpriced_calls)
	FROM ` + from + `
	WHERE day BETWEEN :since AND :until AND (:source = '' OR source = :source) AND (:project = '' OR project = :project)
	GROUP BY ` + strings.Join(groups, ", ")
}

// usageOfTag sums up sessions with a tag and their sub-agents as the roll-up does all.
const usageOfTag = `WITH RECURSIVE tagged (id, project) AS (
		SELECT s.id, s.project FROM sessions s WHERE s.deleted_at IS NULL AND s.purged_at IS NULL
		  AND s.id IN (SELECT session_id FROM marks WHERE kind = 'tag' AND text = :tag)
		UNION
		SELECT s.id, t.project FROM tagged t JOIN sessions s ON s.parent_id = t.id AND s.parent_id <> '' AND s.parent_kind = 'child'
		  AND s.deleted_at IS NULL AND s.purged_at IS NULL),
	counted AS (SELECT id, MIN(project) AS project FROM tagged GROUP BY id),
	usage_of_tag AS (
		SELECT c.day, t.project, c.source, c.model, c.purpose, 0 AS sessions, 0 AS subagents, 0 AS messages, 0 AS prompts, 1 AS calls,
		       c.input_tokens, c.cache_read_tokens, c.cache_write_tokens, c.output_tokens, COALESCE(c.cost_nanousd, 0) AS cost_nanousd,
		       CASE WHEN c.cost_nanousd IS NULL THEN 1 ELSE 0 END AS unpriced_calls
		FROM counted t JOIN calls c ON c.session_id = t.id AND c.session_id <> ''
		UNION ALL
		SELECT s.day, t.project, s.source, '', '', 1, CASE WHEN s.kind = 'subagent' THEN 1 ELSE 0 END, 0, 0, 0, 0, 0, 0, 0, 0, 0
		FROM counted t JOIN sessions s ON s.id = t.id WHERE s.draft = 0
		UNION ALL
		SELECT m.day, t.project, s.source, '', '', 0, 0, 1, CASE WHEN m.origin = 'person' THEN 1 ELSE 0 END, 0, 0, 0, 0, 0, 0, 0
		FROM counted t JOIN sessions s ON s.id = t.id JOIN messages m ON m.session_id = s.id)
	`

// readUsage returns the groups, and the sums over all. Groups without calls have no model. tagged says that the
// arguments name a tag.
func readUsage(ctx context.Context, conn *sql.Conn, args []any, tagged bool,
	by ...Dimension,
) (buckets []Bucket, all Sums, err error) {
	rows, err := conn.QueryContext(ctx, usageQuery(by, tagged), args...)
	if err != nil {
		return nil, all, err
	}
	defer rows.Close()
	ofCalls := slices.Contains(by, ByModel) || slices.Contains(by, ByPurpose)
	buckets = []Bucket{}
	places := map[Bucket]int{} // of a group, by what it is grouped by
	for rows.Next() {
		var b Bucket
		var day string
		if err := rows.Scan(&day, &b.Project, &b.Source, &b.Model, &b.Purpose, &b.Sessions, &b.Subagents, &b.Messages,
			&b.Prompts, &b.Calls,
			&b.Tokens.Input, &b.Tokens.CacheRead, &b.Tokens.CacheWrite, &b.Tokens.Output, &b.nanoUSD,
			&b.UnpricedCalls); err != nil {
			return nil, all, err
		}
		all.add(&b.Sums)
		if b.Calls == 0 && ofCalls {
			continue
		}
		if ofCalls { // nothing else has a model or a purpose
			b.Sessions, b.Subagents, b.Messages, b.Prompts = 0, 0, 0, 0
		}
		for d, to := range map[Dimension]*string{ByWeek: &b.Week, ByMonth: &b.Month} {
			if slices.Contains(by, d) {
				*to = periodOf(d, day)
			}
		}
		if slices.Contains(by, ByDay) {
			b.Day = day
		}
		key := b
		key.Sums = Sums{}
		at, known := places[key]
		if !known {
			at, places[key] = len(buckets), len(buckets)
			buckets = append(buckets, key)
		}
		buckets[at].add(&b.Sums)
	}
	for i := range buckets {
		b := &buckets[i]
		b.CostUSD = dollars(b.nanoUSD, b.Calls, b.UnpricedCalls)
	}
	all.CostUSD = dollars(all.nanoUSD, all.Calls, all.UnpricedCalls)
	order(buckets, by)
	return buckets, all, rows.Err()
}

// order sorts groups by their dimensions: days, weeks and months oldest first, other values by their cost over all
// groups, then by calls and messages.
func order(buckets []Bucket, by []Dimension) {
	sums := map[Dimension]map[string]*Sums{}
	for _, d := range by {
		sums[d] = map[string]*Sums{}
		for i := range buckets {
			value := buckets[i].Of(d)
			if sums[d][value] == nil {
				sums[d][value] = &Sums{}
			}
			sums[d][value].add(&buckets[i].Sums)
		}
	}
	slices.SortFunc(buckets, func(a, b Bucket) int {
		for _, d := range by {
			valueA, valueB := a.Of(d), b.Of(d)
			if valueA == valueB {
				continue
			}
			if d == ByDay || d == ByWeek || d == ByMonth {
				return strings.Compare(valueA, valueB)
			}
			x, y := sums[d][valueA], sums[d][valueB]
			return cmp.Or(cmp.Compare(y.nanoUSD, x.nanoUSD), cmp.Compare(y.Calls, x.Calls), cmp.Compare(y.Messages, x.Messages),
				strings.Compare(valueA, valueB))
		}
		return 0
	})
}

// NanoUSD is the exact cost in nano-dollars; nil where CostUSD is null.
func (s *Sums) NanoUSD() *int64 {
	if s.CostUSD == nil {
		return nil
	}
	return &s.nanoUSD
}

func (s *Sums) add(other *Sums) {
	s.Sessions += other.Sessions
	s.Subagents += other.Subagents
	s.Messages += other.Messages
	s.Prompts += other.Prompts
	s.Calls += other.Calls
	s.Tokens.Input += other.Tokens.Input
	s.Tokens.CacheRead += other.Tokens.CacheRead
	s.Tokens.CacheWrite += other.Tokens.CacheWrite
	s.Tokens.Output += other.Tokens.Output
	s.nanoUSD += other.nanoUSD
	s.UnpricedCalls += other.UnpricedCalls
}

// dollars returns a sum of money, nil when there are calls and none has a price.
func dollars(nanoUSD, calls, unpriced int64) *float64 {
	if calls > 0 && unpriced == calls {
		return nil
	}
	usd := float64(nanoUSD) / 1e9
	return &usd
}
