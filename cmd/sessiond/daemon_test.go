package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
)

// daemon is a real `sessiond serve` in a process of its own.
type daemon struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	socket string
	url    string // over TCP, where it listens there
	writes string // who writes summaries, as its start says
	client *http.Client
	stderr *bytes.Buffer
}

// startDaemon starts one on a data folder, on a Unix socket alone.
func startDaemon(t *testing.T, dir string) *daemon {
	t.Helper()
	return startDaemonOn(t, dir, "")
}

// startDaemonOn starts one, also on TCP, and waits until it says that it is ready.
func startDaemonOn(t *testing.T, dir, listen string, env ...string) *daemon {
	t.Helper()
	// A Unix socket's path must be short, which a test's folder is not.
	short := testkit.Must(os.MkdirTemp("", "sessiond"))(t)
	t.Cleanup(func() { os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	d := &daemon{t: t, dir: dir, socket: socket, stderr: &bytes.Buffer{}}
	d.cmd = exec.Command("sessiond", "serve", "--listen", listen, "--socket", socket)
	d.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR=", "HOME="+dir)
	if storetest.OnPostgres() {
		d.cmd.Env = append(d.cmd.Env, "SESSIOND_DB="+d.db())
	}
	d.cmd.Env = append(d.cmd.Env, env...)
	d.cmd.Stderr = d.stderr
	out := testkit.Must(d.cmd.StdoutPipe())(t)
	testkit.Check(t, d.cmd.Start())
	ready := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); name == "http" {
			d.url = strings.TrimSpace(value)
		}
		if _, value, found := strings.Cut(lines.Text(), "  summaries "); found {
			ready, d.writes = true, value
			break
		}
	}
	if !ready {
		_ = d.cmd.Wait()
		t.Fatalf("the daemon did not start: %s", d.stderr)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // ends with the process
	d.client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // gone already in most tests
		_ = d.cmd.Wait()
	})
	return d
}

// db names the database of the daemon's folder: a file in it, or one on PostgreSQL where tests run on it.
func (d *daemon) db() string {
	if !storetest.OnPostgres() {
		return filepath.Join(d.dir, "sessiond", "sessions.db")
	}
	name := filepath.Join(d.dir, "database")
	address, err := os.ReadFile(name)
	if err != nil {
		address = []byte(storetest.New(d.t, name))
		testkit.Check(d.t, os.WriteFile(name, address, 0o600))
	}
	return string(address)
}

// do sends JSON and decodes the answer into out. It gives the status, 0 when there was none.
func (d *daemon) do(method, path string, in, out any, header ...string) (int, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, "http://sessiond"+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err // the status alone acknowledges nothing
	}
	if out != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(b, out); err != nil {
			return 0, fmt.Errorf("%s: %w", b, err)
		}
	}
	if res.StatusCode >= 300 {
		return res.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	return res.StatusCode, nil
}

// eventually waits for something that must come, far longer than it takes on a busy machine.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in two minutes there was no %s", what)
		}
	}
}

func (d *daemon) newSession() session.ID {
	d.t.Helper()
	var made struct {
		ID session.ID `json:"id"`
	}
	testkit.Must(d.do("POST", "/v1/sessions", map[string]any{}, &made))(d.t)
	return made.ID
}

type appendAnswer struct {
	Messages []struct {
		Seq int64 `json:"seq"`
	} `json:"messages"`
}

