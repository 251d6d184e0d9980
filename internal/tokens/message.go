package tokens

import (
	"bytes"
	"cmp"
	"unicode/utf8"

	"sessiond/internal/session"
)

// The tokens of a request's framing. Three per message, one per name and three for the beginning of
// the reply are OpenAI's own figures (the cookbook's recipe for counting the tokens of chat
// messages); the other providers publish none, so they have the same.
const (
	PerMessage = 3
	PerCall    = 3 // of a request as a whole, on top of its messages
	perName    = 1
	perTool    = 5 // the frame around a tool's name and arguments, and around a result
)

// perFile is the estimate for audio and for documents of unknown length.
const perFile = 1200

// Measure sets the tokens of each part and of the message: their sum plus the framing. It does not
// count bytes, signatures and data URLs, which are not sent as text. It also measures messages out of
// the context.
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
		arguments := cmp.Or(p.Arguments, textOf(p)) // the store moves long ones to a blob
		return perTool + c.Text(p.ToolName) + c.Text(arguments)
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

// file counts a text document by its text and any other file as perFile.
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
