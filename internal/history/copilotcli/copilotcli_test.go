package copilotcli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

func quiet() *history.Program { return copilotcli.New(historytest.NoEnv, historytest.Later) }

func growing() *history.Program { return copilotcli.New(historytest.NoEnv, time.Now) }

// figures are what a file holds, as the samples' README counts them. Numbers of sub-agents are in
// the sums.
type figures struct {
	users, replies, agentUsers, agentReplies int
	requested, started, ok, failed           int
	ledger, summaries                        int
	input, cacheRead, output, reasoning      int64
	summaryInput, summaryRead, summaryOutput int64
}

func figuresOf(h *historytest.House, done history.Records) (got figures) {
	h.Helper()
	got.started = done.Skipped["start of a call that its reply holds"]
	for _, s := range h.Sessions() {
		agent := s.Kind == "subagent"
		for _, m := range h.Entries(s.ID) {
			switch {
			case m.Kind != session.KindMessage:
			case m.Role == session.User:
				got.users++
				if agent {
					got.agentUsers++
				}
			case m.Role == session.Assistant && m.Origin == session.Model:
				got.replies++
				got.requested += len(m.Calls())
				if agent {
					got.agentReplies++
				}
			case m.Role == session.Assistant: // no reply asked for it
				got.started += len(m.Calls())
			}
			for _, p := range m.Results() {
				if p.Failed() {
					got.failed++
				} else {
					got.ok++
				}
			}
		}
		for _, c := range h.Calls(s.ID) {
			input := c.InputTokens + c.CacheReadTokens + c.CacheWriteTokens
			if c.Purpose == session.PurposeSummary {
				got.summaries++
				got.summaryInput, got.summaryRead, got.summaryOutput = got.summaryInput+input, got.summaryRead+c.CacheReadTokens,
					got.summaryOutput+c.OutputTokens
				continue
			}
			got.ledger++
			got.input, got.cacheRead, got.output, got.reasoning = got.input+input, got.cacheRead+c.CacheReadTokens,
				got.output+c.OutputTokens, got.reasoning+c.ReasoningTokens
		}
	}
	return got
}

func TestSamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		path  string
		lines int
		want  figures
	}{
		{"own-run-1.0.45/session-state/9da991c6*", 36, figures{2, 6, 0, 2, 3, 3, 3, 0, 2, 0, 14100, 5200, 261, 45, 0, 0, 0}},
		{"own-run-1.0.78/session-state/dea8f14c*", 47, figures{4, 8, 1, 2, 4, 4, 3, 1, 3, 0, 19600, 7350, 356, 63, 0, 0, 0}},
		{"own-run/session-state/3bca6309*", 54, figures{3, 6, 0, 0, 4, 4, 3, 1, 6, 1, 16700, 5460, 287, 54, 3700, 1170, 57}},
		{"own-run/session-state/d973f728*", 31, figures{2, 4, 1, 2, 2, 2, 2, 0, 4, 0, 10600, 4260, 186, 27, 0, 0, 0}},
		{"session-state/049410b4*", 15, figures{1, 2, 0, 0, 2, 2, 0, 2, 1, 0, 4100, 0, 978, 0, 0, 0, 0}},
		{"session-state/8b23eac7*", 8, figures{1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 2050, 0, 382, 0, 0, 0, 0}},
		{"vibe-1.0.34", 55, figures{2, 6, 0, 0, 11, 13, 13, 0, 1, 0, 186809, 151738, 2848, 1024, 0, 0, 0}},
	} {
		t.Run(test.path, func(t *testing.T) {
			h := historytest.New(t, quiet())
			file := historytest.Sample(t, "copilot-cli", filepath.FromSlash(test.path), "events.jsonl")
			done := h.Import(file)
			if len(done.Errors) > 0 || done.Records.Read != test.lines {
				t.Errorf("%+v", done)
			}
			testkit.Equal(t, test.want, figuresOf(h, done.Records), cmp.AllowUnexported(figures{}))
			h.Examine()
			h.ContextsAreAccepted(1)
			rows := h.Rows()
			if again := h.Import(h.Copy(file)); again.Records.Imported+again.Records.Raw > 0 || h.Rows() != rows {
				t.Errorf("a copy of the file: %+v", again)
			}
		})
	}
}

// Whatever is cut off waits, and comes with the rest.
func TestPiecesGiveTheWhole(t *testing.T) {
	for _, path := range []string{
		"own-run-1.0.45/session-state/9da991c6*/events.jsonl", "own-run-1.0.78/session-state/dea8f14c*/events.jsonl",
		"vibe-1.0.34/events.jsonl",
		"own-run/session-state/3bca6309*/events.jsonl", "own-run/session-state/d973f728*/events.jsonl",
		"mcp-edge-cases.jsonl",
	} {
		historytest.PiecesGiveTheWhole(t, historytest.Sample(t, "copilot-cli", filepath.FromSlash(path)), growing(), quiet())
	}
}

