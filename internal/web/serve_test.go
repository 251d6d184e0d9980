package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/web"
	"sessiond/internal/web/api"
	"sessiond/internal/web/guard"
)

const token = "0123456789abcdef0123456789abcdef"

type place struct{ address, socket string }

// serve runs Serve until the returned stop is called, which gives its error.
func serve(t *testing.T, in web.Listen) (place, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan place, 1), make(chan error, 1)
	in.Log = zerolog.Nop()
	in.Guard = guard.New(guard.Options{Token: token})
	in.Ready = func(address, socket string) { ready <- place{address, socket} }
	go func() { done <- web.Serve(ctx, in) }()
	stop := func() error { cancel(); return <-done }
	select {
	case p := <-ready:
		return p, stop
	case err := <-done:
		t.Fatalf("Serve ended at once: %v", err)
	}
	return place{}, stop
}

func client(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if socket != "" {
				network, address = "unix", socket
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp := testkit.Must(c.Get(url))(t)
	defer resp.Body.Close()
	body := testkit.Must(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(body)
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

func TestSocketNeedsNoTokenAndTCPDoes(t *testing.T) {
	defer goleak.VerifyNone(t)
	socket := filepath.Join(t.TempDir(), "run", "s.sock")
	p, stop := serve(t, web.Listen{Address: "127.0.0.1:0", Socket: socket, Handler: http.HandlerFunc(hello)})
	if code, _ := get(t, client(""), "http://"+p.address+"/"); code != http.StatusUnauthorized {
		t.Errorf("TCP without token: %d", code)
	}
	if code, body := get(t, client(socket), "http://sessiond/"); code != 200 || body != "hello" {
		t.Errorf("socket: %d %q", code, body)
	}
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket mode %v, %v", info.Mode(), err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	left, _ := os.ReadDir(filepath.Dir(socket))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStopFinishesWhatIsUnderWay(t *testing.T) {
	defer goleak.VerifyNone(t)
	entered, release := make(chan struct{}), make(chan struct{})
	slow := func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		if r.Context().Err() != nil {
			t.Error("the request was cancelled by the stop")
		}
		fmt.Fprint(w, "stored")
	}
	socket := filepath.Join(t.TempDir(), "s.sock")
	_, stop := serve(t, web.Listen{Socket: socket, Handler: http.HandlerFunc(slow)})
	answer := make(chan string, 1)
	go func() {
		_, body := get(t, client(socket), "http://sessiond/")
		answer <- body
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until nothing new is accepted
		conn, err := net.Dial("unix", socket)
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case err := <-stopped:
		t.Fatalf("Serve ended with a request under way: %v", err)
	default:
	}
	close(release)
	if body := <-answer; body != "stored" {
		t.Errorf("answer %q", body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	entered := make(chan struct{})
	hang := func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}
	socket := filepath.Join(t.TempDir(), "s.sock")
	_, stop := serve(t, web.Listen{Socket: socket, Handler: http.HandlerFunc(hang), Grace: 20 * time.Millisecond})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := client(socket).Get("http://sessiond/"); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	if err := stop(); err != nil {
		t.Errorf("a client that hangs fails the stop: %v", err)
	}
	<-gone
}

func TestPlacesThatAreTakenAreNamed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	p, stop := serve(t, web.Listen{Address: "127.0.0.1:0", Socket: socket, Handler: http.HandlerFunc(hello)})
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	file := filepath.Join(t.TempDir(), "file")
	testkit.Check(t, os.WriteFile(file, []byte("mine"), 0o600))
	for name, in := range map[string]web.Listen{
		"port":   {Address: p.address},
		"socket": {Socket: socket},
		"file":   {Socket: file},
	} {
		in.Guard, in.Handler = guard.New(guard.Options{}), http.HandlerFunc(hello)
		if err := web.Serve(context.Background(), in); session.CodeOf(err) != session.Conflict {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	if _, body := get(t, client(socket), "http://sessiond/"); body != "hello" {
		t.Error("the first daemon lost its socket")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("the file was touched: %q %v", b, err)
	}
}

func TestASocketOfADeadDaemonIsReplaced(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	dead := testkit.Must(net.Listen("unix", socket))(t)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	testkit.Check(t, dead.Close())
	_, stop := serve(t, web.Listen{Socket: socket, Handler: http.HandlerFunc(hello)})
	if _, body := get(t, client(socket), "http://sessiond/"); body != "hello" {
		t.Errorf("answer %q", body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestNothingToListenOn(t *testing.T) {
	if err := web.Serve(context.Background(), web.Listen{}); session.CodeOf(err) != session.Invalid {
		t.Errorf("err = %v", err)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	_, stop := serve(t, web.Listen{Socket: socket, Handler: http.HandlerFunc(hello)})
	conn := testkit.Must(net.Dial("unix", socket))(t)
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Big: %s\r\n\r\n", strings.Repeat("a", 100<<10))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("%q %v", line, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// What says nothing of what is stored needs no token; everything else does.
func TestOnlyServiceRoutesAreOpen(t *testing.T) {
	handler := guard.New(guard.Options{Token: token, Open: api.Open}).TCP(http.HandlerFunc(hello))
	for target, want := range map[string]int{
		"GET /healthz": 200, "GET /readyz": 200, "GET /version": 200, "HEAD /healthz": 200, "GET /openapi.json": 200,
		"GET /metrics": 401, "GET /v1/sessions": 401, "POST /healthz": 401, "GET /healthz/": 401, "GET /": 401,
		"GET //healthz": 401, "GET /v1/../healthz": 401,
	} {
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequest(method, "http://localhost"+path, nil)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}
