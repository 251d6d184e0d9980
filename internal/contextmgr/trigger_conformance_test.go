package contextmgr

import (
	"encoding/json"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// numbersOf resolves a preset with a case's settings.
func numbersOf(t *testing.T, preset string, own Settings, window, maxOutput int64) Numbers {
	t.Helper()
	return testkit.Must(Resolve([]Layer{{"request", own}, {"session", Settings{Preset: &preset}}}, window, maxOutput))(t)
}

// fires reports whether a context of exactly this many tokens is compacted.
func fires(n Numbers, tokens int64) bool {
	return Decide(Tokens{Total: tokens}, n, n.Window) == NeedCompact
}

// TestPiTriggerConformance runs pi's limit through its preset. Its overrides for a model are the
// nearest layer here.
func TestPiTriggerConformance(t *testing.T) {
	runCases(t, "pi.should_compact", func(t *testing.T, c confCase) {
		in := into[struct {
			Window    int64 `json:"context_window"`
			Tokens    int64 `json:"context_tokens"`
			Enabled   *bool
			Model     string
			Overrides map[string]struct {
				Reserve *int64 `json:"reserve_tokens"`
			} `json:"model_overrides"`
		}](t, c.Given.Settings)
		var own Settings
		if in.Enabled != nil && !*in.Enabled {
			own.Fraction = ptr(0.0)
		}
		own.ReserveTokens = in.Overrides[in.Model].Reserve
		n := numbersOf(t, presetPi, own, in.Window, 0)
		got := map[string]any{"compact": fires(n, in.Tokens)}
		if in.Overrides != nil {
			got["effective_reserve"], got["effective_keep_recent"] = float64(n.Reserve), float64(n.KeepTokens)
		}
		equal(t, got, c.Expect)
	})
}

func TestCodexTriggerConformance(t *testing.T) {
	runCases(t, "codex.auto_compact_limit", func(t *testing.T, c confCase) {
		in := into[struct {
			Window int64 `json:"context_window"`
			Tokens int64 `json:"context_tokens"`
		}](t, c.Given.Settings)
		n := numbersOf(t, presetCodex, Settings{}, in.Window, 0)
		equal(t, map[string]any{"limit": float64(n.Threshold + 1), "compact": fires(n, in.Tokens)}, c.Expect)
	})
}

func TestOpencodeTriggerConformance(t *testing.T) {
	runCases(t, "opencode.is_overflow", func(t *testing.T, c confCase) {
		in := into[struct {
			Limits     struct{ Context, Output int64 }
			Compaction struct{ Auto *bool }
			Tokens     struct {
				Total, Input, Output int64
				Cache                struct{ Read, Write int64 }
			}
		}](t, c.Given.Settings)
		own := modelSettings(presetOpencode, in.Limits.Output)
		if in.Compaction.Auto != nil && !*in.Compaction.Auto {
			own.Fraction = ptr(0.0)
		}
		n := numbersOf(t, presetOpencode, own, in.Limits.Context, 0)
		tokens := in.Tokens.Total
		if tokens == 0 {
			call := session.Call{InputTokens: in.Tokens.Input, OutputTokens: in.Tokens.Output, CacheReadTokens: in.Tokens.Cache.Read, CacheWriteTokens: in.Tokens.Cache.Write}
			tokens = call.ContextTokens()
		}
		equal(t, map[string]any{"usable": float64(n.Limit), "compact": !n.Off && fires(n, tokens)}, c.Expect)
	})
}

// TestReserveTriggerConformance: the request's reply or the reserve, whichever is larger.
func TestReserveTriggerConformance(t *testing.T) {
	runCases(t, "opencode2.compact_if_needed", func(t *testing.T, c confCase) {
		in := into[struct {
			Window int64 `json:"context_window"`
			Output int64 `json:"output_limit"`
			Buffer int64
			Tokens int64 `json:"context_tokens"`
		}](t, c.Given.Settings)
		n := numbersOf(t, presetPi, Settings{ReserveTokens: &in.Buffer}, in.Window, in.Output)
		equal(t, map[string]any{"limit": float64(n.Threshold), "compact": fires(n, in.Tokens)}, c.Expect)
	})
}

// TestFractionTriggerConformance: only a fraction, as in preset goose.
func TestFractionTriggerConformance(t *testing.T) {
	runCases(t, "gemini.fraction", func(t *testing.T, c confCase) {
		in := into[struct {
			Window   int64 `json:"context_window"`
			Fraction float64
			Tokens   int64 `json:"context_tokens"`
		}](t, json.RawMessage(replaceKey(c.Given.Settings, "threshold", "fraction")))
		n := numbersOf(t, presetGoose, Settings{Fraction: &in.Fraction}, in.Window, 0)
		equal(t, map[string]any{"compact": fires(n, in.Tokens)}, c.Expect)
	})
}

func replaceKey(raw json.RawMessage, from, to string) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	fields[to] = fields[from]
	out, _ := json.Marshal(fields)
	return string(out)
}

