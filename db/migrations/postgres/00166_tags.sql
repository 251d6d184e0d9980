-- +goose Up
-- What a person put on sessions and messages: pins, tags and notes. A label was one name of a message; now it is the
-- first of its tags, in place 0.
ALTER TABLE marks ADD COLUMN place bigint NOT NULL DEFAULT 0;    -- of a tag among those of its message; 0: its label
ALTER TABLE marks ADD COLUMN revision bigint NOT NULL DEFAULT 0; -- of a note: the session's when it was written
ALTER TABLE marks DROP CONSTRAINT marks_kind_check;
UPDATE marks SET kind = 'tag' WHERE kind = 'label';
ALTER TABLE marks ADD CONSTRAINT marks_kind_check CHECK (kind IN ('pin', 'tag', 'note'));
ALTER TABLE marks DROP CONSTRAINT marks_pkey;
ALTER TABLE marks ADD CONSTRAINT marks_pkey PRIMARY KEY (session_id, message_id, kind, place);

CREATE UNIQUE INDEX marks_tag ON marks (text, session_id, message_id) WHERE kind = 'tag';
