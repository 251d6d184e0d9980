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

// PreFlush tells whether a memory flush is due by openclaw's formula: from window − floor −
// soft on, inclusive, once for each generation; never where that difference is not positive.
// lastFlush is the generation of the last flush, nil for none.
func PreFlush(context, window, floor, soft, generation int64, lastFlush *int64) bool {
	due := window - floor - soft
	return due > 0 && context >= due && (lastFlush == nil || *lastFlush != generation)
}