// TestKillLosesNothingAcknowledged kills the daemon with SIGKILL while sixteen clients append,
// again and again on the same file. Whatever was answered with 201 is there, once, at its seq,
// and a retry with the same key after the restart stores nothing twice.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	const clients = 16
	rounds, all := effort.Runs(50), 0
	dir, database := t.TempDir(), ""
	acknowledged := map[session.ID]map[int64]string{}
	for round := range rounds {
		d := startDaemon(t, dir)
		database = d.db()
		var mu sync.Mutex
		var retry []func(*daemon) error
		acks, due, enough := 0, 150+37*(round%20), make(chan struct{})
		var wg sync.WaitGroup
		for c := range clients {
			id := d.newSession()
			mu.Lock()
			acknowledged[id] = map[int64]string{}
			mu.Unlock()
			wg.Go(func() {
				for n := 0; ; n++ {
					text := fmt.Sprintf("round %d client %d message %d", round, c, n)
					body := map[string]any{"messages": []any{map[string]string{"role": "user", "content": text}}}
					path, key := "/v1/sessions/"+string(id)+"/messages", fmt.Sprintf("key-%d-%d-%d", round, c, n)
					var out appendAnswer
					status, err := d.do("POST", path, body, &out, "Idempotency-Key", key)
					mu.Lock()
					if status != 201 {
						// Nobody knows whether this one was stored: retrying must make it exactly one.
						retry = append(retry, func(next *daemon) error {
							var out appendAnswer
							if _, err := next.do("POST", path, body, &out, "Idempotency-Key", key); err != nil {
								return err
							}
							acknowledged[id][out.Messages[0].Seq] = text
							return nil
						})
						mu.Unlock()
						if status != 0 {
							t.Errorf("an append was refused: %v", err)
						}
						return
					}
					acknowledged[id][out.Messages[0].Seq] = text
					if acks++; acks == due {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		testkit.Check(t, d.cmd.Process.Kill())
		wg.Wait()
		_ = d.cmd.Wait()
		all += acks
		next := startDaemon(t, dir)
		for _, again := range retry {
			testkit.Check(t, again(next))
		}
		next.stop()
	}
	s := testkit.Must(store.Open(t.Context(), database, store.Options{ReadOnly: true}))(t)
	defer s.Close()
	for id, want := range acknowledged {
		msgs := testkit.Must(readSpans(t.Context(), s, []store.Span{{Session: id, From: 1, To: int64(len(want)) + 64}}))(t)
		if len(msgs) != len(want) {
			t.Errorf("session %s has %d messages, %d were acknowledged", id, len(msgs), len(want))
		}
		for i, m := range msgs {
			if m.Seq != int64(i+1) || want[m.Seq] != m.Text() {
				t.Errorf("%s says %q, acknowledged was %q", m.ID, m.Text(), want[m.Seq])
			}
		}
	}
	checks := testkit.Must(s.Doctor(t.Context(), false))(t)
	for _, c := range checks {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
	t.Logf("%d kills, %d acknowledged messages", rounds, all)
}

// stop ends the daemon as an operator does, and checks that it ended well.
func (d *daemon) stop() {
	d.t.Helper()
	testkit.Check(d.t, d.cmd.Process.Signal(os.Interrupt))
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("the daemon ended with %v: %s", err, d.stderr)
	}
}

// TestStopLeavesOneFile: after a clean stop the database is one file, whole by itself.
func TestStopLeavesOneFile(t *testing.T) {
	t.Parallel()
	storetest.OnFile(t)
	d := startDaemon(t, t.TempDir())
	id := d.newSession()
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages",
		map[string]any{"messages": []any{map[string]string{"role": "user", "content": "hello"}}}, nil))(t)
	d.stop()
	for _, rest := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Stat(d.db() + rest); err == nil {
			t.Errorf("%s is left behind", rest)
		}
	}
	b := testkit.Must(os.ReadFile(d.db()))(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	testkit.Check(t, os.WriteFile(copied, b, 0o600))
	s := testkit.Must(store.Open(t.Context(), copied, store.Options{ReadOnly: true}))(t)
	defer s.Close()
	if sess, err := s.Session(t.Context(), id); err != nil || sess.MessageCount != 1 {
		t.Fatalf("the copy has %+v, %v", sess, err)
	}
}

// TestSpansReachTheCollector: a collector that hangs holds up no append, and a kill loses no span.
func TestSpansReachTheCollector(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	spans := map[string]bool{}
	asked, hangs := make(chan struct{}, 100), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		asked <- struct{}{}
		<-hangs
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, piece := range strings.Split(string(raw), `"spanId":"`)[1:] {
			spans[piece[:16]] = true
		}
	}))
	defer collector.Close()
	dir, setting := t.TempDir(), "SESSIOND_OTLP_ENDPOINT="+collector.URL
	d := startDaemonOn(t, dir, "", setting)
	until := func(what string, isSo func() bool) {
		t.Helper()
		for range 600 {
			if isSo() {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("not after 30 s: %s\n%s", what, d.stderr)
	}
	kept := filepath.Join(dir, "sessiond", "otlp.json")
	until("the daemon knows where it begins", func() bool { _, err := os.Stat(kept); return err == nil })
	id := d.newSession()
	turn := func() {
		t.Helper()
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", map[string]any{
			"messages": []any{map[string]any{"role": "assistant", "content": "The quagga answers."}},
			"call":     map[string]any{"provider": "openai", "model": "gpt-5", "input_tokens": 5},
		}, nil))(t)
	}
	turn()
	<-asked
	turn() // while the collector hangs
	testkit.Check(t, d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	close(hangs)
	d = startDaemonOn(t, dir, "", setting)
	turn()
	until("all spans are there", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(spans) == 3
	})
	d.stop()
}
