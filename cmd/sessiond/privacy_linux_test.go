package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"sessiond/internal/pattern"
	"sessiond/internal/testkit"
)

// What docs/privacy.md says, seen by the kernel: no command, and no daemon, connects to another machine, asks for a
// name, or writes outside the folders of sessiond and the one for temporary files.
func TestNothingLeavesTheHostAndNothingIsWrittenElsewhere(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("it needs strace")
	}
	home, tmp := t.TempDir(), t.TempDir()
	if err := exec.Command(strace, "-f", "-o", filepath.Join(tmp, "probe"), "true").Run(); err != nil {
		t.Skipf("strace traces nothing here: %v", err)
	}
	under := func(path string) string { return filepath.Join(home, path) }
	history := func(script, from, to string) {
		files := testkit.Must(txtar.ParseFile(filepath.Join("testdata", "script", script)))(t).Files
		for _, f := range files {
			name, ok := strings.CutPrefix(f.Name, from)
			if !ok {
				continue
			}
			path := filepath.Join(under(to), name)
			testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
			if filepath.Ext(f.Name) != ".sql" {
				testkit.Check(t, os.WriteFile(path, f.Data, 0o600))
				continue
			}
			db := testkit.Must(sql.Open("sqlite", path))(t)
			_, err := db.ExecContext(t.Context(), string(f.Data))
			testkit.Check(t, errors.Join(err, db.Close()))
		}
	}
	history("import_claude_code.txtar", "home/projects/", ".claude/projects")
	history("import_codex.txtar", "home/sessions/", ".codex/sessions")
	history("import_opencode2.txtar", "first.sql", ".local/share/opencode/opencode.db")
	before := treeOf(t, home)

	socket := filepath.Join(tmp, "run")
	testkit.Check(t, os.MkdirAll(socket, 0o700))
	environ := []string{
		"HOME=" + home, "PATH=/usr/bin:/bin", "TMPDIR=" + tmp, "XDG_RUNTIME_DIR=" + socket,
		"SESSIOND_LISTEN=127.0.0.1:0",
	}
	self := testkit.Must(exec.LookPath("sessiond"))(t)
	traced := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(strace, append([]string{
			"-f", "-qq", "-s", "300", "-e", "trace=network,%file,openat,creat", "-o", filepath.Join(tmp, name+".trace"), self,
		}, args...)...)
		cmd.Env, cmd.Dir = environ, home
		return cmd
	}
	daemon := traced("serve", "serve")
	var said bytes.Buffer
	daemon.Stderr = &said
	out := testkit.Must(daemon.StdoutPipe())(t)
	testkit.Check(t, daemon.Start())
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "http ") {
				close(ready)
				break
			}
		}
		for lines.Scan() { // to its end, so that the daemon can write
		}
	}()
	select {
	case <-ready:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the daemon is not ready: %s", said.String())
	}
	names := []string{"serve"}
	for _, line := range []string{
		"import --yes", "append --new user hello", "ls --all", "show @@", "search parser", "context @@",
		"compact @@ --dry-run", "stats", "secrets", "models", "doctor", "open --print",
		"backup " + filepath.Join(tmp, "copy.db"), "hook claude-code", "version", "service status", "connect --dry-run",
	} {
		name, _, _ := strings.Cut(line, " ")
		cmd := traced(name, strings.Fields(line)...)
		if out, err := cmd.CombinedOutput(); err != nil && name != "service" {
			t.Errorf("%s ends with %v: %s", line, err, out)
		}
		names = append(names, name)
	}
	for _, child := range childrenOf(t, daemon.Process.Pid) { // strace passes no signal on
		testkit.Check(t, syscall.Kill(child, syscall.SIGTERM))
	}
	testkit.Check(t, daemon.Wait())

	allowed := []string{
		under(".local/share/sessiond"), under(".config/sessiond"), tmp, socket, "/dev/null", "/dev/tty",
	}
	connected := 0
	for _, name := range names {
		text := string(testkit.Must(os.ReadFile(filepath.Join(tmp, name+".trace")))(t))
		if !strings.Contains(text, "execve(") {
			t.Errorf("%s was not traced: %.200s", name, text)
		}
		for line := range strings.Lines(text) {
			switch what := forbidden(line, home, allowed); {
			case what != "":
				t.Errorf("%s %s: %s", name, what, line)
			case strings.Contains(line, "connect("):
				connected++
			}
		}
	}
	if connected == 0 {
		t.Error("no command asked the daemon: the traces show no connection at all")
	}
	after := treeOf(t, home)
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s was changed", path)
		}
	}
	for path := range after {
		if _, was := before[path]; !was && !strings.HasPrefix(path, ".local/share/sessiond/") {
			t.Errorf("%s was made", path)
		}
	}
}

