package anthropic

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Send makes {"system": …, "messages": […]} of a context, with the fields that the API takes in
// a request and no other. System text before the first turn is the request's system; later it
// stands behind the user's entry that it came with, for models that take it there, and is quoted in
// the user's role for others, so that what was sent before stays a prefix. Neighbours of one role
// are one entry, results stand first in the entry behind their calls. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := newSender(in.Model, false)
	s.before = min(in.Before, len(in.Messages))
	s.limitImages(&in)
	if in.System != "" {
		s.system = append(s.system, in.System)
	}
	for i := range in.Messages {
		s.at = i
		if err := s.message(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	s.finish()
	marked := s.mark(in.Borders)
	var system any = jsonx.Maybe(strings.Join(s.system, "\n\n"))
	if text := strings.Join(s.system, "\n\n"); marked && strings.TrimSpace(text) != "" {
		system = []jsontext.Value{withMark(textBlock(text).raw)}
	}
	request := jsonx.Encode("system", system, "messages", s.written())
	return wire.Sent{
		Request: session.JSON(request), Losses: s.Losses(), ThinkingOff: s.thinkingOff(),
		ToolNames: s.ToolNames(), BrokenBy: s.brokenBy,
	}, nil
}

// Roles of the wire.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
)

// sent is a block as it is sent, and what decides where it may stand.
type sent struct {
	kind   string
	id     string // of a call, or of the call that a result answers
	caller string // of a call that the provider's own program made: that program's id
	from   *session.Message
	at     int    // the place of from in the context
	text   string // of a text
	plain  bool   // a text that came as a string
	marked bool   // it carries a cache mark
	raw    jsontext.Value
}

func (b *sent) thinks() bool { return b.kind == typeThinking || b.kind == typeRedacted }

// blockOf makes a block of a type and fields.
func blockOf(kind string, fields ...any) sent {
	return sent{kind: kind, raw: jsonx.Encode(append([]any{"type", kind}, fields...)...)}
}

func textBlock(text string) sent {
	return sent{kind: typeText, text: text, raw: jsonx.Encode("type", typeText, "text", text)}
}

// entry is an entry of messages.
type entry struct {
	role   string
	blocks []sent
	system []sent // of a user's: the system message behind it
}

// sender writes messages one after the other.
type sender struct {
	wire.Sender
	model   string
	export  bool // for an export: nothing is left out because its other half is not there
	system  []string
	entries []entry
	ids     *callid.Names
	server  bool // some tool of the provider's own was used
	at      int  // the place of the message in the context
	maker   bool // it is of this form, and from the maker of the model that it is sent to

	systemTurns bool   // the model takes system messages in the middle
	waiting     []sent // system text for behind the user's next entry
	images      int    // so far
	surplus     int    // of them are left out
	before      int    // messages that the context before had
	brokenBy    string // why these are sent otherwise now
}

func newSender(model string, export bool) *sender {
	return &sender{
		model: model, export: export, ids: callid.New(callid.FixInvalid), systemTurns: !export && takesSystemTurns(model),
	}
}

// written returns the entries.
func (s *sender) written() []jsontext.Value {
	out := make([]jsontext.Value, 0, len(s.entries))
	for _, e := range s.entries {
		out = append(out, jsontext.Value(jsonx.Encode("role", e.role, "content", contentOf(e.blocks))))
		if len(e.system) > 0 {
			out = append(out, jsontext.Value(jsonx.Encode("role", roleSystem, "content", contentOf(e.system))))
		}
	}
	return out
}

// contentOf writes a text that came as a string as one, anything else as blocks.
func contentOf(blocks []sent) any {
	if len(blocks) == 1 && blocks[0].plain && !blocks[0].marked {
		return blocks[0].text
	}
	return rawOf(blocks)
}

func rawOf(blocks []sent) []jsontext.Value {
	raw := make([]jsontext.Value, len(blocks))
	for i := range blocks {
		raw[i] = blocks[i].raw
	}
	return raw
}

// taken returns what was written since the last time, as entries of an export.
func (s *sender) taken() []jsontext.Value {
	var out []jsontext.Value
	for _, text := range s.system {
		out = append(out, jsontext.Value(jsonx.Encode("role", roleSystem, "content", text)))
	}
	out = append(out, s.written()...)
	s.system, s.entries, s.Open = nil, nil, nil
	return out
}

func (s *sender) own() bool { return s.M.Dialect == Name }

// loseRest names the unknown fields of a block.
func (s *sender) loseRest(kind string, p *wire.Part, known ...string) {
	s.LoseFields(&p.X.Rest, kind, known...)
}

