package api_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/web/api"
)

// listening is a client of the stream.
type listening struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Reader
	id   string // of the last event
}

// feedKit is a kit behind a real server, whose store's writes nudge the feed.
func feedKit(t *testing.T, change func(*api.Feed, *api.Deps)) (*kit, *httptest.Server) {
	t.Helper()
	var feed *api.Feed
	k := newKit(t, func(d *api.Deps) {
		feed = api.NewFeed()
		d.Events = feed
		d.Changed = func(session.ID) { feed.Nudge() }
		if change != nil {
			change(feed, d)
		}
	})
	server := httptest.NewServer(k.handler)
	t.Cleanup(server.Close)
	return k, server
}

func listen(t *testing.T, server *httptest.Server, query, lastID string) *listening {
	t.Helper()
	req := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/events"+query, nil))(t)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res := testkit.Must(http.DefaultClient.Do(req))(t)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", res.Status, res.Header.Get("Content-Type"))
	}
	l := &listening{t: t, body: res.Body, in: bufio.NewReader(res.Body)}
	t.Cleanup(func() { _ = l.body.Close() })
	l.block() // where it begins
	return l
}

// block reads to the next blank line. kind is "" for what is no event.
func (l *listening) block() (kind string, data map[string]any, ended bool) {
	l.t.Helper()
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			return "", nil, true
		}
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "":
			if line == "" {
				return kind, data, false
			}
			kind = "comment" // ": heartbeat"
		case "id":
			l.id = value
		case "event":
			kind = value
		case "data":
			if err := json.Unmarshal([]byte(value), &data); err != nil {
				l.t.Errorf("%q: %v", value, err)
			}
		}
	}
}

func (l *listening) want(kind string) map[string]any {
	l.t.Helper()
	got, data, ended := l.block()
	if got != kind || ended {
		l.t.Fatalf("got %q (ended %t), want %q", got, ended, kind)
	}
	return data
}

func TestEventsAreToldInOrderAndGoOnWhereTheyWereLeft(t *testing.T) {
	k, server := feedKit(t, nil)
	l := listen(t, server, "", "")
	id := k.session(nil)
	k.say(id, "user", "nobody is told this text")
	created := l.want("session.created")
	if created["session_id"] != id || created["id"] != l.id {
		t.Errorf("%v, id line %q", created, l.id)
	}
	said := l.want("messages.appended")
	if said["seq"] != 1.0 || strings.Contains(fmt.Sprint(said), "text") {
		t.Errorf("%v", said)
	}
	seen := l.id
	_ = l.body.Close()

	k.say(id, "user", "while nobody listened")
	k.say(id, "user", "and again")
	l = listen(t, server, "", seen)
	for _, seq := range []float64{2, 3} {
		if e := l.want("messages.appended"); e["seq"] != seq {
			t.Errorf("after %s came %v, want seq %v", seen, e, seq)
		}
	}
	if all := listen(t, server, "?after=0", ""); all.want("session.created")["session_id"] != id {
		t.Error("after=0 is not the beginning")
	}
}

func TestAListenerOfOneSessionHearsNoOther(t *testing.T) {
	k, server := feedKit(t, nil)
	one, other := k.session(nil), k.session(nil)
	l := listen(t, server, "?session="+one, "")
	k.say(other, "user", "x")
	k.say(one, "user", "y")
	if e := l.want("messages.appended"); e["session_id"] != one {
		t.Errorf("%v", e)
	}
}

func TestManyListenersAllHearEverything(t *testing.T) {
	k, server := feedKit(t, nil)
	id := k.session(nil)
	const listeners, messages = 8, 30
	all := make([]*listening, listeners)
	for i := range all {
		all[i] = listen(t, server, "", "")
	}
	var wg sync.WaitGroup
	for range messages {
		wg.Go(func() { k.say(id, "user", "hello") })
	}
	for _, l := range all {
		wg.Go(func() {
			var seqs []float64
			for len(seqs) < messages {
				kind, data, ended := l.block()
				if ended {
					t.Error("the stream ended")
					return
				}
				if kind == "messages.appended" {
					seqs = append(seqs, data["seq"].(float64))
				}
			}
			if !slices.IsSorted(seqs) || seqs[0] != 1 || seqs[messages-1] != messages {
				t.Errorf("%v", seqs)
			}
		})
	}
	wg.Wait()
}

