package store

import (
	"context"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Activity is when people wrote.
type Activity struct {
	ByDay  map[string]int64 // prompts by day, YYYY-MM-DD; days without are left out
	ByHour [24]int64        // prompts of the last day, by hour in the store's zone
}

// Activity returns the prompts of the days from since to today, of all projects and programs or, where some are named,
// of theirs; sub-agents belong to the project of the session that started them.
func (s *Store) Activity(ctx context.Context, since, today string, projects, sources []string) (Activity, error) {
	out := Activity{ByDay: map[string]int64{}}
	type sum struct {
		Day     string `db:"day"`
		Prompts int64  `db:"prompts"`
	}
	if err := engine.Each(ctx, s, func(one *sum) error {
		out.ByDay[one.Day] = one.Prompts
		return nil
	}, promptsByDay, since, today, len(projects), string(session.JSONOf(projects)), len(sources),
		string(session.JSONOf(sources))); err != nil {
		return out, session.Wrap(err, "prompts by day")
	}
	type prompt struct {
		At session.Time `db:"created_at"`
	}
	err := engine.Each(ctx, s, func(one *prompt) error {
		out.ByHour[one.At.In(s.Zone()).Hour()]++
		return nil
	}, promptsOfDay, today, len(projects), string(session.JSONOf(projects)), len(sources), string(session.JSONOf(sources)))
	return out, session.Wrap(err, "prompts of a day")
}

const promptsByDay = `
	SELECT day, SUM(prompts) AS prompts FROM daily_usage
	WHERE day BETWEEN ? AND ? AND (? = 0 OR project IN (SELECT value FROM json_each(?)))
	  AND (? = 0 OR source IN (SELECT value FROM json_each(?)))
	GROUP BY day HAVING SUM(prompts) > 0`

const promptsOfDay = `
	SELECT m.created_at FROM messages m CROSS JOIN sessions s ON s.id = m.session_id
	WHERE m.origin = 'person' AND m.day = ? AND s.deleted_at IS NULL
	  AND (? = 0 OR s.project IN (SELECT value FROM json_each(?)))
	  AND (? = 0 OR s.source IN (SELECT value FROM json_each(?)))`
