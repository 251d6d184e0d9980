package history

import "slices"

// sortItems are put in order in memory.
const sortItems = 8 << 10

// Sort puts the values in order, equal ones as they were. Those that stand in order already, as
// most transcripts do, are looked at once; others lie twice in files meanwhile.
func (t *Table[T]) Sort(compare func(a, b *T) int) {
	if t.sorted(compare) {
		return
	}
	run := make([]T, 0, min(sortItems, t.n))
	for from := 0; from < t.n; from += sortItems {
		run = run[:0]
		for i := from; i < min(from+sortItems, t.n); i++ {
			run = append(run, *t.At(int32(i)))
		}
		slices.SortStableFunc(run, func(a, b T) int { return compare(&a, &b) })
		for i := range run {
			*t.At(int32(from + i)) = run[i]
		}
	}
	for size := sortItems; size < t.n; size *= 2 {
		var merged Table[T]
		for from := 0; from < t.n; from += 2 * size {
			t.merge(&merged, from, min(from+size, t.n), min(from+2*size, t.n), compare)
		}
		t.Close()
		*t = merged
	}
}

func (t *Table[T]) sorted(compare func(a, b *T) int) bool {
	var before T
	for i := range t.n {
		v := *t.At(int32(i))
		if i > 0 && compare(&before, &v) > 0 {
			return false
		}
		before = v
	}
	return true
}

// merge appends two parts that are in order to another table: up to middle, and up to end.
func (t *Table[T]) merge(to *Table[T], from, middle, end int, compare func(a, b *T) int) {
	next := middle
	for from < middle || next < end {
		if next == end || from < middle && compare(t.At(int32(from)), t.At(int32(next))) <= 0 {
			to.Append(*t.At(int32(from)))
			from++
			continue
		}
		to.Append(*t.At(int32(next)))
		next++
	}
}
