-- +goose Up
-- How much of what a program's account may use in a window of time was used when the program noted it last.
CREATE TABLE limits (
    source       text NOT NULL,
    name         text NOT NULL,            -- the window: 5h, 7d, or as the program calls it
    used_percent double precision NOT NULL,
    reached      bigint NOT NULL DEFAULT 0, -- 1: the program answers nothing until resets_at
    resets_at    timestamptz NOT NULL,
    noted_at     timestamptz NOT NULL,     -- by the program
    PRIMARY KEY (source, name)
);
