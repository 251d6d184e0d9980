package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long the server may be silent before a connection is given up. A network that drops packets
// reports nothing by itself for a quarter of an hour.
const (
	connectPatience = 3 * time.Second // for each host; connect_timeout in the address replaces it
	readPatience    = 10 * time.Second
	writePatience   = 15 * time.Second // more than lockPatience, after which the server answers
	reportPatience  = 2 * time.Minute
	closePatience   = time.Second // once the store closes
	connectPause    = time.Second // after a failed attempt to connect: until then further ones fail at once
	listenPause     = time.Second // between two attempts to listen
)

// network is what the connections of a store to its server know of each other.
type network struct {
	closing atomic.Bool
	cutAt   atomic.Int64 // when a connection was last given up, in Unix nanoseconds; older ones are not used again

	mu       sync.Mutex
	failed   error // of the last attempt to connect; nil: it succeeded
	failedAt time.Time
}

// connected records the outcome of an attempt to connect.
func (n *network) connected(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed, n.failedAt = err, time.Now()
}

// refusal returns the error of an attempt that failed a moment ago. Without it the requests that wait for
// a connection would each wait for an attempt of their own, one after the other.
func (n *network) refusal() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil || time.Since(n.failedAt) > connectPause {
		return nil
	}
	return n.failed
}

// watch has the connections that config makes give up a server that is silent for the time of patience;
// 0: only one that does not answer TCP's own probes.
func (n *network) watch(config *pgx.ConnConfig, patience time.Duration) {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectPatience
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, kind, address string) (net.Conn, error) {
		conn, err := dial(ctx, kind, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			err = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
				Enable: true, Idle: writePatience, Interval: 5 * time.Second,
				Count: 3,
			})
		}
		return &patientConn{Conn: conn, network: n, patience: patience}, err
	}
}

// patientConn is a connection that closes when a read or a write takes longer than its patience.
type patientConn struct {
	net.Conn
	network  *network
	patience time.Duration

	mu    sync.Mutex
	given bool // pgx set a deadline, for a context that ended
}

func (c *patientConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

func (c *patientConn) Read(b []byte) (int, error) {
	patience := c.arm(c.Conn.SetReadDeadline)
	n, err := c.Conn.Read(b)
	return n, c.outcome(err, patience)
}

func (c *patientConn) Write(b []byte) (int, error) {
	patience := c.arm(c.Conn.SetWriteDeadline)
	n, err := c.Conn.Write(b)
	return n, c.outcome(err, patience)
}

func (c *patientConn) arm(set func(time.Time) error) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	patience := c.patience
	if c.network.closing.Load() {
		patience = closePatience
	}
	if !c.given && patience > 0 {
		_ = set(time.Now().Add(patience)) // fails on a closed connection only
	}
	return patience
}

func (c *patientConn) outcome(err error, patience time.Duration) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given {
		return err
	}
	c.network.cutAt.Store(time.Now().UnixNano())
	_ = c.Conn.Close() // the error says it
	return fmt.Errorf("the server has been silent for %s: %w", patience, net.ErrClosed)
}

// ResetSession prepares a connection for its next use. It refuses one that is older than the last cut.
func (c *pgConn) ResetSession(ctx context.Context) error {
	if c.opened.UnixNano() < c.network.cutAt.Load() {
		_ = c.Conn.Conn().PgConn().Conn().Close() // else closing it would wait for an answer
		return driver.ErrBadConn
	}
	return c.Conn.ResetSession(ctx)
}

// channel is the name under which writing transactions notify the other daemons of a database.
const channel = "sessiond"

// Listen calls wake after transactions of other processes, until ctx ends. It connects again by itself, and
// calls wake then, for what it missed meanwhile. On a file, and through a pool in transaction mode, which passes
// no notifications, it returns at once.
func (s *DB) Listen(ctx context.Context, wake func()) {
	if !IsPostgres(s.path) {
		return
	}
	if config, err := pgx.ParseConfig(s.path); err != nil || isPooled(config) {
		return
	}
	for ctx.Err() == nil {
		err := s.listen(ctx, wake)
		if ctx.Err() == nil {
			s.opt.Log.Debug().Err(err).Msg("PostgreSQL notifies of nothing; " +
				"other daemons' writes are found by looking each second")
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
}

func (s *DB) listen(ctx context.Context, wake func()) error {
	config, err := s.network.config(s.path, nil, 0)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		conn.Close(short) //nolint:errcheck // it holds nothing
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	wake()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.PID != s.writer.pid.Load() {
			wake()
		}
	}
}
