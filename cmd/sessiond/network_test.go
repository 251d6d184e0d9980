package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
)

// proxy is the network between a daemon and its server, which a test cuts.
type proxy struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	refuse bool          // reset what is connected, and what connects
	open   chan struct{} // closed: bytes go through; else they wait, as packets that are sent again and again
	cutAt  []byte        // after the client sent these bytes and the server got them, the network is cut
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	p := &proxy{
		listener: testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t), server: server, conns: map[net.Conn]bool{},
		open: make(chan struct{}),
	}
	close(p.open)
	go func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	t.Cleanup(func() {
		p.listener.Close()
		p.reset()
		p.restore()
	})
	return p
}

// address is the server's, through the proxy.
func (p *proxy) address() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", p.listener.Addr())
}

func (p *proxy) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	p.mu.Lock()
	if err != nil || p.refuse {
		resetConn(client)
		if err == nil {
			server.Close()
		}
		p.mu.Unlock()
		return
	}
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	go p.forward(server, client, false)
	p.forward(client, server, true)
}

func (p *proxy) forward(from, to net.Conn, fromClient bool) {
	defer from.Close()
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		open, at := p.open, p.cutAt
		p.mu.Unlock()
		<-open
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if fromClient && at != nil && bytes.Contains(b[:n], at) {
			p.mu.Lock()
			p.cutAt = nil
			p.mu.Unlock()
			p.reset()
		}
		if err != nil {
			return
		}
	}
}

// reset resets all connections, and refuses new ones.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
	for conn := range p.conns {
		resetConn(conn)
	}
	clear(p.conns)
}

