package store

import (
	"bytes"
	"fmt"
	"unicode/utf8"
	"unsafe"

	"sessiond/internal/session"
)

// MaxTextBytes bounds one part's text, arguments or bytes: storing them is one write that
// everybody else waits behind.
const MaxTextBytes = 64 << 20

// prepare measures a message, moves large texts into blobs and refuses text that SQLite cannot
// store, outside the transaction. The message's parts must be the store's own.
func (s *Store) prepare(m *session.Message) error {
	if len(m.Parts) > session.MaxParts {
		return session.Errorf(session.Invalid, "a message holds at most %d parts, this one has %d", session.MaxParts,
			len(m.Parts))
	}
	m.Kind = orElse(m.Kind, session.KindMessage)
	m.Origin = orElse(m.Origin, m.Role.DefaultOrigin())
	if err := checkStorable([]field{
		{"author", m.Author},
		{"provider", m.Provider},
		{"model", m.Model},
		{"dialect", m.Dialect},
		{"external_id", m.ExternalID},
		{"metadata", string(m.Metadata)},
		{"extra", string(m.Extra)},
	}); err != nil {
		return err
	}
	if s.opt.Measure != nil {
		s.opt.Measure(m)
	}
	if m.Origin == session.Model && m.Display && s.opt.Silent != nil && s.opt.Silent(m) {
		m.Display = false
	}
	for i := range m.Parts {
		if err := preparePart(&m.Parts[i], i); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return nil
}

// preparePart checks the i-th part of a message and makes its blob.
func preparePart(p *session.Part, i int) error {
	path := func(name string) string { return fmt.Sprintf("parts[%d].%s", i, name) }
	if bad := firstUnstorable([]field{
		{"text", p.Text},
		{"arguments", p.Arguments},
		{"tool_name", p.ToolName},
		{"call_id", p.CallID},
		{"extra", string(p.Extra)},
	}); bad != "" {
		return unstorable(path(bad))
	}
	if p.Blob == nil && len(p.Text) > session.BlobThreshold {
		p.Blob = &session.Blob{MediaType: session.TextBlob, Data: bytesOf(p.Text)}
		p.Text = ""
	}
	size := len(p.Arguments)
	if p.Blob != nil {
		own := *p.Blob // the caller may use its own again elsewhere
		p.Blob = &own
		size = max(size, len(own.Data))
		if size <= MaxTextBytes && !p.Kind.HasBytes() && !isStorableText(own.Data) {
			return unstorable(path("text"))
		}
		own.SHA256, own.Size = hash(own.Data), int64(len(own.Data))
		p.BlobSHA = &own.SHA256
	}
	if size > MaxTextBytes {
		return session.Errorf(session.TooLarge, "the part has over %d bytes, the most that is stored",
			MaxTextBytes).At(path("text"), "too large")
	}
	return nil
}

// bytesOf returns a text's bytes without a copy, since it may be large. Nobody writes to a blob.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

type field struct{ path, text string }

// checkStorable refuses text that would not come back as it went in. Decoders clean text and keep
// the raw form beside it, so such text is their mistake, or an importer's.
func checkStorable(fields []field) error {
	if bad := firstUnstorable(fields); bad != "" {
		return unstorable(bad)
	}
	return nil
}

// firstUnstorable returns the path of the first field that checkStorable refuses, "" if there is none.
func firstUnstorable(fields []field) string {
	for _, f := range fields {
		if !isStorableText(bytesOf(f.text)) {
			return f.path
		}
	}
	return ""
}

func isStorableText(text []byte) bool { return utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 }

func unstorable(path string) error {
	return session.Errorf(session.Invalid, "%s holds invalid UTF-8 or NUL, which SQLite's text cannot", path).
		At(path, "invalid UTF-8 or NUL")
}
