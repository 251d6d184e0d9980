package analytics_test

import (
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"sessiond/db/migrations"
	"sessiond/internal/analytics"
	"sessiond/internal/testkit"
)

// database makes a file by the migrations, puts the SQL of a file in it and gives its path.
func database(t testing.TB, fixture string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, "rwc")
	provider := testkit.Must(goose.NewProvider(goose.DialectSQLite3, db, migrations.FS))(t)
	testkit.Must(provider.Up(t.Context()))(t)
	text := testkit.Must(os.ReadFile(fixture))(t)
	testkit.Must(db.ExecContext(t.Context(), string(text)))(t)
	testkit.Check(t, db.Close())
	return path
}

func open(t testing.TB, path, mode string) *sql.DB {
	t.Helper()
	source := url.URL{Scheme: "file", Path: path, RawQuery: "mode=" + mode}
	db := testkit.Must(sql.Open("sqlite", source.String()))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// reports opens the small fixture for reading.
func reports(t testing.TB) *analytics.Reports {
	t.Helper()
	return analytics.New(open(t, database(t, "testdata/fixture.sql"), "ro"), time.UTC)
}

// sqlite3 gives the path of the command that people have on their hosts.
func sqlite3(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("sqlite3 is not installed, so nothing is shown about it")
	}
	return path
}
