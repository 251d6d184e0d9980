package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Idempotency identifies a request that may be sent again.
type Idempotency = session.Idempotency

// outcome is what is remembered of a request: enough to build its answer again, and none
// of its content.
type outcome struct {
	BodyHash      string `db:"body_hash"`
	Status        int    `db:"status"`
	SessionID     string `db:"session_id"`
	MessageID     *int64 `db:"message_id"`
	N             int64  `db:"n"`
	ObjectID      string `db:"object_id"`
	Revision      int64  `db:"revision"`
	HeadID        *int64 `db:"head_id"`
	CompactionID  *int64 `db:"compaction_id"`
	ContextTokens int64  `db:"context_tokens"`
}

// writeOnce is write for a request that may be sent again: it keeps the outcome of do under the key,
// and runs replay with it instead when the request is repeated. A request without a key is never a
// repeated one, and an outcome without a status is not kept. Codes: Invalid (the key was used with
// another body).
func writeOnce[T any](ctx context.Context, s *Store, key *Idempotency, replay func(*tx, *outcome) (T, error),
	do func(*tx) (T, outcome, error),
) (T, error) {
	return write(ctx, s, func(t *tx) (T, error) {
		earlier, err := findOutcome(t.Ctx, t, key)
		if err != nil {
			return *new(T), err
		}
		if earlier != nil {
			return replay(t, earlier)
		}
		out, o, err := do(t)
		if err != nil || key == nil || o.Status == 0 {
			return out, err
		}
		return out, t.keepOutcome(key, o)
	})
}

// IsRepeated reports whether a request with this key was done before: a write with it answers the same again. Codes:
// Invalid (the body was another).
func (s *Store) IsRepeated(ctx context.Context, key *Idempotency) (bool, error) {
	earlier, err := findOutcome(ctx, s, key)
	return earlier != nil, err
}

// findOutcome returns the outcome of an earlier request with this key, nil for a first one.
// Codes: Invalid (the body was another).
func findOutcome(ctx context.Context, q engine.Queryer, i *Idempotency) (*outcome, error) {
	if i == nil {
		return nil, nil
	}
	o, err := engine.First[outcome](ctx, q, `SELECT body_hash, status, session_id, message_id, n, object_id, revision, head_id,
		compaction_id, context_tokens FROM idempotency_keys WHERE key_hash = ?`, keyHash(i))
	if err != nil || o == nil {
		return nil, err
	}
	if o.BodyHash != hash(i.Body) {
		return nil, session.Errorf(session.Invalid,
			"this Idempotency-Key was used on %s with another body: a retry must send the same bytes, a new request a new key",
			i.Route)
	}
	return o, nil
}

func (t *tx) keepOutcome(i *Idempotency, o outcome) error {
	return t.Exec(`INSERT INTO idempotency_keys (key_hash, body_hash, route, status, session_id, message_id, n,
		object_id, revision, head_id, compaction_id, context_tokens, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		keyHash(i), hash(i.Body), i.Route, o.Status, o.SessionID, o.MessageID, o.N,
		o.ObjectID, o.Revision, o.HeadID, o.CompactionID, o.ContextTokens, t.Now)
}

func keyHash(i *Idempotency) string { return hash([]byte(i.Route + "\x00" + i.Key)) }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ReplayedCompaction returns the record that an earlier request with this key made, nil for a
// first one. Codes: Invalid when the body was another.
func (s *Store) ReplayedCompaction(ctx context.Context, i *Idempotency) (*session.Compaction, error) {
	return write(ctx, s, func(t *tx) (*session.Compaction, error) {
		earlier, err := findOutcome(t.Ctx, t, i)
		if err != nil || earlier == nil {
			return nil, err
		}
		c, err := t.replayCompaction(earlier)
		return &c, err
	})
}

func (t *tx) replayCompaction(o *outcome) (session.Compaction, error) {
	id, err := session.ParseName("cmp", o.ObjectID)
	if err != nil {
		return session.Compaction{}, err
	}
	return readCompaction(t.Ctx, t, id)
}

func (t *tx) replayCall(o *outcome) (session.Call, error) {
	id, err := session.ParseName("call", o.ObjectID)
	if err != nil {
		return session.Call{}, err
	}
	return engine.Get[session.Call](t.Ctx, t, `SELECT `+callColumns+` FROM calls WHERE id = ?`, id)
}

// replaySession reads the session that an earlier request made or changed, as it is now.
func (t *tx) replaySession(o *outcome) (session.Session, error) {
	return readSession(t.Ctx, t, session.ID(o.SessionID))
}
