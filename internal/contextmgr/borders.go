package contextmgr

import "slices"

// SystemBorder stands for the system text among borders.
const SystemBorder = -1

const (
	defaultCacheSlots = 2
	mostCacheSlots    = 4 // what Anthropic takes, those on tools included
)

// cacheReach is how many blocks before a mark Anthropic's cache looks for what it holds.
const cacheReach = 20

// borders gives the messages of the context behind which a provider's cache is to keep what it
// has read, in order; SystemBorder is the system text. The end of this context is where the next
// one goes on. Where so much came since the last one that the provider would not find its end,
// that is marked, too. The system text, and tools before it, stay through every epoch, and the
// summary through this one.
func (t *turn) borders(p Prefix) []int {
	items := t.draft.Items
	var wanted []int
	want := func(at int) {
		if at >= SystemBorder && !slices.Contains(wanted, at) {
			wanted = append(wanted, at)
		}
	}
	end, before := len(items)-1, t.endBefore(p)
	want(end)
	if before >= 0 {
		blocks := 0
		for i := before + 1; i <= end; i++ {
			blocks += len(items[i].Message.Parts)
		}
		if blocks >= cacheReach {
			want(before)
		}
	}
	if t.draft.System != "" {
		want(SystemBorder)
	}
	if front := t.draft.front() - 1; front >= 0 {
		want(front)
	}
	if before >= 0 {
		want(before)
	}
	wanted = wanted[:min(len(wanted), t.r.numbers.CacheSlots)]
	slices.Sort(wanted)
	return wanted
}

// endBefore gives the last item of the context that was handed out before, -1 where that is no
// beginning of this one.
func (t *turn) endBefore(p Prefix) int {
	r := t.r
	if r.last == nil || r.last.HeadID == nil || p.BrokenBy != "" {
		return -1
	}
	for i := range slices.Backward(t.draft.Items) {
		if id := t.draft.Items[i].Message.RowID; id > 0 && id <= *r.last.HeadID {
			return i
		}
	}
	return -1
}

// front is how many items stand before the conversation itself.
func (d *Draft) front() int {
	n := 0
	for n < len(d.Items) && slices.Contains([]string{ItemInitial, ItemPinned, ItemSummary, ItemPerson, ItemTurnStart, ItemReplaced, ItemWords}, d.Items[n].Kind) {
		n++
	}
	return n
}
