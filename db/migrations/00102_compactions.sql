-- +goose Up
-- A row says that a prefix of a path is represented by a summary, or pruned, truncated, cleared.
CREATE TABLE compactions (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id     TEXT NOT NULL REFERENCES sessions (id),
    previous_id    INTEGER,
    strategy       TEXT NOT NULL CHECK (strategy IN ('summarize', 'prune', 'truncate', 'clear')),
    trigger        TEXT NOT NULL CHECK (trigger IN ('threshold', 'overflow', 'manual', 'import')),
    status         TEXT NOT NULL CHECK (status IN ('running', 'staged', 'done', 'failed', 'skipped')),
    reason         TEXT NOT NULL DEFAULT '',
    through_id     INTEGER,
    first_kept_id  INTEGER,
    hidden_tokens  INTEGER NOT NULL DEFAULT 0,
    summary_tokens INTEGER NOT NULL DEFAULT 0,
    span_summary   TEXT NOT NULL DEFAULT '',
    summary        TEXT NOT NULL DEFAULT '',
    prefix_summary TEXT NOT NULL DEFAULT '',
    replacement    TEXT CHECK (replacement IS NULL OR json_valid(replacement)),
    details        TEXT CHECK (details IS NULL OR json_valid(details)),
    tokens_before  INTEGER NOT NULL DEFAULT 0,
    tokens_after   INTEGER NOT NULL DEFAULT 0,
    message_count  INTEGER NOT NULL DEFAULT 0,
    provider       TEXT NOT NULL DEFAULT '',
    model          TEXT NOT NULL DEFAULT '',
    duration_ms    INTEGER NOT NULL DEFAULT 0,
    created_at     TEXT NOT NULL,
    activated_at   TEXT
) STRICT;

CREATE INDEX compactions_session ON compactions (session_id, id);

-- A compaction that a row names is not in force in the session.
CREATE TABLE compaction_undos (
    session_id    TEXT NOT NULL,
    compaction_id INTEGER NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (session_id, compaction_id)
) STRICT, WITHOUT ROWID;

-- What was put into a context beside its messages, so that it stays there.
CREATE TABLE frozen (
    id            INTEGER PRIMARY KEY,
    session_id    TEXT NOT NULL,
    message_id    INTEGER NOT NULL, -- the message that it stands with
    kind          TEXT NOT NULL CHECK (kind IN ('recall', 'volatile', 'closed_call')),
    compaction_id INTEGER,          -- of a recall: the overlay it was made for
    content       TEXT NOT NULL CHECK (json_valid(content)),
    UNIQUE (session_id, message_id, kind)
) STRICT;

-- The caller's own blocks of contexts, each content once.
CREATE TABLE blocks (
    hash       TEXT NOT NULL PRIMARY KEY, -- lower-case hex sha-256 of content
    kind       TEXT NOT NULL CHECK (kind IN ('system', 'initial', 'tools')),
    content    TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

-- A row is a context that was handed out.
CREATE TABLE contexts (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id      TEXT NOT NULL,
    head_id         INTEGER,
    compaction_id   INTEGER,
    epoch           INTEGER NOT NULL,
    model           TEXT NOT NULL DEFAULT '',
    dialect         TEXT NOT NULL DEFAULT '',
    system_hash     TEXT NOT NULL DEFAULT '',
    initial_hash    TEXT NOT NULL DEFAULT '',
    tools_hash      TEXT NOT NULL DEFAULT '',
    overhead_tokens INTEGER NOT NULL DEFAULT 0,
    tokens          INTEGER NOT NULL,
    created_at      TEXT NOT NULL,
    limits          TEXT -- which parts were shortened, so that the next context shortens them alike
) STRICT;

CREATE INDEX contexts_session ON contexts (session_id, id);

-- Memory flushes that an agent was asked for.
CREATE TABLE flushes (
    session_id    TEXT NOT NULL,
    compaction_id INTEGER NOT NULL DEFAULT 0, -- the overlay generation; 0 before the first
    at            TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    PRIMARY KEY (session_id, compaction_id)
) STRICT, WITHOUT ROWID;
