-- +goose Up
-- Whose a session is, and on which host it began.
ALTER TABLE sessions ADD COLUMN owner text NOT NULL DEFAULT ''; -- '': the person who runs the daemon
ALTER TABLE sessions ADD COLUMN host text NOT NULL DEFAULT '';

CREATE INDEX sessions_owner ON sessions (owner, active_at, id) WHERE owner <> '';

-- Tokens that see and write the sessions of one owner. The daemon's own token is in a file.
CREATE TABLE tokens (
    name       text NOT NULL PRIMARY KEY,
    hash       text NOT NULL UNIQUE,            -- lower-case hex sha-256 of the token
    owner      text NOT NULL CHECK (owner <> ''),
    source     text NOT NULL DEFAULT '',        -- only sessions of this program; '': of any
    key_prefix text NOT NULL DEFAULT '',        -- only sessions whose routing key begins so
    created_at timestamptz NOT NULL
);

-- A request with such a token runs as the role sessiond_token, with the token's scope in settings.
-- Policies hide the other sessions from that role; every other role sees all rows, and the tables'
-- owner, which the daemon is, does not even ask them.
-- +goose StatementBegin
CREATE FUNCTION session_in_scope(owner text, source text, key text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT owner <> '' AND owner = current_setting('sessiond.owner', true)
       AND COALESCE(current_setting('sessiond.source', true), '') IN ('', source)
       AND starts_with(key, COALESCE(current_setting('sessiond.key', true), ''))
$$;
-- +goose StatementEnd
-- The policies of the tables that these two read apply inside them, too.
-- +goose StatementBegin
CREATE FUNCTION session_visible(id text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM sessions s WHERE s.id = $1)
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION message_visible(id bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM messages m WHERE m.id = $1)
$$;
-- +goose StatementEnd

CREATE POLICY scope ON sessions USING (current_user <> 'sessiond_token' OR session_in_scope(owner, source, key));
CREATE POLICY scope ON parts USING (current_user <> 'sessiond_token' OR message_visible(message_id));
-- Events have no text of messages; that of a purge is written when its session is gone.
CREATE POLICY scope ON events FOR SELECT USING (current_user <> 'sessiond_token' OR session_visible(session_id));
CREATE POLICY written ON events FOR INSERT WITH CHECK (true);
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['links', 'messages', 'compactions', 'compaction_undos', 'frozen', 'contexts', 'flushes', 'calls', 'touched_files', 'marks', 'states'] LOOP
        EXECUTE format('CREATE POLICY scope ON %I USING (current_user <> ''sessiond_token'' OR session_visible(session_id))', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['sessions', 'links', 'messages', 'parts', 'compactions', 'compaction_undos', 'frozen', 'contexts', 'flushes', 'calls', 'touched_files', 'marks', 'states', 'events'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['blob_texts', 'messages_flat', 'tool_uses'] LOOP
        EXECUTE format('ALTER VIEW %I SET (security_invoker = true)', name);
    END LOOP;
END
$$;
-- +goose StatementEnd
