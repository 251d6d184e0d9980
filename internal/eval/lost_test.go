package eval_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/memory"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
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
	var known, unknown lostCount // to the hook: what the summary says
	n, planted := 0, share{}
	for _, sess := range all {
		for _, c := range testkit.Must(r.store.Compactions(t.Context(), sess.ID))(t) {
			if c.Trigger != session.TriggerImport || c.ThroughID == nil || c.SessionID != sess.ID {
				continue
			}
			n++
			hidden := testkit.Must(r.store.Path(t.Context(), *c.ThroughID, 0))(t)
			facts := factsOf(hidden, sess.Directory)
			for count, summary := range map[*lostCount]string{&known: c.Summary, &unknown: ""} {
				given := testkit.Must(m.Lost(t.Context(), &sess, *c.ThroughID, summary))(t)
				left := count.add(facts, c.Summary, given, m.Count(given))
				for _, f := range left {
					if *lost && count == &known {
						fmt.Printf("%s: %s %s: %q of %q\n", sess.ID, sess.Source, f.kind, f.text, f.asked)
					}
				}
			}
			given := digest.Lost(plantRules(hidden), session.Givers{}, c.Summary, nil, 2000, m.Count)
			for _, rule := range plantedRules {
				planted.count("", strings.Contains(given, rule))
			}
		}
	}
	fmt.Printf("%d compactions; %d tokens each where the hook knows the summary, %d where not\n\n"+
		"| | told | lost by the summary | given back | given back without knowing the summary |\n|---|---|---|---|---|\n", n,
		known.tokens/max(1, int64(n)), unknown.tokens/max(1, int64(n)))
	for _, kind := range []string{kindRule, kindDecision, kindNumber, kindPath} {
		fmt.Printf("| %s | %d | %d | %d (%.0f %%) | %d (%.0f %%) |\n", kind, known.kinds[kind].told, known.kinds[kind].lost,
			known.kinds[kind].back, known.kinds[kind].share(), unknown.kinds[kind].back, unknown.kinds[kind].share())
	}
	fmt.Printf("\nOf %d rules planted in each: %v given back\n", len(plantedRules), planted)
}

// lostCount counts the facts that summaries lost, and those of them that a hook gave back, by kind.
type lostCount struct {
	kinds  map[string]lostFacts
	tokens int64
}

type lostFacts struct{ told, lost, back int }

func (l lostFacts) share() float64 { return 100 * float64(l.back) / max(1, float64(l.lost)) }

// add counts the facts of one compaction and returns those that are neither in its summary nor given back.
func (l *lostCount) add(facts []fact, summary, given string, tokens int64) (left []fact) {
	if l.kinds == nil {
		l.kinds = map[string]lostFacts{}
	}
	l.tokens += tokens
	for _, f := range facts {
		k := l.kinds[f.kind]
		k.told++
		switch {
		case f.in(summary):
		case f.in(given):
			k.lost++
			k.back++
		default:
			k.lost++
			left = append(left, f)
		}
		l.kinds[f.kind] = k
	}
	return left
}

// plantRules returns the messages with the planted rules between them, each said by the person in a message of its own.
func plantRules(msgs []session.Message) (out []session.Message) {
	for i, rule := range plantedRules {
		from, to := i*len(msgs)/len(plantedRules), (i+1)*len(msgs)/len(plantedRules)
		out = append(out, session.Message{
			Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true,
			Parts: []session.Part{session.TextPart(rule)},
		})
		out = append(out, msgs[from:to]...)
	}
	return out
}

const kindRule = "rules"

// factsOf returns the facts that a compaction may lose.
func factsOf(msgs []session.Message, folder string) []fact {
	var facts []fact
	for _, rule := range digest.StandingRules(msgs, session.Givers{}) {
		facts = append(facts, fact{kind: kindRule, text: rule.Text})
	}
	said := slices.DeleteFunc(slices.Clone(msgs), func(m session.Message) bool {
		return m.Origin != session.Person && m.Role != session.Assistant
	})
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
