package openclaw_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
)

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
		return line("assistant", `"content":[{"type":"text","text":`+string(session.JSONOf(text))+`}],"provider":"p","model":"m","stopReason":"stop",`+usage)
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
		{"out of the context", line("user", `"content":"x","excludeFromContext":true`), facts{session.KindMessage, session.User, session.Person, "", "", false, true, 0}},
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
		{"a turn of another program", line("assistant", `"content":[],"provider":"openclaw","model":"acp-runtime"`), func() facts {
			f := by(echo, "acp-runtime")
			f.InContext = true
			return f
		}()},
		{"an old injected row", strings.Replace(line("assistant", `"content":[],"stopReason":"injected",`+usage), `"parentId":null,`, "", 1), func() facts {
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
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
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
	h.write(filepath.Join(dir, "two.jsonl"), strings.Replace(header, `"one"`, `"two"`, 1), answer("9", "", "r1"), answer("8", "9", "r2"))
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
			h.run(h.write(filepath.Join(h.sessions(), "one.jsonl"), header, line("assistant", `"content":[],"provider":"openai","model":"m","usage":`+test.usage)))
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
			if err != nil || effective == nil || effective.Strategy != session.StrategyClear || effective.Reason != "reset: idle" {
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
			h.write(filepath.Join(dir, "sessions.json"), `{`+string(session.JSONOf(written))+`:{"sessionId":"one","updatedAt":1,"channel":"telegram"}}`)
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
