package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"sessiond/internal/session"
)

// Masker masks whole values and counts what it masked. The zero value works; a nil one masks
// nothing, so that whoever writes text can always ask it.
type Masker struct{ Masked int }

// Text masks a text.
func (m *Masker) Text(s string) string {
	if m == nil {
		return s
	}
	masked, n := Mask(s)
	m.Masked += n
	return masked
}

// JSON masks the strings in a JSON value: names, numbers and structure stay, and what is masked
// is a string afterwards as it was before. A member's name counts: {"password": "…"} holds one.
func (m *Masker) JSON(raw session.JSON) session.JSON {
	if m == nil || len(raw) == 0 || !json.Valid(raw) {
		return raw
	}
	var out bytes.Buffer
	name, done := "", 0
	for at := 0; at < len(raw); {
		if raw[at] != '"' {
			if raw[at] == '}' || raw[at] == ']' || raw[at] == ',' {
				name = ""
			}
			at++
			continue
		}
		end := stringEnd(raw, at)
		next := end
		for next < len(raw) && (raw[next] == ' ' || raw[next] == '\t' || raw[next] == '\n' || raw[next] == '\r') {
			next++
		}
		var text string
		if json.Unmarshal(raw[at:end], &text) != nil { // not in valid JSON
			return raw
		}
		if next < len(raw) && raw[next] == ':' {
			name, at = text, next+1
			continue
		}
		if masked, n := maskNamed(name, text); n > 0 {
			out.Write(raw[done:at])
			out.Write(session.JSONOf(masked))
			done = end
			m.Masked += n
		}
		at = end
	}
	if done == 0 {
		return raw
	}
	out.Write(raw[done:])
	return out.Bytes()
}

// maskNamed masks a value, which may be a secret because of the name that it has.
func maskNamed(name, value string) (string, int) {
	if nameKind(name) != "" {
		before := name + `: "`
		if masked, n := Mask(before + value + `"`); n > 0 && strings.HasPrefix(masked, before) && strings.HasSuffix(masked, `"`) {
			return masked[len(before) : len(masked)-1], n
		}
	}
	return Mask(value)
}

// stringEnd gives the end of the JSON string that begins at at, in valid JSON.
func stringEnd(raw []byte, at int) int {
	for at++; raw[at] != '"'; at++ {
		if raw[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// Message masks a message's texts, arguments and extras in place. Its bytes and ids stay, and
// so do its parts' number and order.
func (m *Masker) Message(msg *session.Message) {
	if m == nil {
		return
	}
	msg.Metadata, msg.Extra = m.JSON(msg.Metadata), m.JSON(msg.Extra)
	for i := range msg.Parts {
		p := &msg.Parts[i]
		p.Text, p.Extra = m.Text(p.Text), m.JSON(p.Extra)
		p.Arguments = m.Arguments(p.Arguments)
		if p.Blob != nil && Masks(p.Kind) {
			masked := *p.Blob
			masked.Data = m.data(p.Blob)
			masked.Size = int64(len(masked.Data))
			p.Blob = &masked
		}
	}
}

// Masks tells whether what blobs hold in parts of a kind is masked: not the bytes of pictures,
// sounds and files, but what was kept of data, which is JSON or a line of a log.
func Masks(kind session.PartKind) bool { return !kind.HasBytes() || kind == session.PartData }

// data masks a blob's bytes.
func (m *Masker) data(b *session.Blob) []byte {
	if b.MediaType == session.TextBlob {
		return []byte(m.Text(string(b.Data)))
	}
	return []byte(m.Arguments(string(b.Data)))
}

// Arguments masks a call's arguments, which are JSON nearly always.
func (m *Masker) Arguments(s string) string {
	if m != nil && json.Valid([]byte(s)) {
		return string(m.JSON(session.JSON(s)))
	}
	return m.Text(s)
}

// Compaction masks what a compaction says.
func (m *Masker) Compaction(c *session.Compaction) {
	if m == nil {
		return
	}
	c.Reason, c.Summary, c.SpanSummary, c.PrefixSummary = m.Text(c.Reason), m.Text(c.Summary), m.Text(c.SpanSummary), m.Text(c.PrefixSummary)
	c.Replacement, c.Details = m.JSON(c.Replacement), m.JSON(c.Details)
}

// Session masks what a session says of itself.
func (m *Masker) Session(s *session.Session) {
	if m == nil {
		return
	}
	s.Title, s.Metadata = m.Text(s.Title), m.JSON(s.Metadata)
	s.Directory, s.Project, s.GitBranch = m.Text(s.Directory), m.Text(s.Project), m.Text(s.GitBranch)
}

// Blob masks a blob's text and sets the hash and size of the result. A blob without a secret
// stays as it is.
func (m *Masker) Blob(b *session.Blob) {
	if m == nil {
		return
	}
	before := m.Masked
	data := m.data(b)
	if m.Masked == before {
		return
	}
	sum := sha256.Sum256(data)
	*b = session.Blob{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data)), MediaType: b.MediaType, Data: data}
}
