package store

import (
	"context"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Reader is a provider that was sent messages of a session.
type Reader struct {
	Session  session.ID     `db:"session_id"`
	Source   session.Source `db:"source"`   // the program that sent them
	Provider string         `db:"provider"` // else the model; "": no reply names one
	Through  int64          `db:"through"`  // the greatest seq that it can have been sent
}

// Readers returns by session who replied in it, and in forks of it, which share its messages up to where they begin.
// Each session has a reader without a provider, which names its program.
func (s *Store) Readers(ctx context.Context, ids []session.ID) (map[session.ID][]Reader, error) {
	readers := map[session.ID][]Reader{}
	own, err := s.repliers(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, r := range own {
		readers[r.Session] = append(readers[r.Session], r)
	}
	type fork struct {
		ID      session.ID `db:"id"`
		From    session.ID `db:"session_id"`
		Through int64      `db:"seq"`
		of      session.ID // whose messages it shares, perhaps by a fork between
		at      int64
	}
	level := make([]fork, len(ids))
	for i, id := range ids {
		level[i] = fork{ID: id, of: id, at: 1 << 62}
	}
	for len(level) > 0 {
		above := map[session.ID][]fork{}
		var names []session.ID
		for _, f := range level {
			above[f.ID] = append(above[f.ID], f)
			names = append(names, f.ID)
		}
		forks, err := engine.List[fork](ctx, s, forksOfSessions, string(session.JSONOf(names)))
		if err != nil {
			return nil, session.Wrap(err, "forks of sessions")
		}
		level, names = nil, nil
		for _, f := range forks {
			names = append(names, f.ID)
			for _, up := range above[f.From] {
				f.of, f.at = up.of, min(up.at, f.Through)
				if up.ID != up.of { // a fork of a fork shares what the fork shares
					f.at = up.at
				}
				level = append(level, f)
			}
		}
		repliers, err := s.repliers(ctx, names)
		if err != nil {
			return nil, err
		}
		for _, r := range repliers {
			for _, f := range level {
				if f.ID == r.Session && r.Provider != "" {
					readers[f.of] = append(readers[f.of], Reader{
						Session: f.of, Source: r.Source, Provider: r.Provider, Through: f.at,
					})
				}
			}
		}
	}
	return readers, nil
}

// repliers returns who replied in sessions.
func (s *Store) repliers(ctx context.Context, ids []session.ID) ([]Reader, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	names := string(session.JSONOf(ids))
	all, err := engine.List[Reader](ctx, s, repliersOfSessions, names, names)
	return all, session.Wrap(err, "who replied in sessions")
}

const (
	repliersOfSessions = `
	SELECT s.id AS session_id, s.source, '' AS provider, 0 AS through FROM sessions s WHERE s.id IN (SELECT value FROM json_each(?))
	UNION ALL
	SELECT s.id, s.source, CASE WHEN m.provider <> '' THEN m.provider ELSE m.model END, MAX(m.seq)
	FROM sessions s JOIN messages m ON m.session_id = s.id
	WHERE s.id IN (SELECT value FROM json_each(?)) AND m.role = 'assistant' AND m.in_context = 1 AND (m.provider <> '' OR m.model <> '')
	GROUP BY 1, 2, 3`
	forksOfSessions = `
	SELECT f.id, p.session_id, p.seq FROM sessions f
	JOIN messages m ON m.session_id = f.id AND m.seq = 1 JOIN messages p ON p.id = m.parent_id
	WHERE f.parent_kind = 'fork' AND p.session_id IN (SELECT value FROM json_each(?))`
)
