package store

import (
	"context"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// longestLimit is the number of days beyond which no limit is believed.
const longestLimit = 62

// saveLimits keeps what the batch says of its program's limits, unless a newer record said it. Limits that were reset
// since, and those in a file that is not known to be the user's own, say nothing of what the user can do now.
func (im *importer) saveLimits() error {
	if im.batch.Foreign != "" {
		return nil
	}
	for _, l := range im.batch.Limits {
		if !l.ResetsAt.After(im.Now.Time) || l.ResetsAt.After(im.Now.AddDate(0, 0, longestLimit)) ||
			l.NotedAt.CheckDate("", im.Now.Time) != nil {
			continue
		}
		if err := im.Exec(`INSERT INTO limits (source, name, used_percent, reached, resets_at, noted_at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (source, name) DO UPDATE SET used_percent = excluded.used_percent, reached = excluded.reached,
			resets_at = excluded.resets_at, noted_at = excluded.noted_at WHERE excluded.noted_at > limits.noted_at`,
			l.Source, l.Name, l.Used, l.Reached, l.ResetsAt, l.NotedAt); err != nil {
			return err
		}
	}
	return nil
}

// Limits returns the limits of programs that are not reset yet. One that was reached holds no more if its program
// got a reply since: another account, or credits. A named token sees none: they are of the daemon's own user.
func (s *Store) Limits(ctx context.Context) ([]session.Limit, error) {
	if _, limited := session.ScopeOf(ctx); limited {
		return nil, nil
	}
	all, err := engine.List[session.Limit](ctx, s, `SELECT source, name, used_percent, reached, resets_at, noted_at FROM limits
		WHERE resets_at > ? ORDER BY source, resets_at, name`, session.At(s.opt.Now()))
	for i := range all {
		if l := &all[i]; err == nil && l.Reached {
			var replied *int64
			replied, err = engine.First[int64](ctx, s, `SELECT id FROM calls WHERE day >= ? AND source = ? AND created_at > ?
				AND status = 'ok' AND output_tokens > 0 LIMIT 1`, l.NotedAt.Day(s.Zone()), l.Source, l.NotedAt)
			l.Reached = replied == nil
		}
	}
	return all, session.Wrap(err, "limits of programs")
}

// LastUsed returns the programs with messages on or after a day, YYYY-MM-DD, the one that was used last first.
func (s *Store) LastUsed(ctx context.Context, day string) ([]session.Source, error) {
	all, err := engine.List[session.Source](ctx, s, `SELECT source FROM daily_usage WHERE day >= ? AND messages > 0
		GROUP BY source ORDER BY MAX(day) DESC, source`, day)
	return all, session.Wrap(err, "programs used since %s", day)
}
