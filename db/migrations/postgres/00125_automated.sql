-- +goose Up
-- Sessions of Claude Code in which a program gave the one prompt, with an SDK or `claude -p`, and those of a memory plug-in
-- are automated sessions: lists leave them out.
UPDATE sessions SET kind = 'other'
WHERE source = 'claude-code' AND kind = 'chat' AND parent_kind <> 'child'
  AND (REPLACE(directory, '\', '/') || '/' LIKE '%/.claude-mem/%'
    OR (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id AND m.origin = 'person') = 1
   AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = sessions.id AND m.origin = 'person'
          AND COALESCE(json_extract(m.extra, '$.line.entrypoint'), '') NOT LIKE 'sdk-%'
          AND COALESCE(json_extract(m.extra, '$.line.promptSource'), '') <> 'sdk'));
