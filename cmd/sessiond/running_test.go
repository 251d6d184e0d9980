package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "sessiond/clients/go"
	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/web/api"
)

// A second daemon on the same database says where the first one is, whatever addresses it was given, and ends well.
func TestSecondServeSaysWhereTheFirstIs(t *testing.T) {
	storetest.OnFile(t)
	t.Parallel()
	dir := t.TempDir()
	d := startDaemonOn(t, dir, "127.0.0.1:0")
	serve := func(dir string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sessiond", append([]string{"serve"}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR=", "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{
		nil,
		{"--listen", strings.TrimPrefix(d.url, "http://")},
		{"--listen", "", "--socket", d.socket},
		{"--listen", "127.0.0.1:0", "--socket", "off"},
	} {
		out, err := serve(dir, args...)
		if err != nil {
			t.Errorf("serve %q ends with %v: %s", args, err, out)
		}
		for _, want := range []string{
			"sessiond dev runs already", fmt.Sprintf("process %d", d.cmd.Process.Pid), d.url, d.socket, d.db(),
		} {
			if !strings.Contains(out, want) {
				t.Errorf("serve %q does not say %s: %s", args, want, out)
			}
		}
	}
	// Another database on the same port is an error that names what is there.
	out, err := serve(t.TempDir(), "--listen", strings.TrimPrefix(d.url, "http://"), "--socket", "off")
	if err == nil || !strings.Contains(out, "in use by the sessiond of another database") {
		t.Errorf("another database on the port ends with %v: %s", err, out)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	out, err = serve(t.TempDir(), "--listen", strings.TrimPrefix(other.URL, "http://"), "--socket", "off")
	if err == nil || !strings.Contains(out, "in use by another program") {
		t.Errorf("a port of another program ends with %v: %s", err, out)
	}
	// A daemon that was killed is no daemon: the next one starts.
	testkit.Check(t, d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	next := startDaemonOn(t, dir, "127.0.0.1:0")
	next.stop()
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(d.db()), ".daemon-*.json")); len(files) > 0 {
		t.Errorf("a stopped daemon leaves %q", files)
	}
}

// A program of another version says so in its first line, and still reads.
func TestOlderDaemonIsNamed(t *testing.T) {
	storetest.OnFile(t)
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "sessions.db")
	say := func(args ...string) string {
		var out bytes.Buffer
		run(t.Context(), append(args, "--db", db), &env{
			in: strings.NewReader(""), out: &out, err: &out, now: time.Now, dir: dir, environ: []string{"HOME=" + dir},
		})
		return out.String()
	}
	say("append", "--new", "--title", "A plan", "user", "Where do we begin?")
	a := &app{env: &env{now: time.Now, environ: []string{"HOME=" + dir}}}
	a.flags.db = db
	cfg := testkit.Must(a.load(nil))(t)
	other, release, err := a.claimDatabase(t.Context(), cfg)
	if err != nil || other != nil {
		t.Fatalf("the database cannot be claimed: %v %v", other, err)
	}
	testkit.Check(t, os.WriteFile(daemonFile(cfg, "json"), testkit.Must(json.Marshal(runningDaemon{
		Version: api.Version{Version: "0.0.9"}, PID: 4711, Started: time.Now(),
	}))(t), 0o600))
	said := say("ls")
	if !strings.Contains(said, "the daemon is sessiond 0.0.9, this is dev") || !strings.Contains(said, "process 4711") ||
		!strings.Contains(said, "A plan") {
		t.Errorf("with an older daemon ls says %s", said)
	}
	release()
	if said := say("ls"); strings.Contains(said, "0.0.9") || !strings.Contains(said, "A plan") {
		t.Errorf("without a daemon ls says %s", said)
	}
}

// A program that is newer than the daemon reads a copy of its database that it brings up to date; nothing else of it
// changes, and nothing of the copy stays. What is no use on a copy says what to do.
func TestOlderSchemaIsReadFromACopy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	db := filepath.Join(dir, "sessions.db")
	kept := testkit.Must(os.Open(filepath.Join("..", "..", "internal", "store", "testdata", "schemas", "00156.db.gz")))(t)
	defer kept.Close() //nolint:errcheck // only read
	content := testkit.Must(io.ReadAll(testkit.Must(gzip.NewReader(kept))(t)))(t)
	testkit.Check(t, os.WriteFile(db, content, 0o600))
	dead := filepath.Join(os.TempDir(), "sessiond-read-1.db-wal")
	testkit.Check(t, os.WriteFile(dead, nil, 0o600))
	testkit.Check(t, os.Chtimes(dead, time.Time{}, time.Now().Add(-25*time.Hour)))
	say := func(want int, args ...string) string {
		var out bytes.Buffer
		if status := run(t.Context(), append(args, "--db", db), &env{
			in: strings.NewReader(""), out: &out, err: &out, now: time.Now, dir: dir, environ: []string{"HOME=" + dir},
		}); status != want {
			t.Errorf("%v ended with %d", args, status)
		}
		return out.String()
	}
	for _, command := range []string{"ls", "show 20260105_001", "search plan", "export 20260105_001", "stats --json"} {
		said := say(exitDone, strings.Fields(command)...)
		if !strings.Contains(said, "sessions.db has an older schema, 156, and") ||
			!strings.Contains(said, "start `sessiond serve`") {
			t.Errorf("%s does not say that it reads a copy: %s", command, said)
		}
		if !strings.HasPrefix(command, "stats") && !strings.Contains(said, "old plan") {
			t.Errorf("%s says %s", command, said)
		}
	}
	for _, command := range []string{"backup " + filepath.Join(dir, "out.db"), "doctor"} {
		if said := say(exitFailed, strings.Fields(command)...); strings.Contains(said, "copy that is up to date") {
			t.Errorf("%s says %s", command, said)
		}
	}
	if now := testkit.Must(os.ReadFile(db))(t); !bytes.Equal(now, content) {
		t.Error("the database was changed")
	}
	// A copy that cannot be brought up to date is not read, and does not stay.
	old := testkit.Must(sql.Open("sqlite", engine.DSN(db, "rw")))(t)
	_, err := old.Exec(`ALTER TABLE sessions RENAME TO moved`)
	testkit.Check(t, errors.Join(err, old.Close()))
	if said := say(exitFailed, "ls"); !strings.Contains(said, "bring a copy of") {
		t.Errorf("a copy that cannot be brought up to date: %s", said)
	}
	if left := testkit.Must(os.ReadDir(os.TempDir()))(t); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Without a socket a hook asks the address that the running daemon wrote down, and nobody else on the configured one.
func TestHookAddress(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{
		DB: filepath.Join(t.TempDir(), "sessions.db"), Listen: "127.0.0.1:7433", Socket: config.SocketOff,
	}
	a := &app{env: &env{now: time.Now}}
	if place := hookListener(cfg); place != (client.Place{}) {
		t.Errorf("without a daemon a hook asks %+v", place)
	}
	_, release, err := a.claimDatabase(t.Context(), cfg)
	testkit.Check(t, err)
	a.writeDaemonFile(cfg, "127.0.0.1:4711", "")
	if place := hookListener(cfg); place != (client.Place{URL: "http://127.0.0.1:4711"}) {
		t.Errorf("a hook asks %+v", place)
	}
	release()
	cfg.Socket = "/run/s"
	if place := hookListener(cfg); place != (client.Place{Socket: "/run/s"}) {
		t.Errorf("a hook asks %+v", place)
	}
}
