package gemini

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// medium writes an image, a sound or a file. It gives nil, and names the loss, for what the
// API does not take.
func (s *sender) medium(m *session.Message, p *session.Part, x *partExtra) json.RawMessage {
	if p.Kind != session.PartImage && p.Kind != session.PartAudio && p.Kind != session.PartFile {
		s.losePart(m, p)
		return nil
	}
	var inner, o wire.Object
	field := fieldInline
	uri := x.URL
	if m.Dialect == Name && uri == "" {
		uri = x.FileID // an id of another provider's store names nothing here
	}
	mediaType := x.MediaType
	switch {
	case p.Blob != nil && takes(mediaType):
		inner.SetText("mimeType", mediaType)
		inner.SetText("data", encode64(p.Blob.Data, ""))
	case p.Blob == nil && reachable(uri):
		if mediaType == "" {
			mediaType = typeOfName(uri, p.Kind)
		}
		if takes(mediaType) {
			field = fieldFile
			inner.SetText("mimeType", mediaType)
			inner.SetText("fileUri", uri)
		}
	}
	if inner.Len() == 0 {
		s.lose(m, string(p.Kind)+" "+mediaType+": its bytes or its type are not what the API takes")
		return nil
	}
	o.Set(field, inner.JSON())
	s.loseBeside(m, x, fieldThought, fieldSignature, fieldVideoMetadata, fieldMediaResolution)
	if m.Dialect == Name {
		s.beside(m, p, x, &o)
	}
	return o.JSON()
}

// beside writes the fields beside a medium that the API takes.
func (s *sender) beside(m *session.Message, p *session.Part, x *partExtra, o *wire.Object) {
	if m.Role == session.Assistant {
		if wire.KindOf(x.Fields.Get(fieldThought)) == 't' {
			o.Set(fieldThought, json.RawMessage("true"))
		}
		setSignature(o, s.signature(m, p, x))
	}
	for _, f := range []struct {
		name  string
		known []string
	}{
		{fieldVideoMetadata, []string{"startOffset", "endOffset", "fps"}},
		{fieldMediaResolution, []string{"level", "numTokens"}},
	} {
		_, v := lookup(&x.Fields, f.name)
		if wire.KindOf(v) != '{' {
			continue
		}
		if inner, err := wire.ParseObject(f.name, v); err == nil {
			inner = keepOnly(inner, f.known, func(field string) { s.lose(m, "field "+f.name+"."+field) })
			o.Set(f.name, inner.JSON())
		}
	}
}

// within writes a medium for the parts of a response.
func (s *sender) within(m *session.Message, p *session.Part, x *partExtra) json.RawMessage {
	s.loseBeside(m, x)
	var inner, o wire.Object
	inner.SetText("mimeType", x.MediaType)
	inner.SetText("data", encode64(p.Blob.Data, ""))
	if x.Name != "" && m.Dialect == Name { // a response may refer to it by this name
		inner.SetText("displayName", x.Name)
	}
	o.Set(fieldInline, inner.JSON())
	return o.JSON()
}

// takes tells whether the API takes a type of media.
func takes(mediaType string) bool {
	mediaType, parameters, _ := strings.Cut(strings.ToLower(mediaType), ";")
	kind, rest, _ := strings.Cut(mediaType, "/")
	if legalIn(rest, len(rest), ".+-") != rest || strings.ContainsFunc(parameters, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	switch kind {
	case "image":
		return slices.Contains([]string{"png", "jpeg", "webp", "heic", "heif"}, rest)
	case "audio", "video", "text":
		return rest != ""
	case "application":
		return slices.Contains([]string{"pdf", "json", "rtf", "x-javascript", "x-python-code"}, rest)
	}
	return false
}

func reachable(uri string) bool {
	for _, scheme := range []string{"https://", "http://", "gs://"} {
		if strings.HasPrefix(uri, scheme) {
			return true
		}
	}
	return false
}

// typeOfName guesses what an address leads to, since the API asks for it.
func typeOfName(uri string, kind session.PartKind) string {
	name, _, _ := strings.Cut(uri, "?")
	switch strings.ToLower(path.Ext(name)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	case ".gif":
		return "image/gif"
	case ".svg":
		return "image/svg+xml"
	case ".pdf":
		return "application/pdf"
	case ".mp3":
		return "audio/mp3"
	case ".wav":
		return "audio/wav"
	case ".mp4":
		return "video/mp4"
	case ".txt":
		return "text/plain"
	}
	switch {
	case kind == session.PartImage:
		return "image/jpeg"
	case kind == session.PartAudio:
		return "audio/mp3"
	case strings.Contains(uri, "youtube.com/") || strings.Contains(uri, "youtu.be/"):
		return "video/mp4"
	}
	return "application/pdf"
}

// whole writes U+FFFD for escapes of half surrogate pairs, which the API's reader refuses.
func whole(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for at := 0; at < len(raw); {
		n := 1
		if raw[at] == '\\' {
			n = 2
			if raw[at+1] == 'u' {
				const escape = len(`\u0000`)
				unit := hex4(raw[at:])
				n = escape
				switch {
				case unit < 0xd800 || unit > 0xdfff:
				case unit < 0xdc00 && at+2*escape <= len(raw) && raw[at+escape] == '\\' && raw[at+escape+1] == 'u' && hex4(raw[at+escape:])>>10 == 0xdc00>>10:
					n = 2 * escape
				default:
					out = append(out, `\ufffd`...)
					at += n
					continue
				}
			}
		}
		out = append(out, raw[at:at+n]...)
		at += n
	}
	return out
}

// hex4 reads the digits of an escape, of which valid JSON has four.
func hex4(escape []byte) uint64 {
	n, _ := strconv.ParseUint(string(escape[2:6]), 16, 32)
	return n
}
