package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"sessiond/internal/pattern"
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
func (s *DB) openPostgresPool(settings map[string]string, patience time.Duration,
	options ...stdlib.OptionOpenDB,
) (*sql.DB, error) {
	config, err := s.network.config(s.path, settings, patience)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(pgConnector{
		Connector: stdlib.GetConnector(*config, options...), network: s.network, opt: &s.opt,
		reads: settings == nil && !isPooled(config), // a pool would give the scope to others
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
	db := sql.OpenDB(pgConnector{Connector: stdlib.GetConnector(*config), network: n, opt: &Options{}, asWritten: true})
	db.SetMaxOpenConns(reportConns)
	db.SetMaxIdleConns(0)
	return db, nil
}

const maxSQLRow = 1 << 20 // bytes of one row

type pgConnector struct {
	driver.Connector
	network *network
	opt     *Options
	reads   bool

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
		return nil, session.Errorf(session.Unavailable,
			"the database for SQL (sql_db) cannot be reached, or refuses its user: %s",
			strings.Join(strings.Fields(err.Error()), " "))
	}
	if err != nil {
		return nil, postgresError(err)
	}
	return &pgConn{
		Conn: conn.(*stdlib.Conn), network: c.network, opt: c.opt, opened: time.Now(),
		reads: c.reads, asWritten: c.asWritten, texts: map[string]translated{},
	}, nil
}

// pgConn translates statements, arguments and rows of one connection. pgx keeps the statements prepared, but
// on a connection that tells of a pool.
type pgConn struct {
	*stdlib.Conn
	network   *network
	opt       *Options
	opened    time.Time
	asWritten bool // statements are not translated
	texts     map[string]translated
	queued    []statement // that go with the next one; their results are not needed

	reads bool     // a reader's: its scope is set here; the writer's transactions set their own
	scope []string // in force; nil: none
}

// translated is a statement as PostgreSQL reads it, and how many arguments it takes.
type translated struct {
	text   string
	params int
}

// maxTexts bounds what a connection remembers; a caller's filters make few texts.
const maxTexts = 512

func (c *pgConn) translate(query string) translated {
	to, known := c.texts[query]
	if !known {
		if to.text = query; c.opt.Rewrite != nil {
			to.text = c.opt.Rewrite(query)
		}
		to.text = pgText(to.text)
		to.params = pgParameters(to.text)
		if len(c.texts) < maxTexts {
			c.texts[query] = to
		}
	}
	return to
}

// batch translates statements for one round trip. Those that run as the role of tokens have a text, and so a
// plan, of their own: PostgreSQL would plan one again at each change of the role.
func (c *pgConn) batch(ctx context.Context, all ...statement) *pgx.Batch {
	limited := c.opt.Rows.of(ctx) != nil
	batch := &pgx.Batch{}
	for _, s := range all {
		to := c.translate(s.query)
		if limited {
			to.text += " -- " + c.opt.Rows.Role
		}
		batch.Queue(to.text, s.args[:min(len(s.args), to.params)]...)
	}
	return batch
}

// statement has the values of its arguments as PostgreSQL's driver takes them. There may be more than it uses,
// as in SQLite.
type statement struct {
	query string
	args  []any
}

func newStatement(query string, args []any) (statement, error) {
	s := statement{query, make([]any, len(args))}
	for i, arg := range args {
		v := driver.NamedValue{Ordinal: i + 1, Value: arg}
		if err := pgArgument(&v); err != nil {
			return s, err
		}
		s.args[i] = v.Value
	}
	return s, nil
}

func (c *pgConn) Prepare(query string) (driver.Stmt, error) { return pgStmt{c, query}, nil }

func (c *pgConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return pgStmt{c, query}, nil
}

func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.asWritten {
		return c.Conn.ExecContext(ctx, query, args)
	}
	rows, err := c.query(ctx, statement{query, pgValues(args)})
	if err != nil {
		return nil, err
	}
	r := rows.(*pgRows)
	r.rows.Close()
	return driver.RowsAffected(r.rows.CommandTag().RowsAffected()), r.Close()
}

// BeginTx implements driver.ConnBeginTx.
func (c *pgConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	return c.Conn.BeginTx(ctx, opts)
}

func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.asWritten {
		rows, err := c.Conn.Conn().Query(ctx, query,
			append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, pgValues(args)...)...)
		r := &pgRows{conn: c}
		// else the statement is at fault, not the server
		if err = cmp.Or(err, r.begin(rows)); PostgresCode(err) != readOnlyTransaction {
			err = postgresError(err)
		}
		return r, err
	}
	if len(args) == 1 {
		if several, ok := args[0].Value.([]statement); ok {
			return c.query(ctx, several...)
		}
	}
	query, args = pgNamed(query, args)
	return c.query(ctx, statement{query, pgValues(args)})
}

