package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sessiond/internal/export"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/web/api"
)

func TestSearchFindsWithNeighbours(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "before it")
	k.say(id, "user", "the price is <b>$129</b>")
	k.say(id, "assistant", "after it")
	other := k.session(nil)
	k.say(other, "user", "another price")
	r := k.want(200, k.do("GET", "/v1/search?q=price&expand=1&session="+id, nil))
	if hits := r.at("hits").([]any); len(hits) != 1 || r.text("hits.0.message_id") != id+".2" ||
		r.text("hits.0.before.0.content") != "before it" ||
		r.text("hits.0.after.0.content") != "after it" || r.at("pending") == nil ||
		!strings.Contains(r.text("hits.0.snippet"), "$129") {
		t.Errorf("%s", r.raw)
	}
	for query, want := range map[string]int{
		"q=price": 2, "q=price&role=assistant": 0, "q=price&order=newest&limit=1": 1, "q=price&source=pi": 0,
		"q=price&since=2026-02-11": 2, "q=price&until=2026-02-11T00:00:00Z": 0, "q=price&since=2026": 2,
		"q=price&until=last+week": 0,
	} {
		if r := k.want(200, k.do("GET", "/v1/search?"+query, nil)); len(r.at("hits").([]any)) != want {
			t.Errorf("%s: %s", query, r.raw)
		}
	}
	for query, status := range map[string]int{
		"": 422, "q=": 422, "q=%22%22": 422, "q=x&limit=0": 422, "q=x&limit=999": 422, "q=x&expand=99": 422,
		"q=x&order=best": 422, "q=x&role=boss": 422,
		"q=x&since=soon": 422, "q=%ff": 422, "q=x&session=20200101_001": 404, "q=x&sesion=1": 422, "q=x&source=word": 422,
	} {
		k.want(status, k.do("GET", "/v1/search?"+query, nil))
	}
	k.want(200, k.do("GET", "/v1/search?q=a%00b", nil))
	r = k.want(200, k.do("GET", "/v1/search?q=price+in+2025", nil))
	if r.text("time.text") != "2025" || r.text("time.filter") != "after:2025 before:2026-01-01" ||
		r.text("time.since") != "2025-01-01T00:00:00.000Z" {
		t.Errorf("the time of the question: %s", r.raw)
	}
}

