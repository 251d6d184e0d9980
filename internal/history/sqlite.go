package history

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sessiond/internal/session"
)

// SQLite is one snapshot of another program's database, for reading: one connection in one
// read transaction, so that all that is read of it belongs together. Queries may be nested.
// Select only columns that Schema gives, and cast columns declared TIMESTAMP or BOOLEAN
// (CAST(created_at AS TEXT)): the driver would turn them into other types.
//
// It remembers the first error of a query, which TakeErr returns: until then queries find nothing.
type SQLite struct {
	*sqlx.Conn
	db     *sqlx.DB
	ctx    context.Context
	err    error // the first one of a query
	path   string
	before os.FileInfo // of the database, when nothing keeps its owner from changing it
}

const (
	// copyLimit is the size up to which a database with a write-ahead log is copied rather
	// than read beside its owner: that keeps the owner's log from shrinking meanwhile.
	copyLimit = 32 << 20
	copyTries = 5
	// patienceMS is how long SQLite waits for the owner's lock. Waiting ignores contexts.
	patienceMS = 2000
)

// OpenSQLite opens a database that its owner may be writing, without writing anything beside
// it, taking locks that its owner waits for, or checkpointing its log:
//
//   - no write-ahead log, or an empty one: as it is, without locks; Check tells whether it
//     changed meanwhile;
//   - a log, and little data: a private copy of both, removed once it is open;
//   - a log, and much data: beside its owner, by SQLite's own locks, if that left its -shm
//     file; keep the reading short.
//
// Codes: Invalid (no SQLite database, a damaged one), Busy (its owner keeps changing it, or
// stopped in the middle of a write), Forbidden, NotFound.
func OpenSQLite(ctx context.Context, path string) (*SQLite, error) {
	s, err := openSnapshot(ctx, path)
	if err != nil {
		return nil, SQLiteError(err)
	}
	return s, nil
}

