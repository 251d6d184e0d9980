package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
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
	s := &Store{path: address, opt: opt, network: &network{}, prepared: map[string]*sqlx.Stmt{}}
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
		to       **sqlx.DB
		conns    int
		patience time.Duration
	}{{&s.readers, readerConns, readPatience}, {&s.reports, reportConns, reportPatience}} {
		if s.opt.ReadOnly {
			pool.patience = 0 // a command: its user ends it
		}
		db, err := s.openPostgresPool(nil, pool.patience, stdlib.OptionAfterConnect(readOnly))
		if err != nil {
			return err
		}
		*pool.to = sqlx.NewDb(db, "postgres")
		db.SetMaxOpenConns(pool.conns)
		db.SetMaxIdleConns(pool.conns)
		db.SetConnMaxIdleTime(connIdle)
	}
	callers, err := openSQLPool(cmp.Or(s.opt.SQL, s.path))
	if err != nil {
		return err
	}
	s.callersSQL = sqlx.NewDb(callers, "postgres")
	var order, encoding string
	if err := s.readers.QueryRowContext(ctx, `SELECT `+databaseOrder+`, pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`).Scan(&order, &encoding); err != nil {
		return err
	}
	if order != "C" && order != "POSIX" && order != "C.UTF-8" && order != "C.utf8" || encoding != "UTF8" {
		return session.Errorf(session.Invalid, "%s sorts texts by %s and is encoded as %s, but sessiond needs C and UTF8: create a database with `createdb -T template0 -E UTF8 --lc-collate=C --lc-ctype=C.UTF-8 NAME`",
			PrintableName(s.path), order, encoding)
	}
	return nil
}

// readOnly makes a connection refuse writes. It is no setting of the start, which target_session_attrs=read-write
// would take for a server that only reads, and which a pool in transaction mode would give to others.
func readOnly(ctx context.Context, conn *pgx.Conn) error {
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return nil
	}
	_, err := conn.Exec(ctx, `SET default_transaction_read_only = on`)
	return err
}

// databaseOrder is the name of a database's order of texts: of ICU's, its library alone; the built-in one sorts by bytes.
const databaseOrder = `CASE datlocprovider WHEN 'i' THEN 'ICU' WHEN 'b' THEN 'C' ELSE datcollate END`

