package contextmgr

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// reinject puts the caller's initial blocks back into what a compaction made of a
// conversation. While a turn goes on they stand before the last of a user's own messages,
// else before the last summary, else before the last compaction item of a provider, else at
// the end. Between turns they are left out of it and lead what comes next, whole. Rule: codex,
// insert_initial_context_before_last_real_user_or_summary.
func reinject(history, initial []Item, midTurn bool) (placed, next []Item) {
	if !midTurn {
		return history, initial
	}
	at := len(history)
	for _, is := range []func(*Item) bool{isOwnWords, isSummary, isCompactionItem} {
		if i := lastItem(history, is); i >= 0 {
			at = i
			break
		}
	}
	return slices.Concat(history[:at], initial, history[at:]), nil
}

func lastItem(items []Item, is func(*Item) bool) int {
	for i := range slices.Backward(items) {
		if is(&items[i]) {
			return i
		}
	}
	return -1
}

// isOwnWords tells whether a user said it: no summary, and nothing that a program put in.
func isOwnWords(item *Item) bool {
	switch item.Kind {
	case ItemWords, ItemPerson, ItemTurnStart:
		return item.Message.Role == session.User
	}
	return false
}

func isSummary(item *Item) bool { return item.Kind == ItemSummary }

// isCompactionItem tells whether it is what a provider keeps of a conversation in a form of its own.
func isCompactionItem(item *Item) bool {
	return slices.ContainsFunc(item.Message.Parts, func(p session.Part) bool {
		return p.Kind == session.PartData && strings.Contains(string(p.Extra), `"compaction"`)
	})
}
