package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"sessiond/internal/session"
)

// config returns how to connect: with the settings, unless the address has others, and with
// patience for a server that is silent.
func (n *network) config(address string, settings map[string]string, patience time.Duration) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		_, cause, _ := strings.Cut(err.Error(), "`: ") // it quotes the address
		return nil, session.Errorf(session.Invalid, "the address %s cannot be used: %s", PrintableName(address), cause)
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

// isPooled reports whether the address tells of a pool in transaction mode: it keeps no state of a connection.
func isPooled(config *pgx.ConnConfig) bool {
	return config.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
}

// openPostgresPool returns connections to PostgreSQL that speak as SQLite's driver does: placeholders
// are ? and ?1, booleans are 0 and 1, times are texts in UTC, sums are whole numbers.
func (s *Store) openPostgresPool(settings map[string]string, patience time.Duration, options ...stdlib.OptionOpenDB) (*sql.DB, error) {
	config, err := s.network.config(s.path, settings, patience)
	if err != nil {
		return nil, err
	}
	pooled := isPooled(config)
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
