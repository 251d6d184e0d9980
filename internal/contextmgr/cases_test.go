package contextmgr

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// ranAt names the test that runs the cases of an algorithm, one subtest each.
func ranAt() map[string]string {
	return map[string]string{
		"sessiond.threshold":          "conformance_test.go TestThresholdConformance",
		"openclaw.reserve_floor":      "conformance_test.go TestReserveFloorConformance",
		"openclaw.pre_flush":          "conformance_test.go TestPreFlushConformance",
		"pi.should_compact":           "trigger_conformance_test.go TestPiTriggerConformance",
		"pi.check_after_turn":         "trigger_conformance_test.go TestAfterTurnConformance",
		"codex.auto_compact_limit":    "trigger_conformance_test.go TestCodexTriggerConformance",
		"opencode.is_overflow":        "trigger_conformance_test.go TestOpencodeTriggerConformance",
		"opencode2.compact_if_needed": "trigger_conformance_test.go TestReserveTriggerConformance",
		"gemini.fraction":             "trigger_conformance_test.go TestFractionTriggerConformance",
		"pi.estimate_tokens":          "conformance_test.go TestOtherEstimatesConformance",
		"pi.estimate_context":         "conformance_test.go TestEstimateConformance",
		"pi.find_cut_point":           "conformance_test.go TestCutConformance",
		"pi.prepare_compaction":       "conformance_test.go TestPrepareConformance",
		"pi.compact":                  "summary_conformance_test.go TestSummaryConformance",
		"pi.serialize":                "summary_conformance_test.go TestSerialiseConformance",
		"pi.file_operations":          "summary_conformance_test.go TestFileOperationsConformance",
		"pi.build_context":            "programs_conformance_test.go TestBuildContextConformance",
		"opencode.prune":              "prune_test.go TestPruneConformance",
		"opencode.select_tail":        "trigger_conformance_test.go TestTailConformance",
		"opencode.filter_compacted":   "programs_conformance_test.go TestFilterCompactedConformance",
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
		"summary-update":     "no preset uses it: the span has a summary of its own, and the running one is an update with that",
		"summary-serialise":  "no preset uses it: what a summariser reads names each message by its number and who made it",

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
		if source, err := os.ReadFile(filepath.Clean(file)); err != nil || !strings.Contains(string(source), "func "+test+"(t *testing.T)") || !strings.Contains(string(source), `"`+c.Algorithm+`"`) {
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