func TestQueriesAndSQL(t *testing.T) {
	k := newKit(t, nil)
	k.session(`{"title":"t1"}`)
	all := k.want(200, k.do("GET", "/v1/queries", nil))
	if all.text("data.0.name") == "" || all.text("data.0.sql") == "" || all.at("next_cursor") != nil {
		t.Errorf("%.300s", all.raw)
	}
	for _, q := range all.at("data").([]any) {
		name, _ := q.(map[string]any)["name"].(string)
		r := k.want(200, k.do("GET", "/v1/queries/"+name, nil))
		if r.at("columns") == nil || r.at("rows") == nil {
			t.Errorf("%s: %.300s", name, r.raw)
		}
	}
	k.want(404, k.do("GET", "/v1/queries/nothing", nil))
	k.want(422, k.do("GET", "/v1/queries/day?nothing=1", nil))
	r := k.want(200, k.do("POST", "/v1/sql", `{"sql":"SELECT title, 9007199254740993 AS n FROM sessions"}`))
	if r.text("rows.0.0") != "t1" || !strings.Contains(r.raw, "9007199254740993") || r.at("truncated") != false {
		t.Errorf("%s", r.raw)
	}
	if r := k.want(200, k.do("POST", "/v1/sql", `{"sql":"SELECT 1 UNION SELECT 2","rows":1}`)); r.at("truncated") != true {
		t.Errorf("%s", r.raw)
	}
	for _, bad := range []string{
		`{}`, `{"sql":""}`, `{"sql":"DELETE FROM sessions"}`, `{"sql":"SELECT 1; SELECT 2"}`, `{"sql":"nonsense"}`,
		`{"sql":"SELECT 1","rows":-1}`, `{"sql":5}`,
		`{"sql":"ATTACH 'x' AS y"}`, `{"sql":"PRAGMA journal_mode=DELETE"}`,
	} {
		if r := k.want(422, k.do("POST", "/v1/sql", bad)); r.text("code") != "invalid" {
			t.Errorf("%s: %s", bad, r.raw)
		}
	}
	if n := k.count(`SELECT COUNT(*) FROM sessions`); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestBackup(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "backups")
	k := newKit(t, func(d *api.Deps) { d.BackupDir = folder })
	k.session(nil)
	r := k.want(201, k.do("POST", "/v1/backups", nil))
	if info, err := os.Stat(r.text("path")); err != nil || float64(info.Size()) != r.at("bytes") ||
		filepath.Dir(r.text("path")) != folder {
		t.Errorf("%s %v", r.raw, err)
	}
	if name := filepath.Base(r.text("path")); !strings.HasPrefix(name, "asked-") {
		t.Errorf("%s has the name of those that the daemon makes and removes", name)
	}
	key := header{"Idempotency-Key": "nightly"}
	first, again := k.want(201, k.do("POST", "/v1/backups", nil, key)), k.want(201, k.do("POST", "/v1/backups", nil, key))
	if made, _ := os.ReadDir(folder); len(made) != 2 || first.text("path") != again.text("path") {
		t.Errorf("%d backups after a repeated request, want 2", len(made))
	}
	k.want(201, k.do("POST", "/v1/backups", `{"path":"mine.db"}`))
	k.want(409, k.do("POST", "/v1/backups", `{"path":"mine.db"}`))
	for _, path := range []string{
		"/tmp/mine.db", "../mine.db", "a/b.db", "..", ".", ".hidden.db", `a\u0000b`, `a\u001bb`,
		strings.Repeat("x", 250),
	} {
		k.want(422, k.do("POST", "/v1/backups", `{"path":"`+path+`"}`))
	}
	if made, _ := os.ReadDir(folder); len(made) != 3 {
		t.Errorf("%d files in the folder, want 3", len(made))
	}
}

func TestServiceRoutes(t *testing.T) {
	k := newKit(t, nil)
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := k.want(200, k.do("GET", path, nil)); r.text("status") != "ok" {
			t.Errorf("%s: %s", path, r.raw)
		}
	}
	if r := k.want(200, k.do("GET", "/version", nil)); r.text("version") != "test" {
		t.Errorf("%s", r.raw)
	}
	k.do("GET", "/v1/sessions/20200101_001", nil)
	if r := k.want(200, k.do("GET", "/metrics", nil)); !strings.Contains(r.raw, `sessiond_http_requests_total{route="GET /v1/sessions/{id}",status="404"} 1`) {
		t.Errorf("%s", r.raw)
	}
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	k := newKit(t, nil)
	for _, path := range []string{"/", "/v1", "/v2/sessions", "/v1/sessions/a/b/c", "/v1/forks"} {
		if r := k.want(404, k.do("GET", path, nil)); r.text("code") != "not_found" {
			t.Errorf("%s: %s", path, r.raw)
		}
	}
	r := k.want(405, k.do("PUT", "/v1/sessions", `{}`))
	if r.Header.Get("Allow") != "GET, POST" || r.text("code") == "" {
		t.Errorf("%s %v", r.raw, r.Header)
	}
	k.want(405, k.do("DELETE", "/healthz", nil))
}

