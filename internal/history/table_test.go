package history_test

import (
	"math/rand/v2"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/testkit/effort"
)

type pair struct{ a, b int64 }

func TestTableHoldsWhatWasPutIn(t *testing.T) {
	effort.NotShort(t, "one goroutine does all")
	var table history.Table[pair]
	defer table.Close()
	const n = 300_000 // several times what stays in memory
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]int64, n)
	for i := range n {
		table.Append(pair{a: int64(i)})
		if k := rng.IntN(i + 1); rng.IntN(4) == 0 {
			table.At(int32(k)).b++
			want[k]++
		}
	}
	for range n {
		k := rng.IntN(n)
		table.At(int32(k)).b++
		want[k]++
	}
	for i := range n {
		if got := *table.At(int32(i)); got != (pair{int64(i), want[i]}) {
			t.Fatalf("%d: %v, not %d", i, got, want[i])
		}
	}
	if table.Len() != n {
		t.Errorf("%d values", table.Len())
	}
}

func TestNamesFindTheNewest(t *testing.T) {
	effort.NotShort(t, "one goroutine does all")
	sums := []uint64{}
	names := history.NewNames(func(i int32) uint64 { return sums[i] })
	newest := map[uint64]int32{}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range int32(400_000) { // more than stay in memory
		sum := rng.Uint64N(150_000)<<40 | 7 // many agree in the half that a slot holds
		if i > 20_000 {
			sum = rng.Uint64()
		}
		if got, ok := names.Get(sum); ok != (newest[sum] > 0) || ok && got != newest[sum]-1 {
			t.Fatalf("%x: %d, %t, not %d", sum, got, ok, newest[sum]-1)
		}
		sums = append(sums, sum)
		names.Set(sum, i)
		newest[sum] = i + 1
	}
	for sum, want := range newest {
		if got, ok := names.Get(sum); !ok || got != want-1 {
			t.Fatalf("%x: %d, %t, not %d", sum, got, ok, want-1)
		}
	}
	names.Close()
	if names.Sum("") != 0 || names.Sum("a") == names.Sum("b") {
		t.Error("sums")
	}
}

// Whoever hangs an entry on one from long ago holds the one while it asks for the other, and
// writes then, also when everything in memory is in use alike.
func TestTableKeepsWhatIsHeldWhileAnotherIsAskedFor(t *testing.T) {
	effort.NotShort(t, "one goroutine does all")
	const page, pages = 64 << 10 / 16, 49 // one more than stay in memory
	var table history.Table[pair]
	defer table.Close()
	for i := range page * pages {
		table.Append(pair{a: int64(i)})
	}
	var want [pages]int64
	for held := range pages {
		for away := range pages {
			if away == held {
				continue
			}
			for range 2 {
				for k := range pages {
					if k != away {
						table.At(int32(k * page))
					}
				}
			}
			at := table.At(int32(held * page))
			table.At(int32(away * page))
			at.b++
			want[held]++
		}
	}
	for k, want := range want {
		if got := *table.At(int32(k * page)); got != (pair{int64(k * page), want}) {
			t.Errorf("%d: %v, not %d", k*page, got, want)
		}
	}
}