// Files that are no conversations: each line is imported, kept raw, or skipped with a reason, at once
// or in two halves.
func TestOddFilesLoseNothing(t *testing.T) {
	for _, test := range []struct {
		name             string
		lines, raw, seen int // seen: messages in the context
	}{{"key-sweep.jsonl", 32, 1, 10}, {"mcp-edge-cases.jsonl", 52, 7, 35}} {
		file := historytest.Sample(t, "copilot-cli", test.name)
		whole, halves := historytest.New(t, quiet()), historytest.New(t, growing())
		done := whole.Import(file)
		seen := 0
		for _, s := range whole.Sessions() {
			for _, m := range whole.Entries(s.ID) {
				if m.InContext {
					seen++
				}
			}
		}
		if done.Records.Read != test.lines || done.Records.Raw != test.raw || seen != test.seen {
			t.Errorf("%s: %+v, %d messages in contexts", test.name, done, seen)
		}
		whole.Examine()
		text := historytest.Read(t, file)
		path := halves.Write("events.jsonl")
		halves.Append(path, text[:len(text)/2])
		halves.Import(path)
		halves.Append(path, text[len(text)/2:])
		halves.Source = quiet()
		halves.Import(path)
		if diff := cmp.Diff(whole.Told(), halves.Told()); diff != "" {
			t.Errorf("-whole +halves\n%.3000s", diff)
		}
	}
}

func TestSubagentsHangOnTheCallsThatStartedThem(t *testing.T) {
	for path, agent := range map[string]string{
		"own-run-1.0.45": "9da991c6-364d-419b-be3a-fcb718aff61b/call_3_0",
		"own-run-1.0.78": "dea8f14c-73fb-4d77-b209-c8b51f07915d/call_3_0",
		"own-run":        "d973f728-c3f9-43c1-aabb-c77791485e0f/a643146a-56d8-41d4-99bc-e430ba7025af",
	} {
		h := historytest.New(t, quiet())
		if done := h.Import(historytest.Sample(t, "copilot-cli", path)); len(done.Errors) > 0 {
			t.Errorf("%+v", done)
		}
		child := h.Session(agent)
		link, err := h.Store.Link(t.Context(), child)
		if err != nil || child.ParentKind != session.ParentChild || !strings.HasPrefix(link.Call, "call_") ||
			child.Title != "HELPER: read a.txt and report." {
			t.Errorf("%s: %+v %+v %v", path, child, link, err)
		}
	}
}

func TestCompactionIsAnOverlayAndTitlesComeFromTheWorkspace(t *testing.T) {
	h := historytest.New(t, quiet())
	h.Import(historytest.Sample(t, "copilot-cli", "own-run"))
	s := h.Session("3bca6309-f815-450e-a638-c6e2292c4c42")
	overlay, rest := h.Seen(s)
	if overlay == nil || !strings.HasPrefix(overlay.Summary, "<overview>") || overlay.TokensBefore != 10580 ||
		overlay.TokensAfter != 10426 || len(rest) != 4 {
		t.Errorf("%+v, %d messages behind it", overlay, len(rest))
	}
	if s.Title != "PLAN-TWO: what is in a.txt and how many lines?" || s.TitleSource != "source" ||
		s.Directory != "/Users/dev1/demo" || s.GitBranch != "master" {
		t.Errorf("%+v", s)
	}
}

// of makes a line of a session.
func of(n int, kind, data string) string {
	return fmt.Sprintf(`{"type":%q,"data":%s,"id":"id-%d","timestamp":"2026-08-05T10:00:%02d.000Z","parentId":null}`, kind, data, n, n)
}

var (
	begun = of(0, "session.start", `{"sessionId":"s","copilotVersion":"1.0.102","startTime":"2026-08-05T10:00:00.000Z","context":{"cwd":"/w"}}`)
	asked = of(1, "user.message", `{"content":"one","transformedContent":"<now/>one"}`)
	again = of(9, "user.message", `{"content":"two"}`)
)

func TestByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, quiet(), "events.jsonl", begun, asked, again)
}

