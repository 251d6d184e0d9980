package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// The first line of a list says that backups are late, by their files alone, and that the daemon stores nothing.
func TestListsBeginWithTheAlarm(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	d := startDaemonOn(t, home, "127.0.0.1:0")
	d.newSession()
	env := append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=",
		"SESSIOND_DB="+d.db(), "SESSIOND_SOCKET="+d.cmd.Args[len(d.cmd.Args)-1])
	run := func(environ string, args ...string) (out, said string) {
		t.Helper()
		var errors strings.Builder
		cmd := exec.Command("sessiond", args...)
		cmd.Dir, cmd.Env, cmd.Stderr = home, append(env, environ), &errors
		out = string(testkit.Must(cmd.Output())(t))
		return out, errors.String()
	}
	begins := func(environ, want string) {
		t.Helper()
		for _, args := range [][]string{{"ls"}, {}, {"ls", "--json"}} {
			out, said := run(environ, args...)
			if len(args) == 2 { // for programs
				out = "! " + strings.TrimPrefix(said, "sessiond: ")
				if said == "" {
					out = ""
				}
			}
			first, _, _ := strings.Cut(out, "\n")
			if want == "" && strings.HasPrefix(first, "!") || want != "" && !strings.HasPrefix(first, "! "+want) {
				t.Errorf("%s %q begins with %q, want %q", environ, args, first, want)
			}
		}
	}
	const daily = "SESSIOND_BACKUP_EVERY=24h"
	backups := filepath.Join(filepath.Dir(d.db()), "backups")
	begins("", "")
	begins(daily, "no backup is in "+backups+" yet, and backup.every is 24h")
	testkit.Check(t, os.MkdirAll(backups, 0o700))
	backup := filepath.Join(backups, "sessions-20260101T000000Z.db")
	testkit.Check(t, os.WriteFile(backup, nil, 0o600))
	begins(daily, "")
	old := time.Now().Add(-73 * time.Hour)
	testkit.Check(t, os.Chtimes(backup, old, old))
	begins(daily, "backups are late: the newest in "+backups+" is 3 days old, and backup.every is 24h")
	begins("", "")

	// The daemon's file is moved away, and another one stands there.
	moved := d.db() + ".moved"
	testkit.Check(t, os.Rename(d.db(), moved))
	testkit.Check(t, os.WriteFile(d.db(), testkit.Must(os.ReadFile(moved))(t), 0o600))
	begins("", "the daemon stores nothing: ")
	out, _ := run(daily, "ls")
	if first, _, _ := strings.Cut(out, "\n"); !strings.Contains(first, "; backups are late: ") {
		t.Errorf("the first line is %q", first)
	}
	// The alarm stands also above the greeting of a database without sessions.
	empty := filepath.Join(home, "empty.db")
	testkit.Check(t, testkit.Must(store.Open(t.Context(), empty, store.Options{}))(t).Close())
	testkit.Check(t, os.Rename(empty, d.db()))
	begins("", "the daemon stores nothing: ")
	testkit.Check(t, os.Remove(d.db()))
	for _, args := range [][]string{{"ls"}, {"append", "--new", "user", "hello"}} { // the second would begin a new file
		cmd := exec.Command("sessiond", args...)
		cmd.Dir, cmd.Env = home, env
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "sessiond: the daemon stores nothing: "+d.db()+" is gone: ") {
			t.Errorf("%v without the file: %v %q", args, err, out)
		}
	}
	if _, err := os.Stat(d.db()); err == nil {
		t.Error("a command began a new database in the place of the daemon's")
	}
	testkit.Check(t, os.Rename(moved, d.db()))
	begins("", "")
	d.stop()
}
