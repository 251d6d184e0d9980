-- +goose Up
-- Cache writes that last an hour cost more than those of five minutes.
ALTER TABLE calls ADD COLUMN cache_write_1h_tokens bigint NOT NULL DEFAULT 0; -- of cache_write_tokens

-- Some models charge more for the whole request once its prompt is long. The table only repeats the
-- catalogue, which each start of the daemon writes again.
DROP TABLE prices;

-- Nano-dollars for one token. The newest valid_from that is not after the call counts, and of its rows
-- the one with the greatest above_tokens that the prompt exceeds.
CREATE TABLE prices (
    model                  text NOT NULL,
    valid_from             text NOT NULL, -- YYYY-MM-DD
    above_tokens           bigint NOT NULL DEFAULT 0,
    input_nanousd          bigint NOT NULL,
    cache_read_nanousd     bigint NOT NULL,
    cache_write_nanousd    bigint NOT NULL,
    cache_write_1h_nanousd bigint NOT NULL,
    output_nanousd         bigint NOT NULL,
    origin                 text NOT NULL CHECK (origin IN ('catalogue', 'override')),
    PRIMARY KEY (model, valid_from, above_tokens)
);