func (s *sender) message(of *session.Message) error {
	if err := s.Load(Name, of); err != nil {
		return err
	}
	role := s.Role()
	if role == "" {
		return nil
	}
	s.maker = s.own() && madeBy(of, s.model)
	s.LoseFields(&s.M.X.Rest, "", "role", "content", "type", "model", "stop_sequence", "stop_details", "container",
		"context_management", "diagnostics", "input_transformations")
	if of.Author != "" {
		s.Lose("the author's name")
	}
	switch role {
	case session.System:
		s.instructions()
	case session.User:
		s.user()
	case session.Assistant:
		s.assistant()
	case session.Tool:
		for parts := range s.Results() {
			s.result(parts)
		}
	}
	return nil
}

// madeBy reports whether what is signed in a message can be sent to a model: its maker reads its
// own signatures on every platform, and other makers speak this form with their own.
func madeBy(m *session.Message, model string) bool {
	if m.Model != "" && m.Model == model {
		return true
	}
	claude := func(name string) bool { return strings.Contains(strings.ToLower(name), "claude") }
	if model != "" && m.Model != "" && claude(model) != claude(m.Model) {
		return false
	}
	provider := strings.ToLower(m.Provider)
	for _, platform := range []string{Name, "bedrock", "vertex", "foundry"} {
		if strings.Contains(provider, platform) {
			return true
		}
	}
	return provider == "" || claude(provider)
}

// put writes a block into the open entry of that role, or begins the next one.
func (s *sender) put(role string, b sent) {
	if role == roleAssistant {
		s.quoteWaiting()
	}
	b.from, b.at = s.From, s.at
	b.plain = b.kind == typeText && s.cameAsString()
	s.server = s.server || b.caller != "" || isServerCall(b.kind) || isServerResult(b.kind)
	last := len(s.entries) - 1
	if last < 0 || s.entries[last].role != role {
		if role == roleAssistant {
			s.close()
		}
		s.entries = append(s.entries, entry{role: role})
		last++
	}
	e := &s.entries[last]
	at := len(e.blocks)
	if b.kind == typeToolResult { // in front of whatever else the user said
		for at = 0; at < len(e.blocks) && e.blocks[at].kind == typeToolResult; at++ {
			continue
		}
	}
	e.blocks = slices.Insert(e.blocks, at, b)
	if role == roleUser {
		e.system, s.waiting = append(e.system, s.waiting...), nil
		s.checkSystem(e)
	}
}

// cameAsString reports whether the message's content was a string, so that it is sent as one.
func (s *sender) cameAsString() bool {
	return s.own() && s.M.X.Shape == "" || s.M.Dialect == native
}

// native is the name of sessiond's own form, of a message that names no other.
const native = "native"

// putText writes a text, if there is one: the API rejects an empty one and one of spaces.
func (s *sender) putText(role, text string) bool {
	if strings.TrimSpace(text) == "" {
		return false
	}
	s.put(role, textBlock(text))
	return true
}

// instructions writes a system message.
func (s *sender) instructions() {
	text := strings.Join(s.Texts(), "\n\n")
	last := len(s.entries) - 1
	switch {
	case strings.TrimSpace(text) == "":
	case last < 0:
		s.system = append(s.system, text)
	case s.systemTurns:
		b := textBlock(text)
		b.from, b.at, b.plain = s.From, s.at, s.cameAsString()
		if e := &s.entries[last]; e.role == roleUser {
			e.system = append(e.system, b)
		} else {
			s.waiting = append(s.waiting, b)
		}
	default:
		s.Lose("a system message in the middle is sent in the user's role")
		s.putText(roleUser, "<system>\n"+text+"\n</system>")
	}
}

// quoteWaiting quotes system text in the user's role that no entry of a user follows: the API takes
// a system message only behind one.
func (s *sender) quoteWaiting() {
	waiting := s.waiting
	s.waiting = nil
	for _, b := range waiting {
		s.LoseOf(b.from, "a system message behind a reply is sent in the user's role")
		from, at := s.From, s.at
		s.From, s.at = b.from, b.at
		s.putText(roleUser, "<system>\n"+b.text+"\n</system>")
		s.From, s.at = from, at
	}
}

// checkSystem notes that what a user said now stands in front of a system message which was sent
// before it.
func (s *sender) checkSystem(e *entry) {
	if s.at < s.before {
		return
	}
	if slices.ContainsFunc(e.system, func(b sent) bool { return b.at < s.before }) {
		s.brokenBy = "system_message"
	}
}

// user writes what a person or a program said. One of whom nothing can be sent still has
// their turn.
func (s *sender) user() {
	said := false
	for i := range s.M.Parts {
		p := &s.M.Parts[i]
		switch p.Kind {
		case session.PartRefusal:
			said = s.putText(roleUser, p.Content()) || said
		case session.PartText, session.PartImage, session.PartFile, session.PartAudio:
			if b := s.content(p); b.raw != nil {
				s.put(roleUser, b)
				said = true
			}
		default:
			s.LosePart(p)
		}
	}
	if last := len(s.entries) - 1; !said && (last < 0 || s.entries[last].role != roleUser) {
		s.putText(roleUser, wire.NoContent)
	}
}

