package codex_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/codex"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

// A thread that came before the one that it was forked from, or that started it, is linked when
// that comes, though its rollout does not change.
func TestThreadIsLinkedWhenItsOriginComes(t *testing.T) {
	for _, test := range []struct{ name, more, kind string }{
		{"a fork", `"source":"cli","forked_from_id":"two"`, session.ParentFork},
		{"a sub-agent", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"two","depth":1}}}`, session.ParentChild},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			fork := h.Write("rollout-2.jsonl", meta("one", test.more), says("user", "a"), says("assistant", "b"))
			h.Import(fork)
			rows := h.Rows()
			if h.Import(fork); h.Rows() != rows {
				t.Error("reading it again changed something")
			}
			h.Import(h.Write("rollout-1.jsonl", meta("two", `"source":"cli"`), says("user", "c"), says("assistant", "d")))
			h.Import(fork)
			s := h.Session("one")
			if s.ParentID != h.Session("two").ID || s.ParentKind != test.kind || s.MessageCount != 2 {
				t.Errorf("%+v", s)
			}
			rows = h.Rows()
			if h.Import(fork); h.Rows() != rows {
				t.Error("linking it twice changed something")
			}
		})
	}
}

// Threads that name one another are linked once, and what they say later comes in.
func TestThreadsThatComeFromOneAnother(t *testing.T) {
	for _, test := range []struct{ name, one, two string }{
		{"forks", `"source":"cli","forked_from_id":"two"`, `"source":"cli","forked_from_id":"one"`},
		{"sub-agents", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"two","depth":1}}}`, `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"one","depth":1}}}`},
		{"a fork of its own sub-agent", `"source":"cli","forked_from_id":"two"`, `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"one","depth":1}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			one := h.Write("rollout-1.jsonl", meta("one", test.one), says("user", "a"), says("assistant", "b"))
			two := h.Write("rollout-2.jsonl", meta("two", test.two), says("user", "c"), says("assistant", "d"))
			for range 2 {
				for _, path := range []string{one, two, one} {
					if done := h.Import(path); len(done.Errors) > 0 {
						t.Fatalf("%+v", done.Errors)
					}
				}
				h.Append(one, says("user", "e")+"\n"+says("assistant", "f")+"\n")
			}
			h.Import(one)
			if s := h.Session("one"); s.MessageCount != 6 {
				t.Errorf("%+v", s)
			}
			h.Examine()
		})
	}
}

// A rollout that was quiet within a reply goes on with it: each of its records counts once.
func TestRecordsOfAReplyThatGoesOnCountOnce(t *testing.T) {
	h := newHouse(t)
	path := h.Write("rollout-1.jsonl", meta("one", `"source":"cli"`), says("user", "a"), says("assistant", "b"))
	sum := h.Import(path).Records
	h.Append(path, says("assistant", "c")+"\n"+says("user", "d")+"\n")
	sum.Add(h.Import(path).Records)
	if sum.Read != 5 || sum.Imported != 5 {
		t.Errorf("%+v", sum)
	}
}

// A sub-agent is linked to the call that started it, whichever of the two rollouts comes first, and also if
// the call comes in before its output.
func TestSubAgentIsLinkedToItsCall(t *testing.T) {
	call := item(`{"type":"function_call","call_id":"c","name":"spawn_agent","arguments":"{}"}`)
	output := func(says string) string {
		return item(`{"type":"function_call_output","call_id":"c","output":` + string(session.JSONOf(says)) + `}`)
	}
	header := meta("two", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"one","depth":1,"agent_path":"/root/scout"}}}`)
	for _, test := range []struct{ name, says string }{
		{"by the output of the call", output(`{"agent_id":"two"}`)},
		{"by its path", output(`{"task_name":"/root/scout"}`) + "\n" + event(`{"type":"sub_agent_activity","event_id":"c","agent_thread_id":"two","kind":"started"}`)},
		{"by an event", event(`{"type":"collab_agent_spawn_end","call_id":"c","new_thread_id":"two"}`) + "\n" + output("ok")},
		{"by an item", event(`{"type":"item_completed","item":{"type":"CollabAgentToolCall","id":"c","receiver_thread_ids":["two"]}}`) + "\n" + output("ok")},
		{"by an activity", event(`{"type":"item_completed","item":{"type":"SubAgentActivity","id":"c","kind":"started","agent_thread_id":"two"}}`) + "\n" + output("ok")},
	} {
		for _, order := range []string{
			"parent, child", "child, parent", "child, half a parent, child, parent",
			"half a parent, child, parent", "half a parent, parent, child",
		} {
			t.Run(test.name+"/"+order, func(t *testing.T) {
				h := newHouse(t)
				parent, child := filepath.Join(t.TempDir(), "rollout-1.jsonl"), filepath.Join(t.TempDir(), "rollout-2.jsonl")
				half := []string{meta("one", `"source":"cli"`), says("user", "a"), item(`{"type":"function_call","call_id":"b","name":"exec_command","arguments":"{}"}`), output("x"), call}
				for _, step := range strings.Split(order, ", ") {
					switch step {
					case "child":
						h.Rewrite(child, header, says("user", "look"), says("assistant", "seen"))
						h.Import(child)
					case "parent":
						h.Rewrite(parent, append(half, test.says, says("assistant", "b"))...)
						h.Import(parent)
					default:
						h.Rewrite(parent, half...)
						h.Import(parent)
					}
				}
				h.Import(child)
				one := h.Session("one")
				link, err := h.Store.Link(t.Context(), h.Session("two"))
				if err != nil || link == nil || link.Parent != one.ID || link.Call != "c" || link.Message == nil {
					t.Fatalf("%+v %v", link, err)
				}
				for _, m := range h.Entries(one.ID) {
					if makes := len(m.Calls()) > 0 && m.Calls()[0].CallID == "c"; makes != (m.ID == *link.Message) {
						t.Errorf("it hangs on %v", link.Message)
					}
				}
				rows := h.Rows()
				if h.Import(parent, child); h.Rows() != rows {
					t.Error("reading them again changed something")
				}
				h.Examine()
			})
		}
	}
}

