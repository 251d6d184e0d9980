package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// conversation is the one of the promise: prices come from a tool early on, two hundred
// messages go by, then somebody asks for one.
func conversation() *fakeStore {
	store := newFakeStore()
	store.add(first, session.User, "Compare the prices of the three companies please")
	store.add(first, session.Tool, `{"CompanyA": "$99", "CompanyB": "$129", "CompanyC": "$89"}`)
	store.add(first, session.Assistant, "CompanyC is the cheapest.")
	for i := range 200 {
		store.add(first, session.User, fmt.Sprintf("Now tell me what was said about step %d of the plan, again", i))
	}
	return store
}

func TestRecallFindsDetailMissingFromSummary(t *testing.T) {
	hidden := []Span{{first, 1, 150}}
	for _, state := range []string{"indexed", "in the tail"} {
		t.Run(state, func(t *testing.T) {
			store := conversation()
			store.add(first, session.User, "What was CompanyB's price again?")
			ix := openIndex(t, store)
			if state == "indexed" {
				catchUp(t, ix)
			}
			r := testkit.Must(ix.Recall(t.Context(), RecallQuery{Text: "What was CompanyB's price again?", Within: hidden}))(t)
			if r.Unread != 0 || len(r.Hits) == 0 {
				t.Fatalf("recalled %+v", r)
			}
			found := false
			for _, h := range r.Hits[:min(3, len(r.Hits))] {
				found = found || h.Ref == session.MessageRef{Session: first, Seq: 2} && h.RowID == 2
			}
			if !found {
				t.Errorf("the price is not among the first three of %+v", r.Hits)
			}
		})
	}
}

func TestRecallStaysWithinTheSpans(t *testing.T) {
	store := newFakeStore()
	for i := range 5 {
		store.add(first, session.User, fmt.Sprintf("zebra giraffe %d", i))
		store.add(second, session.User, fmt.Sprintf("zebra giraffe %d", i))
	}
	ix := openIndex(t, store)
	catchUp(t, ix)
	r, err := ix.Recall(t.Context(), RecallQuery{
		Text: "zebras and giraffes", MaxHits: 50,
		Within:  []Span{{first, 2, 4}, {second, 5, 12}},
		Allowed: func(row int64) bool { return row != store.messages[4].RowID }, // first.3
	})
	testkit.Check(t, err)
	got := []string{}
	for _, h := range r.Hits {
		got = append(got, h.Ref.String())
	}
	if strings.Join(got, " ") != "20260211_002.5 20260211_001.4 20260211_001.2" {
		t.Errorf("recalled %v", got)
	}
}

func TestRecallWithoutRareWordsFindsNothing(t *testing.T) {
	ix := openIndex(t, conversation())
	catchUp(t, ix)
	for name, text := range map[string]string{
		"common words": "what was said about the plan", "no text": "", "unknown words": "blue elephants dance",
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.Must(ix.Recall(t.Context(), RecallQuery{Text: text, Within: []Span{{first, 1, 200}}}))(t)
			if len(r.Hits) > 0 {
				t.Errorf("recalled %+v", r.Hits)
			}
		})
	}
}

// A redo gives the same context, so a recall may depend on nothing but the messages: not on the index's progress.
func TestRecallIsTheSameIndexedOrNot(t *testing.T) {
	query := RecallQuery{
		Text: "the prices of CompanyB in step 17 of the plan", Within: []Span{{first, 1, 200}},
		Newest: 200,
	}
	store := conversation()
	ix := openIndex(t, store)
	before := testkit.Must(ix.Recall(t.Context(), query))(t)
	catchUp(t, ix)
	store.add(first, session.User, "What about step 17 of the plan?")
	after := testkit.Must(ix.Recall(t.Context(), query))(t)
	if diff := cmp.Diff(before, after); diff != "" || len(after.Hits) < 2 {
		t.Errorf("%d hits; the index makes a difference: %s", len(after.Hits), diff)
	}
	if ix.tail.upto > 203 {
		t.Error("a recall of indexed messages read newer ones")
	}
}

func TestRecallCountsMessagesThatItDidNotSearch(t *testing.T) {
	store := conversation()
	for i := range 2 * tailLimit {
		store.add(second, session.User, fmt.Sprint("and again ", i))
	}
	ix := openIndex(t, store)
	r := testkit.Must(ix.Recall(t.Context(), RecallQuery{
		Text: "prices of CompanyB", Within: []Span{{first, 1, 200}},
		Newest: 200,
	}))(t)
	if want := len(store.messages) - tailLimit; r.Unread != want || len(r.Hits) != 0 {
		t.Errorf("%d unread, %d hits, want %d and none", r.Unread, len(r.Hits), want)
	}
}

