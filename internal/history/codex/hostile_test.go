package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history/codex"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

const header = `{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"one","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/proj","cli_version":"0.106.0","source":"cli","model_provider":"openai"}}`

func item(payload string) string {
	return `{"timestamp":"2026-03-01T10:00:01.000Z","type":"response_item","payload":` + payload + `}`
}

func event(payload string) string {
	return `{"timestamp":"2026-03-01T10:00:01.000Z","type":"event_msg","payload":` + payload + `}`
}

func says(role, text string) string {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return item(`{"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":` +
		string(session.JSONOf(text)) + `}]}`)
}

func TestWrongInput(t *testing.T) {
	deep := strings.Repeat("[", 3000) + strings.Repeat("]", 3000)
	for _, test := range []struct {
		name  string
		lines []string
		raw   int
		skips map[string]int
		error string // that nothing can be read at all
		at    int    // line of the first problem
		talk  string
	}{
		{name: "empty", error: "the file is empty"},
		{name: "only blank lines", lines: []string{"", "  "}, error: "no rollout"},
		{name: "wrong first line", lines: []string{`{"hello":"world"}`, says("user", "x")}, error: "first line is no header"},
		{name: "no JSON", lines: []string{"hello"}, error: "first line is no JSON object"},
		{name: "another format", lines: []string{`{"type":"thread.started","thread_id":"x"}`}, error: "codex exec --json"},
		{name: "header alone", lines: []string{header}},
		{name: "fillers alone", lines: []string{`{"record_type":"state"}`}, error: "no header"},
		{
			name: "invalid JSON in the middle", lines: []string{header, says("user", "a"), `{"torn":`, says("user", "b")},
			raw: 1, at: 3, talk: "user: a\nuser: b",
		},
		{name: "bytes that are no text", lines: []string{
			header, strings.Replace(says("user", "X"), "X", "bad \xff\xfe", 1),
			says("user", "b"),
		}, talk: "user: bad \ufffd\nuser: b"},
		{
			name: "NUL and half a pair", lines: []string{header, strings.Replace(says("user", "X"), "X", `\u0000 \ud800`, 1)},
			talk: "user: \ufffd \ufffd",
		},
		{name: "NUL in the line", lines: []string{header, "nul \x00", says("user", "b")}, raw: 1, at: 2, talk: "user: b"},
		{name: "nested deep", lines: []string{
			header, item(`{"type":"message","role":"user","content":` + deep + `}`),
			says("user", "b"),
		}, raw: 1, at: 2, talk: "user: b"},
		{name: "an item without its fields", lines: []string{
			header, item(`{"type":"function_call"}`),
			item(`{"type":"message"}`), says("user", "b"),
		}, raw: 2, at: 2, talk: "user: b"},
		{name: "fields of other types", lines: []string{
			header, item(`{"type":7}`), item(`[1]`), event(`"x"`),
			`{"type":"turn_context","payload":null}`, says("user", "b"),
		}, raw: 3, talk: "user: b"},
		{name: "types that are not known", lines: []string{
			header, item(`{"type":"dream","x":1}`), event(`{"type":"dream"}`),
			`{"type":"dream","payload":{}}`, says("user", "b"),
		}, raw: 3, talk: "user: b"},
		{name: "an unknown history mode", lines: []string{strings.Replace(header, `"source"`,
			`"history_mode":"novel","source"`, 1), says("user", "a")}, raw: 1, talk: ""},
		{
			name: "the same line again", lines: []string{header, says("user", "a"), says("user", "a"), header},
			skips: map[string]int{"repeated header": 1}, talk: "user: a\nuser: a",
		},
		{name: "more turns rolled back than there are", lines: []string{
			header, says("user", "a"),
			event(`{"type":"thread_rolled_back","num_turns":99}`), says("user", "b"),
		}, talk: "user: b"},
		{name: "a roll-back of nonsense", lines: []string{
			header, says("user", "a"),
			event(`{"type":"thread_rolled_back","num_turns":-1e300}`), says("user", "b"),
		}, talk: "user: a\nuser: b"},
		{name: "results without calls, calls without results", lines: []string{
			header,
			item(`{"type":"function_call_output","call_id":"nobody","output":"x"}`), item(`{"type":"function_call_output","call_id":null,"output":"y"}`),
			item(`{"type":"function_call","call_id":"c","name":"exec_command","arguments":"{broken"}`), says("user", "b"),
		}, talk: "tool: x\ntool: y\nassistant: (exec_command)\nuser: b"},
		{name: "counts of nonsense", lines: []string{
			header, says("assistant", "a"),
			event(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":-5,"output_tokens":1e400,"total_tokens":"many"},"last_token_usage":[]}}`),
			event(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":5,"cached_input_tokens":900,"output_tokens":1,"total_tokens":6},"last_token_usage":{"input_tokens":5,"cached_input_tokens":900,"output_tokens":1,"total_tokens":6}}}`),
		}, talk: "assistant: a"},
		{name: "a circle of forks", lines: []string{
			strings.Replace(header, `"source"`, `"forked_from_id":"one","source"`, 1),
			says("user", "a"),
		}, talk: "user: a"},
		{name: "a base that is itself", lines: []string{strings.Replace(header, `"source"`, `"history_base":{"thread_id":"one","end_ordinal_exclusive":9},"source"`, 1), says("user", "a")}, at: 1, talk: "user: a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.Write("rollout.jsonl", test.lines...)
			good := h.Write("rollout-good.jsonl", strings.Replace(header, "one", "good", 1), says("user", "fine"))
			done := h.Import(path, good)
			if h.Talk(h.Session("good")) != "user: fine" {
				t.Error("the rest did not go on")
			}
			if !h.Reports(done, path, historytest.Wrong{Error: test.error, Raw: test.raw, At: test.at, Skips: test.skips}) {
				return
			}
			if got := h.Talk(h.Session("one")); got != test.talk {
				t.Errorf("path %q", got)
			}
			h.unchanged(path)
		})
	}
}

func TestFinds(t *testing.T) {
	h := newHouse(t)
	home := filepath.Join(t.TempDir(), "codex")
	name := func(at, id string) string { return "rollout-" + at + "-" + id + ".jsonl" }
	for path, id := range map[string]string{
		"sessions/2026/03/02/" + name("2026-03-02T10-00-00", "b"): "b",
		"sessions/2026/03/01/" + name("2026-03-01T10-00-00", "a"): "a",
		"archived_sessions/" + name("2026-02-01T10-00-00", "old"): "old",
	} {
		h.Rewrite(filepath.Join(home, path), strings.Replace(header, "one", id, 1), says("user", id))
	}
	// A compressed copy of a plain rollout, one that is compressed alone, and what is half made.
	packed := pack(t, strings.Replace(header, "one", "packed", 1)+"\n"+says("user", "packed")+"\n")
	for _, path := range []string{
		"archived_sessions/" + name("2026-01-01T10-00-00", "packed") + ".zst",
		"archived_sessions/" + name("2026-03-01T10-00-00", "a") + ".zst",
		"archived_sessions/" + name("2026-01-02T10-00-00", "half") + ".zst.tmp",
	} {
		if err := os.WriteFile(filepath.Join(home, path), packed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{"auth.json", "config.toml", "history.jsonl"} {
		if err := os.WriteFile(filepath.Join(home, secret), []byte("{}"), 0o000); err != nil {
			t.Fatal(err)
		}
	}
	h.Rewrite(filepath.Join(home, "session_index.jsonl"), `{"id":"a","thread_name":"first","updated_at":"2026-03-01T10:05:00Z"}`,
		`{"id":"nobody","thread_name":"x"}`, `{"id":"a","thread_name":"Named","updated_at":"2026-03-01T10:06:00Z"}`, "{broken", "")
	h.Source = codex.New(func(key string) string { return map[string]string{"CODEX_HOME": home}[key] }, historytest.Later)
	done := h.Import()
	if done.Sessions.New != 4 || len(done.Errors) != 2 {
		t.Errorf("%+v", done)
	}
	if s := h.Session("a"); s.Title != "Named" || s.ArchivedAt != nil {
		t.Errorf("%+v", s)
	}
	if s := h.Session("packed"); h.Talk(s) != "user: packed" || s.ArchivedAt == nil {
		t.Errorf("%+v", s)
	}
	rows := h.Rows()
	if done := h.Import(); done.Records.Read != 0 || h.Rows() != rows {
		t.Errorf("again: %+v", done)
	}
	// A later name; the rollout goes to the archive, and is compressed there.
	h.Append(filepath.Join(home, "session_index.jsonl"), `{"id":"a","thread_name":"Renamed"}`+"\n")
	from := filepath.Join(home, "sessions/2026/03/01", name("2026-03-01T10-00-00", "a"))
	if err := os.WriteFile(filepath.Join(home, "archived_sessions", filepath.Base(from)+".zst"),
		pack(t, historytest.Read(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	done = h.Import()
	if s := h.Session("a"); s.Title != "Renamed" || s.ArchivedAt == nil || s.MessageCount != 1 || done.Sessions.New != 0 {
		t.Errorf("%+v %+v", s, done)
	}
	if _, problems, err := codex.New(historytest.NoEnv, nil).Find(t.Context(), nil); err != nil || len(problems) != 0 {
		t.Errorf("a host without Codex: %v %v", problems, err)
	}
}

func pack(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

func TestDamagedArchiveIsTold(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(t.TempDir(), "rollout-x.jsonl.zst")
	packed := pack(t, header+"\n"+strings.Repeat(says("user", "x")+"\n", 1000))
	if err := os.WriteFile(path, packed[:len(packed)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if done := h.Import(path); len(done.Errors) != 1 || done.Sessions.New != 0 {
		t.Errorf("%+v", done)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(header + "\n" + says("user", "one") + "\n" + says("assistant", "two") + "\n" + event(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":5}}}`) + "\n"))
	f.Add([]byte(header + "\n" + `{"type":"compacted","payload":{"message":"s","replacement_history":[{"type":"message","role":"user","content":"x"}]}}` + "\n" + event(`{"type":"thread_rolled_back","num_turns":1}`) + "\n"))
	f.Add([]byte(`{"id":"x","timestamp":"2025-08-20T09:15:02.118Z"}` + "\n" + `{"record_type":"state"}` + "\n" + `{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}` + "\n{"))
	f.Add([]byte(strings.Replace(header, `"source"`, `"forked_from_id":"two","source"`, 1) + "\n" +
		strings.Replace(header, "one", "two", 1) + "\n" + says("user", "x") + "\n"))
	f.Add([]byte(header + "\n" + item(`{"type":"agent_message","author":"\ud800","content":[]}`) + "\n" + `{"type":"inter_agent_communication","payload":{"content":"\u0000"}}` + "\n"))
	historytest.FuzzRead(f, quiet(), codex.New(historytest.NoEnv, time.Now))
}

func BenchmarkRead(b *testing.B) {
	historytest.BenchmarkRead(b, quiet(), sample(b, "localpush-0.104-12-54-34.jsonl"))
}