func resetConn(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// silence lets no byte through, and says so to neither side.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// restore lets everything through again, also what waited.
func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// ask sends a request and gives the status, the code of the problem and its Retry-After.
func (d *daemon) ask(method, path, body, key string) (status int, code, retry, text string) {
	d.t.Helper()
	req := testkit.Must(http.NewRequestWithContext(d.t.Context(), method, "http://sessiond"+path,
		strings.NewReader(body)))(d.t)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res := testkit.Must(d.client.Do(req))(d.t)
	defer res.Body.Close()
	said := testkit.Must(io.ReadAll(res.Body))(d.t)
	return res.StatusCode, between(string(said), `"code":"`, `"`), res.Header.Get("Retry-After"), string(said)
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// texts returns the texts of a session's messages.
func (d *daemon) texts(id session.ID) (all []string) {
	d.t.Helper()
	var list struct {
		Data []struct {
			Content string `json:"content"`
		} `json:"data"`
	}
	testkit.Must(d.do("GET", "/v1/sessions/"+string(id)+"/messages?limit=100", nil, &list))(d.t)
	for _, m := range list.Data {
		all = append(all, m.Content)
	}
	return all
}

const oneMessage = `{"messages":[{"role":"user","content":"hello"}]}`

// TestNetworkCutLosesAndDoublesNothing cuts the network between a daemon and its server, while eight clients
// append and repeat with their keys. Requests are answered meanwhile with 503. When the network is back, the
// daemon goes on by itself.
func TestNetworkCutLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*proxy){"reset": (*proxy).reset, "silent": (*proxy).silence} {
		t.Run(name, func(t *testing.T) {
			if name == "silent" {
				effort.NotShort(t, "it waits until the daemon gives up")
			}
			cluster := storetest.NewCluster(t)
			network := newProxy(t, cluster.Host())
			d := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+network.address())
			const clients = 8
			var ids [clients]session.ID
			var acked [clients]int
			var all atomic.Int64
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for c := range clients {
				ids[c] = d.newSession()
				wg.Go(func() {
					for n := 0; ; n++ {
						body := map[string]any{"messages": []any{map[string]string{
							"role":    "user",
							"content": fmt.Sprintf("message %d", n),
						}}}
						for status := 0; status != 201; {
							if status, _ = d.do("POST", "/v1/sessions/"+string(ids[c])+"/messages", body, nil, "Idempotency-Key",
								fmt.Sprintf("%d-%d", c, n)); status != 201 {
								time.Sleep(20 * time.Millisecond) // the network is cut
							}
						}
						acked[c]++
						all.Add(1)
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			more := func() {
				from := all.Load()
				eventually(t, "appends", func() bool { return all.Load() >= from+100 })
			}
			idle := d.newSession()
			for range effort.Runs(3) { // cuts
				more()
				cut(network)
				for _, request := range [][3]string{
					{"POST", "/v1/sessions/" + string(idle) + "/messages", oneMessage},
					{"GET", "/v1/sessions/" + string(idle), ""},
					{"GET", "/v1/sessions", ""},
					{"GET", "/readyz", ""},
					{"GET", "/v1/usage?group_by=model", ""},
				} {
					if strings.HasPrefix(request[1], "/v1/usage") && name == "silent" {
						continue // a report may take two minutes
					}
					begun := time.Now()
					if status, code, retry, said := d.ask(request[0], request[1], request[2], ""); status != 503 ||
						code != "unavailable" || retry == "" {
						t.Errorf("%s %s: %d, Retry-After %q: %s", request[0], request[1], status, retry, said)
					}
					t.Logf("%s %s answered after %s", request[0], request[1], time.Since(begun).Round(time.Millisecond))
				}
				if status, _, _, said := d.ask("GET", "/healthz", "", ""); status != 200 {
					t.Errorf("healthz: %d %s", status, said)
				}
				network.restore()
				eventually(t, "readyz", func() bool { status, _, _, _ := d.ask("GET", "/readyz", "", ""); return status == 200 })
			}
			more()
			close(stop)
			wg.Wait()
			s := testkit.Must(store.Open(t.Context(), cluster.Address(), store.Options{ReadOnly: true}))(t)
			defer s.Close()
			for c, id := range ids {
				sess := testkit.Must(s.Session(t.Context(), id))(t)
				n := 0
				testkit.Check(t, s.EachOnPath(t.Context(), *sess.HeadID, func(m *session.Message) error {
					if want := fmt.Sprintf("message %d", n); m.Text() != want {
						t.Errorf("%s says %q, not %q", m.ID, m.Text(), want)
					}
					n++
					return nil
				}))
				if n != acked[c] {
					t.Errorf("session %s has %d messages, %d were acknowledged", id, n, acked[c])
				}
			}
			cut(network)
			begun := time.Now()
			testkit.Check(t, d.cmd.Process.Signal(os.Interrupt))
			_ = d.cmd.Wait() // a stop that hangs fails the test by its time limit
			t.Logf("stopped after %s; %d acknowledged", time.Since(begun).Round(time.Millisecond), all.Load())
		})
	}
}

// TestNetworkCutAtCommit cuts the network when the server has got the COMMIT of an append. The answer says
// that it is open whether it is stored; repeated with the key it is stored once.
func TestNetworkCutAtCommit(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	network := newProxy(t, cluster.Host())
	d := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+network.address())
	id := d.newSession()
	digest := sha256.Sum256([]byte("COMMIT")) // pgx names a prepared statement by it
	path := "/v1/sessions/" + string(id) + "/messages"
	ready := func() bool { status, _, _, _ := d.ask("GET", "/readyz", "", ""); return status == 200 }
	for _, key := range []string{"", "the-same"} {
		body := strings.Replace(oneMessage, "hello", "hello "+key, 1)
		eventually(t, "cut at this commit", func() bool {
			network.mu.Lock()
			network.cutAt = []byte("stmtcache_" + hex.EncodeToString(digest[:24]))
			network.mu.Unlock()
			status, code, retry, said := d.ask("POST", path, body, key)
			if status != 503 || code != "unavailable" || retry == "" {
				t.Errorf("%d %q %s", status, retry, said)
			}
			network.restore()
			eventually(t, "readyz", ready)
			if strings.Contains(said, "nothing of this request was stored") { // the cut met a write of the daemon's own
				return false
			}
			if !strings.Contains(said, "whether this request is stored is open: repeat it, with the same Idempotency-Key") {
				t.Error(said)
			}
			return true
		})
		if key != "" {
			if status, _, _, said := d.ask("POST", path, body, key); status != 201 {
				t.Errorf("repeated: %d %s", status, said)
			}
		}
	}
	// A reset may discard the COMMIT before the server has read it: of the request without a key nobody knows.
	stored := map[string]int{}
	for _, text := range d.texts(id) {
		stored[text]++
	}
	if stored["hello the-same"] != 1 || stored["hello "] > 1 || len(stored) > 2 {
		t.Errorf("stored: %v", stored)
	}
	d.stop()
}
