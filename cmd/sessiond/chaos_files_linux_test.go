package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
)

// fileFaults are what hands and other programs do to the files of a running daemon.
func fileFaults() []fault {
	rows := []fault{
		{name: "deleted, SIGTERM", quick: true, run: deletedThenStopped(os.Remove)},
		{name: "deleted with its log, SIGTERM", run: deletedThenStopped(func(db string) error {
			return errors.Join(os.Remove(db), os.Remove(db+"-wal"), os.Remove(db+"-shm"))
		})},
		{name: "another file renamed over it, SIGTERM", run: deletedThenStopped(func(db string) error {
			return errors.Join(os.WriteFile(db+".new", nil, 0o600), os.Rename(db+".new", db))
		})},
		{name: "moved, SIGTERM", run: movedThenStopped},
		{name: "moved, SIGKILL, started", quick: true, run: movedThenKilled},
	}
	for name, way := range overwriting() {
		rows = append(rows,
			fault{name: "overwritten: " + name + ", SIGTERM", quick: way.quick, run: overwritten(way, syscall.SIGTERM)},
			fault{name: "overwritten: " + name + ", SIGKILL", run: overwritten(way, syscall.SIGKILL)})
	}
	for name, beside := range besides() {
		rows = append(rows, fault{name: "no false alarm beside " + name, run: noFalseAlarm(beside)})
	}
	return append(rows,
		fault{name: "restored under a running daemon", quick: true, run: restoredUnderADaemon},
	)
}

// acknowledge has clients append until n more appends are acknowledged; stop ends them.
func (a *tally) acknowledge(t *testing.T, d *daemon, n int64) (stop func()) {
	t.Helper()
	before := a.n.Load()
	stop = a.chatter(d, 4, 100)
	eventually(t, "append", func() bool { return a.n.Load() >= before+n })
	return stop
}

// end sends a daemon a signal and waits for its end.
func (d *daemon) end(sig syscall.Signal) {
	d.t.Helper()
	testkit.Check(d.t, d.cmd.Process.Signal(sig))
	_ = d.cmd.Wait()
}

// kept returns the only file in the folder of backups with a prefix.
func (d *daemon) kept(prefix, end string) string {
	d.t.Helper()
	found := testkit.Must(filepath.Glob(filepath.Join(engine.BackupDir(d.db()), prefix+"-*"+end)))(d.t)
	if len(found) != 1 {
		d.t.Fatalf("kept as %s: %v; the daemon said %s", prefix, found, d.stderr)
	}
	return found[0]
}

// deletedThenStopped stops the daemon at once after its file has lost its name: a copy is written.
func deletedThenStopped(remove func(db string) error) func(*testing.T, *counts) {
	return func(t *testing.T, c *counts) {
		storetest.OnFile(t)
		for range effort.Runs(10) {
			d, a := startDaemon(t, t.TempDir()), newTally()
			a.acknowledge(t, d, 50)()
			testkit.Check(t, remove(d.db()))
			d.end(syscall.SIGTERM)
			rescued := d.kept("rescued", ".db")
			if strings.Count(d.stderr.String(), rescued) < 2 { // in the log, and at the end
				t.Errorf("it said %s", d.stderr)
			}
			a.mustHold(t, rescued)
			c.add("rounds", 1)
			c.add("acknowledged", int(a.n.Load()))
		}
	}
}

func movedThenStopped(t *testing.T, c *counts) {
	storetest.OnFile(t)
	for range effort.Runs(10) {
		d, a := startDaemon(t, t.TempDir()), newTally()
		a.acknowledge(t, d, 50)()
		testkit.Check(t, os.Rename(d.db(), d.db()+".away"))
		d.end(syscall.SIGTERM)
		if !strings.Contains(d.stderr.String(), d.db()+".away now") {
			t.Errorf("it said %s", d.stderr)
		}
		moved := filepath.Join(t.TempDir(), "moved.db") // the file alone
		testkit.Check(t, os.Rename(d.db()+".away", moved))
		a.mustHold(t, moved)
		c.add("rounds", 1)
		c.add("acknowledged", int(a.n.Load()))
	}
}

