package analytics_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// ledger is a store with random sessions, sub-agents, messages and calls, and some of them purged.
type ledger struct {
	s   *store.Store
	ids []session.ID
}

func (l *ledger) fill(t *rapid.T) {
	ctx := context.Background()
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	for range rapid.IntRange(3, 12).Draw(t, "sessions") {
		in := store.NewSession{
			Directory: pick("project", "", "/a", "/b", "/c"),
			Source:    session.Source(pick("source", "pi", "codex")), Kind: "chat",
		}
		if len(l.ids) > 0 && rapid.Bool().Draw(t, "child") {
			in.ParentID, in.Kind = rapid.SampledFrom(l.ids).Draw(t, "parent"), session.KindSubagent
		}
		made := testkit.Must(l.s.CreateSession(ctx, in))(t)
		l.ids = append(l.ids, made.ID)
		for n := range rapid.IntRange(0, 4).Draw(t, "turns") {
			at := session.At(time.Date(2026, 2, rapid.IntRange(1, 5).Draw(t, "day"), 12, n, 0, 0, time.UTC))
			call := session.Call{
				Model: pick("model", "", "m", "n"), Purpose: session.Purpose(pick("purpose", "", "title")),
				InputTokens: int64(n), OutputTokens: 7, CreatedAt: at,
			}
			if rapid.Bool().Draw(t, "priced") {
				nano := rapid.Int64Range(0, 5e9).Draw(t, "cost")
				call.CostNanoUSD = &nano
			}
			testkit.Must(l.s.Append(ctx, store.Append{Session: made.ID, Call: &call, Messages: []session.Message{
				{Role: session.User, CreatedAt: at, Parts: []session.Part{{Kind: session.PartText, Text: "words"}}},
				{Role: session.Assistant, CreatedAt: at, Parts: []session.Part{{Kind: session.PartText, Text: "words"}}},
			}}))(t)
		}
	}
	if rapid.Bool().Draw(t, "purge") {
		p, _, err := l.s.BeginPurge(ctx, store.PurgeRequest{Session: l.ids[0]})
		testkit.Check(t, err)
		for rows := testkit.Must(p.Doomed(ctx))(t); len(rows) > 0; rows = testkit.Must(p.Doomed(ctx))(t) {
			testkit.Check(t, p.Delete(ctx, rows))
		}
		testkit.Must(p.Finish(ctx))(t)
		l.ids = l.ids[1:]
	}
}

// recount groups the ledger row by row, without the roll-up.
func (l *ledger) recount(t *rapid.T, f analytics.Filter, by []analytics.Dimension) map[string]string {
	type row struct{ day, session, source, model, purpose string }
	parents, projects := map[string]string{}, map[string]string{}
	rows := testkit.Must(l.s.Reader().Query(`SELECT id, project, CASE parent_kind WHEN 'child' THEN parent_id ELSE '' END FROM sessions`))(t)
	for rows.Next() {
		var id, project, parent string
		testkit.Check(t, rows.Scan(&id, &project, &parent))
		parents[id], projects[id] = parent, project
	}
	type sums struct{ sessions, messages, calls, input, nano, unpriced int64 }
	groups := map[string]*sums{}
	rows = testkit.Must(l.s.Reader().Query(`
		SELECT day, id, source, '', '', 1, 0, 0, 0, 0, 0 FROM sessions WHERE draft = 0
		UNION ALL SELECT m.day, s.id, s.source, '', '', 0, 1, 0, 0, 0, 0 FROM messages m JOIN sessions s ON s.id = m.session_id
		UNION ALL SELECT day, '', source, '', '', sessions, messages, 0, 0, 0, 0 FROM purged_days
		UNION ALL SELECT day, session_id, source, model, purpose, 0, 0, 1, input_tokens, COALESCE(cost_nanousd, 0), CASE WHEN cost_nanousd IS NULL THEN 1 ELSE 0 END FROM calls`))(t)
	for rows.Next() {
		var r row
		var n sums
		testkit.Check(t, rows.Scan(&r.day, &r.session, &r.source, &r.model, &r.purpose, &n.sessions, &n.messages, &n.calls,
			&n.input, &n.nano, &n.unpriced))
		top := r.session
		for parents[top] != "" {
			top = parents[top]
		}
		project := projects[top]
		if f.Since != "" && r.day < f.Since || f.Until != "" && r.day > f.Until ||
			f.Source != "" && r.source != string(f.Source) || f.Project != "" && project != f.Project {
			continue
		}
		values := map[analytics.Dimension]string{
			analytics.ByDay: r.day, analytics.ByProject: project, analytics.BySource: r.source, analytics.ByModel: r.model,
			analytics.ByPurpose: r.purpose,
		}
		var key []string
		for _, d := range by {
			key = append(key, values[d])
		}
		g := groups[strings.Join(key, "|")]
		if g == nil {
			g = &sums{}
			groups[strings.Join(key, "|")] = g
		}
		g.sessions, g.messages, g.calls, g.input, g.nano, g.unpriced =
			g.sessions+n.sessions, g.messages+n.messages, g.calls+n.calls, g.input+n.input, g.nano+n.nano, g.unpriced+n.unpriced
	}
	testkit.Check(t, rows.Err())
	ofCalls := slices.Contains(by, analytics.ByModel) || slices.Contains(by, analytics.ByPurpose)
	found := map[string]string{}
	for key, g := range groups {
		if g.calls == 0 && ofCalls {
			continue
		}
		if ofCalls { // sessions and messages have no model and no purpose
			g.sessions, g.messages = 0, 0
		}
		cost := "?"
		if g.unpriced < g.calls || g.calls == 0 {
			cost = fmt.Sprintf("%.6f", float64(g.nano)/1e9)
		}
		found[key] = fmt.Sprint(g.sessions, g.messages, g.calls, g.input, cost, g.unpriced)
	}
	return found
}

