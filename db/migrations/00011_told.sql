-- +goose Up
-- What a purge left for forks is purged in its turn when the last of them is gone. That the
-- session was purged was told the first time.
ALTER TABLE purging ADD COLUMN told INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1));

-- +goose Down
ALTER TABLE purging DROP COLUMN told;
