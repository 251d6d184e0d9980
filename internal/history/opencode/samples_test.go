package opencode_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

const (
	first  = "ses_e02f3d9b4ffep4NZtCdHUT19vb"
	child1 = "ses_e02f3cd81ffePa5dBMr3FAB5Ae"
	second = "ses_e02f3c856ffeidlfRSOZVOKdiJ"
	child2 = "ses_e02f3976affel1elehd69y5owL"
	fork   = "ses_e02f36b2bffey7jv8TnlkYo9bi"
	third  = "ses_e02f35e5affejfOm9AdvdAbJj4"
)

// tally is what of opencode's own counts can be found in a session here.
type tally struct {
	messages, user, assistant, calls, results int
	cost                                      float64
}

func (h *house) tally(id string) tally {
	h.Helper()
	s := h.Session(id)
	var got tally
	for _, m := range h.Entries(s.ID) {
		_, suffix, _ := strings.Cut(m.ExternalID, "#")
		got.calls += len(m.Calls())
		got.results += len(m.Results())
		if strings.HasSuffix(suffix, "r") {
			continue // the results of the reply before it
		}
		got.messages++
		if m.Role == session.Assistant {
			got.assistant++
		} else {
			got.user++
		}
	}
	if s.CostNanoUSD != nil {
		got.cost = math.Round(float64(*s.CostNanoUSD)/100) / 1e7
	}
	return got
}

func TestOpencodeSamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		name, folder string
		new          int
		want         history.Records
		sessions     map[string]tally
	}{
		{"generation 1", "g1-json-1.1.65", 3, history.Records{
			Read: 3 + 14 + 36 + 3 + 1 + 3 + 1, Imported: 3 + 14 + 36 + 3,
			Skipped: map[string]int{"bookkeeping": 2, "file diffs": 3},
		}, map[string]tally{first: {9, 3, 6, 4, 4, 0.0360115}}},
		{"generation 2, not checkpointed", "g2-db-1.2.1", 3, history.Records{
			Read: 3 + 17 + 43 + 3 + 5, Imported: 3 + 17 + 43 + 3,
			Skipped: map[string]int{"bookkeeping": 3, "without conversations, not opened": 2},
		}, nil},
		{"generation 3", "g3-db-1.18.33", 6, history.Records{
			Read: 6 + 68 + 156 + 3 + 256 + 15, Imported: 6 + 40 + 91 + 3, Skipped: map[string]int{
				"copy of " + first: 28 + 65, "event log": 256, "bookkeeping": 10, "without conversations, not opened": 5,
			},
		}, map[string]tally{
			first: {28, 11, 17, 7, 7, 0.1705107}, child1: {3, 1, 2, 1, 1, 0.0077113}, second: {2, 1, 1, 0, 0, 0.0057635},
			child2: {3, 1, 2, 1, 1, 0.0064003}, fork: {2, 1, 1, 0, 0, 0.0041638}, third: {2, 1, 1, 0, 0, 0.0039328},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			folder := h.copyOf(test.folder)
			done := h.Import(folder)
			if done.Sessions != (history.Sessions{New: test.new}) || len(done.Errors) != 0 {
				t.Errorf("%+v %v", done.Sessions, done.Errors)
			}
			testkit.Equal(t, test.want, done.Records)
			for id, want := range test.sessions {
				if got := h.tally(id); got != want {
					t.Errorf("%s: %+v, want %+v", id, got, want)
				}
			}
			before := h.dump()
			if done := h.Import(folder); done.Records.Imported+done.Records.Raw != 0 || done.Sessions.Unchanged < test.new ||
				h.dump() != before {
				t.Errorf("the second import did something: %+v", done)
			}
		})
	}
}

// dump writes what the store holds.
func (h *house) dump() string {
	h.Helper()
	return h.Dump(first, child1, second, child2, fork, third)
}

// One history, found in all generations, comes in once, in whatever order.
func TestOpencodeGenerationsAreOneHistory(t *testing.T) {
	all := newHouse(t)
	if done := all.Import(sample(t)); len(done.Errors) != 0 || done.Records.Raw != 0 || done.Sessions.New != 8 {
		t.Errorf("all at once: %+v", done)
	}
	folders := []string{"g1-json-1.1.65", "g2-db-1.2.1", "g3-db-1.18.33", "exports"}
	for _, order := range [][]int{{0, 1, 2, 3}, {2, 1, 0, 3}, {3, 2, 1, 0}} {
		h := newHouse(t)
		for _, i := range order {
			h.Import(h.copyOf(folders[i]))
		}
		total := 0.0
		for id, want := range map[string]tally{
			first: {28, 11, 17, 7, 7, 0.1705107}, child1: {3, 1, 2, 1, 1, 0.0077113}, second: {2, 1, 1, 0, 0, 0.0057635},
			child2: {3, 1, 2, 1, 1, 0.0064003}, third: {2, 1, 1, 0, 0, 0.0039328},
		} {
			got := h.tally(id)
			if got != want {
				t.Errorf("order %v, %s: %+v, want %+v", order, id, got, want)
			}
			total += got.cost
		}
		if got := total + h.tally(fork).cost; math.Abs(got-0.1984824) > 1e-9 {
			t.Errorf("order %v: %.7f dollars in all, of which the copies count once", order, got)
		}
	}
}