// assistant writes a reply, block by block. In one of this form each block keeps its place. In
// any other the calls go last; and a call that its provider ran itself, whose result stands in
// the reply, becomes a call and a result like any other, in front of those.
func (s *sender) assistant() {
	var waiting []*wire.Part
	parts := s.M.Parts
	for i := 0; i < len(parts); i++ {
		p := &parts[i]
		switch {
		case p.Kind == session.PartToolCall && s.maker && p.X.Type == "":
			s.call(p)
		case p.Kind == session.PartToolCall && s.maker:
			s.loseRest(p.X.Type, p, "input", "caller", "server_name")
			s.serverCall(p.X.Type, p.CallID, p.ToolName, p.Arguments, &p.X.Rest)
		case p.Kind == session.PartToolCall:
			at := slices.IndexFunc(parts, func(r wire.Part) bool {
				return r.Kind == session.PartToolResult && r.CallID == p.CallID
			})
			if at < 0 {
				waiting = append(waiting, p)
				continue
			}
			s.call(p)
			s.result(parts[at:groupEnd(parts, at)])
		case p.Kind == session.PartToolResult && s.maker:
			s.serverResult(p)
		case p.Kind == session.PartToolResult:
			if !slices.ContainsFunc(parts, func(c wire.Part) bool {
				return c.Kind == session.PartToolCall && c.CallID == p.CallID
			}) {
				s.LosePart(p)
			}
			i = groupEnd(parts, i) - 1
		default:
			s.reply(p)
		}
	}
	for _, p := range waiting {
		s.call(p)
	}
}

// reply writes what is neither a call nor a result.
func (s *sender) reply(p *wire.Part) {
	switch p.Kind {
	case session.PartText:
		if s.own() && p.X.Type == typeSearchResult { // only a user's entry may have one
			s.putText(roleAssistant, p.Content())
		} else if b := s.content(p); b.raw != nil {
			s.put(roleAssistant, b)
		}
	case session.PartRefusal:
		s.putText(roleAssistant, p.Content())
	case session.PartAudio:
		if !s.putText(roleAssistant, p.Content()) { // what was said stands in for how
			s.LosePart(p)
		}
	case session.PartReasoning:
		s.reasoning(p)
	case session.PartData:
		if p.X.Type == typeCompaction && s.maker {
			s.compaction(p)
			return
		}
		// a call that the provider runs and whose result is still to come
		if o, err := jsonx.ParseObject("", p.Raw()); err == nil && s.maker && isServerCall(p.X.Type) {
			s.serverCall(p.X.Type, o.String("id"), o.String("name"), string(o.Get("input")), &o)
			return
		}
		s.LosePart(p)
	default:
		s.LosePart(p)
	}
}

// compaction writes the provider's own summary of everything before it, which it takes in the place
// of that. One that failed says nothing.
func (s *sender) compaction(p *wire.Part) {
	o, err := jsonx.ParseObject("", p.Raw())
	if text := o.Get("content"); err == nil && jsonx.KindOf(text) == '"' && string(text) != `""` {
		s.put(roleAssistant, blockOf(typeCompaction, "content", jsontext.Value(jsonx.Clean(text))))
	}
}

// reasoning writes thinking with its signature, unmodified, for its maker only. Imports from pi
// hold the same signature under a name of their own.
func (s *sender) reasoning(p *wire.Part) {
	kind, signature, data := "", p.X.Signature, p.X.Data
	switch {
	case s.maker && p.X.Type == "":
		kind = typeThinking
	case s.maker:
		kind = p.X.Type
	case !s.own() && s.M.Provider == Name && madeBy(&s.M.Message, s.model):
		if o, err := jsonx.ParseObject("extra", p.Extra); err == nil {
			kind, signature = typeThinking, o.Get("thinkingSignature")
			if string(o.Get("redacted")) == "true" {
				kind, data = typeRedacted, signature
			}
		}
	}
	if text := jsonx.ExactText(signature); kind == typeThinking && text != "" && !p.X.Rest.Has("thinking") {
		s.put(roleAssistant, blockOf(kind, "thinking", p.Content(), "signature", signature))
	} else if text := jsonx.ExactText(data); kind == typeRedacted && text != "" {
		s.put(roleAssistant, blockOf(kind, "data", data))
	} else {
		s.LosePart(p)
	}
}

