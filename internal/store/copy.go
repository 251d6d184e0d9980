package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// copied lists the tables in an order in which no row refers to a later one, with their keys. A copy
// goes through each in the order of its key, so that it can be taken up where it broke off.
var copied = []struct {
	name     string
	key      []string
	identity bool // the key is a number that is never used again
}{
	{"sessions", []string{"id"}, false},
	{"session_days", []string{"day"}, false},
	{"links", []string{"session_id"}, false},
	{"keys", []string{"key"}, false},
	{"messages", []string{"id"}, true},
	{"blobs", []string{"sha256"}, false},
	{"blob_pieces", []string{"sha256", "n"}, false},
	{"parts", []string{"id"}, false},
	{"compactions", []string{"id"}, true},
	{"compaction_undos", []string{"session_id", "compaction_id"}, false},
	{"frozen", []string{"id"}, false},
	{"blocks", []string{"hash"}, false},
	{"contexts", []string{"id"}, true},
	{"flushes", []string{"session_id", "compaction_id"}, false},
	{"calls", []string{"id"}, true},
	{"daily_usage", []string{"day", "project", "source", "model", "purpose"}, false},
	{"models", []string{"id"}, false},
	{"prices", []string{"model", "valid_from", "mode", "above_tokens"}, false},
	{"calibrations", []string{"model"}, false},
	{"touched_files", []string{"message_id", "path", "op"}, false},
	{"marks", []string{"session_id", "message_id", "kind", "place"}, false},
	{"states", []string{"session_id", "name"}, false},
	{"events", []string{"id"}, true},
	{"idempotency_keys", []string{"id"}, false},
	{"imports", []string{"source", "path"}, false},
	{"source_transcripts", []string{"id"}, true},
	{"source_lines", []string{"transcript_id", "n"}, false},
	{"source_sessions", []string{"session_id", "transcript_id"}, false},
	{"tokens", []string{"name"}, false},
	{"purging", []string{"session_id"}, false},
	{"limits", []string{"source", "name"}, false},
	{"purged_days", []string{"day", "source"}, false},
	{"purged_sources", []string{"source", "id_hash"}, false},
}

const (
	copyRows  = 1000
	copyBytes = 4 << 20 // of one transaction
)

// CopyTo copies everything into another store, which must be new or an unfinished copy of this one:
// rows that are there already are left alone. Ids and names stay. progress is called for each table with
// the number of rows that it has before the copy, then so far. Codes: Conflict (the other store has something else, or
// this one changed since the copy was begun).
func (s *Store) CopyTo(ctx context.Context, to *Store, progress func(table string, rows int64)) error {
	from, err := s.Reader().BeginTxx(ctx, s.snapshot())
	if err != nil {
		return session.Wrap(err, "read %s", engine.PrintableName(s.File()))
	}
	defer from.Rollback() //nolint:errcheck // it only reads
	for _, table := range copied {
		c := tableCopy{from: from, to: to, table: table.name, key: table.key}
		if err := c.run(ctx, progress); err != nil {
			return session.Wrap(err, "copy %s", table.name)
		}
	}
	return to.write(ctx, func(t *tx) error {
		if to.IsPostgres() { // it plans by statistics, which it would collect a minute later
			if err := t.Exec(`ANALYZE`); err != nil {
				return err
			}
		}
		for _, table := range copied {
			if !table.identity {
				continue
			}
			last, err := s.lastIdentity(ctx, from, table.name)
			if err == nil {
				err = t.setIdentity(table.name, last)
			}
			if err != nil {
				return session.Wrap(err, "continue the numbers of %s", table.name)
			}
		}
		var epoch string
		var created session.Time
		var unscrubbed *session.Time
		var removed, mended int64
		if err := from.QueryRowxContext(ctx, `SELECT epoch, created_at, unscrubbed_at, events_removed_id, mended FROM store WHERE id = 1`).
			Scan(&epoch, &created, &unscrubbed, &removed, &mended); err != nil {
			return err
		}
		return t.Exec(`UPDATE store SET epoch = ?, created_at = ?, unscrubbed_at = ?, events_removed_id = ?, mended = ? WHERE id = 1`,
			epoch, created, unscrubbed, removed, mended)
	})
}

// copyToFile copies everything into a new file of SQLite.
func (s *Store) copyToFile(ctx context.Context, path string) error {
	to, err := Open(ctx, path, Options{Now: s.opt.Now, Zone: s.opt.Zone, Log: s.opt.Log})
	if err != nil {
		return err
	}
	return errors.Join(s.CopyTo(ctx, to, func(string, int64) {}), to.Close())
}

