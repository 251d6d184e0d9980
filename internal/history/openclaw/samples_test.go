package openclaw_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"

	"github.com/google/go-cmp/cmp"
)

// expected is what expected.json says of a transcript.
type expected struct {
	Head    string
	Parents map[string]string
	Path    []string
	Context []string
}

const (
	garden = "main/5b0c1d2e-3f40-4a51-8b62-7c8d9e0f1a2b"
	fork   = "main/f0f0f0f0-1111-4222-8333-444444444444"
	child  = "main/c0c0c0c0-1111-4222-8333-555555555555"
	topic  = "main/70707070-1111-4222-8333-777777777777-topic-7"
	old    = "main/aaaaaaaa-1111-4222-8333-666666666666"
	before = "main/0d9c8b7a-6f5e-4d3c-9b2a-190807060504"
	work   = "work/3a3a3a3a-1111-4222-8333-888888888888"
	put    = "work/a9a9a9a9-1111-4222-8333-999999999999"
	empty  = "main/eeeeeeee-0000-4000-8000-00000000000e"
)

func TestOpenClawSamplesHangTogether(t *testing.T) {
	h := newHouse(t)
	h.run(h.state("constructed"))
	var all map[string]expected
	testkit.Check(t, json.Unmarshal([]byte(historytest.Read(h,
		filepath.Join(samples.Dir(t), "openclaw", "constructed", "expected.json"))), &all))
	sessions := map[string]string{"5b0c": garden, "2026": fork, "c0c0": child, "7070": topic, "agen": work}
	for name, want := range all {
		t.Run(name[:4], func(t *testing.T) {
			s := h.Session(sessions[name[:4]])
			path := h.Keys(s)
			if diff := cmp.Diff(want.Path, path); diff != "" {
				t.Errorf("path: -want +got\n%s", diff)
			}
			if path[len(path)-1] != want.Head {
				t.Errorf("head %s, want %s", path[len(path)-1], want.Head)
			}
			var context []string
			for _, entry := range want.Context {
				if strings.HasPrefix(entry, "summary:") {
					entry = "summary"
				}
				context = append(context, entry)
			}
			if diff := cmp.Diff(context, h.context(s)); diff != "" {
				t.Errorf("context: -want +got\n%s", diff)
			}
			keys := map[int64]string{}
			for _, m := range h.Entries(s.ID) {
				keys[m.RowID] = m.ExternalID
				if parent, ok := want.Parents[m.ExternalID]; ok && (m.ParentID == nil || keys[*m.ParentID] != parent) {
					t.Errorf("the parent of %s is %v, want %s", m.ExternalID, m.Parent, parent)
				}
			}
		})
	}
}

func TestOpenClawSamplesAddUp(t *testing.T) {
	h := newHouse(t)
	dir := h.state("constructed")
	done := h.run(dir)
	want := history.Records{
		// Lines: 26 + 9 + 3 + 6 + 5 + 3 + 2 deleted. Database: 3 rows, 2 sessions, 1 cold archive
		// with 4 lines, an archived transcript of 2. Index: 4 entries and a lock.
		Read: 26 + 9 + 3 + 6 + 5 + 3 + 2 + 12 + 5,
		Raw:  3, // leaf, unknown type, broken line
		Skipped: map[string]int{
			"copied from the session it was forked from": 6, "deleted by the user": 2, "derived": 2, "bookkeeping": 1,
		},
		Waiting: 1,
	}
	want.Imported = want.Read - want.Raw - 12
	testkit.Equal(t, want, done.Records)
	if done.Sessions.New != 9 {
		t.Errorf("%+v", done.Sessions)
	}
	if len(done.Errors) != 1 || done.Errors[0].Line != 8 {
		t.Errorf("errors %+v", done.Errors)
	}
	calls, unpriced := 0, 0
	for _, s := range h.all() {
		for _, c := range h.Calls(s.ID) {
			calls++
			if c.CostNanoUSD == nil {
				unpriced++
			}
		}
	}
	if calls != 13 || unpriced != 1 {
		t.Errorf("%d calls, %d without a cost", calls, unpriced)
	}
	again := h.run(dir)
	if again.Sessions.New+again.Sessions.Updated != 0 || again.Records.Imported+again.Records.Raw != 0 {
		t.Errorf("a second import gave %+v", again)
	}
}

