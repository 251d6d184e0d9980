package contextmgr

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

func TestPruneConformance(t *testing.T) {
	for _, c := range conformance(t, "opencode.prune") {
		t.Run(c.ID, func(t *testing.T) {
			settings := into[struct{ Prune bool }](t, c.Given.Settings)
			numbers := testkit.Must(Resolve([]Layer{{"session", Settings{Preset: ptr("opencode")}}}, 200_000, 0))(t)
			rule := numbers.pruneRule()
			if settings.Prune {
				rule.Minimum = 20_000
			}
			rule.Threshold = 0 // sessiond's own rule for a turn over the threshold
			path := opencodeEntries(t, c)
			got := map[string]any{}
			if c.Given.File != "" {
				path = opencodeExport(t, c)
				parts := 0
				for i := range path {
					parts += len(path[i].Outputs)
				}
				got["tool_parts"] = float64(parts)
			}
			outputs, freed := Prune(path, rule)
			if c.Given.File != "" {
				got["pruned_count"] = float64(len(outputs))
			}
			if outputs == nil {
				outputs = []string{}
			}
			pruned := make([]any, len(outputs))
			for i, name := range outputs {
				pruned[i] = name
			}
			got["pruned"], got["freed_tokens"] = pruned, float64(freed)
			equal(t, got, c.Expect)
		})
	}
}

// opencodeEntries reads a log in which outputs are parts of the replies that call the tools.
func opencodeEntries(t *testing.T, c confCase) []Entry {
	t.Helper()
	var path []Entry
	for _, e := range c.Given.Entries {
		entry := Entry{Kind: session.KindMessage, Role: session.Role(e.Role), InContext: true}
		if string(e.Summary) == "true" {
			entry.Kind = session.KindBranchSummary
		}
		for _, raw := range e.Parts {
			p := into[struct {
				ID, Tool, Status string
				Tokens           int64
				Chars            float64
				Pruned           bool
			}](t, raw)
			if p.Chars > 0 {
				p.Tokens = int64(math.Floor(p.Chars/4 + 0.5))
			}
			if p.Status == "running" || p.Status == "pending" {
				continue // no output yet
			}
			entry.Outputs = append(entry.Outputs, Output{
				Name: p.ID, Tool: p.Tool, Tokens: p.Tokens, Failed: p.Status == "error",
				Pruned: p.Pruned,
			})
		}
		path = append(path, entry)
	}
	return path
}

// opencodeExport reads a real export up to the case's message, without its marks.
func opencodeExport(t *testing.T, c confCase) []Entry {
	t.Helper()
	raw := testkit.Must(os.ReadFile(filepath.Join(samples.Dir(t), strings.TrimPrefix(c.Given.File, "samples/"))))(t)
	export := into[struct {
		Messages []struct {
			Info struct {
				ID, Role string
				Summary  any
			}
			Parts []struct {
				ID, Type, Tool string
				State          struct{ Status, Output string }
			}
		}
	}](t, raw)
	var path []Entry
	for _, m := range export.Messages {
		if m.Info.ID == c.Given.Before {
			break
		}
		entry := Entry{Kind: session.KindMessage, Role: session.Role(m.Info.Role), InContext: true}
		if summary, _ := m.Info.Summary.(bool); summary {
			entry.Kind = session.KindBranchSummary
		}
		for _, p := range m.Parts {
			if p.Type == "tool" {
				entry.Outputs = append(entry.Outputs, Output{
					Name: p.ID, Tool: p.Tool, Failed: p.State.Status != "completed",
					Tokens: int64(math.Floor(float64(len(utf16.Encode([]rune(p.State.Output))))/4 + 0.5)),
				})
			}
		}
		path = append(path, entry)
	}
	return path
}

func TestTurnOverTheThresholdIsPrunedUpToItsLastReplies(t *testing.T) {
	path := []Entry{{Kind: session.KindMessage, Role: session.User, InContext: true}}
	for i := range 6 {
		path = append(path,
			Entry{Kind: session.KindMessage, Role: session.Assistant, InContext: true, Tokens: 10},
			Entry{
				Kind: session.KindMessage, Role: session.Tool, InContext: true, Tokens: 1000,
				Outputs: []Output{{Name: fmt.Sprint(i), Tokens: 1000}},
			})
	}
	rule := PruneRule{Protect: 500, Minimum: 100}
	if got, _ := Prune(path, rule); got != nil {
		t.Errorf("a turn of usual size lost %v", got)
	}
	rule.Threshold = 5000
	if got, freed := Prune(path, rule); strings.Join(got, " ") != "0 1 2 3" || freed != 4000 {
		t.Errorf("hid %v, %d tokens; want all but the outputs of the last two replies", got, freed)
	}
}

// work appends a turn with a long tool output.
func (r *rig) work(call string, tokens int) {
	r.t.Helper()
	r.append(
		text(session.User, "Look at "+call),
		calling(call),
		answering(call, call+" says "+filler(tokens)),
		text(session.Assistant, "I saw "+call),
	)
}

func pruning() Settings {
	return Settings{
		PruneProtect: ptr[int64](1000), PruneMinimum: ptr[int64](1000), KeepRecentMessages: ptr[int64](2),
		KeepRecentTokens: ptr[int64](800),
	}
}

