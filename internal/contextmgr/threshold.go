package contextmgr

// DefaultReserveFloor is the head-room below which a reserve is lifted. Rule: openclaw.
const DefaultReserveFloor = 20000

// smallWindow is where reserve and floor are capped at a quarter of the window, lest a small
// model have no room left for a conversation.
const smallWindow = 64000

// EffectiveReserve is the head-room under the window: the reserve, lifted by the floor (0:
// none), both capped at a quarter of a small window.
func EffectiveReserve(reserve, floor, window int64) int64 {
	r := max(reserve, floor)
	if window < smallWindow {
		r = min(r, window/4)
	}
	return r
}

// Threshold is the size above which, strictly, a context is compacted. A fraction that is
// not between 0 and 1 turns automatic compaction off.
func Threshold(window int64, fraction float64, reserve int64) (t int64, off bool) {
	if !(fraction > 0 && fraction < 1) {
		return 0, true
	}
	return min(floorOf(fraction*float64(window)), window-reserve), false
}

// moltbotSoft is how far under the limit openclaw asks for a memory flush.
const moltbotSoft = 4000

// moltbotFlush is where openclaw asks for a memory flush: soft tokens under the floor. It is
// not positive where the window is too small for one.
func moltbotFlush(window, floor, soft int64) int64 { return window - floor - soft }

// FlushDue tells whether a memory flush is due: from a size on, inclusive, once for each
// overlay generation; never where that size is not positive. last is the generation of the
// last flush, nil for none.
func FlushDue(context, from, generation int64, last *int64) bool {
	return from > 0 && context >= from && (last == nil || *last != generation)
}
