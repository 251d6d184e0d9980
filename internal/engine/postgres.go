package engine

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/url"
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

// PrintableName returns a database's name without its passwords.
func PrintableName(name string) string {
	if !IsPostgres(name) {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "postgres://…"
	}
	query := strings.Split(u.RawQuery, "&")
	for i, parameter := range query {
		name, _, _ := strings.Cut(parameter, "=")
		if plain, err := url.QueryUnescape(name); err != nil || plain == "password" || plain == "sslpassword" {
			query[i] = name + "=xxxxx"
		}
	}
	u.RawQuery = strings.Join(query, "&")
	return u.Redacted()
}

// openPostgres opens a database of PostgreSQL, in the schema that the address names first (public, or
// search_path), and brings it up to date. Codes: Invalid (a newer sessiond's, sorted otherwise),
// NotFound, Forbidden, Unavailable.
func openPostgres(ctx context.Context, address string, opt Options) (*DB, error) {
	s := &DB{path: address, opt: opt, network: &network{}, prepared: map[string]*sqlx.Stmt{}}
	s.Statements = Statements{stmt: s.readerStmt, batch: s.readBatch}
	err := s.openPools(ctx)
	current := false
	if err == nil {
		current, err = s.checkPostgresVersion(ctx)
	}
	if err == nil && !current {
		err = s.migratePostgres(ctx)
	}
	if err == nil && !opt.ReadOnly {
		err = s.openPostgresWriter(ctx)
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
func (s *DB) openPools(ctx context.Context) error {
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
	var fits bool
	if err := s.readers.QueryRowContext(ctx, OrderOfTexts).Scan(&order, &encoding, &fits); err != nil {
		return err
	}
	if !fits {
		return session.Errorf(session.Invalid,
			"%s sorts texts by %s and is encoded as %s, but sessiond needs C and UTF8: "+
				"create a database with `createdb -T template0 -E UTF8 --lc-collate=C --lc-ctype=C.UTF-8 NAME`",
			PrintableName(s.path), order, encoding)
	}
	return nil
}

// readBatch sends readings in one round trip.
func (s *DB) readBatch(ctx context.Context, all []Reading) (*sqlx.Rows, error) {
	batch := make([]statement, len(all))
	for i, r := range all {
		var err error
		if batch[i], err = newStatement(r.query, r.args); err != nil {
			return nil, err
		}
	}
	return s.readers.QueryxContext(ctx, "", batch)
}

// readOnly makes a connection refuse writes, and each transaction see one state. It is no setting of the start, which
// target_session_attrs=read-write would take for a server that only reads, and which a pool in transaction mode would
// give to others.
func readOnly(ctx context.Context, conn *pgx.Conn) error {
	if isPooled(conn.Config()) {
		return nil
	}
	_, err := conn.Exec(ctx, `SET default_transaction_read_only = on; SET default_transaction_isolation = 'repeatable read'`)
	return err
}

// OrderOfTexts reads a database's order of texts, of ICU's its library alone, its encoding, and whether they sort by
// bytes, as SQLite does; the built-in order does.
const OrderOfTexts = `
	SELECT name, encoding, name IN ('C', 'POSIX', 'C.UTF-8', 'C.utf8') AND encoding = 'UTF8'
	FROM (SELECT CASE datlocprovider WHEN 'i' THEN 'ICU' WHEN 'b' THEN 'C' ELSE datcollate END AS name, pg_encoding_to_char(encoding) AS encoding
	      FROM pg_database WHERE datname = current_database()) AS d`

func (s *DB) openPostgresWriter(ctx context.Context) (err error) {
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
	if err := s.atStart(ctx); err != nil {
		return err
	}
	s.writer.opened.Store(true)
	return s.announceOpened(ctx)
}

// checkPostgresVersion reports whether the schema is this sessiond's. It refuses that of a newer one, and, for a
// reader, that of an older one.
func (s *DB) checkPostgresVersion(ctx context.Context) (current bool, err error) {
	have, want, err := s.SchemaVersion(ctx)
	switch name := PrintableName(s.path); {
	case err != nil:
		return false, err
	case have > want:
		return false, session.Errorf(session.Invalid,
			"%s has schema %d, this sessiond knows up to %d: update sessiond; nothing was changed", name, have, want)
	case have == 0 && s.opt.ReadOnly:
		return false, session.Errorf(session.NotFound, "%s is empty: start `sessiond serve`, or import something, to fill it",
			name)
	case have < want && s.opt.ReadOnly:
		return false, session.Errorf(session.Invalid,
			"%s has schema %d, this sessiond reads %d: start `sessiond serve` to bring it up to date", name, have, want)
	}
	return have == want, nil
}

// checkPostgresSchema refuses a schema that lost its migrations while the store is open. That of a newer
// sessiond is served until this one restarts.
func (s *DB) checkPostgresSchema(ctx context.Context) error {
	have, want, err := s.SchemaVersion(ctx)
	if err == nil && have < want {
		err = session.Errorf(session.Unavailable,
			"%s has schema %d, this sessiond needs %d, perhaps after a restore: restart sessiond, which brings it up to date",
			PrintableName(s.path), have, want)
	}
	return err
}

// SchemaVersion returns the number of the newest migration that the database has, 0 of an empty one, and of
// the newest that this sessiond knows.
func (s *DB) SchemaVersion(ctx context.Context) (have, want int64, err error) {
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
func (s *DB) migratePostgres(ctx context.Context) error {
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
	return session.Wrap(err, "migrate")
}
