package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// A clock was six weeks behind when the host started, and was set later: the keys of that time look old to the next
// start.
func TestKeysOfAClockThatWasSetAreKept(t *testing.T) {
	t.Parallel()
	storetest.OnFile(t)
	dir := t.TempDir()
	d := startDaemon(t, dir)
	id := d.newSession()
	body := map[string]any{"messages": []any{map[string]string{"role": "user", "content": "once"}}}
	send := func(d *daemon, key string) {
		t.Helper()
		var out appendAnswer
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", body, &out, "Idempotency-Key", key))(t)
	}
	send(d, "behind")
	d.stop()
	stamp(t, d.db(), `-42 days`, `idempotency_keys SET created_at`, `events SET created_at`, `sessions SET updated_at`,
		`sessions SET active_at`)
	for range 3 { // each start has a newer time stored than the one before
		d = startDaemon(t, dir)
		send(d, "behind")
		send(d, "now")
		d.stop()
	}
	if n := countRows(t, d.db(), `SELECT COUNT(*) FROM messages`); n != 2 {
		t.Errorf("%d messages are stored, not one for each key", n)
	}
	if !strings.Contains(d.stderr.String(), "the clock is far ahead") {
		t.Errorf("the daemon said nothing of its doubt: %s", d.stderr)
	}
}

// Without a leap, the keys of more than a week ago are forgotten at a start.
func TestOldKeysAreForgottenAtAStart(t *testing.T) {
	t.Parallel()
	storetest.OnFile(t)
	dir := t.TempDir()
	d := startDaemon(t, dir)
	id := d.newSession()
	body := map[string]any{"messages": []any{map[string]string{"role": "user", "content": "x"}}}
	path := "/v1/sessions/" + string(id) + "/messages"
	testkit.Must(d.do("POST", path, body, nil, "Idempotency-Key", "old"))(t)
	d.stop()
	stamp(t, d.db(), `-8 days`, `idempotency_keys SET created_at`)
	stamp(t, d.db(), `-1 days`, `events SET created_at`)
	d = startDaemon(t, dir)
	eventually(t, "forgotten key", func() bool {
		return countRows(t, d.db(), `SELECT COUNT(*) FROM idempotency_keys`) == 0
	})
	d.stop()
}

// stamp moves columns of times, as another clock would have written them.
func stamp(t *testing.T, database, by string, columns ...string) {
	t.Helper()
	db := testkit.Must(sqlx.Open("sqlite", database))(t)
	defer db.Close()
	for _, set := range columns {
		column := set[strings.LastIndex(set, " ")+1:]
		testkit.Must(db.Exec(`UPDATE ` + set + ` = strftime('%Y-%m-%d %H:%M:%f', ` + column + `, '` + by + `')`))(t)
	}
}

func countRows(t *testing.T, database, query string) (n int) {
	t.Helper()
	db := testkit.Must(sqlx.Open("sqlite", "file:"+database+"?mode=ro"))(t)
	defer db.Close()
	testkit.Check(t, db.Get(&n, query))
	return n
}

// cli runs commands in processes of their own, on the data of a folder.
type cli struct {
	t    *testing.T
	home string
}

func (c cli) db() string { return (&daemon{t: c.t, dir: c.home}).db() }

