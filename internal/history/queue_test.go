package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// sizes stores nothing before all was given, and remembers how many messages came at once.
type sizes struct {
	*fakeStore
	given chan struct{}
	of    []int
	heads []string
}

func (s *sizes) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	<-s.given
	s.of = append(s.of, len(b.Messages))
	if b.Head != nil {
		s.heads = append(s.heads, *b.Head)
	}
	return s.fakeStore.Import(ctx, b)
}

func batchOf(source string, from, n int) (b Batch) {
	b.Session = NewSession{Source: "fake", SourceID: source}
	for i := range n {
		b.Messages = append(b.Messages, Message{Message: session.Message{ExternalID: fmt.Sprint(source, from+i)}})
	}
	b.Records.Import(n)
	b.Records.Skip(SkipBlank, 1)
	return b
}

// What waits for the store comes in with one transaction, in its order, with all its counts.
func TestBatchesThatWaitComeInTogether(t *testing.T) {
	st := &sizes{fakeStore: newFakeStore(), given: make(chan struct{})}
	source := asking{read: func(ctx context.Context, f Found, _ Known, emit func(Batch) error) error {
		for i := range mostWaiting + 1 { // the first is taken at once
			b := batchOf("one", 10*i, 10)
			head := b.Messages[9].ExternalID
			if b.Head = &head; i == mostWaiting {
				b.Cursor = &Cursor{Source: "fake", Path: f.Path}
			}
			if err := emit(b); err != nil {
				return err
			}
		}
		close(st.given)
		return nil
	}}
	im := Importer{Store: st, Pause: -1}
	done, err := im.Run(t.Context(), source, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := 10 * (mostWaiting + 1)
	if len(st.of) > 3 || done.Records.Imported != all || done.Records.Skipped[SkipBlank] != mostWaiting+1 || !done.Records.Balanced() {
		t.Errorf("in transactions of %v: %+v", st.of, done.Records)
	}
	if len(st.known) != all+1 || len(st.heads) == 0 || st.heads[len(st.heads)-1] != fmt.Sprint("one", all-1) {
		t.Errorf("%d messages are there, heads %v", len(st.known)-1, st.heads)
	}
	if st.cursors["/a"] == nil {
		t.Error("and no cursor")
	}
}

// strict stores nothing before all was given, and refuses one message.
type strict struct {
	sizes
	refuses string
}

func (s *strict) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	<-s.given
	for i := range b.Messages {
		if b.Messages[i].ExternalID == s.refuses {
			return store.ImportResult{}, session.Errorf(session.Invalid, "its parent is not here")
		}
	}
	return s.sizes.Import(ctx, b)
}

// What came before it does not depend on whether it waited.
func TestARefusedBatchTakesNoneOfThoseWithItThatItWaitedWith(t *testing.T) {
	for _, refused := range []int{0, 1, 3, mostWaiting} {
		st := &strict{sizes: sizes{fakeStore: newFakeStore(), given: make(chan struct{})}, refuses: fmt.Sprint("one", 10*refused)}
		source := asking{read: func(ctx context.Context, f Found, _ Known, emit func(Batch) error) error {
			for i := range mostWaiting + 1 {
				b := batchOf("one", 10*i, 10)
				if i == mostWaiting {
					b.Cursor = &Cursor{Source: "fake", Path: f.Path}
				}
				if err := emit(b); err != nil {
					return err
				}
			}
			close(st.given)
			return nil
		}}
		im := Importer{Store: st, Pause: -1}
		done, err := im.Run(t.Context(), source, nil)
		if err != nil || len(done.Errors) != 1 {
			t.Fatalf("%+v %v", done, err)
		}
		if got := done.Records; got.Imported != 10*refused || got.Skipped[SkipBlank] != refused || got.Skipped[SkipKnown] != 0 || !got.Balanced() {
			t.Errorf("batch %d is refused: %+v", refused, got)
		}
		if n := len(st.known); n != 10*refused+min(refused, 1) {
			t.Errorf("batch %d is refused: %d are there", refused, n)
		}
		if c := st.cursors["/a"]; c != nil && !isRefused(c) { // what is remembered of a refusal is none
			t.Errorf("batch %d is refused: there is a cursor", refused)
		}
	}
}

// Its cursor is as it was given when a batch is offered again by itself.
func TestStoringTogetherChangesNoCursorThatWasGiven(t *testing.T) {
	first, second := batchOf("one", 0, 1), batchOf("one", 1, 1)
	second.Cursor = &Cursor{Source: "fake"}
	first.add(&second)
	first.Cursor.Counts = session.JSON(`{}`)
	if second.Cursor.Counts != nil {
		t.Error("it has counts")
	}
}

func TestOnlyBatchesOfOneSessionAreJoined(t *testing.T) {
	title := "a title"
	for _, test := range []struct {
		name string
		b    func(*Batch)
		next func(*Batch)
		want bool
	}{
		{"two of one session", func(*Batch) {}, func(*Batch) {}, true},
		{"the cursor comes last", func(*Batch) {}, func(b *Batch) { b.Cursor = &Cursor{} }, true},
		{"behind a cursor", func(b *Batch) { b.Cursor = &Cursor{} }, func(*Batch) {}, false},
		{"behind a title", func(b *Batch) { b.Title = &title }, func(*Batch) {}, false},
		{"another session", func(*Batch) {}, func(b *Batch) { b.Session.SourceID = "two" }, false},
		{"a session without a name", func(b *Batch) { b.Session.SourceID = "" }, func(b *Batch) { b.Session.SourceID = "" }, false},
		{"one that is now known by its own id", func(*Batch) {}, func(b *Batch) { b.ID = "20260101_001" }, false},
		{"something that another found thing holds", func(*Batch) {}, func(b *Batch) { b.Aside = true }, false},
		{"too many messages", func(b *Batch) { b.Messages = make([]Message, MaxBatch) }, func(*Batch) {}, false},
		{"too many bytes", func(b *Batch) { b.bytes = MaxBatchBytes }, func(b *Batch) { b.bytes = 1 }, false},
	} {
		b, next := batchOf("one", 0, 1), batchOf("one", 1, 1)
		test.b(&b)
		test.next(&next)
		if got := joinable(&b, &next); got != test.want {
			t.Errorf("%s: joined is %v", test.name, got)
		}
	}
}

// Batches that were put together are settled one by one, so they stay as they were given.
func TestJoiningLeavesTheFirstBatchAsItWas(t *testing.T) {
	first, second := batchOf("one", 0, 2), batchOf("one", 2, 2)
	steps := make(chan step, 2)
	steps <- step{batch: &second}
	q, s := queue{steps: steps}, step{batch: &first}
	given := q.join(&s, MaxBatch, MaxBatchBytes)
	if len(given) != 2 || given[0] != &first || len(first.Messages) != 2 || !maps.Equal(first.Records.Skipped, map[string]int{SkipBlank: 1}) {
		t.Errorf("%d given, the first with %d messages, %v", len(given), len(first.Messages), first.Records.Skipped)
	}
	var keys []string
	for _, m := range s.batch.Messages {
		keys = append(keys, m.ExternalID)
	}
	if want := []string{"one0", "one1", "one2", "one3"}; !slices.Equal(keys, want) {
		t.Errorf("%v", keys)
	}
}