func movedThenKilled(t *testing.T, c *counts) {
	storetest.OnFile(t)
	for range effort.Runs(10) {
		d, a := startDaemon(t, t.TempDir()), newTally()
		a.acknowledge(t, d, 50)()
		testkit.Check(t, os.Rename(d.db(), d.db()+".away"))
		d.end(syscall.SIGKILL)
		h := home{t, d.dir}
		for _, command := range [][]string{
			{"serve", "--listen", ""},
			{"append", "--new", "user", "hello"},
			{"import"},
			{"ls"},
		} {
			said := h.fails(command...)
			if !strings.Contains(said, d.db()+"-wal") || !strings.Contains(said, "--new") {
				t.Errorf("%v says %s", command, said)
			}
			c.add("refused", 1)
		}
		if _, err := os.Stat(d.db()); err == nil {
			t.Error("a database was made")
		}
		testkit.Check(t, os.Rename(d.db()+".away", d.db()))
		a.mustHold(t, d.db())
		c.add("rounds", 1)
		c.add("acknowledged", int(a.n.Load()))
	}
}

// fails runs a command that must fail, and returns what it says.
func (h home) fails(args ...string) string {
	h.t.Helper()
	cmd := h.command(args...)
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // a daemon that starts
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err == nil {
		h.t.Errorf("%v did not fail: %s", args, out)
	}
	return string(out)
}

// overwriteWay overwrites a database in place under a daemon.
type overwriteWay struct {
	quick  bool
	before func(t *testing.T, d *daemon) (copied string) // something is acknowledged before and after; nil: no copy
	do     func(db, copied string) error
	reads  bool // the next start reads what was put there
}

func cp(from, to string) error { return exec.Command("cp", from, to).Run() }

func overwriting() map[string]overwriteWay {
	backup := func(t *testing.T, d *daemon) string {
		copied := filepath.Join(t.TempDir(), "copy.db")
		home{t, d.dir}.run("backup", copied)
		return copied
	}
	put := func(db, copied string) error { return cp(copied, db) }
	return map[string]overwriteWay{
		"by a backup of this run": {quick: true, before: backup, do: put, reads: true},
		"by a plain copy of this run, after a checkpoint": {before: func(t *testing.T, d *daemon) string {
			copied := filepath.Join(t.TempDir(), "copy.db")
			checkpoint(t, d.db())
			testkit.Check(t, cp(d.db(), copied))
			says := newTally()
			says.acknowledge(t, d, 20)()
			checkpoint(t, d.db())
			return copied
		}, do: put, reads: true},
		"by VACUUM INTO of another program": {before: func(t *testing.T, d *daemon) string {
			copied := filepath.Join(t.TempDir(), "copy.db")
			foreign(t, d.db(), `VACUUM INTO '`+copied+`'`)
			return copied
		}, do: put, reads: true},
		"by a copy of an earlier run": {before: func(t *testing.T, d *daemon) string {
			return d.db() + ".earlier"
		}, do: put, reads: true},
		"truncated": {quick: true, do: func(db, _ string) error { return os.Truncate(db, 0) }},
		"its end truncated": {do: func(db, _ string) error {
			return exec.Command("truncate", "-s", "50K", db).Run()
		}},
		"its log truncated": {do: func(db, _ string) error { return os.Truncate(db+"-wal", 0) }, reads: true},
		"both truncated": {do: func(db, _ string) error {
			return errors.Join(os.Truncate(db, 0), os.Truncate(db+"-wal", 0))
		}},
		"by another file": {do: func(db, _ string) error {
			return os.WriteFile(db, []byte(strings.Repeat("not a database ", 100_000)), 0o600)
		}},
	}
}

// foreign runs a statement as another program does.
func foreign(t *testing.T, db, statement string) {
	t.Helper()
	pool := testkit.Must(sql.Open("sqlite", db))(t)
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	testkit.Must(pool.Exec(`PRAGMA busy_timeout = 10000`))(t)
	testkit.Must(pool.Exec(statement))(t)
}

func checkpoint(t *testing.T, db string) {
	t.Helper()
	foreign(t, db, `PRAGMA wal_checkpoint(TRUNCATE)`)
}