// call writes a call that waits for its result. Its id is one of its own, since the API rejects
// the same id twice in a request and some providers count anew in each reply.
func (s *sender) call(p *wire.Part) {
	name := s.ToolName(p.ToolName)
	input, ok := wire.ArgumentsObject(p.Arguments, "input")
	if !ok {
		s.Lose("arguments of " + strconv.Quote(jsonx.Clip(p.ToolName)) + " are no JSON object, sent inside one")
	}
	id := s.ids.Call(s.CountCall(p, "toolu_made_"))
	var by caller
	if s.maker {
		s.loseRest(typeToolUse, p, "input", "caller", "id", "name")
		by = callerOf(&p.X.Rest)
	}
	b := blockOf(typeToolUse, "id", id, "name", name, "input", input, "caller", by.raw)
	b.id, b.caller = id, by.id
	s.put(roleAssistant, b)
	s.Open = append(s.Open, wire.OpenCall{ID: p.CallID, Name: p.ToolName, SentID: id, From: s.From})
}

// result writes a result with the parts that belong to it.
func (s *sender) result(parts []wire.Part) {
	p := &parts[0]
	id := s.ids.Result(p.CallID)
	if call, ok := s.CloseCall(p); ok {
		id = call.SentID
	} else if !s.export || id == "" {
		s.Lose("a result of " + strconv.Quote(jsonx.Clip(p.CallID)) + " answers no call of the reply before it")
		return
	}
	if s.own() {
		s.loseRest(typeToolResult, p, "content", "is_error", "tool_use_id")
	}
	content := s.resultContent(parts)
	var behind []sent // the results of the entry
	if p.Failed() {
		// The API rejects a failure without content, and "all content must be type 'text' if 'is_error'
		// is true". Source: github.com/vellum-ai/vellum-assistant/pull/18387.
		isText := func(b sent) bool { return b.kind == typeText }
		behind = slices.DeleteFunc(slices.Clone(content), isText)
		content = slices.DeleteFunc(content, func(b sent) bool { return !isText(b) })
		if len(content) == 0 {
			content = append(content, textBlock(wire.NoContent))
		}
	}
	var sentContent any = jsonx.Maybe("")
	switch {
	case len(content) == 1 && content[0].kind == typeText:
		sentContent = content[0].text
	case len(content) > 0:
		sentContent = rawOf(content)
	}
	b := blockOf(typeToolResult, "tool_use_id", id, "content", sentContent, "is_error", p.IsError)
	b.id = id
	s.put(roleUser, b)
	for _, b := range behind {
		if b.kind == typeToolReference { // only a result may have one
			s.Lose("the name of a tool in a failed result")
			continue
		}
		s.put(roleUser, b)
	}
}

// resultContent returns the blocks of a result: its text in its place among the parts that
// belong to it.
func (s *sender) resultContent(parts []wire.Part) []sent {
	var content []sent
	text := parts[0].Content()
	for i := 1; i <= len(parts); i++ {
		if i-1 == max(wire.TextPlace(&parts[0]), 0) || i == len(parts) {
			if strings.TrimSpace(text) != "" {
				content = append(content, textBlock(text))
			}
			text = ""
		}
		if i < len(parts) {
			if b := s.content(&parts[i]); b.raw != nil {
				content = append(content, b)
			}
		}
	}
	return content
}

// close takes calls back that never got a result, for which the API would reject all.
func (s *sender) close() {
	if s.export {
		s.Open = nil
	}
	for _, c := range s.Open {
		for i := range slices.Backward(s.entries) {
			e := &s.entries[i]
			if at := slices.IndexFunc(e.blocks, func(b sent) bool {
				return b.kind == typeToolUse && b.id == c.SentID
			}); at >= 0 {
				e.blocks = slices.Delete(e.blocks, at, at+1)
				break
			}
		}
		s.LoseOf(c.From, "call "+strconv.Quote(jsonx.Clip(c.ID))+" has no result behind it")
	}
	s.Open = nil
}

// content returns a text, an image or a document as a block. Its raw is nil, with a loss, for
// what the API does not take, and without one for a text of nothing.
func (s *sender) content(p *wire.Part) sent {
	own := s.own()
	switch p.Kind {
	case session.PartText, session.PartRefusal:
		if own && p.X.Type == typeSearchResult {
			return s.searchResult(p)
		}
		return s.textOf(p)
	case session.PartImage:
		source := imageSource(own, p)
		if s.isSurplus() && source != nil {
			return textBlock(imageNote)
		}
		return s.media(p, typeImage, source)
	case session.PartFile:
		if p.X.Type == typeContainerUpload && p.X.FileID != "" && s.maker {
			s.loseRest(p.X.Type, p, "file_id")
			return blockOf(p.X.Type, "file_id", p.X.FileID)
		}
		return s.media(p, typeDocument, documentSource(own, p))
	case session.PartAudio:
		if text := p.Content(); strings.TrimSpace(text) != "" {
			return textBlock(text) // what was said stands in for how
		}
	case session.PartData: // the name of a tool that a result points to
		if o, err := jsonx.ParseObject("", p.Raw()); err == nil && s.maker && p.X.Type == typeToolReference &&
			callid.Valid(o.Text("tool_name")) {
			return blockOf(typeToolReference, "tool_name", o.Text("tool_name"))
		}
	}
	s.LosePart(p)
	return sent{}
}

