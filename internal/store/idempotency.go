package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

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

// recall gives the outcome of an earlier request with this key, nil for a first one.
// Codes: Invalid when the body was another.
func (t *tx) recall(i *Idempotency) (*outcome, error) {
	var o outcome
	err := t.get(t.ctx, &o, `SELECT body_hash, status, session_id, message_id, n, object_id, revision, head_id,
		compaction_id, context_tokens FROM idempotency_keys WHERE key_hash = ?`, keyHash(i))
	if noRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if o.BodyHash != hash(i.Body) {
		return nil, session.Errorf(session.Invalid, "this Idempotency-Key was used on %s with another body: a retry must send the same bytes, a new request a new key", i.Route)
	}
	return &o, nil
}

func (t *tx) remember(i *Idempotency, o outcome) error {
	_, err := t.exec(`INSERT INTO idempotency_keys (key_hash, body_hash, route, status, session_id, message_id, n,
		object_id, revision, head_id, compaction_id, context_tokens, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		keyHash(i), hash(i.Body), i.Route, o.Status, o.SessionID, o.MessageID, o.N,
		o.ObjectID, o.Revision, o.HeadID, o.CompactionID, o.ContextTokens, t.now)
	return err
}

func keyHash(i *Idempotency) string { return hash([]byte(i.Route + "\x00" + i.Key)) }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ReplayedCompaction gives the record that an earlier request with this key made, nil for a
// first one. Codes: Invalid when the body was another.
func (s *Store) ReplayedCompaction(ctx context.Context, i *Idempotency) (*session.Compaction, error) {
	var c *session.Compaction
	err := s.write(ctx, func(t *tx) (err error) {
		c, err = t.replayedCompaction(i)
		return err
	})
	return c, err
}

func (t *tx) replayedCompaction(i *Idempotency) (*session.Compaction, error) {
	earlier, err := t.recall(i)
	if err != nil || earlier == nil {
		return nil, err
	}
	id, err := session.ParseName("cmp", earlier.ObjectID)
	if err != nil {
		return nil, err
	}
	c, err := readCompaction(t.ctx, t, id)
	return &c, err
}

// replayedCall gives the call that an earlier request with this key recorded.
func (t *tx) replayedCall(i *Idempotency) (*session.Call, error) {
	earlier, err := t.recall(i)
	if err != nil || earlier == nil {
		return nil, err
	}
	id, err := session.ParseName("call", earlier.ObjectID)
	if err != nil {
		return nil, err
	}
	var c session.Call
	err = t.get(t.ctx, &c, `SELECT `+callColumns+` FROM calls WHERE id = ?`, id)
	return &c, err
}
