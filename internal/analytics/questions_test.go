package analytics_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sessiond/internal/analytics"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// The fifteen questions that the schema was made for, with the answers that the fixture holds.
func TestFifteenQuestions(t *testing.T) {
	r := reports(t)
	tests := []struct {
		query string
		want  [][]any
	}{
		{"cost-by-project", [][]any{{"/home/u/shop", int64(8), 2.91, int64(1)}}},
		{"prompts-by-day", [][]any{
			{"2026-02-11", int64(2), int64(2)},
			{"2026-02-10", int64(2), int64(2)},
			{"2026-02-09", int64(1), int64(1)},
		}},
		{"cost-by-model-week", [][]any{
			{"2026-W07", "gpt-x", int64(6), 2.9, int64(0)},
			{"2026-W07", "gpt-mini", int64(1), 0.01, int64(0)},
			{"2026-W07", "gpt-y", int64(1), nil, int64(1)},
		}},
		{"dearest-sessions", [][]any{
			{"20260209_001", "sessiond", "/home/u/shop", "The migration", int64(6), 2.506, int64(1)},
			{"20260210_001", "pi", "/home/u/shop", "The build", int64(4), 0.25, int64(0)},
			{"20260210_002", "sessiond", "/home/u/shop", "Look it up", int64(2), 0.1, int64(0)},
			{"20260211_001", "sessiond", "/home/u/shop", "The migration (fork #2)", int64(3), 0.05, int64(0)},
		}},
		{"sessions-of-file", [][]any{
			{"20260210_001", "pi", "The build", "/home/u/shop/Makefile", int64(0), int64(1), "2026-02-10 11:01:00.000"},
			{"20260210_001", "pi", "The build", "/home/u/shop/internal/store.go", int64(0), int64(1), "2026-02-10 11:01:00.000"},
			{
				"20260209_001", "sessiond", "The migration", "/home/u/shop/internal/store.go", int64(1), int64(0),
				"2026-02-09 09:00:05.000",
			},
		}},
		{"failing-tools", [][]any{
			{"bash", int64(3), int64(2), 100.0, int64(1)},
			{"read", int64(1), int64(0), 0.0, int64(0)},
		}},
		{"slowest-tools", [][]any{{"bash", int64(2), 600.0, int64(700), 1.2}, {"read", int64(1), 120.0, int64(120), 0.1}}},
		{"cache-hits", [][]any{
			{"gpt-x", int64(6), int64(4300), int64(1900), 44.2},
			{"gpt-y", int64(1), int64(2000), int64(0), 0.0},
			{"gpt-mini", int64(1), int64(800), int64(0), 0.0},
		}},
		{"compaction-payoff", [][]any{{"20260209_001", int64(2), int64(1), int64(3800), 0.006}}},
		{"paid-summaries", [][]any{{"20260209_001", int64(1), int64(1), int64(1), int64(0), int64(0), 0.006}}},
		{"day", [][]any{
			{
				"/home/u/shop", "20260209_001", "sessiond", "The migration", int64(1), "2026-02-10 10:00:00.000",
				"2026-02-10 10:00:00.000",
			},
			{"/home/u/shop", "20260210_001", "pi", "The build", int64(1), "2026-02-10 11:00:00.000", "2026-02-10 11:00:00.000"},
		}},
		{"subagent-cost", [][]any{{"20260209_001", "The migration", int64(1), 0.1, 2.506, int64(0)}}},
		{"steps-per-prompt", [][]any{
			{"sessiond", int64(3), int64(6), 2.0},
			{"pi", int64(1), int64(2), 2.0},
			{"claude-code", int64(1), int64(0), 0.0},
		}},
		{"what-fills-the-file", [][]any{
			{"claude-code", int64(1), int64(2), int64(22), int64(0), int64(70000)},
			{"sessiond", int64(11), int64(12), int64(213), int64(0), int64(0)},
			{"pi", int64(3), int64(6), int64(69), int64(0), int64(0)},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			res := testkit.Must(r.Run(t.Context(), tt.query, fixtureParams(tt.query)))(t)
			testkit.Equal(t, asJSON(t, analytics.Result{Columns: res.Columns, Rows: tt.want}), asJSON(t, res))
		})
	}
	t.Run("said", func(t *testing.T) {
		res := run(t, r, "said", map[string]string{"text": "migration"})
		want := []any{"And the Migration test?", "How do I write the migration?"}
		testkit.Equal(t, want, column(t, res, "excerpt"))
	})
	t.Run("unanswered", func(t *testing.T) {
		res := run(t, r, "unanswered", nil)
		if len(res.Rows) != 1 || res.Rows[0][0] != "20260211_002" ||
			!strings.HasPrefix(res.Rows[0][5].(string), "Anyone there? Größe!") {
			t.Errorf("%v", res.Rows)
		}
	})
}

