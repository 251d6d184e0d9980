package clients_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// buildProgram builds the sessiond command once for all tests of a run.
var buildProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sessiond")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sessiond")
	return path, exec.Command("go", "build", "-o", path, "sessiond/cmd/sessiond").Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildProgram(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// daemon is a real daemon in a folder of its own.
type daemon struct {
	t       *testing.T
	home    string
	url     string // of HTTP; it stays the same over restarts
	socket  string
	process *exec.Cmd
}

// startDaemon starts a daemon that ends with the test.
func startDaemon(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{t: t, home: t.TempDir()}
	d.start()
	t.Cleanup(d.kill)
	return d
}

func (d *daemon) environ() []string {
	return append(os.Environ(), "HOME="+d.home, "XDG_DATA_HOME="+d.home, "XDG_CONFIG_HOME="+d.home,
		"XDG_RUNTIME_DIR="+d.home)
}

// start starts the daemon and waits until it is ready.
func (d *daemon) start() {
	d.t.Helper()
	listen := strings.TrimPrefix(d.url, "http://")
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	d.process = exec.Command(testkit.Must(buildProgram())(d.t), "serve", "--listen", listen)
	d.process.Env = d.environ()
	out := testkit.Must(d.process.StdoutPipe())(d.t)
	testkit.Check(d.t, d.process.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch name {
		case "http":
			d.url = strings.TrimSpace(value)
		case "socket":
			d.socket = strings.TrimSpace(value)
		case "summaries": // the last line of a start
			go func() {
				for lines.Scan() { // until it ends
				}
			}()
			return
		}
	}
	d.t.Fatal("the daemon did not start")
}

// kill ends the daemon at once.
func (d *daemon) kill() {
	_ = d.process.Process.Kill()
	_ = d.process.Wait()
}

func (d *daemon) token() string {
	d.t.Helper()
	return strings.TrimSpace(string(testkit.Must(os.ReadFile(filepath.Join(d.home, "sessiond", "token")))(d.t)))
}

// eventually waits until something is so.
func eventually(t *testing.T, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not so after a minute")
		}
	}
}
