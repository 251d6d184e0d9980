// Package queries holds the questions that an owner asks of sessions.db, one documented
// SELECT per file. Each runs in plain sqlite3, where a parameter that is not set is NULL and
// its default holds:
//
//	sqlite3 -readonly -box sessions.db < queries/dearest-sessions.sql
//	sqlite3 -readonly -box sessions.db -cmd ".param set :limit 3" < queries/dearest-sessions.sql
//
// and as `sessiond query dearest-sessions --limit 3`. A file begins with one line that says
// what it answers, then one line for each parameter.
package queries

import "embed"

// FS holds the query files; the name of a query is its file's without .sql.
//
//go:embed *.sql
var FS embed.FS
