package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"sessiond/db/migrations"
	"sessiond/internal/session"
)

// IsPostgres reports whether a database is named by an address of PostgreSQL and not by a path.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// PrintableName returns a database's name without its password.
func PrintableName(name string) string {
	if !IsPostgres(name) {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "postgres://…"
	}
	return u.Redacted()
}

// openPostgres opens a database of PostgreSQL, in the schema that the address names first (public, or
// search_path), and brings it up to date. Codes: Invalid (a newer sessiond's, sorted otherwise),
// NotFound, Forbidden, Unavailable.
func openPostgres(ctx context.Context, address string, opt Options) (*Store, error) {
	opt.shared = true
	s := &Store{path: address, opt: opt, prepared: map[string]*sqlx.Stmt{}}
	s.statements = statements{stmt: s.readerStmt}
	err := s.openPools(ctx)
	if err == nil && !opt.ReadOnly {
		err = s.openPostgresWriter(ctx)
	}
	if err == nil {
		err = s.checkPostgresVersion(ctx)
	}
	if err != nil {
		if s.writer != nil {
			s.writer.stop()
		}
		s.closeHandles()
		return nil, openPostgresError(PrintableName(address), err)
	}
	return s, nil
}

// openPools opens the reading connections, and refuses a database that sorts texts in another way than
// SQLite does: by bytes.
func (s *Store) openPools(ctx context.Context) error {
	for _, pool := range []struct {
		to    **sqlx.DB
		conns int
	}{{&s.readers, readerConns}, {&s.reports, reportConns}} {
		db, err := openPostgresPool(s.path, true)
		if err != nil {
			return err
		}
		*pool.to = sqlx.NewDb(db, "postgres")
		db.SetMaxOpenConns(pool.conns)
		db.SetMaxIdleConns(pool.conns)
		db.SetConnMaxIdleTime(connIdle)
	}
	var order, encoding string
	if err := s.readers.QueryRowContext(ctx, `SELECT datcollate, pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`).Scan(&order, &encoding); err != nil {
		return err
	}
	if order != "C" && order != "POSIX" && order != "C.UTF-8" && order != "C.utf8" || encoding != "UTF8" {
		return session.Errorf(session.Invalid, "%s sorts texts by %s and is encoded as %s, but sessiond needs C and UTF8: create a database with `createdb -T template0 -E UTF8 --lc-collate=C --lc-ctype=C.UTF-8 NAME`",
			PrintableName(s.path), order, encoding)
	}
	return nil
}

func (s *Store) openPostgresWriter(ctx context.Context) error {
	if err := s.checkPostgresVersion(ctx); err != nil {
		return err
	}
	if err := migratePostgres(ctx, s.path); err != nil {
		return err
	}
	var err error
	if s.writeDB, err = openPostgresPool(s.path, false); err != nil {
		return err
	}
	s.writeDB.SetMaxOpenConns(1)
	if s.writer, err = startWriter(s.writeDB, s.path, s.opt); err != nil {
		return err
	}
	err = s.write(ctx, func(t *tx) error {
		if named, err := t.exists(`SELECT 1 FROM tokens LIMIT 1`); err != nil || !named {
			return err
		}
		return t.makeTokenRole() // for tables that a migration made, and tokens that were copied
	})
	if session.CodeOf(err) == session.Forbidden {
		s.opt.Log.Warn().Err(err).Msg("requests with named tokens fail")
		err = nil
	}
	if err == nil {
		err = s.write(ctx, func(t *tx) error { return t.housekeeping() })
	}
	if err != nil {
		return err
	}
	s.writer.opened.Store(true)
	return nil
}

