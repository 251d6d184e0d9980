package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// StoreData is what a database holds of its user's that belongs to none of its sessions.
type StoreData struct {
	Type          string         `json:"type"`
	PurgedSources []PurgedSource `json:"purged_sources,omitempty"`
	PurgedDays    []PurgedDay    `json:"purged_days,omitempty"`
	SessionDays   []SessionDay   `json:"session_days,omitempty"`
	Calibrations  []LearnedScale `json:"calibrations,omitempty"`
	Keys          []KeyLabel     `json:"keys,omitempty"`
	Calls         []SavedCall    `json:"calls,omitempty"` // without a session
}

// PurgedDay is what purged sessions count for in the usage of a day.
type PurgedDay struct {
	Day       string         `db:"day" json:"day"`
	Source    session.Source `db:"source" json:"source"`
	Sessions  int64          `db:"sessions" json:"sessions"`
	Subagents int64          `db:"subagents" json:"subagents,omitempty"` // of the sessions
	Messages  int64          `db:"messages" json:"messages"`
	Prompts   int64          `db:"prompts" json:"prompts"`
}

// SessionDay is the counter of a day whose newest ids are of sessions that are gone.
type SessionDay struct {
	Day  string `db:"day" json:"day"`
	Last int64  `db:"last" json:"last"`
}

// LearnedScale is what reports have taught about a model's tokens.
type LearnedScale struct {
	Model     string       `db:"model" json:"model"`
	Scale     float64      `db:"scale" json:"scale"`
	Weight    float64      `db:"weight" json:"weight"`
	UpdatedAt session.Time `db:"updated_at" json:"updated_at"`
}

// KeyLabel is the name that a person gave a routing key; "": it was taken away.
type KeyLabel struct {
	Key       string       `db:"key" json:"key"`
	Label     string       `db:"label" json:"label"`
	UpdatedAt session.Time `db:"updated_at" json:"updated_at"`
}

// storeDataPage is how many rows one StoreData holds at most.
const storeDataPage = 1000

// EachStoreData yields the store's own data in pieces, each label of a key in one of its own.
func (s *Store) EachStoreData(ctx context.Context, yield func(*StoreData) error) error {
	var all StoreData
	if err := s.Read(ctx,
		engine.IntoList(&all.PurgedSources, allTombstones),
		engine.IntoList(&all.PurgedDays, `SELECT day, source, sessions, subagents, messages, prompts FROM purged_days ORDER BY day, source`),
		engine.IntoList(&all.SessionDays, countersBeyondIDs),
		engine.IntoList(&all.Calibrations, `SELECT model, scale, weight, updated_at FROM calibrations ORDER BY model`),
		engine.IntoList(&all.Keys, `SELECT key, label, updated_at FROM keys ORDER BY key`)); err != nil {
		return fmt.Errorf("the store's own data: %w", err)
	}
	for page := range slices.Chunk(all.PurgedSources, storeDataPage) {
		if err := yield(&StoreData{Type: LineStore, PurgedSources: page}); err != nil {
			return err
		}
	}
	if len(all.PurgedDays)+len(all.SessionDays)+len(all.Calibrations) > 0 {
		if err := yield(&StoreData{
			Type: LineStore, PurgedDays: all.PurgedDays, SessionDays: all.SessionDays,
			Calibrations: all.Calibrations,
		}); err != nil {
			return err
		}
	}
	for label := range slices.Chunk(all.Keys, 1) { // each may be refused
		if err := yield(&StoreData{Type: LineStore, Keys: label}); err != nil {
			return err
		}
	}
	for after := int64(0); ; {
		line := StoreData{Type: LineStore}
		var err error
		if line.Calls, err = engine.List[SavedCall](ctx, s, callsWithoutSession, after, storeDataPage); err != nil {
			return fmt.Errorf("calls without a session: %w", err)
		}
		if len(line.Calls) == 0 {
			return nil
		}
		after = line.Calls[len(line.Calls)-1].RowID
		if err := yield(&line); err != nil {
			return err
		}
	}
}

