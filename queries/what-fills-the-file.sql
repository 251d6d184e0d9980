-- What fills the database, by program?
SELECT s.source, COUNT(DISTINCT m.id) AS messages, COUNT(*) AS parts,
       SUM(LENGTH(CAST(p.text AS BLOB)) + LENGTH(CAST(p.arguments AS BLOB))) AS text_bytes,
       COALESCE(SUM(LENGTH(CAST(p.extra AS BLOB))), 0) AS extra_bytes,
       COALESCE(SUM(b.size), 0) AS blob_bytes
FROM parts p
LEFT JOIN blobs b ON b.sha256 = p.blob
JOIN messages m ON m.id = p.message_id
JOIN sessions s ON s.id = m.session_id
GROUP BY s.source
ORDER BY text_bytes + extra_bytes + blob_bytes DESC, s.source;
