-- +goose Up
-- What belongs to a routing key and not to one of its generations. A key has a row here once
-- somebody gave it a label; its sessions are found by sessions.key.
CREATE TABLE keys (
    key        TEXT NOT NULL PRIMARY KEY,
    label      TEXT NOT NULL DEFAULT '',
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX keys_label ON keys (label) WHERE label <> '';

-- Sessions that were made with a key before there were generations: in order of time, the
-- newest goes on.
UPDATE sessions SET
    generation = (SELECT COUNT(*) FROM sessions b WHERE b.key = sessions.key AND (b.created_at, b.id) <= (sessions.created_at, sessions.id)),
    ended_at = CASE WHEN EXISTS (SELECT 1 FROM sessions b WHERE b.key = sessions.key AND (b.created_at, b.id) > (sessions.created_at, sessions.id)) THEN COALESCE(ended_at, updated_at) END,
    end_reason = CASE WHEN EXISTS (SELECT 1 FROM sessions b WHERE b.key = sessions.key AND (b.created_at, b.id) > (sessions.created_at, sessions.id)) THEN CASE end_reason WHEN '' THEN 'rpc' ELSE end_reason END ELSE '' END
WHERE key <> '' AND generation = 0 AND source = 'sessiond';

-- The current generation of each key, newest active first.
CREATE INDEX sessions_current ON sessions (active_at, id) WHERE key <> '' AND generation > 0 AND ended_at IS NULL;