func TestOpenClawSamplesKnowTheirSessions(t *testing.T) {
	h := newHouse(t)
	h.run(h.state("constructed"))
	all := h.all()
	type facts struct {
		Key        string
		Generation int64
		Kind       string
		Title      string
		Parent     string
		ParentKind string
		Messages   int64
		Directory  string
		Model      string
	}
	parents := map[session.ID]string{}
	for id, s := range all {
		parents[s.ID] = id
	}
	got := map[string]facts{}
	for id, s := range all {
		got[id] = facts{
			s.Key, s.Generation, s.Kind, s.Title, parents[s.ParentID], s.ParentKind, s.MessageCount, s.Directory,
			s.Model,
		}
	}
	const clawd, sonnet = "/home/ana/clawd", "claude-sonnet-4-5"
	want := map[string]facts{
		garden: {"agent:main:main", 1, "chat", "Garden plan", "", "", 24, clawd, sonnet},
		fork:   {"", 0, "chat", "When should I sow peas?", garden, "fork", 2, clawd, sonnet},
		child: {
			"agent:main:subagent:7d0a5a55-0d7b-4a51-a6d5-6f0f3f0b9a01", 1, "subagent", "prices", garden, "child", 2,
			clawd, sonnet,
		},
		topic:  {"agent:main:telegram:group:-1001:topic:7", 1, "chat", "Garden", "", "", 5, clawd, sonnet},
		old:    {"", 0, "chat", "old one", "", "", 4, "/home/ana", "claude-opus-4-1"},
		before: {"", 0, "chat", "yesterday", "", "", 2, clawd, sonnet},
		empty:  {"agent:main:telegram:dm:nobody", 1, "chat", "", "", "", 0, "", ""},
		work:   {"agent:work:main", 2, "chat", "cold one", "", "", 4, clawd, sonnet},
		put:    {"agent:work:main", 1, "chat", "before the reset", "", "", 1, clawd, ""},
	}
	testkit.Equal(t, want, got)
	if s := all[garden]; s.Window == nil || *s.Window != 200000 ||
		!strings.Contains(string(s.Metadata), `"futureField":{"kept":"raw"}`) {
		t.Errorf("window %v, metadata %s", s.Window, s.Metadata)
	}
	if s := all[child]; !strings.Contains(string(s.Metadata), `"task":"compare seed prices"`) {
		t.Errorf("metadata %s", s.Metadata)
	}
	if s := all[before]; s.EndedAt == nil || s.EndedAt.SQL() != "2026-03-14 08:59:59.000" {
		t.Errorf("put away %v", s.EndedAt)
	}
}

// line is a message in version 3 with the id 1, made of the fields of its message.
func line(role, fields string) string {
	return fmt.Sprintf(`{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-02T09:01:00.000Z","message":{"role":%q,%s}}`, role, fields)
}

