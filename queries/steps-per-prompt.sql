-- How many replies does each program need for one prompt?
SELECT s.source, SUM(m.origin = 'person') AS prompts, SUM(m.origin = 'model') AS replies,
       ROUND(1.0 * SUM(m.origin = 'model') / NULLIF(SUM(m.origin = 'person'), 0), 2) AS replies_per_prompt
FROM messages m JOIN sessions s ON s.id = m.session_id
GROUP BY s.source
ORDER BY replies_per_prompt DESC NULLS LAST, replies DESC, s.source;
