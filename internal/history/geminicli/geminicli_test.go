package geminicli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// figures are what a session holds, as the samples' README counts them.
type figures struct {
	person, model, calls, failed, ledger   int
	input, cached, output, thoughts, total int64
}

func figuresOf(h *historytest.House, id string) (got figures) {
	h.Helper()
	s := h.Session(id)
	for _, m := range h.Entries(s.ID) {
		switch {
		case m.Role == session.User && m.Origin == session.Person:
			got.person++
		case m.Role == session.Assistant:
			got.model++
			got.calls += len(m.Calls())
		}
		for _, p := range m.Parts {
			if p.Kind == session.PartToolResult && p.Failed() {
				got.failed++
			}
		}
	}
	for _, c := range h.Calls(s.ID) {
		got.ledger++
		got.input += c.InputTokens + c.CacheReadTokens
		got.cached += c.CacheReadTokens
		got.output += c.OutputTokens - c.ReasoningTokens
		got.thoughts += c.ReasoningTokens
		got.total += c.InputTokens + c.CacheReadTokens + c.OutputTokens
	}
	return got
}

func quiet() *history.Program { return geminicli.New(historytest.NoEnv, historytest.Later) }

func TestSamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		path, id string
		want     figures
	}{
		{
			"json-growing/3-ab2b9748b105.json", "f7633853-5cbe-4d8e-b3c7-d5cf5a8eb5a3",
			figures{1, 11, 9, 0, 10, 131375, 113854, 717, 1095, 133187},
		},
		{"jsonl-vibe.jsonl", "", figures{3, 6, 12, 0, 6, 202586, 48951, 2152, 2141, 206879}},
		{
			"own-run/tmp/demo/chats/session-2026-11-22T19-02-c44b8a95.jsonl", "c44b8a95-c199-43a3-bc61-8e6a350d4988",
			figures{1, 2, 1, 0, 2, 7450, 2290, 89, 14, 7553},
		},
		{
			"own-run/tmp/demo/chats/session-2026-11-22T19-02-c9528dd8.jsonl", "c9528dd8-2d97-4ab9-befa-262d665909ca",
			figures{2, 4, 3, 1, 4, 14100, 4420, 162, 28, 14290},
		},
		{
			"own-run/tmp/demo/chats/session-2026-11-22T19-03-f7327ecd.jsonl", "",
			figures{4, 7, 4, 0, 7, 29300, 8660, 376, 42, 29718},
		},
	} {
		t.Run(filepath.Base(test.path), func(t *testing.T) {
			h := historytest.New(t, quiet())
			done := h.Import(historytest.Sample(t, "gemini-cli", filepath.FromSlash(test.path)))
			if len(done.Errors) > 0 || done.Sessions.New != 1 {
				t.Fatalf("%+v", done)
			}
			id := h.Sessions()[0].SourceID
			testkit.Equal(t, test.want, figuresOf(h, id), cmp.AllowUnexported(figures{}))
			h.Examine()
		})
	}
}

func TestRewoundMessagesStayBesideThePath(t *testing.T) {
	h := historytest.New(t, quiet())
	done := h.Import(historytest.Sample(t, "gemini-cli", "constructed", "rewind.jsonl"))
	s := h.Sessions()[0]
	if got := h.Talk(s); got != "user: One\nassistant: First\nuser: Two, other words\nassistant: Third" ||
		s.Title != "Count to three" || s.MessageCount != 6 {
		t.Errorf("%q, %q, %d messages, %+v", got, s.Title, s.MessageCount, done)
	}
}

// A session that grows gets what is new, and a reply that got calls meanwhile a second version.
func TestGrowingFileOfGeneration1(t *testing.T) {
	h := historytest.New(t, quiet())
	path := filepath.Join(t.TempDir(), "session-2026-01-15T20-51-f7633853.json")
	for i, name := range []string{"1-c945f262e88d.json", "2-9c53780d06b7.json", "3-ab2b9748b105.json"} {
		text := historytest.Read(t, historytest.Sample(t, "gemini-cli", "json-growing", name))
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
		at := time.Now().Add(time.Duration(i) * time.Second)
		testkit.Check(t, os.Chtimes(path, at, at))
		if done := h.Import(path); len(done.Errors) > 0 {
			t.Fatalf("%+v", done)
		}
	}
	if got := figuresOf(h, h.Sessions()[0].SourceID); got.ledger != 10 || got.total != 133187 || got.person != 1 {
		t.Errorf("%+v", got)
	}
	h.Examine()
}

func TestSubagentsHangOnTheirParents(t *testing.T) {
	h := historytest.New(t, quiet())
	done := h.Import(historytest.Sample(t, "gemini-cli", "own-run", "tmp"))
	if done.Sessions.New != 4 || len(done.Errors) > 0 {
		t.Fatalf("%+v", done)
	}
	child, parent := h.Session("2442f8f0-65e2-4760-b285-70dc0b5baf6c"), h.Session("c44b8a95-c199-43a3-bc61-8e6a350d4988")
	link, err := h.Store.Link(t.Context(), child)
	if err != nil || child.ParentID != parent.ID || child.Kind != "subagent" || link.Call == "" {
		t.Errorf("%+v %+v %v", child, link, err)
	}
	if parent.Directory != "/Users/dev1/demo" {
		t.Errorf("directory %q", parent.Directory)
	}
	if again := h.Import(historytest.Sample(t, "gemini-cli", "own-run", "tmp")); again.Sessions.Unchanged != 4 ||
		again.Records.Imported != 0 {
		t.Errorf("%+v", again)
	}
	compacted := h.Session(sourceID(h, "f7327ecd"))
	if compacted.CompactionCount != 1 {
		t.Errorf("%d compactions", compacted.CompactionCount)
	}
}

