package antigravity_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/antigravity"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return antigravity.New(historytest.NoEnv, now) }

const (
	first   = "3d1e0000-0000-4000-8000-0000000000e1"
	aborted = "3d1e0000-0000-4000-8000-0000000000e2"
)

// sample copies the sample without the torn line of the conversation that was aborted, which would wait.
func sample(t *testing.T, folder string) {
	t.Helper()
	historytest.CopySample(t, folder, "antigravity", "constructed", "dot-gemini")
	torn := transcript(folder, aborted)
	whole := historytest.Read(t, torn)
	historytest.New(t, source(time.Now)).Rewrite(torn, strings.Split(whole[:strings.LastIndex(whole, "\n")], "\n")...)
}

func transcript(folder, id string) string {
	return filepath.Join(folder, "antigravity-cli", "brain", id, ".system_generated", "logs", "transcript_full.jsonl")
}

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 2, Make: sample}
	claims.Hold(t)
	claims.Contexts, claims.Lines, claims.Make = 1, true, func(t *testing.T, folder string) {
		text := historytest.Read(t, historytest.Sample(t, "antigravity", "cli_small-transcript.jsonl"))
		historytest.New(t, source(time.Now)).Rewrite(filepath.Join(folder, "a-transcript.jsonl"),
			strings.Split(strings.TrimSpace(text), "\n")...)
	}
	t.Run("real", claims.Hold)
}

func TestSamplesAddUp(t *testing.T) {
	h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
	sample(t, folder)
	done := h.Import(folder)
	h.Gave(done, 2, "")
	testkit.Equal(t, historytest.Counts{
		Users: 1, Replies: 4, Calls: 3, Results: 2, Failed: 1, Ledger: 4, Input: 6660, CacheRead: 10500, Output: 278,
	}, h.CountsOf(first))
	testkit.Equal(t, historytest.Counts{Users: 1}, h.CountsOf(aborted))
	s := h.Session(first)
	if s.Directory != "/home/dev1/work/shop" || s.Title != "List the files and write a note." {
		t.Errorf("%+v", s)
	}
	if s := h.Session(aborted); s.Directory != "/home/dev1/work/tools" {
		t.Errorf("%+v", s)
	}
	models := map[string]int{}
	for _, c := range h.Calls(s.ID) {
		models[c.Model+string(c.Metadata)]++
	}
	testkit.Equal(t, map[string]int{
		`gemini-3.5-flash{"model":"Gemini 3.5 Flash (High)"}`: 3, "gemini-3.5-flash": 1,
	}, models)
	if overlay, rest := h.Seen(s); overlay == nil || !strings.HasPrefix(overlay.Summary, "{{ CHECKPOINT 1 }}") ||
		!strings.HasPrefix(historytest.Texts(rest), "I stop here") {
		t.Errorf("%+v, then %s", overlay, historytest.Texts(rest))
	}
	if done.Records.Skipped["call without usage"] != 1 {
		t.Errorf("%+v", done.Records)
	}
}

// The short form of a transcript has the same arguments, each in a text.
func TestShortTranscript(t *testing.T) {
	full, short := historytest.New(t, source(historytest.Later)), historytest.New(t, source(historytest.Later))
	logs := filepath.Dir(historytest.Sample(t, "antigravity", "constructed", "dot-gemini", "antigravity-cli", "brain",
		first, ".system_generated", "logs", "transcript.jsonl"))
	full.Import(full.Copy(filepath.Join(logs, "transcript_full.jsonl")))
	short.Import(short.Copy(filepath.Join(logs, "transcript.jsonl")))
	var texts [2][]string
	for i, h := range []*historytest.House{full, short} {
		for _, m := range h.Entries(h.Sessions()[0].ID) {
			for _, c := range m.Calls() {
				texts[i] = append(texts[i], c.Arguments)
			}
		}
	}
	testkit.Equal(t, texts[0], texts[1])
}

func TestRealTranscript(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := h.Copy(historytest.Sample(t, "antigravity", "cli_small-transcript.jsonl"))
	h.Gave(h.Import(path), 1, "")
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 3, Calls: 2, Results: 10}, h.CountsOf("cli_small"))
}