// A rollout that is written anew with another name, or another beginning, brings its new title.
func TestRewrittenRolloutBringsItsTitle(t *testing.T) {
	named := func(name string) string {
		return event(`{"type":"thread_name_updated","thread_id":"one","thread_name":"` + name + `"}`)
	}
	for _, test := range []struct {
		name   string
		before []string
		after  []string
		want   string
	}{
		{"another name", []string{says("user", "a"), named("First")}, []string{says("user", "a"), named("Second")}, "Second"},
		{
			"another name before what was said",
			[]string{named("First"), says("user", "a")},
			[]string{named("Second"), says("user", "a")},
			"Second",
		},
		{"a name at last", []string{says("user", "a")}, []string{named("Second"), says("user", "a")}, "Second"},
		{
			"another beginning",
			[]string{says("user", "a"), says("assistant", "b")},
			[]string{says("user", "x"), says("assistant", "b")},
			"x",
		},
		{
			"the name of another thread",
			[]string{says("user", "a")},
			[]string{says("user", "a"), strings.Replace(named("Theirs"), `"one"`, `"two"`, 1)},
			"a",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.Write("rollout-1.jsonl", append([]string{meta("one", `"source":"cli"`)}, test.before...)...)
			h.Import(path)
			h.Rewrite(path, append([]string{meta("one", `"source":"cli"`)}, test.after...)...)
			h.Import(path)
			if got := h.Session("one").Title; got != test.want {
				t.Errorf("title %q", got)
			}
			h.unchanged(path)
		})
	}
}

// An index of names that is written anew brings the names that it has now.
func TestRewrittenIndexBringsItsNames(t *testing.T) {
	h, home := homeWith(t, "a", "b")
	index := filepath.Join(home, "session_index.jsonl")
	h.Rewrite(index, `{"id":"a","thread_name":"First"}`, `{"id":"b","thread_name":"Other"}`)
	h.Import()
	h.Rewrite(index, `{"id":"a","thread_name":"First"}`, `{"id":"b","thread_name":"Named"}`,
		`{"id":"a","thread_name":"Second"}`)
	h.Import()
	h.Rewrite(index, `{"id":"a","thread_name":"Third."}`)
	h.Import()
	if a, b := h.Session("a").Title, h.Session("b").Title; a != "Third." || b != "Named" {
		t.Errorf("%q %q", a, b)
	}
}

