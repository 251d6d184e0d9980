package crush_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/history/crush"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return crush.New(historytest.NoUser, now) }

// sample makes the database of the samples in a project's folder.
func sample(t *testing.T, project string) string {
	t.Helper()
	path := filepath.Join(project, ".crush", "crush.db")
	testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	script := historytest.Read(t, historytest.Sample(t, "crush", "crush.sql"))
	return historytest.New(t, source(time.Now)).Load(path, script)
}

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 2, Make: func(t *testing.T, folder string) { sample(t, folder) }}
	claims.Hold(t)
}

const (
	first  = "5b0c3f3e-1111-4aaa-8bbb-000000000001"
	second = "5b0c3f3e-1111-4aaa-8bbb-000000000002"
	child  = "00000002-0000-4000-8000-000000000000$$toolu_02"
)

// The columns of tokens are no usage, and the cost of a sub-agent counts once.
func TestSamplesAddUp(t *testing.T) {
	h, project := historytest.New(t, source(historytest.Later)), t.TempDir()
	h.Gave(h.Import(sample(t, project)), 3, "")
	counts := map[string]historytest.Counts{}
	calls, results := 0, 0
	for _, id := range []string{first, second, child} {
		n := h.CountsOf(id)
		counts[id] = n
		calls, results = calls+n.Calls, results+n.Results
		if n.Input+n.Output > 0 {
			t.Errorf("%s: %+v", id, n)
		}
	}
	if calls != 5 || results != 4 {
		t.Errorf("%d calls, %d results: %+v", calls, results, counts)
	}
	if a, c := counts[first], counts[child]; a.NanoUSD != 80_000_000 || c.NanoUSD != 4_200_000 || a.Failed+c.Failed != 1 {
		t.Errorf("%+v %+v", a, c)
	}
	s := h.Session(child)
	var call string
	testkit.Check(t, h.Store.Reader().Get(&call, `SELECT call_id FROM links WHERE session_id = ?`, s.ID))
	if s.ParentID != h.Session(first).ID || s.Kind != "subagent" || call != "toolu_02" {
		t.Errorf("%+v by %q", s, call)
	}
	if overlay, rest := h.Seen(h.Session(first)); overlay == nil || overlay.Summary == "" || len(rest) == 0 {
		t.Errorf("%+v %s", overlay, historytest.Texts(rest))
	}
	if s := h.Session(first); s.Directory != project {
		t.Errorf("%q instead of %q", s.Directory, project)
	}
	h.Examine()
}

// The list of projects says where the databases are, and which project one is of.
func TestProjectsAreListed(t *testing.T) {
	data := t.TempDir()
	list := `{"projects":[{"path":"/w/a","data_dir":"/w/a/.crush"},{"path":"/w/b","data_dir":"/w/a/.crush"},{"path":"x","data_dir":"y"}]}`
	testkit.Check(t, os.WriteFile(filepath.Join(data, "projects.json"), []byte(list), 0o600))
	env := func(name string) string { return map[string]string{"CRUSH_GLOBAL_DATA": data}[name] }
	places := crush.New(folders.User{System: "linux", Getenv: env}, time.Now).Places()
	if strings.Join(places, " ") != "/w/a/.crush" {
		t.Errorf("%q", places)
	}
	testkit.Check(t, os.WriteFile(filepath.Join(data, "projects.json"), []byte(`{"projects":7`), 0o600))
	if places := crush.New(folders.User{System: "linux", Getenv: env}, time.Now).Places(); len(places) > 0 {
		t.Errorf("%q", places)
	}
}

const tables = `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, cost REAL,
	created_at INTEGER, updated_at INTEGER);
	CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER, updated_at INTEGER);`

func say(id, role, parts string) string {
	return fmt.Sprintf(`INSERT INTO messages VALUES ('%s', 's', '%s', '%s', 1787314111, 1787314111);`, id, role, parts)
}

func text(said string) string { return `[{"type":"text","data":{"text":"` + said + `"}}]` }

const talk = tables + `INSERT INTO sessions VALUES ('s', NULL, 'New Session', 0.5, 1787314111, 1787314111);`

func TestWrongSessions(t *testing.T) {
	for what, test := range map[string]struct {
		script, says string
		sessions     int
	}{
		"another database": {`CREATE TABLE dreams (x);`, "no sessions of Crush", 0},
		"no parts":         {`CREATE TABLE sessions (id TEXT); CREATE TABLE messages (session_id TEXT);`, "no sessions of Crush", 0},
		"no message":       {talk, "", 0},
		"no JSON":          {talk + say("1", "user", text("one")) + say("2", "assistant", "hello"), "kept raw", 1},
		"too deep": {
			talk + say("1", "user", text("one")) + say("2", "user", strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001)),
			"kept raw", 1,
		},
		"odd values": {
			talk + say("1", "user", text("one")) + say("2", "assistant", `[7,{"type":"dream","data":{}},{"type":"text"},{"type":"binary","data":{"Data":null}},{"type":"tool_call","data":{"input":{"a":1}}}]`),
			"", 1,
		},
		"a parent that is gone": {strings.Replace(talk, "NULL", "'gone'", 1) + say("1", "user", text("one")), "", 0},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Load(filepath.Join(t.TempDir(), "crush.db"), test.script)), test.sessions, test.says)
		})
	}
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(h.Write("crush.txt", "hello")), 0, "in a database")
}

// A row that is rewritten while its reply is streamed is one message.
func TestReplyThatIsStreamed(t *testing.T) {
	now := time.Unix(1787314112, 0)
	h := historytest.New(t, source(func() time.Time { return now }))
	path := filepath.Join(t.TempDir(), "crush.db")
	asked := talk + say("1", "user", text("one"))
	h.Import(h.Load(path, asked+say("2", "assistant", text("fir"))))
	if got := h.Talk(h.Session("s")); got != "user: one" {
		t.Errorf("%q", got)
	}
	h.Import(h.Load(path, asked+say("2", "assistant", `[{"type":"text","data":{"text":"first"}},{"type":"finish","data":{"reason":"end_turn","time":1}}]`)+
		`UPDATE messages SET updated_at = 1787314115 WHERE id = '2';`))
	if got := h.Talk(h.Session("s")); got != "user: one\nassistant: first" {
		t.Errorf("%q", got)
	}
	h.Examine()
}

func FuzzParts(f *testing.F) {
	f.Add([]byte(text("one")))
	f.Add([]byte(`[{"type":"tool_call","data":{"id":"c","name":"x","input":"{}"}},{"type":"finish","data":{"reason":"error","message":"x"}}]`))
	historytest.FuzzCell(f, "crush.db", talk+say("1", "user", text("one"))+say("2", "assistant", "[]"),
		`UPDATE messages SET parts = ? WHERE id = '2'`, source(historytest.Later))
}
