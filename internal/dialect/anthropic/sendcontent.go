package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// content gives a text, an image or a document as a block. Its raw is nil, with a loss, for
// what the API does not take, and without one for a text of nothing.
func (s *sender) content(p *session.Part) (sent, error) {
	var x partExtra
	if s.own {
		var err error
		if x, err = partExtraOf(p); err != nil {
			return sent{}, err
		}
	}
	switch p.Kind {
	case session.PartText, session.PartRefusal:
		if x.Type == typeSearchResult {
			return s.searchResult(p, &x), nil
		}
		return s.textOf(p, &x), nil
	case session.PartImage:
		return s.media(p, &x, typeImage, imageSource(s.own, p)), nil
	case session.PartFile:
		if x.Type == typeContainerUpload && x.FileID != "" && s.maker {
			s.loseBlockFields(x.Type, x.Fields, "file_id")
			var o wire.Object
			o.SetText("type", x.Type)
			o.SetText("file_id", x.FileID)
			return sent{kind: x.Type, raw: o.JSON()}, nil
		}
		return s.media(p, &x, typeDocument, documentSource(s.own, p, &x)), nil
	case session.PartAudio:
		if text := p.Content(); strings.TrimSpace(text) != "" {
			return textBlock(text), nil // what was said stands in for how
		}
	case session.PartData:
		if name := toolReference(&x); s.maker && name != nil {
			var o wire.Object
			o.SetText("type", typeToolReference)
			o.Set("tool_name", name)
			return sent{kind: typeToolReference, raw: o.JSON()}, nil
		}
	}
	s.losePart(p)
	return sent{}, nil
}

func textBlock(text string) sent {
	raw := append(make([]byte, 0, wire.TextSize(text)+len(textPrefix)+len(`}`)), textPrefix...)
	return sent{kind: typeText, text: text, raw: append(wire.AppendText(raw, text), '}')}
}

// textOf gives a text with its citations.
func (s *sender) textOf(p *session.Part, x *partExtra) sent {
	text := p.Content()
	if strings.TrimSpace(text) == "" {
		return sent{}
	}
	b := textBlock(text)
	if x.Fields.Len() == 0 {
		return b
	}
	s.loseBlockFields(typeText, x.Fields, "text", "citations")
	cited := s.citations(x.Fields.Get("citations"))
	if len(cited) == 0 {
		return b
	}
	var o wire.Object
	o.SetText("type", typeText)
	o.SetText("text", text)
	o.Set("citations", wire.AppendArray(nil, cited))
	b.raw = o.JSON()
	return b
}

// citations gives the citations of a text with the fields that a request may have. A reply's
// have more.
func (s *sender) citations(raw json.RawMessage) []json.RawMessage {
	list, err := wire.ParseArray("", raw)
	if err != nil {
		return nil // null
	}
	var out []json.RawMessage
	for _, r := range list {
		c, err := wire.ParseObject("", r)
		kind, _ := wire.TextOf(c.Get("type"))
		fields := citationFields(kind)
		if err != nil || fields == nil || !s.maker || slices.ContainsFunc(fields, func(f string) bool { return !c.Has(f) }) {
			s.lose("a citation " + wire.Clip(kind))
			continue
		}
		var o wire.Object
		o.SetText("type", kind)
		for _, f := range fields {
			o.Set(f, cleanJSON(c.Get(f)))
		}
		out = append(out, o.JSON())
	}
	return out
}

// citationFields lists the fields of a kind of citation, as the API takes them in a request.
func citationFields(kind string) []string {
	switch kind {
	case "char_location":
		return []string{"cited_text", "document_index", "document_title", "start_char_index", "end_char_index"}
	case "page_location":
		return []string{"cited_text", "document_index", "document_title", "start_page_number", "end_page_number"}
	case "content_block_location":
		return []string{"cited_text", "document_index", "document_title", "start_block_index", "end_block_index"}
	case "web_search_result_location":
		return []string{"cited_text", "encrypted_index", "title", "url"}
	case "search_result_location":
		return []string{"cited_text", "search_result_index", "source", "title", "start_block_index", "end_block_index"}
	}
	return nil
}

// searchResult gives a search result as it came; as plain text, where its text was changed on
// the way here.
func (s *sender) searchResult(p *session.Part, x *partExtra) sent {
	s.loseBlockFields(x.Type, x.Fields, "source", "title", "content", "citations")
	blocks := texts(x.Fields.Get("content"))
	source, title := exactText(&x.Fields, "source"), exactText(&x.Fields, "title")
	if readable(&x.Fields) != p.Content() || len(blocks) == 0 || source == "" || title == "" {
		return s.textOf(p, &partExtra{})
	}
	var o wire.Object
	o.SetText("type", x.Type)
	o.SetText("source", source)
	o.SetText("title", title)
	o.Set("content", wire.AppendArray(nil, blocks))
	setCitations(&o, x.Fields)
	return sent{kind: x.Type, raw: o.JSON()}
}

// texts gives the text blocks of a content, with nothing but their text.
func texts(raw json.RawMessage) []json.RawMessage {
	list, err := wire.ParseArray("", raw)
	if err != nil {
		return nil
	}
	var out []json.RawMessage
	for _, r := range list {
		b, err := wire.ParseObject("", r)
		if text, _ := wire.TextOf(b.Get("text")); err == nil && strings.TrimSpace(text) != "" {
			out = append(out, textBlock(text).raw)
		}
	}
	return out
}

