package opencode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/opencode"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func newKilo(t *testing.T) *house {
	t.Helper()
	h := &house{now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.House = historytest.New(t, opencode.NewKilo(historytest.NoEnv, func() time.Time { return h.now }))
	return h
}

// Kilo CLI keeps a conversation in session_message, without seq, and what it used in the session's row.
func TestKiloSampleAddsUp(t *testing.T) {
	sql := historytest.Read(t, historytest.Sample(t, "kilo", "kilo.sql"))
	h := newKilo(t)
	folder := t.TempDir()
	path := h.load(filepath.Join(folder, "kilo.db"), sql)
	done := h.Import(folder)
	want := history.Records{Read: 4, Imported: 3, Skipped: map[string]int{"bookkeeping": 1}}
	if diff := cmp.Diff(want, done.Records); diff != "" || done.Sessions.New != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v\n%s", done, diff)
	}
	s := h.Session("kilo-root")
	if got := h.figures("kilo-root"); got != (figures{
		title: "Kilo root", user: 1, assistant: 1, ledger: 1, input: 12,
		output: 18, cacheRead: 1, cacheWrite: 2, cost: 2_500_000,
	}) {
		t.Errorf("%+v", got)
	}
	if got := h.Talk(s); got != "user: kilo fixture import oracle\nassistant: native kilo import ok" {
		t.Error(got)
	}
	call := h.Calls(s.ID)[0]
	if call.Source != session.SourceKilo || call.Model != "kilo-auto/free" ||
		!strings.Contains(string(call.Metadata), "total") {
		t.Errorf("%+v %s", call, call.Metadata)
	}
	if !strings.Contains(string(s.Metadata), `{"kilo":{`) || s.Source != session.SourceKilo {
		t.Errorf("%s of %s", s.Metadata, s.Source)
	}
	rows := h.Rows()
	if again := h.Import(folder); again.Records.Imported+again.Records.Raw > 0 || h.Rows() != rows {
		t.Errorf("the second import: %+v", again)
	}
	h.Examine()

	// The session goes on: its total is raised, and counted once.
	h.Change(path, `UPDATE session SET tokens_input = 20, cost = 0.5, time_updated = time_updated + 1000;
		INSERT INTO session_message VALUES ('kilo-msg-more', 'kilo-root', 'user', 1783180802000, 1783180802000, '{"time":{"created":1783180802000},"text":"and now?"}');`)
	h.Import(path)
	if got := h.figures("kilo-root"); got.ledger != 1 || got.input != 20 || got.cost != 5_000_000 || got.user != 2 {
		t.Errorf("%+v", got)
	}
	half, whole := h.Told(), newKilo(t)
	whole.Import(path)
	if diff := cmp.Diff(whole.Told(), half); diff != "" {
		t.Errorf("-whole +halves\n%s", diff)
	}
}

// Where a message says what it used, the session's total is not counted, too; nor while a reply at
// the end may still be written.
func TestTotalOfASessionCountsAlone(t *testing.T) {
	sql := func(ended, usage string) string {
		return `CREATE TABLE session (id TEXT, project_id TEXT, tokens_input INTEGER, time_created INTEGER, time_updated INTEGER);
			CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
			INSERT INTO session VALUES ('s', 'p', 70, 1770109200000, 1770109260000);
			INSERT INTO session_message VALUES ('a', 's', 'user', 1, 1, '{"time":{"created":1770109200000},"text":"hello"}'),
				('b', 's', 'assistant', 2, 2, '{"time":{"created":1770109260000' || '` + ended + `' || '},"content":[]' || '` + usage + `' || '}');`
	}
	const ended = `,"completed":1770109261000`
	for name, test := range map[string]struct {
		sql  string
		now  time.Time
		want int64
	}{
		"no usage":   {sql("", ""), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 70},
		"usage":      {sql(ended, `,"tokens":{"input":7,"output":1}`), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 7},
		"unfinished": {sql("", ""), time.UnixMilli(1770109270000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newKilo(t)
			h.now = test.now
			h.Importer.Price = func(c *session.Call) { // it has no cost: the total is no prompt of one request
				if c.Sum != (test.want == 70) {
					t.Errorf("a sum: %v", c.Sum)
				}
			}
			h.Import(h.load(filepath.Join(t.TempDir(), "kilo.db"), test.sql))
			if got := h.inputOf("s"); got != test.want {
				t.Errorf("%d tokens in, want %d", got, test.want)
			}
		})
	}
}

// inputOf returns the input tokens of a session's calls.
func (h *house) inputOf(id string) (input int64) {
	h.Helper()
	for _, c := range h.Calls(h.Session(id).ID) {
		input += c.InputTokens
	}
	return input
}

// Kilo adds the cost of a sub-agent to that of the message that started it. It counts in the sub-agent's session alone.
func TestCostOfASubAgentIsItsOwn(t *testing.T) {
	h := newHouse(t)
	file := filepath.Join(t.TempDir(), "session.json")
	testkit.Check(t, os.WriteFile(file, []byte(`{"info":{"id":"ses_1","directory":"/w","title":"t","version":"7.7.7",
		"time":{"created":1780000000000,"updated":1780000009000}},"messages":[
		{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1780000000000}},
		 "parts":[{"type":"text","text":"Ask a helper","id":"prt_1","messageID":"msg_1","sessionID":"ses_1"}]},
		{"info":{"id":"msg_2","sessionID":"ses_1","parentID":"msg_1","role":"assistant","cost":0.09,"modelID":"m","providerID":"p",
		 "tokens":{"input":20,"output":7,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"tool-calls",
		 "time":{"created":1780000001000,"completed":1780000005000}},"parts":[
		 {"type":"tool","tool":"task","callID":"c1","id":"prt_2","messageID":"msg_2","sessionID":"ses_1","state":
		  {"status":"completed","input":{"prompt":"how high"},"output":"two","metadata":{"sessionId":"ses_2"},
		   "time":{"start":1780000002000,"end":1780000004000}}},
		 {"type":"step-finish","id":"prt_3","messageID":"msg_2","sessionID":"ses_1","cost":0.03,
		  "tokens":{"input":20,"output":7,"reasoning":0,"cache":{"read":0,"write":0}}}]}]}`), 0o600))
	h.Import(file)
	calls := h.Calls(h.Session("ses_1").ID)
	if len(calls) != 1 || *calls[0].CostNanoUSD != 30_000_000 {
		t.Errorf("%+v", calls)
	}
}
