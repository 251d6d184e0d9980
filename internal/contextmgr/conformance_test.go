package contextmgr

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"

	"github.com/google/go-cmp/cmp"
)

// confCase is a case of compaction.json. cases_test.go says where each runs, or why it does not.
type confCase struct {
	ID        string
	Algorithm string
	Tier      string
	Given     struct {
		Entries  []confEntry
		Settings json.RawMessage
		Leaf     string
		File     string
		Before   string `json:"before_message"`
	}
	Expect      json.RawMessage
	Alternative json.RawMessage
}

type confEntry struct {
	ID     string
	Kind   string
	Role   string
	Parts  []json.RawMessage
	Parent json.RawMessage
	Tokens int64
	Calls  []json.RawMessage
	CallID string `json:"call_id"`

	Compaction bool // of opencode: requests a compaction

	Target      string
	Replacement *int `json:"replacement_tokens"`
	Stop        string
	Summary     json.RawMessage // text, or a flag in opencode's cases
	FirstKept   string          `json:"first_kept"`
	Usage       *struct {
		Input, Output, Total int64
		CacheRead            int64 `json:"cache_read"`
		CacheWrite           int64 `json:"cache_write"`
	}
}

func conformance(t *testing.T, algorithm string) []confCase {
	t.Helper()
	raw := testkit.Must(os.ReadFile("testdata/compaction.json"))(t)
	var all, found []confCase
	testkit.Check(t, json.Unmarshal(raw, &all))
	for _, c := range all {
		if c.Algorithm == algorithm {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no case of %s", algorithm)
	}
	return found
}

func into[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var v T
	testkit.Check(t, json.Unmarshal(raw, &v))
	return v
}

func TestConformanceCasesAreUnchanged(t *testing.T) {
	want := testkit.Must(os.ReadFile(filepath.Join(samples.Conformance(t), "compaction.json")))(t)
	got := testkit.Must(os.ReadFile("testdata/compaction.json"))(t)
	if !bytes.Equal(got, want) {
		t.Error("testdata/compaction.json is not the original")
	}
}

func TestThresholdConformance(t *testing.T) {
	for _, c := range conformance(t, "sessiond.threshold") {
		t.Run(c.ID, func(t *testing.T) {
			in := into[struct {
				Window   int64 `json:"context_window"`
				Fraction float64
				Reserve  int64 `json:"reserve_tokens"`
				Floor    int64 `json:"reserve_floor"`
				Context  int64 `json:"context_tokens"`
			}](t, c.Given.Settings)
			got := map[string]any{}
			reserve := EffectiveReserve(in.Reserve, in.Floor, in.Window)
			limit, off := Threshold(in.Window, in.Fraction, reserve)
			if off {
				got["disabled"] = true
			} else {
				got["threshold"], got["effective_reserve"] = float64(limit), float64(reserve)
			}
			got["compact"] = !off && in.Context > limit
			equal(t, got, c.Expect)
		})
	}
}

func TestReserveFloorConformance(t *testing.T) {
	for _, c := range conformance(t, "openclaw.reserve_floor") {
		t.Run(c.ID, func(t *testing.T) {
			in := into[struct {
				Window  int64  `json:"context_window"`
				Reserve int64  `json:"reserve_tokens"`
				Floor   *int64 `json:"reserve_floor"`
			}](t, c.Given.Settings)
			floor := int64(DefaultReserveFloor)
			if in.Floor != nil {
				floor = *in.Floor
			}
			r := EffectiveReserve(in.Reserve, floor, in.Window)
			equal(t, map[string]any{
				"effective_reserve": float64(r), "overridden": r != in.Reserve, "limit": float64(in.Window - r),
			}, c.Expect)
		})
	}
}

func TestPreFlushConformance(t *testing.T) {
	for _, c := range conformance(t, "openclaw.pre_flush") {
		t.Run(c.ID, func(t *testing.T) {
			in := into[struct {
				Context int64  `json:"context_tokens"`
				Window  int64  `json:"context_window"`
				Floor   int64  `json:"reserve_floor"`
				Soft    int64  `json:"soft_tokens"`
				Count   int64  `json:"compaction_count"`
				Last    *int64 `json:"last_flush_count"`
			}](t, c.Given.Settings)
			skip := DecideFlush(FlushState{Enabled: true, Context: in.Context, From: moltbotFlush(in.Window, in.Floor, in.Soft), Generation: in.Count, Last: in.Last})
			equal(t, map[string]any{"flush": skip == ""}, c.Expect)
		})
	}
}

func TestEstimateConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.estimate_context") {
		t.Run(c.ID, func(t *testing.T) {
			var items []SizedItem
			for _, e := range c.Given.Entries {
				w := SizedItem{Tokens: e.Tokens}
				// the ledger's chat calls belong to replies; a tool's own calls have another purpose
				if e.Usage != nil && e.Role == "assistant" && e.Stop != "error" && e.Stop != "aborted" {
					call := session.Call{
						InputTokens: e.Usage.Input, OutputTokens: e.Usage.Output,
						CacheReadTokens: e.Usage.CacheRead, CacheWriteTokens: e.Usage.CacheWrite,
					}
					w.Report = call.ContextTokens()
					if e.Usage.Total != 0 { // as the importer reads a provider's own total
						w.Report = e.Usage.Total
					}
				}
				items = append(items, w)
			}
			total, reported, trailing, last := CountFromReport(items)
			got := map[string]any{
				"tokens": float64(total), "usage_tokens": float64(reported), "trailing_tokens": float64(trailing),
				"last_usage_index": float64(last),
			}
			if last < 0 {
				got["last_usage_index"] = nil
			}
			equal(t, got, c.Expect)
		})
	}
}