// textOf returns a text with its citations.
func (s *sender) textOf(p *wire.Part) sent {
	text := p.Content()
	if strings.TrimSpace(text) == "" {
		return sent{}
	}
	b := textBlock(text)
	if !s.own() || p.X.Type != "" {
		return b
	}
	s.loseRest(typeText, p, "text", "citations")
	if cited := s.citations(p.X.Rest.Get("citations")); len(cited) > 0 {
		b.raw = jsonx.Encode("type", typeText, "text", text, "citations", cited)
	}
	return b
}

// citations returns the citations of a text with the fields that a request may have. A reply's
// have more.
func (s *sender) citations(raw []byte) []jsontext.Value {
	list, err := jsonx.ParseArray("", raw)
	if err != nil {
		return nil // null
	}
	var out []jsontext.Value
	for _, r := range list {
		c, err := jsonx.ParseObject("", r)
		kind := c.String("type")
		fields := citationFields(kind)
		if err != nil || fields == nil || !s.maker || slices.ContainsFunc(fields, func(f string) bool { return !c.Has(f) }) {
			s.Lose("a citation " + jsonx.Clip(kind))
			continue
		}
		o := jsonx.NewObject("type", kind)
		for _, f := range fields {
			o.Set(f, jsonx.Clean(c.Get(f)))
		}
		out = append(out, o.Value())
	}
	return out
}

// citationFields lists the fields of a kind of citation, as the API takes them in a request.
func citationFields(kind string) []string {
	return map[string][]string{
		"char_location": {
			"cited_text", "document_index", "document_title", "start_char_index",
			"end_char_index",
		},
		"page_location": {
			"cited_text", "document_index", "document_title", "start_page_number",
			"end_page_number",
		},
		"content_block_location": {
			"cited_text", "document_index", "document_title", "start_block_index",
			"end_block_index",
		},
		"web_search_result_location": {"cited_text", "encrypted_index", "title", "url"},
		"search_result_location": {
			"cited_text", "search_result_index", "source", "title", "start_block_index",
			"end_block_index",
		},
	}[kind]
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
	return blockOf(p.X.Type, "source", source, "title", title, "content", blocks, "citations", citationsOf(rest))
}

// texts returns the text blocks of a content, with nothing but their text.
func texts(raw []byte) []jsontext.Value {
	list, err := jsonx.ParseArray("", raw)
	if err != nil {
		return nil
	}
	var out []jsontext.Value
	for _, r := range list {
		b, err := jsonx.ParseObject("", r)
		if text := b.String("text"); err == nil && strings.TrimSpace(text) != "" {
			out = append(out, textBlock(text).raw)
		}
	}
	return out
}

// citationsOf returns whether what is cited is to be marked, {"enabled": true}; nil where nothing
// says so.
func citationsOf(fields *jsonx.Object) jsontext.Value {
	config, err := jsonx.ParseObject("", fields.Get("citations"))
	if err != nil {
		return nil
	}
	if enabled := config.Get("enabled"); jsonx.KindOf(enabled) == 't' || jsonx.KindOf(enabled) == 'f' {
		return jsonx.Encode("enabled", enabled)
	}
	return nil
}

// media returns an image or a document of a source, which is nil where the API takes none.
func (s *sender) media(p *wire.Part, kind string, source jsontext.Value) sent {
	if source == nil {
		s.LoseMedium(p)
		return sent{}
	}
	s.loseRest(kind, p, "source", "title", "context", "citations")
	if kind != typeDocument {
		return blockOf(kind, "source", source)
	}
	rest := &p.X.Rest
	return blockOf(kind, "source", source, "title", jsonx.Maybe(p.X.Name), "context", jsonx.Maybe(rest.Text("context")),
		"citations", citationsOf(rest))
}

// imageSource returns the source of an image. Types by Anthropic's guide to vision; the bytes
// tell their type more surely than what stood beside them, which the API rejects where it is
// wrong.
func imageSource(own bool, p *wire.Part) jsontext.Value {
	if p.Blob == nil {
		return elsewhere(own, &p.X.Media)
	}
	mediaType := http.DetectContentType(p.Blob.Data)
	if !wire.IsImage(mediaType) {
		mediaType = strings.ToLower(p.X.MediaType)
	}
	if mediaType == "image/jpg" {
		mediaType = "image/jpeg"
	}
	if !wire.IsImage(mediaType) {
		return nil
	}
	return bytesSource(mediaType, p.Blob.Data)
}

