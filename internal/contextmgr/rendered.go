package contextmgr

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// renderedLine is what a row of Claude Code says it sent to the model. The importer stores that as
// the message's content; rows of databases from before it did have it only in their extra.
type renderedLine struct {
	Line struct {
		Rendered []struct {
			Content jsontext.Value `json:"content"`
		} `json:"rendered"`
		Role session.Role `json:"renderedRole"`
	} `json:"line"`
}

// applyRendered replaces the retelling of a row by what the program sent. Messages never change, so
// this is done when a context is read.
func (m *Manager) applyRendered(s *snapshot) {
	for i := range s.Messages {
		msg := &s.Messages[i]
		if msg.Dialect != string(session.SourceClaudeCode) || !strings.Contains(string(msg.Extra), `"rendered"`) {
			continue
		}
		var row renderedLine
		if !decode(msg.Extra, &row) {
			continue
		}
		var parts []session.Part
		for _, e := range row.Line.Rendered {
			if text := renderedText(e.Content); text != "" {
				parts = append(parts, session.TextPart(text))
			}
		}
		if len(parts) == 0 {
			continue
		}
		if msg.Kind != session.KindMessage {
			msg.Kind = session.KindCustomMessage
		}
		msg.Role, msg.InContext, msg.Parts = session.User, true, parts
		if row.Line.Role == session.System {
			msg.Role = session.System
		}
		m.measure(msg)
		s.markEdited(msg.RowID)
	}
}

// renderedText returns the text of a content: a string, or blocks of text.
func renderedText(content jsontext.Value) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}
