package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// tries runs a command and gives its exit status and what it prints on standard error.
func (h home) tries(args ...string) (status int, said string) {
	h.t.Helper()
	cmd := h.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), errs.String()
}

// onServer runs statements on a database of a server.
func onServer(t *testing.T, address string, statements ...string) {
	t.Helper()
	db := testkit.Must(sql.Open("pgx", address))(t)
	defer db.Close()
	for _, statement := range statements {
		testkit.Must(db.ExecContext(t.Context(), statement))(t)
	}
}

const newDatabase = `CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'`

// TestWrongPostgresSaysWhatToDo gives commands addresses and databases that cannot be used. Each error says what
// is wrong, where, and what to do, and shows no password.
func TestWrongPostgresSaysWhatToDo(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	at := func(user, database string) string {
		return "postgres://" + user + "@" + cluster.Host() + "/" + database
	}
	onServer(t, cluster.Address(),
		`CREATE ROLE plain LOGIN`, `CREATE ROLE limited LOGIN CONNECTION LIMIT 0`,
		`CREATE ROLE locked LOGIN PASSWORD 'right'`,
		`COPY (SELECT 'local all all trust' UNION ALL SELECT 'host all locked 127.0.0.1/32 scram-sha-256' UNION ALL SELECT 'host all all 127.0.0.1/32 trust') TO '`+cluster.HBA()+`'`,
		fmt.Sprintf(newDatabase, "plain"), fmt.Sprintf(newDatabase, "older"), fmt.Sprintf(newDatabase, "newer"),
		fmt.Sprintf(newDatabase, "frozen"),
		`CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`,
		`CREATE DATABASE cased TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en'`,
	)
	cluster.Stop()
	cluster.Start() // reads its file of users
	h := home{t, t.TempDir()}
	for _, database := range []string{"older", "newer", "frozen"} {
		h.run("append", "--db", at("postgres", database), "--new", "user", "hello")
	}
	onServer(t, at("postgres", "older"), `DELETE FROM goose_db_version WHERE version_id > 100`)
	onServer(t, at("postgres", "newer"), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	onServer(t, at("postgres", "frozen"), `ALTER DATABASE frozen SET default_transaction_read_only = on`)
	for _, c := range []struct {
		name    string
		args    []string
		status  int
		says    []string
		silence string
	}{
		{
			"wrong password",
			[]string{"ls", "--db", at("locked:wrong", "plain")},
			exitFailed,
			[]string{"PostgreSQL refuses the user, the password or the client certificate of postgres://locked:xxxxx@"},
			"wrong@",
		},
		{
			"unknown user",
			[]string{"ls", "--db", at("stranger", "plain")},
			exitFailed,
			[]string{"PostgreSQL refuses the user, the password or the client certificate of postgres://stranger@"},
			"",
		},
		{
			"no database",
			[]string{"serve", "--listen", "", "--db", at("postgres", "none")},
			exitNotFound,
			[]string{"/none does not exist: create it with `createdb -T template0"},
			"",
		},
		{
			"no right to create",
			[]string{"serve", "--listen", "127.0.0.1:0", "--db", at("plain", "plain")},
			exitFailed,
			[]string{"the user of postgres://plain@", "must own the database or have CREATE on its schema"},
			"",
		},
		{
			"no right to read",
			[]string{"ls", "--db", at("plain", "frozen")},
			exitFailed,
			[]string{"the user of postgres://plain@"},
			"",
		},
		{
			"empty",
			[]string{"ls", "--db", at("plain", "plain")},
			exitNotFound,
			[]string{"/plain is empty: start `sessiond serve`"},
			"",
		},
		{
			"another encoding",
			[]string{"ls", "--db", at("postgres", "latin")},
			exitFailed,
			[]string{"LATIN1", "create a database with `createdb -T template0"},
			"",
		},
		{
			"another order",
			[]string{"ls", "--db", at("postgres", "cased")},
			exitFailed,
			[]string{"sorts texts by ICU", "create a database with `createdb -T template0"},
			"",
		},
		{
			"older schema",
			[]string{"ls", "--db", at("postgres", "older")},
			exitFailed,
			[]string{"has schema 100, this sessiond reads", "start `sessiond serve` to bring it up to date"},
			"",
		},
		{
			"newer schema",
			[]string{"append", "--db", at("postgres", "newer"), "--new", "user", "x"},
			exitFailed,
			[]string{"has schema 9999, this sessiond knows up to", "update sessiond; nothing was changed"},
			"",
		},
		{
			"read-only",
			[]string{"append", "--db", at("postgres", "frozen"), "--new", "user", "x"},
			exitFailed,
			[]string{"/frozen is read-only", "name its primary server"},
			"",
		},
		{"read-only is read", []string{"ls", "--db", at("postgres", "frozen")}, exitDone, nil, ""},
		{
			"too many connections",
			[]string{"ls", "--db", at("limited", "plain")},
			exitFailed,
			[]string{"cannot be reached: check address and server", "too many connections for role"},
			"",
		},
		{
			"not an address",
			[]string{"ls", "--db", "postgres://%zz"},
			exitFailed,
			[]string{"cannot be used: failed to parse as URL"},
			"",
		},
		{
			"no server",
			[]string{"ls", "--db", "postgres://postgres@127.0.0.1:1/x"},
			exitFailed,
			[]string{"cannot be reached: check address and server", "refused"},
			"",
		},
	} {
		status, said := h.tries(c.args...)
		if status != c.status || c.silence != "" && strings.Contains(said, c.silence) || strings.Count(said, "\n") > 1 {
			t.Errorf("%s: status %d: %s", c.name, status, said)
		}
		for _, part := range c.says {
			if !strings.Contains(said, part) {
				t.Errorf("%s does not say %q: %s", c.name, part, said)
			}
		}
	}
	onServer(t, cluster.Address(), `ALTER SYSTEM SET hot_standby = off`)
	cluster.Stop()
	cluster.Standby()
	cluster.StartUnready()
	if status, said := h.tries("ls", "--db", at("postgres", "frozen")); status != exitFailed ||
		!strings.Contains(said, "cannot be reached") || !strings.Contains(said, "57P03") {
		t.Errorf("a server in recovery: %d %s", status, said)
	}
}

// TestServerThatReadsOnlyIsNotReady makes a daemon's server a replica, and the primary server again. Reading goes
// on meanwhile.
func TestServerThatReadsOnlyIsNotReady(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	d := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+cluster.Address())
	id := d.newSession()
	cluster.Stop()
	cluster.Standby()
	cluster.Start()
	eventually(t, "reading", func() bool {
		status, _, _, _ := d.ask("GET", "/v1/sessions/"+string(id), "", "")
		return status == 200
	})
	eventually(t, "refusal", func() bool {
		status, code, retry, said := d.ask("POST", "/v1/sessions/"+string(id)+"/messages", oneMessage, "k")
		return status == 503 && code == "unavailable" && retry != "" && strings.Contains(said, "PostgreSQL is read-only")
	})
	if status, _, _, said := d.ask("GET", "/readyz", "", ""); status != 503 ||
		!strings.Contains(said, "PostgreSQL is read-only") {
		t.Errorf("%d %s", status, said)
	}
	cluster.Promote()
	eventually(t, "readyz", func() bool {
		status, _, _, said := d.ask("GET", "/readyz", "", "")
		return status == 200 && strings.Contains(said, `"engine":"postgresql"`)
	})
	if status, _, _, said := d.ask("POST", "/v1/sessions/"+string(id)+"/messages", oneMessage, "k"); status != 201 {
		t.Errorf("%d %s", status, said)
	}
	d.stop()
}

