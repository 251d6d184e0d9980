package handover

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sessiond/internal/session"
)

// WriteText writes messages as text for a program that is given it by hand.
func WriteText(out io.Writer, each func(yield func(*session.Message) error) error) error {
	w := bufio.NewWriter(out)
	err := each(func(m *session.Message) error {
		fmt.Fprintf(w, "## %s\n\n", speaker(m))
		for i := range m.Parts {
			switch p := &m.Parts[i]; p.Kind {
			case session.PartToolCall:
				fmt.Fprintf(w, "Call of %s: %s\n\n", p.ToolName, p.Arguments)
			case session.PartImage:
				fmt.Fprint(w, "[a picture]\n\n")
			default:
				fmt.Fprintf(w, "%s\n\n", p.Content())
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.Flush() // and the first error of a write
}

func speaker(m *session.Message) string {
	switch {
	case m.Role == session.Assistant:
		return "Assistant"
	case m.Role == session.Tool:
		return "Result"
	case m.Origin == session.Person:
		return "User"
	}
	return "Note"
}

// mostResult is how much of a tool's output tells what was done, in bytes.
const mostResult = 1000

// ShortenResults cuts the outputs of tools in a message.
func ShortenResults(m *session.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartToolResult && len(p.Text) > mostResult {
			p.Text = strings.ToValidUTF8(p.Text[:mostResult], "") + " …"
		}
	}
}
