package codex_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit/samples"
)

// facts are what a file of the samples must give, by the samples' own README.
type facts struct {
	Read                             int
	Counted, Repeats, Empty          int
	Input, Cached, Output, Reasoning int64 // input with what was cached
	Calls, Results                   int
	Prompts                          int
	Said, Thought, Compactions       int // items of messages by the model, of its reasoning
}

func TestSamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		name, file, id string
		want           facts
	}{
		{"0.104, five turns", "localpush-0.104-12-40-23.jsonl", "019c8a4c-ed82-79a1-aa28-7738fc5ab61a", facts{
			702, 81, 80, 1, 7204025, 6836352, 36075, 17896, 105, 104, 5, 43, 69, 0,
		}},
		{"0.104, one turn", "localpush-0.104-12-41-04.jsonl", "019c8a4d-8f45-7010-8b5d-7fad920aa6f9", facts{
			417, 28, 27, 1, 1751428, 1651968, 14600, 4293, 118, 118, 1, 17, 26, 0,
		}},
		{"0.104, 33 turns and a compaction", "localpush-0.104-12-54-34.jsonl", "019c8a59-e9dd-71f0-9ae3-4079fe9726a9", facts{
			2722, 286, 286, 1, 33810485, 31621504, 133999, 42113, 372, 365, 38, 255, 219, 1,
		}},
		{"0.104, a turn that is open", "localpush-0.104-13-19-38.jsonl", "019c8a70-dda7-7f33-98ea-f30553347322", facts{
			19, 1, 0, 1, 34469, 3456, 431, 264, 1, 0, 1, 1, 1, 0,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			defer h.Examine()
			done := h.Import(sample(t, test.file))
			s := h.Session(test.id)
			got := facts{
				Read: done.Records.Read, Counted: len(h.Calls(s.ID)), Repeats: done.Records.Skipped["token count that repeats"],
				Empty: done.Records.Skipped["token count without usage"],
				Input: s.InputTokens + s.CacheReadTokens + s.CacheWriteTokens, Cached: s.CacheReadTokens, Output: s.OutputTokens,
			}
			for _, c := range h.Calls(s.ID) {
				got.Reasoning += c.ReasoningTokens
				if c.Model != "gpt-5.3-codex" || c.MessageID == nil {
					t.Errorf("a call of %q at %v", c.Model, c.MessageID)
				}
			}
			h.count(s, &got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if done.Records.Raw != 0 || len(done.Errors) != 0 {
				t.Errorf("%+v", done)
			}
			h.unchanged(sample(t, test.file))
		})
	}
}

// count adds what the rows of a session hold.
func (h *house) count(s session.Session, got *facts) {
	h.Helper()
	for _, m := range h.Entries(s.ID) {
		if m.Origin == session.Person {
			got.Prompts++
		}
		if m.Role == session.Tool {
			got.Results += len(m.Results())
			for _, p := range m.Results() {
				if p.CallPartID == nil || p.DurationMS == nil {
					h.Errorf("result %s has no call or took no time", p.CallID)
				}
			}
		}
		if m.Role != session.Assistant {
			continue
		}
		got.Calls += len(m.Calls())
		for _, p := range m.Parts {
			item := strings.Contains(string(p.Extra), `"item":`)
			switch {
			case p.Kind == session.PartText && item:
				got.Said++
			case p.Kind == session.PartReasoning && item:
				got.Thought++
			}
		}
	}
	got.Compactions = int(s.CompactionCount)
}

// unchanged is Unchanged of the rollout of one session, with the one that it goes on from.
func (h *house) unchanged(path string) {
	h.Helper()
	var beside []string
	if strings.Contains(path, "reverted") {
		beside = []string{sample(h.T, "constructed", "paginated-*")}
	}
	if again, copied := h.Unchanged(path, beside...); again.Unchanged != 1 || copied.Unchanged != 1 {
		h.Errorf("unchanged: %d of the file, %d of its copy", again.Unchanged, copied.Unchanged)
	}
}

func TestForkPairCountsOnce(t *testing.T) {
	h := newHouse(t)
	defer h.Examine()
	h.Import(sample(t, "codexbar-fork-parent.jsonl"))
	done := h.Import(sample(t, "codexbar-fork-child.jsonl"))
	parent, child := h.Session("parent-session"), h.Session("child-session")
	total := func(s session.Session) int64 {
		return s.InputTokens + s.CacheReadTokens + s.CacheWriteTokens + s.OutputTokens
	}
	if total(parent) != 24992392 || total(child) != 1809519 {
		t.Errorf("parent %d, child %d", total(parent), total(child))
	}
	if child.ParentID != parent.ID || child.ParentKind != session.ParentFork {
		t.Errorf("linked to %q as %q", child.ParentID, child.ParentKind)
	}
	if n := done.Records.Skipped["inherited from the session it was forked off"]; n < 180 || n > 182 {
		t.Errorf("%d inherited", n)
	}
	h.unchanged(sample(t, "codexbar-fork-child.jsonl"))
}

