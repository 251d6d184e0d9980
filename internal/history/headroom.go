package history

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// roomBytes is how much garbage an import may gather before it is collected. By itself Go
	// collects when there is as much garbage as there is anything else, and an import has little
	// else: it would collect for an eighth of its time.
	roomBytes = 16 << 20
	usualRoom = 100 // percent of what lives
	mostRoom  = 400
)

// headroom lets garbage gather while an import runs, within roomBytes: where much lives, as
// with a very long line, it is collected as ever.
type headroom struct {
	live  func() uint64 // bytes
	taken bool
	now   int // percent
}

// takeHeadroom does nothing unless wanted, nor where somebody set another GOGC, who knows better.
func takeHeadroom(wanted bool, live func() uint64) *headroom {
	h := &headroom{live: live, now: usualRoom}
	if !wanted {
		return h
	}
	if before := debug.SetGCPercent(usualRoom); before != usualRoom {
		debug.SetGCPercent(before)
		return h
	}
	h.taken = true
	h.adjust()
	return h
}

// adjust follows what lives.
func (h *headroom) adjust() {
	if !h.taken {
		return
	}
	if room := roomFor(h.live()); room != h.now {
		h.now = room
		debug.SetGCPercent(room)
	}
}

func (h *headroom) giveBack() {
	if h.taken {
		debug.SetGCPercent(usualRoom)
	}
}

// liveHeap is what the last collection left, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 { // a Go that does not tell
		return roomBytes
	}
	return sample[0].Value.Uint64()
}

// roomFor gives the percentage for so many bytes that live, in steps, for each change stops
// the world.
func roomFor(live uint64) int {
	percent := int(roomBytes * 100 / max(live, 1<<20))
	return max(usualRoom, min(percent/50*50, mostRoom))
}