// TestOtherEstimatesConformance names the cases of another program's counter.
func TestOtherEstimatesConformance(t *testing.T) {
	runCases(t, "pi.estimate_tokens", func(t *testing.T, _ confCase) { t.Fatal("no case is run") })
}

func TestCutConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.find_cut_point") {
		t.Run(c.ID, func(t *testing.T) {
			in := into[struct {
				Keep  int64 `json:"keep_recent_tokens"`
				Start int   `json:"start_index"`
			}](t, c.Given.Settings)
			path := entriesOf(t, c.Given.Entries)
			cut := func(quirk bool) map[string]any {
				got := FindCut(path[in.Start:], CutRule{KeepTokens: in.Keep, MetadataSplits: quirk})
				start := got.TurnStart
				if got.Split() {
					start += in.Start
				}
				return map[string]any{
					"cut_index": float64(got.First + in.Start), "first_kept": c.Given.Entries[got.First+in.Start].ID,
					"turn_start_index": float64(start), "split_turn": got.Split(),
				}
			}
			equal(t, cut(true), c.Expect)
			if c.Alternative != nil {
				equal(t, cut(false), c.Alternative)
			} else {
				equal(t, cut(false), c.Expect)
			}
		})
	}
}

func TestPrepareConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.prepare_compaction") {
		if c.Given.File != "" {
			continue // TestRealPrepareConformance
		}
		t.Run(c.ID, func(t *testing.T) {
			in := into[struct {
				Keep int64 `json:"keep_recent_tokens"`
			}](t, c.Given.Settings)
			path, previous := sinceOverlay(pathOf(c.Given.Entries, c.Given.Leaf))
			prepare := func(quirk bool, expect json.RawMessage) {
				t.Helper()
				want := into[map[string]any](t, expect)
				entries := editedEntries(t, path)
				p := MakePlan(entries, CutRule{KeepTokens: in.Keep, MetadataSplits: quirk}, PlanRoom{})
				got := map[string]any{"no_op": p.NoGain != ""}
				if p.NoGain == "" {
					got["first_kept"], got["split_turn"] = path[p.First].ID, p.Split()
					from, to := p.History()
					got["summarize"] = summarisedIDs(path[from:to], entries[from:to])
					from, to = p.Prefix()
					got["turn_prefix"] = summarisedIDs(path[from:to], entries[from:to])
					got["previous_summary"] = previous
				}
				// sizes and files of the span: estimate and file_operations have cases of their own
				for _, k := range []string{"tokens_before", "read_files", "modified_files"} {
					delete(want, k)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("want -, got +\n%s", diff)
				}
			}
			prepare(true, c.Expect)
			if c.Alternative != nil {
				prepare(false, c.Alternative)
			} else {
				prepare(false, c.Expect)
			}
		})
	}
}