func TestConstructed(t *testing.T) {
	for _, test := range []struct {
		name   string
		files  []string
		id     string
		read   int // of the last file
		usage  int64
		talk   string
		raw    int
		titled string
	}{
		{
			"before envelopes",
			[]string{"bare-*"},
			"0198a000-0000-7000-8000-00000000000a", 11, 0,
			"", 0, "how many tests are there?",
		},
		{
			"fork's parent",
			[]string{"fork-parent-*"},
			"019a0000-0000-7000-8000-0000000000a1", 11, 9040,
			"user: name the entry point\nassistant: cmd/widget/main.go", 0, "name the entry point",
		},
		{
			"fork",
			[]string{"fork-parent-*", "fork-child-*"},
			"019b0000-0000-7000-8000-0000000000c1", 19, 10555,
			"user: name the entry point\nassistant: cmd/widget/main.go\nuser: and the config file?\n" +
				"assistant: config/widget.toml", 0, "",
		},
		{
			"fork without its parent",
			[]string{"fork-child-*"},
			"019b0000-0000-7000-8000-0000000000c1", 19, 10555,
			"user: and the config file?\nassistant: config/widget.toml", 0, "",
		},
		{
			"rolled back and torn",
			[]string{"rollback-*"},
			"019a1111-0000-7000-8000-000000000011", 27, 0,
			"user: write A\nassistant: A written\nuser: write D\nassistant: D written", 0, "write A",
		},
		{
			"paginated",
			[]string{"paginated-*"},
			"019c0000-0000-7000-8000-0000000000aa", 12, 7030,
			"user: list packages\nassistant: core, cli\nuser: delete cli", 0, "list packages",
		},
		{
			"reverted",
			[]string{"paginated-*", "reverted-*"},
			"019c0000-0000-7000-8000-0000000000aa", 6, 7030 + 8040,
			"user: list packages\nassistant: core, cli\nuser: keep cli, add docs\nassistant: added", 0, "list packages",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			var done history.Accounting
			for _, file := range test.files {
				done = h.Import(sample(t, "constructed", file))
			}
			s := h.Session(test.id)
			if usage := s.InputTokens + s.CacheReadTokens + s.CacheWriteTokens + s.OutputTokens; usage != test.usage ||
				done.Records.Read != test.read || done.Records.Raw != test.raw {
				t.Errorf("usage %d, %+v", usage, done)
			}
			if talk := h.Talk(s); test.talk != "" && talk != test.talk {
				t.Errorf("path\n%s", talk)
			}
			if test.titled != "" && s.Title != test.titled {
				t.Errorf("title %q", s.Title)
			}
			last := test.files[len(test.files)-1]
			h.unchanged(sample(t, "constructed", last))
		})
	}
}

func TestBareEraIsAConversation(t *testing.T) {
	h := newHouse(t)
	h.Import(sample(t, "constructed", "bare-*"))
	s := h.Session("0198a000-0000-7000-8000-00000000000a")
	var kinds []string
	for _, m := range h.Path(s) {
		kinds = append(kinds, fmt.Sprintf("%s/%s:%d", m.Role, m.Origin, len(m.Parts)))
	}
	if got := strings.Join(kinds,
		" "); got != "user/program:1 user/person:1 assistant/model:2 tool/tool:1 assistant/model:1" {
		t.Errorf("%s", got)
	}
	if s.GitBranch != "main" {
		t.Errorf("%+v", s)
	}
}

// The sweep holds one row of every kind and set of fields that was seen: nothing is lost, and
// nothing stops the import.
func TestKeySweep(t *testing.T) {
	h := newHouse(t)
	done := h.Import(sample(t, "agentsessions-key-sweep.jsonl"))
	if done.Records.Read != 118 || done.Sessions.New != 1 {
		t.Errorf("%+v", done)
	}
	for _, m := range h.Entries(h.Sessions()[0].ID) { // the mode is unknown: nothing is taken for a copy
		if strings.Contains(string(m.Metadata), "inherited") {
			t.Errorf("message %d is inherited", m.Seq)
		}
	}
	h.unchanged(sample(t, "agentsessions-key-sweep.jsonl"))
}

func TestWholeFolder(t *testing.T) {
	h := newHouse(t)
	done := h.Import(filepath.Join(samples.Dir(t), "codex"))
	if done.Sessions.New != 12 || len(done.Errors) > 10 {
		t.Errorf("%+v", done)
	}
}
