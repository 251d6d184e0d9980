package transcript

import (
	"strings"

	"sessiond/internal/session"
)

// Mentions adds a line under each message that started another session, or at which one was forked.
// Links of other messages are left out.
type Mentions struct {
	Writer
	under map[session.MessageRef][]session.Link
}

// Mention returns a writer in front of another one.
func Mention(to Writer, links []session.Link) *Mentions {
	m := &Mentions{to, map[session.MessageRef][]session.Link{}}
	for _, l := range links {
		if l.Message != nil {
			m.under[*l.Message] = append(m.under[*l.Message], l)
		}
	}
	return m
}

// Item implements Writer.
func (m *Mentions) Item(item *Item) error {
	if err := m.Writer.Item(item); err != nil || item.Kind != ItemMessage && item.Kind != ItemMarker {
		return err
	}
	for _, l := range m.under[item.Ref] {
		if err := m.Writer.Item(&Item{
			Kind: ItemMarker, Ref: item.Ref, Label: string(session.KindMarker), At: item.At,
			Blocks: []Block{{Kind: BlockText, Text: linkLine(l)}},
		}); err != nil {
			return err
		}
	}
	return nil
}

func linkLine(l session.Link) string {
	words := "forked here: " + string(l.Session)
	if l.Kind == session.ParentChild {
		words = "started " + string(l.Session)
	}
	return strings.TrimSpace(words + " " + l.Title)
}