const (
	asked  = `{"step_index":0,"source":"USER_EXPLICIT","type":"USER_INPUT","status":"DONE","created_at":"2026-09-21T13:33:20Z","content":"<USER_REQUEST>\none\n</USER_REQUEST>"}`
	called = `{"step_index":1,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","created_at":"2026-09-21T13:33:21Z","tool_calls":[{"name":"invoke_subagent","args":{}}]}`
	began  = `{"step_index":2,"source":"MODEL","type":"INVOKE_SUBAGENT","status":"DONE","created_at":"2026-09-21T13:33:22Z","content":"Created:\n{\n \"conversationId\": \"` + aborted + `\"\n}"}`
)

// A conversation that another one started is its child, whichever of the two comes first.
func TestSubAgents(t *testing.T) {
	for _, early := range []bool{true, false} {
		h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
		parent := func() { h.Rewrite(transcript(folder, first), asked, called, began) }
		child := func() { h.Rewrite(transcript(folder, aborted), asked) }
		if early {
			parent()
		} else {
			child()
		}
		h.Import(folder)
		parent()
		child()
		h.Import(folder)
		h.Import(folder)
		s := h.Session(aborted)
		var call string
		testkit.Check(t, h.Store.Reader().Get(&call, `SELECT call_id FROM links WHERE session_id = ?`, s.ID))
		if s.ParentID != h.Session(first).ID || s.ParentKind != "child" || call != "1:0" {
			t.Errorf("parent first %v: %+v by %q", early, s, call)
		}
		h.Examine()
	}
}

func TestWrongTranscripts(t *testing.T) {
	for what, test := range map[string]struct {
		lines, says string
		sessions    int
	}{
		"another program's": {`{"type":"session","id":1}`, "no transcript of Antigravity", 0},
		"no JSON":           {asked + "\nhello", "JSON", 1},
		"no step":           {asked + "\n" + `{"type":"dream"}`, "no step", 1},
		"odd values": {
			asked + "\n" + `{"step_index":"1","type":"PLANNER_RESPONSE","tool_calls":7,"content":7}` + "\n" +
				`{"step_index":2,"type":"PLANNER_RESPONSE","tool_calls":[7,{"args":7}],"created_at":7}` + "\n" +
				`{"step_index":3,"source":"MODEL","type":"DREAM","content":["x"]}` + "\n" + `{"step_index":4,"type":"CHECKPOINT"}`, "", 1,
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Write("transcript_full.jsonl", strings.Split(test.lines, "\n")...)), test.sessions, test.says)
		})
	}
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(h.Load(filepath.Join(t.TempDir(), first+".db"), `CREATE TABLE dreams (x);`)), 0, "no conversation of Antigravity")
	h.Gave(h.Import(h.Load(filepath.Join(t.TempDir(), first+".db"), `CREATE TABLE gen_metadata (idx, data);
		INSERT INTO gen_metadata VALUES (0, X'FFFF'), (1, NULL), ('x', 'y');`)), 0, "")
}

// What is encrypted is counted and said, and is no error.
func TestEncryptedConversationsAreCounted(t *testing.T) {
	h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
	h.Rewrite(filepath.Join(folder, "antigravity", "conversations", first+".pb"), "\x00\x01\x02")
	done := h.Import(folder)
	h.Gave(done, 0, "")
	if done.Records.Skipped["encrypted conversation of an older build"] != 1 {
		t.Errorf("%+v", done.Records)
	}
}

func FuzzTranscript(f *testing.F) {
	f.Add([]byte(asked + "\n" + called + "\n" + began))
	historytest.FuzzFile(f, "transcript.jsonl", source(historytest.Later))
}

func FuzzUsage(f *testing.F) {
	f.Add([]byte("\x0a\x37\x22\x08\x08\x92\x08\x10\xd0\x28\x18\x58"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, _, ok := antigravity.CallForTest(data); ok && c.ContextTokens()+c.OutputTokens <= 0 {
			t.Errorf("%+v", c)
		}
	})
}