func (s *Store) openPostgresWriter(ctx context.Context) error {
	if err := s.checkPostgresVersion(ctx); err != nil {
		return err
	}
	have, want, err := s.postgresVersion(ctx)
	if err == nil && have < want {
		err = s.migratePostgres(ctx)
	}
	if err != nil {
		return err
	}
	// The server frees the lock of a daemon that it cannot reach any more.
	if s.writeDB, err = s.openPostgresPool(map[string]string{
		"lock_timeout":                        strconv.FormatInt(lockPatience.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(writePatience.Milliseconds(), 10),
	}, writePatience); err != nil {
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
	have, want, err := s.postgresVersion(ctx)
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

// checkPostgresSchema refuses a schema that lost its migrations while the store is open. That of a newer
// sessiond is served until this one restarts.
func (s *Store) checkPostgresSchema(ctx context.Context) error {
	have, want, err := s.postgresVersion(ctx)
	if err == nil && have < want {
		err = session.Errorf(session.Unavailable, "%s has schema %d, this sessiond needs %d, perhaps after a restore: restart sessiond, which brings it up to date", PrintableName(s.path), have, want)
	}
	return err
}

// postgresVersion returns the number of the newest migration that the database has, 0 of an empty one, and of
// the newest that this sessiond knows.
func (s *Store) postgresVersion(ctx context.Context) (have, want int64, err error) {
	there := false
	if err = s.readers.GetContext(ctx, &there, `SELECT to_regclass('goose_db_version') IS NOT NULL`); err != nil {
		return 0, 0, err
	}
	if there {
		if err = s.readers.GetContext(ctx, &have, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`); err != nil {
			return 0, 0, err
		}
	}
	want, err = newestMigration("postgres/*.sql")
	return have, want, err
}

// migratePostgres brings the schema up to date. Of several daemons that start at once one does.
func (s *Store) migratePostgres(ctx context.Context) error {
	config, err := s.network.config(s.path, nil, 0)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
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

// lockWriters takes the advisory lock that a writing transaction holds, so that those of all
// daemons follow one another, as they do in SQLite: ids are in the order of commits. At the commit the server
// notifies the other daemons.
const lockWriters = `SELECT pg_advisory_xact_lock(1936028465), pg_notify('` + channel + `', '')`

// beginPostgres begins a transaction, with a savepoint if several jobs share it, on a new connection if
// the old one is gone.
func (w *writer) beginPostgres(ctx context.Context, savepoint bool) error {
	queries := []string{`BEGIN`, lockWriters}
	if w.health.Load().State != StateOK { // a transaction that happens to write nothing would prove nothing
		queries = append(queries, `UPDATE store SET epoch = epoch WHERE id = 1`)
	}
	if savepoint {
		queries = append(queries, `SAVEPOINT job`)
	}
	begin := func() error { return w.send(ctx, queries...) }
	err := begin()
	if err == nil {
		return nil
	}
	if w.rollback(ctx) == nil { // the connection is there
		return err
	}
	if err = w.reconnect(ctx); err == nil {
		err = begin()
	}
	if err != nil {
		_ = w.rollback(ctx) // as in transact
	}
	return err
}

// Statements whose results are not needed wait, and go to PostgreSQL together: before the next one whose
// result is needed, at the end of a job, or when they are many or large.
const (
	queuedMost  = 256
	queuedBytes = 1 << 20
)

// translated is a statement as PostgreSQL reads it, and how many arguments it takes.
type translated struct {
	text   string
	params int
}

// enqueue adds a statement to those that wait.
func (w *writer) enqueue(ctx context.Context, query string, args ...any) error {
	to, known := w.texts[query]
	if !known {
		to.text = pgText(query)
		for _, found := range pgNumber.FindAllStringSubmatch(to.text, -1) {
			n, _ := strconv.Atoi(found[1])
			to.params = max(to.params, n)
		}
		w.texts[query] = to
	}
	if w.queued == nil {
		w.queued, w.queuedSize = &pgx.Batch{}, 0
	}
	values := make([]any, min(len(args), to.params))
	for i := range values {
		v := driver.NamedValue{Ordinal: i + 1, Value: args[i]}
		if err := pgArgument(&v); err != nil {
			return err
		}
		switch value := v.Value.(type) {
		case string:
			w.queuedSize += len(value)
		case []byte:
			w.queuedSize += len(value)
		}
		values[i] = v.Value
	}
	w.queued.Queue(to.text, values...)
	if w.queued.Len() < queuedMost && w.queuedSize < queuedBytes {
		return nil
	}
	return w.flush(ctx)
}

// send sends statements without arguments, after those that wait.
func (w *writer) send(ctx context.Context, queries ...string) error {
	for _, query := range queries {
		if err := w.enqueue(ctx, query); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// flush sends the statements that wait, in one round trip, and returns the first error.
func (w *writer) flush(ctx context.Context) error {
	batch := w.queued
	if batch == nil {
		return nil
	}
	w.queued = nil
	var failed error
	err := w.conn.Raw(func(conn any) error {
		results := conn.(*pgConn).Conn.Conn().SendBatch(ctx, batch)
		for _, sent := range batch.QueuedQueries {
			var tag pgconn.CommandTag
			if tag, failed = results.Exec(); failed == nil && sent.SQL == `COMMIT` && tag.String() != `COMMIT` {
				failed = errors.New("PostgreSQL rolled the transaction back")
			}
			if failed != nil {
				verb, _, _ := strings.Cut(strings.TrimSpace(sent.SQL), "(")
				failed = fmt.Errorf("%s: %w", strings.TrimSpace(verb), failed)
				break
			}
		}
		return cmp.Or(failed, results.Close())
	})
	return cmp.Or(failed, err)
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
		err = w.rememberPID()
	}
	return err
}

// rememberPID records the server's process of the writing connection, by which its notifications are known.
func (w *writer) rememberPID() error {
	return w.conn.Raw(func(conn any) error {
		w.pid.Store(conn.(*pgConn).Conn.Conn().PgConn().PID())
		return nil
	})
}

// config returns how to connect: with the settings, unless the address has others, and with
// patience for a server that is silent.
func (n *network) config(address string, settings map[string]string, patience time.Duration) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "%s", err.Error())
	}
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams["jit"] = "off"                           // compiling takes longer than these statements
	config.RuntimeParams["max_parallel_workers_per_gather"] = "0" // the parts of a UNION ALL come in their order
	for name, value := range settings {
		config.RuntimeParams[name] = cmp.Or(config.RuntimeParams[name], value)
	}
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "sessiond")
	n.watch(config, patience)
	return config, nil
}

// openPostgresPool returns connections to PostgreSQL that speak as SQLite's driver does: placeholders
// are ? and ?1, booleans are 0 and 1, times are texts in UTC, sums are whole numbers.
func (s *Store) openPostgresPool(settings map[string]string, patience time.Duration, options ...stdlib.OptionOpenDB) (*sql.DB, error) {
	config, err := s.network.config(s.path, settings, patience)
	if err != nil {
		return nil, err
	}
	pooled := config.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
	return sql.OpenDB(pgConnector{
		Connector: stdlib.GetConnector(*config, options...), network: s.network, unprepared: pooled,
		reads: settings == nil && !pooled, // a pool would give the scope to others
	}), nil
}

// openSQLPool returns connections for callers' statements. They are sent as they are; the rows have the
// values that SQLite's driver gives. A statement gets a new connection, so that none finds what another
// one left in it, such as a lock.
func openSQLPool(address string) (*sql.DB, error) {
	n := &network{}
	config, err := n.config(address, nil, reportPatience)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // leaves no prepared statement
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		frontend := pgproto3.NewFrontend(r, w)
		frontend.SetMaxBodyLen(maxSQLRow)
		return frontend
	}
	db := sql.OpenDB(pgConnector{Connector: stdlib.GetConnector(*config), network: n, asWritten: true})
	db.SetMaxOpenConns(reportConns)
	db.SetMaxIdleConns(0)
	return db, nil
}

const maxSQLRow = 1 << 20 // bytes of one row

type pgConnector struct {
	driver.Connector
	network    *network
	unprepared bool
	reads      bool

	asWritten bool // statements are not translated
}

func (c pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.network.refusal(); err != nil {
		return nil, postgresError(err)
	}
	conn, err := c.Connector.Connect(ctx)
	if ctx.Err() == nil {
		c.network.connected(err)
	}
	if err != nil && c.asWritten && ctx.Err() == nil {
		return nil, session.Errorf(session.Unavailable, "the database for SQL (sql_db) cannot be reached, or refuses its user: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if err != nil {
		return nil, postgresError(err)
	}
	return &pgConn{
		Conn: conn.(*stdlib.Conn), network: c.network, opened: time.Now(),
		unprepared: c.unprepared, reads: c.reads, asWritten: c.asWritten,
	}, nil
}

// pgConn translates statements, arguments and rows of one connection.
type pgConn struct {
	*stdlib.Conn
	network    *network
	opened     time.Time
	unprepared bool // see pgUnprepared
	asWritten  bool // statements are not translated

	reads   bool // a reader's: its scope is set here; the writer's transactions set their own
	limited bool // scope is in force
	scope   session.Scope
	broken  bool
}

// IsValid implements driver.Validator: a connection that is not is closed.
func (c *pgConn) IsValid() bool { return !c.broken }

func (c *pgConn) text(query string) string {
	if c.asWritten {
		return query
	}
	return pgText(query)
}

func (c *pgConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *pgConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.unprepared {
		query = pgText(query)
		return pgUnprepared{c, query, pgParameters(query)}, nil
	}
	stmt, err := c.Conn.PrepareContext(ctx, c.text(query))
	if err != nil {
		return nil, postgresError(fmt.Errorf("%w in %s", err, query))
	}
	return pgStmt{stmt.(*stdlib.Stmt), c}, nil
}

func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	return c.Conn.ExecContext(ctx, c.text(query), args)
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
	rows, err := c.Conn.QueryContext(ctx, c.text(query), args)
	if c.asWritten && postgresCode(err) == readOnlyTransaction { // the statement is at fault, not the server
		return nil, err
	}
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

// pgUnprepared is a statement that is sent as text at each use: a pool in transaction mode gives each transaction
// another connection to the server, which knows no prepared statement.
type pgUnprepared struct {
	conn       *pgConn
	query      string
	parameters int
}

func (s pgUnprepared) Close() error  { return nil }
func (s pgUnprepared) NumInput() int { return -1 } // as of pgStmt

func (s pgUnprepared) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s pgUnprepared) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (s pgUnprepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.Conn.ExecContext(ctx, s.query, args[:min(len(args), s.parameters)])
}

func (s pgUnprepared) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.conn.Conn.QueryContext(ctx, s.query, args[:min(len(args), s.parameters)])
	return pgRowsOf(rows, err)
}

func (s pgUnprepared) CheckNamedValue(v *driver.NamedValue) error { return pgArgument(v) }

var pgNumbered = regexp.MustCompile(`\$(\d+)|'(?:[^']|'')*'`)

// pgParameters returns the highest number of a parameter in a statement.
func pgParameters(query string) (most int) {
	for _, found := range pgNumbered.FindAllStringSubmatch(query, -1) {
		if n, err := strconv.Atoi(found[1]); err == nil {
			most = max(most, n)
		}
	}
	return most
}

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
	if err := r.Rows.Next(dest); err == io.EOF {
		return io.EOF
	} else if err != nil {
		return postgresError(err)
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
	pgNumber      = regexp.MustCompile(`\$(\d+)`)
	// A message's parts are a range of ids, which SQLite reads without an index. PostgreSQL takes such a
	// range for a ninth of the table, and asks the policy of parts before it: there an index has them.
	pgPartsOf = regexp.MustCompile(`\bp\.id BETWEEN m\.id << 10 AND \(m\.id << 10\) \+ 1023`)
	// Hints for SQLite's planner: which index, and which table first.
	pgIndexedBy = regexp.MustCompile(` INDEXED BY \w+`)
	pgCrossJoin = regexp.MustCompile(`CROSS JOIN (\w+ \w+ ON )`)
)

// pgText returns a statement as PostgreSQL reads it: placeholders are numbered, hints for SQLite's
// planner are left out, a message's parts are found by its id.
func pgText(query string) string {
	query = pgCrossJoin.ReplaceAllString(pgIndexedBy.ReplaceAllString(query, ""), "JOIN $1")
	if query == `BEGIN DEFERRED` {
		return `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	}
	query = pgPartsOf.ReplaceAllString(query, "p.message_id = m.id")
	query = strings.ReplaceAll(query, " LIKE ", " ILIKE ") // SQLite's ignores case
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
