package history_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/testkit/effort"
)

func TestTextsHoldWhatWasPutIn(t *testing.T) {
	effort.NotShort(t, "one goroutine does all")
	var texts history.Texts
	defer texts.Close()
	rng := rand.New(rand.NewPCG(5, 6))
	said := func(i int) string {
		switch {
		case i%1000 == 7:
			return strings.Repeat("long ", i%50_000) // more than is read at once
		case i%10 == 3:
			return ""
		}
		return "number " + strconv.Itoa(i)
	}
	var at []history.TextAt
	for i := range 100_000 { // several megabytes
		at = append(at, texts.Put(said(i)))
		if k := rng.IntN(i + 1); i%4 == 0 && texts.Get(at[k]) != said(k) {
			t.Fatalf("%d is %.20q after %d", k, texts.Get(at[k]), i)
		}
	}
	for name, order := range map[string]func(i int) int{
		"forwards": func(i int) int { return i }, "backwards": func(i int) int { return len(at) - 1 - i },
		"anyhow": func(int) int { return rng.IntN(len(at)) },
	} {
		for i := range at {
			if k := order(i); texts.Get(at[k]) != said(k) {
				t.Fatalf("%s: %d is %.20q", name, k, texts.Get(at[k]))
			}
		}
	}
}

func TestTableIsSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, 1000, 8192, 8193, 70_000} { // of which one run holds 8192
		for name, key := range map[string]func(i int) int64{
			"in order": func(i int) int64 { return int64(i) }, "backwards": func(i int) int64 { return int64(-i) },
			"alike": func(int) int64 { return 1 }, "mixed": func(int) int64 { return rng.Int64N(1000) },
		} {
			var table history.Table[pair]
			var want []pair
			for i := range n {
				v := pair{key(i), int64(i)}
				table.Append(v)
				want = append(want, v)
			}
			table.Sort(func(a, b *pair) int { return int(a.a - b.a) })
			slices.SortStableFunc(want, func(a, b pair) int { return int(a.a - b.a) })
			for i := range want {
				if got := *table.At(int32(i)); got != want[i] {
					t.Fatalf("%d %s: the %d. is %v, not %v", n, name, i, got, want[i])
				}
			}
			if table.Len() != n {
				t.Errorf("%d values, not %d", table.Len(), n)
			}
			table.Close()
		}
	}
}
