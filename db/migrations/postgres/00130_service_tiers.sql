-- +goose Up
-- A provider asks more for a reply that comes faster, and less for one that may come later.
ALTER TABLE calls ADD COLUMN service_tier text NOT NULL DEFAULT ''; -- fast, priority, flex, batch; '': the standard one
-- A call may stand for what is priced by the piece.
ALTER TABLE calls ADD COLUMN requests bigint NOT NULL DEFAULT 0; -- searches of a provider's server

-- Both tables only repeat the catalogue. With the first start or import they are written anew, and the calls that it
-- priced before get the price that it says now.
DELETE FROM models;
DELETE FROM prices;
ALTER TABLE models ADD COLUMN source text NOT NULL DEFAULT ''; -- built in, models.dev, opencode, …
ALTER TABLE prices ADD COLUMN mode text NOT NULL DEFAULT ''; -- fast; '': the standard one
ALTER TABLE prices DROP CONSTRAINT prices_pkey;
ALTER TABLE prices ADD PRIMARY KEY (model, valid_from, mode, above_tokens);

-- What these programs write of modes, advisors, searches, hours in the cache and calls beside the talk was not read:
-- the next import reads their files again.
UPDATE imports SET size = 0, modified_at = NULL, "offset" = 0, hash = '' WHERE source IN ('claude-code', 'pi', 'openclaw') AND size >= 0;