// TestRepairConformance runs every case with close_calls, since no case names pending calls.
func TestRepairConformance(t *testing.T) {
	for _, c := range conformance(t, "sessiond.repair") {
		t.Run(c.ID, func(t *testing.T) {
			r, ids := repaired(t, c.Given.Entries)
			order, dropped, synthetic := []any{}, []any{}, []any{}
			for _, item := range r.Items {
				if item.Kind == ItemClosedCall {
					order = append(order, "+result:"+item.Message.Parts[0].CallID)
				} else {
					order = append(order, ids[item.Message.ID])
				}
			}
			for _, ref := range r.Dropped {
				dropped = append(dropped, ids[ref])
			}
			for _, id := range r.Synthetic {
				synthetic = append(synthetic, id)
			}
			equal(t, map[string]any{"order": order, "dropped": dropped, "synthetic": synthetic}, c.Expect)
		})
	}
}

// TestOtherRepairsConformance runs the cases of other programs' repairs that sessiond repairs alike.
// No preset and no importer uses their rules, so the others are skipped.
func TestOtherRepairsConformance(t *testing.T) {
	for _, algorithm := range []string{"pi.close_orphans", "openclaw.repair_pairs", "codex.normalize", "codex.remove_first"} {
		runCases(t, algorithm, func(t *testing.T, c confCase) {
			r, ids := repaired(t, c.Given.Entries)
			order := []any{}
			for _, item := range r.Items {
				if item.Kind == ItemClosedCall {
					made := "+result:"
					if algorithm == "codex.normalize" {
						made = "+output:"
					}
					order = append(order, made+item.Message.Parts[0].CallID)
				} else {
					order = append(order, ids[item.Message.ID])
				}
			}
			if diff := cmp.Diff(into[map[string]any](t, c.Expect)["order"], any(order)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func repaired(t *testing.T, entries []confEntry) (Repaired, map[session.MessageRef]string) {
	t.Helper()
	var msgs []session.Message
	ids := map[session.MessageRef]string{}
	for i, e := range entries {
		switch e.Kind {
		case "call":
			e.Role, e.Calls = "assistant", []json.RawMessage{json.RawMessage(session.JSONOf(e.CallID))}
		case "output":
			e.Role = "tool"
		}
		m := messageOf(t, e)
		m.RowID, m.ID = int64(i+1), session.MessageRef{Session: "20260101_001", Seq: int64(i + 1)}
		ids[m.ID] = e.ID
		msgs = append(msgs, m)
	}
	return Repair(msgs, nil, true), ids
}

func equal(t *testing.T, got map[string]any, expect json.RawMessage) {
	t.Helper()
	if diff := cmp.Diff(into[map[string]any](t, expect), got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func messageOf(t *testing.T, e confEntry) session.Message {
	t.Helper()
	m := session.Message{Kind: session.KindMessage, Role: session.Role(e.Role), InContext: true}
	switch e.Stop {
	case "error", "aborted":
		m.Finish = session.Finish(e.Stop)
	default:
		m.Parts = append(m.Parts, session.TextPart(e.ID))
	}
	if e.Role == "tool" {
		m.Parts = []session.Part{{Kind: session.PartToolResult, CallID: e.CallID, Text: e.ID}}
	}
	for _, id := range callIDs(t, e) {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, CallID: id})
	}
	return m
}

func callIDs(t *testing.T, e confEntry) []string {
	t.Helper()
	var ids []string
	for _, raw := range e.Calls {
		var call struct{ ID string }
		if json.Unmarshal(raw, &call) != nil {
			call.ID = into[string](t, raw)
		}
		ids = append(ids, call.ID)
	}
	return ids
}

func entriesOf(t *testing.T, in []confEntry) []Entry {
	t.Helper()
	var out []Entry
	for _, e := range in {
		x := Entry{Kind: session.KindMessage, Role: session.Role(e.Role), Tokens: e.Tokens, InContext: true, Calls: callIDs(t, e)}
		switch {
		case e.Role == "bash":
			x.Kind, x.Role = session.KindBash, session.User
		case e.Role == "tool":
			x.Results = []string{e.CallID}
		case e.Kind == "custom_message" || e.Kind == "branch_summary":
			x.Kind, x.Role = session.Kind(e.Kind), session.User
		case e.Kind == "model_change" || e.Kind == "thinking_level_change" || e.Kind == "label" || e.Kind == "usage" || e.Kind == "compaction" || e.Kind == "context_edit":
			x.Kind, x.Role, x.InContext = session.KindMarker, "", false
		case e.Kind != "" && e.Kind != "message":
			t.Fatalf("unknown kind %q", e.Kind)
		}
		out = append(out, x)
	}
	return out
}

// pathOf follows parents from the leaf; a broken link ends the path.
func pathOf(entries []confEntry, leaf string) []confEntry {
	at := len(entries) - 1
	if leaf != "" {
		at = slices.IndexFunc(entries, func(e confEntry) bool { return e.ID == leaf })
	}
	var path []confEntry
	for at >= 0 {
		path = append(path, entries[at])
		parent := string(entries[at].Parent)
		if parent == "" {
			at--
			continue
		}
		at = slices.IndexFunc(entries, func(e confEntry) bool { return `"`+e.ID+`"` == parent })
	}
	slices.Reverse(path)
	return path
}

// sinceOverlay makes an overlay of the newest compaction record, as the importer does. The path then
// begins with the kept messages, and records are no messages.
func sinceOverlay(path []confEntry) (since []confEntry, previous any) {
	from := 0
	for i, e := range slices.Backward(path) {
		if e.Kind != "compaction" {
			continue
		}
		_ = json.Unmarshal(e.Summary, &previous)
		if from = slices.IndexFunc(path, func(k confEntry) bool { return k.ID == e.FirstKept }); from < 0 {
			from = i
		}
		break
	}
	for _, e := range path[from:] {
		if e.Kind != "compaction" {
			since = append(since, e)
		}
	}
	return since, previous
}

// editedEntries returns the path as cutting sees it, with the edits that later entries make.
func editedEntries(t *testing.T, path []confEntry) []Entry {
	t.Helper()
	entries := entriesOf(t, path)
	r := &snapshot{}
	for i, e := range path {
		m := session.Message{RowID: int64(i + 1), Kind: session.KindMessage, InContext: entries[i].InContext, ExternalID: e.ID}
		if e.Kind == "context_edit" {
			edit := contextEdit{Target: e.Target}
			if e.Replacement != nil { // the counter's four tokens for a message are among them
				edit.Parts = []session.Part{session.TextPart(filler(*e.Replacement - 4))}
			}
			m.Kind, m.Extra = session.KindMarker, session.JSONOf(map[string]any{"context_edit": edit})
		}
		r.Messages = append(r.Messages, m)
	}
	(&Manager{cfg: Config{Counter: func(string) Counter { return runes{} }}}).applyEdits(r)
	for i := range entries {
		entries[i].InContext = r.Messages[i].InContext
		if r.Edited[r.Messages[i].RowID] && r.Messages[i].InContext {
			entries[i].Tokens = r.Messages[i].Tokens
		}
	}
	return entries
}

func summarisedIDs(path []confEntry, entries []Entry) []any {
	ids := []any{}
	for i, e := range entries {
		if e.InContext && e.Role != session.System {
			ids = append(ids, path[i].ID)
		}
	}
	return ids
}
