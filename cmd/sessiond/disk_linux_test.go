package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// smallDisk mounts a disk of some MiB, or skips the test where the user may not.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f := testkit.Must(os.Create(path))(t)
	for err := error(nil); !errors.Is(err, syscall.ENOSPC); {
		if _, err = f.Write(make([]byte, 4096)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	testkit.Check(t, f.Close())
}

// tally is what clients that append without end were answered.
type tally struct {
	mu    sync.Mutex
	acked map[session.ID]map[int64]string
	n     atomic.Int64 // acknowledged
	other map[int]int  // answers by status that acknowledged nothing
}

// chatter appends from several clients, each to a session of its own, until the returned stop is
// called. A refused client tries its next message soon.
func (a *tally) chatter(d *daemon, clients, size int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for c := range clients {
		id := d.newSession()
		a.mu.Lock()
		a.acked[id] = map[int64]string{}
		a.mu.Unlock()
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				text := fmt.Sprintf("client %d message %d %s", c, n, strings.Repeat("x", size))
				var out appendAnswer
				status, _ := d.do("POST", "/v1/sessions/"+string(id)+"/messages",
					map[string]any{"messages": []any{map[string]string{"role": "user", "content": text}}}, &out)
				a.mu.Lock()
				if status == 201 {
					a.acked[id][out.Messages[0].Seq] = text
					a.n.Add(1)
				} else {
					a.other[status]++
				}
				a.mu.Unlock()
				if status != 201 {
					time.Sleep(2 * time.Millisecond)
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

func newTally() *tally {
	return &tally{acked: map[session.ID]map[int64]string{}, other: map[int]int{}}
}

// refused returns how many appends were answered with a status.
func (a *tally) refused(status int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.other[status]
}

// mustHold fails unless a database holds everything that was acknowledged.
func (a *tally) mustHold(t *testing.T, path string) {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	defer s.Close()
	lost := 0
	for id, want := range a.acked {
		found := map[int64]string{}
		if last, err := s.Session(t.Context(), id); err == nil && last.HeadID != nil {
			testkit.Check(t, s.EachOnPath(t.Context(), *last.HeadID, func(m *session.Message) error {
				found[m.Seq] = m.Text()
				return nil
			}))
		}
		for seq, text := range want {
			if found[seq] != text {
				lost++
			}
		}
	}
	t.Logf("%s: %d acknowledged, %d lost; other answers by status: %v", t.Name(), a.n.Load(), lost, a.other)
	if lost > 0 {
		t.Errorf("%d of %d acknowledged messages are lost", lost, a.n.Load())
	}
	for _, c := range testkit.Must(s.Doctor(t.Context(), false))(t) {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
}

// TestMovedFilesLoseNothingAcknowledged moves, replaces or deletes files of the database under a
// daemon that clients write to, and kills it afterwards. Everything acknowledged is in the database
// file, wherever that is by then.
func TestMovedFilesLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name string
		do   func(db string) error // under the daemon
		at   string                // where the file is afterwards; "": where it was
		undo func(db string) error // nil: it stays
	}{
		{name: "the log deleted", do: func(db string) error { return os.Remove(db + "-wal") }},
		{name: "the file moved", at: ".away", do: func(db string) error { return os.Rename(db, db+".away") }},
		{name: "the file moved and back", do: func(db string) error {
			return os.Rename(db, db+".away")
		}, undo: func(db string) error { return os.Rename(db+".away", db) }},
		{name: "the log moved", do: func(db string) error { return os.Rename(db+"-wal", db+".log") }},
		{name: "the log's index deleted", do: func(db string) error { return os.Remove(db + "-shm") }},
		{name: "log and index deleted", do: func(db string) error {
			return errors.Join(os.Remove(db+"-shm"), os.Remove(db+"-wal"))
		}},
		{name: "the folder moved", at: "/../../away/sessions.db", do: func(db string) error {
			return os.Rename(filepath.Dir(db), filepath.Join(filepath.Dir(db), "../away"))
		}},
		{name: "the file replaced", at: ".old", do: func(db string) error {
			return errors.Join(os.Rename(db, db+".old"), exec.Command("cp", db+".old", db).Run())
		}},
		{name: "file and log replaced", at: ".old", do: func(db string) error {
			return errors.Join(os.Rename(db, db+".old"), os.Rename(db+"-wal", db+".log"), os.WriteFile(db, nil, 0o600))
		}},
	}
	rounds, clients := 5, 8
	if !effort.Long() {
		ways, rounds, clients = ways[:1], 1, 4
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			for round := range rounds {
				d, a := startDaemon(t, t.TempDir()), newTally()
				stop := a.chatter(d, clients, 100)
				eventually(t, "append", func() bool { return a.n.Load() >= int64(60+37*round) })
				testkit.Check(t, way.do(d.db()))
				eventually(t, "refusal", func() bool { return a.refused(503) >= 20 })
				if status, err := d.do("GET", "/readyz", nil, nil); status != 503 || !strings.Contains(err.Error(), "unavailable") {
					t.Errorf("/readyz: %v", err)
				}
				if way.undo != nil {
					testkit.Check(t, way.undo(d.db()))
					before := a.n.Load()
					eventually(t, "append after it is back", func() bool { return a.n.Load() > before+100 })
				}
				stop()
				testkit.Check(t, d.cmd.Process.Kill())
				_ = d.cmd.Wait()
				if n := strings.Count(d.stderr.String(), "accepts no writes"); n != 1 {
					t.Errorf("%d lines in the log: %s", n, d.stderr)
				}
				copied := filepath.Join(t.TempDir(), "sessions.db") // the file alone
				from := filepath.Clean(d.db() + way.at)
				if strings.HasPrefix(way.at, "/") {
					from = filepath.Join(filepath.Dir(d.db()), "../away/sessions.db")
				}
				testkit.Check(t, exec.Command("cp", from, copied).Run())
				if way.undo != nil { // it went on with its log
					testkit.Check(t, exec.Command("cp", from+"-wal", copied+"-wal").Run())
				}
				a.mustHold(t, copied)
			}
		})
	}
}

// TestFullDiskLosesNothingAcknowledged fills a small disk under a daemon, kills it there, starts it
// on the full disk, and makes room again.
func TestFullDiskLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	rounds, clients, size := 1, 2, 8_000
	if effort.Long() {
		rounds, clients = 10, 8
	}
	dir, a := smallDisk(t, 16), newTally()
	filler := filepath.Join(dir, "filler")
	for range rounds {
		d := startDaemon(t, dir)
		before, refused := a.n.Load(), a.refused(507)
		stop := a.chatter(d, clients, size)
		eventually(t, "append", func() bool { return a.n.Load() >= before+20 })
		fill(t, filler)
		eventually(t, "refusal", func() bool { return a.refused(507) >= refused+20 })
		testkit.Check(t, d.cmd.Process.Kill())
		stop()
		_ = d.cmd.Wait()

		next := startDaemon(t, dir) // on the full disk
		for id, want := range a.acked {
			var got struct {
				MessageCount int `json:"message_count"`
			}
			testkit.Must(next.do("GET", "/v1/sessions/"+string(id), nil, &got))(t)
			if got.MessageCount < len(want) {
				t.Errorf("on the full disk %s has %d of %d messages", id, got.MessageCount, len(want))
			}
		}
		testkit.Check(t, os.Remove(filler))
		eventually(t, "readiness", func() bool { status, _ := next.do("GET", "/readyz", nil, nil); return status == 200 })
		next.newSession()
		next.stop()
	}
	delete(a.other, 0) // after the kill
	for status := range a.other {
		if status != 507 {
			t.Errorf("answers: %v", a.other)
		}
	}
	a.mustHold(t, filepath.Join(dir, "sessiond", "sessions.db"))
}

