-- At which hours of the day do I work? (In this host's zone.)
--
-- :since  first day that counts (default: the first one)
SELECT to_char(created_at, 'HH24') AS hour, COUNT(*) AS prompts,
       repeat('#', CAST(GREATEST(40 * COUNT(*) / MAX(COUNT(*)) OVER (), 1) AS integer)) AS share
FROM messages
WHERE origin = 'person' AND day >= COALESCE(:since, '')
GROUP BY hour
ORDER BY hour;