// A problem names its line: counted with blank lines and with what shares a line, in a reading that goes on, in
// a compressed rollout, and of the record within a reply that is meant.
func TestProblemsNameTheirLines(t *testing.T) {
	bad := item(`{"type":"function_call"}`)
	head := meta("one", `"source":"cli"`)
	for _, test := range []struct {
		name  string
		lines []string // the second half of them is read later
		want  []int
	}{
		{"alone", []string{head, says("user", "a"), bad, says("user", "b"), "{torn", says("user", "c")}, []int{3, 5}},
		{"within a reply", []string{
			head, says("user", "a"), says("assistant", "b"), bad, says("assistant", "c"),
			says("assistant", "d"), says("user", "e"), says("user", "f"),
		}, []int{4}},
		{
			"behind blank lines",
			[]string{"", head, "", says("user", "a"), " ", bad, "", "{torn", says("user", "b"), ""},
			[]int{6, 8},
		},
		{"on a line with others", []string{
			head + says("user", "a"), says("user", "b") + bad, says("user", "c") + `{"torn`,
			says("user", "d") + says("user", "e") + bad,
		}, []int{2, 3, 4}},
		{"of a base that is not here", []string{"", meta("one", `"source":"cli","history_base":{"thread_id":"019d0000-0000-7000-8000-0000000000d1","end_ordinal_exclusive":9}`), says("user", "a"), says("user", "b")}, []int{2}},
	} {
		for _, how := range []string{"whole", "in halves", "compressed"} {
			t.Run(test.name+"/"+how, func(t *testing.T) {
				h, name := newHouse(t), "rollout-1.jsonl"
				if how == "compressed" {
					name += ".zst"
				}
				path, half := filepath.Join(t.TempDir(), name), len(test.lines)
				if how == "in halves" {
					half /= 2
				}
				var got []int
				for _, end := range []int{half, len(test.lines)} {
					text := strings.Join(test.lines[:end], "\n") + "\n"
					if how == "compressed" {
						text = string(pack(t, text))
					}
					overwrite(t, path, text)
					for _, e := range h.Import(path).Errors {
						got = append(got, e.Line)
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("lines %v, want %v", got, test.want)
				}
			})
		}
	}
}

// A compressed rollout that is read again, as one that waits for its origin, counts and reports its records once.
func TestCompressedRolloutIsReadOnce(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(t.TempDir(), "rollout-2.jsonl.zst")
	text := meta("one", `"source":"cli","forked_from_id":"two"`) + "\n{torn\n" +
		strings.Repeat(says("user", "a")+"\n", 100)
	overwrite(t, path, string(pack(t, text)))
	h.Import(path)
	h.Import(h.Write("rollout-1.jsonl", meta("two", `"source":"cli"`), says("user", "c")))
	if done := h.Import(path); len(done.Errors) > 0 || done.Records.Read > 0 || h.Session("one").ParentID == "" {
		t.Errorf("%+v", done)
	}
}

// Of two items on one line an event says of one that a person wrote it.
func TestWitnessOfOneOfTwoItemsOnALine(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write("rollout-1.jsonl", meta("one", `"source":"cli"`), says("user", "told")+says("user", "typed"),
		event(`{"type":"user_message","message":"typed"}`)))
	var persons []string
	for _, m := range h.Entries(h.Session("one").ID) {
		if m.Origin == session.Person {
			persons = append(persons, m.Text())
		}
	}
	if !slices.Equal(persons, []string{"typed"}) {
		t.Errorf("%q", persons)
	}
}

// What waits at the end of a rollout is counted once, also where records share a line, lines are blank, or the last
// one has no end.
func TestWaitingRecordsAreCountedOnce(t *testing.T) {
	for _, test := range []struct {
		name, end string
		want      int
	}{
		{"two on a line", says("assistant", "b") + says("assistant", "c") + "\n", 2},
		{"a blank line among them", says("assistant", "b") + "\n\n" + says("assistant", "c") + "\n", 3},
		{"no end of the last line", says("assistant", "b") + "\n" + says("assistant", "c"), 2},
		{"the beginning of a line", says("assistant", "b") + "\n" + `{"timestamp"`, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Source = codex.New(historytest.NoEnv, time.Now)
			path := h.Write("rollout-1.jsonl", meta("one", `"source":"cli"`), says("user", "a"),
				event(`{"type":"user_message","message":"a"}`))
			h.Append(path, test.end)
			if done := h.Import(path).Records; done.Waiting != test.want || done.Read != 3+test.want {
				t.Errorf("%+v", done)
			}
			h.Source = quiet()
			if done := h.Import(path).Records; done.Read != test.want || done.Waiting > 1 {
				t.Errorf("then %+v", done)
			}
		})
	}
}
