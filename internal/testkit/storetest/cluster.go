package storetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// Cluster is a server of PostgreSQL of a test's own, which it can crash.
type Cluster struct {
	t        testing.TB
	dir, bin string
	port     int
	uid, gid int // of a user who is not root: PostgreSQL refuses to run as root; 0: whoever runs the test
}

// NewCluster starts a server on a free port of loopback. It skips the test where PostgreSQL's programs
// are missing.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl") // as Debian installs them
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // its folder has all programs
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Skip("it needs PostgreSQL's pg_ctl and initdb (Debian: postgresql)")
	}
	c := &Cluster{t: t, bin: filepath.Dir(found[len(found)-1]), dir: testkit.Must(os.MkdirTemp("", "sessiond-pg"))(t)}
	t.Cleanup(func() { os.RemoveAll(c.dir) })
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skipf("PostgreSQL does not run as root, and there is no user postgres: %v", err)
		}
		c.uid, c.gid = testkit.Must(strconv.Atoi(u.Uid))(t), testkit.Must(strconv.Atoi(u.Gid))(t)
		testkit.Check(t, os.Chown(c.dir, c.uid, c.gid))
	}
	c.port = freePort(t)
	c.run("initdb", "-D", filepath.Join(c.dir, "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--lc-collate=C",
		"--lc-ctype=C.UTF-8", "--no-sync")
	c.Start()
	t.Cleanup(c.Crash)
	return c
}

// freePort returns a free port of loopback, below those that the system gives to clients: while a test has its
// server stopped, no connection of another process takes it.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			testkit.Check(t, l.Close())
			return port
		}
	}
	t.Fatal("no port of loopback between 10,000 and 30,000 is free")
	return 0
}

// Address names the server's database.
func (c *Cluster) Address() string {
	return "postgres://postgres@" + c.Host() + "/postgres"
}

// Host is the server's host and port.
func (c *Cluster) Host() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

// NewDatabase makes a database and returns its address.
func (c *Cluster) NewDatabase(name string) string {
	c.t.Helper()
	c.run("createdb", "-h", c.dir, "-p", strconv.Itoa(c.port), "-U", "postgres", name)
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s", c.port, name)
}

// Program returns the path of one of PostgreSQL's programs.
func (c *Cluster) Program(name string) string { return filepath.Join(c.bin, name) }

// Start starts the server and waits until it accepts connections.
func (c *Cluster) Start() {
	c.t.Helper()
	c.start("-w")
}

// StartUnready starts a server that accepts no connections, as one in recovery; it returns when the server says so.
func (c *Cluster) StartUnready() {
	c.t.Helper()
	c.start("-W")
	for ; ; time.Sleep(10 * time.Millisecond) { // the test's own time limit ends it
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		if strings.Contains(string(log), "entering standby mode") {
			return
		}
	}
}

func (c *Cluster) start(wait string) {
	c.t.Helper()
	c.control(wait, "-l", filepath.Join(c.dir, "log"), "-o",
		fmt.Sprintf("-p %d -k %s -c listen_addresses=127.0.0.1 -c max_connections=300", c.port, c.dir), "start")
}

// Stop stops the server as an operator does.
func (c *Cluster) Stop() {
	c.t.Helper()
	c.control("-m", "fast", "-w", "stop")
}

// Standby has the next start make the server a replica, which only reads.
func (c *Cluster) Standby() {
	c.t.Helper()
	testkit.Check(c.t, os.WriteFile(filepath.Join(c.dir, "data", "standby.signal"), nil, 0o644))
}

// Promote makes a replica the primary server.
func (c *Cluster) Promote() {
	c.t.Helper()
	c.control("-w", "promote")
}

// Save copies the stopped server's data.
func (c *Cluster) Save() {
	c.t.Helper()
	c.copyData("data", "saved")
}

// Restore replaces the stopped server's data by what Save copied.
func (c *Cluster) Restore() {
	c.t.Helper()
	c.copyData("saved", "data")
}

func (c *Cluster) copyData(from, to string) {
	c.t.Helper()
	testkit.Check(c.t, os.RemoveAll(filepath.Join(c.dir, to)))
	cmd := exec.Command("cp", "-a", filepath.Join(c.dir, from), filepath.Join(c.dir, to)) // with owners and modes
	if said, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("copy the server's data: %v: %s", err, said)
	}
}

// Write writes a file into the server's folder, which only its user reads, and returns its path.
func (c *Cluster) Write(name string, content []byte) string {
	c.t.Helper()
	path := filepath.Join(c.dir, "data", name)
	testkit.Check(c.t, os.WriteFile(path, content, 0o600))
	if c.uid != 0 {
		testkit.Check(c.t, os.Chown(path, c.uid, c.gid))
	}
	return path
}

// HBA is the path of the file that says who may connect.
func (c *Cluster) HBA() string { return filepath.Join(c.dir, "data", "pg_hba.conf") }

// Crash ends the server without a checkpoint; the next start recovers from its write-ahead log.
func (c *Cluster) Crash() {
	c.t.Helper()
	c.control("-m", "immediate", "-w", "stop")
}

func (c *Cluster) control(args ...string) {
	c.t.Helper()
	c.run("pg_ctl", append([]string{"-D", filepath.Join(c.dir, "data")}, args...)...)
}

func (c *Cluster) run(name string, args ...string) {
	c.t.Helper()
	cmd := exec.Command(c.Program(name), args...)
	cmd.Dir = c.dir
	if c.uid != 0 {
		testkit.RunAs(cmd, c.uid, c.gid)
	}
	log := testkit.Must(os.CreateTemp("", "sessiond-pg-log"))(c.t) // a pipe would stay open as long as the server runs
	defer os.Remove(log.Name())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		c.t.Fatalf("%s: %v: %s", name, err, strings.TrimSpace(string(said)))
	}
}
