package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
)

// TestDaemonsOnPostgresLoseNothing has sixteen clients append through two daemons on one database. The
// daemons are killed, and the server of PostgreSQL is crashed and started again, while they do. A client
// repeats an append with its key, at either daemon, until it is acknowledged. In the end each session has
// each message once, in order.
func TestDaemonsOnPostgresLoseNothing(t *testing.T) {
	t.Parallel()
	effort.NotShort(t, "it kills daemons and a server")
	cluster := storetest.NewCluster(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	var daemons [2]atomic.Pointer[daemon]
	start := func(i int) {
		daemons[i].Store(startDaemonOn(t, dirs[i], "", "SESSIOND_DB="+cluster.Address()))
	}
	start(0)
	start(1)
	const clients = 16
	var ids [clients]session.ID
	var acked [clients]int
	for c := range ids {
		ids[c] = daemons[c%2].Load().newSession()
	}
	var all atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				body := map[string]any{"messages": []any{map[string]string{
					"role":    "user",
					"content": fmt.Sprintf("message %d", n),
				}}}
				for try := 0; ; try++ {
					var out appendAnswer
					status, _ := daemons[(c+try)%2].Load().do("POST", "/v1/sessions/"+string(ids[c])+"/messages", body, &out,
						"Idempotency-Key", fmt.Sprintf("%d-%d", c, n))
					if status == 201 {
						acked[c]++
						all.Add(1)
						break
					}
					if try > 2 {
						time.Sleep(20 * time.Millisecond) // the server is being started
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	more := func(n int64) {
		from := all.Load()
		eventually(t, "appends", func() bool { return all.Load() >= from+n })
	}
	for round := range effort.Runs(20) {
		more(60)
		testkit.Check(t, daemons[round%2].Load().cmd.Process.Kill())
		start(round % 2)
		more(60)
		cluster.Crash()
		cluster.Start()
	}
	more(60)
	close(stop)
	wg.Wait()
	s := testkit.Must(store.Open(t.Context(), cluster.Address(), store.Options{ReadOnly: true}))(t)
	defer s.Close()
	for c, id := range ids {
		sess := testkit.Must(s.Session(t.Context(), id))(t)
		n := 0
		testkit.Check(t, s.EachOnPath(t.Context(), *sess.HeadID, func(m *session.Message) error {
			if want := fmt.Sprintf("message %d", n); m.Text() != want || m.Seq != int64(n+1) {
				t.Errorf("%s says %q, not %q", m.ID, m.Text(), want)
			}
			n++
			return nil
		}))
		if n != acked[c] {
			t.Errorf("session %s has %d messages, %d were acknowledged", id, n, acked[c])
		}
	}
	for _, c := range testkit.Must(s.Doctor(t.Context(), false))(t) {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
	t.Logf("%d acknowledged, none lost or doubled", all.Load())
}

// TestCopyToPostgresAndBack copies a file into PostgreSQL and that into another file; each has what the
// first had, and goes on with its numbers.
func TestCopyToPostgresAndBack(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	h := home{t, t.TempDir()}
	h.run("append", "--new", "--title", "A plan", "user", "Where do we begin?")
	h.run("append", "@", "assistant", "At the beginning.")
	h.run("fork", "@", "--at", "1")
	from, back := filepath.Join(h.dir, "sessiond", "sessions.db"), filepath.Join(t.TempDir(), "back.db")
	h.run("copy", from, cluster.Address())
	h.run("copy", from, cluster.Address()) // a copy that is whole has nothing to continue
	h.run("copy", cluster.Address(), back)
	for _, db := range []string{cluster.Address(), back} {
		if got, want := h.run("export", "--db", db), h.run("export", "--db", from); string(got) != string(want) {
			t.Errorf("%s: %s\nnot %s", db, got, want)
		}
		h.run("doctor", "--db", db)
		h.run("append", "--db", db, "--new", "user", "one more")
	}
}

// TestNamedTokensOnPostgres has a daemon whose user is an ordinary one, and an owner with a token of its own: the
// administrator makes the role of tokens once.
func TestNamedTokensOnPostgres(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	admin := testkit.Must(sql.Open("pgx", cluster.Address()))(t)
	defer admin.Close() //nolint:errcheck // a test
	for _, query := range []string{`CREATE ROLE app LOGIN`, `CREATE DATABASE team OWNER app`} {
		testkit.Must(admin.ExecContext(t.Context(), query))(t)
	}
	address := strings.Replace(strings.Replace(cluster.Address(), "postgres@", "app@", 1), "/postgres", "/team", 1)
	dir := t.TempDir()
	env := "SESSIOND_DB=" + address
	d := startDaemonOn(t, dir, "127.0.0.1:0", env, "SESSIOND_OWNER=ops", "SESSIOND_HOST=alpha")
	h := home{t, dir}
	if said, err := h.command("token", "add", "laptop", "--owner", "ana", "--db", address).CombinedOutput(); err == nil ||
		!strings.Contains(string(said), "CREATE ROLE sessiond_token NOLOGIN; GRANT sessiond_token TO app") {
		t.Errorf("a user without the right to make roles: %v: %s", err, said)
	}
	testkit.Must(admin.ExecContext(t.Context(), `CREATE ROLE sessiond_token NOLOGIN; GRANT sessiond_token TO app`))(t)
	token := strings.TrimSpace(string(h.run("token", "add", "laptop", "--owner", "ana", "--db", address)))

	d.newSession() // the daemon's own, which ana does not see
	var own struct{ Owner, Host string }
	testkit.Must(d.do("GET", "/v1/sessions/"+string(d.newSession()), nil, &own))(t)
	if own.Owner != "ops" || own.Host != "alpha" {
		t.Errorf("the daemon's own session is %+v", own)
	}
	ask := func(method, path, body string) (int, string) {
		req := testkit.Must(http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body)))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res := testkit.Must(http.DefaultClient.Do(req))(t)
		defer res.Body.Close()
		return res.StatusCode, string(testkit.Must(io.ReadAll(res.Body))(t))
	}
	if status, said := ask("POST", "/v1/sessions", `{"title":"hers"}`); status != 201 ||
		!strings.Contains(said, `"owner":"ana"`) {
		t.Errorf("ana's session: %d %s", status, said)
	}
	if status, said := ask("GET", "/v1/sessions", ""); status != 200 || strings.Count(said, `"owner"`) != 1 {
		t.Errorf("ana lists: %d %s", status, said)
	}
	for _, path := range []string{"/metrics", "/mcp", "/", "/v1/usage"} {
		if status, said := ask("GET", path, ""); status != 403 && status != 401 {
			t.Errorf("GET %s with a named token: %d %.200s", path, status, said)
		}
	}
	// Without the role, as in a database that was copied or restored on another server, all else works.
	testkit.Must(admin.ExecContext(t.Context(), `REVOKE sessiond_token FROM app`))(t)
	h.run("append", "--db", address, "--new", "user", "hi")
	h.run("ls", "--db", address)
	h.run("token", "rm", "laptop", "--db", address)
	if status, said := ask("GET", "/v1/sessions", ""); status != 401 {
		t.Errorf("with a removed token: %d %s", status, said)
	}
}

// TestReaderOnPostgresRunsReadingCommands has a role that can only read run the reading commands and SQL. The
// owner's own address runs no SQL; sql_db names the reader's.
func TestReaderOnPostgresRunsReadingCommands(t *testing.T) {
	cluster := storetest.NewCluster(t)
	owner := cluster.Address()
	reader := strings.Replace(owner, "postgres@", "reader@", 1)
	h := home{t, t.TempDir()}
	// also makes the folder of the index
	h.run("append", "--db", owner, "--new", "--title", "A plan", "user", "Where do we begin?")
	admin := testkit.Must(sql.Open("pgx", owner))(t)
	defer admin.Close()
	testkit.Must(admin.Exec(`CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader`))(t)
	for _, args := range [][]string{
		{"ls", "--all"},
		{"show", "@@"},
		{"search", "begin"},
		{"context", "@@"},
		{"query"},
		{"query", "transcript"},
		{"query", "SELECT role FROM messages"},
		{"stats"},
		{"export", "@@"},
		{"log", "x"},
		{"head", "@@"},
		{"rules", "@@"},
		{"doctor"},
	} {
		if got := h.run(append(args, "--db", reader)...); len(got) == 0 { // run fails where the command does
			t.Errorf("%q printed nothing", args)
		}
	}
	refuse := func(says string, args ...string) {
		t.Helper()
		if out, err := h.command(args...).CombinedOutput(); err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	refuse("permission denied", "append", "--db", reader, "--new", "user", "x")
	refuse("GRANT pg_read_all_data TO sessiond_sql", "query", "--db", owner, "SELECT 1 AS one")
	t.Setenv("SESSIOND_SQL_DB", reader)
	if got := string(h.run("query", "--db", owner, "--json", "SELECT session_user AS role")); !strings.Contains(got,
		"reader") {
		t.Error(got)
	}
	refuse(`column "titel" does not exist at line 1, column 8`, "query", "--db", owner, "SELECT titel FROM sessions")
}
