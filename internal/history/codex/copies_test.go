package codex_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sessiond/internal/session"
	"sessiond/internal/testkit/samples"
)

// Sub-agents whose header names only who started them begin with copies that have the times of the originals.
func TestReplayedUsageOfSubagentsIsTheirParents(t *testing.T) {
	h := newHouse(t)
	h.Import(filepath.Join(samples.Case(t, "10-codex-subagent-replay"), "codex"))
	input, output := int64(0), int64(0)
	var titles []string
	for _, s := range h.Sessions() {
		input, output = input+s.InputTokens+s.CacheReadTokens, output+s.OutputTokens
		titles = append(titles, s.Title)
		if s.Kind != "subagent" {
			continue
		}
		if s.ParentID != h.Sessions()[0].ID || h.Talk(s) != "user: "+s.Title+"\nassistant: "+s.Title+" done" {
			t.Errorf("%+v\n%s", s, h.Talk(s))
		}
		for _, m := range h.Entries(s.ID) {
			if m.Origin == session.Person {
				t.Errorf("%s: nobody typed %q", s.Title, m.Text())
			}
		}
	}
	if input != 114_000 || output != 680 || !slices.Equal(titles, []string{"split the work", "part 0", "part 1"}) {
		t.Errorf("%d, %d tokens of %q", input, output, titles)
	}
	h.Examine()
}

// What an earlier import counted twice is mended when the rollout is read from its beginning again.
func TestReplayedUsageThatWasCountedIsDropped(t *testing.T) {
	h := newHouse(t)
	noon := time.Date(2026, 9, 15, 12, 0, 0, 0, time.UTC)
	parent := thread{id: "parent", began: noon, turns: []turn{{"split the work", "done", 40}, {"go on", "ok", 60}}}
	child := thread{id: "child", began: noon.Add(time.Hour), turns: []turn{{"part 0", "done", 7}}}
	const header = `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"parent","depth":1}}}`
	copied := parent.lines(parent.turns, 0, 0, time.Time{}, false, true)
	h.Import(h.Write("rollout-1-parent.jsonl", append([]string{parent.header(`"source":"cli"`)}, copied...)...))
	lines := append(copied, child.lines(child.turns, 100, 0, time.Time{}, false, true)...)
	early := thread{id: "child", began: noon} // nothing tells that the lines are copies
	path := h.Write("rollout-2-child.jsonl", append([]string{early.header(header)}, lines...)...)
	h.Import(path)
	if s := h.Session("child"); s.InputTokens != 107 {
		t.Fatalf("%d tokens", s.InputTokens)
	}
	h.Rewrite(path, append([]string{child.header(header)}, lines...)...)
	h.Import(path)
	if s := h.Session("child"); s.InputTokens != 7 || len(h.Calls(s.ID)) != 1 || s.Title != "part 0" {
		t.Errorf("%d tokens, %d calls of %q", s.InputTokens, len(h.Calls(s.ID)), s.Title)
	}
	if s := h.Session("parent"); s.InputTokens != 100 {
		t.Errorf("%d tokens", s.InputTokens)
	}
	rows := h.Rows()
	if h.Import(path); h.Rows() != rows {
		t.Error("reading it again changed something")
	}
	h.Examine()
}

// turn is a turn of a thread: what was said, and the tokens that it used.
type turn struct {
	prompt, reply string
	used          int
}

// thread writes rollouts for the tests of copies.
type thread struct {
	id    string
	began time.Time
	turns []turn
}

const milliseconds = "2006-01-02T15:04:05.000Z" // in UTC

// uuid7 returns an id that holds a time.
func uuid7(at time.Time, n int) string {
	ms := fmt.Sprintf("%012x", at.UnixMilli())
	return fmt.Sprintf("%s-%s-7000-8000-%012x", ms[:8], ms[8:], n)
}

// lines writes turns, the total of whose tokens goes on from total. stamp is the time of all lines, zero for their own.
func (th *thread) lines(turns []turn, total, from int, stamp time.Time, started, told bool) (all []string) {
	for i, said := range turns {
		at := th.began.Add(time.Duration(from+i)*time.Minute + time.Second)
		id := uuid7(at, from+i)
		add := func(kind, payload string) {
			at = at.Add(time.Second)
			written := at
			if !stamp.IsZero() {
				written = stamp
			}
			line := fmt.Sprintf(`{"timestamp":%q,"type":%q,"payload":%s}`, written.Format(milliseconds), kind, payload)
			all = append(all, line)
		}
		if started {
			add("event_msg", `{"type":"task_started","turn_id":"`+id+`"}`)
		}
		text := func(role, kind, text string) string {
			return `{"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":"` + text + `"}]}`
		}
		add("response_item", text("user", "input_text", said.prompt))
		if told {
			add("event_msg", `{"type":"user_message","message":"`+said.prompt+`"}`)
		}
		add("turn_context", `{"turn_id":"`+id+`","model":"gpt-5.6-sol"}`)
		add("response_item", text("assistant", "output_text", said.reply))
		total += said.used
		usage := func(n int) string {
			return fmt.Sprintf(`{"input_tokens":%d,"output_tokens":0,"total_tokens":%d}`, n, n)
		}
		info := `{"total_token_usage":` + usage(total) + `,"last_token_usage":` + usage(said.used) + `}`
		add("event_msg", `{"type":"token_count","info":`+info+`}`)
	}
	return all
}

