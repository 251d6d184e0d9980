// Package migrations holds the schema as numbered SQL files, which goose applies. 00100 to 00106
// are the baseline of version 0.1.0. A file that landed is never changed: a new one follows.
package migrations

import "embed"

// FS has the migration files.
//
//go:embed *.sql postgres/*.sql
var FS embed.FS
