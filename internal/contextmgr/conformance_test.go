package contextmgr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/touched"
)

// confCase is a case of compaction.json. ranAt says where each runs, skippedCases why one does not.
type confCase struct {
	ID        string
	Algorithm string
	Tier      string
	Given     struct {
		Entries  []confEntry
		Settings jsontext.Value
		Leaf     string
		File     string
		Before   string `json:"before_message"`
	}
	Expect      jsontext.Value
	Alternative jsontext.Value
}

type confEntry struct {
	ID     string
	Kind   string
	Role   string
	Parts  []jsontext.Value
	Parent jsontext.Value
	Tokens int64
	Calls  []jsontext.Value
	CallID string `json:"call_id"`

	Compaction bool // of opencode: requests a compaction

	Target      string
	Replacement *int `json:"replacement_tokens"`
	Stop        string
	Summary     jsontext.Value // text, or a flag in opencode's cases
	FirstKept   string         `json:"first_kept"`
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

func into[T any](t *testing.T, raw jsontext.Value) T {
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
			skip := DecideFlush(FlushState{
				Enabled: true, Context: in.Context, From: moltbotFlush(in.Window, in.Floor, in.Soft),
				Generation: in.Count, Last: in.Last,
			})
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
			prepare := func(quirk bool, expect jsontext.Value) {
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
				testkit.Equal(t, want, got)
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
	for _, algorithm := range []string{
		"pi.close_orphans", "openclaw.repair_pairs", "codex.normalize",
		"codex.remove_first",
	} {
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
			testkit.Equal(t, into[map[string]any](t, c.Expect)["order"], any(order))
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
			e.Role, e.Calls = "assistant", []jsontext.Value{jsontext.Value(session.JSONOf(e.CallID))}
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

func equal(t *testing.T, got map[string]any, expect jsontext.Value) {
	t.Helper()
	testkit.Equal(t, into[map[string]any](t, expect), got)
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
		x := Entry{
			Kind: session.KindMessage, Role: session.Role(e.Role), Tokens: e.Tokens, InContext: true,
			Calls: callIDs(t, e),
		}
		switch {
		case e.Role == "bash":
			x.Kind, x.Role = session.KindBash, session.User
		case e.Role == "tool":
			x.Results = []string{e.CallID}
		case e.Kind == "custom_message" || e.Kind == "branch_summary":
			x.Kind, x.Role = session.Kind(e.Kind), session.User
		case e.Kind == "model_change" || e.Kind == "thinking_level_change" || e.Kind == "label" || e.Kind == "usage" ||
			e.Kind == "compaction" || e.Kind == "context_edit":
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
		m := session.Message{
			RowID: int64(i + 1), Kind: session.KindMessage, InContext: entries[i].InContext,
			ExternalID: e.ID,
		}
		if e.Kind == "context_edit" {
			edit := session.ContextEdit{Target: e.Target}
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

// ranAt names the test that runs the cases of an algorithm, one subtest each.
func ranAt() map[string]string {
	return map[string]string{
		"sessiond.threshold":          "conformance_test.go TestThresholdConformance",
		"openclaw.reserve_floor":      "conformance_test.go TestReserveFloorConformance",
		"openclaw.pre_flush":          "conformance_test.go TestPreFlushConformance",
		"pi.should_compact":           "conformance_test.go TestPiTriggerConformance",
		"pi.check_after_turn":         "conformance_test.go TestAfterTurnConformance",
		"codex.auto_compact_limit":    "conformance_test.go TestCodexTriggerConformance",
		"opencode.is_overflow":        "conformance_test.go TestOpencodeTriggerConformance",
		"opencode2.compact_if_needed": "conformance_test.go TestReserveTriggerConformance",
		"gemini.fraction":             "conformance_test.go TestFractionTriggerConformance",
		"pi.estimate_tokens":          "conformance_test.go TestOtherEstimatesConformance",
		"pi.estimate_context":         "conformance_test.go TestEstimateConformance",
		"pi.find_cut_point":           "conformance_test.go TestCutConformance",
		"pi.prepare_compaction":       "conformance_test.go TestPrepareConformance",
		"pi.compact":                  "conformance_test.go TestSummaryConformance",
		"pi.serialize":                "conformance_test.go TestSerialiseConformance",
		"pi.file_operations":          "conformance_test.go TestFileOperationsConformance",
		"pi.build_context":            "programs_test.go TestBuildContextConformance",
		"opencode.prune":              "prune_test.go TestPruneConformance",
		"opencode.select_tail":        "conformance_test.go TestTailConformance",
		"opencode.filter_compacted":   "programs_test.go TestFilterCompactedConformance",
		"codex.keep_recent_user":      "inject_test.go TestRecentUserConformance",
		"codex.reinject_context":      "inject_test.go TestInjectConformance",
		"sessiond.repair":             "conformance_test.go TestRepairConformance",
		"pi.close_orphans":            "conformance_test.go TestOtherRepairsConformance",
		"openclaw.repair_pairs":       "conformance_test.go TestOtherRepairsConformance",
		"codex.normalize":             "conformance_test.go TestOtherRepairsConformance",
		"codex.remove_first":          "conformance_test.go TestOtherRepairsConformance",
	}
}

// skippedCases are the cases that do not run, with the reason.
func skippedCases() map[string]string {
	const (
		ownRepair     = "no preset or importer repairs so: "
		ownCount      = "no preset counts so: sessiond's own counter is nearer to every tokenizer than characters by four"
		noLimit       = "no setting of sessiond's is a limit in tokens: fraction and reserve are"
		smallPi       = "sessiond caps a reserve that a small window has no room for"
		failedSummary = "a failed summary is not used: its message stays in the log, out of the context"
		otherTools    = "the tools of six programs count, under the names that each of them gives"
	)
	return map[string]string{
		"repair-orphan-result-pi":         ownRepair + "sessiond leaves results out that answer nothing",
		"repair-displaced-result-pi":      ownRepair + "sessiond moves a late result to its call",
		"repair-duplicate-result-pi":      ownRepair + "sessiond sends the first result only",
		"repair-duplicate-result-strict":  ownRepair + "sessiond sends the first result only",
		"repair-errored-assistant-pi":     ownRepair + "sessiond leaves the result of a failed reply out with it",
		"repair-errored-assistant-strict": ownRepair + "sessiond leaves failed replies out",
		"repair-codex-drop-oldest":        ownRepair + "sessiond drops no oldest item: it cuts between turns",

		"files-other-tools":  otherTools,
		"files-nested-calls": "pi's calls within calls stay in the raw record: no message has calls inside of a result",
		"summary-update": "no preset uses it: the span has a summary of its own, " +
			"and the running one is an update with that",
		"summary-serialise": "no preset uses it: what a summariser reads names each message by its number and who made it",

		"trigger-pi-reserve-over-window":    smallPi,
		"trigger-codex-config-lower":        noLimit,
		"trigger-codex-config-capped":       noLimit,
		"trigger-codex-no-window":           noLimit,
		"trigger-codex-nothing-known":       "sessiond assumes a window where none is known, and says so",
		"trigger-opencode-input-limit":      "the catalogue has one window for each model",
		"trigger-opencode-input-reserved":   "the catalogue has one window for each model",
		"trigger-opencode-reserved-ignored": "a reserve that is given counts",
		"trigger-opencode-no-context-limit": "sessiond assumes a window where none is known, and says so",

		"filter-failed-summary":     failedSummary,
		"filter-unfinished-summary": failedSummary,

		"estimate-user-round-up":       ownCount,
		"estimate-user-empty":          ownCount,
		"estimate-sum-before-rounding": ownCount,
		"estimate-user-image":          ownCount,
		"estimate-tool-image":          ownCount,
		"estimate-assistant-mixed":     ownCount,
		"estimate-bash":                ownCount,
		"estimate-summary":             ownCount,
		"estimate-utf16":               ownCount,
		"estimate-unknown-role":        ownCount,
	}
}

// SkippedCase returns the reason for tests of other packages; "" for a case that runs.
func SkippedCase(id string) string { return skippedCases()[id] }

// runCases runs the cases of an algorithm, each under its id.
func runCases(t *testing.T, algorithm string, run func(t *testing.T, c confCase)) {
	t.Helper()
	for _, c := range conformance(t, algorithm) {
		t.Run(c.ID, func(t *testing.T) {
			if why := skippedCases()[c.ID]; why != "" {
				t.Skip(why)
			}
			run(t, c)
		})
	}
}

// Every case is run by a test or skipped with a reason; cases of the core are never skipped.
func TestEveryCompactionCaseRunsOrHasAReason(t *testing.T) {
	raw := testkit.Must(os.ReadFile("testdata/compaction.json"))(t)
	var all []confCase
	if err := json.Unmarshal(raw, &all); err != nil || len(all) != 214 {
		t.Fatalf("%d cases: %v", len(all), err)
	}
	skipped, ran := skippedCases(), 0
	for _, c := range all {
		if why, skip := skipped[c.ID]; skip {
			t.Logf("skipped %s (%s): %s", c.ID, c.Tier, why)
			delete(skipped, c.ID)
			if c.Tier == "core" && c.ID != "files-other-tools" && c.ID != "files-nested-calls" {
				t.Errorf("%s is core", c.ID)
			}
			continue
		}
		file, test, _ := strings.Cut(ranAt()[c.Algorithm], " ")
		if source, err := os.ReadFile(filepath.Clean(file)); err != nil ||
			!strings.Contains(string(source), "func "+test+"(t *testing.T)") ||
			!strings.Contains(string(source), `"`+c.Algorithm+`"`) {
			t.Errorf("%s: no test runs %s (%v)", c.ID, c.Algorithm, err)
			continue
		}
		ran++
		t.Logf("run %s: %s", c.ID, test)
	}
	for id := range skipped {
		t.Errorf("no case is called %s", id)
	}
	t.Logf("%d run, %d skipped", ran, len(all)-ran)
}

// callsOf returns the calls of a case's entry as parts.
func callsOf(t *testing.T, raw []jsontext.Value) []session.Part {
	t.Helper()
	var parts []session.Part
	for _, one := range raw {
		c := into[struct {
			ID, Name string
			Args     jsontext.Value
		}](t, one)
		parts = append(parts, session.Part{
			Kind: session.PartToolCall, CallID: c.ID, ToolName: c.Name,
			Arguments: string(c.Args),
		})
	}
	return parts
}

// TestFileOperationsConformance runs the lists of files. Their place in a summary is sessiond's own:
// after the model's text, collapsed by directory.
func TestFileOperationsConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.file_operations") {
		t.Run(c.ID, func(t *testing.T) {
			if why := skippedCases()[c.ID]; why != "" {
				t.Skip(why)
			}
			var before struct {
				Previous struct {
					Read, Modified []string
					Extension      bool `json:"from_extension"`
				}
			}
			testkit.Check(t, json.Unmarshal(c.given(t), &before))
			if before.Previous.Extension { // importers read no lists from an extension's record
				before.Previous.Read, before.Previous.Modified = nil, nil
			}
			var files []session.TouchedFile
			for _, e := range c.Given.Entries {
				m := session.Message{Kind: session.KindMessage, Role: session.Role(e.Role), Parts: callsOf(t, e.Calls)}
				files = append(files, touched.Files(&m, "")...)
			}
			read, modified := addFiles(files, before.Previous.Read, before.Previous.Modified)
			want := into[struct {
				Read     []string `json:"read_files"`
				Modified []string `json:"modified_files"`
			}](t, c.Expect)
			testkit.Equal(t, [][]string{want.Read, want.Modified}, [][]string{read, modified})
		})
	}
}

// given returns a case's whole input.
func (c *confCase) given(t *testing.T) jsontext.Value {
	t.Helper()
	raw := testkit.Must(os.ReadFile("testdata/compaction.json"))(t)
	for _, one := range into[[]struct {
		ID    string
		Given jsontext.Value
	}](t, raw) {
		if one.ID == c.ID {
			return one.Given
		}
	}
	t.Fatalf("no case %s", c.ID)
	return nil
}

// replies is a model with the case's answers.
type replies struct {
	list  []map[string]any
	asked []session.SummaryRequest
}

func (r *replies) Summarize(_ context.Context, in session.SummaryRequest) (session.Summary, error) {
	r.asked = append(r.asked, in)
	reply := r.list[min(len(r.asked), len(r.list))-1]
	// The summarizer fails for a cut answer, an error or a call.
	if _, stopped := reply["stop"]; stopped || reply["tool_call"] == true {
		return session.Summary{}, errors.New("no whole answer")
	}
	text := fmt.Sprint(reply["text"])
	return session.Summary{Text: text, Span: text, Provider: "gemini", Model: "m"}, nil
}

// TestSerialiseConformance skips the case of another program's summarizer input by name.
func TestSerialiseConformance(t *testing.T) {
	runCases(t, "pi.serialize", func(t *testing.T, _ confCase) { t.Fatal("no case is run") })
}

// TestSummaryConformance runs pi's compactions as far as sessiond follows them: which summaries are
// requested, in which order, with which previous summary and instructions, what is carried over, and
// that no partial summary is kept. Sessiond joins the parts in its own way.
func TestSummaryConformance(t *testing.T) {
	for _, c := range conformance(t, "pi.compact") {
		t.Run(c.ID, func(t *testing.T) {
			if why := skippedCases()[c.ID]; why != "" {
				t.Skip(why)
			}
			settings := into[struct {
				Keep         int64 `json:"keep_recent_tokens"`
				Instructions string
			}](t, c.Given.Settings)
			model := &replies{list: into[struct {
				Replies []map[string]any `json:"model_replies"`
			}](t, c.given(t)).Replies}
			path, previous := sinceOverlay(pathOf(c.Given.Entries, c.Given.Leaf))
			r := &snapshot{scales: &scales{scale: 1}, numbers: Numbers{SummaryMax: 1000}}
			for i, e := range path {
				m := messageOf(t, e)
				m.RowID = int64(i + 1)
				r.Messages = append(r.Messages, m)
			}
			plan := MakePlan(entriesOf(t, path), CutRule{KeepTokens: settings.Keep, MetadataSplits: true}, PlanRoom{})
			mgr := &Manager{cfg: Config{Counter: func(string) Counter { return runes{} }}}
			w := summaryWriter{
				m: mgr, s: r, in: &overlayInput{summarizer: model, instructions: settings.Instructions},
				record: &session.Compaction{}, details: &session.CompactionDetails{},
			}
			w.past.running, _ = previous.(string)
			err := w.write(t.Context(), &plan)

			want := into[struct {
				OK      bool
				Summary string
				Calls   []struct {
					Kind     string
					Previous bool `json:"has_previous_summary"`
					Focus    bool `json:"has_focus"`
				}
			}](t, c.Expect)
			if (err == nil) != want.OK || len(model.asked) != len(want.Calls) {
				t.Fatalf("%d calls, error %v; want %+v", len(model.asked), err, want)
			}
			for i, call := range want.Calls {
				asked := model.asked[i]
				if (call.Kind == "prefix") != asked.TurnPrefix || call.Previous == asked.First() ||
					call.Focus != (asked.Instructions != "") {
					t.Errorf("call %d: %+v; want %+v", i, asked, call)
				}
			}
			if !want.OK {
				return
			}
			said := []string{w.record.Summary, w.record.PrefixSummary}
			if whole := slices.DeleteFunc(said, func(s string) bool {
				return s == ""
			}); !inOrder(want.Summary, whole) || len(whole) == 0 {
				t.Errorf("the record says %q; pi %q", whole, want.Summary)
			}
		})
	}
}

// inOrder reports whether a text holds parts one after the other.
func inOrder(text string, parts []string) bool {
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}

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
			call := session.Call{
				InputTokens: in.Tokens.Input, OutputTokens: in.Tokens.Output,
				CacheReadTokens: in.Tokens.Cache.Read, CacheWriteTokens: in.Tokens.Cache.Write,
			}
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
		}](t, jsontext.Value(replaceKey(c.Given.Settings, "threshold", "fraction")))
		n := numbersOf(t, presetGoose, Settings{Fraction: &in.Fraction}, in.Window, 0)
		equal(t, map[string]any{"compact": fires(n, in.Tokens)}, c.Expect)
	})
}

func replaceKey(raw jsontext.Value, from, to string) string {
	var fields map[string]jsontext.Value
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
					SessionID: r.id, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
					Summary:   "S",
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
				add.Call = &session.Call{
					Purpose: session.PurposeChat, Status: session.CallOK, Model: "m",
					InputTokens: e.Usage.Input, OutputTokens: e.Usage.Output, CreatedAt: session.At(r.clock.Now()),
				}
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
		if fires(n, v.Tokens.Total) != want.Compact ||
			want.Tokens > 0 && (v.Tokens.Total < want.Tokens || v.Tokens.Total > want.Tokens+8) {
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
