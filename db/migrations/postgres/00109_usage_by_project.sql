-- +goose Up
-- Usage also by project and purpose. The tables are empty: no version before had them on PostgreSQL.
ALTER TABLE purged_days ADD COLUMN subagents bigint NOT NULL DEFAULT 0; -- of the sessions

-- Of all calls few failed: without them the roll-up has those that did not.
CREATE INDEX calls_failed ON calls (purpose, cost_nanousd) WHERE status = 'failed';

DROP TABLE daily_usage;

-- The roll-up of a day, kept in the transaction of what it counts.
CREATE TABLE daily_usage (
    day                text NOT NULL,
    project            text NOT NULL,
    source             text NOT NULL,
    model              text NOT NULL,
    purpose            text NOT NULL,              -- of calls
    sessions           bigint NOT NULL DEFAULT 0, -- created that day; a draft once it has a reply
    subagents          bigint NOT NULL DEFAULT 0, -- of the sessions
    messages           bigint NOT NULL DEFAULT 0,
    prompts            bigint NOT NULL DEFAULT 0, -- messages of a person
    calls              bigint NOT NULL DEFAULT 0,
    input_tokens       bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cost_nanousd       bigint NOT NULL DEFAULT 0, -- of the priced calls
    cost_usd           double precision GENERATED ALWAYS AS (cost_nanousd / 1e9::double precision) STORED,
    unpriced_calls     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, project, source, model, purpose)
);
