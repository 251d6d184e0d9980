package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// follower reads a daemon's events and remembers where it stands.
type follower struct {
	id   string
	seqs []int64
}

// follow reads events until stop says so, or the daemon is gone.
func (f *follower) follow(t *testing.T, d *daemon, stop func() bool) {
	t.Helper()
	req := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://sessiond/v1/events?after=0",
		nil))(t)
	if f.id != "" {
		req.Header.Set("Last-Event-ID", f.id)
	}
	res, err := d.client.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	kind, id := "", ""
	for lines := bufio.NewScanner(res.Body); !stop() && lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			f.id = id
			if kind != "messages.appended" {
				continue
			}
			_, rest, _ := strings.Cut(value, `"seq":`)
			var seq int64
			for _, c := range rest {
				if c < '0' || c > '9' {
					break
				}
				seq = seq*10 + int64(c-'0')
			}
			f.seqs = append(f.seqs, seq)
		}
	}
}

// Over a kill -9, and for what another process wrote meanwhile, a listener that comes back
// with its last id misses nothing and hears nothing twice.
func TestAListenerMissesNothingOverAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startDaemon(t, dir)
	id := d.newSession()
	var f follower
	says := func(d *daemon) error {
		_, err := d.do("POST", "/v1/sessions/"+string(id)+"/messages",
			map[string]any{"messages": []map[string]string{{"role": "user", "content": "x"}}}, nil)
		return err
	}
	for range 20 {
		testkit.Check(t, says(d))
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f.follow(t, d, func() bool { return false })
	}()
	for range 30 {
		testkit.Check(t, says(d))
	}
	testkit.Check(t, d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	<-gone
	other := exec.Command("sessiond", "append", "--db", d.db(), string(id), "user", "by another process")
	other.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir)
	if out, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d = startDaemon(t, dir)
	testkit.Check(t, says(d))
	f.follow(t, d, func() bool { return len(f.seqs) > 0 && f.seqs[len(f.seqs)-1] == 52 })
	for i, seq := range f.seqs {
		if seq != int64(i+1) {
			t.Fatalf("event %d tells of message %d: %v", i, seq, f.seqs)
		}
	}
}

// A daemon that is killed while it purges ends the deletion when it is started again.
func TestAKilledPurgeIsFinishedByTheNextDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startDaemon(t, dir)
	id := d.newSession()
	batch := make([]map[string]string, 200)
	for i := range batch {
		batch[i] = map[string]string{"role": "user", "content": strings.Repeat("the wombatword stays secret ", 40)}
	}
	for range 10 {
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", map[string]any{"messages": batch}, nil))(t)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d.do("DELETE", "/v1/sessions/"+string(id)+"?purge=true", nil, nil)
	}()
	for hidden := false; !hidden; { // it has begun
		select {
		case <-done:
			t.Skip("the purge was done before the daemon could be killed")
		default:
		}
		code, _ := d.do("GET", "/v1/sessions/"+string(id), nil, nil)
		hidden = code == http.StatusNotFound
	}
	testkit.Check(t, d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	<-done
	d = startDaemon(t, dir)
	if code, _ := d.do("GET", "/v1/sessions/"+string(id), nil, nil); code != http.StatusNotFound {
		t.Errorf("after the restart: %d", code)
	}
	if storetest.OnPostgres() { // it has no file to scrub
		s := testkit.Must(store.Open(t.Context(), d.db(), store.Options{ReadOnly: true}))(t)
		defer s.Close()
		eventually(t, "the end of the purge", func() bool { return len(testkit.Must(s.Purging(t.Context()))(t)) == 0 })
		var left int
		if err := s.Reader().Get(&left, `SELECT COUNT(*) FROM parts WHERE text LIKE '%wombatword%'`); err != nil ||
			left != 0 {
			t.Errorf("%d parts are left, %v", left, err)
		}
		return
	}
	second := d.newSession()
	var purged session.Purged
	if _, err := d.do("DELETE", "/v1/sessions/"+string(second)+"?purge=true&scrub=true", nil, &purged); err != nil ||
		!purged.Scrubbed {
		t.Fatalf("%+v, %v", purged, err)
	}
	for _, name := range []string{"sessions.db", "sessions.db-wal", "search.db", "search.db-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, "sessiond", name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, word := range []string{"wombatword", "mbatword"} {
			if strings.Contains(string(b), word) {
				t.Errorf("%s holds %q", name, word)
			}
		}
	}
}
