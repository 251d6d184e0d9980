-- At which hours of the day do I work? (In this host's zone.)
--
-- :since  first day that counts (default: the first one)
SELECT strftime('%H', created_at, 'localtime') AS hour, COUNT(*) AS prompts,
       printf('%.*c', 40 * COUNT(*) / MAX(COUNT(*)) OVER (), '#') AS share
FROM messages
WHERE origin = 'person' AND day >= COALESCE(:since, '')
GROUP BY hour
ORDER BY hour;
