-- Why did sessions end?
SELECT end_reason, COUNT(*) AS sessions, ROUND(AVG(message_count), 1) AS mean_messages, MAX(ended_at) AS last_at
FROM sessions
WHERE ended_at IS NOT NULL
GROUP BY end_reason
ORDER BY sessions DESC, end_reason;
