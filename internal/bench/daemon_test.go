package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// binary returns the binary to measure, built as releases are if no flag names one.
func binary(tb testing.TB) string {
	tb.Helper()
	if *measured != "" {
		return *measured
	}
	path := filepath.Join(tb.TempDir(), "sessiond")
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path,
		"sessiond/cmd/sessiond")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build sessiond: %v\n%s", err, out)
	}
	return path
}

// command prepares a run of the binary on a database, away from the user's own files.
func command(program, db string, args ...string) *exec.Cmd {
	return commandIn(filepath.Dir(db), program, db, args...)
}

// commandIn is command for a database that is no file. What else the program keeps is in dir.
func commandIn(dir, program, db string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, append(args, "--db", db)...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR=", "HOME="+dir)
	return cmd
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args[1:], err, out)
	}
	return nil
}

// daemon is a `sessiond serve` in a process of its own, on a Unix socket.
type daemon struct {
	pid    int
	socket string
}

func serve(tb testing.TB, program, db string) *daemon {
	tb.Helper()
	return serveIn(tb, filepath.Dir(db), program, db)
}

// serveIn is serve for a database that is no file.
func serveIn(tb testing.TB, dir, program, db string) *daemon {
	tb.Helper()
	d := &daemon{socket: filepath.Join(tb.TempDir(), "s")}
	cmd := commandIn(dir, program, db, "serve", "--listen", "", "--socket", d.socket)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	testkit.Check(tb, cmd.Start())
	d.pid = cmd.Process.Pid
	tb.Cleanup(func() {
		testkit.Check(tb, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the daemon ended: %v: %s", err, &said)
		}
	})
	for range 1000 {
		if conn, err := net.Dial("unix", d.socket); err == nil {
			testkit.Check(tb, conn.Close())
			return d
		}
		time.Sleep(10 * time.Millisecond)
	}
	tb.Fatal("the daemon did not start")
	return nil
}

// cpu returns the CPU time of all the daemon's threads, 0 where there is no /proc.
func (d *daemon) cpu() time.Duration {
	var sum int64
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path) // "" of a thread that has ended
		ns, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(ns, 10, 64)
		sum += n
	}
	return time.Duration(sum)
}

// client is one kept-alive connection. It does so little that the daemon is measured and not its client.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func (d *daemon) dial(tb testing.TB) *client {
	tb.Helper()
	conn := testkit.Must(net.Dial("unix", d.socket))(tb)
	tb.Cleanup(func() { conn.Close() })
	return &client{conn, bufio.NewReaderSize(conn, 64<<10)}
}

// request encodes a whole request.
func request(tb testing.TB, method, path string, body any) []byte {
	tb.Helper()
	raw := testkit.Must(json.Marshal(body))(tb)
	return fmt.Appendf(nil,
		"%s %s HTTP/1.1\r\nHost: sessiond\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path,
		len(raw), raw)
}

// send does a request and returns the answer's body.
func (c *client) send(req []byte) ([]byte, error) {
	if _, err := c.conn.Write(req); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if res.StatusCode >= 300 {
		first, _, _ := bytes.Cut(req, []byte("\r"))
		err = fmt.Errorf("%s: %s: %s", first, res.Status, body)
	}
	return body, err
}

// sends returns an op that does a request.
func (c *client) sends(req []byte) func() error {
	return func() error {
		_, err := c.send(req)
		return err
	}
}

// newSession creates a session and returns a request that appends text to it.
func (c *client) newSession(tb testing.TB, text string) []byte {
	tb.Helper()
	var created struct{ ID string }
	answer := testkit.Must(c.send(request(tb, "POST", "/v1/sessions", object{"title": "A title", "model": "gpt-4o"})))(tb)
	testkit.Check(tb, json.Unmarshal(answer, &created))
	return request(tb, "POST", "/v1/sessions/"+created.ID+"/messages",
		object{"messages": []any{object{"role": "user", "content": text}}})
}
