-- +goose Up
-- A row is a call of a model: the usage ledger.
CREATE TABLE calls (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT NOT NULL DEFAULT '',
    message_id         INTEGER,
    compaction_id      INTEGER,
    context_id         INTEGER,
    purpose            TEXT NOT NULL CHECK (purpose = 'chat' OR purpose = 'summary' OR purpose = 'title' OR purpose = 'branch_summary' OR purpose = 'tool' OR purpose = 'other'),
    status             TEXT NOT NULL DEFAULT 'ok' CHECK (status IN ('ok', 'failed')),
    error              TEXT NOT NULL DEFAULT '',
    provider           TEXT NOT NULL DEFAULT '',
    model              TEXT NOT NULL DEFAULT '',
    source             TEXT NOT NULL DEFAULT 'sessiond',
    external_id        TEXT NOT NULL DEFAULT '', -- what makes it one call, wherever it is seen again
    directory          TEXT NOT NULL DEFAULT '',
    day                TEXT NOT NULL,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    cost_nanousd       INTEGER,
    cost_usd           REAL GENERATED ALWAYS AS (cost_nanousd / 1e9) VIRTUAL,
    price_source       TEXT NOT NULL DEFAULT '' CHECK (price_source = '' OR price_source = 'reported' OR price_source = 'catalogue' OR price_source = 'override'),
    latency_ms         INTEGER,
    created_at         TEXT NOT NULL,
    metadata           TEXT CHECK (metadata IS NULL OR json_valid(metadata))
) STRICT;

CREATE UNIQUE INDEX calls_external ON calls (source, external_id) WHERE external_id <> '';
CREATE INDEX calls_day ON calls (day);
CREATE INDEX calls_session ON calls (session_id, id) WHERE session_id <> '';
CREATE INDEX calls_compaction ON calls (compaction_id) WHERE compaction_id IS NOT NULL;

-- The roll-up of a day, kept in the transaction of what it counts.
CREATE TABLE daily_usage (
    day                TEXT NOT NULL,
    source             TEXT NOT NULL,
    model              TEXT NOT NULL,
    sessions           INTEGER NOT NULL DEFAULT 0, -- created that day; a draft once it has a reply
    messages           INTEGER NOT NULL DEFAULT 0,
    prompts            INTEGER NOT NULL DEFAULT 0, -- messages of a person
    calls              INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cost_nanousd       INTEGER NOT NULL DEFAULT 0, -- of the priced calls
    cost_usd           REAL GENERATED ALWAYS AS (cost_nanousd / 1e9) VIRTUAL,
    unpriced_calls     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, source, model)
) STRICT, WITHOUT ROWID;

-- The catalogue of models.
CREATE TABLE models (
    id         TEXT NOT NULL PRIMARY KEY, -- as providers name it
    provider   TEXT NOT NULL,
    family     TEXT NOT NULL DEFAULT '',  -- of its tokenizer
    window     INTEGER NOT NULL,          -- tokens
    max_output INTEGER NOT NULL,          -- tokens
    modalities TEXT NOT NULL DEFAULT '["text"]' CHECK (json_valid(modalities)),
    origin     TEXT NOT NULL CHECK (origin IN ('catalogue', 'override'))
) STRICT, WITHOUT ROWID;

-- Nano-dollars for one token; the newest row whose valid_from is not after the call counts.
CREATE TABLE prices (
    model               TEXT NOT NULL,
    valid_from          TEXT NOT NULL, -- YYYY-MM-DD
    input_nanousd       INTEGER NOT NULL,
    cache_read_nanousd  INTEGER NOT NULL,
    cache_write_nanousd INTEGER NOT NULL,
    output_nanousd      INTEGER NOT NULL,
    origin              TEXT NOT NULL CHECK (origin IN ('catalogue', 'override')),
    PRIMARY KEY (model, valid_from)
) STRICT, WITHOUT ROWID;

-- What providers' reports taught about a model's tokens.
CREATE TABLE calibrations (
    model      TEXT NOT NULL PRIMARY KEY,
    scale      REAL NOT NULL, -- reported tokens / estimated tokens
    weight     REAL NOT NULL, -- tokens behind the scale, with a half-life of 20,000
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
