-- +goose Up
-- What a person put on sessions and messages: pins, tags and notes. A label was one name of a message; now it is the
-- first of its tags, in place 0.
CREATE TABLE marks_of_today (
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL, -- 0: the session itself
    kind       TEXT NOT NULL CHECK (kind IN ('pin', 'tag', 'note')),
    text       TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    place      INTEGER NOT NULL DEFAULT 0, -- of a tag among those of its message; 0: its label
    revision   INTEGER NOT NULL DEFAULT 0, -- of a note: the session's when it was written
    PRIMARY KEY (session_id, message_id, kind, place)
) STRICT, WITHOUT ROWID;

INSERT INTO marks_of_today (session_id, message_id, kind, text, created_at)
SELECT session_id, message_id, CASE kind WHEN 'label' THEN 'tag' ELSE kind END, text, created_at FROM marks;

DROP TABLE marks;
ALTER TABLE marks_of_today RENAME TO marks;

CREATE UNIQUE INDEX marks_tag ON marks (text, session_id, message_id) WHERE kind = 'tag';
