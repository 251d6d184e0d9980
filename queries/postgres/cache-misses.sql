-- Which calls paid again for what the cache held a moment before?
--
-- :since   first day that counts (default: the first one)
-- :tokens  only calls with at least this many uncached input tokens (default: 1024)
-- :limit   rows, newest first (default: 30)
WITH chat AS (
    SELECT id, session_id, model, day, created_at, cache_read_tokens,
           input_tokens + cache_write_tokens AS fresh_tokens,
           LAG(created_at) OVER turns AS previous_at, LAG(model) OVER turns AS previous_model,
           LAG(cache_read_tokens + cache_write_tokens) OVER turns AS cached_before
    FROM calls
    WHERE purpose = 'chat' AND status = 'ok' AND session_id <> ''
    WINDOW turns AS (PARTITION BY session_id ORDER BY id)
)
SELECT chat.created_at, chat.session_id, chat.model,
       ROUND(EXTRACT(EPOCH FROM chat.created_at - chat.previous_at) / 60, 1) AS minutes_since_last,
       chat.previous_model <> chat.model AS model_changed, chat.cached_before AS lost_tokens, chat.fresh_tokens,
       ROUND(chat.cached_before * (SELECT p.input_nanousd - p.cache_read_nanousd FROM prices p
                                WHERE p.model = chat.model AND p.valid_from <= chat.day AND p.mode = '' AND p.above_tokens < chat.fresh_tokens
                                ORDER BY p.valid_from DESC, p.above_tokens DESC LIMIT 1) / 1e9, 4) AS lost_usd
FROM chat
WHERE chat.cached_before > 0 AND chat.cache_read_tokens = 0
  AND chat.fresh_tokens >= CAST(COALESCE(:tokens, 1024) AS INTEGER)
  AND chat.day >= COALESCE(:since, '')
ORDER BY chat.id DESC
LIMIT COALESCE(:limit, 30);