// documentSource returns the source of a document: a PDF, or text of any kind.
func documentSource(own bool, p *wire.Part) jsontext.Value {
	mediaType := strings.ToLower(p.X.MediaType)
	if p.Blob != nil {
		switch {
		case mediaType == "application/pdf":
			return bytesSource(mediaType, p.Blob.Data)
		case isText(mediaType) && utf8.Valid(p.Blob.Data) && len(bytes.TrimSpace(p.Blob.Data)) > 0:
			return jsonx.Encode("type", sourceText, "media_type", "text/plain", "data", string(p.Blob.Data))
		}
		return nil
	}
	if source, err := jsonx.ParseObject("", p.X.Rest.Get("source")); err == nil && source.Text("type") == sourceContent {
		blocks := texts(source.Get("content"))
		if text := source.String("content"); strings.TrimSpace(text) != "" {
			blocks = []jsontext.Value{textBlock(text).raw}
		}
		if len(blocks) == 0 {
			return nil
		}
		return jsonx.Encode("type", sourceContent, "content", blocks)
	}
	if !own && !strings.HasSuffix(strings.ToLower(p.X.URL), ".pdf") && mediaType != "application/pdf" {
		return nil
	}
	return elsewhere(own, &p.X.Media)
}

// isText reports whether bytes of a type can be read as text.
func isText(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "json") ||
		strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "yaml")
}

// elsewhere returns the source of what the provider finds by itself. An id of another
// provider's store names nothing here.
func elsewhere(own bool, media *wire.Media) jsontext.Value {
	switch {
	case strings.HasPrefix(media.URL, "https://"):
		return jsonx.Encode("type", sourceURL, "url", media.URL)
	case own && media.FileID != "":
		return jsonx.Encode("type", sourceFile, "file_id", media.FileID)
	}
	return nil
}

func bytesSource(mediaType string, data []byte) jsontext.Value {
	return jsonx.Encode("type", sourceBase64, "media_type", mediaType, "data", base64.StdEncoding.EncodeToString(data))
}

// serverCall writes a call of a tool that the provider runs, if its id is one of the
// provider's.
func (s *sender) serverCall(kind, id, name, input string, fields *jsonx.Object) {
	server := fields.String("server_name")
	rest, own := strings.CutPrefix(id, "srvtoolu_")
	known := kind == typeServerToolUse && own && rest != "" && !strings.Contains(rest, "-") ||
		kind == typeMCPToolUse && server != ""
	if !known || !callid.Valid(id) || name == "" || s.ids.Taken(id) {
		s.Lose("a call of the provider's own tool, " + jsonx.Clip(kind) + " " + strconv.Quote(jsonx.Clip(id)))
		return
	}
	s.ids.Own(id)
	var by caller
	if kind == typeServerToolUse {
		by, server = callerOf(fields), ""
	}
	object, _ := wire.ArgumentsObject(input, "input")
	b := blockOf(kind, "id", id, "name", name, "input", object, "server_name", jsonx.Maybe(server), "caller", by.raw)
	b.id, b.caller = id, by.id
	s.put(roleAssistant, b)
}

// serverResult writes the result of a tool that the provider ran, its content as it came.
func (s *sender) serverResult(p *wire.Part) {
	kind, rest := p.X.Type, &p.X.Rest
	content := serverContent(kind, rest.Get("content"))
	if content == nil {
		s.Lose("a result of the provider's own tool, " + jsonx.Clip(kind))
		return
	}
	s.loseRest(kind, p, "content", "caller", "is_error")
	var by caller
	var failed jsontext.Value
	switch kind {
	case typeMCPToolResult:
		if raw := rest.Get("is_error"); jsonx.KindOf(raw) == 't' || jsonx.KindOf(raw) == 'f' {
			failed = raw
		}
	case typeWebSearchResult, typeWebFetchResult:
		by = callerOf(rest)
	}
	b := blockOf(kind, "tool_use_id", p.CallID, "content", content, "is_error", failed, "caller", by.raw)
	b.id, b.caller = p.CallID, by.id
	s.put(roleAssistant, b)
}

// caller is a program of the model's that called a tool. That the model itself called is the
// default.
type caller struct {
	id  string // of the call that runs the program
	raw jsontext.Value
}

// callerOf returns the program that called a tool, if it was one.
func callerOf(fields *jsonx.Object) caller {
	raw := fields.Get("caller")
	o, err := jsonx.ParseObject("", raw)
	id := o.String("tool_id")
	if err != nil || id == "" || len(o) != 2 || !strings.HasPrefix(o.String("type"), "code_execution_") {
		return caller{}
	}
	return caller{id, jsonx.Clean(raw)}
}