func TestAQuietStreamHasAHeartbeatThatMovesItsPlace(t *testing.T) {
	k, server := feedKit(t, func(f *api.Feed, _ *api.Deps) { f.Pulse = time.Millisecond })
	one, other := k.session(nil), k.session(nil)
	l := listen(t, server, "?session="+one, "")
	before := l.id
	k.say(other, "user", "x")
	for l.id == before { // heartbeats come until one says the new place
		l.want("comment")
	}
}

func TestAGapIsTold(t *testing.T) {
	k, server := feedKit(t, nil)
	id := k.session(nil)
	l := listen(t, server, "", "")
	k.say(id, "user", "x")
	l.want("messages.appended")
	first := l.id
	k.say(id, "user", "y")
	l.want("messages.appended")
	last := l.id
	testkit.Must(k.store.RemoveEvents(t.Context(), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))(t)
	k.say(id, "user", "z")
	for name, c := range map[string]struct{ after, says string }{
		"removed for its age":   {first, "deleted by age"},
		"of another database":   {"0123456789abcdef-7", "another database"},
		"of a later time's end": {strings.TrimRight(last, "0123456789") + "999999", "older than the event"},
	} {
		l := listen(t, server, "", c.after)
		got := l.want("gap")
		if got["requested"] != c.after || !strings.Contains(fmt.Sprint(got["detail"]), c.says) || got["resume"] == "" {
			t.Errorf("%s: %v", name, got)
		}
		if name != "of a later time's end" {
			if e := l.want("messages.appended"); e["seq"] != 3.0 {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	if l := listen(t, server, "", last); l.want("messages.appended")["seq"] != 3.0 {
		t.Error("nothing was missed, and yet")
	}
}

// A running daemon's database loses its last writes: an operator restores a backup, or a server takes over that lacks
// them. New events then have the ids of lost ones. Each listener gets a gap, and no listener gets a lost event.
func TestListenersAreToldThatTheDatabaseWentBack(t *testing.T) {
	for name, more := range map[string]int{"with fewer events than before": 2, "with more events than before": 12} {
		t.Run(name, func(t *testing.T) {
			k, server := feedKit(t, nil)
			id := k.session(nil)
			l := listen(t, server, "", "")
			k.say(id, "user", "kept")
			l.want("messages.appended")
			kept := l.id
			for range 6 {
				k.say(id, "user", "lost")
				l.want("messages.appended")
			}
			lost := l.id
			k.forgetEvents(6)
			for range more { // by another daemon: nothing wakes the listener yet
				testkit.Must(k.store.SetTrash(t.Context(), session.ID(id), true, nil, nil))(t)
				testkit.Must(k.store.SetTrash(t.Context(), session.ID(id), false, nil, nil))(t)
			}
			k.say(id, "user", "new")
			gap := l.want("gap")
			if gap["requested"] != lost || !strings.Contains(fmt.Sprint(gap["detail"]), "older than the event") ||
				gap["resume"] != l.id {
				t.Errorf("%v", gap)
			}
			k.say(id, "user", "newer")
			if said := l.want("messages.appended"); said["seq"] != 9.0 {
				t.Errorf("after the gap came %v", said)
			}
			again := listen(t, server, "", kept)
			for i := range 2 * more {
				if e := again.want("session.changed"); e["id"] != again.id {
					t.Errorf("event %d is %v", i, e)
				}
			}
			again.want("messages.appended")
		})
	}
}

// A purge deletes the newest session's events before it writes its own: listeners must not take that for a restore.
func TestListenersAreNotToldOfAPurgeAsAGap(t *testing.T) {
	var feed *api.Feed
	k, server := feedKit(t, func(f *api.Feed, _ *api.Deps) { feed = f })
	id := k.session(nil)
	l := listen(t, server, "", "")
	k.say(id, "user", "hi")
	l.want("messages.appended")
	_, _, err := k.store.BeginPurge(t.Context(), store.PurgeRequest{Session: session.ID(id)})
	testkit.Check(t, err)
	k.exec(`DELETE FROM events WHERE session_id = '` + id + `'`) // as its end does, first
	feed.Nudge()
	again := listen(t, server, "", l.id)
	k.want(201, k.do("POST", "/v1/sessions", nil))
	for _, l := range []*listening{l, again} {
		for kind := ""; kind != "session.created"; {
			var ended bool
			if kind, _, ended = l.block(); kind == "gap" || ended {
				t.Fatalf("got %q (ended %t)", kind, ended)
			}
		}
	}
}

// forgetEvents removes the newest events, and has their ids used again.
func (k *kit) forgetEvents(n int) {
	k.t.Helper()
	again := `UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM events) WHERE name = 'events'`
	if storetest.OnPostgres() {
		again = `SELECT setval(pg_get_serial_sequence('events', 'id'), MAX(id)) FROM events`
	}
	k.exec(fmt.Sprintf(`DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id DESC LIMIT %d)`, n), again)
}

// exec runs statements past the store.
func (k *kit) exec(statements ...string) {
	k.t.Helper()
	driver := "sqlite"
	if storetest.OnPostgres() {
		driver = "pgx"
	}
	db := testkit.Must(sql.Open(driver, k.store.File()))(k.t)
	defer db.Close()
	for _, statement := range statements {
		testkit.Must(db.ExecContext(k.t.Context(), statement))(k.t)
	}
}

// clogged is a connection whose other end reads nothing until it is let.
type clogged struct {
	header http.Header
	mu     sync.Mutex
	buf    bytes.Buffer
	beats  chan struct{} // closed at the first heartbeat
	first  chan struct{} // closed once an event is being written
	let    chan struct{}
	beat   sync.Once
	once   sync.Once
}

func (c *clogged) Header() http.Header { return c.header }
func (c *clogged) WriteHeader(int)     {}
func (c *clogged) Flush()              {}

func (c *clogged) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.buf.Write(p)
	text := c.buf.String()
	c.mu.Unlock()
	if strings.Contains(text, ": heartbeat") {
		c.beat.Do(func() { close(c.beats) })
	}
	if strings.Contains(text, "messages.appended") {
		c.once.Do(func() { close(c.first) })
		<-c.let
	}
	return len(p), nil
}

func TestASlowListenerIsSentAwayWithAClearLastEvent(t *testing.T) {
	k, _ := feedKit(t, func(f *api.Feed, _ *api.Deps) { f.MaxLag, f.Pulse = 10, 5*time.Millisecond })
	id := k.session(nil)
	c := &clogged{header: http.Header{}, beats: make(chan struct{}), first: make(chan struct{}), let: make(chan struct{})}
	ended := make(chan struct{})
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", nil)
	go func() {
		defer close(ended)
		k.handler.ServeHTTP(c, req)
	}()
	<-c.beats // only a stream that has been up to date may be dropped; it beats when it is
	k.say(id, "user", "x")
	<-c.first
	for range 30 {
		k.say(id, "user", "x")
	}
	close(c.let)
	<-ended
	blocks := strings.Split(strings.TrimSpace(c.buf.String()), "\n\n")
	last := blocks[len(blocks)-1]
	if !strings.Contains(last, "event: dropped") || !strings.Contains(last, `"resume"`) {
		t.Errorf("the last event is %q", last)
	}
}

func TestStreamsEndWhenTheDaemonStops(t *testing.T) {
	stop := make(chan struct{})
	_, server := feedKit(t, func(_ *api.Feed, d *api.Deps) { d.Stopping = stop })
	l := listen(t, server, "", "")
	close(stop)
	if _, _, ended := l.block(); !ended {
		t.Error("it goes on")
	}
}

func TestEventsRefuse(t *testing.T) {
	k, _ := feedKit(t, nil)
	for _, c := range []struct {
		path, header string
		status       int
		says         string
	}{
		{"/v1/events?after=yesterday", "", 422, "not the id of an event"},
		{"/v1/events", "abc", 422, "not the id of an event"},
		{"/v1/events?session=20200101_001", "", 404, "there is no session"},
		{"/v1/events?session=x", "", 404, "no session has this id"},
		{"/v1/events?since=1", "", 422, "unknown"},
	} {
		h := header{}
		if c.header != "" {
			h["Last-Event-ID"] = c.header
		}
		if r := k.want(c.status, k.do("GET", c.path, nil, h)); !strings.Contains(r.text("detail"), c.says) {
			t.Errorf("%s: %s", c.path, r.raw)
		}
	}
}