// commandIn runs sessiond in a home folder of its own and returns what it prints.
func commandIn(home string, args ...string) (string, error) {
	cmd := exec.Command("sessiond", args...)
	cmd.Dir, cmd.Env = "/", []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// longHistory writes histories of pi with some kilobytes in each of their messages.
func longHistory(t *testing.T, home string, sessions, messages int) {
	t.Helper()
	folder := filepath.Join(home, ".pi", "agent", "sessions", "garden")
	testkit.Check(t, os.MkdirAll(folder, 0o700))
	rnd := rand.New(rand.NewPCG(1, 2))
	for s := range sessions {
		var text strings.Builder
		fmt.Fprintf(&text, `{"type":"session","version":3,"id":"s%d","timestamp":"2026-02-03T09:00:00.000Z",`+
			`"cwd":"/garden"}`+"\n", s)
		for m := range messages {
			parent := "null"
			if m > 0 {
				parent = fmt.Sprintf(`"%04x%04x"`, s, m)
			}
			fmt.Fprintf(&text, `{"type":"message","id":"%04x%04x","parentId":%s,"timestamp":"2026-02-03T09:00:02.000Z",`+
				`"message":{"role":"user","content":[{"type":"text","text":"`, s, m+1, parent)
			for range 300 {
				fmt.Fprintf(&text, "%x ", rnd.Uint64())
			}
			text.WriteString(`"}],"timestamp":1770109202000}}` + "\n")
		}
		testkit.Check(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("s%d.jsonl", s)), []byte(text.String()), 0o600))
	}
}

