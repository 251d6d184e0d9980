-- +goose Up
-- Conventions of all files: times are TEXT 'YYYY-MM-DD HH:MM:SS.SSS' in UTC; day is the service's
-- local day, YYYY-MM-DD; an unknown text is '', an unknown number or time is NULL; booleans are 0
-- and 1; money is nano-dollars. docs/schema.md describes every column. 00100 is the baseline of
-- version 0.1.0: from here on migrations are append-only.

-- The file itself: one row.
CREATE TABLE store (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    epoch             TEXT NOT NULL, -- made once for this file: event ids begin with it
    created_at        TEXT NOT NULL,
    unscrubbed_at     TEXT, -- since when the file may hold bytes of purged sessions outside of its tables; NULL: it holds none
    events_removed_id INTEGER NOT NULL DEFAULT 0 -- events up to this one were removed for their age
) STRICT;

-- The numbers of session ids, YYYYMMDD_NNN.
CREATE TABLE session_days (
    day  TEXT PRIMARY KEY,
    last INTEGER NOT NULL -- the highest number ever given on that day
) STRICT, WITHOUT ROWID;

-- A row is a conversation. A list of three and more values in a CHECK makes SQLite build a table for
-- each statement that checks it, so the lists of sessions, messages, parts and calls are spelt with OR.
CREATE TABLE sessions (
    id                 TEXT NOT NULL PRIMARY KEY,
    day                TEXT NOT NULL,
    title              TEXT NOT NULL DEFAULT '',
    title_source       TEXT NOT NULL DEFAULT '' CHECK (title_source = '' OR title_source = 'given' OR title_source = 'first_message' OR title_source = 'model' OR title_source = 'source'),
    kind               TEXT NOT NULL DEFAULT 'chat' CHECK (kind = 'chat' OR kind = 'subagent' OR kind = 'cron' OR kind = 'hook' OR kind = 'other'),
    draft              INTEGER NOT NULL DEFAULT 0 CHECK (draft IN (0, 1)),
    settings           TEXT CHECK (settings IS NULL OR json_valid(settings)),
    key                TEXT NOT NULL DEFAULT '',
    generation         INTEGER NOT NULL DEFAULT 0,
    source             TEXT NOT NULL DEFAULT 'sessiond',
    source_id          TEXT NOT NULL DEFAULT '',
    directory          TEXT NOT NULL DEFAULT '',
    project            TEXT NOT NULL DEFAULT '',
    git_branch         TEXT NOT NULL DEFAULT '',
    provider           TEXT NOT NULL DEFAULT '',
    model              TEXT NOT NULL DEFAULT '',
    window             INTEGER CHECK (window > 0),
    parent_id          TEXT NOT NULL DEFAULT '',
    parent_kind        TEXT NOT NULL DEFAULT '' CHECK (parent_kind = '' OR parent_kind = 'fork' OR parent_kind = 'child'),
    head_id            INTEGER,
    last_seq           INTEGER NOT NULL DEFAULT 0,
    compaction_id      INTEGER,
    epoch              INTEGER NOT NULL DEFAULT 0,
    revision           INTEGER NOT NULL DEFAULT 1,
    message_count      INTEGER NOT NULL DEFAULT 0,
    total_tokens       INTEGER NOT NULL DEFAULT 0,
    context_tokens     INTEGER NOT NULL DEFAULT 0,
    compaction_count   INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cost_nanousd       INTEGER,
    cost_usd           REAL GENERATED ALWAYS AS (cost_nanousd / 1e9) VIRTUAL,
    unpriced_calls     INTEGER NOT NULL DEFAULT 0,
    turn_origin        TEXT NOT NULL DEFAULT '',
    created_at         TEXT NOT NULL,
    updated_at         TEXT NOT NULL,
    active_at          TEXT NOT NULL,
    inbound_at         TEXT,
    archived_at        TEXT,
    deleted_at         TEXT,
    ended_at           TEXT,
    end_reason         TEXT NOT NULL DEFAULT '' CHECK (end_reason = '' OR end_reason = 'daily' OR end_reason = 'idle' OR end_reason = 'command' OR end_reason = 'rpc' OR end_reason = 'run' OR end_reason = 'overflow' OR end_reason = 'role_order' OR end_reason = 'corrupt'),
    metadata           TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    purged_at          TEXT -- nothing shows the session any more; its row stays while forks share its messages
) STRICT;

-- The program's id comes first: a person who names a session does not say the program.
CREATE UNIQUE INDEX sessions_source ON sessions (source_id, source) WHERE source_id <> '';
CREATE INDEX sessions_active ON sessions (active_at, id);
CREATE INDEX sessions_key ON sessions (key, generation) WHERE key <> '';
-- The current generation of each routing key, newest active first.
CREATE INDEX sessions_current ON sessions (active_at, id) WHERE key <> '' AND generation > 0 AND ended_at IS NULL;
CREATE INDEX sessions_parent ON sessions (parent_id) WHERE parent_id <> '';
CREATE INDEX sessions_drafts ON sessions (created_at) WHERE draft = 1;

-- How a session hangs on its parent_id. A fork shares the path to message_id and inherits what its
-- ancestors had put in force until then, and nothing later.
CREATE TABLE links (
    session_id    TEXT NOT NULL PRIMARY KEY,
    message_id    INTEGER,                     -- of a fork: where it leaves; of a child: what started it; NULL: nothing is shared, or it is not known
    call_id       TEXT NOT NULL DEFAULT '',    -- of a child: the call of that message that started it
    root_id       TEXT NOT NULL DEFAULT '',    -- of a fork: the session that the family of forks began with
    number        INTEGER NOT NULL DEFAULT 0,  -- of a fork: which one of its family it is
    compaction_id INTEGER NOT NULL DEFAULT 0,  -- of a fork: the newest record that it inherits
    activated_at  TEXT NOT NULL DEFAULT '',    -- of a fork: when the newest overlay that it inherits took effect
    frozen_id     INTEGER NOT NULL DEFAULT 0   -- of a fork: the newest frozen text that it inherits
) STRICT, WITHOUT ROWID;

CREATE INDEX links_family ON links (root_id, number) WHERE root_id <> '';

-- What belongs to a routing key and not to one of its generations. A key has a row once somebody
-- labels it; sessions.key finds its sessions.
CREATE TABLE keys (
    key        TEXT NOT NULL PRIMARY KEY,
    label      TEXT NOT NULL DEFAULT '',
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX keys_label ON keys (label) WHERE label <> '';

-- A session's id and its source's id never name another session; INSERT OR REPLACE goes around
-- update and delete triggers, so an insert trigger stops it.
-- +goose StatementBegin
CREATE TRIGGER sessions_no_replace BEFORE INSERT ON sessions
WHEN EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM sessions WHERE source_id = NEW.source_id AND source = NEW.source AND source_id <> '')
BEGIN
    SELECT RAISE(ABORT, 'sessions: this session exists; a session is never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sessions_keep_names BEFORE UPDATE OF id, source, source_id ON sessions
WHEN NEW.id <> OLD.id
  OR EXISTS (SELECT 1 FROM sessions WHERE source_id = NEW.source_id AND source = NEW.source AND source_id <> '' AND id <> OLD.id)
BEGIN
    SELECT RAISE(ABORT, 'sessions: an id is for ever, and a source''s id names one session');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions
WHEN EXISTS (SELECT 1 FROM messages WHERE session_id = OLD.id)
 AND NOT EXISTS (SELECT 1 FROM purging WHERE session_id = OLD.id)
BEGIN
    SELECT RAISE(ABORT, 'sessions: only a purge deletes');
END;
-- +goose StatementEnd
