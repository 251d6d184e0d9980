package store

import (
	"crypto/sha256"
	"encoding/hex"

	"sessiond/internal/session"
)

// Idempotency identifies a request, so that a retry answers the same and writes nothing.
type Idempotency struct {
	Key   string // the caller's Idempotency-Key
	Route string // method and path: the same key on another route is another request
	Body  []byte
}

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
		compaction_id, context_tokens FROM idempotency_keys WHERE key_hash = ?`, i.keyHash())
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
		i.keyHash(), hash(i.Body), i.Route, o.Status, o.SessionID, o.MessageID, o.N,
		o.ObjectID, o.Revision, o.HeadID, o.CompactionID, o.ContextTokens, t.now)
	return err
}

func (i *Idempotency) keyHash() string { return hash([]byte(i.Route + "\x00" + i.Key)) }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
