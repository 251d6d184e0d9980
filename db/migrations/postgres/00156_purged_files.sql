-- +goose Up
-- The row that a purge leaves for forks names no file of the session.
UPDATE sessions SET foreign_from = '' WHERE purged_at IS NOT NULL AND foreign_from <> '';
