// Package migrations holds the schema as numbered SQL files, applied by goose. A file that
// has landed is never changed: a new one follows.
package migrations

import "embed"

// FS holds the migration files.
//
//go:embed *.sql
var FS embed.FS
