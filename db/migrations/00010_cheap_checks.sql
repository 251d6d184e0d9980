-- +goose Up
-- A list of three values and more makes SQLite fill a table of its own for each statement that
-- checks it: a third of what the row of a message cost. The same constraints, spelt out, cost
-- next to nothing. No row can break them that did not break the lists, so that the tables need
-- no copying: their text is edited in the way of https://www.sqlite.org/lang_altertable.html,
-- section 7. The trigger, made anew, changes the schema's number, so that every connection
-- reads the new text; all of it is one transaction.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(replace(replace(replace(sql,
    'CHECK (title_source IN ('''', ''given'', ''first_message'', ''model'', ''source''))',
    'CHECK (title_source = '''' OR title_source = ''given'' OR title_source = ''first_message'' OR title_source = ''model'' OR title_source = ''source'')'),
    'CHECK (kind IN (''chat'', ''subagent'', ''cron'', ''hook'', ''other''))',
    'CHECK (kind = ''chat'' OR kind = ''subagent'' OR kind = ''cron'' OR kind = ''hook'' OR kind = ''other'')'),
    'CHECK (parent_kind IN ('''', ''fork'', ''child''))',
    'CHECK (parent_kind = '''' OR parent_kind = ''fork'' OR parent_kind = ''child'')'),
    'CHECK (end_reason IN ('''', ''daily'', ''idle'', ''command'', ''rpc'', ''run'', ''overflow'', ''role_order'', ''corrupt''))',
    'CHECK (end_reason = '''' OR end_reason = ''daily'' OR end_reason = ''idle'' OR end_reason = ''command'' OR end_reason = ''rpc'' OR end_reason = ''run'' OR end_reason = ''overflow'' OR end_reason = ''role_order'' OR end_reason = ''corrupt'')')
WHERE type = 'table' AND name = 'sessions';

UPDATE sqlite_schema SET sql = replace(replace(replace(replace(sql,
    'CHECK (kind IN (''message'', ''bash'', ''custom_message'', ''custom'', ''branch_summary'', ''marker'', ''unknown''))',
    'CHECK (kind = ''message'' OR kind = ''bash'' OR kind = ''custom_message'' OR kind = ''custom'' OR kind = ''branch_summary'' OR kind = ''marker'' OR kind = ''unknown'')'),
    'CHECK (role IN (''system'', ''user'', ''assistant'', ''tool'', ''''))',
    'CHECK (role = ''assistant'' OR role = ''tool'' OR role = ''user'' OR role = '''' OR role = ''system'')'),
    'CHECK (origin IN (''person'', ''model'', ''tool'', ''program''))',
    'CHECK (origin = ''model'' OR origin = ''tool'' OR origin = ''person'' OR origin = ''program'')'),
    'CHECK (finish IN ('''', ''stop'', ''tool_calls'', ''length'', ''error'', ''aborted'', ''refusal'', ''paused''))',
    'CHECK (finish = '''' OR finish = ''stop'' OR finish = ''tool_calls'' OR finish = ''length'' OR finish = ''error'' OR finish = ''aborted'' OR finish = ''refusal'' OR finish = ''paused'')')
WHERE type = 'table' AND name = 'messages';

UPDATE sqlite_schema SET sql = replace(sql,
    'CHECK (kind IN (''text'', ''reasoning'', ''tool_call'', ''tool_result'', ''image'', ''audio'', ''file'', ''refusal'', ''data''))',
    'CHECK (kind = ''text'' OR kind = ''tool_call'' OR kind = ''tool_result'' OR kind = ''reasoning'' OR kind = ''data'' OR kind = ''image'' OR kind = ''audio'' OR kind = ''file'' OR kind = ''refusal'')')
WHERE type = 'table' AND name = 'parts';

UPDATE sqlite_schema SET sql = replace(replace(sql,
    'CHECK (purpose IN (''chat'', ''summary'', ''title'', ''branch_summary'', ''tool'', ''other''))',
    'CHECK (purpose = ''chat'' OR purpose = ''summary'' OR purpose = ''title'' OR purpose = ''branch_summary'' OR purpose = ''tool'' OR purpose = ''other'')'),
    'CHECK (price_source IN ('''', ''reported'', ''catalogue'', ''override''))',
    'CHECK (price_source = '''' OR price_source = ''reported'' OR price_source = ''catalogue'' OR price_source = ''override'')')
WHERE type = 'table' AND name = 'calls';

UPDATE sqlite_schema SET sql = replace(sql,
    'CHECK (op IN (''read'', ''write'', ''edit'', ''delete''))',
    'CHECK (op = ''read'' OR op = ''write'' OR op = ''edit'' OR op = ''delete'')')
WHERE type = 'table' AND name = 'touched_files';

PRAGMA writable_schema = RESET;

DROP TRIGGER parts_no_replace;
-- +goose StatementBegin
CREATE TRIGGER parts_no_replace BEFORE INSERT ON parts
WHEN EXISTS (SELECT 1 FROM parts WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'parts: this part exists; it is never replaced');
END;
-- +goose StatementEnd