// checkPostgresVersion refuses the schema of a newer sessiond, and, for a reader, one of an older one.
func (s *Store) checkPostgresVersion(ctx context.Context) error {
	var there bool
	if err := s.readers.GetContext(ctx, &there, `SELECT to_regclass('goose_db_version') IS NOT NULL`); err != nil {
		return err
	}
	var have int64
	if there {
		if err := s.readers.GetContext(ctx, &have, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`); err != nil {
			return err
		}
	}
	want, err := newestMigration()
	switch name := PrintableName(s.path); {
	case err != nil:
		return err
	case have > want:
		return session.Errorf(session.Invalid, "%s has schema %d, this sessiond knows up to %d: update sessiond; nothing was changed", name, have, want)
	case have == 0 && s.opt.ReadOnly:
		return session.Errorf(session.NotFound, "%s is empty: start `sessiond serve`, or import something, to fill it", name)
	case have < want && s.opt.ReadOnly:
		return session.Errorf(session.Invalid, "%s has schema %d, this sessiond reads %d: start `sessiond serve` to bring it up to date", name, have, want)
	}
	return nil
}

// migratePostgres brings the schema up to date. Of several daemons that start at once one does.
func migratePostgres(ctx context.Context, address string) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // every migration is committed
	files, err := fs.Sub(migrations.FS, "postgres")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	_, err = provider.Up(ctx)
	return wrap(err, "migrate")
}

// writersLock is the number of the advisory lock that a writing transaction holds, so that those of all
// daemons follow one another, as they do in SQLite: ids are in the order of commits.
const writersLock = 0x73657331

// beginPostgres begins a transaction, on a new connection if the old one is gone.
func (w *writer) beginPostgres(ctx context.Context) error {
	err := w.exec1(ctx, `BEGIN`)
	if err != nil {
		if err = w.reconnect(ctx); err == nil {
			err = w.exec1(ctx, `BEGIN`)
		}
	}
	if err != nil {
		return err
	}
	var locked any
	st, err := w.stmt(ctx, `SELECT pg_advisory_xact_lock(?)`)
	if err == nil {
		err = st.QueryRowContext(ctx, writersLock).Scan(&locked)
	}
	if err != nil {
		_ = w.exec1(ctx, `ROLLBACK`) // as in transact
	}
	return err
}

func (w *writer) reconnect(ctx context.Context) error {
	for query, st := range w.stmts {
		st.Close() //nolint:errcheck // its connection is gone
		delete(w.stmts, query)
	}
	w.conn.Close() //nolint:errcheck // as above
	conn, err := w.db.Connx(ctx)
	if err == nil {
		w.conn = conn
	}
	return err
}

// openPostgresPool returns connections to PostgreSQL that speak as SQLite's driver does: placeholders
// are ? and ?1, booleans are 0 and 1, times are texts in UTC, sums are whole numbers.
func openPostgresPool(address string, readOnly bool) (*sql.DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "%s", err.Error())
	}
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams["max_parallel_workers_per_gather"] = "0" // the parts of a UNION ALL come in their order
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "sessiond"
	}
	if readOnly {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	return sql.OpenDB(pgConnector{stdlib.GetConnector(*config), readOnly}), nil
}

type pgConnector struct {
	driver.Connector
	reads bool
}

func (c pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &pgConn{Conn: conn.(*stdlib.Conn), reads: c.reads}, nil
}

// pgConn translates statements, arguments and rows of one connection.
type pgConn struct {
	*stdlib.Conn
	reads   bool // not the writer's, whose transactions set their scope
	limited bool // scope is in force
	scope   session.Scope
	broken  bool
}

// IsValid implements driver.Validator: a connection that is not is closed.
func (c *pgConn) IsValid() bool { return !c.broken }

func (c *pgConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *pgConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.PrepareContext(ctx, pgText(query))
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, query)
	}
	return pgStmt{stmt.(*stdlib.Stmt), c}, nil
}

func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	return c.Conn.ExecContext(ctx, pgText(query), args)
}

// BeginTx implements driver.ConnBeginTx.
func (c *pgConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	return c.Conn.BeginTx(ctx, opts)
}

func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.use(ctx); err != nil {
		return nil, postgresError(err)
	}
	query, args = pgNamed(query, args)
	rows, err := c.Conn.QueryContext(ctx, pgText(query), args)
	return pgRowsOf(rows, postgresError(err))
}

var pgName = regexp.MustCompile(`'(?:[^']|'')*'|::|:[a-z_]+`)

// pgNamed replaces named parameters, :since, by numbered ones, and puts the arguments in that order. A
// parameter without an argument is NULL.
func pgNamed(query string, args []driver.NamedValue) (string, []driver.NamedValue) {
	if len(args) == 0 || args[0].Name == "" {
		return query, args
	}
	numbers, ordered := map[string]int{}, []driver.NamedValue(nil)
	query = pgName.ReplaceAllStringFunc(query, func(found string) string {
		if found[0] == '\'' || found == "::" {
			return found
		}
		name := found[1:]
		if numbers[name] == 0 {
			numbers[name] = len(ordered) + 1
			arg := driver.NamedValue{Ordinal: numbers[name]}
			if i := slices.IndexFunc(args, func(a driver.NamedValue) bool { return a.Name == name }); i >= 0 {
				arg.Value = args[i].Value
			}
			ordered = append(ordered, arg)
		}
		return "$" + strconv.Itoa(numbers[name])
	})
	return query, ordered
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *pgConn) CheckNamedValue(v *driver.NamedValue) error { return pgArgument(v) }

type pgStmt struct {
	*stdlib.Stmt
	conn *pgConn
}

// NumInput leaves the number of arguments open: as in SQLite there may be more than a statement uses.
func (s pgStmt) NumInput() int { return -1 }

func (s pgStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.Stmt.ExecContext(ctx, args[:min(len(args), s.Stmt.NumInput())])
}

func (s pgStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.use(ctx); err != nil {
		return nil, err
	}
	rows, err := s.Stmt.QueryContext(ctx, args[:min(len(args), s.Stmt.NumInput())])
	return pgRowsOf(rows, err)
}

func (s pgStmt) CheckNamedValue(v *driver.NamedValue) error { return pgArgument(v) }

func pgArgument(v *driver.NamedValue) error {
	value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
	if err != nil {
		return err
	}
	switch value := value.(type) {
	case bool:
		v.Value = int64(0)
		if value {
			v.Value = int64(1)
		}
	case time.Time:
		v.Value = session.At(value).SQL()
	default:
		v.Value = value
	}
	return nil
}

// pgRows are rows whose values are those that SQLite's driver gives.
type pgRows struct{ *stdlib.Rows }

func pgRowsOf(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	return pgRows{rows.(*stdlib.Rows)}, nil
}

func (r pgRows) Next(dest []driver.Value) error {
	if err := r.Rows.Next(dest); err != nil {
		if err == io.EOF {
			return io.EOF
		}
		return err
	}
	for i, v := range dest {
		switch v := v.(type) {
		case time.Time:
			dest[i] = session.At(v).SQL()
		case bool:
			dest[i] = int64(0)
			if v {
				dest[i] = int64(1)
			}
		case []byte:
			if name := r.ColumnTypeDatabaseTypeName(i); name == "JSON" || name == "JSONB" {
				dest[i] = string(v)
			}
		case string:
			if r.ColumnTypeDatabaseTypeName(i) != "NUMERIC" {
				break
			}
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				dest[i] = n
			} else if f, err := strconv.ParseFloat(v, 64); err == nil {
				dest[i] = f
			}
		}
	}
	return nil
}

