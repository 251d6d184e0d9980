-- Which kinds of rows did a program write, and how many? No text, name or path is in the answer.
--
-- :source  the program, as codex (default: every one)
-- :limit   rows (default: 200)
SELECT source, version, kind, talk, type, COUNT(*) AS messages, SUM(bytes) AS bytes
FROM (SELECT source, kind, talk, bytes,
             CASE WHEN version NOT GLOB '[0-9]*' OR version GLOB '*[^0-9a-z.-]*' OR LENGTH(version) > 20 THEN '' ELSE version END AS version,
             CASE WHEN type = '' OR type GLOB '[a-z]*' AND type NOT GLOB '*[^a-z0-9_/-]*' AND LENGTH(type) <= 60 THEN type ELSE 'other' END AS type
      FROM (SELECT s.source, m.kind, m.talk, COALESCE(LENGTH(m.extra), 0) AS bytes,
                   CAST(COALESCE(json_extract(m.extra, '$.line.version'), json_extract(s.metadata, '$."claude-code".version'),
                                 json_extract(s.metadata, '$.codex.cli_version'), json_extract(s.metadata, '$."copilot-cli".copilotVersion'),
                                 json_extract(s.metadata, '$."' || s.source || '".version'), '') AS TEXT) AS version,
                   CASE WHEN m.kind IN ('unknown', 'custom', 'marker')
                        THEN COALESCE(json_extract(m.extra, '$.line.type'), json_extract(m.extra, '$.type'), '')
                             || COALESCE('/' || COALESCE(json_extract(m.extra, '$.line.subtype'), json_extract(m.extra, '$.line.payload.type'), json_extract(m.extra, '$.subtype')), '')
                        ELSE '' END AS type
            FROM messages m JOIN sessions s ON s.id = m.session_id
            WHERE s.deleted_at IS NULL AND (:source IS NULL OR s.source = :source)) AS stored) AS safe
GROUP BY source, version, kind, talk, type
ORDER BY source, messages DESC, kind, talk, type, version
LIMIT COALESCE(:limit, 200);
