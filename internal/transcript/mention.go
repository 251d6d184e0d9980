package transcript

import (
	"strings"

	"sessiond/internal/session"
)

// Mentions adds lines under messages: the sessions that a message started, and those that were forked at it.
// Lines of messages that are not shown are left out.
type Mentions struct {
	Writer
	under map[session.MessageRef][]mention
}

type mention struct {
	line    string
	started session.ID
}

// Mention returns a writer in front of another one.
func Mention(to Writer, links []session.Link) *Mentions {
	m := &Mentions{to, map[session.MessageRef][]mention{}}
	for _, l := range links {
		if l.Message == nil {
			continue
		}
		one := mention{line: linkLine(l)}
		if l.Kind == session.ParentChild {
			one.started = l.Session
		}
		m.under[*l.Message] = append(m.under[*l.Message], one)
	}
	return m
}

// Add adds a line under a message.
func (m *Mentions) Add(under session.MessageRef, line string) {
	m.under[under] = append(m.under[under], mention{line: line})
}

// Item implements Writer.
func (m *Mentions) Item(item *Item) error {
	if err := m.Writer.Item(item); err != nil || item.Kind != ItemMessage && item.Kind != ItemMarker {
		return err
	}
	refs := []session.MessageRef{item.Ref}
	for i := range item.Blocks { // a result is shown with its call
		if use := item.Blocks[i].Tool; use != nil && use.Answered() && use.ResultRef != item.Ref {
			refs = append(refs, use.ResultRef)
		}
	}
	for _, ref := range refs {
		for _, one := range m.under[ref] {
			if err := m.Writer.Item(&Item{
				Kind: ItemMarker, Ref: item.Ref, Label: string(session.KindMarker), At: item.At,
				Blocks: []Block{{Kind: BlockText, Text: one.line}}, Started: one.started,
			}); err != nil {
				return err
			}
		}
		delete(m.under, ref)
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
