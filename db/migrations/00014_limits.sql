-- +goose Up
-- Which parts of a context were shortened, so that the next one shortens them alike. A check of
-- its JSON would make SQLite read every row that is there; without one the column costs nothing.
ALTER TABLE contexts ADD COLUMN limits TEXT;

-- +goose Down
ALTER TABLE contexts DROP COLUMN limits;
