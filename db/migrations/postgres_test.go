package migrations_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// The two schemas have the same tables, views and columns in the same order, and types that mean the same.
func TestPostgresHasTheSameSchema(t *testing.T) {
	cluster := storetest.NewCluster(t)
	s := testkit.Must(store.Open(t.Context(), cluster.Address(), store.Options{}))(t)
	defer s.Close()
	file, server := readDatabase(t), readPostgres(t, cluster.Address())
	for table, columns := range file.order {
		if !slices.Equal(columns, server.order[table]) {
			t.Errorf("%s has the columns\n%v in SQLite,\n%v on PostgreSQL", table, columns, server.order[table])
			continue
		}
		for _, column := range columns {
			if want, got := file.types[table][column], server.types[table][column]; !sameType(want, got) {
				t.Errorf("%s.%s is %s in SQLite and %s on PostgreSQL", table, column, want, got)
			}
		}
	}
	for table := range server.order {
		if file.order[table] == nil {
			t.Errorf("PostgreSQL has %s, SQLite has not", table)
		}
	}
}

// sameType reports whether a type of SQLite and one of PostgreSQL hold the same values, and NULL alike. A
// column of a view has no type of its own in SQLite when it is computed.
func sameType(sqlite, postgres string) bool {
	sqlite, null := strings.CutSuffix(sqlite, " or NULL")
	postgres, nullToo := strings.CutSuffix(postgres, " or NULL")
	types := map[string][]string{
		"TEXT": {"text", "timestamp with time zone", "json", "jsonb"}, "INTEGER": {"bigint"},
		"REAL": {"double precision"}, "BLOB": {"bytea"},
	}[sqlite]
	return (types == nil || slices.Contains(types, postgres)) && null == nullToo
}

func readPostgres(t *testing.T, address string) described {
	t.Helper()
	db := testkit.Must(sql.Open("pgx", address))(t)
	defer db.Close()
	rows := testkit.Must(db.QueryContext(t.Context(), `
		SELECT c.table_name, c.column_name, c.data_type || CASE WHEN t.table_type = 'BASE TABLE' AND c.is_nullable = 'YES' THEN ' or NULL' ELSE '' END
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'public' AND c.table_name <> 'goose_db_version'
		  AND NOT (c.table_name = 'sessions' AND c.column_name = 'rowid') -- SQLite has it without a column
		ORDER BY c.table_name, c.ordinal_position`))(t)
	return readColumns(t, rows)
}