// What OpenClaw's messages mean beyond pi's.
func TestOpenClawMessagesMeanWhatTheyDid(t *testing.T) {
	type facts struct {
		Kind      session.Kind
		Role      session.Role
		Origin    session.Origin
		Author    string
		Model     string
		InContext bool
		Display   bool
		Calls     int
	}
	const usage = `"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3}`
	person := facts{session.KindMessage, session.User, session.Person, "", "", true, true, 0}
	program := person
	program.Origin = session.Program
	by := func(f facts, author string) facts { f.Author = author; return f }
	model := facts{session.KindMessage, session.Assistant, session.Model, "", "m", true, true, 1}
	silent := model
	silent.Display = false
	echo := facts{session.KindMessage, session.Assistant, session.Program, "delivery-mirror", "", false, true, 0}
	says := func(text string) string {
		return line("assistant",
			`"content":[{"type":"text","text":`+string(session.JSONOf(text))+`}],"provider":"p","model":"m","stopReason":"stop",`+usage)
	}
	for _, test := range []struct {
		name, line string
		want       facts
	}{
		{"a person", line("user", `"content":"hello"`), person},
		{"a person in an envelope", line("user", `"content":"[Sat 2026-03-14 09:00 UTC] hello"`), person},
		{"a person by a channel", line("user", `"content":"hello","provenance":{"kind":"external_user","sourceChannel":"telegram"}`), by(person, "telegram")},
		{"another session", line("user", `"content":"x","provenance":{"kind":"inter_session","sourceSessionKey":"agent:main:main"}`), by(program, "agent:main:main")},
		{"the system", line("user", `"content":"x","provenance":{"kind":"internal_system","sourceTool":"exec"}`), by(program, "exec")},
		{"another session, before that was told", line("user", `"content":"[Inter-session message] x"`), program},
		{"a heartbeat", line("user", `"content":"Read HEARTBEAT.md if it exists (workspace context). Follow it strictly."`), program},
		{"a heartbeat in an envelope", line("user", `"content":"[Sat 2026-03-14 09:00 UTC] Read HEARTBEAT.md if it exists (workspace context)."`), program},
		{"a job", line("user", `"content":"[cron:morning daily] Weather?"`), program},
		{"the flush before a compaction", line("user", `"content":"Pre-compaction memory flush. Store durable memories now."`), program},
		{
			"out of the context", line("user", `"content":"x","excludeFromContext":true`),
			facts{session.KindMessage, session.User, session.Person, "", "", false, true, 0},
		},
		{"a reply", says("hello"), model},
		{"a reply to nobody", says("NO_REPLY"), silent},
		{"it begins so", says("NO_REPLY, nothing to say"), silent},
		{"it ends so", says("Saved.\nNO_REPLY."), silent},
		{"a word that only begins so", says("NO_REPLYING is a word"), model},
		{"a word in the middle", says("They got NO_REPLY from me"), model},
		{"a heartbeat's answer", says("HEARTBEAT_OK"), silent},
		{"a heartbeat that found something", says("HEARTBEAT_OK but the disk is full"), model},
		{"an echo of what was sent", line("assistant", `"content":[{"type":"text","text":"x"}],"provider":"clawdbot","model":"delivery-mirror",`+usage), echo},
		{"an echo marked otherwise", line("assistant", `"content":[],"provider":"p","model":"m","openclawDeliveryMirror":{"kind":"channel-final"},`+usage), by(echo, "m")},
		{"an operator's text", line("assistant", `"content":[],"provider":"openclaw","model":"gateway-injected"`), by(echo, "gateway-injected")},
		{
			"a turn of another program", line("assistant", `"content":[],"provider":"openclaw","model":"acp-runtime"`),
			func() facts {
				f := by(echo, "acp-runtime")
				f.InContext = true
				return f
			}(),
		},
		{"an old injected row", strings.Replace(line("assistant", `"content":[],"stopReason":"injected",`+usage),
			`"parentId":null,`, "", 1), func() facts {
			f := by(echo, "injected")
			f.InContext = true
			return f
		}()},
		{"usage of nothing is no call", line("assistant", `"content":[],"model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}`), func() facts {
			f := model
			f.Calls = 0
			return f
		}()},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.run(h.write(filepath.Join(h.sessions(), "one.jsonl"), header, test.line))
			m := h.entry("main/one", "1")
			got := facts{m.Kind, m.Role, m.Origin, m.Author, m.Model, m.InContext, m.Display, len(h.Calls(m.SessionID))}
			testkit.Equal(t, test.want, got)
		})
	}
}

func TestOpenClawCountsEachCallOnce(t *testing.T) {
	h := newHouse(t)
	dir := h.sessions()
	answer := func(id, parent, response string) string {
		l := reply(id, parent, "x")
		if response != "" {
			l = strings.Replace(l, `"stopReason"`, `"responseId":"`+response+`","stopReason"`, 1)
		}
		return l
	}
	h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "x"), answer("2", "1", "r1"), answer("3", "2", ""),
		answer("4", "3", ""), // the same again with a new id: a retry wrote it twice
		user("5", "1", "y"), answer("6", "5", "r1"))
	h.write(filepath.Join(dir, "two.jsonl"), strings.Replace(header, `"one"`, `"two"`, 1), answer("9", "", "r1"),
		answer("8", "9", "r2"))
	h.run(dir)
	if one, two := h.Calls(h.Session("main/one").ID), h.Calls(h.Session("main/two").ID); len(one) != 2 || len(two) != 1 {
		t.Errorf("%d and %d calls", len(one), len(two))
	}
}

func TestOpenClawUsageByItsOwnRules(t *testing.T) {
	for _, test := range []struct {
		name, usage string
		input       int64
		cost        string
	}{
		{"input is without the cache", `{"input":10,"output":5,"cacheRead":100,"cacheWrite":0,"totalTokens":115,"cost":{"total":0.5}}`, 10, "500000000"},
		{"an old one had it in the input", `{"input":110,"output":5,"cacheRead":100,"cacheWrite":0,"totalTokens":115,"cost":{"total":0.5}}`, 10, "500000000"},
		{"no cost is unknown", `{"input":10,"output":5,"cacheRead":0,"cacheWrite":0}`, 10, "unknown"},
		{"nothing for something is unknown", `{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"cost":{"input":0,"output":0,"total":0}}`, 10, "unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.run(h.write(filepath.Join(h.sessions(), "one.jsonl"), header,
				line("assistant", `"content":[],"provider":"openai","model":"m","usage":`+test.usage)))
			call := h.Calls(h.Session("main/one").ID)[0]
			cost := "unknown"
			if call.CostNanoUSD != nil {
				cost = fmt.Sprint(*call.CostNanoUSD)
			}
			if call.InputTokens != test.input || cost != test.cost {
				t.Errorf("input %d, cost %s", call.InputTokens, cost)
			}
		})
	}
}