// A reply in chunks is one message. The chunks wait for the last one.
func TestChunksAreOneReply(t *testing.T) {
	chunk := func(i int, text string) string {
		return of(2+i, "assistant.message", fmt.Sprintf(`{"messageId":"m","model":"x","content":%q,"toolRequests":[],"outputTokens":5,"chunkIndex":%d,"chunkCount":3}`, text, i))
	}
	h := historytest.New(t, growing())
	path := h.Write("events.jsonl", begun, asked, chunk(0, "A"), chunk(1, "B"))
	if done := h.Import(path); done.Records.Waiting != 2 {
		t.Errorf("%+v", done)
	}
	h.Append(path, chunk(2, "C")+"\n"+again+"\n")
	done := h.Import(path)
	if got := h.Talk(h.Session("s")); got != "user: one\nassistant: ABC\nuser: two" || done.Records.Imported != 4 {
		t.Errorf("%q %+v", got, done)
	}
	h.Examine()
}

// What is said while a compaction runs stays in the context. The records of its request are known, and say nothing.
func TestCompactionKeepsWhatWasSaidMeanwhile(t *testing.T) {
	h := historytest.New(t, quiet())
	h.Import(h.Write("events.jsonl", begun, asked, of(2, "assistant.message", `{"content":"first"}`),
		of(3, "session.compaction_start", `{}`), of(4, "user.message", `{"content":"meanwhile"}`),
		of(8, "model.turn_started", `{"kind":"turn_started"}`), of(9, "model.response", `{"response":{"content":"Sum"}}`),
		of(5, "session.compaction_complete", `{"success":true,"summaryContent":"Sum","compactionTokensUsed":{"input":100,"output":7,"cachedInput":40}}`), again))
	s := h.Session("s")
	overlay, rest := h.Seen(s)
	calls := h.Calls(s.ID)
	if overlay == nil || overlay.Summary != "Sum" || overlay.FirstKept == nil || len(calls) != 1 ||
		calls[0].InputTokens != 60 || calls[0].CacheReadTokens != 40 {
		t.Errorf("%+v %+v %+v", overlay, rest, calls)
	}
	for _, m := range h.Entries(s.ID) {
		if m.Kind == session.KindUnknown {
			t.Errorf("%+v", m)
		}
	}
	h.ContextsAreAccepted(1)
}

// Usage records of a crash have no reply; a call counts all the same, once.
func TestUsageWithoutAReplyCounts(t *testing.T) {
	h := historytest.New(t, growing())
	record := of(2, "session.usage_record", `{"usage":{"model":"x","inputTokens":10,"outputTokens":2,"apiCallId":"a"}}`)
	path := h.Write("events.jsonl", begun, asked, record)
	h.Import(path)
	if calls := h.Calls(h.Session("s").ID); len(calls) != 0 {
		t.Errorf("its reply may come: %+v", calls)
	}
	h.Append(path, of(3, "session.usage_record", `{"usage":{"model":"x","inputTokens":20,"outputTokens":3,"apiCallId":"b"}}`)+"\n"+of(4, "assistant.message", `{"content":"first","apiCallId":"b"}`)+"\n")
	for range 2 {
		h.Import(path)
		calls := h.Calls(h.Session("s").ID)
		if len(calls) != 2 || calls[0].MessageID == nil == (calls[1].MessageID == nil) {
			t.Errorf("%+v", calls)
		}
		h.Source = quiet()
	}
}

// The total of a segment is no prompt of one request.
func TestSegmentOfSeveralRequestsIsASum(t *testing.T) {
	h := historytest.New(t, quiet())
	sums := map[int64]bool{}
	h.Importer.Price = func(c *session.Call) { sums[c.InputTokens] = c.Sum }
	h.Import(h.Write("events.jsonl", begun, asked,
		of(2, "session.shutdown", `{"modelMetrics":{"m":{"requests":{"count":10},"usage":{"inputTokens":300000}},"n":{"requests":{"count":1},"usage":{"inputTokens":7}}}}`)))
	testkit.Equal(t, map[int64]bool{300_000: true, 7: false}, sums)
}

// An object in which a name occurs twice is whole: without its line feed it waits no longer than others, and
// beside another one on a line it is one.
func TestObjectWithANameTwiceIsWhole(t *testing.T) {
	twice := of(2, "assistant.message", `{"content":"a","content":"b"}`)
	for _, text := range []string{begun + "\n" + asked + "\n" + twice, begun + "\n" + asked + twice + "\n"} {
		h := historytest.New(t, quiet())
		path := h.Write("events.jsonl")
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
		if done := h.Import(path); done.Records.Read != 3 || done.Records.Raw != 1 || done.Records.Waiting != 0 {
			t.Errorf("%+v", done)
		}
		if got := h.Talk(h.Session("s")); !strings.HasPrefix(got, "user: one") {
			t.Error(got)
		}
	}
}

