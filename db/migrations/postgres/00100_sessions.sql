-- +goose Up
-- The schema on PostgreSQL 15 or later: the tables, columns and views of the SQLite files with the same numbers.
-- TEXT is text, INTEGER bigint, REAL double precision, BLOB bytea, a time timestamptz. JSON that must come
-- back as it came is json, because jsonb sorts names and drops repeated ones. Booleans stay 0 and 1.
-- docs/schema.md describes every column.

-- The file itself: one row.
CREATE TABLE store (
    id                bigint PRIMARY KEY CHECK (id = 1),
    epoch             text NOT NULL, -- made once for this file: event ids begin with it
    created_at        timestamptz NOT NULL,
    unscrubbed_at     timestamptz, -- since when the file may hold bytes of purged sessions outside of its tables; NULL: it holds none
    events_removed_id bigint NOT NULL DEFAULT 0 -- events up to this one were removed for their age
);

-- The numbers of session ids, YYYYMMDD_NNN.
CREATE TABLE session_days (
    day  text PRIMARY KEY,
    last bigint NOT NULL -- the highest number ever given on that day
);

-- A row is a conversation. A list of three and more values in a CHECK makes SQLite build a table for
-- each statement that checks it, so the lists of sessions, messages, parts and calls are spelt with OR.
CREATE TABLE sessions (
    id                 text NOT NULL PRIMARY KEY,
    day                text NOT NULL,
    title              text NOT NULL DEFAULT '',
    title_source       text NOT NULL DEFAULT '' CHECK (title_source = '' OR title_source = 'given' OR title_source = 'first_message' OR title_source = 'model' OR title_source = 'source'),
    kind               text NOT NULL DEFAULT 'chat' CHECK (kind = 'chat' OR kind = 'subagent' OR kind = 'cron' OR kind = 'hook' OR kind = 'other'),
    draft              bigint NOT NULL DEFAULT 0 CHECK (draft IN (0, 1)),
    settings           json,
    key                text NOT NULL DEFAULT '',
    generation         bigint NOT NULL DEFAULT 0,
    source             text NOT NULL DEFAULT 'sessiond',
    source_id          text NOT NULL DEFAULT '',
    directory          text NOT NULL DEFAULT '',
    project            text NOT NULL DEFAULT '',
    git_branch         text NOT NULL DEFAULT '',
    provider           text NOT NULL DEFAULT '',
    model              text NOT NULL DEFAULT '',
    "window"             bigint CHECK ("window" > 0),
    parent_id          text NOT NULL DEFAULT '',
    parent_kind        text NOT NULL DEFAULT '' CHECK (parent_kind = '' OR parent_kind = 'fork' OR parent_kind = 'child'),
    head_id            bigint,
    last_seq           bigint NOT NULL DEFAULT 0,
    compaction_id      bigint,
    epoch              bigint NOT NULL DEFAULT 0,
    revision           bigint NOT NULL DEFAULT 1,
    message_count      bigint NOT NULL DEFAULT 0,
    total_tokens       bigint NOT NULL DEFAULT 0,
    context_tokens     bigint NOT NULL DEFAULT 0,
    compaction_count   bigint NOT NULL DEFAULT 0,
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    cost_nanousd       bigint,
    cost_usd           double precision GENERATED ALWAYS AS (cost_nanousd / 1e9::double precision) STORED,
    unpriced_calls     bigint NOT NULL DEFAULT 0,
    turn_origin        text NOT NULL DEFAULT '',
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    active_at          timestamptz NOT NULL,
    inbound_at         timestamptz,
    archived_at        timestamptz,
    deleted_at         timestamptz,
    ended_at           timestamptz,
    end_reason         text NOT NULL DEFAULT '' CHECK (end_reason = '' OR end_reason = 'daily' OR end_reason = 'idle' OR end_reason = 'command' OR end_reason = 'rpc' OR end_reason = 'run' OR end_reason = 'overflow' OR end_reason = 'role_order' OR end_reason = 'corrupt'),
    metadata           json NOT NULL DEFAULT '{}',
    rowid              bigint GENERATED ALWAYS AS IDENTITY, -- the order of creation; SQLite has it without a column
    purged_at          timestamptz -- nothing shows the session any more; its row stays while forks share its messages
);

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
    session_id    text NOT NULL PRIMARY KEY,
    message_id    bigint,                     -- of a fork: where it leaves; of a child: what started it; NULL: nothing is shared, or it is not known
    call_id       text NOT NULL DEFAULT '',    -- of a child: the call of that message that started it
    root_id       text NOT NULL DEFAULT '',    -- of a fork: the session that the family of forks began with
    number        bigint NOT NULL DEFAULT 0,  -- of a fork: which one of its family it is
    compaction_id bigint NOT NULL DEFAULT 0,  -- of a fork: the newest record that it inherits
    activated_at  text NOT NULL DEFAULT '',    -- of a fork: when the newest overlay that it inherits took effect
    frozen_id     bigint NOT NULL DEFAULT 0   -- of a fork: the newest frozen text that it inherits
);

CREATE INDEX links_family ON links (root_id, number) WHERE root_id <> '';

-- What belongs to a routing key and not to one of its generations. A key has a row once somebody
-- labels it; sessions.key finds its sessions.
CREATE TABLE keys (
    key        text NOT NULL PRIMARY KEY,
    label      text NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL
);

CREATE UNIQUE INDEX keys_label ON keys (label) WHERE label <> '';

-- refuse stops a change; its argument says why.
-- +goose StatementBegin
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION sessions_no_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM messages WHERE session_id = OLD.id)
       AND NOT EXISTS (SELECT 1 FROM purging WHERE session_id = OLD.id) THEN
        RAISE EXCEPTION 'sessions: only a purge deletes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd

CREATE TRIGGER sessions_keep_names BEFORE UPDATE OF id ON sessions FOR EACH ROW WHEN (NEW.id <> OLD.id)
    EXECUTE FUNCTION refuse('sessions: an id is for ever, and a source''s id names one session');
CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION sessions_no_delete();
