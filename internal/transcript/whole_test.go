package transcript

import (
	"io"
	"time"

	"sessiond/internal/session"
)

// Build makes all items at once, of messages that are held, as Stream does one by one.
func Build(sess session.Session, msgs []session.Message, compactions []session.Compaction) []Item {
	b := newBuilder(sess, compactions)
	for i := range msgs {
		b.next(&msgs[i])
	}
	b.end()
	items := make([]Item, 0, len(b.items))
	for _, item := range b.items {
		items = append(items, *item)
	}
	return items
}

func each(w Writer, items []Item) error {
	for i := range items {
		if err := w.Item(&items[i]); err != nil {
			return err
		}
	}
	return w.Close()
}

// Markdown writes items as NewMarkdown's does.
func Markdown(w io.Writer, heading Heading, items []Item, zone *time.Location) error {
	return each(NewMarkdown(w, heading, zone), items)
}

// HTML writes items as NewHTML's does.
func HTML(w io.Writer, heading Heading, items []Item, zone *time.Location) error {
	return each(NewHTML(w, heading, zone), items)
}

// Terminal writes items as NewTerminal's does.
func Terminal(w io.Writer, items []Item, opt TerminalOptions) error {
	return each(NewTerminal(w, opt), items)
}
