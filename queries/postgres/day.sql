-- What did I do on one day?
--
-- :day  the day, YYYY-MM-DD (default: today)
SELECT s.project, s.id, s.source, s.title, COUNT(*) AS prompts,
       MIN(m.created_at) AS first_at, MAX(m.created_at) AS last_at
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.origin = 'person' AND m.day = COALESCE(:day, to_char(now(), 'YYYY-MM-DD')) AND s.purged_at IS NULL
GROUP BY s.id
ORDER BY first_at, s.id;
