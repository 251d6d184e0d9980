package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"time"
)

// program gives the sessiond binary to run, built as releases are.
func (b *bench) program(ctx context.Context) (string, error) {
	if b.binary != "" {
		return b.binary, nil
	}
	path := filepath.Join(b.work, "sessiond")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "sessiond/cmd/sessiond")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sessiond: %w\n%s", err, out)
	}
	b.binary = path
	return path, nil
}

// daemon is a `sessiond serve` in a process of its own.
type daemon struct {
	cmd     *exec.Cmd
	socket  string
	said    *bytes.Buffer
	drained chan struct{}
	startup time.Duration // until it accepted requests
}

// command runs the program on a database, away from the user's own files.
func (b *bench) command(ctx context.Context, db string, args ...string) (*exec.Cmd, error) {
	program, err := b.program(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--db", db)...)
	dir := filepath.Dir(db)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR=", "HOME="+dir)
	return cmd, nil
}

func (b *bench) serve(ctx context.Context, db string, environ ...string) (*daemon, error) {
	b.sockets++
	d := &daemon{socket: filepath.Join(b.work, "s"+strconv.Itoa(b.sockets)), said: &bytes.Buffer{}, drained: make(chan struct{})}
	cmd, err := b.command(ctx, db, "serve", "--listen", "", "--socket", d.socket)
	if err != nil {
		return nil, err
	}
	d.cmd = cmd
	cmd.Env = append(cmd.Env, environ...)
	cmd.Stderr = d.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for d.startup == 0 && lines.Scan() {
		if strings.Contains(lines.Text(), "is ready") {
			d.startup = time.Since(start)
		}
	}
	if d.startup == 0 {
		return nil, errors.Join(fmt.Errorf("the daemon did not start: %s", d.said), cmd.Wait())
	}
	go func() {
		defer close(d.drained)
		_, _ = io.Copy(io.Discard, out) // ends with the process
	}()
	return d, nil
}

func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-d.drained
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("the daemon stopped: %w: %s", err, d.said)
	}
	return nil
}

// memory is what the process holds in memory, in bytes; 0 where that cannot be told.
func (d *daemon) memory() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid)) // "" off Linux
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64) // the kernel's own number
			return kb * 1024
		}
	}
	return 0
}

// processorTime is what the daemon has used so far, in all its threads; 0 where that cannot
// be told.
func (d *daemon) processorTime() time.Duration {
	var sum int64
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.cmd.Process.Pid)) // none off Linux
	for _, path := range threads {
		text, _ := os.ReadFile(path) // a thread that has ended
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			ns, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel's own number
			sum += ns
		}
	}
	return time.Duration(sum)
}

// line is one kept-alive connection to a daemon. It does little of its own, so that what is
// measured is the daemon and not its client.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

func (d *daemon) dial() (*line, error) {
	conn, err := net.Dial("unix", d.socket)
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

// request writes out a whole request.
func request(method, path, body string) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: sessiond\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
}

// send does a request and reads its answer into into, nil to drop it.
func (l *line) send(req []byte, into *bytes.Buffer) error {
	if _, err := l.conn.Write(req); err != nil {
		return err
	}
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	if res.StatusCode >= 300 {
		text, _ := io.ReadAll(res.Body) // the status is the error
		first, _, _ := bytes.Cut(req, []byte("\r"))
		return fmt.Errorf("%s: %s: %s", first, res.Status, text)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	into.Reset()
	_, err = into.ReadFrom(res.Body)
	return err
}

// lines opens k connections.
func (d *daemon) lines(k int) ([]*line, error) {
	out := make([]*line, k)
	for i := range out {
		l, err := d.dial()
		if err != nil {
			return nil, err
		}
		out[i] = l
	}
	return out, nil
}

// decode does a request and reads its JSON answer.
func (l *line) decode(req []byte, into any) error {
	var answer bytes.Buffer
	if err := l.send(req, &answer); err != nil {
		return err
	}
	return json.Unmarshal(answer.Bytes(), into)
}
