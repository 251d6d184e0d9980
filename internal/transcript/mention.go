package transcript

import (
	"strings"

	"sessiond/internal/session"
)

// Mention puts a line under each message that started another session, or that one was forked
// at. Links whose message is not among the items are left out.
func Mention(items []Item, links []session.Link) []Item {
	under := map[session.MessageRef][]session.Link{}
	for _, l := range links {
		if l.Message != nil {
			under[*l.Message] = append(under[*l.Message], l)
		}
	}
	if len(under) == 0 {
		return items
	}
	last := map[session.MessageRef]int{} // a message may be more than one item
	for i := range items {
		if items[i].Kind == ItemMessage || items[i].Kind == ItemMarker {
			last[items[i].Ref] = i
		}
	}
	out := make([]Item, 0, len(items)+len(links))
	for i := range items {
		out = append(out, items[i])
		if at, ok := last[items[i].Ref]; !ok || at != i {
			continue
		}
		for _, l := range under[items[i].Ref] {
			out = append(out, Item{
				Kind: ItemMarker, Ref: items[i].Ref, Label: string(session.KindMarker), At: items[i].At,
				Blocks: []Block{{Kind: BlockText, Text: linkLine(l)}},
			})
		}
	}
	return out
}

func linkLine(l session.Link) string {
	words := "forked here: " + string(l.Session)
	if l.Kind == session.ParentChild {
		words = "started " + string(l.Session)
	}
	return strings.TrimSpace(words + " " + l.Title)
}
