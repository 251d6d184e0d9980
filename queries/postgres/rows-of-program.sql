-- Which kinds of rows did a program write, and how many? No text, name or path is in the answer.
--
-- :source  the program, as codex (default: every one)
-- :limit   rows (default: 200)
SELECT source, version, kind, talk, type, COUNT(*) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes
FROM (SELECT source, kind, talk, bytes,
             CASE WHEN version ~ '^[0-9][0-9a-z.-]{0,19}$' THEN version ELSE '' END AS version,
             CASE WHEN type = '' OR type ~ '^[a-z][a-z0-9_/-]{0,59}$' THEN type ELSE 'other' END AS type
      FROM (SELECT s.source, m.kind, m.talk, COALESCE(OCTET_LENGTH(CAST(m.extra AS TEXT)), 0) AS bytes,
                   COALESCE(m.extra #>> '{line,version}', s.metadata #>> '{claude-code,version}', s.metadata #>> '{codex,cli_version}',
                            s.metadata #>> '{copilot-cli,copilotVersion}', s.metadata #>> ARRAY[s.source, 'version'], '') AS version,
                   CASE WHEN m.kind IN ('unknown', 'custom', 'marker')
                        THEN COALESCE(m.extra #>> '{line,type}', m.extra ->> 'type', '')
                             || COALESCE('/' || COALESCE(m.extra #>> '{line,subtype}', m.extra #>> '{line,payload,type}', m.extra ->> 'subtype'), '')
                        ELSE '' END AS type
            FROM messages m JOIN sessions s ON s.id = m.session_id
            WHERE s.deleted_at IS NULL AND (CAST(:source AS TEXT) IS NULL OR s.source = :source)) AS stored) AS safe
GROUP BY source, version, kind, talk, type
ORDER BY source, messages DESC, kind, talk, type, version
LIMIT COALESCE(:limit, 200);
