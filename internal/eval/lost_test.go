package eval_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"sessiond/internal/memory"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

// TestWhatSummariesLost measures how much of what the programs' own summaries lost a hook gives back: rules as sessiond
// tells them, files that calls changed, decisions and numbers of people and models by the sampler's rules, which the
// digest does not know.
func TestWhatSummariesLost(t *testing.T) {
	if *folder == "" {
		t.Skip("scripts/eval lost FOLDER measures transcripts")
	}
	r := openRig(t)
	r.importTalks(t, *folder, 1)
	all, _, err := r.store.Sessions(t.Context(), store.Filter{}, store.Page{Limit: 1000})
	testkit.Check(t, err)
	m := memory.Memory{Store: r.store, Count: tokens.Reference().Text}
	told, gone, back, spent, n := map[string]int{}, map[string]int{}, map[string]int{}, int64(0), 0
	for _, sess := range all {
		for _, c := range testkit.Must(r.store.Compactions(t.Context(), sess.ID))(t) {
			if c.Trigger != session.TriggerImport || c.ThroughID == nil || c.SessionID != sess.ID {
				continue
			}
			given := testkit.Must(m.Lost(t.Context(), &sess, *c.ThroughID, c.Summary))(t)
			n++
			spent += m.Count(given)
			for _, f := range factsOf(testkit.Must(r.store.Path(t.Context(), *c.ThroughID, 0))(t), sess.Directory) {
				told[f.kind]++
				if f.in(c.Summary) {
					continue
				}
				gone[f.kind]++
				if f.in(given) {
					back[f.kind]++
				} else if *lost {
					fmt.Printf("%s: %s %s: %q of %q\n", sess.ID, sess.Source, f.kind, f.text, f.asked)
				}
			}
		}
	}
	fmt.Printf("%d compactions, %d tokens each\n\n| | told | lost by the summary | given back |\n|---|---|---|---|\n", n, spent/max(1, int64(n)))
	for _, kind := range []string{kindRule, kindDecision, kindNumber, kindPath} {
		fmt.Printf("| %s | %d | %d | %d (%.0f %%) |\n", kind, told[kind], gone[kind], back[kind], 100*float64(back[kind])/max(1, float64(gone[kind])))
	}
}

const kindRule = "rules"

// factsOf returns the facts that a compaction may lose.
func factsOf(msgs []session.Message, folder string) []fact {
	var facts []fact
	for _, rule := range summarize.StandingRules(msgs) {
		facts = append(facts, fact{kind: kindRule, text: rule.Text})
	}
	said := slices.DeleteFunc(slices.Clone(msgs), func(m session.Message) bool { return m.Origin != session.Person && m.Role != session.Assistant })
	for _, f := range sampleFacts(said, len(said)) {
		if f.kind == kindDecision || f.kind == kindNumber {
			facts = append(facts, f)
		}
	}
	seen := map[string]bool{}
	for i := range msgs {
		for _, f := range touched.Files(&msgs[i], folder) {
			if base := filepath.Base(f.Path); f.Op != session.OpRead && !seen[base] {
				seen[base] = true
				facts = append(facts, fact{kind: kindPath, text: base})
			}
		}
	}
	return facts
}
