package anthropic

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// content returns a text, an image or a document as a block. Its raw is nil, with a loss, for
// what the API does not take, and without one for a text of nothing.
func (s *sender) content(p *wire.Part) sent {
	own := s.m.Dialect == Name
	switch p.Kind {
	case session.PartText, session.PartRefusal:
		if own && p.X.Type == typeSearchResult {
			return s.searchResult(p)
		}
		return s.textOf(p)
	case session.PartImage:
		return s.media(p, typeImage, imageSource(own, p))
	case session.PartFile:
		if p.X.Type == typeContainerUpload && p.X.FileID != "" && s.maker {
			s.loseRest(p.X.Type, p, "file_id")
			return blockOf("type", p.X.Type, "file_id", p.X.FileID)
		}
		return s.media(p, typeDocument, documentSource(own, p))
	case session.PartAudio:
		if text := p.Content(); strings.TrimSpace(text) != "" {
			return textBlock(text) // what was said stands in for how
		}
	case session.PartData: // the name of a tool that a result points to
		if raw, err := p.JSON(wire.Object{}); err == nil && s.maker && p.X.Type == typeToolReference {
			o, err := wire.ParseObject("", raw)
			if name := o.Text("tool_name"); err == nil && callid.Valid(name) {
				return blockOf("type", typeToolReference, "tool_name", name)
			}
		}
	}
	s.losePart(p)
	return sent{}
}

// blockOf makes a block of strings.
func blockOf(pairs ...string) sent {
	var o wire.Object
	o.SetTexts(pairs...)
	return sent{kind: pairs[1], raw: o.Value()}
}

// textOf returns a text with its citations.
func (s *sender) textOf(p *wire.Part) sent {
	text := p.Content()
	if strings.TrimSpace(text) == "" {
		return sent{}
	}
	b := textBlock(text)
	if s.m.Dialect != Name || p.X.Type != "" {
		return b
	}
	s.loseRest(typeText, p, "text", "citations")
	if cited := s.citations(p.X.Rest.Get("citations")); len(cited) > 0 {
		var o wire.Object
		o.SetText("type", typeText)
		o.SetText("text", text)
		o.Set("citations", wire.Array(cited))
		b.raw = o.Value()
	}
	return b
}

