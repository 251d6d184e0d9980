-- +goose Up
-- A provider asks more for a reply that comes faster, and less for one that may come later.
ALTER TABLE calls ADD COLUMN service_tier TEXT NOT NULL DEFAULT ''; -- fast, priority, flex, batch; '': the standard one
-- A call may stand for what is priced by the piece.
ALTER TABLE calls ADD COLUMN requests INTEGER NOT NULL DEFAULT 0; -- searches of a provider's server

-- Both tables only repeat the catalogue. With the first start or import they are written anew, and the calls that it
-- priced before get the price that it says now.
DELETE FROM models;
ALTER TABLE models ADD COLUMN source TEXT NOT NULL DEFAULT ''; -- built in, models.dev, opencode, …
DROP TABLE prices;

-- Nano-dollars for one token. The newest valid_from that is not after the call counts, and of its rows of the call's
-- mode the one with the greatest above_tokens that the prompt exceeds.
CREATE TABLE prices (
    model                  TEXT NOT NULL,
    valid_from             TEXT NOT NULL, -- YYYY-MM-DD
    mode                   TEXT NOT NULL DEFAULT '', -- fast; '': the standard one
    above_tokens           INTEGER NOT NULL DEFAULT 0,
    input_nanousd          INTEGER NOT NULL,
    cache_read_nanousd     INTEGER NOT NULL,
    cache_write_nanousd    INTEGER NOT NULL,
    cache_write_1h_nanousd INTEGER NOT NULL,
    output_nanousd         INTEGER NOT NULL,
    origin                 TEXT NOT NULL CHECK (origin IN ('catalogue', 'override')),
    PRIMARY KEY (model, valid_from, mode, above_tokens)
) STRICT, WITHOUT ROWID;

-- What these programs write of modes, advisors, searches, hours in the cache and calls beside the talk was not read:
-- the next import reads their files again.
UPDATE imports SET size = 0, modified_at = NULL, offset = 0, hash = '' WHERE source IN ('claude-code', 'pi', 'openclaw') AND size >= 0;
