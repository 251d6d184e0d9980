package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
)

// checkServer looks at the server of PostgreSQL, the user, the database and its schema. A check that is OK
// and has advice is a remark.
func (s *Store) checkServer(ctx context.Context) []Check {
	return []Check{
		s.serverCheck(ctx, "server", "PostgreSQL 15 or later is needed", `
			SELECT 'PostgreSQL ' || current_setting('server_version'), current_setting('server_version_num')::int >= 150000, false`),
		s.serverCheck(ctx, "role", "give sessiond a role of its own: row-level security does not bind a superuser, nor a role with BYPASSRLS", `
			SELECT current_user || CASE WHEN rolsuper THEN ', a superuser' WHEN rolbypassrls THEN ', with BYPASSRLS' ELSE '' END, true, rolsuper OR rolbypassrls
			FROM pg_roles WHERE rolname = current_user`),
		s.serverCheck(ctx, "collation", "create the database anew as docs/postgres.md says, and copy this one into it", `
			SELECT o.name || ', ' || o.encoding, o.fits, false FROM (`+engine.OrderOfTexts+`) AS o (name, encoding, fits)`),
		s.checkMigrations(ctx),
		s.serverCheck(ctx, "size", "", `SELECT pg_size_pretty(pg_database_size(current_database())), true, false`),
		s.serverCheck(ctx, "connections", "few are left: raise max_connections, or put a pool before the server; each daemon has at most 8", `
			SELECT used || ' of ' || most, true, used > most * 0.8
			FROM (SELECT COUNT(*) AS used, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most
			      FROM pg_stat_activity WHERE backend_type = 'client backend') AS c`),
		s.serverCheck(ctx, "durability", "an acknowledged write may be lost in a crash: set fsync, full_page_writes and synchronous_commit to on", `
			SELECT 'fsync ' || current_setting('fsync') || ', full_page_writes ' || current_setting('full_page_writes') || ', synchronous_commit ' || current_setting('synchronous_commit'),
			       true, current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off' OR current_setting('synchronous_commit') = 'off'`),
		s.serverCheck(ctx, "replication", "this server is read-only: name its primary server to write", `
			SELECT CASE WHEN pg_is_in_recovery() THEN 'a standby' || COALESCE('; its last transaction is ' || date_trunc('second', now() - pg_last_xact_replay_timestamp()) || ' old', '')
			       ELSE (SELECT COUNT(*) || ' standbys' || COALESCE(': ' || string_agg(application_name || ' ' || state, ', '), '') FROM pg_stat_replication) END, true, pg_is_in_recovery()`),
	}
}

// serverCheck runs a query of one row: what is so, whether it is in order, and whether it needs advice.
func (s *Store) serverCheck(ctx context.Context, name, advice, query string) Check {
	check := Check{Name: name}
	var inOrder, remark int64
	if err := s.Reader().QueryRowxContext(ctx, query).Scan(&check.Detail, &inOrder, &remark); err != nil {
		check.Detail, check.Advice = "it could not be read: "+err.Error(),
			"see whether the server is there and this role may ask it"
		return check
	}
	if check.OK = inOrder == 1; !check.OK || remark == 1 {
		check.Advice = advice
	}
	return check
}

func (s *Store) checkMigrations(ctx context.Context) Check {
	have, want, err := s.SchemaVersion(ctx)
	check := Check{Name: "schema", OK: have == want, Detail: fmt.Sprintf("version %d", have)}
	if !check.OK {
		check.Detail, check.Advice = fmt.Sprintf("version %d, this sessiond has %d", have, want),
			"restart the daemons with one version of sessiond"
	}
	return failed(check, "schema", err)
}
