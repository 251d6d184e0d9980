package analytics_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

const answers = "answer-sql"

// TestMain lets the test binary be the process that answers SQL.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == answers {
		err := analytics.AnswerSQL(context.Background(), os.Stdin, os.Stdout,
			func(_ context.Context, path string) (analytics.DB, error) {
				return sql.Open("sqlite", "file:"+path+"?mode=ro")
			})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newProcess(t *testing.T) *analytics.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.db")
	db := testkit.Must(sql.Open("sqlite", path))(t)
	testkit.Must(db.Exec(`CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'one'), (2, x'00ff'), (3, NULL)`))(t)
	testkit.Check(t, db.Close())
	return analytics.NewProcess(path, answers)
}

func TestProcessAnswersAsReportsDo(t *testing.T) {
	p := newProcess(t)
	got := string(testkit.Must(p.SQL(t.Context(), "SELECT a, b FROM t ORDER BY a", analytics.Limits{Rows: 2}))(t))
	if want := `{"columns":["a","b"],"rows":[[1,"one"],[2,"AP8="]],"truncated":true}` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"":                         "the SQL is empty",
		"SELEC 1":                  "write a SELECT",
		"SELECT c FROM t":          "no such column: c",
		"DELETE FROM t":            "queries only read",
		"SELECT 1; SELECT 2":       "only one statement",
		"SELECT zeroblob(9000000)": "a value or a row of the query is over 1 MiB",
	} {
		if _, err := p.SQL(t.Context(), text, analytics.Limits{}); session.CodeOf(err) != session.Invalid ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What SQLite itself neither interrupts nor bounds ends within the limits of the process.
func TestProcessEndsWhatSQLiteDoesNot(t *testing.T) {
	effort.NotShort(t, "the race detector's own memory is over the limit")
	p := newProcess(t)
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) `
	for name, c := range map[string]struct {
		text, want string
		time       time.Duration
	}{
		"trim": {
			`SELECT trim(replace(hex(zeroblob(500000)), '0', 'a'), replace(hex(zeroblob(42500)), '0', 'b') || 'a')`,
			"was stopped after", time.Second,
		},
		"endless rows": {`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n`, "was stopped after", time.Second},
		"an aggregate of 10 GB": {
			numbers + `SELECT json_group_array(hex(zeroblob(50000))) FROM n`, "out of memory",
			time.Minute,
		},
		"temporary files of 20 GB": {
			numbers + `SELECT i, hex(zeroblob(100000)) FROM n`, "temporary files over 256 MiB",
			time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := p.SQL(t.Context(), c.text, analytics.Limits{Time: c.time, Rows: 100_000})
			if session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.100s, %v; want %s", answer, err, c.want)
			}
		})
	}
	testkit.Must(p.SQL(t.Context(), "SELECT 1", analytics.Limits{}))(t)
}

func TestProcessIsBusyWhileTwoRun(t *testing.T) {
	p := newProcess(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := p.SQL(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n`, analytics.Limits{Time: time.Minute})
			ended <- err
		}()
	}
	for p.Running() < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := p.SQL(t.Context(), "SELECT 1",
		analytics.Limits{Time: time.Millisecond}); session.CodeOf(err) != session.Busy {
		t.Errorf("a third one: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("an endless query ended")
		}
	}
}
