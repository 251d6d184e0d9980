package history

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// countedStore notes how many messages and calls each transaction takes. Another process
// writes during the one that foreign names; a message takes the time of each.
type countedStore struct {
	*fakeStore
	sizes, calls []int
	foreign      int
	awaited      int // somebody waits after that transaction
	each         time.Duration
}

func (s *countedStore) Awaited() (bool, error) {
	return s.awaited > 0 && len(s.sizes) == s.awaited, nil
}

func (s *countedStore) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	s.sizes, s.calls = append(s.sizes, len(b.Messages)), append(s.calls, len(b.Calls))
	time.Sleep(s.each * time.Duration(len(b.Messages)))
	return s.fakeStore.Import(ctx, b)
}

func (s *countedStore) DataVersion(context.Context) (int64, error) {
	if s.foreign > 0 && len(s.sizes) >= s.foreign {
		return 2, nil
	}
	return 1, nil
}

func TestTransactionsGrowUntilOthersWrite(t *testing.T) {
	for _, test := range []struct {
		name    string
		polite  bool
		foreign int
		awaited int
		each    time.Duration
		want    []int
	}{
		{"nobody else writes", false, 0, 0, 0, []int{48, 96, 192, 384, 280, 1000}},
		{"somebody waits behind the third", false, 0, 3, time.Millisecond, append([]int{48, 96, 192}, slices.Concat(slices.Repeat([]int{8}, 101), []int{856})...)},
		{"somebody does from the third on", false, 3, 0, 0, append([]int{48, 96, 192}, slices.Concat(slices.Repeat([]int{48}, 13), []int{40}, slices.Repeat([]int{48}, 20), []int{40})...)},
		{"others of this process do, and a message takes 125 µs", true, 0, 0, 125 * time.Microsecond, append([]int{48}, slices.Concat(slices.Repeat([]int{16}, 59), []int{8}, slices.Repeat([]int{16}, 62), []int{8})...)},
		{"the host is so busy that a message takes 1 ms", true, 0, 0, time.Millisecond, append([]int{48}, slices.Repeat([]int{8}, 119+125)...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &countedStore{fakeStore: newFakeStore(), foreign: test.foreign, awaited: test.awaited, each: test.each}
				source := asking{read: func(_ context.Context, _ Found, _ Known, emit func(Batch) error) error {
					for n := range 2 {
						b := Batch{}
						b.Session = NewSession{Source: "fake", SourceID: "one"}
						for i := range MaxBatch {
							key := fmt.Sprint(n, " ", i)
							b.Messages = append(b.Messages, Message{Message: session.Message{ExternalID: key}})
							b.Calls = append(b.Calls, Call{MessageKey: key, Call: session.Call{ExternalID: key}})
							b.Records.Import(1)
						}
						if err := emit(b); err != nil {
							return err
						}
					}
					return nil
				}}
				done, err := (&Importer{Store: st, Polite: test.polite}).Run(t.Context(), source, nil)
				if err != nil || done.Records.Imported != 2*MaxBatch || len(st.known) != 2*MaxBatch+1 {
					t.Errorf("%+v %v", done.Records, err)
				}
				if !slices.Equal(st.sizes, test.want) {
					t.Errorf("%v\nnot %v", st.sizes, test.want)
				}
				if !slices.Equal(st.calls, st.sizes) {
					t.Errorf("calls %v do not come with their messages", st.calls)
				}
			})
		})
	}
}
