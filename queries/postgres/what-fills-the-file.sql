-- What fills the database, by program?
SELECT s.source, COUNT(DISTINCT m.id) AS messages, COUNT(*) AS parts,
       SUM(OCTET_LENGTH(p.text) + OCTET_LENGTH(p.arguments)) AS text_bytes,
       COALESCE(SUM(OCTET_LENGTH(CAST(p.extra AS TEXT))), 0) AS extra_bytes,
       COALESCE(SUM(b.size), 0) AS blob_bytes
FROM parts p
LEFT JOIN blobs b ON b.sha256 = p.blob
JOIN messages m ON m.id = p.message_id
JOIN sessions s ON s.id = m.session_id
GROUP BY s.source
ORDER BY SUM(OCTET_LENGTH(p.text) + OCTET_LENGTH(p.arguments) + COALESCE(OCTET_LENGTH(CAST(p.extra AS TEXT)), 0) + COALESCE(b.size, 0)) DESC, s.source;