// serverContent returns the content of a result of the provider's own tool as the API takes it
// back: hits of a search, an object of the tool's types, text of an MCP server. It is nil for
// any other.
func serverContent(kind string, raw []byte) jsontext.Value {
	o, err := jsonx.ParseObject("", raw)
	if err == nil {
		if slices.Contains(serverContentTypes(kind), o.String("type")) {
			return jsonx.Clean(raw)
		}
		return nil
	}
	switch {
	case kind == typeMCPToolResult && jsonx.KindOf(raw) == '"':
		return jsonx.Clean(raw)
	case kind == typeMCPToolResult && jsonx.KindOf(raw) == '[':
		return jsonx.Array(texts(raw))
	case kind == typeWebSearchResult && jsonx.KindOf(raw) == '[':
		return hits(raw)
	}
	return nil
}

// serverContentTypes lists the types that the content of a result may have.
func serverContentTypes(kind string) []string {
	return map[string][]string{
		typeWebSearchResult: {"web_search_tool_result_error"},
		typeWebFetchResult:  {"web_fetch_result", "web_fetch_tool_result_error"},
		"code_execution_tool_result": {
			"code_execution_result", "encrypted_code_execution_result",
			"code_execution_tool_result_error",
		},
		"bash_code_execution_tool_result": {"bash_code_execution_result", "bash_code_execution_tool_result_error"},
		"text_editor_code_execution_tool_result": {
			"text_editor_code_execution_view_result",
			"text_editor_code_execution_create_result", "text_editor_code_execution_str_replace_result",
			"text_editor_code_execution_tool_result_error",
		},
		"tool_search_tool_result": {"tool_search_tool_search_result", "tool_search_tool_result_error"},
		"advisor_tool_result":     {"advisor_result", "advisor_redacted_result", "advisor_tool_result_error"},
	}[kind]
}

// hits returns what a web search found, with the fields that a request may have; nil if one of
// them is none.
func hits(raw []byte) jsontext.Value {
	list, err := jsonx.ParseArray("", raw)
	if err != nil {
		return nil
	}
	out := make([]jsontext.Value, 0, len(list))
	for _, r := range list {
		hit, err := jsonx.ParseObject("", r)
		kind := hit.String("type")
		if err != nil || kind != "web_search_result" {
			return nil
		}
		o := jsonx.NewObject("type", kind)
		for _, f := range []string{"url", "title", "encrypted_content"} {
			text := hit.String(f)
			if jsonx.KindOf(hit.Get(f)) != '"' || text == "" && f != "title" {
				return nil
			}
			o.Set(f, jsonx.Clean(hit.Get(f)))
		}
		if age := hit.Get("page_age"); jsonx.KindOf(age) == '"' {
			o.Set("page_age", jsonx.Clean(age))
		}
		out = append(out, o.Value())
	}
	return jsonx.Array(out)
}

// finish brings the entries into the order that the API demands: what has lost its other half
// goes, thinking stands where the model put it, the first entry is a user's.
func (s *sender) finish() {
	s.quoteWaiting()
	s.close()
	s.pairServerTools()
	for i := range s.entries {
		if s.entries[i].role == roleAssistant {
			s.placeThinking(&s.entries[i])
		}
	}
	s.join()
	if len(s.entries) == 0 || s.entries[0].role != roleUser {
		s.entries = slices.Insert(s.entries, 0, entry{role: roleUser, blocks: []sent{textBlock(wire.NoContent)}})
	}
	s.trimEnd()
}

// pairServerTools leaves out calls of the provider's own tools without their results, and the
// reverse. A call may wait at the very end, where the provider paused, or while a program that
// it runs waits for a call of its own.
func (s *sender) pairServerTools() {
	if !s.server {
		return
	}
	state := map[string]serverCall{}
	last := len(s.entries) - 1
	for i := range s.entries {
		for at := range s.entries[i].blocks {
			b := &s.entries[i].blocks[at]
			switch {
			case isServerCall(b.kind):
				state[b.id] = serverCall{seen: i, waits: i == last}
			case isServerResult(b.kind):
				if c, called := state[b.id]; called && c.result == nil && i-c.seen <= c.reach {
					state[b.id] = serverCall{result: b}
				}
			}
			if c, called := state[b.caller]; called && c.result == nil && i-c.seen <= c.reach {
				const next = 2 // the next reply is two entries on
				state[b.caller] = serverCall{seen: i, reach: next, waits: c.waits || i >= last-1}
			}
		}
	}
	for i := range s.entries {
		e := &s.entries[i]
		if e.role == roleAssistant {
			s.keepPaired(e, state)
		}
	}
}

// serverCall is what became of a call of the provider's own tool.
type serverCall struct {
	result *sent // the first, if there is any
	waits  bool  // there need be none yet
	seen   int   // the entry of the call, or of the last call that its program made
	reach  int   // how many entries on its result may stand
}

