package openclaw_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
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
	testkit.Check(t, json.Unmarshal([]byte(historytest.Read(h, filepath.Join(samples.Dir(t), "openclaw", "constructed", "expected.json"))), &all))
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
	if diff := cmp.Diff(want, done.Records); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
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
		got[id] = facts{s.Key, s.Generation, s.Kind, s.Title, parents[s.ParentID], s.ParentKind, s.MessageCount, s.Directory, s.Model}
	}
	const clawd, sonnet = "/home/ana/clawd", "claude-sonnet-4-5"
	want := map[string]facts{
		garden: {"agent:main:main", 1, "chat", "Garden plan", "", "", 24, clawd, sonnet},
		fork:   {"", 0, "chat", "When should I sow peas?", garden, "fork", 2, clawd, sonnet},
		child:  {"agent:main:subagent:7d0a5a55-0d7b-4a51-a6d5-6f0f3f0b9a01", 1, "subagent", "prices", garden, "child", 2, clawd, sonnet},
		topic:  {"agent:main:telegram:group:-1001:topic:7", 1, "chat", "Garden", "", "", 5, clawd, sonnet},
		old:    {"", 0, "chat", "old one", "", "", 4, "/home/ana", "claude-opus-4-1"},
		before: {"", 0, "chat", "yesterday", "", "", 2, clawd, sonnet},
		empty:  {"agent:main:telegram:dm:nobody", 1, "chat", "", "", "", 0, "", ""},
		work:   {"agent:work:main", 2, "chat", "cold one", "", "", 4, clawd, sonnet},
		put:    {"agent:work:main", 1, "chat", "before the reset", "", "", 1, clawd, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s := all[garden]; s.Window == nil || *s.Window != 200000 || !strings.Contains(string(s.Metadata), `"futureField":{"kept":"raw"}`) {
		t.Errorf("window %v, metadata %s", s.Window, s.Metadata)
	}
	if s := all[child]; !strings.Contains(string(s.Metadata), `"task":"compare seed prices"`) {
		t.Errorf("metadata %s", s.Metadata)
	}
	if s := all[before]; s.EndedAt == nil || s.EndedAt.SQL() != "2026-03-14 08:59:59.000" {
		t.Errorf("put away %v", s.EndedAt)
	}
}
