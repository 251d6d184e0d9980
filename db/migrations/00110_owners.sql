-- +goose Up
-- Whose a session is, and on which host it began.
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''; -- '': the person who runs the daemon
ALTER TABLE sessions ADD COLUMN host TEXT NOT NULL DEFAULT '';

CREATE INDEX sessions_owner ON sessions (owner, active_at, id) WHERE owner <> '';

-- Tokens that see and write the sessions of one owner. The daemon's own token is in a file.
CREATE TABLE tokens (
    name       TEXT NOT NULL PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,            -- lower-case hex sha-256 of the token
    owner      TEXT NOT NULL CHECK (owner <> ''),
    source     TEXT NOT NULL DEFAULT '',        -- only sessions of this program; '': of any
    key_prefix TEXT NOT NULL DEFAULT '',        -- only sessions whose routing key begins so
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