func TestOpencodeFamilies(t *testing.T) {
	h := newHouse(t)
	h.Import(h.copyOf("g3-db-1.18.33"))
	origin, child, copied := h.Session(first), h.Session(child2), h.Session(fork)
	if child.ParentID != origin.ID || child.ParentKind != session.ParentChild || child.Kind != "subagent" ||
		h.Entries(child.ID)[0].Origin != session.Model {
		t.Errorf("%+v", child)
	}
	if copied.ParentID != origin.ID || copied.ParentKind != session.ParentFork || copied.MessageCount != 2 {
		t.Errorf("%+v", copied)
	}
	if link, err := h.Store.Link(t.Context(), child); err != nil || link == nil || link.Message == nil ||
		link.Call != "call_22_0" {
		t.Errorf("what started the child: %+v %v", link, err)
	}
	// Both of the fork's own messages were taken back, but for the next prompt.
	if copied.Head == nil || copied.Head.Session != origin.ID || *copied.HeadID != *origin.HeadID {
		t.Errorf("the head is %v, the origin's %v", copied.Head, origin.Head)
	}
	if !strings.Contains(string(copied.Metadata), `"revert":{"messageID":"msg_1fd0c9843001kFTEgaKUiyVP7V"`) {
		t.Errorf("%s", copied.Metadata)
	}
	for _, s := range []session.Session{origin, copied} {
		overlay, err := h.Store.Effective(t.Context(), s)
		if err != nil || overlay == nil || !strings.HasPrefix(overlay.Summary, "## Goal") {
			t.Errorf("%s: %+v %v", s.ID, overlay, err)
		}
	}
	if origin.Project != "/home/dev/demo" {
		t.Errorf("project %q", origin.Project)
	}
	if !strings.Contains(string(origin.Metadata), `"todos":[{"content":"Read greet.py"`) {
		t.Errorf("%s", origin.Metadata)
	}
	if todos := testkit.Must(h.Store.State(t.Context(), origin.ID,
		"opencode.todos"))(t); !strings.HasPrefix(string(todos.Value), `[{"content":"Read greet.py"`) {
		t.Errorf("%s", todos.Value)
	}
}

func TestOpencodeUsage(t *testing.T) {
	h := newHouse(t)
	h.Import(h.copyOf("g3-db-1.18.33"), sample(t, "exports", "new-token-form-1.18.33.json"))
	purposes := map[session.Purpose]int{}
	for _, c := range h.Calls(h.Session(first).ID) {
		purposes[c.Purpose]++
		if c.ReasoningTokens > 0 && (c.ReasoningTokens != 25 || c.OutputTokens != 65 || c.InputTokens != 4665 ||
			c.CacheReadTokens != 6997) {
			t.Errorf("the old form, reasoning inside output: %+v", c)
		}
		if c.PriceSource != "reported" || c.MessageID == nil || c.LatencyMS == nil {
			t.Errorf("%+v", c)
		}
	}
	s := h.Session(first)
	summary := testkit.Must(h.Store.Compactions(t.Context(), s.ID))(t)[0].Summary
	for _, m := range h.Entries(s.ID) {
		if m.Talk == session.Said && m.Text() == summary {
			t.Errorf("the text of the compaction is a reply: %d", m.Seq)
		}
	}
	if purposes[session.PurposeChat] != 15 || purposes[session.PurposeSummary] != 1 {
		t.Errorf("%v", purposes)
	}
}

func TestOpencodePruneAndTail(t *testing.T) {
	h := newHouse(t)
	done := h.Import(sample(t, "exports", "prune-and-tail-1.18.33.json"))
	if done.Sessions.New != 1 || done.Records.Imported != 1+39+93 || len(done.Errors) != 0 {
		t.Errorf("%+v", done)
	}
	all, _, err := h.Store.Sessions(t.Context(), store.Filter{}, store.Page{})
	testkit.Check(t, err)
	records := testkit.Must(h.Store.Compactions(t.Context(), all[0].ID))(t)
	pruned := 0
	for _, c := range records {
		switch c.Strategy {
		case session.StrategyPrune:
			var details session.CompactionDetails
			if err := json.Unmarshal(c.Details, &details); err != nil || c.Status != session.StatusDone {
				t.Errorf("%+v %v", c, err)
			}
			pruned += len(details.Pruned)
		case session.StrategySummarize:
			path := testkit.Must(h.Store.Path(t.Context(), *all[0].HeadID, 0))(t)
			before := ""
			for i := range path {
				if path[i].RowID == *c.FirstKeptID && before != path[i-1].ExternalID {
					t.Errorf("%s is kept, the overlay ends elsewhere than at %s", path[i].ExternalID, path[i-1].ExternalID)
				}
				if path[i].RowID == *c.ThroughID {
					before = path[i].ExternalID
				}
			}
		}
	}
	if pruned != 9 || all[0].CompactionCount != 2 {
		t.Errorf("%d outputs were pruned, %d compactions", pruned, all[0].CompactionCount)
	}
}