// TestAfterTurnConformance adds the cases' reports to a real session.
func TestAfterTurnConformance(t *testing.T) {
	runCases(t, "pi.check_after_turn", func(t *testing.T, c confCase) {
		in := into[struct {
			Window  int64 `json:"context_window"`
			Reserve int64 `json:"reserve_tokens"`
		}](t, c.Given.Settings)
		r := newRig(t, in.Window)
		stored := map[string]session.Message{}
		for _, e := range c.Given.Entries {
			r.clock.advance(60e9)
			if e.Kind == "compaction" {
				kept := stored[e.FirstKept]
				through := testkit.Must(r.store.MessageByID(r.ctx, *kept.ParentID))(t)
				testkit.Must(r.store.AddCompaction(r.ctx, session.Compaction{
					SessionID: r.id, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone, Summary: "S",
					ThroughID: &through.RowID, FirstKeptID: &kept.RowID, HiddenTokens: through.PathTokens, SummaryTokens: 1,
				}))(t)
				continue
			}
			m := text(session.Role(e.Role), filler(int(max(0, e.Tokens-4))))
			if e.Stop != "" {
				m.Finish = session.Finish(e.Stop)
			}
			add := store.Append{Session: r.id, Messages: []session.Message{m}}
			if e.Usage != nil {
				add.Call = &session.Call{Purpose: session.PurposeChat, Status: session.CallOK, Model: "m", InputTokens: e.Usage.Input, OutputTokens: e.Usage.Output, CreatedAt: session.At(r.clock.Now())}
				if m.Finish.Failed() {
					add.Call.Status = session.CallFailed
				}
			}
			out := testkit.Must(r.store.Append(r.ctx, add))(t)
			stored[e.ID] = out.Messages[0]
		}
		want := into[struct {
			Compact bool
			Tokens  int64 `json:"context_tokens"`
		}](t, c.Expect)
		v, err := r.mgr.Assemble(r.ctx, r.id, Budget{Window: 2 * in.Window}) // only the size: nothing is compacted
		testkit.Check(t, err)
		n := numbersOf(t, presetPi, Settings{ReserveTokens: &in.Reserve}, in.Window, 0)
		if fires(n, v.Tokens.Total) != want.Compact || want.Tokens > 0 && (v.Tokens.Total < want.Tokens || v.Tokens.Total > want.Tokens+8) {
			t.Errorf("%+v, threshold %d; want %+v", v.Tokens, n.Threshold, want)
		}
	})
}

func TestTailConformance(t *testing.T) {
	runCases(t, "opencode.select_tail", func(t *testing.T, c confCase) {
		in := into[struct {
			Limits     struct{ Context, Output int64 }
			Compaction struct {
				Turns  *int   `json:"tail_turns"`
				Budget *int64 `json:"preserve_recent_tokens"`
			}
		}](t, c.Given.Settings)
		n := numbersOf(t, presetOpencode, modelSettings(presetOpencode, in.Limits.Output), in.Limits.Context, 0)
		budget := n.KeepTokens
		if in.Limits.Context < smallWindow { // the reserve is capped there: only the rule runs
			budget = opencodeTail(in.Limits.Context - in.Limits.Output)
		}
		if in.Compaction.Budget != nil {
			budget = *in.Compaction.Budget
		}
		most := -1
		if in.Compaction.Turns != nil {
			most = *in.Compaction.Turns
		}
		path := entriesOf(t, c.Given.Entries)
		starts := func(i int) bool { return path[i].startsTurn() && !c.Given.Entries[i].Compaction }
		first := firstOfTail(path, starts, budget, most)
		got := map[string]any{"budget": float64(budget), "tail_start": nil}
		end := len(path)
		if first >= 0 {
			got["tail_start"], end = c.Given.Entries[first].ID, first
		}
		ids := []any{}
		for _, e := range c.Given.Entries[:end] {
			if !e.Compaction {
				ids = append(ids, e.ID)
			}
		}
		got["summarize"] = ids
		equal(t, got, c.Expect)
	})
}
