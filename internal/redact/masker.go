package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Masker masks whole values and counts the secrets. The zero value works; a nil one masks nothing.
type Masker struct {
	Masked int
	Found  func(Secret) // called for each secret; may be nil
}

// Text masks a text.
func (m *Masker) Text(s string) string {
	if m == nil {
		return s
	}
	masked, n := mask(s, m.Found)
	m.Masked += n
	return masked
}

// JSON masks the strings in a JSON value. Names, numbers and the structure stay. A member's name
// counts: the value of {"password": "…"} is a secret.
func (m *Masker) JSON(raw session.JSON) session.JSON {
	if m == nil {
		return raw
	}
	if masked, n, err := m.json(raw); err == nil {
		m.Masked += n
		return masked
	}
	return raw
}

// Arguments masks a call's arguments, which are JSON nearly always.
func (m *Masker) Arguments(s string) string {
	if m == nil {
		return s
	}
	masked, n, err := m.json([]byte(s))
	if err != nil {
		return m.Text(s)
	}
	m.Masked += n
	return string(masked)
}

// json masks the strings in JSON. All other bytes stay as they are.
func (m *Masker) json(raw []byte) (masked []byte, n int, err error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	name, done := "", 0 // the name of the next value; the bytes that are copied
	for {
		if dec.PeekKind() != jsontext.KindString {
			token, err := dec.ReadToken()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, 0, err
			}
			if token.Kind() != jsontext.KindBeginArray {
				name = ""
			}
			continue
		}
		parent, index := dec.StackIndex(dec.StackDepth())
		value, err := dec.ReadValue()
		if err != nil {
			return nil, 0, err
		}
		unquoted, _ := jsontext.AppendUnquote(nil, value) // the error reports bad UTF-8, which is replaced
		if parent == jsontext.KindBeginObject && index%2 == 0 {
			name = string(unquoted)
			continue
		}
		if text, k := m.named(name, string(unquoted)); k > 0 {
			end := int(dec.InputOffset())
			masked = append(masked, raw[done:end-len(value)]...)
			masked = append(masked, session.JSONOf(text)...)
			done = end
			n += k
		}
		name = ""
	}
	if n == 0 {
		return raw, 0, nil
	}
	return append(masked, raw[done:]...), n, nil
}

// named masks a value. Its name may announce a secret.
func (m *Masker) named(name, value string) (string, int) {
	if nameKind(name) != "" {
		before := name + `: "`
		var secrets []Secret
		if masked, n := mask(before+value+`"`, func(s Secret) { secrets = append(secrets, s) }); n > 0 &&
			strings.HasPrefix(masked, before) && strings.HasSuffix(masked, `"`) {
			for _, s := range secrets {
				if m.Found != nil {
					m.Found(s)
				}
			}
			return masked[len(before) : len(masked)-1], n
		}
	}
	return mask(value, m.Found)
}

// Message masks a message's texts, arguments and extras in place. Its bytes, its ids, and the number
// and order of its parts stay.
func (m *Masker) Message(msg *session.Message) {
	if m == nil {
		return // without copies of its blobs
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

// Masks reports whether blobs in parts of a kind are masked: text and data (JSON, or a line of a log),
// but not the bytes of images, audio and files.
func Masks(kind session.PartKind) bool { return !kind.HasBytes() || kind == session.PartData }

// data masks a blob's bytes.
func (m *Masker) data(b *session.Blob) []byte {
	if b.MediaType == session.TextBlob {
		return []byte(m.Text(string(b.Data)))
	}
	return []byte(m.Arguments(string(b.Data)))
}

// Compaction masks the texts of a compaction in place.
func (m *Masker) Compaction(c *session.Compaction) {
	c.Reason, c.Summary, c.SpanSummary, c.PrefixSummary = m.Text(c.Reason), m.Text(c.Summary), m.Text(c.SpanSummary),
		m.Text(c.PrefixSummary)
	c.Replacement, c.Details = m.JSON(c.Replacement), m.JSON(c.Details)
}

// Session masks the texts of a session in place.
func (m *Masker) Session(s *session.Session) {
	s.Title, s.Metadata = m.Text(s.Title), m.JSON(s.Metadata)
	for i := range s.Tags {
		s.Tags[i] = m.Text(s.Tags[i])
	}
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