// Whatever is cut off waits, and comes with the rest.
func TestPiecesGiveTheWhole(t *testing.T) {
	for _, name := range []string{"session-2026-11-22T19-02-c9528dd8.jsonl", "session-2026-11-22T19-03-f7327ecd.jsonl"} {
		growing := geminicli.New(historytest.NoEnv, time.Now)
		historytest.PiecesGiveTheWhole(t, historytest.Sample(t, "gemini-cli", "own-run", "tmp", "demo", "chats", name),
			growing, quiet())
	}
}

func TestPromptsCountWhereNoSessionIsLeft(t *testing.T) {
	h := historytest.New(t, quiet())
	log := historytest.Read(t, historytest.Sample(t, "gemini-cli", "constructed", "logs.json"))
	folder := t.TempDir()
	testkit.Check(t, os.Mkdir(filepath.Join(folder, "chats"), 0o700))
	for name, text := range map[string]string{
		"logs.json": log,
		"chats/session-2025-11-20T10-00-11111111.json": `{"sessionId": "11111111-0000-4000-8000-000000000001"}`,
	} {
		testkit.Check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	done := h.Import(filepath.Join(folder, "logs.json"))
	if done.Records.Imported != 1 || done.Records.Skipped["prompt of a session that has a file"] != 2 ||
		done.Sessions.New != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	grown := strings.TrimSuffix(strings.TrimSpace(log), "]") + `,{"sessionId":"` + h.Sessions()[0].SourceID + `","messageId":9,"type":"user","message":"and this","timestamp":"2027-01-01T00:00:00.000Z"}]`
	testkit.Check(t, os.WriteFile(filepath.Join(folder, "logs.json"), []byte(grown), 0o600))
	if done = h.Import(filepath.Join(folder, "logs.json")); done.Records.Imported != 1 || done.Sessions.Updated != 1 {
		t.Errorf("grown: %+v", done)
	}
}

// sourceID finds the session whose id begins so.
func sourceID(h *historytest.House, prefix string) string {
	for _, s := range h.Sessions() {
		if strings.HasPrefix(s.SourceID, prefix) {
			return s.SourceID
		}
	}
	h.Fatalf("no session %s…", prefix)
	return ""
}

const (
	header = `{"sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","projectHash":"x","startTime":"2026-03-01T10:00:00.000Z","kind":"main"}`
	asked  = `{"id":"m1","timestamp":"2026-03-01T10:00:01.000Z","type":"user","content":[{"text":"one"}]}`
	again  = `{"id":"m3","timestamp":"2026-03-01T10:00:03.000Z","type":"user","content":[{"text":"two"}]}`
)

func TestByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, quiet(), "session-2026-03-01T10-00-0d9c8b7a.jsonl", header, asked, again)
}

// A resumed session appends its whole list to a file that was imported before.
func TestAppendedListBringsItsNewMessages(t *testing.T) {
	h := historytest.New(t, quiet())
	path := h.Write("session-2026-03-01T10-00-0d9c8b7a.jsonl", header, asked)
	h.Import(path)
	h.Append(path, `{"$set":{"messages":[`+asked+`,{"id":"m2","timestamp":"2026-03-01T10:00:02.000Z","type":"user","content":[{"text":"of the list"}]}]}}`+"\n"+again+"\n")
	if done := h.Import(path); len(done.Errors) > 0 || done.Records.Read != 2 || done.Records.Imported != 2 {
		t.Errorf("%+v", done)
	}
	if got := h.Talk(h.Sessions()[0]); got != "user: one\nuser: of the list\nuser: two" {
		t.Errorf("%q", got)
	}
}

// SQLite's JSON has a limit of depth: without this a single message kept the whole session out.
func TestMessageThatIsNestedTooDeepIsKeptRaw(t *testing.T) {
	deep := strings.Replace(asked, `"m1"`, `"deep","x":`+strings.Repeat("[", 1200)+strings.Repeat("]", 1200), 1)
	document := strings.TrimSuffix(header, "}") + `,"messages":[` + asked + "," + deep + "," + again + `]}`
	for name, lines := range map[string][]string{
		"session-2026-03-01T10-00-0d9c8b7a.jsonl": {
			header, asked, deep, `{"$set":{"messages":[` + asked + "," + deep + `]}}`,
			again,
		},
		"session-2026-03-01T10-00-0d9c8b7a.json": {document},
	} {
		h := historytest.New(t, quiet())
		done := h.Import(h.Write(name, lines...))
		if done.Records.Raw != 1 {
			t.Fatalf("%s: %+v", name, done)
		}
		if got := h.Talk(h.Sessions()[0]); !strings.HasPrefix(got, "user: one") || !strings.HasSuffix(got, "user: two") {
			t.Errorf("%s: %q", name, got)
		}
		h.Examine()
	}
}
