-- +goose Up
-- How a session hangs on its parent_id. A fork shares the path to message_id; what its
-- ancestors had put in force until then it inherits, and nothing later.
CREATE TABLE links (
    session_id    TEXT NOT NULL PRIMARY KEY,
    message_id    INTEGER,                     -- of a fork: where it leaves; of a child: what started it; NULL: nothing is shared, or it is not known
    call_id       TEXT NOT NULL DEFAULT '',    -- of a child: the call of that message that started it
    root_id       TEXT NOT NULL DEFAULT '',    -- of a fork: the session that the family of forks began with
    number        INTEGER NOT NULL DEFAULT 0,  -- of a fork: which one of its family it is
    compaction_id INTEGER NOT NULL DEFAULT 0,  -- of a fork: the newest record that it inherits
    activated_at  TEXT NOT NULL DEFAULT '',    -- of a fork: when the newest overlay that it inherits took effect
    frozen_id     INTEGER NOT NULL DEFAULT 0   -- of a fork: the newest frozen text that it inherits
) STRICT, WITHOUT ROWID;

CREATE INDEX links_family ON links (root_id, number) WHERE root_id <> '';

-- Where a fork left its parent so far is what its first message follows.
INSERT INTO links (session_id, message_id, root_id, compaction_id, activated_at, frozen_id)
SELECT s.id,
       CASE WHEN s.parent_kind = 'fork' THEN COALESCE(
           (SELECT p.id FROM messages m JOIN messages p ON p.id = m.parent_id WHERE m.session_id = s.id AND m.seq = 1),
           CASE WHEN s.last_seq = 0 THEN s.head_id END) END,
       CASE WHEN s.parent_kind = 'fork' THEN s.parent_id ELSE '' END,
       9223372036854775807, s.created_at, (SELECT COALESCE(MAX(id), 0) FROM frozen)
FROM sessions s WHERE s.parent_id <> '';

INSERT OR IGNORE INTO compaction_undos (session_id, compaction_id, at)
SELECT s.id, u.compaction_id, u.at FROM sessions s JOIN compaction_undos u ON u.session_id = s.parent_id
WHERE s.parent_kind = 'fork' AND u.at <= s.created_at;

-- A document that was taken away keeps its row, so that its revisions never begin anew.
ALTER TABLE states ADD COLUMN deleted_at TEXT;