func (s *sender) keepPaired(e *entry, state map[string]serverCall) {
	kept := make([]sent, 0, len(e.blocks))
	for at := range e.blocks {
		b := &e.blocks[at]
		c, called := state[b.id]
		switch {
		case isServerCall(b.kind) && c.result == nil && !c.waits:
			s.LoseOf(b.from, "call "+strconv.Quote(jsonx.Clip(b.id))+" of the provider's own tool has no result")
			continue
		case isServerResult(b.kind) && (!called || c.result != b):
			s.LoseOf(b.from, "a result of the provider's own tool for "+strconv.Quote(jsonx.Clip(b.id))+" answers no call")
			continue
		}
		if c, called := state[b.caller]; b.caller != "" && (!called || c.result == nil && !c.waits) {
			if o, err := jsonx.ParseObject("", b.raw); err == nil {
				o.Drop("caller")
				b.raw = o.Value()
			}
			s.LoseOf(b.from, "the caller of "+strconv.Quote(jsonx.Clip(b.id)))
		}
		kept = append(kept, *b)
	}
	e.blocks = kept
}

// placeThinking puts thinking that a later reply began with in front of its entry, where calls
// demand it, and leaves thinking out that nothing follows, which the API rejects.
func (s *sender) placeThinking(e *entry) {
	for n := len(e.blocks); n > 0 && e.blocks[n-1].thinks(); n-- {
		s.LoseOf(e.blocks[n-1].from, "reasoning at the end of a reply")
		e.blocks = e.blocks[:n-1]
	}
	from := slices.IndexFunc(e.blocks, func(b sent) bool { return b.thinks() })
	if from <= 0 || e.blocks[from].from == e.blocks[0].from || !slices.ContainsFunc(e.blocks, func(b sent) bool {
		return b.kind == typeToolUse
	}) {
		return
	}
	to := from
	for to < len(e.blocks) && e.blocks[to].thinks() {
		to++
	}
	thinking := slices.Clone(e.blocks[from:to])
	e.blocks = slices.Insert(slices.Delete(e.blocks, from, to), 0, thinking...)
}

// join drops entries that became empty and makes neighbours of one role one.
func (s *sender) join() {
	joined := s.entries[:0]
	for _, e := range s.entries {
		if len(e.blocks) == 0 {
			continue
		}
		if last := len(joined) - 1; last >= 0 && joined[last].role == e.role {
			joined[last].blocks = append(joined[last].blocks, e.blocks...)
			joined[last].system = append(joined[last].system, e.system...)
			continue
		}
		joined = append(joined, e)
	}
	s.entries = joined
}

// trimEnd takes spaces from the end of a reply that the model is to continue.
func (s *sender) trimEnd() {
	e := &s.entries[len(s.entries)-1]
	b := &e.blocks[len(e.blocks)-1]
	if e.role != roleAssistant || b.kind != typeText {
		return
	}
	if text := strings.TrimRightFunc(b.text, unicode.IsSpace); text != b.text {
		if o, err := jsonx.ParseObject("", b.raw); err == nil {
			o.SetText("text", text)
			b.text, b.raw = text, o.Value()
		}
	}
}

// thinkingOff reports whether the request must not ask for thinking. In a loop of tools, the API
// demands a thinking block at the beginning of the turn, which is the first reply after what a user
// said. Source: Anthropic's guide to extended thinking.
func (s *sender) thinkingOff() bool {
	at := len(s.entries) - 1
	isResult := func(i int) bool { return s.entries[i].blocks[0].kind == typeToolResult }
	if !isResult(at) {
		return false
	}
	for at >= 2 && isResult(at) {
		at -= 2
	}
	first := s.entries[at+1].blocks
	if first[0].kind == typeCompaction && len(first) > 1 {
		first = first[1:]
	}
	return !first[0].thinks()
}

// mark writes the cache marks and tells whether the system text gets one. A border's mark goes
// on the last block that its message, or one before it, became; thinking takes none.
func (s *sender) mark(borders []int) (system bool) {
	for _, border := range borders {
		if border < 0 {
			system = true
		} else if b := s.lastBlock(border); b != nil {
			b.raw, b.marked = withMark(b.raw), true
		}
	}
	return system
}

// withMark adds a cache mark as the last field of a block: the provider's cache is to keep what
// it has read up to there. Source: Anthropic's guide to prompt caching.
func withMark(block jsontext.Value) jsontext.Value {
	return slices.Concat(block[:len(block)-1], []byte(`,"cache_control":{"type":"ephemeral"}}`))
}

// lastBlock returns the block that a border's mark goes on, nil where that has one already.
func (s *sender) lastBlock(border int) *sent {
	for i := len(s.entries) - 1; i >= 0; i-- {
		e := &s.entries[i]
		for _, blocks := range [][]sent{e.system, e.blocks} {
			for k := range slices.Backward(blocks) {
				switch b := &blocks[k]; {
				case b.at > border || b.thinks():
				case b.marked:
					return nil
				default:
					return b
				}
			}
		}
	}
	return nil
}
