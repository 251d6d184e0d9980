package claudecode_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
	"sessiond/internal/testkit/samples"
)

// facts are what a file of the samples must give, by the samples' own README.
type facts struct {
	Rows, Progress             int
	Responses, Calls, Results  int
	Input, Written, Read, Out  int64
	Compactions, Side, Persons int
}

func TestSamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       facts
	}{
		{
			"2.1.36, compaction and queue", "entire-2.1.36-compaction-queue.jsonl",
			facts{370, 121, 50, 85, 85, 58, 342346, 4251079, 2413, 1, 0, 3},
		},
		{
			"2.1.5, compaction and summaries", "entire-2.1.5-compaction-summaries.jsonl",
			facts{468, 0, 118, 138, 138, 1699, 297509, 12933871, 24303, 1, 0, 6},
		},
		{
			"2.1.34, sub-agent in progress rows", "entire-2.1.34-agent-progress.jsonl",
			facts{117, 21, 14, 16, 15, 17, 19056, 441175, 2075, 0, 1, 2},
		},
		{
			"2.1.12, local command", "entire-2.1.12-local-command.jsonl",
			facts{154, 40, 22, 31, 31, 620, 103404, 909116, 89, 0, 0, 4},
		},
		{
			"2.1.12, two session ids", "entire-2.1.12-two-session-ids.jsonl",
			facts{221, 24, 56, 58, 58, 454, 173677, 3812944, 157, 0, 0, 3},
		},
		{
			"2.1.12, microcompaction", "entire-2.1.12-microcompact.jsonl",
			facts{257, 25, 57, 55, 55, 478, 338089, 5118558, 107, 1, 0, 5},
		},
		{
			"1.0.108, inline sub-agents", "ccviewer-1.0.108-inline-sidechain.jsonl",
			facts{53, 0, 20, 21, 21, 129, 47747, 324259, 3629, 0, 2, 0},
		},
		{"1.0.98", "ccviewer-1.0.98-plain.jsonl", facts{29, 0, 7, 12, 12, 93, 12698, 103219, 953, 0, 0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			defer h.Examine()
			done := h.Import(sample(t, test.file))
			got := facts{Rows: done.Records.Read, Progress: done.Records.Skipped["progress of a tool or hook"]}
			for _, s := range h.Sessions() {
				child := s.ParentKind == session.ParentChild
				if child {
					got.Side++
				}
				if child && strings.Contains(test.file, "2.1.34") {
					continue // the README counts the trunk alone
				}
				h.count(s, &got)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if done.Records.Raw != 0 || len(done.Errors) != 0 {
				t.Errorf("%+v", done)
			}
			h.Unchanged(sample(t, test.file))
		})
	}
}

// count adds what the rows of a session hold.
func (h *house) count(s session.Session, got *facts) {
	h.Helper()
	for _, m := range h.Entries(s.ID) {
		if m.Origin == session.Person {
			got.Persons++
		}
		got.Calls += len(m.Calls())
		got.Results += len(m.Results())
		for _, p := range m.Results() {
			if p.CallPartID == nil || p.DurationMS == nil {
				h.Errorf("result %s has no call or took no time", p.CallID)
			}
		}
	}
	got.Responses += len(h.Calls(s.ID))
	got.Input += s.InputTokens
	got.Written += s.CacheWriteTokens
	got.Read += s.CacheReadTokens
	got.Out += s.OutputTokens
	got.Compactions += int(s.CompactionCount)
}

// The sweep holds one row of every kind and set of fields that was seen: nothing is lost, and
// nothing stops the import.
func TestKeySweep(t *testing.T) {
	h := newHouse(t)
	done := h.Import(sample(t, "agentsessions-key-sweep.jsonl"))
	if done.Records.Read != 89 || done.Sessions.New == 0 {
		t.Errorf("%+v", done)
	}
	h.Unchanged(sample(t, "agentsessions-key-sweep.jsonl"))
}

func TestWholeFolder(t *testing.T) {
	h := newHouse(t)
	done := h.Import(filepath.Join(samples.Dir(t), "claude-code"))
	// Nine files, a sub-agent in progress rows, two in a main file, and what the sweep holds.
	if done.Sessions.New != 13 || len(done.Errors) > 10 {
		t.Errorf("%+v", done)
	}
}
