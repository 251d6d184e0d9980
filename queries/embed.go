// Package queries holds the questions that an owner asks of sessions.db, one documented
// SELECT per file. Each runs in plain sqlite3, where a parameter that is not set is NULL and
// its default holds:
//
//	sqlite3 -readonly -box sessions.db < queries/dearest-sessions.sql
//	sqlite3 -readonly -box sessions.db -cmd ".param set :limit 3" < queries/dearest-sessions.sql
//
// and as `sessiond query dearest-sessions --limit 3`. A file begins with one line that says
// what it answers, then one line for each parameter. On PostgreSQL, psql has to set each parameter,
// to NULL for its default, and a text with its quotes:
//
//	psql -v limit=NULL -v since="'2026-02-01'" -f queries/dearest-sessions.sql
//
// A query that PostgreSQL reads otherwise has a second file of the same name in the folder postgres.
package queries

import (
	"embed"
	"errors"
	"io/fs"
)

// FS has the query files; the name of a query is its file's without .sql.
//
//go:embed *.sql postgres/*.sql
var FS embed.FS

// Text returns a query as SQLite or PostgreSQL reads it. Error: fs.ErrNotExist.
func Text(name string, postgres bool) (string, error) {
	if postgres {
		text, err := FS.ReadFile("postgres/" + name + ".sql")
		if !errors.Is(err, fs.ErrNotExist) {
			return string(text), err
		}
	}
	text, err := FS.ReadFile(name + ".sql")
	return string(text), err
}