// query sends statements in one round trip, behind those that wait, and behind the scope of the context if the
// connection has another.
func (c *pgConn) query(ctx context.Context, all ...statement) (driver.Rows, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	queued := c.queued
	c.queued = nil
	scoped, scope := c.setScope(ctx)
	batch := c.batch(ctx, slices.Concat(queued, scoped, all)...)
	r := &pgRows{conn: c, results: c.Conn.Conn().SendBatch(ctx, batch), left: len(all)}
	for _, s := range queued {
		tag, err := r.results.Exec()
		if err == nil && s.query == `COMMIT` && tag.String() != `COMMIT` {
			err = errors.New("PostgreSQL rolled the transaction back")
		}
		if err != nil {
			r.Close() //nolint:errcheck // the error says more
			verb, _, _ := strings.Cut(strings.TrimSpace(s.query), "(")
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(verb), err)
		}
	}
	if len(scoped) > 0 {
		r.scope, r.scoped = scope, true
		if _, err := r.results.Exec(); err != nil {
			r.Close() //nolint:errcheck // the error says more
			return nil, c.opt.Rows.refused(err)
		}
	}
	if err := r.NextResultSet(); err != nil && len(all) > 0 {
		r.Close() //nolint:errcheck // as above
		if pgconn.SafeToRetry(err) {
			err = driver.ErrBadConn
		}
		return nil, postgresError(err)
	}
	return r, nil
}

func pgValues(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	return values
}

var pgName = pattern.New(`'(?:[^']|'')*'|::|:[a-z_]+`)

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

// pgStmt is a statement that pgx prepares at its first use.
type pgStmt struct {
	conn  *pgConn
	query string
}

func (s pgStmt) Close() error  { return nil }
func (s pgStmt) NumInput() int { return -1 } // see statement

func (s pgStmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s pgStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (s pgStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, args)
}

func (s pgStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, args)
}

func (s pgStmt) CheckNamedValue(v *driver.NamedValue) error { return pgArgument(v) }

var pgNumbered = pattern.New(`\$(\d+)|'(?:[^']|'')*'`)

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
	if _, several := v.Value.([]statement); several {
		return nil
	}
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

// pgRows are the rows of one statement or, a result set each, of several that were sent together. Their values are
// those that SQLite's driver gives.
type pgRows struct {
	conn    *pgConn
	results pgx.BatchResults // nil: of a statement that was sent alone
	left    int              // result sets that come after this one
	rows    pgx.Rows
	ahead   bool // the first row was read to see whether there is an error
	more    bool // what reading it returned

	scoped bool // the connection has this scope from the end on
	scope  []string
}

func (r *pgRows) begin(rows pgx.Rows) error {
	r.rows, r.ahead, r.more = rows, true, rows.Next()
	return rows.Err()
}

func (r *pgRows) HasNextResultSet() bool { return r.left > 0 }

func (r *pgRows) NextResultSet() error {
	if r.left == 0 {
		return io.EOF
	}
	if r.rows != nil {
		r.rows.Close()
	}
	r.left--
	rows, err := r.results.Query()
	return cmp.Or(err, r.begin(rows))
}

func (r *pgRows) Close() error {
	var err error
	if r.rows != nil {
		r.rows.Close()
		err = r.rows.Err()
	}
	if r.results != nil {
		err = cmp.Or(r.results.Close(), err)
	}
	if err == nil && r.scoped { // a failure takes the scope back
		r.conn.scope = r.scope
	}
	return err
}

func (r *pgRows) Columns() []string {
	var names []string
	for _, f := range r.rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	return names
}

func (r *pgRows) Next(dest []driver.Value) error {
	if !r.ahead {
		r.more = r.rows.Next()
	}
	if r.ahead = false; !r.more {
		return cmp.Or(postgresError(r.rows.Err()), io.EOF)
	}
	fields := r.rows.FieldDescriptions()
	for i, raw := range r.rows.RawValues() {
		var err error
		if dest[i], err = r.value(&fields[i], raw); err != nil {
			return fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
	}
	return nil
}

func (r *pgRows) value(f *pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	types := r.conn.Conn.Conn().TypeMap()
	kind, known := types.TypeForOID(f.DataTypeOID)
	switch {
	case raw == nil:
		return nil, nil
	case !known, f.DataTypeOID == pgtype.TextOID, f.DataTypeOID == pgtype.JSONOID, f.DataTypeOID == pgtype.JSONBOID:
		return string(raw), nil
	}
	v, err := kind.Codec.DecodeDatabaseSQLValue(types, f.DataTypeOID, f.Format, raw)
	switch v := v.(type) {
	case time.Time:
		return session.At(v).SQL(), err
	case bool:
		if v {
			return int64(1), err
		}
		return int64(0), err
	case string:
		if f.DataTypeOID != pgtype.NumericOID {
			break
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		} else if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f, nil
		}
	}
	return v, err
}

var (
	pgPlaceholder = pattern.New(`\+?\?(\d*)|'(?:[^']|'')*'`)
	// Hints for SQLite's planner: which index, and which table first.
	pgIndexedBy = pattern.New(` INDEXED BY \w+`)
	pgCrossJoin = pattern.New(`CROSS JOIN (\w+ \w+ ON )`)
)

// pgText returns a statement as PostgreSQL reads it: placeholders are numbered, hints for SQLite's
// planner are left out.
func pgText(query string) string {
	query = pgCrossJoin.ReplaceAllString(pgIndexedBy.ReplaceAllString(query, ""), "JOIN $1")
	if query == `BEGIN DEFERRED` {
		return `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	}
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
