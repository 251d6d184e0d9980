-- +goose Up
-- Up to which version the rows of earlier versions were mended: what SQL cannot do (projects of worktrees, titles, files of
-- failed calls) is done at the next start that writes, and again if that is cut short.
ALTER TABLE store ADD COLUMN mended BIGINT NOT NULL DEFAULT 0;
