-- +goose Up
-- json keeps \u0000 as it came, but PostgreSQL refuses to look into a document that has one. The functions
-- read it as U+FFFD, as the clean text of messages does; what is stored stays.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION json_extract(json, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT REPLACE($1::text, '\u0000', '\ufffd')::json #>> ARRAY(SELECT TRIM(BOTH '"' FROM m[1]) FROM regexp_matches(path, '\.("[^"]*"|[^."]+)', 'g') AS m)
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION json_set(text, path text, json) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT ('{' || string_agg(to_json(m.key) || ':' || m.value, ',' ORDER BY m.n) || '}')::json FROM (
        SELECT e.key, e.value, e.n FROM json_each(REPLACE($1, '\u0000', '\ufffd')::json) WITH ORDINALITY AS e(key, value, n) WHERE e.key <> SUBSTR(path, 4, LENGTH(path) - 4)
        UNION ALL SELECT SUBSTR(path, 4, LENGTH(path) - 4), $3, 1 << 30) AS m
$$;
-- +goose StatementEnd
