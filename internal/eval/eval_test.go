// Package eval_test measures what is left of a conversation after compactions: of the facts in its
// hidden part, how many the context still holds with truncation, with the digest, with the digest's
// index, and with recall when somebody asks. docs/performance.md explains the tables, which scripts/eval
// prints. It needs no model and no network.
package eval_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/recall"
	"sessiond/internal/redact"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

var (
	folder = flag.String("folder", "", "folder of transcripts to measure, in folders pi, codex, claude-code and opencode")
	lost   = flag.Bool("lost", false, "print the facts that are not in the context even with recall")
)

const (
	window      = 128_000 // of the model, in tokens: a summary may then have 2,000
	keptTokens  = 1500    // that a compaction leaves
	compactions = 5       // of each conversation
)

// After five compactions, in four languages, the digest holds every demand of a person and recall
// finds every fact.
func TestFactsSurviveCompactions(t *testing.T) {
	r := openRig(t)
	sum := tally{}
	for _, talk := range writtenTalks(t) {
		t.Run(talk.name, func(t *testing.T) {
			got := r.measure(t, talk)
			demands, all := got[place{compactions, kindConstraint}], got[place{compactions, sumClear}]
			if demands.asked == 0 || demands.found[digested] != demands.asked {
				t.Errorf("%d of %d demands are in the digest", demands.found[digested], demands.asked)
			}
			if all.found[recalled] != all.asked {
				t.Errorf("%d of %d facts are found", all.found[recalled], all.asked)
			}
			sum.add(got)
		})
	}
	sum.print("conversations that come with it")
}

func TestTranscripts(t *testing.T) {
	if *folder == "" {
		t.Skip("-folder names no folder")
	}
	r := openRig(t)
	sum := tally{}
	talks := r.importTalks(t, *folder)
	for _, talk := range talks {
		sum.add(r.measure(t, talk))
	}
	sum.print(fmt.Sprintf("%d transcripts", len(talks)))
}

// rig is the product without its daemon.
type rig struct {
	store    *store.Store
	index    *search.Index
	contexts *contextmgr.Manager
}

func openRig(t *testing.T) *rig {
	dir, reference := t.TempDir(), tokens.Reference()
	s := testkit.Must(store.Open(t.Context(), filepath.Join(dir, "sessions.db"), store.Options{Measure: reference.Measure, Touched: touched.Files}))(t)
	t.Cleanup(func() { _ = s.Close() })
	index := testkit.Must(search.Open(t.Context(), filepath.Join(dir, "search.db"), s))(t)
	t.Cleanup(func() { _ = index.Close() })
	return &rig{s, index, contextmgr.New(s, contextmgr.Config{
		Digest:    summarize.NewExtractive(reference.Text),
		Models:    func(id string) (session.ModelInfo, bool) { return session.ModelInfo{ID: id, Window: window}, true },
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Reference: string(reference.Family()), Recall: recall.Lookup{Index: index, Store: s},
		Mask: func(text string) string { masked, _ := redact.Mask(text); return masked },
	})}
}

// measure appends a conversation in as many pieces as it is compacted, and asks after the first, the
// second and the last compaction for what was said until then.
func (r *rig) measure(t *testing.T, talk talk) tally {
	ctx, out := t.Context(), tally{}
	id := testkit.Must(r.store.CreateSession(ctx, store.NewSession{Model: "m", Directory: talk.directory}))(t).ID
	fifth := len(talk.messages) / compactions
	facts := talk.labelled
	if facts == nil {
		facts = sampleFacts(talk.messages, fifth)
	}
	keep, none := int64(keptTokens), int64(0)
	var head *session.MessageRef
	told := 0
	for n := 1; n <= compactions; n++ {
		upto := len(talk.messages) * n / compactions
		head = testkit.Must(r.store.Append(ctx, store.Append{Session: id, Messages: talk.messages[told:upto], Parent: head}))(t).Head
		told = upto
		_, _, err := r.contexts.Compact(ctx, id, contextmgr.CompactInput{
			KeepTokens: &keep, Strategy: session.StrategySummarize,
			Budget: contextmgr.Budget{CloseCalls: true, Settings: contextmgr.Settings{KeepRecentMessages: &none}},
		})
		testkit.Check(t, err)
		testkit.Must(r.index.CatchUp(ctx))(t)
		if n > 2 && n < compactions {
			continue
		}
		for _, f := range facts {
			for _, question := range []string{f.asked, f.otherwise} {
				if f.told >= told || question == "" {
					continue
				}
				got := r.ask(t, id, head, &f, question)
				for _, row := range f.rows(question, fifth) {
					out.count(place{n, row}, got)
				}
				if *lost && !got[recalled] {
					t.Logf("lost after %d: %s %q, asked %q, unclear: %v", n, f.kind, f.text, question, f.unclear)
				}
			}
		}
	}
	return out
}

