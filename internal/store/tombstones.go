package store

import (
	"context"
	"fmt"
	"strconv"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// PurgedSource is the tombstone of a purged session: imports leave out the session that it names.
type PurgedSource struct {
	Source   session.Source `db:"source" json:"source"`
	IDHash   string         `db:"id_hash" json:"id_hash"` // hex SHA-256 of its id in that program
	PurgedAt session.Time   `db:"purged_at" json:"purged_at"`
}

// tombstonesOf returns what names a session after its purge: its id in the program that it came from, and its
// own. A copy is also named by the id that it was copied from.
func tombstonesOf(s *session.Session) []PurgedSource {
	return append([]PurgedSource{ownTombstone(s.ID, s.CreatedAt)}, sourceTombstones(s.Source, s.SourceID, &s.CreatedAt)...)
}

// sourceTombstones returns what names a session of a program. A source id may be an id of sessiond: of a copy,
// and in a file that sessiond wrote in another program's format.
func sourceTombstones(source session.Source, sourceID string, created *session.Time) (all []PurgedSource) {
	if sourceID == "" {
		return nil
	}
	original, err := session.ParseID(sourceID)
	if err == nil && created != nil {
		all = append(all, ownTombstone(original, *created))
	}
	if source = orElse(source, session.SourceSessiond); err != nil || source != session.SourceSessiond {
		all = append(all, PurgedSource{Source: source, IDHash: hash([]byte(sourceID))})
	}
	return all
}

// ownTombstone names a session by its id and the second of its creation: another store may give the same id to
// another session. It is no millisecond, since Goose's format has none.
func ownTombstone(id session.ID, created session.Time) PurgedSource {
	return PurgedSource{
		Source: session.SourceSessiond, IDHash: hash([]byte(string(id) + " " + strconv.FormatInt(created.Unix(), 10))),
	}
}

// bury stores the tombstones of a session that is being purged.
func (t *tx) bury(sess *session.Session) error {
	for _, p := range tombstonesOf(sess) {
		if err := t.Exec(`INSERT INTO purged_sources (source, id_hash, purged_at) VALUES (?, ?, ?)
			ON CONFLICT (source, id_hash) DO UPDATE SET purged_at = excluded.purged_at`, p.Source, p.IDHash, t.Now); err != nil {
			return err
		}
	}
	return nil
}

// purgedHere reports whether a tombstone is here. With bringBack it removes it: the session may come in.
func (t *tx) purgedHere(all []PurgedSource, bringBack bool) (bool, error) {
	for _, p := range all {
		if bringBack {
			if err := t.Exec(`DELETE FROM purged_sources WHERE source = ? AND id_hash = ?`, p.Source, p.IDHash); err != nil {
				return false, fmt.Errorf("bring a purged session back: %w", err)
			}
			continue
		}
		if here, err := t.Exists(`SELECT 1 FROM purged_sources WHERE source = ? AND id_hash = ?`, p.Source, p.IDHash); err != nil || here {
			return here, err
		}
	}
	return false, nil
}

// Tombstones lists what names the sessions that were purged here.
func (s *Store) Tombstones(ctx context.Context) ([]PurgedSource, error) {
	all, err := engine.List[PurgedSource](ctx, s, allTombstones)
	return all, session.Wrap(err, "list what was purged")
}

const allTombstones = `SELECT source, id_hash, purged_at FROM purged_sources ORDER BY source, id_hash`

// AddTombstones keeps away what another database had purged. Sessions here that a tombstone names keep it out; they
// are returned, so that a caller can purge them again, which buries them here.
func (s *Store) AddTombstones(ctx context.Context, all []PurgedSource) (named []session.ID, err error) {
	err = s.write(ctx, func(t *tx) error {
		var here map[PurgedSource]session.ID
		if here, err = t.sessionsByTombstone(); err != nil {
			return err
		}
		found := map[session.ID]bool{}
		for _, p := range all {
			if id, ok := here[PurgedSource{Source: p.Source, IDHash: p.IDHash}]; ok {
				if !found[id] {
					named = append(named, id)
				}
				found[id] = true
				continue
			}
			if err := t.Exec(addTombstone, p.Source, p.IDHash, p.PurgedAt); err != nil {
				return err
			}
		}
		return nil
	})
	return named, session.Wrap(err, "take over what was purged")
}

// IDCounters lists the newest number of each day's ids.
func (s *Store) IDCounters(ctx context.Context) ([]SessionDay, error) {
	all, err := engine.List[SessionDay](ctx, s, `SELECT day, last FROM session_days ORDER BY day`)
	return all, session.Wrap(err, "list the counters of ids")
}

// RaiseIDCounters keeps ids that another database gave from being given again.
func (s *Store) RaiseIDCounters(ctx context.Context, all []SessionDay) error {
	return session.Wrap(s.write(ctx, func(t *tx) error {
		for _, d := range all {
			if err := t.Exec(raiseIDCounter, d.Day, d.Last); err != nil {
				return err
			}
		}
		return nil
	}), "raise the counters of ids")
}

const raiseIDCounter = `INSERT INTO session_days (day, last) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET last = MAX(session_days.last, excluded.last)`

const addTombstone = `INSERT INTO purged_sources (source, id_hash, purged_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

// sessionsByTombstone returns the sessions that are here, by the tombstones that they would leave, without a time.
func (t *tx) sessionsByTombstone() (map[PurgedSource]session.ID, error) {
	here := map[PurgedSource]session.ID{}
	err := engine.Each(t.Ctx, t, func(s *session.Session) error {
		for _, p := range tombstonesOf(s) {
			here[p] = s.ID
		}
		return nil
	}, `SELECT id, source, source_id, created_at FROM sessions WHERE purged_at IS NULL ORDER BY id`)
	return here, err
}
