-- +goose Up
-- PostgreSQL does not know that the ids between message_id << 10 and 1,023 more are the few parts of one
-- message, and planned joins as if they were a ninth of the table.
CREATE INDEX parts_message ON parts (message_id);
