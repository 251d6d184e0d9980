package contextmgr

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// flushCase is a case of the areas flush and compaction; internal/routing counts all cases.
type flushCase struct {
	ID, Area            string
	Given, When, Expect jsontext.Value
}

func flushCases(t *testing.T, area string) []flushCase {
	t.Helper()
	raw := testkit.Must(os.ReadFile("../routing/testdata/sessions.json"))(t)
	var all, found []flushCase
	testkit.Check(t, json.Unmarshal(raw, &all))
	for _, c := range all {
		if c.Area == area {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no case of area %s", area)
	}
	return found
}

type flushEntry struct {
	TotalTokens      *int64     `json:"totalTokens"`
	TotalTokensFresh bool       `json:"totalTokensFresh"`
	InputTokens      *int64     `json:"inputTokens"`
	OutputTokens     *int64     `json:"outputTokens"`
	CompactionCount  int64      `json:"compactionCount"`
	MemoryFlushCount *int64     `json:"memoryFlushCompactionCount"`
	MemoryFlushAt    *time.Time `json:"memoryFlushAt"`
}

type flushGiven struct {
	Entry      flushEntry
	Enabled    bool
	Window     int64
	Reserve    int64     `json:"reserve_tokens"`
	Floor      int64     `json:"reserve_tokens_floor"`
	Soft       int64     `json:"soft_threshold_tokens"`
	Workspace  Workspace `json:"workspace_access"`
	Heartbeat  bool
	CLIBackend bool `json:"cli_backend"`
	Config     struct {
		Prompt     string
		SoftTokens *int64 `json:"softThresholdTokens"`
	}
}

// moltbotNumbers are the numbers of the cases' preset.
func moltbotNumbers(t *testing.T, reserve, floor, window int64) Numbers {
	t.Helper()
	name := presetMoltbot
	return testkit.Must(Resolve([]Layer{{"file", Settings{Preset: &name, ReserveTokens: &reserve, ReserveFloor: &floor}}},
		window, 0))(t)
}

func TestFlushConformance(t *testing.T) {
	for _, c := range flushCases(t, "flush") {
		t.Run(c.ID, func(t *testing.T) {
			g, op := into[flushGiven](t, c.Given), into[struct{ Op string }](t, c.When).Op
			switch op {
			case "settings":
				s := FlushSettings{Enabled: true, Prompt: g.Config.Prompt, SoftTokens: g.Config.SoftTokens}.Effective()
				n := moltbotNumbers(t, 16384, DefaultReserveFloor, 200000)
				want := into[struct {
					Start string `json:"prompt_starts_with"`
				}](t, c.Expect)
				got := map[string]any{
					"enabled": s.Enabled, "soft_threshold_tokens": float64(n.Limit - s.dueFrom(&n)),
					"reserve_tokens_floor":    float64(DefaultReserveFloor),
					"prompt_has_token":        strings.Contains(s.Prompt, routing.SilentToken),
					"system_prompt_has_token": strings.Contains(s.SystemPrompt, routing.SilentToken),
				}
				if want.Start != "" && strings.HasPrefix(s.Prompt, want.Start) {
					got["prompt_starts_with"] = want.Start
				}
				equal(t, got, c.Expect)
			case "decide":
				n := moltbotNumbers(t, g.Reserve, g.Floor, g.Window)
				s := FlushState{
					Enabled: g.Enabled, Caller: FlushCaller{Workspace: g.Workspace, Heartbeat: g.Heartbeat, CLIBackend: g.CLIBackend},
					From: FlushSettings{SoftTokens: &g.Soft}.dueFrom(&n), Generation: g.Entry.CompactionCount,
					Last: g.Entry.MemoryFlushCount,
				}
				if g.Entry.TotalTokensFresh && g.Entry.TotalTokens != nil {
					s.Context = *g.Entry.TotalTokens
				}
				skip := DecideFlush(s)
				got := map[string]any{"run": skip == "", "threshold": float64(s.From), "skip": nil}
				if skip != "" {
					got["skip"] = string(skip)
				}
				if skip == FlushDisabled {
					got["threshold"] = nil
				}
				equal(t, got, c.Expect)
			case "record":
				recordFlush(t, g.Entry, c)
			default:
				t.Fatalf("op %s", op)
			}
		})
	}
}

// recordFlush records a flush turn in a real store. The cases' cycles are overlays, counted in order.
func recordFlush(t *testing.T, entry flushEntry, c flushCase) {
	t.Helper()
	w := into[struct {
		At      time.Time
		Outcome string
		During  bool `json:"compaction_during_flush"`
	}](t, c.When)
	r := newRig(t, 10000)
	r.clock.advance(entry.MemoryFlushAt.Sub(r.clock.Now()))
	var overlays []int64
	compact := func() {
		t.Helper()
		r.talk(3, 200)
		made, _, err := r.mgr.Compact(r.ctx, r.id,
			CompactInput{Trigger: session.TriggerManual, Strategy: session.StrategyClear})
		if err != nil || made.Status != session.StatusDone {
			t.Fatalf("%+v, %v", made, err)
		}
		overlays = append(overlays, made.RowID)
	}
	record := func(generation *int64, outcome string) {
		t.Helper()
		testkit.Must(r.store.RecordFlush(r.ctx, r.id, generation, outcome))(t)
	}
	for range entry.CompactionCount {
		compact()
		if int64(len(overlays)) == *entry.MemoryFlushCount {
			record(nil, session.FlushOK)
		}
	}
	testkit.Check(t, r.store.AskFlush(r.ctx, r.id, overlays[len(overlays)-1]))
	if w.During {
		compact()
	}
	record(nil, w.Outcome)

	sess := testkit.Must(r.store.Session(r.ctx, r.id))(t)
	marker := int64(0)
	for i, id := range overlays {
		f := testkit.Must(r.store.Flush(r.ctx, r.id, id))(t)
		if f != nil && f.Outcome == session.FlushOK {
			marker = int64(i + 1)
		}
	}
	want := into[struct{ Entry flushEntry }](t, c.Expect).Entry
	if sess.CompactionCount != want.CompactionCount || marker != *want.MemoryFlushCount {
		t.Errorf("count %d, marker %d", sess.CompactionCount, marker)
	}
}

func TestCompactionConformance(t *testing.T) {
	for _, c := range flushCases(t, "compaction") {
		t.Run(c.ID, func(t *testing.T) {
			g := into[flushGiven](t, c.Given)
			w := into[struct {
				Op      string
				Context int64 `json:"context_tokens"`
				Events  []struct {
					Kind      string
					WillRetry bool   `json:"will_retry"`
					After     *int64 `json:"tokens_after"`
					Reply     string
				}
			}](t, c.When)
			switch w.Op {
			case "reserve":
				equal(t, map[string]any{"reserve_tokens": float64(MoltbotReserve(g.Reserve, g.Floor, g.Window))}, c.Expect)
			case "should_compact":
				n := moltbotNumbers(t, g.Reserve, g.Floor, g.Window)
				need := Decide(Tokens{Estimate: w.Context, Total: w.Context}, n, n.Window)
				equal(t, map[string]any{"compact": need == NeedCompact}, c.Expect)
			case "events":
				e := g.Entry
				counters := routing.Counters{
					InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, TotalTokens: e.TotalTokens,
					Fresh: e.TotalTokensFresh, Compactions: e.CompactionCount,
				}
				for _, event := range w.Events {
					if event.Kind == "compaction_end" && !event.WillRetry { // a compaction that is retried has no finished record
						counters.Compacted(event.After)
					}
				}
				want := into[flushEntry](t, c.Expect)
				got := flushEntry{
					TotalTokens: counters.TotalTokens, TotalTokensFresh: counters.Fresh, InputTokens: counters.InputTokens,
					OutputTokens: counters.OutputTokens, CompactionCount: counters.Compactions,
				}
				testkit.Equal(t, want, got)
			default:
				t.Fatalf("op %s", w.Op)
			}
		})
	}
}

// flushRig is a rig with memory flushes enabled.
func flushRig(t *testing.T) *rig {
	return newRig(t, 10000, func(c *Config) { c.Flush = FlushSettings{Enabled: true} })
}

func (r *rig) acknowledge(generation *int64, outcome string) session.Flush {
	r.t.Helper()
	return testkit.Must(r.store.RecordFlush(r.ctx, r.id, generation, outcome))(r.t)
}

func TestFlushIsAskedForOncePerOverlay(t *testing.T) {
	r := flushRig(t)
	r.talk(20, 150)
	ask := func(c FlushCaller) (flushes []Directive) {
		for _, d := range r.turn(TurnInput{Flush: c}).Directives {
			if d.Type == "memory_flush" {
				flushes = append(flushes, d)
			}
		}
		return flushes
	}
	if d := ask(FlushCaller{}); len(d) != 0 {
		t.Errorf("under the flush threshold: %+v", d)
	}
	r.talk(1, 250)
	for _, c := range []FlushCaller{
		{Heartbeat: true},
		{CLIBackend: true},
		{Workspace: WorkspaceRead},
		{Workspace: WorkspaceNone},
	} {
		if d := ask(c); len(d) != 0 {
			t.Errorf("%+v is asked: %+v", c, d)
		}
	}
	for range 2 { // until the agent acknowledges it: the answer may have been lost
		if d := ask(FlushCaller{}); len(d) != 1 || !strings.Contains(d[0].Prompt, "memory/2026-02-11.md") ||
			!strings.Contains(d[0].SystemPrompt, "NO_REPLY") || *d[0].Generation != "" {
			t.Fatalf("above it: %+v", d)
		}
	}
	r.acknowledge(nil, session.FlushFailed)
	if d := ask(FlushCaller{}); len(d) != 1 {
		t.Errorf("after it failed: %+v", d)
	}
	r.acknowledge(nil, session.FlushOK)
	if d := ask(FlushCaller{}); len(d) != 0 {
		t.Errorf("after it was done: %+v", d)
	}
	r.talk(3, 250)
	if v := r.turn(TurnInput{}); v.Compaction == nil {
		t.Fatal("nothing was compacted")
	}
	for range 40 {
		r.talk(1, 150)
		if d := ask(FlushCaller{}); len(d) == 1 {
			if !strings.HasPrefix(*d[0].Generation, "cmp_") {
				t.Errorf("of generation %q", *d[0].Generation)
			}
			return
		}
	}
	t.Error("the next generation asked for no flush")
}

// Above the threshold the directive goes out together with the overlay, and belongs to the
// generation before it.
func TestFlushBesideANewOverlayBelongsToTheGenerationBefore(t *testing.T) {
	r := flushRig(t)
	r.talk(30, 150)
	v := r.turn(TurnInput{})
	if v.Compaction == nil || len(v.Directives) != 1 || *v.Directives[0].Generation != "" {
		t.Fatalf("%+v %+v", v.Compaction, v.Directives)
	}
	if f := r.acknowledge(nil, session.FlushOK); f.CompactionID != 0 {
		t.Errorf("acknowledged for %+v", f)
	}
	wrong := int64(4711)
	if _, err := r.store.RecordFlush(r.ctx, r.id, &wrong, session.FlushOK); session.CodeOf(err) != session.Invalid {
		t.Errorf("an overlay that is not there: %v", err)
	}
}

func TestIdleActivationWaitsForTheFlush(t *testing.T) {
	for name, acknowledged := range map[string]bool{"acknowledged": true, "never acknowledged": false} {
		t.Run(name, func(t *testing.T) {
			r := flushRig(t)
			r.talk(21, 150)
			r.turn(TurnInput{})
			testkit.Check(t, r.mgr.Stage(r.ctx, r.id))
			r.clock.advance(6 * time.Minute)
			for range 2 {
				if done, waits, err := r.mgr.ActivateIdle(r.ctx, r.id); err != nil || done || !waits {
					t.Fatalf("done %v, waits %v, %v", done, waits, err)
				}
			}
			if acknowledged {
				r.acknowledge(nil, session.FlushOK)
			} else {
				r.clock.advance(5 * time.Minute)
			}
			if done, waits, err := r.mgr.ActivateIdle(r.ctx, r.id); err != nil || !done || waits {
				t.Errorf("done %v, waits %v, %v", done, waits, err)
			}
		})
	}
}