// overwritten overwrites the file under clients that append, and ends the daemon. Nothing is acknowledged for long, the
// daemon says so, and the file that was put there is not touched: put there again, it is read as it was.
func overwritten(way overwriteWay, sig syscall.Signal) func(*testing.T, *counts) {
	return func(t *testing.T, c *counts) {
		storetest.OnFile(t)
		for range effort.Runs(5) {
			dir := t.TempDir()
			d, a := startDaemon(t, dir), newTally()
			a.acknowledge(t, d, 30)()
			d.stop()
			testkit.Check(t, cp(d.db(), d.db()+".earlier"))
			d = startDaemon(t, dir)
			stop := a.acknowledge(t, d, 30)
			copied := ""
			if way.before != nil {
				copied = way.before(t, d)
			}
			before := a.n.Load()
			eventually(t, "append", func() bool { return a.n.Load() > before+20 })
			testkit.Check(t, way.do(d.db(), copied))
			late := a.n.Load()
			eventually(t, "refusal", func() bool { return a.refused(503) > 20 })
			c.add("late", int(a.n.Load()-late))
			status, err := d.do("GET", "/readyz", nil, nil)
			if status != 503 || !strings.Contains(err.Error(), "overwritten") ||
				!strings.Contains(err.Error(), "sessiond restore") {
				t.Errorf("/readyz: %d %v", status, err)
			}
			if status, err := d.do("POST", "/v1/backups", map[string]any{}, nil); status != 503 {
				t.Errorf("a backup: %d %v", status, err)
			}
			stop()
			var put []byte
			if way.before != nil {
				put = testkit.Must(os.ReadFile(copied))(t)
			}
			d.end(sig)
			if put != nil && string(testkit.Must(os.ReadFile(d.db()))(t)) != string(put) {
				c.add("touched", 1) // by a checkpoint in the moment of the overwriting
			}
			h := home{t, dir}
			if sig == syscall.SIGTERM {
				d.kept("overwritten", "-wal")
				if put != nil { // as the message says
					testkit.Check(t, cp(copied, d.db()))
				}
				if way.reads {
					h.run("doctor")
				}
			} else if way.reads && put != nil {
				if said := h.fails("append", "--new", "user", "hello"); !strings.Contains(said, "sessiond restore") {
					t.Errorf("after a kill it says %s", said)
				}
				h.run("restore", copied)
				d.kept("before-restore", ".db")
				h.run("doctor")
			}
			c.add("rounds", 1)
			c.add("acknowledged before", int(late))
		}
	}
}

// besides are programs that do no harm beside a daemon; each runs until its context ends.
func besides() map[string]func(ctx context.Context, t *testing.T, d *daemon) {
	loop := func(each func(t *testing.T, d *daemon)) func(context.Context, *testing.T, *daemon) {
		return func(ctx context.Context, t *testing.T, d *daemon) {
			for ctx.Err() == nil {
				each(t, d)
			}
		}
	}
	pragma := func(mode string) func(context.Context, *testing.T, *daemon) {
		return loop(func(t *testing.T, d *daemon) {
			db, err := sql.Open("sqlite", d.db()+"?_pragma=busy_timeout(100)")
			if err == nil {
				_, err = db.Exec(`PRAGMA wal_checkpoint(` + mode + `)`)
				err = errors.Join(err, db.Close())
			}
			if err != nil && !strings.Contains(err.Error(), "locked") {
				t.Error(err)
			}
		})
	}
	return map[string]func(context.Context, *testing.T, *daemon){
		"passive checkpoints":    pragma("PASSIVE"),
		"truncating checkpoints": pragma("TRUNCATE"),
		"scrubs": loop(func(t *testing.T, d *daemon) {
			_, err := d.do("DELETE", "/v1/sessions/"+string(d.newSession())+"?purge=true&scrub=true", nil, nil)
			if err != nil && !strings.Contains(err.Error(), "busy") {
				t.Error(err)
			}
		}),
		"commands that append": loop(func(t *testing.T, d *daemon) {
			home{t, d.dir}.run("append", "--new", "user", "beside")
		}),
		"backups": loop(func(t *testing.T, d *daemon) {
			if _, err := d.do("POST", "/v1/backups", map[string]any{}, nil); err != nil &&
				!strings.Contains(err.Error(), "exists") {
				t.Error(err)
			}
		}),
		"VACUUM of another program": loop(func(t *testing.T, d *daemon) {
			db, err := sql.Open("sqlite", d.db()+"?_pragma=busy_timeout(5000)")
			if err == nil {
				_, err = db.Exec(`VACUUM`)
				err = errors.Join(err, db.Close())
			}
			if err != nil && !strings.Contains(err.Error(), "locked") {
				t.Error(err)
			}
			time.Sleep(20 * time.Millisecond) // for the others' turn
		}),
		"Litestream": litestream,
	}
}