// TestOperatorsOfPostgresMayActWhileServing does to a daemon's database what operators do: ends its connections,
// fills its disk, freezes it, drops it and makes it again.
func TestOperatorsOfPostgresMayActWhileServing(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	address := "postgres://postgres@" + cluster.Host() + "/served"
	onServer(t, cluster.Address(), fmt.Sprintf(newDatabase, "served"))
	d := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+address)
	id := d.newSession()
	path := "/v1/sessions/" + string(id) + "/messages"
	last := ""
	t.Cleanup(func() { t.Log(last) })
	appends := func(want int, code, says string) {
		t.Helper()
		eventually(t, fmt.Sprint(want, " ", code, " ", says), func() bool {
			status, got, _, said := d.ask("POST", path, oneMessage, "")
			last = fmt.Sprint(status, said)
			return status == want && got == code && strings.Contains(said, says)
		})
	}
	ready := func(want int, says string) {
		t.Helper()
		eventually(t, fmt.Sprint("readyz ", want, " ", says), func() bool {
			status, _, _, said := d.ask("GET", "/readyz", "", "")
			return status == want && strings.Contains(said, says)
		})
	}
	raises := func(code string) string {
		return `CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'made by a test' USING ERRCODE = '` + code + `'; END $$`
	}
	onServer(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'served' AND pid <> pg_backend_pid()`)
	appends(201, "", "")

	onServer(t, address, raises("53100"), `CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON store EXECUTE FUNCTION fails()`, `CREATE TRIGGER fails BEFORE INSERT ON messages EXECUTE FUNCTION fails()`)
	appends(507, "storage_full", "the disk of PostgreSQL is full; nothing of this request was stored: make room")
	ready(507, "the disk of PostgreSQL is full")
	onServer(t, address, `DROP TRIGGER fails ON store`, `DROP TRIGGER fails ON messages`)
	ready(200, "")
	appends(201, "", "")

	for code, says := range map[string]string{
		"57014": "PostgreSQL cancelled the statement",
		"40P01": "ended this transaction for another one", "55P03": "has held a lock",
	} {
		onServer(t, address, raises(code), `CREATE TRIGGER fails BEFORE INSERT ON messages EXECUTE FUNCTION fails()`)
		appends(503, "busy", says)
		onServer(t, address, `DROP TRIGGER fails ON messages`)
		appends(201, "", "")
	}

	onServer(t, address, `ALTER DATABASE served SET default_transaction_read_only = on`)
	onServer(t, cluster.Address(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'served'`)
	ready(503, "PostgreSQL is read-only") // also before a write finds it out
	appends(503, "unavailable", "PostgreSQL is read-only")
	ready(503, "PostgreSQL is read-only")
	onServer(t, cluster.Address(), `ALTER DATABASE served RESET default_transaction_read_only`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'served'`)
	ready(200, "")
	appends(201, "", "")

	onServer(t, cluster.Address(), `DROP DATABASE served WITH (FORCE)`)
	appends(503, "unavailable", "")
	ready(503, "does not exist")
	onServer(t, cluster.Address(), fmt.Sprintf(newDatabase, "served"))
	appends(503, "unavailable", "the database has lost tables of sessiond")
	ready(503, "")
	d.stop()
	d = startDaemonOn(t, d.dir, "", "SESSIOND_DB="+address)
	d.newSession()
	d.stop()
}

// TestDaemonsMigrateAnEmptyDatabaseAtOnce starts two and four daemons on an empty database at once.
func TestDaemonsMigrateAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	for _, n := range []int{2, 4} {
		name := fmt.Sprint("empty", n)
		onServer(t, cluster.Address(), fmt.Sprintf(newDatabase, name))
		address := "postgres://postgres@" + cluster.Host() + "/" + name
		daemons := make([]*daemon, n)
		dirs := make([]string, n)
		for i := range dirs {
			dirs[i] = t.TempDir()
		}
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { daemons[i] = startDaemonOn(t, dirs[i], "", "SESSIOND_DB="+address) })
		}
		wg.Wait()
		seen := map[string]bool{}
		for _, d := range daemons {
			seen[string(d.newSession())] = true
		}
		if len(seen) != n {
			t.Errorf("%d daemons made the sessions %v", n, seen)
		}
		for _, d := range daemons {
			d.stop()
		}
		s := testkit.Must(store.Open(t.Context(), address, store.Options{ReadOnly: true}))(t)
		var twice int
		testkit.Check(t, s.Reader().Get(&twice, `SELECT COUNT(*) - COUNT(DISTINCT version_id) FROM goose_db_version`))
		if twice != 0 {
			t.Errorf("%d migrations are recorded twice", twice)
		}
		testkit.Check(t, s.Close())
	}
}
