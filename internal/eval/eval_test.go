package main

import (
	"strings"
	"testing"

	"sessiond/internal/session"
)

// What the digest promises without a model, in three languages, after five compactions at
// 2,000 tokens: what the person demanded stands in it, and recall finds every fact.
func TestADemandIsKeptAndAnyFactIsFoundAgain(t *testing.T) {
	talks, err := written()
	if err != nil {
		t.Fatal(err)
	}
	r, err := openRig(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for _, talk := range talks {
		t.Run(talk.name, func(t *testing.T) {
			got, err := r.measure(t.Context(), talk)
			if err != nil {
				t.Fatal(err)
			}
			demands, all := place{compactions, kindConstraint}, place{compactions, sumClear}
			if n := got.asked[demands]; n == 0 || got.found[demands][digested] != n {
				t.Errorf("%d of %d demands are in the digest", got.found[demands][digested], n)
			}
			if n := got.asked[all]; got.found[all][recalled] != n {
				t.Errorf("%d of %d facts are found: %q", got.found[all][recalled], n, got.lost)
			}
		})
	}
}

func TestFactsAreThoseThatAQuestionCanMean(t *testing.T) {
	say := func(origin session.Origin, role session.Role, text string) session.Message {
		return session.Message{Kind: session.KindMessage, Role: role, Origin: origin, Parts: []session.Part{session.TextPart(text)}}
	}
	msgs := []session.Message{
		say(session.Person, session.User, "Never restart the billing gateway without me. What is next?"),
		say(session.ByTool, session.Tool, "12: return nothing 777\n13: return nothing 888\n14: return nothing 999\nThe gateway charges $129 for each merchant."),
		say(session.Model, session.Assistant, "We will use retryBudget for merchant calls."),
	}
	var got []string
	for _, f := range factsOf(msgs, len(msgs)) {
		if !f.unclear {
			got = append(got, f.kind+" "+f.text)
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"constraints Never restart the billing gateway without me.", "decisions We will use retryBudget", "numbers $129"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	if strings.Contains(all, "888") || strings.Contains(all, "next") {
		t.Errorf("got\n%s", all)
	}
}
