// Package web serves HTTP on TCP and on a Unix socket until it is stopped. The routes are in web/api.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/web/guard"
)

// Listen says where and how to serve. At least one of Address and Socket must be set.
type Listen struct {
	Address string // host:port; "": no TCP
	Socket  string // path of the Unix socket, made 0600; "": none
	Handler http.Handler
	Guard   *guard.Guard // stands before Handler on TCP
	Log     zerolog.Logger
	Grace   time.Duration // for running requests at a stop; 0: 7 s

	// Ready is called once when every listener accepts connections; address has the real port, and
	// is "" without TCP. May be nil.
	Ready func(address, socket string)
}

// Limits of a connection. A route may limit the time of a body further.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 2 * time.Minute
	writeTimeout  = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	defaultGrace  = 7 * time.Second // the jobs and the store stop afterwards, all within 10 s
)

// Serve answers requests until ctx ends. Then it accepts no new ones and waits for running ones, at
// most Grace; it cuts off the rest, which are no failure of the stop. The caller closes the store afterwards. Codes:
// Invalid (no listener is configured), Conflict (another process listens there).
func Serve(ctx context.Context, in Listen) error {
	if in.Address == "" && in.Socket == "" {
		return session.Errorf(session.Invalid, "no listener is configured: set `listen` to an address, or `socket` to a path")
	}
	if in.Grace == 0 {
		in.Grace = defaultGrace
	}
	// Requests outlive ctx: its end stops the listeners, not the running requests.
	work, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()

	var servers []*http.Server
	var listeners []net.Listener
	add := func(l net.Listener, h http.Handler) {
		listeners = append(listeners, l)
		servers = append(servers, newServer(work, h, in.Log))
	}
	closeAll := func() {
		for _, l := range listeners {
			_ = l.Close() // nothing was accepted yet
		}
	}
	address := ""
	if in.Address != "" {
		l, err := listenTCP(ctx, in.Address)
		if err != nil {
			return err
		}
		address = l.Addr().String()
		add(l, in.Guard.TCP(in.Handler))
	}
	if in.Socket != "" {
		l, err := listenSocket(ctx, in.Socket)
		if err != nil {
			closeAll()
			return err
		}
		defer os.Remove(in.Socket)
		add(l, in.Handler)
	}
	failed := make(chan error, len(servers))
	for i := range servers {
		go func() { failed <- servers[i].Serve(listeners[i]) }()
	}
	if in.Ready != nil {
		in.Ready(address, in.Socket)
	}
	return wait(ctx, in, servers, failed, drop)
}

// wait blocks until ctx ends or a listener fails, then stops all servers.
func wait(ctx context.Context, in Listen, servers []*http.Server, failed <-chan error, drop func()) error {
	var result error
	running := len(servers)
	select {
	case <-ctx.Done():
	case err := <-failed:
		running--
		result = fmt.Errorf("listen: %w", err)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.Grace)
	defer cancel()
	for _, s := range servers {
		if err := s.Shutdown(limit); err != nil {
			drop() // cancels the running requests; a transaction that began still ends
			in.Log.Warn().Msgf("requests still running %s after the stop were cut off: their clients read or send too slowly",
				in.Grace)
			_ = s.Close() // the connections end either way
		}
	}
	for range running {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			result = errors.Join(result, err)
		}
	}
	return result
}

func newServer(work context.Context, h http.Handler, logger zerolog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return work },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(&debugWriter{log: logger}, "", 0),
	}
}

// debugWriter logs net/http's own messages, mostly broken connections, at level debug. Only that connections cannot
// be accepted is an error, for which net/http writes a line up to once a second.
type debugWriter struct {
	log  zerolog.Logger
	last atomic.Int64 // when an error was logged, in seconds
}

const acceptErrorEvery = 60 // seconds

func (d *debugWriter) Write(p []byte) (int, error) {
	if _, why, accepts := strings.Cut(string(p), "Accept error: "); accepts {
		now := time.Now().Unix()
		if last := d.last.Load(); now-last < acceptErrorEvery || !d.last.CompareAndSwap(last, now) {
			return len(p), nil
		}
		advice := ""
		if strings.Contains(why, "too many open files") {
			advice = ": the process has run out of descriptors; close connections, or raise its limit (ulimit -n, LimitNOFILE)"
		}
		d.log.Error().Str("error", strings.TrimSpace(why)).Msg("no connection can be accepted" + advice)
		return len(p), nil
	}
	d.log.Debug().Str("from", "net/http").Msg(string(p))
	return len(p), nil
}

// listenerOn says what listens on an address: a sessiond, of another database, or another program.
func listenerOn(ctx context.Context, address string) string {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return "another program"
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "another program"
	}
	defer res.Body.Close()
	const longest = 100
	body, err := io.ReadAll(io.LimitReader(res.Body, longest))
	if err != nil || strings.TrimSpace(string(body)) != `{"status":"ok"}` {
		return "another program"
	}
	return "the sessiond of another database"
}

// wsaAddressInUse is EADDRINUSE as Windows says it; no other system has an error of this number.
const wsaAddressInUse = syscall.Errno(10048)

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaAddressInUse) {
		return nil, session.Errorf(session.Conflict,
			"address %s is in use by %s: stop it, or choose another address with --listen", address, listenerOn(ctx, address))
	}
	if err != nil {
		return nil, session.Errorf(session.Invalid, "cannot listen on %s: %w", address, err)
	}
	return l, nil
}

// listenSocket creates a socket at path that only its owner can open. It binds the socket inside a
// private folder and renames it, so that others can connect at no time. It replaces the socket of
// a dead daemon.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the socket: %w", err)
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil, session.Errorf(session.Conflict,
			"%s exists and is not a socket: remove it, or choose another path with --socket", path)
	}
	if err == nil {
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = conn.Close() // the connection itself is the answer
			return nil, session.Errorf(session.Conflict,
				"another sessiond listens on %s: stop it, or choose another path with --socket, or --socket off", path)
		}
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("create the socket: %w", err)
	}
	defer os.RemoveAll(private)
	temp := filepath.Join(private, "s")
	l, err := new(net.ListenConfig).Listen(ctx, "unix", temp)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "cannot create the socket %s (its path can have about 90 characters): %w",
			path, err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it is not at that path any more
	}
	if err := errors.Join(os.Chmod(temp, 0o600), os.Rename(temp, path)); err != nil {
		_ = l.Close() // the first error is reported
		return nil, fmt.Errorf("create the socket: %w", err)
	}
	return l, nil
}
