package tokens

import (
	"bytes"
	"unicode/utf8"

	"sessiond/internal/session"
)

// What the framing of a request costs. Three per message, one per name and three for the
// beginning of the reply are OpenAI's own figures (the cookbook's recipe for counting the
// tokens of chat messages); the other providers publish none and get the same.
const (
	PerMessage = 3
	PerCall    = 3 // of a request as a whole, on top of its messages
	perName    = 1
	perTool    = 5 // the frame around a tool's name and arguments, and around a result
)

// perFile is what a sound or a document costs when nothing is known of its length.
const perFile = 1200

// Measure sets the tokens of each part and of the message: the sum and the framing. What is
// not sent as text (bytes, signatures, data URLs) is never counted as text. A message out
// of the context is measured too.
func (c *Counter) Measure(m *session.Message) {
	total := int64(PerMessage)
	if m.Author != "" {
		total += perName + c.Text(m.Author)
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Tokens = c.Part(p)
		total += p.Tokens
	}
	m.Tokens = total
}

// Part estimates the tokens of one part.
func (c *Counter) Part(p *session.Part) int64 {
	switch p.Kind {
	case session.PartToolCall:
		arguments := c.Text(p.Arguments)
		if p.Arguments == "" { // long ones stand in a blob
			arguments = c.Text(textOf(p))
		}
		return perTool + c.Text(p.ToolName) + arguments
	case session.PartToolResult:
		return perTool + c.content(p)
	case session.PartImage:
		return imageTokens(p)
	case session.PartAudio, session.PartFile:
		return c.file(p)
	default:
		return c.content(p)
	}
}

// file counts a document that is text by its text and any other as perFile.
func (c *Counter) file(p *session.Part) int64 {
	if p.Blob != nil && utf8.Valid(p.Blob.Data) && bytes.IndexByte(p.Blob.Data, 0) < 0 {
		return c.Text(string(p.Blob.Data))
	}
	return max(perFile, c.content(p))
}

// content counts a part's text. A data URL is bytes and counts nothing.
func (c *Counter) content(p *session.Part) int64 {
	text := textOf(p)
	if isDataURL(text) {
		return 0
	}
	return c.Text(text)
}

// textOf returns a part's text, also that of a long line of data, which is kept as a text blob.
func textOf(p *session.Part) string {
	if p.Text == "" && p.Kind == session.PartData && p.Blob != nil && p.Blob.MediaType == session.TextBlob {
		return string(p.Blob.Data)
	}
	return p.Content()
}
