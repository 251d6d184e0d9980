package bench_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// usageData is a ledger of 400 days: sessions of 30 projects and 3 programs, each with calls of 2 models.
const usageData = `
	DROP TRIGGER sessions_no_replace;
	WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :calls / 25)
	INSERT INTO sessions (id, day, source, project, created_at, updated_at, active_at)
	SELECT '20250101_' || (1000 + i), date('2025-01-01', (i % 400) || ' days'), CASE i % 3 WHEN 0 THEN 'codex' WHEN 1 THEN 'claude-code' ELSE 'pi' END,
	       '/home/u/p' || (i * 7919 / 400 % 30), '', '', '' FROM n;
	WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :calls)
	INSERT INTO calls (session_id, purpose, model, source, day, input_tokens, output_tokens, cost_nanousd, created_at)
	SELECT s.id, CASE WHEN i % 97 = 0 THEN 'title' ELSE 'chat' END, 'model-' || (s.rowid % 5 + i % 2), s.source, s.day, 1000, 100, CASE WHEN i % 51 > 0 THEN 1230000 END, ''
	FROM n JOIN sessions s ON s.rowid = i % (:calls / 25) + 1;
	INSERT INTO daily_usage (day, project, source, model, purpose, calls, input_tokens, output_tokens, cost_nanousd, unpriced_calls)
	SELECT c.day, s.project, c.source, c.model, c.purpose, COUNT(*), SUM(c.input_tokens), SUM(c.output_tokens), COALESCE(SUM(c.cost_nanousd), 0), SUM(c.cost_nanousd IS NULL)
	FROM calls c JOIN sessions s ON s.id = c.session_id GROUP BY 1, 2, 3, 4, 5;`

const usageRecount = `
	SELECT %s, COUNT(*), SUM(c.input_tokens), SUM(c.cache_read_tokens), SUM(c.cache_write_tokens), SUM(c.output_tokens), SUM(c.cost_nanousd), SUM(c.cost_nanousd IS NULL)
	FROM calls c JOIN sessions s ON s.id = c.session_id GROUP BY 1`

// BenchmarkUsage sums up the usage of 550,000 calls. The baseline is the sum over the calls themselves.
func BenchmarkUsage(b *testing.B) {
	path := storetest.New(b, filepath.Join(b.TempDir(), "sessions.db"))
	db := testkit.Must(sql.Open("sqlite", path))(b)
	testkit.Must(db.ExecContext(b.Context(), usageData, sql.Named("calls", sized(550_000))))(b)
	var rows int
	testkit.Check(b, db.QueryRowContext(b.Context(), `SELECT COUNT(*) FROM daily_usage`).Scan(&rows))
	b.Logf("%d rows of the roll-up", rows)
	testkit.Check(b, db.Close())
	s := testkit.Must(store.Open(b.Context(), path, store.Options{Measure: func(*session.Message) {}}))(b)
	defer s.Close() //nolint:errcheck // a benchmark
	r := analytics.New(s.Reader(), time.UTC)
	for by, column := range map[analytics.Dimension]string{
		analytics.ByModel: "c.model", analytics.ByProject: "s.project",
		analytics.ByDay: "c.day",
	} {
		b.Run("by "+string(by), func(b *testing.B) {
			compare(b, 3, &side{op: func() error {
				_, err := r.Stats(b.Context(), analytics.Filter{}, by)
				return err
			}}, &side{name: "recount", op: func() error {
				rows, err := s.Reader().QueryContext(b.Context(), fmt.Sprintf(usageRecount, column))
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
				}
				return rows.Err()
			}})
		})
	}
}