const (
	callsWithoutSession = `SELECT ` + callColumns + ` FROM calls WHERE session_id = '' AND id > ? ORDER BY id LIMIT +?`

	// A counter that the ids of the sessions give needs no saving.
	countersBeyondIDs = `
		SELECT day, last FROM session_days d WHERE last > COALESCE((
			SELECT MAX(CAST(SUBSTR(s.id, 10) AS INTEGER)) FROM sessions s
			WHERE s.id > REPLACE(d.day, '-', '') || '_' AND s.id < REPLACE(d.day, '-', '') || '` + "`" + `'), 0)
		ORDER BY day`
)

// restoreStoreData merges the store's own data of a file with what is here. Storing it again
// writes nothing. Codes: Invalid, Conflict (a label that another key has here).
func (s *Store) restoreStoreData(ctx context.Context, into *Restoring, d *StoreData) (ImportResult, error) {
	if err := d.check(); err != nil {
		return ImportResult{}, err
	}
	var r storeRestorer
	err := s.write(ctx, func(t *tx) error {
		r = storeRestorer{tx: t, calls: map[string]int{}, before: into.calls}
		for _, step := range []func(*StoreData) error{
			r.purgedSources, r.purgedDays, r.sessionDays, r.calibrations, r.keys,
			r.callsWithoutSession,
		} {
			if err := step(d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return ImportResult{}, err
	}
	if into.calls == nil {
		into.calls = map[string]int{}
	}
	for same, n := range r.calls {
		into.calls[same] += n
	}
	if !r.changed {
		r.res.Duplicates = 1
	}
	return r.res, nil
}

type storeRestorer struct {
	*tx
	res     ImportResult
	changed bool
	calls   map[string]int // of these data, seen so far, by what they say
	before  map[string]int // of the file's data before these
}

// put runs a statement that writes at most what is new.
func (r *storeRestorer) put(query string, args ...any) error {
	n, err := r.tx.Changed(query, args...)
	r.changed = r.changed || n > 0
	return session.Wrap(err, "the store's own data")
}

// purgedSources keeps sessions away that were purged where the file was written, unless they are
// here.
func (r *storeRestorer) purgedSources(d *StoreData) error {
	if len(d.PurgedSources) == 0 {
		return nil
	}
	here, err := r.sessionsByTombstone()
	if err != nil {
		return err
	}
	for _, p := range d.PurgedSources {
		if _, lives := here[PurgedSource{Source: p.Source, IDHash: p.IDHash}]; lives {
			continue
		}
		if err := r.put(addTombstone, p.Source, p.IDHash, p.PurgedAt); err != nil {
			return err
		}
	}
	return nil
}

// purgedDays raises the numbers of purged sessions, and the usage of the day with them, to the
// file's where those are larger: which sessions they stand for is not known any more.
func (r *storeRestorer) purgedDays(d *StoreData) error {
	for _, p := range d.PurgedDays {
		here, err := engine.Get[PurgedDay](r.Ctx, r, `SELECT day, source, sessions, subagents, messages, prompts FROM purged_days WHERE day = ? AND source = ?`, p.Day, p.Source)
		if err != nil && !engine.NoRows(err) {
			return err
		}
		more := usageSum{
			Sessions: max(0, p.Sessions-here.Sessions), Subagents: max(0, p.Subagents-here.Subagents),
			Messages: max(0, p.Messages-here.Messages), Prompts: max(0, p.Prompts-here.Prompts),
		}
		if more == (usageSum{}) {
			continue
		}
		if err := r.countPurged(p.Day, p.Source, more); err != nil {
			return err
		}
		r.changed = true
		r.usage.at(usageKey{Day: p.Day, Source: p.Source}).add(&more, 1)
	}
	return nil
}

// sessionDays keeps ids from being given again.
func (r *storeRestorer) sessionDays(d *StoreData) error {
	for _, day := range d.SessionDays {
		if err := r.put(`INSERT INTO session_days (day, last) VALUES (?, ?)
			ON CONFLICT (day) DO UPDATE SET last = excluded.last WHERE excluded.last > session_days.last`, day.Day, day.Last); err != nil {
			return err
		}
	}
	return nil
}

func (r *storeRestorer) calibrations(d *StoreData) error {
	for _, c := range d.Calibrations {
		if err := r.put(`INSERT INTO calibrations (model, scale, weight, updated_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (model) DO UPDATE SET scale = excluded.scale, weight = excluded.weight, updated_at = excluded.updated_at
			WHERE excluded.updated_at > calibrations.updated_at AND (excluded.scale <> calibrations.scale OR excluded.weight <> calibrations.weight)`,
			c.Model, c.Scale, c.Weight, earlier(c.UpdatedAt, r.Now)); err != nil {
			return err
		}
	}
	return nil
}

// keys stores labels of keys that have a session here.
func (r *storeRestorer) keys(d *StoreData) error {
	for _, k := range d.Keys {
		other, err := engine.First[string](r.Ctx, r, `SELECT key FROM keys WHERE label = ? AND label <> '' AND key <> ?`, k.Label, k.Key)
		if err == nil && other != nil {
			err = session.Errorf(session.Conflict, "the label %q of key %s is not imported: key %s has it here", k.Label, k.Key,
				*other)
		}
		if err != nil {
			return err
		}
		if err := r.put(`INSERT INTO keys (key, label, updated_at) SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM sessions WHERE key = ?1 AND key <> '')
			ON CONFLICT (key) DO UPDATE SET label = excluded.label, updated_at = excluded.updated_at
				WHERE excluded.updated_at > keys.updated_at AND excluded.label <> keys.label`,
			k.Key, k.Label, earlier(k.UpdatedAt, r.Now)); err != nil {
			return err
		}
	}
	return nil
}

// callsWithoutSession inserts the calls that are not here. One without an id of its source is known
// by everything that it says: of equal ones as many come in as the file has more.
func (r *storeRestorer) callsWithoutSession(d *StoreData) error {
	for i := range d.Calls {
		c := d.Calls[i].call()
		if c.ExternalID == "" {
			cost := int64(-1)
			if c.CostNanoUSD != nil {
				cost = *c.CostNanoUSD
			}
			says := []any{
				c.Day, c.CreatedAt.SQL(), c.Source, c.Provider, c.Model, c.Purpose, c.Status, c.Error, c.Directory,
				c.InputTokens, c.CacheReadTokens, c.CacheWriteTokens, c.CacheWrite1h, c.OutputTokens, c.ReasoningTokens, cost,
			}
			same := fmt.Sprintf("%q", says)
			r.calls[same]++
			here, err := engine.Get[int](r.Ctx, r, equalCalls, says...)
			if err != nil {
				return err
			}
			if here >= r.before[same]+r.calls[same] {
				continue
			}
		}
		if err := r.addCall(&c, nil); err != nil {
			return err
		}
		if c.RowID != 0 {
			r.res.Calls++
			r.changed = true
		}
	}
	return nil
}

const equalCalls = `SELECT COUNT(*) FROM calls WHERE session_id = '' AND external_id = '' AND day = ? AND created_at = ? AND source = ?
	AND provider = ? AND model = ? AND purpose = ? AND status = ? AND error = ? AND directory = ? AND input_tokens = ? AND cache_read_tokens = ?
	AND cache_write_tokens = ? AND cache_write_1h_tokens = ? AND output_tokens = ? AND reasoning_tokens = ? AND COALESCE(cost_nanousd, -1) = ?`

// check refuses what cannot be stored.
func (d *StoreData) check() error {
	var days []string
	for _, p := range d.PurgedSources {
		if sum, err := hex.DecodeString(p.IDHash); err != nil || len(sum) != sha256.Size {
			return session.Errorf(session.Invalid, "a purged source has the id_hash %.70q: it is no SHA-256", p.IDHash)
		}
	}
	for _, p := range d.PurgedDays {
		days = append(days, p.Day)
	}
	for _, day := range d.SessionDays {
		if days = append(days, day.Day); day.Last < 1 {
			return session.Errorf(session.Invalid, "the newest session of %s has the number %d", day.Day, day.Last)
		}
	}
	for _, c := range d.Calibrations {
		if c.Scale <= 0 || c.Weight < 0 {
			return session.Errorf(session.Invalid, "the calibration of model %.70q has the scale %g and the weight %g", c.Model,
				c.Scale, c.Weight)
		}
	}
	for i := range d.Calls {
		days = append(days, d.Calls[i].Day)
	}
	for _, day := range days {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return session.Errorf(session.Invalid, "%.70q is no day: it looks like 2026-02-11", day)
		}
	}
	return checkStorable(textsOf(d))
}
