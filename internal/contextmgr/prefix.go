package contextmgr

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"sessiond/internal/session"
)

// Prefix says how much of a context is the same as in the one before, so that a provider's cache
// hits.
type Prefix struct {
	Epoch        int64  `json:"epoch"`
	StableTokens int64  `json:"stable_tokens" doc:"Tokens at the beginning that are the same as in the context before"`
	BrokenBy     string `json:"broken_by,omitempty" doc:"Why the context does not extend the one before: model, dialect, system, initial, tools, epoch, head, late_result, trimmed, images, system_message"`
}

// ComparePrefix compares a context with the one before. stable is the weight of their common part
// if nothing breaks it; headKept reports whether the head of the one before is still among the
// messages.
func ComparePrefix(last *session.Context, now session.Context, headKept, late, trimmed bool, stable int64) Prefix {
	p := Prefix{Epoch: now.Epoch}
	if last == nil {
		return p
	}
	switch {
	case last.Model != now.Model:
		p.BrokenBy = "model"
	case last.Dialect != now.Dialect:
		p.BrokenBy = "dialect"
	case last.SystemHash != now.SystemHash:
		p.BrokenBy = ItemSystem
	case last.InitialHash != now.InitialHash:
		p.BrokenBy = ItemInitial
	case last.ToolsHash != now.ToolsHash:
		p.BrokenBy = ItemTools
	case late: // it begins an epoch, too, and says why
		p.BrokenBy = "late_result"
	case last.Epoch != now.Epoch:
		p.BrokenBy = "epoch"
	case !headKept:
		p.BrokenBy = "head"
	case trimmed:
		p.BrokenBy = "trimmed"
	default:
		p.StableTokens = stable
	}
	return p
}

// prefix compares the context with the one before.
func (t *turn) prefix() Prefix {
	s := t.s
	now := s.contextRecord(0)
	if s.overlayIsNew && !t.commit {
		now.Epoch++ // the epoch that a committed overlay begins
	}
	if s.last == nil || s.last.HeadID == nil {
		return ComparePrefix(s.last, now, true, false, false, 0)
	}
	stable := t.draft.Fixed
	for i := range t.draft.Items {
		item := &t.draft.Items[i]
		if item.Message.RowID > *s.last.HeadID {
			break
		}
		if item.Kind != ItemInitial && item.Kind != ItemPinned {
			stable += t.draft.Weights[i]
		}
	}
	headKept := s.contains(*s.last.HeadID) || s.Overlay != nil && !s.overlayIsNew
	return ComparePrefix(s.last, now, headKept, len(t.draft.Late) > 0, t.draft.Recut, stable)
}

// SystemBorder stands for the system text among borders.
const SystemBorder = -1

const (
	defaultCacheSlots = 2
	maxCacheSlots     = 4 // the caller's marks on tools need some of those that a provider accepts
)

// cacheBorders returns the messages after which a provider should cache, in order; SystemBorder is
// the system text. They are the end of the context, the end of the one before if it is out of the
// cache's reach, and the parts that outlast an epoch.
func (t *turn) cacheBorders(p Prefix) []int {
	items := t.draft.Items
	var wanted []int
	want := func(at int) {
		if at >= SystemBorder && !slices.Contains(wanted, at) {
			wanted = append(wanted, at)
		}
	}
	end, before := len(items)-1, t.endOfLast(p)
	want(end)
	if before >= 0 {
		blocks := 0
		for i := before + 1; i <= end; i++ {
			blocks += len(items[i].Message.Parts)
		}
		if reach := t.s.Dialects.CacheReach(t.s.Dialect); reach > 0 && blocks >= reach {
			want(before)
		}
	}
	if t.draft.System != "" {
		want(SystemBorder)
	}
	if front := t.draft.frontItems() - 1; front >= 0 {
		want(front)
	}
	if before >= 0 {
		want(before)
	}
	wanted = wanted[:min(len(wanted), t.s.numbers.CacheSlots)]
	slices.Sort(wanted)
	return wanted
}

// endOfLast returns the last item of the context before, -1 if this one does not begin with it.
func (t *turn) endOfLast(p Prefix) int {
	last := t.s.last
	if last == nil || last.HeadID == nil || p.BrokenBy != "" {
		return -1
	}
	for i := range slices.Backward(t.draft.Items) {
		if id := t.draft.Items[i].Message.RowID; id > 0 && id <= *last.HeadID {
			return i
		}
	}
	return -1
}

// frontItems returns how many items stand before the conversation itself.
func (d *Draft) frontItems() int {
	n := 0
	for n < len(d.Items) && slices.Contains([]string{
		ItemInitial, ItemPinned, ItemSummary, ItemPerson, ItemTurnStart,
		ItemReplaced, ItemWords,
	}, d.Items[n].Kind) {
		n++
	}
	return n
}

// hashOf returns the lower-case hex SHA-256 of a block, "" for none.
func hashOf(content string) string {
	if content == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