func openSnapshot(ctx context.Context, path string) (*SQLite, error) {
	if err := checkMagic(path); err != nil {
		return nil, err
	}
	if size(path+"-journal") > 0 {
		return nil, session.Errorf(session.Busy,
			"its program is writing, or stopped in the middle of a write: let it finish, or start it once")
	}
	if size(path+"-wal") <= 0 {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		s := &SQLite{path: path, before: info, ctx: ctx}
		return s, s.begin(ctx, path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
	}
	live := size(path+"-shm") > 0
	if live && size(path)+size(path+"-wal") > copyLimit {
		s := &SQLite{path: path, ctx: ctx}
		err := s.begin(ctx, path, url.Values{"mode": {"ro"}})
		if code := codeOf(err) & 0xff; code != sqlite3.SQLITE_CANTOPEN && code != sqlite3.SQLITE_READONLY {
			return s, err
		}
	}
	folder, err := os.MkdirTemp("", tempNames) // 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // open, the copy can be read though it has no name any more
	s := &SQLite{path: path, ctx: ctx}
	if err := s.copy(ctx, folder); err != nil {
		return nil, err
	}
	return s, s.begin(ctx, filepath.Join(folder, copyName), url.Values{"mode": {"ro"}})
}

// copyName is the name of a copy in its folder.
const copyName = "copy.db"

// begin opens file and takes the snapshot. On an error everything is closed.
func (s *SQLite) begin(ctx context.Context, file string, query url.Values) error {
	query["_pragma"] = []string{"query_only(1)", "busy_timeout(" + strconv.Itoa(patienceMS) + ")", "temp_store(memory)"}
	name := url.URL{Scheme: "file", Path: file, RawQuery: query.Encode()}
	db, err := sqlx.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	s.db = db
	if s.Conn, err = db.Connx(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	// The transaction itself reads nothing yet: the first question makes the snapshot.
	var n int
	if _, err = s.ExecContext(ctx, `BEGIN`); err == nil {
		err = s.GetContext(ctx, &n, `SELECT COUNT(*) FROM sqlite_schema`)
	}
	if err != nil {
		return errors.Join(err, s.Conn.Close(), db.Close())
	}
	return nil
}

// copy takes the database, then its log. While neither changed, the two belong together.
func (s *SQLite) copy(ctx context.Context, folder string) error {
	for range copyTries {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := [2]os.FileInfo{stat(s.path), stat(s.path + "-wal")}
		for _, suffix := range []string{"", "-wal"} {
			err := copyFile(filepath.Join(folder, copyName+suffix), s.path+suffix)
			if err != nil && !(suffix == "-wal" && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
		if same(before[0], stat(s.path)) && same(before[1], stat(s.path+"-wal")) {
			return nil
		}
	}
	return session.Errorf(session.Busy, "its program is writing too fast to take a copy: import again in a moment")
}

// Check reports whether what was read until now belongs together: ask it before something that
// was read is stored. Codes: Busy (the owner changed the file meanwhile; read it again).
func (s *SQLite) Check() error {
	if s.before != nil && !same(s.before, stat(s.path)) {
		return session.Errorf(session.Busy, "its program changed it while it was read: import again")
	}
	return nil
}

// Close ends the snapshot.
func (s *SQLite) Close() error {
	_, err := s.ExecContext(context.Background(), `ROLLBACK`)
	return errors.Join(err, s.Conn.Close(), s.db.Close())
}

// TakeErr returns the first error since it was asked last, as SQLiteError tells it.
func (s *SQLite) TakeErr() error {
	err := s.err
	s.err = nil
	return SQLiteError(err)
}

// Fail remembers an error of a query, unless that is nil or one failed before.
func (s *SQLite) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// do runs a query unless one failed before.
func (s *SQLite) do(query func() error) {
	if s.err == nil {
		s.Fail(query())
	}
}

// Get reads the one row of a query.
func (s *SQLite) Get(to any, query string, args ...any) {
	s.do(func() error { return s.GetContext(s.ctx, to, query, args...) })
}

// Select reads the rows of a query.
func (s *SQLite) Select(to any, query string, args ...any) {
	s.do(func() error { return s.SelectContext(s.ctx, to, query, args...) })
}

// Schema is the tables of a database by name, those that are read with their columns.
type Schema map[string][]string

// Has reports whether a table has a column.
func (s Schema) Has(table, column string) bool { return slices.Contains(s[table], column) }

// Column returns the column of a table, or another expression where there is no such column.
func (s Schema) Column(table, column, or string) string {
	if s.Has(table, column) {
		return column
	}
	return or
}

// Require forgets the columns of a table that lacks one of those named, so that it is not read, and
// returns what is wrong with it; "" where nothing is, or there is no such table.
func (s Schema) Require(table string, columns ...string) string {
	if _, ok := s[table]; ok {
		for _, column := range columns {
			if !s.Has(table, column) {
				s[table] = nil
				return "its table " + table + " has no column " + column + " and was left out"
			}
		}
	}
	return ""
}

// Schema returns all tables, those that are wanted with their columns: the rest may hold what is
// not to be looked at.
func (s *SQLite) Schema(wanted ...string) Schema {
	schema := Schema{}
	for _, table := range s.Tables() {
		var columns []string
		if slices.Contains(wanted, table) {
			s.Select(&columns, `SELECT name FROM pragma_table_info(?) ORDER BY cid`, table)
		}
		schema[table] = columns
	}
	return schema
}

// Each visits the rows of a query.
func (s *SQLite) Each(visit func(*sqlx.Rows) error, query string, args ...any) {
	s.do(func() error {
		rows, err := s.QueryxContext(s.ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := visit(rows); err != nil {
				return err
			}
		}
		return errors.Join(rows.Err(), s.ctx.Err())
	})
}

// Column is a column of a row that is not NULL, as text.
type Column struct{ Name, Text string }

// Row is a row of any table, in the order of its columns.
type Row []Column

// Get returns the text of a column, "" for NULL and for one that is not there.
func (r Row) Get(name string) string {
	for _, c := range r {
		if c.Name == name {
			return c.Text
		}
	}
	return ""
}

// EachRow visits the rows of a table of small rows, with the columns that are named. The clauses
// follow the table's name.
func (s *SQLite) EachRow(table string, columns []string, clauses string, visit func(Row), args ...any) {
	selected := make([]string, len(columns))
	for i, name := range columns {
		selected[i] = `CAST("` + strings.ReplaceAll(name, `"`, `""`) + `" AS TEXT)`
	}
	s.Each(func(rows *sqlx.Rows) error {
		values, err := rows.SliceScan()
		if err != nil {
			return err
		}
		var row Row
		for i, value := range values {
			if text, ok := value.(string); ok {
				row = append(row, Column{columns[i], Plain(text)})
			}
		}
		visit(row)
		return nil
	}, `SELECT `+strings.Join(selected, ", ")+` FROM `+table+` `+clauses, args...)
}

// Extent says how many rows of a table belong to a session, and what changes with them.
type Extent struct {
	Count  int64 `db:"n"`
	Newest int64 `db:"newest"`
	First  int64 `db:"first"`
}

// Extents returns the extent of each session in a table: newest is of its rows, first, too.
func (s *SQLite) Extents(table, newest, first string) map[string]Extent {
	var list []struct {
		Session string `db:"session_id"`
		Extent
	}
	s.Select(&list, `SELECT CAST(session_id AS TEXT) AS session_id, COUNT(*) AS n, `+newest+` AS newest, `+first+` AS first
		FROM `+table+` WHERE session_id IS NOT NULL GROUP BY session_id`)
	all := make(map[string]Extent, len(list))
	for _, e := range list {
		all[e.Session] = e.Extent
	}
	return all
}

// Tables returns the names of all tables.
func (s *SQLite) Tables() (names []string) {
	s.Select(&names, `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
	return names
}

// RowIDs returns the ids of the rows of some tables in another program's database, each once. A
// table that is missing has none; known is false where the database cannot be read.
func RowIDs(ctx context.Context, path string, tables ...string) (ids []string, known bool) {
	db, err := OpenSQLite(ctx, path)
	if err != nil {
		return nil, false
	}
	defer db.Close() //nolint:errcheck // nothing was written
	there := db.Tables()
	for _, table := range tables {
		if slices.Contains(there, table) {
			var more []string
			db.Select(&more, `SELECT COALESCE(CAST(id AS TEXT), '') FROM "`+table+`"`)
			ids = append(ids, more...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), db.TakeErr() == nil
}

// StatSQLite describes a database and its log as one found thing, so that what is only in the
// log counts as a change. Links are resolved.
func StatSQLite(path string) (Found, error) {
	real, err := realPath(path)
	if err != nil {
		return Found{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return Found{}, err
	}
	f := Found{Path: real, Size: info.Size(), ModifiedAt: info.ModTime()}
	if log := stat(real + "-wal"); log != nil && log.Size() > 0 {
		f.Size += log.Size()
		if log.ModTime().After(f.ModifiedAt) {
			f.ModifiedAt = log.ModTime()
		}
	}
	return f, nil
}

// magic begins every SQLite database.
const magic = "SQLite format 3\x00"

// checkMagic refuses what is no database before SQLite sees it.
func checkMagic(path string) error {
	head, err := Head(path, len(magic))
	switch {
	case err != nil:
		return err
	case len(head) == 0:
		return session.Errorf(session.Invalid, "the file is empty")
	case string(head) != magic:
		return session.Errorf(session.Invalid, "it is no SQLite database")
	}
	return nil
}

// IsDatabase reports whether a file is an SQLite database, by its name or its first bytes.
func IsDatabase(path string) bool { return IsDatabaseName(path) || checkMagic(path) == nil }

// IsDatabaseName reports whether a file has the name of an SQLite database.
func IsDatabaseName(path string) bool {
	return slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, filepath.Ext(path))
}

// SQLiteError puts what SQLite says into words that lead on; other errors stay as they are.
// Codes: Invalid (damaged, no database, other tables than expected), Busy, Forbidden.
func SQLiteError(err error) error {
	var known *session.Error
	if errors.As(err, &known) {
		return err
	}
	switch codeOf(err) & 0xff {
	case sqlite3.SQLITE_NOTADB:
		return session.Errorf(session.Invalid, "it is no SQLite database, or an encrypted one: %w", err)
	case sqlite3.SQLITE_CORRUPT:
		return session.Errorf(session.Invalid, "the database is damaged: %w", err)
	case sqlite3.SQLITE_ERROR:
		return session.Errorf(session.Invalid, "its tables are not those that this version of sessiond knows: %w", err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return session.Errorf(session.Busy, "its program has locked it: import again when that is at rest: %w", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return session.Errorf(session.Forbidden,
			"this user may not read it: check the permissions of the file and its folder: %w", err)
	}
	return err
}

func codeOf(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func copyFile(to, from string) (err error) {
	in, _, err := Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// stat returns nil for what is not there.
func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// size returns -1 for what is not there.
func size(path string) int64 {
	if info := stat(path); info != nil {
		return info.Size()
	}
	return -1
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