// Whatever usage is grouped by, it equals a recount, and the named queries say the same.
func TestUsageEqualsARecount(t *testing.T) {
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s := testkit.Must(store.Open(t.Context(), path, store.Options{
		Zone: time.UTC, Now: func() time.Time { return time.Date(2026, 2, 6, 12, 0, 0, 0, time.UTC) },
		Measure: func(*session.Message) {},
	}))(t)
	defer s.Close() //nolint:errcheck // a test
	l := &ledger{s: s}
	r := analytics.New(s.Reader(), time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		l.fill(rt)
		f := analytics.Filter{
			Since:   rapid.SampledFrom([]string{"", "2026-02-03"}).Draw(rt, "since"),
			Until:   rapid.SampledFrom([]string{"", "2026-02-04"}).Draw(rt, "until"),
			Source:  rapid.SampledFrom([]session.Source{"", "pi"}).Draw(rt, "source"),
			Project: rapid.SampledFrom([]string{"", "/a"}).Draw(rt, "project"),
		}
		by := rapid.SliceOfNDistinct(rapid.SampledFrom(analytics.Dimensions()), 1, 3, rapid.ID).Draw(rt, "by")
		got := map[string]string{}
		for _, b := range testkit.Must(r.Usage(rt.Context(), f, by...))(rt) {
			var key []string
			for _, d := range by {
				key = append(key, b.Of(d))
			}
			cost := "?"
			if b.CostUSD != nil {
				cost = fmt.Sprintf("%.6f", *b.CostUSD)
			}
			got[strings.Join(key, "|")] = fmt.Sprint(b.Sessions, b.Messages, b.Calls, b.Tokens.Input, cost, b.UnpricedCalls)
		}
		testkit.Equal(rt, l.recount(rt, f, by), got)
	})
	checkQueries(t, r)
}

// checkQueries compares the sums of the named queries with those of Stats.
func checkQueries(t *testing.T, r *analytics.Reports) {
	t.Helper()
	st := testkit.Must(r.Stats(t.Context(), analytics.Filter{}))(t)
	for query, groups := range map[string][]analytics.Bucket{
		"cost-by-project": st.ByProject, "cost-by-purpose": nil, "tokens-by-day": st.ByDay, "cost-by-month": nil,
		"cost-by-model-week": nil, "dearest-days": nil,
	} {
		params := map[string]string{"limit": "1000"}
		if query == "cost-by-purpose" {
			delete(params, "limit")
		}
		if query == "cost-by-project" {
			params["since"] = "2026-01-01"
		}
		res := testkit.Must(r.Run(t.Context(), query, params))(t)
		column := func(row []any, name string) float64 {
			switch v := row[slices.Index(res.Columns, name)].(type) {
			case int64:
				return float64(v)
			case float64:
				return v
			}
			return 0
		}
		sums := map[string]float64{}
		for _, row := range res.Rows {
			for _, name := range []string{"calls", "usd", "unpriced_calls"} {
				sums[name] += column(row, name)
			}
		}
		if sums["calls"] != float64(st.Calls) || sums["unpriced_calls"] != float64(st.UnpricedCalls) ||
			math.Abs(sums["usd"]-*st.CostUSD) > 0.005*float64(len(res.Rows)) {
			t.Errorf("%s sums up to %v; stats: %d calls, %v dollars, %d unpriced", query, sums, st.Calls, *st.CostUSD,
				st.UnpricedCalls)
		}
		for i := range groups {
			if b := &groups[i]; b.CostUSD != nil && b.Calls > 0 && !slices.ContainsFunc(res.Rows, func(row []any) bool {
				return (row[0] == b.Day || row[0] == b.Project) && column(row, "calls") == float64(b.Calls) &&
					math.Abs(column(row, "usd")-*b.CostUSD) < 0.006
			}) {
				t.Errorf("%s has no row of %+v", query, b)
			}
		}
	}
}