// The first import meets a full disk: it says so, what it stored can be read, and with room the next one stores the
// rest once.
func TestFullDiskDuringTheFirstImport(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), smallDisk(t, 3)
	longHistory(t, home, 6, 120)
	db := "--db=" + filepath.Join(dir, "sessions.db")
	out, err := commandIn(home, "import", "--yes", db)
	if err == nil || !strings.Contains(out, "the disk or the database is full") || !strings.Contains(out, "make room") ||
		!strings.Contains(out, "the import stopped early; the next import continues from here") {
		t.Errorf("on a full disk the import ends with %v and prints\n%s", err, out)
	}
	if out, err := commandIn(home, "ls", db); err != nil || !strings.Contains(out, "garden") {
		t.Errorf("ls ends with %v and prints\n%s", err, out)
	}
	testkit.Check(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	if out, err := commandIn(home, "import", "--yes", db); err != nil {
		t.Errorf("with room the import ends with %v and prints\n%s", err, out)
	}
	out, err = commandIn(home, "query", db, "SELECT COUNT(*), SUM(message_count) FROM sessions")
	if err != nil || !regexp.MustCompile(`\b6 +720\b`).MatchString(out) {
		t.Errorf("%v, and the sessions and messages are\n%s", err, out)
	}
	if out, err := commandIn(home, "doctor", db); err != nil {
		t.Errorf("doctor ends with %v and prints\n%s", err, out)
	}
}

