-- +goose Up
-- Keys are random, and a row of one is wide: kept in the order of keys, each went to a page of its
-- own and split one in seven times. In the order of arrival they are appended; only the index
-- is random. The oldest are the first, so that finding them takes no index.
CREATE TABLE answered (
    id             INTEGER PRIMARY KEY,
    key_hash       TEXT NOT NULL UNIQUE, -- of the key and the route
    body_hash      TEXT NOT NULL,
    route          TEXT NOT NULL,
    status         INTEGER NOT NULL,
    session_id     TEXT NOT NULL DEFAULT '',
    message_id     INTEGER, -- the first message of an append
    n              INTEGER NOT NULL DEFAULT 0,
    object_id      TEXT NOT NULL DEFAULT '',
    revision       INTEGER NOT NULL DEFAULT 0,
    head_id        INTEGER,
    compaction_id  INTEGER,
    context_id     INTEGER,
    context_tokens INTEGER NOT NULL DEFAULT 0,
    created_at     TEXT NOT NULL
) STRICT;

INSERT INTO answered (key_hash, body_hash, route, status, session_id, message_id, n, object_id, revision, head_id,
    compaction_id, context_id, context_tokens, created_at)
SELECT key_hash, body_hash, route, status, session_id, message_id, n, object_id, revision, head_id,
    compaction_id, context_id, context_tokens, created_at
FROM idempotency_keys ORDER BY created_at;

DROP TABLE idempotency_keys;
ALTER TABLE answered RENAME TO idempotency_keys;
