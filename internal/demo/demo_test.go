package demo

import (
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
	"sessiond/internal/usage"
)

// The history has one of each thing that pictures show, each program and model of it is known, and the database is
// sound. It holds at any hour: half past midnight, too.
func TestHistoryShowsEachThing(t *testing.T) {
	now := time.Date(2026, 11, 2, 0, 30, 0, 0, time.UTC)
	s := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")), store.Options{
		Now: func() time.Time { return now }, Zone: time.UTC, Measure: tokens.Reference().Measure, Touched: touched.Files,
	}))(t)
	defer s.Close()
	models := testkit.Must(usage.Load(nil))(t)
	conversations := testkit.Must(Fill(t.Context(), s, models, now))(t)
	count := func(sql string) int64 { return testkit.Must(engine.Get[int64](t.Context(), s, sql))(t) }
	for _, c := range []struct {
		what, sql   string
		least, most int64
	}{
		{"conversations", `SELECT COUNT(*) FROM sessions WHERE kind = 'chat'`, int64(conversations), int64(conversations)},
		{"programs", `SELECT COUNT(DISTINCT source) FROM sessions`, 3, 5},
		{"projects", `SELECT COUNT(DISTINCT project) FROM sessions`, 3, 3},
		{"sub-agents with the call that started them", `SELECT COUNT(*) FROM links WHERE call_id <> ''`, 3, 3},
		{"handovers", `SELECT COUNT(*) FROM sessions f JOIN sessions o ON o.id = f.parent_id
			WHERE f.parent_kind = 'fork' AND f.source <> o.source`, 1, 1},
		{"compactions in force", `SELECT COUNT(*) FROM sessions WHERE compaction_id IS NOT NULL AND parent_kind = ''`, 1, 1},
		{"branches", `SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE parent_id IS NOT NULL GROUP BY parent_id
			HAVING COUNT(*) > 1 AND COUNT(DISTINCT session_id) = 1)`, 1, 1},
		{"pins", `SELECT COUNT(*) FROM marks WHERE kind = 'pin'`, 2, 2},
		{"stars", `SELECT COUNT(*) FROM sessions WHERE starred_at IS NOT NULL`, 1, 1},
		{"calls without a price", `SELECT COUNT(*) FROM calls WHERE cost_nanousd IS NULL`, 0, 0},
		{"messages after now", `SELECT COUNT(*) FROM messages WHERE created_at > '2026-11-02 00:30:00'`, 0, 0},
		{"calls without a result", `SELECT COUNT(*) FROM parts p WHERE kind = 'tool_call'
			AND NOT EXISTS (SELECT 1 FROM parts r WHERE r.call_part_id = p.id)`, 0, 0},
	} {
		if n := count(c.sql); n < c.least || n > c.most {
			t.Errorf("%s: %d, not %d to %d", c.what, n, c.least, c.most)
		}
	}
	for _, name := range testkit.Must(engine.List[string](t.Context(), s, `SELECT DISTINCT source FROM sessions`))(t) {
		if p, known := session.ProgramNamed(name); !known || string(p.Name) != name {
			t.Errorf("no program is called %q", name)
		}
	}
	for _, c := range testkit.Must(s.Doctor(t.Context(), false))(t) {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
}

func TestWrongHistoriesAreNamed(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"a head without a time", "== a pi m p"},
		{"an unknown field", "== a pi m p 1d 09:00\ncolour: red\n"},
		{"an unknown mark", "== a pi m p 1d 09:00\n> hello\n? what\n"},
		{"a name of nothing", "== a pi m p 1d 09:00\n#first\n"},
		{"a compaction that keeps no number", "== a pi m p 1d 09:00\n> hello\n%all of it\n"},
	} {
		if talks, err := parse(c.text); err == nil {
			t.Errorf("%s: read as %+v", c.name, talks)
		}
	}
}
