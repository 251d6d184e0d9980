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

// moltbotFlush is where openclaw asks for a memory flush: soft tokens under the reserve. It is
// not positive where the window is too small for one.
func moltbotFlush(window, reserve, soft int64) int64 { return window - reserve - soft }

// MoltbotReserve is the head-room of preset moltbot: the reserve, lifted by the floor (0:
// none), but the prompt keeps half of the window or 8,000 tokens, whichever is less. Rule:
// openclaw, later.
func MoltbotReserve(reserve, floor, window int64) int64 {
	return min(max(reserve, floor), window-min(8000, window/2))
}
