-- +goose Up
-- What SQLite has and PostgreSQL calls otherwise, so that one text of a statement runs on both.
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT GREATEST($1, $2)';
CREATE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT LEAST($1, $2)';
CREATE FUNCTION min(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT LEAST($1, $2)';
CREATE FUNCTION max(timestamptz, timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT GREATEST($1, $2)';
CREATE FUNCTION instr(text, text) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT STRPOS($1, $2)::bigint';
CREATE FUNCTION json_each(text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE AS
    'SELECT t.value FROM json_array_elements_text(CASE json_typeof($1::json) WHEN ''array'' THEN $1::json ELSE ''[]'' END) AS t(value)';
CREATE FUNCTION json(text) RETURNS json LANGUAGE sql IMMUTABLE AS 'SELECT $1::json';
-- json_set takes the name of one member: $."name".
-- +goose StatementBegin
CREATE FUNCTION json_set(text, path text, json) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT ('{' || string_agg(to_json(m.key) || ':' || m.value, ',' ORDER BY m.n) || '}')::json FROM (
        SELECT e.key, e.value, e.n FROM json_each($1::json) WITH ORDINALITY AS e(key, value, n) WHERE e.key <> SUBSTR(path, 4, LENGTH(path) - 4)
        UNION ALL SELECT SUBSTR(path, 4, LENGTH(path) - 4), $3, 1 << 30) AS m
$$;
-- +goose StatementEnd
-- +goose StatementBegin
-- json_extract takes paths of names alone: $."a"."b" or $.a.b.
CREATE FUNCTION json_extract(json, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT $1 #>> ARRAY(SELECT TRIM(BOTH '"' FROM m[1]) FROM regexp_matches(path, '\.("[^"]*"|[^."]+)', 'g') AS m)
$$;
-- +goose StatementEnd

-- SUM(condition) counts the rows for which it is true.
CREATE FUNCTION sum_true(bigint, boolean) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT COALESCE($1, 0) + $2::int';
CREATE AGGREGATE sum(boolean) (SFUNC = sum_true, STYPE = bigint);
