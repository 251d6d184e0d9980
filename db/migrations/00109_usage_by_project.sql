-- +goose Up
-- Usage also by project and purpose. The roll-up only repeats what the other tables say, so it is counted
-- anew: a sub-agent counts for the project of the session that started it, a purged session for none.
ALTER TABLE purged_days ADD COLUMN subagents INTEGER NOT NULL DEFAULT 0; -- of the sessions

-- Of all calls few failed: without them the roll-up has those that did not.
CREATE INDEX calls_failed ON calls (purpose, cost_nanousd) WHERE status = 'failed';

DROP TABLE daily_usage;

-- The roll-up of a day, kept in the transaction of what it counts.
CREATE TABLE daily_usage (
    day                TEXT NOT NULL,
    project            TEXT NOT NULL,
    source             TEXT NOT NULL,
    model              TEXT NOT NULL,
    purpose            TEXT NOT NULL,              -- of calls
    sessions           INTEGER NOT NULL DEFAULT 0, -- created that day; a draft once it has a reply
    subagents          INTEGER NOT NULL DEFAULT 0, -- of the sessions
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
    PRIMARY KEY (day, project, source, model, purpose)
) STRICT, WITHOUT ROWID;

INSERT INTO daily_usage (day, project, source, model, purpose, sessions, subagents, messages, prompts, calls,
    input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_nanousd, unpriced_calls)
WITH RECURSIVE counted (id, project) AS (
    SELECT id, project FROM sessions
    WHERE parent_kind <> 'child' OR purged_at IS NOT NULL OR parent_id NOT IN (SELECT id FROM sessions)
    UNION ALL
    SELECT s.id, p.project FROM counted p JOIN sessions s ON s.parent_id = p.id
    WHERE s.parent_id <> '' AND s.parent_kind = 'child' AND s.purged_at IS NULL
)
SELECT day, project, source, model, purpose, SUM(sessions), SUM(subagents), SUM(messages), SUM(prompts), SUM(calls),
       SUM(input), SUM(cache_read), SUM(cache_write), SUM(output), SUM(cost), SUM(unpriced)
FROM (
    SELECT c.day, COALESCE(p.project, '') AS project, c.source, c.model, c.purpose, 0 AS sessions, 0 AS subagents, 0 AS messages, 0 AS prompts,
           1 AS calls, c.input_tokens AS input, c.cache_read_tokens AS cache_read, c.cache_write_tokens AS cache_write,
           c.output_tokens AS output, COALESCE(c.cost_nanousd, 0) AS cost, c.cost_nanousd IS NULL AS unpriced
    FROM calls c LEFT JOIN counted p ON p.id = c.session_id
    UNION ALL
    SELECT s.day, p.project, s.source, '', '', 1, s.kind = 'subagent', 0, 0, 0, 0, 0, 0, 0, 0, 0
    FROM counted p JOIN sessions s ON s.id = p.id WHERE s.draft = 0
    UNION ALL
    SELECT m.day, p.project, s.source, '', '', 0, 0, 1, m.origin = 'person', 0, 0, 0, 0, 0, 0, 0
    FROM counted p JOIN sessions s ON s.id = p.id JOIN messages m ON m.session_id = s.id
    UNION ALL
    SELECT day, '', source, '', '', sessions, 0, messages, prompts, 0, 0, 0, 0, 0, 0, 0 FROM purged_days
)
GROUP BY day, project, source, model, purpose;