// setCitations copies whether what is cited is to be marked, {"enabled": true}.
func setCitations(o *wire.Object, fields wire.Object) {
	config, err := wire.ParseObject("", fields.Get("citations"))
	if err != nil {
		return
	}
	if enabled := config.Get("enabled"); wire.KindOf(enabled) == 't' || wire.KindOf(enabled) == 'f' {
		var c wire.Object
		c.Set("enabled", enabled)
		o.Set("citations", c.JSON())
	}
}

// media gives an image or a document of a source, which is nil where the API takes none.
func (s *sender) media(p *session.Part, x *partExtra, kind string, source *wire.Object) sent {
	if source == nil {
		s.lose(string(p.Kind) + " " + wire.MediaOf(p).MediaType + ": its bytes or its type are not what the API takes")
		return sent{}
	}
	var o wire.Object
	o.SetText("type", kind)
	o.Set("source", source.JSON())
	if kind == typeDocument {
		if name := wire.MediaOf(p).Name; name != "" {
			o.SetText("title", name)
		}
		if context := exactText(&x.Fields, "context"); context != "" {
			o.SetText("context", context)
		}
		setCitations(&o, x.Fields)
	}
	s.loseBlockFields(kind, x.Fields, "source", "title", "context", "citations")
	return sent{kind: kind, raw: o.JSON()}
}

// imageSource gives the source of an image. Types by Anthropic's guide to vision; the bytes
// tell their type more surely than what stood beside them, which the API refuses where it is
// wrong.
func imageSource(own bool, p *session.Part) *wire.Object {
	media := wire.MediaOf(p)
	if p.Blob != nil {
		mediaType := sniff(p.Blob.Data)
		if mediaType == "" {
			mediaType = strings.ToLower(media.MediaType)
		}
		if mediaType == "image/jpg" {
			mediaType = "image/jpeg"
		}
		if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, mediaType) {
			return nil
		}
		return bytesSource(mediaType, p.Blob.Data)
	}
	return elsewhere(own, media)
}

// sniff tells the type of an image by its first bytes, "" if they are those of none that the
// API takes.
func sniff(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF8")):
		return "image/gif"
	case bytes.HasPrefix(data, []byte("RIFF")) && len(data) >= 12 && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// documentSource gives the source of a document: a PDF, or text of any kind.
func documentSource(own bool, p *session.Part, x *partExtra) *wire.Object {
	media := wire.MediaOf(p)
	switch {
	case p.Blob != nil && strings.EqualFold(media.MediaType, "application/pdf"):
		return bytesSource("application/pdf", p.Blob.Data)
	case p.Blob != nil:
		if !isText(media.MediaType) || !utf8.Valid(p.Blob.Data) || len(bytes.TrimSpace(p.Blob.Data)) == 0 {
			return nil
		}
		var o wire.Object
		o.SetText("type", sourceText)
		o.SetText("media_type", "text/plain")
		o.SetText("data", string(p.Blob.Data))
		return &o
	}
	if kind, _ := wire.TextOf(x.Source.Get("type")); kind == sourceContent {
		blocks := texts(x.Source.Get("content"))
		if text, _ := wire.TextOf(x.Source.Get("content")); strings.TrimSpace(text) != "" {
			blocks = []json.RawMessage{textBlock(text).raw}
		}
		if len(blocks) == 0 {
			return nil
		}
		var o wire.Object
		o.SetText("type", sourceContent)
		o.Set("content", wire.AppendArray(nil, blocks))
		return &o
	}
	if !own && !strings.HasSuffix(strings.ToLower(media.URL), ".pdf") && media.MediaType != "application/pdf" {
		return nil
	}
	return elsewhere(own, media)
}

// isText tells whether bytes of a type can be read as text.
func isText(mediaType string) bool {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "json") || strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "yaml")
}

// elsewhere gives the source of what the provider finds by itself. An id of another
// provider's store names nothing here.
func elsewhere(own bool, media wire.Media) *wire.Object {
	var o wire.Object
	switch {
	case strings.HasPrefix(media.URL, "https://"):
		o.SetText("type", sourceURL)
		o.SetText("url", media.URL)
	case own && media.FileID != "":
		o.SetText("type", sourceFile)
		o.SetText("file_id", media.FileID)
	default:
		return nil
	}
	return &o
}

func bytesSource(mediaType string, data []byte) *wire.Object {
	var o wire.Object
	o.SetText("type", sourceBase64)
	o.SetText("media_type", mediaType)
	o.SetText("data", encode(data))
	return &o
}

// toolReference gives the name of a tool that a result points to, nil for any other data.
func toolReference(x *partExtra) json.RawMessage {
	if x.Type != typeToolReference {
		return nil
	}
	o, err := wire.ParseObject("", x.Raw)
	if name, _ := wire.TextOf(o.Get("tool_name")); err == nil && legal(name) {
		return o.Get("tool_name")
	}
	return nil
}

// loseBlockFields names what stood beside the documented fields of a block. Cache marks are no
// loss: whoever sends places new ones.
func (s *sender) loseBlockFields(kind string, fields wire.Object, known ...string) {
	for _, f := range fields.Members() {
		if f.Key != "cache_control" && !wire.IsNull(f.Value) && !slices.Contains(known, f.Key) {
			s.lose("field " + wire.Clip(f.Key) + " of a " + kind)
		}
	}
}
