-- +goose Up
-- A provider asks more for a reply that comes faster, and less for one that may come later.
ALTER TABLE calls ADD COLUMN service_tier text NOT NULL DEFAULT ''; -- fast, priority, flex, batch; '': the standard one
-- A call may stand for what is priced by the piece.
ALTER TABLE calls ADD COLUMN requests bigint NOT NULL DEFAULT 0; -- searches of a provider's server

-- Both tables only repeat the catalogue. With the first start or import they are written anew, and the calls that it
-- priced before get the price that it says now.
DELETE FROM models;
DROP TABLE prices;
ALTER TABLE models ADD COLUMN source text NOT NULL DEFAULT ''; -- built in, models.dev, opencode, …
CREATE TABLE prices (
    model                  text NOT NULL,
    valid_from             text NOT NULL, -- YYYY-MM-DD
    mode                   text NOT NULL DEFAULT '', -- fast; '': the standard one
    above_tokens           bigint NOT NULL DEFAULT 0,
    input_nanousd          bigint NOT NULL,
    cache_read_nanousd     bigint NOT NULL,
    cache_write_nanousd    bigint NOT NULL,
    cache_write_1h_nanousd bigint NOT NULL,
    output_nanousd         bigint NOT NULL,
    origin                 text NOT NULL CHECK (origin IN ('catalogue', 'override')),
    PRIMARY KEY (model, valid_from, mode, above_tokens)
);

-- What these programs write of modes, advisors, searches, hours in the cache and calls beside the talk was not read:
-- the next import reads their files again.
UPDATE imports SET size = 0, modified_at = NULL, "offset" = 0, hash = '' WHERE source IN ('claude-code', 'pi', 'openclaw') AND size >= 0;
