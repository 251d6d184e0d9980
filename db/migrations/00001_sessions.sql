-- +goose Up
-- Conventions, here and in all later files: times are TEXT 'YYYY-MM-DD HH:MM:SS.SSS' in UTC;
-- day is the service's local day, YYYY-MM-DD; text that is not known is '', a number or a
-- time that is not known is NULL; booleans are 0 and 1; money is nano-dollars.

CREATE TABLE store (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    epoch      TEXT NOT NULL, -- made once for this file: event ids begin with it
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE session_days (
    day  TEXT PRIMARY KEY,
    last INTEGER NOT NULL -- the highest number ever given on that day
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id                 TEXT NOT NULL PRIMARY KEY,
    day                TEXT NOT NULL,
    title              TEXT NOT NULL DEFAULT '',
    title_source       TEXT NOT NULL DEFAULT '' CHECK (title_source IN ('', 'given', 'first_message', 'model', 'source')),
    kind               TEXT NOT NULL DEFAULT 'chat' CHECK (kind IN ('chat', 'subagent', 'cron', 'hook', 'other')),
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
    parent_kind        TEXT NOT NULL DEFAULT '' CHECK (parent_kind IN ('', 'fork', 'child')),
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
    end_reason         TEXT NOT NULL DEFAULT '' CHECK (end_reason IN ('', 'daily', 'idle', 'command', 'rpc', 'run', 'overflow', 'role_order', 'corrupt')),
    metadata           TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata))
) STRICT;

-- The program's id first: a person who names a session does not say the program.
CREATE UNIQUE INDEX sessions_source ON sessions (source_id, source) WHERE source_id <> '';
CREATE INDEX sessions_active ON sessions (active_at, id);
CREATE INDEX sessions_key ON sessions (key, generation) WHERE key <> '';
CREATE INDEX sessions_parent ON sessions (parent_id) WHERE parent_id <> '';
CREATE INDEX sessions_drafts ON sessions (created_at) WHERE draft = 1;

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
