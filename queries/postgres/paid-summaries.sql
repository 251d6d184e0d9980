-- How many of the summaries that a model was paid for were used?
--
-- :session  only this session (default: all)
-- :limit    rows, most summaries first (default: 20)
WITH RECURSIVE paid AS (
    SELECT c.id, c.session_id, c.previous_id, c.through_id, c.status, c.span_summary,
           c.created_at + c.duration_ms * INTERVAL '1 millisecond' AS finished_at
    FROM compactions c
    WHERE (:session IS NULL OR c.session_id = :session)
      AND EXISTS (SELECT 1 FROM calls k WHERE k.compaction_id = c.id AND (k.status = 'ok' OR k.cost_nanousd > 0))
),
-- A summary that came too late has a digest of the same messages that took effect. It feeds the compactions
-- after that digest that began once it was there.
later (paid_id, session_id, finished_at, id, strategy, began_at) AS (
    SELECT p.id, p.session_id, p.finished_at, d.id, '', d.created_at
    FROM paid p JOIN compactions d ON d.session_id = p.session_id AND d.through_id = p.through_id AND d.id <> p.id
    WHERE p.status IN ('staged', 'skipped') AND d.status = 'done' AND d.provider IN ('', 'extractive')
      AND (p.previous_id = d.id OR p.span_summary <> '' AND d.previous_id IS NOT DISTINCT FROM p.previous_id)
    UNION
    SELECT later.paid_id, later.session_id, later.finished_at, c.id, c.strategy, c.created_at
    FROM later JOIN compactions c ON c.session_id = later.session_id AND c.previous_id = later.id
    WHERE c.status = 'done' AND c.strategy <> 'clear'
),
summary AS (
    SELECT p.session_id, p.status, p.status = 'done' AS took_effect,
           p.id IN (SELECT paid_id FROM later WHERE strategy = 'summarize' AND began_at >= finished_at) AS fed_later,
           (SELECT SUM(k.cost_nanousd) FROM calls k WHERE k.compaction_id = p.id) AS nanousd
    FROM paid p
)
SELECT session_id, COUNT(*) AS paid, COUNT(*) FILTER (WHERE took_effect OR fed_later) AS used,
       COUNT(*) FILTER (WHERE took_effect) AS took_effect, COUNT(*) FILTER (WHERE fed_later) AS fed_later,
       COUNT(*) FILTER (WHERE status IN ('running', 'staged') AND NOT fed_later) AS waiting,
       ROUND(SUM(nanousd) / 1e9, 4) AS summary_usd
FROM summary
GROUP BY session_id
ORDER BY paid DESC, session_id
LIMIT COALESCE(:limit, 20);