// snapshot returns how a reading transaction sees one state of the database.
func (s *Store) snapshot() *sql.TxOptions {
	if s.IsPostgres() {
		return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	return &sql.TxOptions{ReadOnly: true}
}

// tableCopy copies one table.
type tableCopy struct {
	from    *sqlx.Tx
	to      *Store
	table   string
	key     []string
	columns []string
}

func (c *tableCopy) run(ctx context.Context, progress func(string, int64)) error {
	var err error
	if c.columns, err = c.shared(ctx); err != nil {
		return err
	}
	after, err := c.lastKey(ctx)
	if err != nil {
		return err
	}
	var there int64
	if err := c.to.Reader().GetContext(ctx, &there, `SELECT COUNT(*) FROM `+c.table); err != nil {
		return err
	}
	progress(c.table, there)
	for {
		rows, err := c.read(ctx, after)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		if err := c.write(ctx, rows); err != nil {
			return err
		}
		there += int64(len(rows))
		progress(c.table, there)
		after = c.keyOf(rows[len(rows)-1])
	}
	var here int64
	if err := c.from.GetContext(ctx, &here, `SELECT COUNT(*) FROM `+c.table); err != nil {
		return err
	}
	if here != there {
		return session.Errorf(session.Conflict,
			"%s has %d rows, its copy %d: the copy has something else, or what is copied changed since the copy was begun; "+
				"copy into a new database", c.table, here, there)
	}
	return nil
}

// shared returns the columns that are stored: not those that the database computes.
func (c *tableCopy) shared(ctx context.Context) ([]string, error) {
	rows, err := c.from.QueryxContext(ctx, `SELECT * FROM `+c.table+` LIMIT 0`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // it has no rows
	columns, err := rows.Columns()
	return slices.DeleteFunc(columns, func(name string) bool { return name == "cost_usd" || name == "rowid" }), err
}

func (c *tableCopy) order() string { return strings.Join(c.key, ", ") }

// lastKey returns the key of the last row that is copied already; nil: none.
func (c *tableCopy) lastKey(ctx context.Context) ([]any, error) {
	rows, err := c.to.Reader().QueryxContext(ctx, `SELECT `+c.order()+` FROM `+c.table+` ORDER BY `+strings.Join(c.key,
		" DESC, ")+` DESC LIMIT 1`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	if !rows.Next() {
		return nil, rows.Err()
	}
	return rows.SliceScan()
}

// read returns the next rows after a key.
func (c *tableCopy) read(ctx context.Context, after []any) (all [][]any, err error) {
	where := ""
	if after != nil {
		where = ` WHERE (` + c.order() + `) > (` + placeholders(len(after)) + `)`
	}
	rows, err := c.from.QueryxContext(ctx,
		`SELECT `+quotedColumns(c.columns)+` FROM `+c.table+where+` ORDER BY `+c.order()+` LIMIT `+fmt.Sprint(copyRows),
		after...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	size := 0
	for rows.Next() && size < copyBytes {
		row, err := rows.SliceScan()
		if err != nil {
			return nil, err
		}
		for _, value := range row {
			switch value := value.(type) {
			case string:
				size += len(value)
			case []byte:
				size += len(value)
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func (c *tableCopy) write(ctx context.Context, rows [][]any) error {
	const most = 50 // in one statement; the rest go one by one
	row := `(` + placeholders(len(c.columns)) + `)`
	insert := `INSERT INTO ` + c.table + ` (` + quotedColumns(c.columns) + `) VALUES ` + row
	many := insert + strings.Repeat(`, `+row, most-1)
	return c.to.write(ctx, func(t *tx) error {
		for len(rows) >= most {
			if err := t.Exec(many, slices.Concat(rows[:most]...)...); err != nil {
				return err
			}
			rows = rows[most:]
		}
		for _, row := range rows {
			if err := t.Exec(insert, row...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *tableCopy) keyOf(row []any) []any {
	key := make([]any, len(c.key))
	for i, name := range c.key {
		key[i] = row[slices.Index(c.columns, name)]
	}
	return key
}

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func quotedColumns(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// lastIdentity returns the highest number that a table ever gave.
func (s *Store) lastIdentity(ctx context.Context, from *sqlx.Tx, table string) (last int64, err error) {
	if s.IsPostgres() {
		err = from.GetContext(ctx, &last, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+table+`_id_seq`)
		return last, err
	}
	err = from.GetContext(ctx, &last, `SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = ?`, table)
	return last, err
}

// setIdentity has a table go on after a number.
func (t *tx) setIdentity(table string, last int64) error {
	if t.IsPostgres() {
		var set int64
		return t.Row(`SELECT setval(pg_get_serial_sequence(?, 'id'), MAX(?, 1), ? > 0)`, []any{table, last, last}, &set)
	}
	n, err := t.Changed(`UPDATE sqlite_sequence SET seq = ? WHERE name = ?`, last, table)
	if err != nil || n > 0 || last == 0 {
		return err
	}
	return t.Exec(`INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, table, last)
}