func TestOldOutputIsPrunedBeforeASummary(t *testing.T) {
	r := newRig(t, 10_000)
	for i := range 9 {
		r.work(fmt.Sprint("file", i), 900)
	}
	before := wire(r.read(Budget{Settings: pruning(), Window: 40_000, At: &Position{HeadID: r.session().HeadID}}))
	v := r.turn(TurnInput{Budget: Budget{Settings: pruning()}})
	all := r.compactions()
	if len(all) != 1 || all[0].Strategy != session.StrategyPrune || all[0].Status != session.StatusDone {
		t.Fatalf("%+v", all)
	}
	if v.Tokens.Total > v.Tokens.Threshold*3/4 {
		t.Errorf("%d tokens are left of a threshold of %d", v.Tokens.Total, v.Tokens.Threshold)
	}
	pruned := wire(v)
	for _, want := range []string{
		"Look at file0", "I saw file0", "[output of bash hidden to make room, about",
		"the original is message " + string(r.id) + ".3]", "file8 says",
	} {
		if !strings.Contains(pruned, want) {
			t.Errorf("the context lacks %q:\n%.2000s", want, pruned)
		}
	}
	if strings.Contains(pruned, "file0 says") {
		t.Error("the oldest output is still there")
	}

	// It stays pruned, and can be undone and redone.
	r.talk(1, 20)
	if again := wire(r.turn(TurnInput{Budget: Budget{Settings: pruning()}})); !strings.HasPrefix(again,
		strings.TrimSuffix(pruned, "\n")) {
		t.Error("the next context does not begin as this one")
	}
	sources, err := r.mgr.Sources(r.ctx, r.id, all[0].RowID)
	if err != nil || len(sources) == 0 || sources[0].Seq != 3 {
		t.Errorf("hidden messages: %+v, %v", sources, err)
	}
	undone := r.read(Budget{Settings: pruning(), Window: 40_000})
	if strings.Contains(wire(undone), "file0 says") {
		t.Error("a larger window alone brought an output back")
	}
	r.undo(all[0].RowID)
	if got := wire(r.read(Budget{Settings: pruning(), Window: 40_000})); !strings.HasPrefix(got, before) {
		t.Error("after undo the context differs from the one before")
	}
	r.redo(all[0].RowID)
	if got := wire(r.read(Budget{Settings: pruning(), Window: 40_000})); strings.Contains(got, "file0 says") ||
		!strings.Contains(got, "hidden to make room") {
		t.Error("redone, the output is back")
	}
}

func TestPrunedOutputStaysPrunedUnderTheNextSummary(t *testing.T) {
	r := newRig(t, 10_000)
	for i := range 9 {
		r.work(fmt.Sprint("file", i), 900)
	}
	r.turn(TurnInput{Budget: Budget{Settings: pruning()}})
	keep := int64(2900)
	c, _ := r.compact(CompactInput{
		Budget: Budget{Settings: pruning()}, Strategy: session.StrategySummarize,
		KeepTokens: &keep,
	})
	if c.Status != session.StatusDone {
		t.Fatalf("%s %s", c.Status, c.Reason)
	}
	var details session.CompactionDetails
	testkit.Check(t, json.Unmarshal(c.Details, &details))
	if len(details.Pruned) == 0 {
		t.Fatal("no kept message has a pruned output")
	}
	v := wire(r.read(Budget{Settings: pruning()}))
	if n := strings.Count(v, "hidden to make room"); n != len(details.Pruned) {
		t.Errorf("%d lines stand for %d pruned outputs", n, len(details.Pruned))
	}
	checks := testkit.Must(r.store.Doctor(r.ctx, true))(t)
	for _, check := range checks {
		if !check.OK {
			t.Errorf("doctor, %s: %s", check.Name, check.Detail)
		}
	}
}

func TestManualPruningNamesTheRecallTool(t *testing.T) {
	r := newRig(t, 100_000)
	for i := range 8 {
		r.work(fmt.Sprint("file", i), 900)
	}
	budget := Budget{
		Settings: pruning(),
		Tools:    jsontext.Value(`[{"type":"function","function":{"name":"recall_message"}}]`),
	}
	if c, p := r.compact(CompactInput{Budget: budget, Strategy: session.StrategyPrune, DryRun: true}); c.RowID != 0 ||
		p.Hidden == 0 {
		t.Errorf("dry run: %+v %+v", c, p)
	}
	if c, _ := r.compact(CompactInput{Budget: budget, Strategy: session.StrategyPrune}); c.Status != session.StatusDone ||
		c.Strategy != session.StrategyPrune {
		t.Errorf("%+v", c)
	}
	if v := wire(r.turn(TurnInput{Budget: budget})); !strings.Contains(v, "; recall_message brings it back]") {
		t.Error("the caller's tool is not named")
	}
	if c, _ := r.compact(CompactInput{
		Budget:   budget,
		Strategy: session.StrategyPrune,
	}); c.Status != session.StatusSkipped ||
		!strings.Contains(c.Reason, "nothing to prune") {
		t.Errorf("again: %s %q", c.Status, c.Reason)
	}
}

func TestPruningIsStagedWithoutAModel(t *testing.T) {
	r := newRig(t, 10_000)
	for i := range 8 {
		r.work(fmt.Sprint("file", i), 900)
	}
	settings := session.JSONOf(pruning())
	testkit.Must(r.store.PatchSession(r.ctx, r.id, store.SessionPatch{Settings: &settings}))(t)
	testkit.Check(t, r.mgr.Stage(r.ctx, r.id))
	all := r.compactions()
	if len(all) != 1 || all[0].Strategy != session.StrategyPrune || all[0].Status != session.StatusStaged {
		t.Fatalf("%+v", all)
	}
}
