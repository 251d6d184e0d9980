package openclaw_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/historytest"
)

// Unreadable input is reported with file and line, and everything else is imported.
func TestOpenClawWrongInput(t *testing.T) {
	good := []string{header, user("1", "", "one"), user("2", "1", "two")}
	for _, test := range []struct {
		name  string
		file  string // one.jsonl without it
		lines []string
		want  string // the path's text; "" when there is no session
		error string // of the one problem; "" for none
		line  int
		raw   int
	}{
		{name: "empty file", lines: nil, error: "the file is empty"},
		{name: "text", lines: []string{"hello", "world"}, error: "no session header"},
		{name: "another program's lines", lines: []string{`{"role":"user","content":"x"}`}, error: "no session header"},
		{name: "header without an id", lines: []string{`{"type":"session","version":3}`}, error: "names no session"},
		{
			name: "version that is no number", lines: []string{`{"type":"session","id":"one","version":"x"}`},
			error: "versions 1 to 4",
		},
		{
			name: "newer version", lines: []string{strings.Replace(header, `"version":3`, `"version":7`, 1), good[1]},
			want: "one", error: "newer than what is known", line: 1,
		},
		{name: "compressed by something else", lines: []string{"\x1f\x8b\x08\x00"}, error: "compressed or encrypted"},
		{name: "zst that is none", file: "one.jsonl.zst", lines: good, error: "compressed, and damaged"},
		{name: "header alone", lines: good[:1], want: " "},
		{
			name: "invalid JSON in the middle", lines: []string{good[0], good[1], `{"type":"message","id":`, good[2]},
			want: "one two", error: "not a JSON object", line: 3, raw: 1,
		},
		{
			name: "an array in the middle", lines: []string{good[0], good[1], `[1]`, good[2]}, want: "one two",
			error: "not a JSON object", line: 3, raw: 1,
		},
		{name: "child of a broken line", lines: []string{
			good[0], good[1], `{"type":"message","id":"2",`,
			user("3", "2", "three"),
		}, want: "one three", error: "not a JSON object", line: 3, raw: 1},
		{
			name: "nested too deep", lines: []string{
				good[0], good[1],
				`{"type":"custom","id":"d","parentId":"1","data":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
			},
			want: "one " + strings.Repeat("", 1), error: "nested too deep", line: 3, raw: 1,
		},
		{
			name: "unknown type", lines: []string{good[0], good[1], `{"type":"later","id":"x","parentId":"1"}`, good[2]},
			want: "one two", raw: 1,
		},
		{name: "unknown role", lines: []string{good[0], good[1], `{"type":"message","id":"x","parentId":"1","message":{"role":"oracle"}}`, user("2", "x", "two")}, want: "one  two", raw: 1},
		{
			name: "second header", lines: []string{good[0], good[1], strings.Replace(header, `"one"`, `"other"`, 1), good[2]},
			want: "one two", raw: 1,
		},
		{
			name: "self-parent", lines: []string{good[0], user("1", "1", "one"), good[2]}, want: "one two", error: "cycle",
			line: 2,
		},
		{name: "cycle", lines: []string{good[0], user("1", "2", "one"), good[2]}, want: "one two", error: "cycle", line: 2},
		{name: "orphan", lines: []string{good[0], user("1", "gone", "one"), good[2]}, want: "one two"},
		{name: "stale parent", lines: []string{good[0], good[1], user("2", "gone", "two")}, want: "one two"},
		{name: "equal line twice", lines: []string{good[0], good[1], good[1], good[2]}, want: "one two"},
		{name: "same id, another text", lines: []string{
			good[0], good[1], good[2], user("2", "1", "second"),
			user("3", "2", "three"),
		}, want: "one second three"},
		{name: "invalid UTF-8", lines: []string{good[0], user("1", "", "bad \xff byte")}, want: "bad \ufffd byte"},
		{name: "NUL and half a pair", lines: []string{
			good[0],
			strings.Replace(user("1", "", "X"), `"X"`, `"a\u0000b\ud800"`, 1),
		}, want: "a\ufffdb\ufffd"},
		{name: "leaf that points nowhere", lines: []string{
			good[0], good[1], good[2],
			`{"type":"leaf","id":"l","parentId":"2","targetId":"gone"}`,
		}, want: "one two", raw: 1},
		{name: "leaf to nothing", lines: []string{
			good[0], good[1], `{"type":"leaf","id":"l","parentId":"1","targetId":null}`,
			user("2", "l", "two"),
		}, want: "two", raw: 1},
		{name: "label of nobody", lines: []string{good[0], good[1], `{"type":"label","id":"l","parentId":"1","targetId":"gone","label":"x"}`}, want: "one ", raw: 1},
		{name: "no times", lines: []string{`{"type":"session","version":3,"id":"one"}`, `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"one"}}`}, want: "one"},
		{name: "times as numbers", lines: []string{`{"type":"session","version":3,"id":"one","timestamp":1767344400000}`, `{"type":"message","id":"1","parentId":null,"timestamp":1767344460000,"message":{"role":"user","content":"one"}}`}, want: "one"},
		{name: "blank lines", lines: []string{good[0], "", good[1], "  ", good[2]}, want: "one two"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			dir := h.sessions()
			name := test.file
			if name == "" {
				name = "one.jsonl"
			}
			path := filepath.Join(dir, name)
			h.write(path, test.lines...)
			if test.lines == nil {
				testkit.Check(t, os.WriteFile(path, nil, 0o600))
			}
			h.write(filepath.Join(dir, "other.jsonl"), strings.Replace(header, `"one"`, `"good"`, 1),
				user("1", "", "the rest goes on"))
			done := h.run(dir)
			if h.text(h.Session("main/good")) != "the rest goes on" {
				t.Error("the rest did not go on")
			}
			if test.error == "" && len(done.Errors) > 0 || test.error != "" &&
				(len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, test.error) ||
					done.Errors[0].Line != test.line || filepath.Base(done.Errors[0].Path) != name) {
				t.Errorf("errors %+v", done.Errors)
			}
			if done.Records.Raw != test.raw {
				t.Errorf("%+v", done.Records)
			}
			all := h.all()
			if s, ok := all["main/one"]; ok != (test.want != "") ||
				ok && strings.TrimSpace(h.text(s)) != strings.TrimSpace(test.want) {
				t.Errorf("path %q", h.text(s))
			}
			if again := h.run(dir); again.Records.Imported+again.Records.Raw > 0 {
				t.Errorf("again %+v", again)
			}
		})
	}
}

// A broken index, registry or database harms nothing but itself.
func TestOpenClawWrongNeighbours(t *testing.T) {
	for _, test := range []struct {
		name, file, content, error string
	}{
		{"index that is no JSON", "agents/main/sessions/sessions.json", "{'json5': true,}", "no JSON object"},
		{"empty index", "agents/main/sessions/sessions.json", "", "the file is empty"},
		{"index of other things", "agents/main/sessions/sessions.json", `{"agent:main:main":"x","k":{"updatedAt":1},"":{"sessionId":"y"}}`, ""},
		{"registry that is no JSON", "subagents/runs.json", "[", ""},
		{"database that is none", "agents/main/agent/openclaw-agent.sqlite", "hello", "no SQLite database"},
		{"empty database", "agents/main/agent/openclaw-agent.sqlite", "", "empty"},
		{
			"damaged database", "agents/main/agent/openclaw-agent.sqlite", "SQLite format 3\x00" + strings.Repeat("x", 5000),
			"SQLite",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			root := filepath.Join(h.TempDir(), ".openclaw")
			h.write(filepath.Join(root, "agents/main/sessions/one.jsonl"), header, user("1", "", "one"))
			path := filepath.Join(root, filepath.FromSlash(test.file))
			testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
			testkit.Check(t, os.WriteFile(path, []byte(test.content), 0o600))
			done := h.run(root)
			if h.text(h.Session("main/one")) != "one" {
				t.Error("the transcript is missing")
			}
			told := slices.ContainsFunc(done.Errors, func(p history.Problem) bool {
				return test.error != "" && strings.Contains(p.Error, test.error)
			})
			if told != (test.error != "") {
				t.Errorf("errors %+v", done.Errors)
			}
		})
	}
}

func TestOpenClawDamagedRowsOfADatabase(t *testing.T) {
	h := newHouse(t)
	root := h.state("constructed")
	db := filepath.Join(root, "agents", "work", "agent", "openclaw-agent.sqlite")
	h.Change(db, `UPDATE transcript_events SET event_utf8_bytes = 7 WHERE event_zstd IS NOT NULL`,
		`UPDATE session_transcript_cold_archives SET event_count = 9`,
		`UPDATE session_transcript_archives SET archive_sha256 = 'no'`,
		`INSERT INTO transcript_events VALUES ('new', 0, NULL, 1774478800000, NULL, NULL, NULL), ('new', 1, 'no json', 1774478800000, NULL, NULL, NULL),
		('new', 2, '`+user("1", "", "without a header")+`', 1774478800000, NULL, NULL, NULL)`)
	done := h.run(db)
	var told []string
	for _, p := range done.Errors {
		told = append(told, p.Error)
	}
	for _, want := range []string{
		"event 3: its compressed body is damaged", "holds 2 events where 9 were stored",
		"archived transcript of session a9a9a9a9", "not a JSON object",
	} {
		if !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("nobody told %q in %q", want, told)
		}
	}
	if s := h.Session("work/3a3a3a3a-1111-4222-8333-888888888888"); !slices.Equal(h.Keys(s),
		[]string{"w01", "w02", "w04"}) || s.MessageCount != 4 {
		t.Errorf("path %v of %d", h.Keys(s), s.MessageCount)
	}
	if s := h.Session("work/new"); h.text(s) != "without a header" {
		t.Errorf("path %q", h.text(s))
	}
	os.Remove(filepath.Join(root, "agents", "work", "sessions", "cold",
		"9819145096a6bbbbc0b466f2b4262967113a8d902392512e4b45490e821be6d2.jsonl.zst"))
	fresh := newHouse(t)
	if done := fresh.run(db); !slices.ContainsFunc(done.Errors, func(p history.Problem) bool {
		return strings.Contains(p.Error, "its events are missing")
	}) {
		t.Errorf("%+v", done.Errors)
	}
}

// No credential of the program is opened, and nothing of its is changed.
func TestOpenClawSecretsStayClosed(t *testing.T) {
	h := newHouse(t)
	root := h.state("constructed")
	for _, name := range []string{
		"agents/main/agent/auth-profiles.json", "agents/main/agent/auth.json", "agents/main/agent/models.json",
		"credentials/x.json", "identity/device.json",
		"openclaw.json", "clawdbot.json", "exec-approvals.json", ".env", "devices/paired.json",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		h.write(path, `{"token":"hidden-secret"}`)
		testkit.Check(t, os.Chmod(path, 0))
	}
	before := h.list(root)
	h.run(root)
	if after := h.list(root); before != after {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	for _, s := range h.all() {
		if strings.Contains(string(s.Metadata), "NEVER-READ-THIS") || strings.Contains(string(s.Metadata), "hidden-secret") {
			t.Errorf("metadata %s", s.Metadata)
		}
	}
}

// list names all files below a folder with their sizes and times.
func (h *house) list(root string) string {
	h.Helper()
	var all strings.Builder
	testkit.Check(h, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&all, path, info.Size(), info.ModTime())
		return err
	}))
	return all.String()
}

func TestOpenClawFindsItsFolders(t *testing.T) {
	h := newHouse(t)
	home := t.TempDir()
	transcript := func(path, id string) {
		h.write(filepath.Join(home, filepath.FromSlash(path)), strings.Replace(header, `"one"`, `"`+id+`"`, 1),
			user("1", "", "x"))
	}
	transcript(".openclaw/agents/main/sessions/new.jsonl", "new")
	transcript(".openclaw/agents/work/sessions/work.jsonl", "work")
	transcript(".clawdbot/agents/main/sessions/left.jsonl", "left")
	transcript(".moldbot/sessions/first.jsonl", "first")
	transcript(".openclaw-dev/agents/main/sessions/dev.jsonl", "dev")
	transcript("elsewhere/agents/main/sessions/named.jsonl", "named")
	transcript(".openclaw/agents/main/agent/sessions/--home-dev--/plain.jsonl", "plain")
	transcript(".openclaw/workspace/notes.jsonl", "foreign")
	transcript(".openclaw/agents/main/agent/openclaw-agent.0f0f0f0f.lock.sqlite", "a lock")
	testkit.Check(t, os.Symlink(filepath.Join(home, ".clawdbot"), filepath.Join(home, ".moltbot")))
	for _, test := range []struct {
		name  string
		env   map[string]string
		roots []string
		want  string
	}{
		{"usual places", map[string]string{"HOME": home}, nil, "dev first left new plain work"},
		{"named in the environment", map[string]string{
			"HOME":               filepath.Join(home, "none"),
			"CLAWDBOT_STATE_DIR": filepath.Join(home, "elsewhere"),
		}, nil, "named"},
		{"another home", map[string]string{"HOME": "/nowhere", "OPENCLAW_HOME": home}, nil, "dev first left new plain work"},
		{"nowhere", map[string]string{}, nil, ""},
		{"state folder", nil, []string{filepath.Join(home, ".clawdbot")}, "left"},
		{"a folder with one", nil, []string{home}, "new plain work"},
		{"agent", nil, []string{filepath.Join(home, ".openclaw", "agents", "work")}, "work"},
		{"sessions", nil, []string{filepath.Join(home, ".openclaw", "agents", "work", "sessions")}, "work"},
		{"file", nil, []string{filepath.Join(home, ".moldbot", "sessions", "first.jsonl")}, "first"},
		{"the same by two names", nil, []string{filepath.Join(home, ".moltbot"), filepath.Join(home, ".clawdbot")}, "left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := openclaw.New(func(name string) string { return test.env[name] })
			found, problems, err := source.Find(t.Context(), test.roots)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			var names []string
			for _, f := range found {
				names = append(names, strings.TrimSuffix(filepath.Base(f.Path), ".jsonl"))
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
	if _, problems, err := openclaw.New(historytest.NoEnv).Find(t.Context(),
		[]string{filepath.Join(home, "gone")}); err != nil || len(problems) != 1 {
		t.Errorf("%v %v", problems, err)
	}
}

// A transcript of any length takes the memory of a batch.
func TestOpenClawMemoryIsThatOfABatch(t *testing.T) {
	effort.OnlyLong(t, "it measures memory")
	h := newHouse(t)
	filler := strings.Repeat("many words of a long conversation ", 60)
	var text strings.Builder
	text.WriteString(header + "\n")
	const lines = 15_000
	parent := ""
	for i := range lines { // about 32 MB
		id := fmt.Sprintf("%08x", i)
		text.WriteString(user(id, parent, filler) + "\n")
		parent = id
	}
	path := filepath.Join(h.sessions(), "long.jsonl")
	h.write(path, text.String())
	size := text.Len()
	text.Reset()
	c := historytest.Collector{Watch: true}
	testkit.Must(h.Source.Read(t.Context(), history.Found{Path: path}, nil, historytest.Nobody{}, c.Emit))(t)
	if c.Messages != lines || c.Largest > history.MaxBatch {
		t.Errorf("%d messages, batches of %d", c.Messages, c.Largest)
	}
	if limit := uint64(24 << 20); c.Peak > limit {
		t.Errorf("%d MB of heap for a file of %d MB", c.Peak>>20, size>>20)
	}
}

// FuzzTranscript: whatever a transcript holds, reading ends, the records add up, and every
// message can be stored.
func FuzzTranscript(f *testing.F) {
	f.Add([]byte(header+"\n"+user("1", "", "one")+"\n"+`{"type":"compaction","id":"2","parentId":"1","summary":"s","firstKeptEntryId":"1"}`), uint8(0))
	f.Add([]byte(`{"type":"session","id":"x"}`+"\n"+`{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","arguments":{}}],"usage":{"input":-1,"cost":{"total":1e400}}}}`), uint8(1))
	f.Add([]byte(header+"\n"+`{"type":"leaf","id":"l","parentId":null,"targetId":null}`+"\n"+`{"type":"reset","id":"r","parentId":"l","firstKeptEntryId":"l"}`+"\n"+`{"type":"message","id":"m","message":{"role":"assistant","model":"delivery-mirror"}}`), uint8(2))
	f.Add([]byte(header+"\n"+`{"type":"label","id":"a","parentId":"b","targetId":"a","appendMode":"side"}`+"\n{"), uint8(3))
	f.Add([]byte(header+"\n"+`{"type":"reset","id":"r","parentId":null}`+"\n"+`{"type":"leaf","id":"l","parentId":"r","targetId":"r","appendParentId":null}`+"\n"+user("1", "l", "x")), uint8(0))
	dir := f.TempDir()
	names := []string{
		"one.jsonl", "one.jsonl.bak.2026-01-01T00-00-00.000Z", "one-topic-7.jsonl",
		"one.jsonl.reset.2026-01-01T00-00-00.000Z",
	}
	f.Fuzz(func(t *testing.T, data []byte, name uint8) {
		path := filepath.Join(dir, names[int(name)%len(names)])
		testkit.Check(t, os.WriteFile(path, data, 0o600))
		_, err := openclaw.New(historytest.NoEnv).Read(t.Context(), history.Found{Path: path}, nil, historytest.Nobody{},
			historytest.NewChecker(t).Batch)
		if err != nil && session.CodeOf(err) != session.Invalid {
			t.Errorf("%v", err)
		}
	})
}

// How fast a transcript is read, without the store: MB/s.
func BenchmarkRead(b *testing.B) {
	historytest.BenchmarkRead(b, openclaw.New(historytest.NoEnv),
		historytest.Sample(b, "openclaw", "pi-v1", "before-compaction.jsonl"))
}