// citations returns the citations of a text with the fields that a request may have. A reply's
// have more.
func (s *sender) citations(raw []byte) []jsontext.Value {
	list, err := wire.ParseArray("", raw)
	if err != nil {
		return nil // null
	}
	var out []jsontext.Value
	for _, r := range list {
		c, err := wire.ParseObject("", r)
		kind, _ := wire.Text(c.Get("type"))
		fields := citationFields(kind)
		if err != nil || fields == nil || !s.maker || slices.ContainsFunc(fields, func(f string) bool { return !c.Has(f) }) {
			s.lose("a citation " + wire.Clip(kind))
			continue
		}
		var o wire.Object
		o.SetText("type", kind)
		for _, f := range fields {
			o.Set(f, wire.Clean(c.Get(f)))
		}
		out = append(out, o.Value())
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

// searchResult returns a search result as it came; as plain text, where its text was changed on
// the way here.
func (s *sender) searchResult(p *wire.Part) sent {
	rest := &p.X.Rest
	s.loseRest(p.X.Type, p, "source", "title", "content", "citations")
	blocks := texts(rest.Get("content"))
	source, title := rest.Text("source"), rest.Text("title")
	if readable(rest) != p.Content() || len(blocks) == 0 || source == "" || title == "" {
		return s.textOf(p)
	}
	var o wire.Object
	o.SetText("type", p.X.Type)
	o.SetText("source", source)
	o.SetText("title", title)
	o.Set("content", wire.Array(blocks))
	setCitations(&o, rest)
	return sent{kind: p.X.Type, raw: o.Value()}
}

// texts returns the text blocks of a content, with nothing but their text.
func texts(raw []byte) []jsontext.Value {
	list, err := wire.ParseArray("", raw)
	if err != nil {
		return nil
	}
	var out []jsontext.Value
	for _, r := range list {
		b, err := wire.ParseObject("", r)
		if text, _ := wire.Text(b.Get("text")); err == nil && strings.TrimSpace(text) != "" {
			out = append(out, textBlock(text).raw)
		}
	}
	return out
}

// setCitations copies whether what is cited is to be marked, {"enabled": true}.
func setCitations(o, fields *wire.Object) {
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

// media returns an image or a document of a source, which is empty where the API takes none.
func (s *sender) media(p *wire.Part, kind string, source wire.Object) sent {
	if source.Len() == 0 {
		s.lose(string(p.Kind) + " " + p.X.MediaType + ": its bytes or its type are not what the API takes")
		return sent{}
	}
	var o wire.Object
	o.SetText("type", kind)
	o.Set("source", source.JSON())
	if kind == typeDocument {
		o.SetTexts("title", p.X.Name, "context", p.X.Rest.Text("context"))
		setCitations(&o, &p.X.Rest)
	}
	s.loseRest(kind, p, "source", "title", "context", "citations")
	return sent{kind: kind, raw: o.Value()}
}

// imageSource returns the source of an image. Types by Anthropic's guide to vision; the bytes
// tell their type more surely than what stood beside them, which the API rejects where it is
// wrong.
func imageSource(own bool, p *wire.Part) wire.Object {
	if p.Blob == nil {
		return elsewhere(own, &p.X.Media)
	}
	mediaType := sniff(p.Blob.Data)
	if mediaType == "" {
		mediaType = strings.ToLower(p.X.MediaType)
	}
	if mediaType == "image/jpg" {
		mediaType = "image/jpeg"
	}
	if !wire.IsImage(mediaType) {
		return wire.Object{}
	}
	return bytesSource(mediaType, p.Blob.Data)
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

// documentSource returns the source of a document: a PDF, or text of any kind.
func documentSource(own bool, p *wire.Part) (o wire.Object) {
	mediaType := strings.ToLower(p.X.MediaType)
	if p.Blob != nil {
		switch {
		case mediaType == "application/pdf":
			return bytesSource(mediaType, p.Blob.Data)
		case isText(mediaType) && utf8.Valid(p.Blob.Data) && len(bytes.TrimSpace(p.Blob.Data)) > 0:
			o.SetTexts("type", sourceText, "media_type", "text/plain", "data", string(p.Blob.Data))
		}
		return o
	}
	if source, err := wire.ParseObject("", p.X.Rest.Get("source")); err == nil && source.Text("type") == sourceContent {
		blocks := texts(source.Get("content"))
		if text, _ := wire.Text(source.Get("content")); strings.TrimSpace(text) != "" {
			blocks = []jsontext.Value{textBlock(text).raw}
		}
		if len(blocks) > 0 {
			o.SetText("type", sourceContent)
			o.Set("content", wire.Array(blocks))
		}
		return o
	}
	if !own && !strings.HasSuffix(strings.ToLower(p.X.URL), ".pdf") && mediaType != "application/pdf" {
		return o
	}
	return elsewhere(own, &p.X.Media)
}

// isText reports whether bytes of a type can be read as text.
func isText(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "json") || strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "yaml")
}

// elsewhere returns the source of what the provider finds by itself. An id of another
// provider's store names nothing here.
func elsewhere(own bool, media *wire.Media) (o wire.Object) {
	switch {
	case strings.HasPrefix(media.URL, "https://"):
		o.SetTexts("type", sourceURL, "url", media.URL)
	case own:
		if o.SetTexts("file_id", media.FileID); o.Len() > 0 {
			o = wire.Object{}
			o.SetTexts("type", sourceFile, "file_id", media.FileID)
		}
	}
	return o
}

func bytesSource(mediaType string, data []byte) (o wire.Object) {
	o.SetTexts("type", sourceBase64, "media_type", mediaType, "data", base64.StdEncoding.EncodeToString(data))
	return o
}

// serverCall writes a call of a tool that the provider runs, if its id is one of the
// provider's.
func (s *sender) serverCall(kind, id, name, input string, fields *wire.Object) {
	server, _ := wire.Text(fields.Get("server_name"))
	rest, own := strings.CutPrefix(id, "srvtoolu_")
	known := kind == typeServerToolUse && own && rest != "" && !strings.Contains(rest, "-") || kind == typeMCPToolUse && server != ""
	if !known || !callid.Valid(id) || name == "" || s.ids.Taken(id) {
		s.lose("a call of the provider's own tool, " + wire.Clip(kind) + " " + strconv.Quote(wire.Clip(id)))
		return
	}
	s.ids.Own(id)
	b := sent{kind: kind, id: id}
	var o wire.Object
	o.SetTexts("type", kind, "id", id, "name", name)
	raw, _ := inputOf(input)
	o.Set("input", raw)
	if kind == typeMCPToolUse {
		o.SetText("server_name", server)
	} else {
		b.caller = setCaller(&o, fields)
	}
	b.raw = o.Value()
	s.put(roleAssistant, b)
}

// serverResult writes the result of a tool that the provider ran, its content as it came.
func (s *sender) serverResult(p *wire.Part) {
	kind, rest := p.X.Type, &p.X.Rest
	content := serverContent(kind, rest.Get("content"))
	if content == nil {
		s.lose("a result of the provider's own tool, " + wire.Clip(kind))
		return
	}
	s.loseRest(kind, p, "content", "caller", "is_error")
	b := sent{kind: kind, id: p.CallID}
	var o wire.Object
	o.SetText("type", kind)
	o.SetText("tool_use_id", p.CallID)
	o.Set("content", content)
	switch failed := rest.Get("is_error"); kind {
	case typeMCPToolResult:
		if k := wire.KindOf(failed); k == 't' || k == 'f' {
			o.Set("is_error", failed)
		}
	case typeWebSearchResult, typeWebFetchResult:
		b.caller = setCaller(&o, rest)
	}
	b.raw = o.Value()
	s.put(roleAssistant, b)
}

// setCaller copies who called a tool, if it was a program of the model's, and returns its id.
// That the model itself called is the default.
func setCaller(o, fields *wire.Object) string {
	raw := fields.Get("caller")
	caller, err := wire.ParseObject("", raw)
	if err != nil {
		return ""
	}
	id, _ := wire.Text(caller.Get("tool_id"))
	kind, _ := wire.Text(caller.Get("type"))
	if id != "" && caller.Len() == 2 && strings.HasPrefix(kind, "code_execution_") {
		o.Set("caller", wire.Clean(raw))
		return id
	}
	return ""
}

// serverContent returns the content of a result of the provider's own tool as the API takes it
// back: hits of a search, an object of the tool's types, text of an MCP server. It is nil for
// any other.
func serverContent(kind string, raw []byte) jsontext.Value {
	o, err := wire.ParseObject("", raw)
	if err == nil {
		of, _ := wire.Text(o.Get("type"))
		if slices.Contains(serverContentTypes(kind), of) {
			return wire.Clean(raw)
		}
		return nil
	}
	switch {
	case kind == typeMCPToolResult && wire.KindOf(raw) == '"':
		return wire.Clean(raw)
	case kind == typeMCPToolResult && wire.KindOf(raw) == '[':
		return wire.Array(texts(raw))
	case kind == typeWebSearchResult && wire.KindOf(raw) == '[':
		return hits(raw)
	}
	return nil
}

// serverContentTypes lists the types that the content of a result may have.
func serverContentTypes(kind string) []string {
	switch kind {
	case typeWebSearchResult:
		return []string{"web_search_tool_result_error"}
	case typeWebFetchResult:
		return []string{"web_fetch_result", "web_fetch_tool_result_error"}
	case "code_execution_tool_result":
		return []string{"code_execution_result", "encrypted_code_execution_result", "code_execution_tool_result_error"}
	case "bash_code_execution_tool_result":
		return []string{"bash_code_execution_result", "bash_code_execution_tool_result_error"}
	case "text_editor_code_execution_tool_result":
		return []string{"text_editor_code_execution_view_result", "text_editor_code_execution_create_result", "text_editor_code_execution_str_replace_result", "text_editor_code_execution_tool_result_error"}
	case "tool_search_tool_result":
		return []string{"tool_search_tool_search_result", "tool_search_tool_result_error"}
	case "advisor_tool_result":
		return []string{"advisor_result", "advisor_redacted_result", "advisor_tool_result_error"}
	}
	return nil
}

// hits returns what a web search found, with the fields that a request may have; nil if one of
// them is none.
func hits(raw []byte) jsontext.Value {
	list, err := wire.ParseArray("", raw)
	if err != nil {
		return nil
	}
	out := make([]jsontext.Value, 0, len(list))
	for _, r := range list {
		hit, err := wire.ParseObject("", r)
		kind, _ := wire.Text(hit.Get("type"))
		if err != nil || kind != "web_search_result" {
			return nil
		}
		var o wire.Object
		o.SetText("type", kind)
		for _, f := range []string{"url", "title", "encrypted_content"} {
			text, _ := wire.Text(hit.Get(f))
			if wire.KindOf(hit.Get(f)) != '"' || text == "" && f != "title" {
				return nil
			}
			o.Set(f, wire.Clean(hit.Get(f)))
		}
		if age := hit.Get("page_age"); wire.KindOf(age) == '"' {
			o.Set("page_age", wire.Clean(age))
		}
		out = append(out, o.Value())
	}
	return wire.Array(out)
}
