package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Key is a routing key with its current generation.
type Key struct {
	Label   string // given by a person, unique; "": none
	Session session.Session
}

// KeyFilter says which keys are listed. Zero fields do not filter.
type KeyFilter struct {
	Query string        // part of the key, the label, the title, the session's id or a name in its metadata; without case
	Since *session.Time // active at or after
	All   bool          // also the keys that name no conversation: global, unknown
}

// Keys lists the keys that have a current generation, newest active first. next is "" at the
// end. Codes: Invalid (cursor).
func (s *Store) Keys(ctx context.Context, f KeyFilter, p Page) (data []Key, next string, err error) {
	c := conditions{where: []string{
		"s.key <> ''", "s.generation > 0", "s.ended_at IS NULL", "s.deleted_at IS NULL",
		"s.draft = 0",
	}}
	if !f.All {
		c.add("s.key NOT IN ('global', 'unknown')")
	}
	if f.Since != nil {
		c.add("s.active_at >= ?", *f.Since)
	}
	c.contains(f.Query, "s.key", "k.label", "s.title", "s.id",
		"json_extract(s.metadata, '$.displayName')", "json_extract(s.metadata, '$.subject')",
		"json_extract(s.metadata, '$.label')")
	clauses, args, err := c.within(ctx).page(p)
	if err != nil {
		return nil, "", err
	}
	query := `SELECT COALESCE(k.label, '') AS label, ` + sessionColumns + `
		FROM sessions s INDEXED BY sessions_current LEFT JOIN messages h ON h.id = s.head_id LEFT JOIN keys k ON k.key = s.key ` + clauses
	type labelled struct {
		Label string `db:"label"`
		session.Session
	}
	if err := engine.Each(ctx, s, func(k *labelled) error {
		data = append(data, Key{k.Label, k.Session})
		return nil
	}, query, args...); err != nil {
		return nil, "", fmt.Errorf("list keys: %w", err)
	}
	data, next = endPage(data, p, func(k *Key) *session.Session { return &k.Session })
	return data, next, nil
}

// Generations lists the sessions of a key, the newest first, those in the trash left out.
// next is "" at the end. Codes: NotFound (nothing ever came in at the key), Invalid (cursor).
func (s *Store) Generations(ctx context.Context, key string,
	p Page,
) (label string, data []session.Session, next string, err error) {
	cmp, dir := p.order()
	in, scoped := scopeOf(ctx)
	query, args := `SELECT `+sessionColumns+fromSessions+`WHERE s.key = ? AND s.key <> '' AND s.deleted_at IS NULL`+in,
		append([]any{key}, scoped...)
	_, id, err := p.after()
	if err != nil {
		return "", nil, "", err
	}
	if id != "" {
		query += ` AND (s.generation, s.rowid) ` + cmp + ` (SELECT generation, rowid FROM sessions WHERE id = ?)`
		args = append(args, id)
	}
	query += ` ORDER BY s.generation ` + dir + `, s.rowid ` + dir + ` LIMIT +?`
	if data, err = readSessions(ctx, s, query, append(args, p.limit()+1)...); err != nil {
		return "", nil, "", fmt.Errorf("generations of %q: %w", key, err)
	}
	if len(data) == 0 && p.Cursor == "" {
		return "", nil, "", session.Errorf(session.NotFound,
			"nothing ever came in at key %q: GET /v1/keys and `sessiond keys` list those that are known", key)
	}
	if len(data) == 0 { // whoever sees none of the sessions does not see the label
		return "", nil, "", nil
	}
	data, next = endPage(data, p, func(s *session.Session) *session.Session { return s })
	if label, err = engine.Get[string](ctx, s, `SELECT label FROM keys WHERE key = ?`, key); err != nil &&
		!engine.NoRows(err) {
		return "", nil, "", fmt.Errorf("label of %q: %w", key, err)
	}
	return label, data, next, nil
}

// SetKeyLabel names a key; "" takes the name away. Codes: NotFound, Conflict (another key has it).
func (s *Store) SetKeyLabel(ctx context.Context, key, label string) error {
	if err := checkStorable([]field{{"label", label}}); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		sess, err := engine.First[session.Session](t.Ctx, t, lastGeneration, key)
		if err != nil {
			return err
		}
		if sess == nil || !visible(t.Ctx, sess) {
			return session.Errorf(session.NotFound, "nothing ever came in at key %q", key)
		}
		other, err := engine.Get[string](t.Ctx, t, `SELECT key FROM keys WHERE label = ? AND label <> ''`, label)
		switch {
		case err == nil && other == key:
			return nil
		case err == nil:
			if _, limited := session.ScopeOf(t.Ctx); limited { // it may be another owner's
				return session.Errorf(session.Conflict,
					"another key has the label %q already: a label names one key, choose another", label).At("label", "taken")
			}
			return session.Errorf(session.Conflict, "key %s has the label %q already: a label names one key", other,
				label).At("label", "taken")
		case !engine.NoRows(err):
			return err
		}
		if err := t.Exec(`INSERT INTO keys (key, label, updated_at) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET label = excluded.label, updated_at = excluded.updated_at`, key, label, t.Now); err != nil {
			return fmt.Errorf("label the key: %w", err)
		}
		return t.event(sess.ID, EventSessionChanged, 0, nil)
	})
}