func (c cli) run(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("sessiond", args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+c.home, "XDG_CONFIG_HOME="+c.home, "XDG_RUNTIME_DIR=", "HOME="+c.home)
	if storetest.OnPostgres() {
		cmd.Env = append(cmd.Env, "SESSIOND_DB="+c.db())
	}
	cmd.Dir = c.home
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Errorf("sessiond %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

const fromFuture = `{"type":"export","program":"sessiond","version":1}
{"type":"session","id":"20990101_001","day":"2099-01-01","title":"from the future","kind":"chat","source":"sessiond","head":"20990101_001.1","epoch":0,"revision":2,"created_at":"2099-01-01T10:00:00.000Z","updated_at":"2099-01-01T10:00:00.000Z","active_at":"2099-01-01T10:00:00.000Z","inbound_at":"2099-01-01T10:00:00.000Z","metadata":{},"turn_origin":"person","lines":{"messages":1}}
{"type":"message","id":"20990101_001.1","parent":null,"kind":"message","role":"user","origin":"person","tokens":1,"in_context":true,"display":true,"day":"2099-01-01","created_at":"2099-01-01T10:00:00.000Z","parts":[{"kind":"text","text":"zebra"}]}
{"type":"end","sessions":1}
`

// A file that dates a session 2099 takes the first place once, when it is imported.
func TestASessionFromTheFutureLeadsNoList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "future.jsonl")
	testkit.Check(t, os.WriteFile(file, []byte(fromFuture), 0o600))
	c := cli{t, dir}
	c.run("import", "sessiond", file)
	c.run("append", "--new", "user", "zebra of today")
	if first, _, _ := strings.Cut(c.run("search", "zebra", "--messages", "--newest", "--json"),
		"20990101_001"); !strings.Contains(first, "zebra of today") {
		t.Error("newest first, the search begins with the future")
	}
	if shown := c.run("show", "@@"); !strings.Contains(shown, "zebra of today") {
		t.Errorf("@@ is %s", shown)
	}
	if first, _, _ := strings.Cut(c.run("ls"), "from the future"); !strings.Contains(first, "zebra of today") {
		t.Error("the list begins with the future")
	}
	if shown := c.run("show", "20990101_001", "--json"); !strings.Contains(shown, "2099-01-01T10:00:00") {
		t.Errorf("the source's time is gone: %s", shown)
	}
	before := c.run("export")
	c.run("import", "sessiond", file)
	if after := c.run("export"); after != before {
		t.Error("a second import changed something")
	}
}

// Databases of earlier versions, and those of a clock that was ahead, hold sessions from the future.
func TestAStartMendsSessionsFromTheFuture(t *testing.T) {
	t.Parallel()
	storetest.OnFile(t)
	for _, test := range []struct {
		name   string
		events bool // the clock of the host was ahead: its events lie there, too
	}{{"a file's times", false}, {"a clock that was ahead", true}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sessions.db")
			now := time.Now().UTC().Add(-time.Hour)
			s := testkit.Must(store.Open(t.Context(), path, store.Options{Now: func() time.Time { return now }}))(t)
			say := func(text string) session.ID {
				sess := testkit.Must(s.CreateSession(t.Context(), store.NewSession{}))(t)
				now = now.Add(time.Second)
				said := session.Message{Role: session.User, Origin: session.Person, Parts: []session.Part{session.TextPart(text)}}
				testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{said}}))(t)
				now = now.Add(time.Second)
				return sess.ID
			}
			say("first")
			future := say("from the future")
			last := say("last")
			testkit.Check(t, s.Close())
			db := testkit.Must(sqlx.Open("sqlite", path))(t)
			const there = `'2099-01-01 10:00:00.000' WHERE `
			testkit.Must(db.Exec(`UPDATE sessions SET updated_at = '2099-01-01 10:00:00.000', inbound_at = '2099-01-01 10:00:00.000', active_at = `+there+`id = ?`, future))(t)
			if test.events {
				testkit.Must(db.Exec(`UPDATE events SET created_at = `+there+`session_id = ?`, future))(t)
			}
			testkit.Check(t, db.Close())
			c := cli{t, dir}
			c.run("doctor", "--db", path) // reading writes nothing
			c.run("append", "--db", path, string(last), "assistant", "yes")
			order := c.run("query", "--db", path, `SELECT group_concat(title, ', ') FROM (SELECT title FROM sessions ORDER BY active_at DESC)`)
			if !strings.Contains(order, "last, from the future, first") {
				t.Errorf("the order is %s", order)
			}
			if n := countRows(t, path, `SELECT COUNT(*) FROM sessions WHERE updated_at > '2099' OR inbound_at > '2099'`); n != 0 {
				t.Error("other times of it lie in the future")
			}
		})
	}
}