func TestOpenClawToolsTellHowLongTheyTook(t *testing.T) {
	h := newHouse(t)
	h.run(h.write(filepath.Join(h.sessions(), "one.jsonl"), header,
		line("assistant", `"content":[{"type":"toolCall","id":"c|1","name":"exec","arguments":{"command":"cat beds.md"}}],"model":"m","stopReason":"toolUse"`),
		`{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-02T09:01:01.000Z","message":{"role":"toolResult","toolCallId":"c|1","toolName":"exec","isError":false,"content":[{"type":"text","text":"peas"}],"details":{"status":"completed","exitCode":0,"durationMs":37}}}`))
	part := h.entry("main/one", "2").Parts[0]
	if part.DurationMS == nil || *part.DurationMS != 37 || part.CallPartID == nil {
		t.Errorf("%+v", part)
	}
	files, err := h.Store.TouchedFiles(t.Context(), 0, *h.Session("main/one").HeadID)
	if err != nil || len(files) != 1 || files[0].Path != "/home/dev/beds.md" {
		t.Errorf("%+v %v", files, err)
	}
}

// A reset begins the context anew without a summary, and says why.
func TestOpenClawResetsAreOverlays(t *testing.T) {
	for _, test := range []struct{ name, kept, want string }{
		{"nothing is kept", "", "4"},
		{"something is", `,"firstKeptEntryId":"2"`, "2 4"},
		{"what is not there is not", `,"firstKeptEntryId":"gone"`, "4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.run(h.write(filepath.Join(h.sessions(), "one.jsonl"), header, user("1", "", "one"), user("2", "1", "two"),
				`{"type":"reset","id":"3","parentId":"2","timestamp":"2026-01-02T09:03:00.000Z","reason":"idle"`+test.kept+`}`, user("4", "1", "four")))
			s := h.Session("main/one")
			if got := strings.Join(h.context(s), " "); got != test.want {
				t.Errorf("context %q, want %q", got, test.want)
			}
			effective, err := h.Store.Effective(t.Context(), s)
			if err != nil || effective == nil || effective.Strategy != session.StrategyClear ||
				effective.Reason != "reset: idle" {
				t.Errorf("%+v %v", effective, err)
			}
		})
	}
}

// Keys of the index are stored in the one form that keys have.
func TestOpenClawKeys(t *testing.T) {
	for written, want := range map[string][2]string{
		"main":                         {"agent:main:main", "chat"},
		"Agent:Main:MAIN":              {"agent:main:main", "chat"},
		"agent:main:telegram:dm:Ana":   {"agent:main:telegram:dm:ana", "chat"},
		"group:-100":                   {"agent:main:telegram:group:-100", "chat"},
		"agent:main:signal:group:aB+c": {"agent:main:signal:group:aB+c", "chat"},
		"cron:morning":                 {"agent:main:cron:morning", "cron"},
		"agent:main:cron:a:run:5":      {"agent:main:cron:a:run:5", "cron"},
		"hook:123":                     {"agent:main:hook:123", "hook"},
		"agent:main:subagent:7":        {"agent:main:subagent:7", "subagent"},
		"agent:main:cron:a:subagent:7": {"agent:main:cron:a:subagent:7", "cron"},
		"global":                       {"global", "chat"},
	} {
		t.Run(written, func(t *testing.T) {
			h := newHouse(t)
			dir := h.sessions()
			h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "one"))
			h.write(filepath.Join(dir, "sessions.json"),
				`{`+string(session.JSONOf(written))+`:{"sessionId":"one","updatedAt":1,"channel":"telegram"}}`)
			h.run(dir)
			if s := h.Session("main/one"); s.Key != want[0] || s.Kind != want[1] || s.Generation != 1 {
				t.Errorf("%q, %s, generation %d", s.Key, s.Kind, s.Generation)
			}
		})
	}
	t.Run("told by the trace", func(t *testing.T) {
		h := newHouse(t)
		dir := h.sessions()
		h.write(filepath.Join(dir, "one.jsonl"), header, user("1", "", "one"))
		h.write(filepath.Join(dir, "one.trajectory.jsonl"), `{"sessionKey":"agent:main:main","prompt":"x"}`)
		h.run(dir)
		if s := h.Session("main/one"); s.Key != "agent:main:main" {
			t.Errorf("%q", s.Key)
		}
	})
}
