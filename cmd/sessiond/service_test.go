package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// A systemd of this test's own starts and stops the daemon that the unit names, as systemd does, and keeps a list of
// what it was asked.
const fakeSystemctl = `#!/bin/sh
echo "$*" >>"$HOME/asked"
[ ! -e "$HOME/no-bus" ] || { echo "Failed to connect to bus: No medium found" >&2; exit 1; }
unit=$HOME/.config/systemd/user/sessiond-store.service
alive() { [ -e "$HOME/pid" ] && kill -0 "$(cat "$HOME/pid")" 2>/dev/null; }
stop() {
	alive || return 0
	kill "$(cat "$HOME/pid")"
	while alive; do sleep 0.02; done
}
case $2 in
restart)
	stop
	command=$(sed -n 's/^ExecStart=//p' "$unit")
	PATH=/usr/bin:/bin sh -c "exec $command --listen 127.0.0.1:0" >"$HOME/log" 2>&1 &
	echo $! >"$HOME/pid" ;;
disable) stop ;;
is-active) alive ;;
esac
`

func TestServiceKeepsTheDaemonRunning(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("it needs a shell")
	}
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	testkit.Check(t, os.MkdirAll(bin, 0o700))
	testkit.Check(t, os.WriteFile(filepath.Join(bin, "systemctl"), []byte(fakeSystemctl), 0o700))
	testkit.Check(t, os.WriteFile(filepath.Join(bin, "journalctl"), []byte("#!/bin/sh\necho \"journal: $*\"\n"), 0o700))
	sessiond := filepath.Join(bin, "sessiond")
	testkit.Check(t, copyProgram(testkit.Must(os.Executable())(t), sessiond))
	unit := filepath.Join(home, ".config", "systemd", "user", "sessiond-store.service")
	path := bin + ":/usr/bin:/bin"
	run := func(args ...string) (string, error) {
		cmd := exec.Command(sessiond, args...)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "PATH=" + path, "SESSIOND_SOCKET=off", "TMPDIR=" + os.TempDir()}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	check := func(wantFailure bool, want string, args ...string) {
		t.Helper()
		if out, err := run(args...); (err != nil) != wantFailure || !strings.Contains(out, want) {
			t.Errorf("%q ends with %v and says\n%s\nwant %s", args, err, out, want)
		}
	}
	t.Cleanup(func() { _, _ = run("service", "uninstall") })

	check(true, "not installed", "service", "status")
	check(true, "no service is installed", "service", "logs")
	check(false, "ExecStart="+sessiond+" serve", "service", "install", "--dry-run")
	if _, err := os.Stat(unit); err == nil {
		t.Error("--dry-run writes the unit")
	}

	// No manager, one that does not run, and another program of this name.
	path = "/nowhere"
	check(true, "there is no systemd here", "service", "install")
	path = bin + ":/usr/bin:/bin"
	noBus := filepath.Join(home, "no-bus")
	testkit.Check(t, os.WriteFile(noBus, nil, 0o600))
	check(true, "systemd does not run for this user", "service", "install")
	testkit.Check(t, os.Remove(noBus))
	other := filepath.Join(home, "other")
	testkit.Check(t, os.MkdirAll(other, 0o700))
	testkit.Check(t, os.WriteFile(filepath.Join(other, "sessiond"), []byte("#!/bin/sh\n"), 0o700))
	path = other + ":" + path
	check(true, "another sessiond is first on the PATH", "service", "install")
	path = bin + ":/usr/bin:/bin"
	if _, err := os.Stat(unit); err == nil {
		t.Error("a refused install writes the unit")
	}

	check(false, "http      http://127.0.0.1:", "service", "install")
	info := testkit.Must(os.Stat(unit))(t)
	if text := string(testkit.Must(os.ReadFile(unit))(t)); info.Mode().Perm() != 0o600 ||
		!strings.Contains(text, "Environment=\"SESSIOND_SOCKET=off\"") {
		t.Errorf("the unit has mode %v and is\n%s", info.Mode(), text)
	}
	check(false, "active, "+unit, "service", "status")
	check(false, "sessiond dev, process", "service", "status")
	check(false, `"installed": true`, "service", "status", "--json")
	check(false, "journal: --user --unit sessiond-store.service", "service", "logs")
	before := string(testkit.Must(os.ReadFile(filepath.Join(home, "pid")))(t))
	check(false, "http      http://127.0.0.1:", "service", "restart")
	if after := string(testkit.Must(os.ReadFile(filepath.Join(home, "pid")))(t)); after == before {
		t.Error("restart starts no other daemon")
	}
	check(false, "http      http://127.0.0.1:", "service", "install") // again: with the newer program
	check(false, "removed "+unit, "service", "uninstall")
	check(true, "does not run", "service", "status")
	check(true, "no service is installed", "service", "uninstall")
	asked := string(testkit.Must(os.ReadFile(filepath.Join(home, "asked")))(t))
	for _, want := range []string{
		"--user daemon-reload", "--user enable " + unit, "--user restart sessiond-store.service",
		"--user disable --now sessiond-store.service",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("systemd was not asked %q, but\n%s", want, asked)
		}
	}
}
