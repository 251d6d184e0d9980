-- +goose Up
-- How much of what a program's account may use in a window of time was used when the program noted it last.
CREATE TABLE limits (
    source       TEXT NOT NULL,
    name         TEXT NOT NULL,            -- the window: 5h, 7d, or as the program calls it
    used_percent REAL NOT NULL,
    reached      INTEGER NOT NULL DEFAULT 0, -- 1: the program answers nothing until resets_at
    resets_at    TEXT NOT NULL,
    noted_at     TEXT NOT NULL,            -- by the program
    PRIMARY KEY (source, name)
) STRICT, WITHOUT ROWID;