// litestream keeps a reading transaction open, as Litestream does, so that nobody else restarts the log,
// writes a row of its own, checkpoints, and begins to read again.
func litestream(ctx context.Context, t *testing.T, d *daemon) {
	db := testkit.Must(sql.Open("sqlite", d.db()+"?_pragma=busy_timeout(5000)"))(t)
	defer db.Close()
	testkit.Must(db.Exec(`CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)`))(t)
	for n := 0; ctx.Err() == nil; n++ {
		tx := testkit.Must(db.Begin())(t)
		var seq int
		_ = tx.QueryRow(`SELECT COUNT(*) FROM _litestream_seq`).Scan(&seq)
		_, err := db.Exec(`PRAGMA wal_checkpoint(PASSIVE)`)
		_ = tx.Rollback()
		if err == nil {
			_, err = db.Exec(`INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1`)
		}
		if err == nil {
			_, err = db.Exec(`PRAGMA wal_checkpoint(` + []string{"PASSIVE", "RESTART", "TRUNCATE"}[n%3] + `)`)
		}
		if err != nil && !strings.Contains(err.Error(), "locked") {
			t.Error(err)
		}
	}
}

// noFalseAlarm runs something beside clients that append: nothing is refused for the file's sake, nothing is lost.
func noFalseAlarm(beside func(context.Context, *testing.T, *daemon)) func(*testing.T, *counts) {
	return func(t *testing.T, c *counts) {
		storetest.OnFile(t)
		d, a := startDaemon(t, t.TempDir()), newTally()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { beside(ctx, t, d) })
		stop := a.chatter(d, 4, 2000)
		eventually(t, "append", func() bool { return a.n.Load() >= int64(effort.Runs(3000)) })
		cancel()
		wg.Wait()
		stop()
		if a.refused(503) > 0 && strings.Contains(d.stderr.String(), "overwritten") {
			t.Errorf("%d refused: %s", a.refused(503), d.stderr)
		}
		d.stop()
		d = startDaemon(t, d.dir)
		d.stop()
		a.mustHold(t, d.db())
		c.add("acknowledged", int(a.n.Load()))
	}
}

// restoredUnderADaemon restores a backup while clients append: what was acknowledged is in the kept file, all of it.
func restoredUnderADaemon(t *testing.T, c *counts) {
	storetest.OnFile(t)
	for range effort.Runs(10) {
		d, a := startDaemon(t, t.TempDir()), newTally()
		stop := a.acknowledge(t, d, 30)
		copied := filepath.Join(t.TempDir(), "copy.db")
		h := home{t, d.dir}
		h.run("backup", copied)
		before := a.n.Load()
		eventually(t, "append", func() bool { return a.n.Load() > before+30 })
		h.run("restore", copied)
		eventually(t, "refusal", func() bool { return a.refused(503) > 20 })
		if status, err := d.do("GET", "/readyz", nil, nil); status != 503 || !strings.Contains(err.Error(), "restarted") {
			t.Errorf("/readyz: %d %v", status, err)
		}
		stop()
		d.stop()                                      // it ends well
		kept := filepath.Join(t.TempDir(), "kept.db") // the file alone
		testkit.Check(t, os.Rename(d.kept("before-restore", ".db"), kept))
		a.mustHold(t, kept)
		d = startDaemon(t, d.dir)
		var ready struct{ Detail string }
		if status, err := d.do("GET", "/readyz", nil, &ready); status != 200 {
			t.Error(err)
		}
		d.newSession()
		d.stop()
		h.run("doctor")
		c.add("rounds", 1)
		c.add("acknowledged", int(a.n.Load()))
	}
}
