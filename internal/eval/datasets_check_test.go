package eval_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestDatasetsAreReadAsPublished(t *testing.T) {
	var got []string
	for _, set := range readDatasets(t, "testdata") {
		got = append(got, fmt.Sprint(set.name, " without evidence: ", set.skipped))
		for _, c := range set.chats {
			got = append(got, fmt.Sprint(c.id, " ", c.at.Format(time.DateTime), " ", c.said))
		}
		for _, q := range set.questions {
			got = append(got, fmt.Sprint(q.text, " ", q.evidence, " ", q.chats))
		}
	}
	want := []string{
		"LoCoMo without evidence: 2",
		"conv-1/D1 2023-05-08 13:56:00 [{conv-1/D1:1 A I mended the blue kite on Sunday.} {conv-1/D1:2 B Good! Does it " +
			"fly?} {conv-1/D1:3 A \n[a photo of a kite over a lake]}]",
		"conv-1/D2 2023-06-09 10:01:00 [{conv-1/D2:1 B My sister opened a bakery near the harbour.} {conv-1/D2:2 A What " +
			"does she bake?}]",
		"Which kite was mended? [conv-1/D1:1] [conv-1/D1]",
		"Where is the bakery, and who flies a kite? [conv-1/D2:1 conv-1/D1:3] [conv-1/D2 conv-1/D1]",
		"LongMemEval without evidence: 1",
		"q1/0 2023-05-20 02:21:00 [{q1/0:0 user How do I bake bread?} {q1/0:1 assistant Mix flour and water.}]",
		"q1/1 2023-05-21 03:00:00 [{q1/1:0 user I bought a tent at the market today.} {q1/1:1 assistant Enjoy it!}]",
		"q2_abs/0 2023-05-20 02:21:00 [{q2_abs/0:0 user I have a dog.}]",
		"Where did I buy my tent? [q1/1:0] [q1/1]",
		"REALTALK without evidence: 0",
		"Chat_1_Ann_Ben/D1 2023-12-29 13:34:36 [{Chat_1_Ann_Ben/D1:1 Ann Our team lost the final yesterday} " +
			"{Chat_1_Ann_Ben/D1:2 Ben Against whom?}]",
		"Who lost the final? [Chat_1_Ann_Ben/D1:1] [Chat_1_Ann_Ben/D1]",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// listed is an engine that finds the same for every question.
type listed []string

func (listed) name() string                                 { return "listed" }
func (l listed) sayings(_, dialogue string, _ int) []string { return l[:2+len(dialogue)] }
func (l listed) talks(_, _ string, _ int) []string          { return l }

func TestFiguresOfAnEngine(t *testing.T) {
	found := listed{"a", "b", "c", "d"}
	f := score(found, []question{
		{dialogue: "x", evidence: []string{"c", "z"}, chats: []string{"b"}}, // c is third, found within the dialogue only
		{dialogue: "x", evidence: []string{"a"}, chats: []string{"a", "z"}},
		{dialogue: "x", chats: []string{"z"}}, // a question without sayings
	})
	f.times = nil
	want := figures{questions: 3, withSayings: 2, hit1: 1, hit5: 2, mrr: 1.5, recall: 1.5, any: 2, recallAll: 1, anyA: 1}
	if fmt.Sprint(f) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", f, want)
	}
}

// On real dialogues sessiond finds what plain FTS5 finds; on these small ones, everything.
func TestBothEnginesAnswer(t *testing.T) {
	for _, set := range readDatasets(t, "testdata") {
		for _, e := range []engine{openSessiond(t, set), openPlain(t, set)} {
			if f := score(e, set.questions); f.hit1 != float64(f.questions) || f.recall != float64(f.withSayings) {
				t.Errorf("%s, %s: %+v", set.name, e.name(), f)
			}
		}
	}
}