func TestRecallReturnsCallersCancellation(t *testing.T) {
	ix := openIndex(t, conversation())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ix.Recall(ctx, RecallQuery{Text: "prices of CompanyB", Within: []Span{{first, 1, 200}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's cancellation", err)
	}
}

// zipf makes messages whose words are as unevenly frequent as those of real text.
func zipf(n int) *fakeStore {
	rng := rand.New(rand.NewPCG(3, 4))
	words := rand.NewZipf(rng, 1.1, 4, 50_000)
	store := newFakeStore()
	var b strings.Builder
	for i := range n {
		b.Reset()
		for range 10 + rng.IntN(60) {
			fmt.Fprintf(&b, "w%d ", words.Uint64())
		}
		if i%1000 == 7 {
			b.WriteString("seldom rarely")
		}
		store.addParts(session.NewID("2026-02-11", int64(1+i/5000)), session.User, began.Add(time.Duration(i)*time.Second),
			session.TextPart(b.String()))
	}
	return store
}

func BenchmarkSearch(b *testing.B) {
	const n = 1_000_000
	store := zipf(n)
	ix := openIndex(b, store)
	start := time.Now()
	catchUp(b, ix)
	b.Logf("indexed %d messages in %s", n, time.Since(start).Round(time.Millisecond))
	all := session.NewID("2026-02-11", 5)
	for _, c := range []struct {
		name  string
		query Query
	}{
		{"newest/rare", Query{Text: "seldom", Order: OrderNewest}},
		{"newest/common", Query{Text: "w0", Order: OrderNewest}},
		{"newest/two common", Query{Text: "w1 w2", Order: OrderNewest}},
		{"newest/session", Query{Text: "w3", Order: OrderNewest, Session: all}},
		{"rank/rare", Query{Text: "seldom rarely"}},
		{"rank/common", Query{Text: "w0"}},
		{"rank/three common", Query{Text: "w1 w2 w3"}},
		{"rank/common and rare", Query{Text: "w1 seldom"}},
		{"rank/question", Query{Text: "What did w900 say about w2000 and w40 when w300 was there?"}},
		{"rank/session", Query{Text: "w900 w40 w7", Session: all}},
		{"hook/question", Query{Text: "w900 say w2000 w40 w300 there", Group: GroupSession, Limit: 5, Rare: true}},
		{"hook/rare", Query{Text: "w2000 w4000 seldom w9000 w700", Group: GroupSession, Limit: 5, Rare: true}},
		{"group/common", Query{Text: "w0", Group: GroupSession}},
		{"group/question", Query{Text: "What did w900 say about w2000 and w40 when w300 was there?", Group: GroupSession}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				search(b, ix, c.query)
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
	b.Run("recall", func(b *testing.B) {
		for b.Loop() {
			r, err := ix.Recall(b.Context(), RecallQuery{
				Text: "w0 w1 w2 w5 w20 w100 w700 w3000 seldom w12000 w31000", Within: []Span{{all, 1, 4000}},
			})
			if err != nil || len(r.Hits) == 0 {
				b.Fatal(r, err)
			}
		}
	})
}

func TestCommonWordsMayBeRareTogether(t *testing.T) {
	store := newFakeStore()
	for i := range 120 {
		store.add(first, session.User, fmt.Sprintf("import the %s %d", []string{"user", "message", "theme"}[i%3], i))
	}
	store.add(first, session.Tool, "import of the user message")
	store.add(first, session.User, "import of the user message?")
	ix := openIndex(t, store)
	catchUp(t, ix)
	ask := func(text string) []RecallHit {
		r := testkit.Must(ix.Recall(t.Context(), RecallQuery{Text: text, Within: []Span{{first, 1, 121}}}))(t)
		return r.Hits
	}
	if hits := ask("import user message"); len(hits) != 1 || hits[0].Ref.Seq != 121 {
		t.Errorf("found %+v, want message 121 alone", hits)
	}
	for _, text := range []string{"import", "import the user"} { // in too many, also together
		if hits := ask(text); len(hits) != 0 {
			t.Errorf("%q is in every other message, found %+v", text, hits)
		}
	}
}
