-- +goose Up
-- The policies of 00110, written so that PostgreSQL reads settings once a statement, and asks for a row's
-- session by one look into an index instead of a call of a function, which it would plan anew each time.
DROP POLICY scope ON sessions;
CREATE POLICY scope ON sessions USING ((SELECT current_user <> 'sessiond_token') OR owner <> ''
    AND owner = (SELECT current_setting('sessiond.owner', true))
    AND source = COALESCE((SELECT NULLIF(current_setting('sessiond.source', true), '')), source)
    AND starts_with(key, (SELECT COALESCE(current_setting('sessiond.key', true), ''))));
DROP POLICY scope ON parts;
CREATE POLICY scope ON parts USING ((SELECT current_user <> 'sessiond_token') OR EXISTS (SELECT 1 FROM messages m WHERE m.id = parts.message_id));
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['links', 'messages', 'compactions', 'compaction_undos', 'frozen', 'contexts', 'flushes', 'calls', 'touched_files', 'marks', 'states', 'events'] LOOP
        EXECUTE format('DROP POLICY scope ON %I', name);
        EXECUTE format('CREATE POLICY scope ON %1$I %2$s USING ((SELECT current_user <> ''sessiond_token'') OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = %1$I.session_id))',
            name, CASE name WHEN 'events' THEN 'FOR SELECT' ELSE '' END);
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP FUNCTION message_visible(bigint);
DROP FUNCTION session_visible(text);
DROP FUNCTION session_in_scope(text, text, text);