// A rewind takes lines out of the file: what was imported stays, and what is new is a branch.
func TestRewoundFileBranches(t *testing.T) {
	h := historytest.New(t, quiet())
	path := h.Write("events.jsonl", begun, asked, of(2, "assistant.message", `{"content":"first"}`), again)
	h.Import(path)
	h.Rewrite(path, begun, asked, of(2, "assistant.message", `{"content":"first"}`),
		of(10, "user.message", `{"content":"two, other words"}`))
	h.Import(path)
	s := h.Session("s")
	if got := h.Talk(s); got != "user: one\nassistant: first\nuser: two, other words" || s.MessageCount != 4 {
		t.Errorf("%q, %d messages", got, s.MessageCount)
	}
}

func TestFilesOfTheUserAreNoSessions(t *testing.T) {
	h := historytest.New(t, quiet())
	home := t.TempDir()
	for _, name := range []string{
		"session-state/one/events.jsonl", "session-state/one/files/events.jsonl", "config.json",
		"session-state/events.txt",
	} {
		h.Rewrite(filepath.Join(home, filepath.FromSlash(name)), begun, asked)
	}
	for _, root := range []string{home, filepath.Join(home, "session-state")} {
		found, problems, err := h.Source.Find(t.Context(), []string{root})
		if len(found) != 1 || len(problems) > 0 || err != nil {
			t.Errorf("%s: %v %v %v", root, found, problems, err)
		}
	}
}

func TestKilledImportGoesOn(t *testing.T) {
	file := historytest.Sample(t, "copilot-cli", "own-run", "session-state", "d973f728*", "events.jsonl")
	historytest.KilledImportGoesOn(t, quiet(), file, 0, 1, 2)
}

func TestFileThatIsShorterMeanwhile(t *testing.T) {
	historytest.ShorterMeanwhile(t, quiet(), "events.jsonl", begun, func(i int) string {
		return strings.Replace(asked, "id-1", fmt.Sprintf("line-%d", i), 1)
	})
}

func FuzzRead(f *testing.F) {
	agent := `"agentId":"a",` + of(3, "assistant.message", `{"content":"x","toolRequests":[{"toolCallId":"c","name":"task","arguments":"{}"}],"apiCallId":"b","chunkIndex":0,"chunkCount":2}`)[1:]
	f.Add([]byte(strings.Join([]string{
		begun, asked, "{" + agent, of(4, "tool.execution_start", `{"toolCallId":"c","toolName":"t"}`),
		of(5, "tool.execution_complete", `{"toolCallId":"c","success":true,"result":{"content":"r"}}`),
		of(6, "session.usage_record", `{"usage":{"inputTokens":3}}`),
		of(7, "session.compaction_complete", `{"success":true,"summaryContent":"s"}`),
		of(8, "session.shutdown", `{"modelMetrics":{"m":{"usage":{"outputTokens":3}}}}`),
	}, "\n")))
	f.Add([]byte(begun + "\n\n{}\n[]\n" + asked + asked))
	f.Add([]byte(begun + of(0, "dream", "{}") + of(0, "nightmare", "{}"))) // in one line
	historytest.FuzzRead(f, quiet(), growing())
}

// A record is read whatever stands before it on its line, and over several lines; the rest is reported.
func TestRecordsOfDamagedLines(t *testing.T) {
	for _, test := range []struct {
		name, result string
		lines, bytes []int // of what is reported
	}{
		{"01-copilot-glued-line", "port: 48213", []int{5, 6}, []int{120, 150}},
		{"04-copilot-raw-newline-in-string", "Contents of the page:\nrow one\nport: 48213", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := historytest.New(t, quiet())
			done := h.Import(filepath.Join(samples.Case(t, test.name), "copilot"))
			var results []string
			s := h.Sessions()[0]
			for _, m := range h.Path(s) {
				for _, p := range m.Results() {
					results = append(results, p.Content())
				}
			}
			talk := "user: Which port does the gateway use?\nassistant: Let me read the settings.(view)\ntool: " + test.result +
				"\n" +
				"assistant: The gateway listens on 48213.\nuser: Thanks, close it."
			if got := h.Talk(s); got != talk {
				t.Errorf("%s", got)
			}
			if len(results) != 1 || results[0] != test.result {
				t.Errorf("results %q", results)
			}
			for i, e := range done.Errors {
				if len(done.Errors) != len(test.lines) || e.Line != test.lines[i] ||
					!strings.Contains(e.Error, fmt.Sprintf("%d bytes", test.bytes[i])) {
					t.Errorf("%+v", done.Errors)
				}
			}
			h.Examine()
		})
	}
}