var (
	pgPlaceholder = regexp.MustCompile(`\+?\?(\d*)|'(?:[^']|'')*'`)
	// Hints for SQLite's planner: which index, and which table first.
	pgIndexedBy = regexp.MustCompile(` INDEXED BY \w+`)
	pgCrossJoin = regexp.MustCompile(`CROSS JOIN (\w+ \w+ ON )`)
)

// pgPartsOfMessages computes the ids' range before the join. A policy of parts is asked before << and +, which can
// fail with a row's number in the error; the join would read all parts for it.
const pgPartsOfMessages = `CROSS JOIN LATERAL (SELECT m.id << 10 AS first, (m.id << 10) + 1023 AS last OFFSET 0) r
	JOIN parts p ON p.id BETWEEN r.first AND r.last`

// pgText returns a statement as PostgreSQL reads it: placeholders are numbered, hints for SQLite's
// planner are left out.
func pgText(query string) string {
	query = pgCrossJoin.ReplaceAllString(pgIndexedBy.ReplaceAllString(query, ""), "JOIN $1")
	if query == `BEGIN DEFERRED` {
		return `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	}
	query = strings.ReplaceAll(query, " LIKE ", " ILIKE ") // SQLite's ignores case
	query = strings.ReplaceAll(query, partsOfMessages, pgPartsOfMessages)
	n := 0
	return pgPlaceholder.ReplaceAllStringFunc(query, func(found string) string {
		if found[0] == '\'' {
			return found
		}
		number := strings.TrimLeft(found, "+?")
		if number == "" {
			n++
			number = strconv.Itoa(n)
		}
		return "$" + number
	})
}