// ask appends a question on a branch of its own and looks for the fact in the context. Recall has a
// minute, so that the figures do not depend on the machine.
func (r *rig) ask(t *testing.T, id session.ID, head *session.MessageRef, f *fact, question string) (got found) {
	asked := newMessage(session.User, session.Person, session.TextPart(strings.TrimRight(question, "?？")+"?"))
	testkit.Must(r.store.Append(t.Context(), store.Append{Session: id, Parent: head, Messages: []session.Message{asked}}))(t)
	minute := time.Minute.Milliseconds()
	v := testkit.Must(r.contexts.Assemble(t.Context(), id, contextmgr.Budget{CloseCalls: true, Settings: contextmgr.Settings{RecallMS: &minute}}))(t)
	summary := slices.IndexFunc(v.Provenance, func(p contextmgr.Provenance) bool { return p.Kind == contextmgr.ItemSummary })
	if summary >= 0 {
		summary = v.Provenance[summary].Message
	}
	last := len(v.Messages) - 1
	for i := range v.Messages {
		m := &v.Messages[i]
		switch i {
		case summary:
			digest, index, _ := strings.Cut(m.Text(), "## Index")
			got[digested], got[indexed] = f.in(digest), f.in(index)
		case last: // the question itself, then what was recalled for it
			got[recalled] = slices.ContainsFunc(m.Parts[1:], func(p session.Part) bool { return f.in(p.Text) })
		default:
			got[truncated] = got[truncated] || f.in(m.Text()) || slices.ContainsFunc(m.Parts, func(p session.Part) bool { return f.in(p.Arguments) })
		}
	}
	for way := digested; way <= recalled; way++ {
		got[way] = got[way] || got[way-1]
	}
	return got
}

// Ways to make room that are compared. Each holds what the one before holds.
const (
	truncated = iota
	digested
	indexed
	recalled
	ways
)

// found says which ways keep a fact in the context.
type found [ways]bool

// place is a row of a table.
type place struct {
	after int // compactions
	kind  string
}

type cell struct {
	asked int
	found [ways]int
}

// tally counts facts.
type tally map[place]cell

func (t tally) count(p place, got found) {
	c := t[p]
	c.asked++
	for way, yes := range got {
		if yes {
			c.found[way]++
		}
	}
	t[p] = c
}

func (t tally) add(o tally) {
	for p, from := range o {
		to := t[p]
		to.asked += from.asked
		for way, n := range from.found {
			to.found[way] += n
		}
		t[p] = to
	}
}

func (t tally) print(name string) {
	fmt.Printf("\n%s\n\n| facts | after | asked | truncation | digest | digest + index | with recall |\n| --- | ---:| ---:| ---:| ---:| ---:| ---:|\n", name)
	for _, kind := range append(kinds(), sumClear, sumEvery, sumOtherwise) {
		for after := 1; after <= compactions; after++ {
			c, ok := t[place{after, kind}]
			if !ok {
				continue
			}
			fmt.Printf("| %s | %d | %d |", kind, after, c.asked)
			for _, n := range c.found {
				fmt.Printf(" %.1f %% |", 100*float64(n)/float64(c.asked))
			}
			fmt.Println()
		}
	}
}
