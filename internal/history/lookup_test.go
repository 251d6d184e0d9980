package history_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"sessiond/internal/history"
)

// fakeRows gives a row for each id that was asked for: its text is the id times ten.
type fakeRows struct {
	ids    []int64
	closed *int
}

func (r *fakeRows) Next() (int64, int64, error) {
	if len(r.ids) == 0 {
		return 0, 0, sql.ErrNoRows
	}
	id := r.ids[0]
	r.ids = r.ids[1:]
	return id, id * 10, nil
}

func (r *fakeRows) Close() error { *r.closed++; return nil }

// lookup reads rows of which those in missing are not there and those in twice are there twice.
func lookup(closed *int, missing, twice []int64) *history.Lookup[int64] {
	return &history.Lookup[int64]{Open: func(_ context.Context, list string) (history.Rows[int64], error) {
		var ids, found []int64
		if err := json.Unmarshal([]byte(list), &ids); err != nil {
			return nil, err
		}
		for _, id := range ids {
			if slices.Contains(twice, id) {
				found = append(found, id)
			}
			if !slices.Contains(missing, id) {
				found = append(found, id)
			}
		}
		return &fakeRows{found, closed}, nil
	}}
}

func upTo(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	return ids
}

func TestLookupAsksSeldom(t *testing.T) {
	closed := 0
	l := lookup(&closed, nil, nil)
	ids := upTo(40_960)
	for i, id := range ids {
		for range 2 { // what was read last is here
			if row, err := l.Get(t.Context(), slices.Values(ids[i:])); err != nil || row != id*10 {
				t.Fatalf("row %d: %d, %v", id, row, err)
			}
		}
	}
	if l.Opened() > 20 { // 10 doublings, then ten of 4096
		t.Errorf("%d statements", l.Opened())
	}
	if err := l.Close(); err != nil || closed != l.Opened() {
		t.Errorf("%d opened, %d closed: %v", l.Opened(), closed, err)
	}
}

func TestLookupThatIsToldWrongIsRightAndReadsLittle(t *testing.T) {
	closed, ids := 0, upTo(1000)
	l := lookup(&closed, nil, nil)
	asked := 0
	for i := len(ids) - 1; i >= 0; i-- { // backwards
		row, err := l.Get(t.Context(), func(yield func(int64) bool) {
			for _, id := range ids[i:] {
				if asked++; !yield(id) {
					return
				}
			}
		})
		if err != nil || row != ids[i]*10 {
			t.Fatalf("row %d: %d, %v", ids[i], row, err)
		}
	}
	if asked > 20*len(ids) {
		t.Errorf("%d ids were looked at for %d rows", asked, len(ids))
	}
}

func TestLookupOfRowsThatAreNotOneEach(t *testing.T) {
	closed, ids := 0, upTo(30)
	l := lookup(&closed, []int64{20}, []int64{1, 5, 8, 19})
	for i, id := range ids {
		row, err := l.Get(t.Context(), slices.Values(ids[i:]))
		if id == 20 {
			if !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("the missing one is %d, %v", row, err)
			}
			continue
		}
		if err != nil || row != id*10 {
			t.Errorf("row %d: %d, %v", id, row, err)
		}
	}
	if _, err := l.Get(t.Context(), slices.Values(ids[:0])); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("none: %v", err)
	}
}
