-- What are the biggest blobs, and who holds them?
--
-- :limit  rows (default: 20)
SELECT b.size AS bytes, b.media_type,
       (SELECT COUNT(*) FROM parts p WHERE p.blob = b.sha256) AS parts,
       (SELECT m.session_id || '.' || m.seq FROM parts p JOIN messages m ON m.id = p.message_id
        WHERE p.blob = b.sha256 ORDER BY p.id LIMIT 1) AS first_message,
       b.sha256
FROM blobs b
ORDER BY b.size DESC, b.sha256
LIMIT COALESCE(:limit, 20);