func TestMetricsTellOfCompactionsAndCalls(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(map[string]any{"model": "gpt-4o"})
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/compactions", `{}`)) // nothing to gain: skipped
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/calls", `{"provider":"openai","model":"gpt-4o","purpose":"title","input_tokens":5,"output_tokens":1,"cost_usd":0.25}`))
	r := k.want(200, k.do("GET", "/metrics", nil))
	for _, want := range []string{
		`sessiond_compactions_total{status="skipped",strategy="summarize",trigger="manual"} 1`,
		`sessiond_model_calls_total{purpose="title",status="ok"} 1`,
		`sessiond_model_cost_usd_total{purpose="title",status="ok"} 0.25`,
		`sessiond_event_listeners 0`,
	} {
		if !strings.Contains(r.raw, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestReadyzFailsWhileTheDatabaseIsMoved(t *testing.T) {
	storetest.OnFile(t)
	k := newKit(t, nil)
	id := k.session(nil)
	db := k.store.File()
	testkit.Check(t, os.Rename(db, db+".away"))
	ready := k.want(503, k.do("GET", "/readyz", nil))
	refused := k.want(503, k.do("POST", "/v1/sessions/"+id+"/messages", `{"messages":[{"role":"user","content":"x"}]}`))
	k.store.Reader().SetMaxIdleConns(0) // as after a minute: a new connection finds no file
	unread := k.want(503, k.do("GET", "/v1/usage", nil))
	for _, r := range []reply{ready, refused, unread} {
		if r.text("code") != "unavailable" || !strings.Contains(r.text("detail"), "moved or deleted") {
			t.Errorf("%s", r.raw)
		}
	}
	testkit.Check(t, os.Rename(db+".away", db))
	k.want(200, k.do("GET", "/readyz", nil))
	k.say(id, "user", "back")
}

func TestMetricsTellWhereTheDaemonStores(t *testing.T) {
	storetest.OnFile(t)
	k := newKit(t, func(d *api.Deps) { d.BackupDir = t.TempDir() })
	id := k.session(nil)
	k.say(id, "user", "not indexed")
	value := func(name string) (v float64) {
		t.Helper()
		_, rest, found := strings.Cut(k.want(200, k.do("GET", "/metrics", nil)).raw, "\nsessiond_"+name+" ")
		if _, err := fmt.Sscan(rest, &v); !found || err != nil {
			return -1
		}
		return v
	}
	if database, log, lag, backup := value("database_bytes"), value("wal_bytes"), value("index_lag_messages"),
		value("backup_age_seconds"); database < 4096 || log < 4096 || lag != 1 || backup != -1 {
		t.Errorf("database %g, log %g, lag %g, backup %g", database, log, lag, backup)
	}
	if free := value("disk_free_bytes"); free < 0 && runtime.GOOS == "linux" {
		t.Errorf("free %g", free)
	}
	if accepts, failed := value("accepts_writes"), value("failed_writes_total"); accepts != 1 || failed != 0 {
		t.Errorf("accepts %g, failed %g", accepts, failed)
	}
	k.want(201, k.do("POST", "/v1/backups", nil))
	if value("backup_age_seconds") < 0 {
		t.Error("the backup has no age")
	}
	testkit.Check(t, os.Rename(k.store.File(), k.store.File()+".away"))
	k.want(503, k.do("POST", "/v1/sessions", nil))
	if accepts, failed := value("accepts_writes"), value("failed_writes_total"); accepts != 0 || failed != 1 {
		t.Errorf("moved: accepts %g, failed %g", accepts, failed)
	}
	testkit.Check(t, os.Rename(k.store.File()+".away", k.store.File()))
}

// stuck is a client that reads nothing.
type stuck struct {
	*httptest.ResponseRecorder
	writes chan struct{} // receives once the answer begins
	leave  chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	select {
	case s.writes <- struct{}{}:
	default:
	}
	<-s.leave
	return 0, io.ErrClosedPipe
}

// While a client does not read its answer, no reading of the database is open: the write-ahead log
// can be emptied.
func TestStuckClientsHoldNoLog(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	for range 3 {
		k.say(id, "user", strings.Repeat("much ", 100_000))
	}
	paths := []string{
		"/v1/events?after=0", "/v1/sessions", "/v1/sessions/" + id + "/messages",
		"/v1/sessions/" + id + "/context?window=8000",
		"/v1/search?q=much", "/v1/queries/usage-by-day", "/metrics",
	}
	for _, format := range export.Names() {
		paths = append(paths, "/v1/sessions/"+id+"/export?format="+format)
	}
	for _, path := range paths {
		client := stuck{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }() // an export that is cut off
			k.handler.ServeHTTP(client, httptest.NewRequest(http.MethodGet, path, nil))
		}()
		<-client.writes
		k.say(id, "user", "meanwhile")
		if done, err := k.store.TruncateWAL(t.Context()); !done || err != nil {
			t.Errorf("%s holds the log: %v", path, err)
		}
		close(client.leave)
		<-ended
	}
}
