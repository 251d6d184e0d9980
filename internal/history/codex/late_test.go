package codex_test

import (
	"testing"

	"sessiond/internal/session"
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
