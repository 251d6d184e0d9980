package goose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/goose"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of Goose's databases and files.
type house struct{ *historytest.House }

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, goose.New(historytest.NoEnv))}
}

// load makes a database of SQL, at path or in a new place.
func (h *house) load(path string, scripts ...string) string {
	h.Helper()
	if path == "" {
		path = filepath.Join(h.TempDir(), "sessions.db")
	}
	return h.Load(path, scripts...)
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "goose", parts...)
}

const (
	metadata = `{"working_dir":"/home/dev/parser","description":"Lexer bug","message_count":3,"schedule_id":null,"total_tokens":12,"accumulated_input_tokens":9}`
	asks     = `{"id":null,"role":"user","created":1758810612,"content":[{"type":"text","text":"why does it fail?"}]}`
	calls    = `{"role":"assistant","created":1758810613,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}}],"metadata":{"userVisible":true,"agentVisible":false}}`
	answers  = `{"role":"user","created":1758810614,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"a"}]}}]}`
)

// The files of before the database: a message in each line.
func FuzzLines(f *testing.F) {
	f.Add([]byte(metadata + "\n" + asks + "\n" + calls + "\n" + answers + "\n"))
	f.Add([]byte(asks + "\n\n{broken\n" + asks + "\n" + calls))
	f.Add([]byte(metadata + "\n" + `{"role":"assistant","created":"x","content":[{"type":"text","text":"\ud800"}],"metadata":{"inactive":1}}` + "\n\xff\n" + asks + "\n"))
	historytest.FuzzFile(f, "20250925_1.jsonl", goose.New(historytest.NoEnv))
}

// An export: one object with a list.
func FuzzExport(f *testing.F) {
	begin := `{"id":"20260211_1","working_dir":"/home/dev","name":"n","session_type":"user","created_at":"2026-02-11T09:00:00Z","accumulated_input_tokens":5,"provider_name":"p","model_config":{"model_name":"m"},"conversation":[`
	f.Add([]byte(begin + asks + "," + calls + "," + answers + "]}"))
	f.Add([]byte(begin + `{"role":"user","created":1,"content":[{"type":"contextLengthExceeded","msg":"x"}]},7,null]}`))
	f.Add([]byte(`{"conversation":[` + asks + `],"name":1,"recipe":{}}`))
	f.Add([]byte(begin + asks + ","))
	historytest.FuzzFile(f, "export.json", goose.New(historytest.NoEnv))
}

func TestGoosePlaces(t *testing.T) {
	env := func(vars ...string) func(string) string {
		return func(name string) string {
			for _, v := range vars {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		}
	}
	for _, test := range []struct {
		name  string
		env   func(string) string
		first string
		n     int
	}{
		{"nothing is known", historytest.NoEnv, "", 0},
		{"a home", env("HOME=/home/ana"), "/home/ana/.local/share/goose/sessions", 7},
		{"data elsewhere", env("HOME=/home/ana", "XDG_DATA_HOME=/data"), "/data/goose/sessions", 7},
		{"data at a relative path", env("HOME=/home/ana", "XDG_DATA_HOME=data"), "/home/ana/.local/share/goose/sessions", 7},
		{"a root", env("HOME=/home/ana", "GOOSE_PATH_ROOT=/g"), "/g/data/sessions", 1},
		{"a relative root", env("HOME=/home/ana", "GOOSE_PATH_ROOT=g"), "/home/ana/.local/share/goose/sessions", 7},
	} {
		got := goose.New(test.env).Places()
		if len(got) != test.n || test.n > 0 && got[0] != test.first {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestGooseFinds(t *testing.T) {
	root := t.TempDir()
	sessions := filepath.Join(root, "data", "sessions")
	for _, name := range []string{
		"data/sessions/sessions.db", "data/sessions/20250102_1.jsonl",
		"data/sessions/20250101_1.jsonl", "data/sessions/notes.txt", "config/secrets.jsonl", "state/logs/x.jsonl",
	} {
		path := filepath.Join(root, name)
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.WriteFile(path, []byte("x"), 0o000); err != nil { // finding opens nothing
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	testkit.Check(t, os.Symlink(sessions, link))
	want := []string{"sessions.db", "20250101_1.jsonl", "20250102_1.jsonl"}
	for _, roots := range [][]string{{root}, {sessions}, {link}, {sessions, root, link}, nil} {
		source := goose.New(func(name string) string { return map[string]string{"GOOSE_PATH_ROOT": root}[name] })
		found, problems, err := source.Find(t.Context(), roots)
		var names []string
		for _, f := range found {
			names = append(names, filepath.Base(f.Path))
		}
		if err != nil || len(problems) != 0 || !slices.Equal(names, want) {
			t.Errorf("%v: %v %v %v", roots, names, problems, err)
		}
	}
	if _, problems, _ := goose.New(historytest.NoEnv).Find(t.Context(),
		[]string{filepath.Join(root, "nowhere")}); len(problems) != 1 {
		t.Errorf("%v", problems)
	}
}

func TestGooseFileWithAByteOrderMark(t *testing.T) {
	h := newHouse(t)
	path := h.Write("20260102_1.jsonl", "\ufeff"+`{"working_dir":"/home/dev","description":"d","message_count":1}`,
		`{"role":"user","created":1767344460,"content":[{"type":"text","text":"one"}]}`)
	if done := h.Import(path); done.Sessions != (history.Sessions{New: 1}) || done.Records.Imported != 2 {
		t.Errorf("%+v", done)
	}
	if done := h.Import(path); done.Sessions != (history.Sessions{Unchanged: 1}) || done.Records.Read != 0 {
		t.Errorf("a second import gave %+v", done)
	}
}