// childrenOf returns the processes that a process started.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	for _, stat := range testkit.Must(filepath.Glob("/proc/[0-9]*/stat"))(t) {
		text, _ := os.ReadFile(stat) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, testkit.Must(strconv.Atoi(filepath.Base(filepath.Dir(stat))))(t))
		}
	}
	return children
}

var (
	peerOf   = pattern.New(`^\d+ +(?:connect|sendto|sendmsg)\(.*sa_family=AF_INET6?.*(?:inet_addr\("|AF_INET6, ")([^"]+)"`)
	openedAt = pattern.New(`^\d+ +(?:openat|open|creat)\((?:AT_FDCWD|\d+)?,? ?"([^"]*)", ([A-Z_|]+)`)
	changeAt = pattern.New(`^\d+ +(?:mkdir|mkdirat|rename|renameat|renameat2|unlink|unlinkat|link|linkat|symlink|symlinkat|` +
		`truncate|chmod|fchmodat|fchmodat2|chown|fchownat|utimensat|mknod|mknodat)\(`)
	quotedPath = pattern.New(`"([^"]*)"`)
)

// forbidden says what a traced call does that sessiond must not; "" if it may.
func forbidden(line, dir string, allowed []string) string {
	inside := func(path string) bool {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		for _, folder := range allowed {
			if path == folder || strings.HasPrefix(path, folder+"/") {
				return true
			}
		}
		// The parents of sessiond's own folders.
		return strings.Contains(line, "mkdir") && strings.HasPrefix(allowed[0], path+"/")
	}
	if peer := peerOf.FindStringSubmatch(line); peer != nil && !strings.HasPrefix(peer[1], "127.") && peer[1] != "::1" {
		return "speaks to " + peer[1]
	}
	if open := openedAt.FindStringSubmatch(line); open != nil && !inside(open[1]) {
		for _, flag := range []string{"O_WRONLY", "O_RDWR", "O_CREAT"} {
			if strings.Contains(open[2], flag) {
				return "opens for writing"
			}
		}
	}
	if changeAt.MatchString(line) {
		for _, path := range quotedPath.FindAllStringSubmatch(line, 2) {
			if !inside(path[1]) {
				return "changes"
			}
		}
	}
	return ""
}

// The rules are shown to bite.
func TestForbiddenCallsAreSeen(t *testing.T) {
	allowed := []string{"/home/me/.local/share/sessiond", "/tmp/x"}
	for line, bad := range map[string]bool{
		`12 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.2.3.4")}, 16) = 0`:              true,
		`12 connect(3, {sa_family=AF_INET, sin_port=htons(7433), sin_addr=inet_addr("127.0.0.1")}, 16) = 0`:           false,
		`12 sendto(3, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("9.9.9.9")}, 16) = 1`:     true,
		`12 connect(3, {sa_family=AF_INET6, sin6_port=htons(1), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28)`: true,
		`12 connect(3, {sa_family=AF_UNIX, sun_path="/run/sessiond.sock"}, 21) = 0`:                                   false,
		`12 openat(AT_FDCWD, "/home/me/.claude/a.jsonl", O_RDONLY|O_CLOEXEC) = 3`:                                     false,
		`12 openat(AT_FDCWD, "/home/me/.claude/a.jsonl", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3`:                         true,
		`12 openat(AT_FDCWD, "/home/me/.local/share/sessiond/sessions.db", O_RDWR|O_CREAT, 0600) = 3`:                 false,
		`12 unlinkat(AT_FDCWD, "/home/me/.codex/x", 0) = 0`:                                                           true,
		`12 renameat(AT_FDCWD, "/tmp/x/a", AT_FDCWD, "/home/me/b") = 0`:                                               true,
		`12 mkdirat(AT_FDCWD, "/home/me/.local", 0700) = 0`:                                                           false,
		`12 mkdirat(AT_FDCWD, "/home/me/elsewhere", 0700) = 0`:                                                        true,
	} {
		if got := forbidden(line, "/home/me", allowed); (got != "") != bad {
			t.Errorf("%s: %q", line, got)
		}
	}
}