// On a home folder that cannot be written each command says what to do, and none speaks of another database.
func TestReadOnlyHome(t *testing.T) {
	t.Parallel()
	home := smallDisk(t, 4)
	longHistory(t, home, 1, 2)
	testkit.Check(t, syscall.Mount("tmpfs", home, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, c := range []struct{ command, says string }{
		{"import --yes", "mounted read-only, or name a file elsewhere with --db"},
		{"append --new user hello", "mounted read-only, or name a file elsewhere with --db"},
		{"serve --listen 127.0.0.1:0", "name a database file elsewhere with --db"},
		{"connect pi --yes", "read-only file system"},
	} {
		out, err := commandIn(home, strings.Fields(c.command)...)
		if err == nil || !strings.Contains(out, c.says) || strings.Contains(out, "PostgreSQL") {
			t.Errorf("%s ends with %v and prints\n%s", c.command, err, out)
		}
	}
	db := "--db=" + filepath.Join(t.TempDir(), "sessions.db")
	for _, command := range []string{
		"import --yes " + db, "ls " + db, "demo ls", "statusline", "hook claude-code session-start", "uninstall --yes",
	} {
		if out, err := commandIn(home, strings.Fields(command)...); err != nil {
			t.Errorf("%s ends with %v and prints\n%s", command, err, out)
		}
	}
}

// After a clean stop the file has no log, and a full disk has no room for one.
func TestStartOnAFullDiskServesReads(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 8)
	d := startDaemon(t, dir)
	id := d.newSession()
	say := map[string]any{"messages": []any{map[string]string{"role": "user", "content": "hello"}}}
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", say, nil))(t)
	d.stop()
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	d = startDaemon(t, dir)
	var found struct {
		Hits []any `json:"hits"`
	}
	for _, path := range []string{
		"/v1/sessions/" + string(id) + "/messages",
		"/v1/sessions/" + string(id) + "/context?window=8000", "/v1/search?q=hello",
	} {
		testkit.Must(d.do("GET", path, nil, &found))(t)
	}
	if len(found.Hits) != 1 {
		t.Errorf("%d hits", len(found.Hits))
	}
	for _, req := range [][2]string{{"GET", "/readyz"}, {"POST", "/v1/sessions/" + string(id) + "/messages"}} {
		if status, err := d.do(req[0], req[1], say, nil); status != 507 {
			t.Errorf("%s: %d %v", req[1], status, err)
		}
	}
	testkit.Check(t, os.Remove(filler))
	testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", say, nil))(t)
	if status, err := d.do("GET", "/readyz", nil, nil); status != 200 {
		t.Error(err)
	}
	d.stop()
	if n := strings.Count(d.stderr.String(), "accepts no writes"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, d.stderr)
	}
}

// TestStopEndsInTenSecondsWithSlowClients: one client reads an export byte by byte, one an event
// stream, one sends its body so.
func TestStopEndsInTenSecondsWithSlowClients(t *testing.T) {
	t.Parallel()
	effort.OnlyLong(t, "the stop cuts slow clients off after 7 s")
	d := startDaemonOn(t, t.TempDir(), "127.0.0.1:0")
	token := testkit.Must(os.ReadFile(filepath.Join(d.dir, "sessiond", "token")))(t)
	id := d.newSession()
	for range 4 {
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages",
			map[string]any{"messages": []any{map[string]string{"role": "user", "content": strings.Repeat("much ", 1<<20)}}},
			nil))(t)
	}
	for _, request := range []string{
		"GET /v1/sessions/" + string(id) + "/export", "GET /v1/events?after=0", "POST /v1/sessions",
	} {
		conn := testkit.Must(net.Dial("tcp", strings.TrimPrefix(d.url, "http://")))(t)
		var ends sync.WaitGroup
		defer ends.Wait()
		defer conn.Close()
		testkit.Check(t, conn.(*net.TCPConn).SetReadBuffer(1024))
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n",
			request, strings.TrimSpace(string(token)))
		body := strings.HasPrefix(request, "POST")
		if body {
			fmt.Fprint(conn, "Content-Length: 1000\r\n\r\n{")
		} else {
			fmt.Fprint(conn, "\r\n")
			if _, err := io.ReadFull(conn, make([]byte, 12)); err != nil {
				t.Fatal(err)
			}
		}
		ends.Go(func() {
			for err := error(nil); err == nil; time.Sleep(time.Second) {
				if body {
					_, err = conn.Write([]byte(" "))
				} else {
					_, err = conn.Read(make([]byte, 1))
				}
			}
		})
	}
	began := time.Now()
	testkit.Check(t, d.cmd.Process.Signal(syscall.SIGTERM))
	err := d.cmd.Wait()
	took := time.Since(began)
	t.Logf("the stop took %s", took)
	if err != nil || took > 10*time.Second {
		t.Errorf("the stop took %s and ended with %v: %s", took, err, d.stderr)
	}
}