// Scripts that were written for a chat log of two tables go on working.
func TestClassicShape(t *testing.T) {
	storetest.OnFile(t)
	r := reports(t)
	tests := []struct {
		name, sql string
		want      [][]any
	}{
		{
			"sessions by day",
			`SELECT DATE(created_at) as date, COUNT(*) as count
			 FROM sessions
			 WHERE created_at >= datetime('now', '-7 days')
			 GROUP BY DATE(created_at)`,
			[][]any{},
		},
		{
			"sessions by day, with a day of the fixture as now",
			`SELECT DATE(created_at) as date, COUNT(*) as count
			 FROM sessions
			 WHERE created_at >= datetime('2026-02-16 12:00:00', '-6 days')
			 GROUP BY DATE(created_at)`,
			[][]any{{"2026-02-11", int64(2)}},
		},
		{
			"largest sessions",
			`SELECT session_id, SUM(tokens) as total
			 FROM messages
			 GROUP BY session_id
			 ORDER BY total DESC
			 LIMIT 10`,
			[][]any{
				{"20260211_002", int64(9000)},
				{"20260209_001", int64(60)},
				{"20260210_001", int64(40)},
				{"20260211_001", int64(28)},
				{"20260210_002", int64(15)},
			},
		},
		{
			"by metadata",
			`SELECT id FROM (SELECT * FROM sessions
			 WHERE json_extract(metadata, '$.user_id') = 'user_123')`,
			[][]any{{"20260209_001"}},
		},
		{
			"messages of a session",
			`SELECT role, content, tool_calls, tokens, timestamp
			 FROM messages_flat WHERE session_id = '20260209_001' ORDER BY id LIMIT 3`,
			[][]any{
				{"user", "How do I write the migration?", "[]", int64(8), "2026-02-09 09:00:00.000"},
				{"assistant", "Let me look.", `[{"id":"c1","name":"read","arguments":"{\"path\": \"internal/store.go\"}"}]`, int64(20), "2026-02-09 09:00:05.000"},
				{"tool", "package store", "[]", int64(10), "2026-02-09 09:00:06.000"},
			},
		},
		{
			"a text in a blob reads like a text",
			`SELECT length(content), substr(content, -3) FROM messages_flat WHERE id = 15`,
			[][]any{{int64(70021), "aaa"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := testkit.Must(r.SQL(t.Context(), tt.sql, analytics.Limits{}))(t)
			testkit.Equal(t, tt.want, res.Rows)
		})
	}
}

// A plan is sound when no row of one table has another one scanned for it.
func TestQueryPlans(t *testing.T) {
	storetest.OnFile(t)
	r := reports(t)
	for _, q := range all(t) {
		t.Run(q.Name, func(t *testing.T) {
			res := testkit.Must(r.SQL(t.Context(), "EXPLAIN QUERY PLAN "+q.SQL, analytics.Limits{}))(t)
			if len(res.Rows) == 0 {
				t.Fatal("no plan")
			}
			parents := map[int64]int{} // how many full scans stand side by side, so one inside the other
			detail := map[int64]string{}
			under := map[int64]int64{}
			for _, row := range res.Rows {
				id, parent, text := row[0].(int64), row[1].(int64), row[3].(string)
				detail[id], under[id] = text, parent
				if strings.Contains(text, "AUTOMATIC") {
					t.Errorf("makes an index for itself: %s", text)
				}
				if !strings.HasPrefix(text, "SCAN") || strings.Contains(text, "CONSTANT ROW") || scansLittle(text) {
					continue
				}
				if parents[parent]++; parents[parent] > 1 {
					t.Errorf("scans inside a scan: %s\n%s", text, plan(res))
				}
				for up := parent; up != 0; up = under[up] {
					if strings.HasPrefix(detail[up], "CORRELATED") {
						t.Errorf("scans for every row: %s\n%s", text, plan(res))
					}
				}
			}
		})
	}
}

// scansLittle tells of a scan that reads no table: the rows of a subquery.
func scansLittle(text string) bool {
	return regexp.MustCompile(`^SCAN (\(subquery-\d+\)|chat|replies|path|later)$`).MatchString(text)
}

func plan(res analytics.Result) string {
	var b strings.Builder
	for _, row := range res.Rows {
		fmt.Fprintf(&b, "%v %v %v\n", row[0], row[1], row[3])
	}
	return b.String()
}

func run(t *testing.T, r *analytics.Reports, name string, params map[string]string) analytics.Result {
	t.Helper()
	return testkit.Must(r.Run(t.Context(), name, params))(t)
}