func (th *thread) header(more string) string {
	at := th.began.Format(milliseconds)
	payload := fmt.Sprintf(`{"id":%q,"timestamp":%q,"cwd":"/proj",%s}`, th.id, at, more)
	return fmt.Sprintf(`{"timestamp":%q,"type":"session_meta","payload":%s}`, at, payload)
}

func (th *thread) used() (n int64) {
	for _, said := range th.turns {
		n += int64(said.used)
	}
	return n
}

func talkOf(turns []turn) string {
	var all []string
	for _, said := range turns {
		all = append(all, "user: "+said.prompt, "assistant: "+said.reply)
	}
	return strings.Join(all, "\n")
}

// Whatever a fork or a sub-agent repeats of its origin is counted once, and all that it has of its own arrives, also
// where it says and uses the very same. Its time, its turns and its header tell which is which.
func TestRandomForksCountOnceAndLoseNothing(t *testing.T) {
	said := rapid.Custom(func(t *rapid.T) turn {
		return turn{
			prompt: rapid.SampledFrom([]string{"go on", "split the work"}).Draw(t, "prompt"),
			reply:  rapid.SampledFrom([]string{"done", "ok"}).Draw(t, "reply"),
			used:   rapid.SampledFrom([]int{10, 20}).Draw(t, "used"),
		}
	})
	h, noon := newHouse(t), time.Date(2001, 9, 15, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		folder := t.TempDir()
		noon = noon.Add(24 * time.Hour)
		parent := thread{id: uuid7(noon, 1), began: noon, turns: rapid.SliceOfN(said, 1, 3).Draw(rt, "parent")}
		started, told := rapid.Bool().Draw(rt, "started"), rapid.Bool().Draw(rt, "told")
		write := func(th *thread, lines []string) {
			h.Rewrite(filepath.Join(folder, "rollout-"+th.began.Format("2006-01-02T15-04-05")+"-"+th.id+".jsonl"), lines...)
		}
		write(&parent, append([]string{parent.header(`"source":"cli"`)},
			parent.lines(parent.turns, 0, 0, time.Time{}, started, told)...))
		children := make([]thread, rapid.IntRange(1, 3).Draw(rt, "children"))
		copies, forks := make([][]turn, len(children)), make([]bool, len(children))
		for i := range children {
			began := noon.Add(time.Hour * time.Duration(i+1))
			child := thread{id: uuid7(began, i+2), began: began, turns: rapid.SliceOfN(said, 0, 3).Draw(rt, "child")}
			copies[i] = parent.turns[:rapid.IntRange(0, len(parent.turns)).Draw(rt, "copied")]
			header := `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parent.id + `","depth":1}}}`
			style := rapid.SampledFrom([]string{"sub-agent", "sub-agent with its origin", "fork"}).Draw(rt, "style")
			switch style {
			case "sub-agent with its origin":
				header += `,"forked_from_id":"` + parent.id + `"`
			case "fork":
				header, forks[i] = `"source":"cli","forked_from_id":"`+parent.id+`"`, true
			}
			lines := []string{child.header(header)}
			if style != "sub-agent" && len(copies[i]) > 0 {
				lines = append(lines, parent.header(`"source":"cli"`))
			}
			stamp := time.Time{}
			if rapid.Bool().Draw(rt, "stamped anew") {
				stamp = began
			}
			lines = append(lines, parent.lines(copies[i], 0, 0, stamp, started, told)...)
			total := 0
			for _, said := range copies[i] {
				total += said.used
			}
			write(&child, append(lines, child.lines(child.turns, total, 0, time.Time{}, started, told)...))
			children[i] = child
		}
		for range 2 {
			if done := h.Import(folder); len(done.Errors) > 0 {
				rt.Errorf("%+v", done.Errors)
			}
		}
		if s := h.Session(parent.id); s.InputTokens != parent.used() || h.Talk(s) != talkOf(parent.turns) {
			rt.Errorf("the parent used %d: %+v\n%s", parent.used(), s, h.Talk(s))
		}
		for i := range children {
			want := talkOf(children[i].turns)
			if forks[i] {
				want = talkOf(append(slices.Clone(copies[i]), children[i].turns...))
			}
			if s := h.Session(children[i].id); s.InputTokens != children[i].used() || h.Talk(s) != want {
				rt.Errorf("child %d used %d: %d\n%s\nwant\n%s", i, children[i].used(), s.InputTokens, h.Talk(s), want)
			}
		}
	})
}
