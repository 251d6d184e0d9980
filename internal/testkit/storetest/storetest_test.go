package storetest_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// A copy cannot be told from a database that store.Open made, but by its identity, which no two share.
func TestNewIsWhatOpenMakes(t *testing.T) {
	storetest.OnFile(t)
	made := filepath.Join(t.TempDir(), "sessions.db")
	first, one := opened(t, made), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	second, two := opened(t, one), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	third := opened(t, two)
	if first == second || second == third || first == third {
		t.Errorf("identities %q, %q, %q", first, second, third)
	}
	if want, got := look(t, made), look(t, one); !slices.Equal(got, want) || len(want) < 50 {
		t.Errorf("%d rows, not these %d:\n%q\n%q", len(got), len(want), got, want)
	}
	if info, err := os.Stat(one); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// opened opens a database as the daemon does and gives its identity.
func opened(t *testing.T, path string) string {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), path, store.Options{Now: func() time.Time {
		return time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)
	}}))(t)
	testkit.Check(t, s.Close())
	return query(t, path, `SELECT epoch FROM store`)[0]
}

func look(t *testing.T, path string) []string {
	t.Helper()
	return query(t, path, `
		SELECT type || ' ' || COALESCE(sql, name) FROM sqlite_schema
		UNION ALL SELECT 'version ' || version_id FROM goose_db_version
		UNION ALL SELECT 'made ' || created_at FROM store
		UNION ALL SELECT 'vacuum ' || auto_vacuum FROM pragma_auto_vacuum
		UNION ALL SELECT 'application ' || application_id FROM pragma_application_id
		UNION ALL SELECT 'journal ' || journal_mode FROM pragma_journal_mode
		ORDER BY 1`)
}

func query(t *testing.T, path, text string) (rows []string) {
	t.Helper()
	db := testkit.Must(sql.Open("sqlite", path))(t)
	defer db.Close()
	found := testkit.Must(db.QueryContext(t.Context(), text))(t)
	defer found.Close()
	for found.Next() {
		var row string
		testkit.Check(t, found.Scan(&row))
		rows = append(rows, row)
	}
	testkit.Check(t, found.Err())
	return rows
}
