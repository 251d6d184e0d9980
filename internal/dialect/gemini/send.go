package gemini

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// rules returns what the API requires of messages.
func rules(_, _ string) wire.Rules {
	return wire.Rules{CallIDs: callid.Strict, Signatures: wire.Base64Only, DropBlank: true, LeadingUser: true}
}

// Send makes {"systemInstruction": …, "contents": […]} of a context, with the fields that the
// API takes in a request and no other. Replies that follow one another become one content, as
// the API wants calls directly behind a user's turn or a function's; the responses to a reply's
// calls become one content behind it. Turns of the user stay apart, so that what was sent stays
// a prefix. System text before the conversation is the instruction; in the middle of it, where
// that would change what was sent before, it is said in the user's role. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := sender{generation: wire.Generation(in.Model), ids: callid.New(callid.Strict)}
	instruction := appendText(nil, in.System)
	started := false
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Role == session.System && wire.IsTalk(m) && !started {
			if err := s.Load(Name, m); err != nil {
				return wire.Sent{}, err
			}
			instruction = append(instruction, s.texts()...)
			continue
		}
		started = started || wire.IsTalk(m)
		if err := s.message(m); err != nil {
			return wire.Sent{}, err
		}
	}
	s.flush()
	if len(s.out) == 0 && len(in.Messages) > 0 {
		s.begin()
	}
	var system jsontext.Value
	if len(instruction) > 0 {
		system = jsonx.Encode("parts", instruction)
	}
	request := jsonx.Encode("systemInstruction", system, "contents", s.contents())
	return wire.Sent{Request: session.JSON(request), Losses: s.Losses(), ToolNames: s.ToolNames()}, nil
}

// exportOthers returns messages of other forms as contents, without the texts that Send makes up.
func exportOthers(msgs []session.Message) ([]jsontext.Value, error) {
	s := sender{export: true, ids: callid.New(callid.Strict)}
	for i := range msgs {
		if err := s.message(&msgs[i]); err != nil {
			return nil, err
		}
	}
	s.flush()
	return s.contents(), nil
}

// turn is a content that is being written.
type turn struct {
	role   string
	parts  []jsontext.Value
	called bool // holds a function's call
}

// sender writes contents one after the other. It remembers what one message leaves to a later
// one: calls that wait for their responses, and media that may follow only after the last one.
type sender struct {
	wire.Sender
	generation int  // of the model; 0: not known
	export     bool // to be kept, not sent

	out     []turn
	ids     *callid.Names
	results []sentResult     // responses to the calls of the last reply
	media   []jsontext.Value // what they hold and a response cannot
}

// sentResult is a response, with the place of its call.
type sentResult struct {
	at  int
	raw jsontext.Value
}

func (s *sender) own() bool { return s.M.Dialect == Name }

// contents returns the contents, one by one.
func (s *sender) contents() []jsontext.Value {
	out := make([]jsontext.Value, len(s.out))
	for i, t := range s.out {
		out[i] = jsontext.Value(jsonx.Encode("role", t.role, "parts", t.parts))
	}
	return out
}

func (s *sender) put(role string, parts []jsontext.Value) {
	s.out = append(s.out, turn{role: role, parts: parts})
}

// begin puts a turn of the user before a context that has none at its beginning.
func (s *sender) begin() { s.put(roleUser, appendText(nil, wire.LeadText)) }

// flush writes the responses that were gathered, in one content and in the order of their
// calls, by which the API knows those without an id; and behind it in another one the media
// that they could not hold. The API counts all parts beside responses as too many responses.
func (s *sender) flush() {
	if len(s.results) > 0 {
		slices.SortStableFunc(s.results, func(a, b sentResult) int { return cmp.Compare(a.at, b.at) })
		parts := make([]jsontext.Value, len(s.results))
		for i, r := range s.results {
			parts[i] = r.raw
		}
		s.put(roleUser, parts)
	}
	if len(s.media) > 0 {
		s.put(roleUser, s.media)
	}
	s.results, s.media = nil, nil
}

func (s *sender) message(of *session.Message) error {
	if err := s.Load(Name, of); err != nil {
		return err
	}
	m := &s.M
	role := s.Role()
	if role == "" {
		return nil
	}
	s.LoseFields(&m.X.Rest, "", "role")
	if m.Role != session.Tool {
		s.flush()
	}
	if m.Author != "" {
		s.Lose("the author's name " + strconv.Quote(jsonx.Clip(m.Author)))
	}
	switch role {
	case session.System:
		texts := s.texts()
		switch {
		case len(texts) == 0:
		case s.export:
			s.put(roleSystem, texts)
		default:
			s.Lose("system text in the middle of the conversation is sent in the user's role")
			s.put(roleUser, texts)
		}
	case session.User:
		s.user()
	case session.Assistant:
		s.model()
	case session.Tool:
		for parts := range s.Results() {
			s.result(parts)
		}
	}
	return nil
}

// texts writes the texts of a message in which nothing else is allowed.
func (s *sender) texts() []jsontext.Value {
	var parts []jsontext.Value
	for _, text := range s.Texts() {
		parts = appendText(parts, text)
	}
	return parts
}

func (s *sender) user() {
	var parts []jsontext.Value
	for i := range s.M.Parts {
		p := &s.M.Parts[i]
		switch p.Kind {
		case session.PartText, session.PartRefusal:
			parts = appendText(parts, p.Content())
			s.loseBeside(p)
		default:
			if raw := s.medium(p); raw != nil {
				parts = append(parts, raw)
			}
		}
	}
	if len(parts) > 0 {
		s.put(roleUser, parts)
		return
	}
	s.Lose("nothing is left of it that could be sent")
	if len(s.out) == 0 && !s.export {
		s.begin() // what follows must not take its place at the beginning
	}
}

// loseBeside names the fields beside the one that says what a part is, but for those that are
// sent.
func (s *sender) loseBeside(p *wire.Part, sent ...string) {
	if !jsonx.IsNull(p.X.ThoughtSignature) && !slices.Contains(sent, fieldSignature) {
		s.Lose("field " + fieldSignature)
	}
	for _, f := range p.X.Rest {
		known := kindField(f.Key) != "" || f.Key == fieldThought && jsonx.KindOf(f.Value) != 't' || f.Key == "cache_control"
		if !jsonx.IsNull(f.Value) && !known && !isOneOf(sent, f.Key) {
			s.Lose("field " + jsonx.Clip(f.Key))
		}
	}
}

// isOneOf reports whether a name, in either spelling, is among fields.
func isOneOf(fields []string, name string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return name == f || name == snake(f) })
}

// loseInner names the fields of the object that says what a part is.
func (s *sender) loseInner(p *wire.Part, sent ...string) {
	for _, f := range p.X.Rest {
		if inner, err := jsonx.ParseObject("", f.Value); err == nil && kindField(f.Key) != "" {
			s.LoseFields(&inner, "", sent...)
		}
	}
}

func appendText(parts []jsontext.Value, text string) []jsontext.Value {
	return wire.AppendTextElement(parts, `{"text":`, text)
}

// model writes a reply behind the one before it, or as a content of its own.
func (s *sender) model() {
	s.Open = nil
	t := turn{role: roleModel}
	merged := len(s.out) > 0 && s.out[len(s.out)-1].role == roleModel
	if merged {
		t = s.out[len(s.out)-1]
	}
	before := len(t.parts)
	spoken := ""
	for i := range s.M.Parts {
		p := &s.M.Parts[i]
		if p.Kind == session.PartAudio && !s.own() {
			if spoken += p.Content(); p.Content() == "" {
				s.LosePart(p)
			}
			continue
		}
		if raw := s.modelPart(p, &t); raw != nil {
			t.parts = append(t.parts, raw)
		}
	}
	if len(t.parts) == before { // what was said aloud stands in for what was not written
		t.parts = appendText(t.parts, spoken)
	}
	switch {
	case len(t.parts) == before:
		s.Lose("nothing is left of it that could be sent")
		return
	case merged:
		s.out[len(s.out)-1] = t
		return
	case len(s.out) == 0 && !s.export:
		s.begin()
		s.Lose("a reply comes first, so a short text in the user's role was put before it")
	}
	s.out = append(s.out, t)
}

// modelPart writes one part of a reply; nil if it is left out.
func (s *sender) modelPart(p *wire.Part, t *turn) jsontext.Value {
	switch {
	case p.Kind == session.PartText, p.Kind == session.PartRefusal, p.Kind == session.PartReasoning && s.own():
		s.loseBeside(p, fieldSignature)
		signature := s.signature(p)
		if p.Content() == "" && signature == nil {
			return nil
		}
		var thought jsontext.Value
		if p.Kind == session.PartReasoning {
			thought = jsontext.Value("true")
		}
		return jsonx.Encode(fieldText, p.Content(), fieldThought, thought, fieldSignature, signature)
	case isInline(&s.M, p):
		return s.inline(p)
	case p.Kind == session.PartToolCall:
		return s.call(p, t)
	case s.own() && (p.Kind == session.PartImage || p.Kind == session.PartAudio || p.Kind == session.PartFile):
		return s.medium(p)
	case p.X.Of == "" || p.X.Of == ofContent: // a field around a reply is no part of it
		s.LosePart(p)
	}
	return nil
}

// isInline reports whether the provider ran a call: its result stands in the same reply.
func isInline(m *wire.Message, p *wire.Part) bool {
	isCall, isResult := p.Kind == session.PartToolCall, p.Kind == session.PartToolResult
	return slices.ContainsFunc(m.Parts, func(q wire.Part) bool {
		return q.CallID == p.CallID && (isCall && q.Kind == session.PartToolResult ||
			isResult && q.Kind == session.PartToolCall)
	})
}

// inline writes what the provider ran, which no other provider's form can say.
func (s *sender) inline(p *wire.Part) jsontext.Value {
	if !s.own() || !isAccepted(&s.M, p.CallID) {
		if p.Kind == session.PartToolCall {
			s.Lose("the call of " + jsonx.Clip(p.ToolName) +
				" that a provider ran, with its result: not in the form that the API takes")
		}
		return nil
	}
	inner, _ := innerOf(p) // isAccepted has read it
	known := s.keepOnly(inner, "", inlineFields(p.X.Type))
	s.loseBeside(p, fieldSignature)
	return jsonx.Encode(p.X.Type, known, fieldSignature, s.signature(p))
}

// innerOf returns all that the wire said in the object of a call that the provider ran, or of
// its result.
func innerOf(p *wire.Part) (jsonx.Object, error) {
	o := encodePart(p, nil)
	o.Merge(&p.X.Rest)
	_, name := kindOf(&o)
	return jsonx.ParseObject(name, o.Get(name))
}

// keepOnly returns the fields of those names, in our spelling, and names the others as lost. path
// is where they stand.
func (s *sender) keepOnly(o jsonx.Object, path string, fields []string) jsontext.Value {
	var known jsonx.Object
	for _, name := range fields {
		if v := lookup(&o, name); !jsonx.IsNull(v) {
			known.Set(name, jsonx.Clean(v))
		}
	}
	for _, f := range o {
		if !jsonx.IsNull(f.Value) && !isOneOf(fields, f.Key) {
			s.Lose("field " + path + jsonx.Clip(f.Key))
		}
	}
	return known.Value()
}

// isAccepted reports whether a call that the provider ran, and its result, hold what the API
// takes. Either goes only with the other.
func isAccepted(m *wire.Message, callID string) bool {
	calls, results := 0, 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.CallID != callID || p.Kind != session.PartToolCall && p.Kind != session.PartToolResult {
			continue
		}
		o, err := innerOf(p)
		if err != nil {
			return false
		}
		isA := func(field string, kind byte) bool {
			v := o.Get(field)
			return jsonx.IsNull(v) || jsonx.KindOf(v) == kind
		}
		isOne := func(field string, words ...string) bool { return slices.Contains(words, o.Text(field)) }
		tool, _ := jsonx.Text(lookup(&o, "toolType"))
		ok := false
		switch p.X.Type {
		case fieldCode:
			ok = isOne("language", "PYTHON", "LANGUAGE_UNSPECIFIED") && jsonx.KindOf(o.Get("code")) == '"'
		case fieldCodeResult:
			ok = isOne("outcome", outcomeOK, "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED", "OUTCOME_UNSPECIFIED") &&
				isA("output", '"')
		case fieldToolCall:
			ok = tool != "" && isA("args", '{')
		case fieldToolResponse:
			ok = tool != "" && isA("response", '{')
		}
		if !ok || !jsonx.IsNull(o.Get("id")) && o.String("id") == "" {
			return false
		}
		if p.Kind == session.PartToolCall {
			calls++
		} else {
			results++
		}
	}
	return calls == results
}

func inlineFields(field string) []string {
	switch field {
	case fieldCode:
		return []string{"id", "language", "code"}
	case fieldCodeResult:
		return []string{"id", "outcome", "output"}
	case fieldToolCall:
		return []string{"id", "toolType", "args"}
	}
	return []string{"id", "toolType", "response"}
}

// call writes one call and opens it.
func (s *sender) call(p *wire.Part, t *turn) jsontext.Value {
	s.CountCall(p, "")
	c := wire.OpenCall{ID: p.CallID, Name: p.ToolName, SentID: s.idOf(p, s.ids.Call), At: s.Calls()}
	c.SentName = s.SendToolName(p.ToolName, legalName(p.ToolName))
	s.Open = append(s.Open, c)
	s.loseInner(p, "name", "id", "args")
	s.loseBeside(p, fieldSignature)
	arguments, ok := wire.ArgumentsObject(p.Arguments, "arguments")
	if !ok {
		s.Lose("the arguments of a call of " + jsonx.Clip(p.ToolName) + " are no object: sent as a text within one")
	}
	signature := s.signature(p)
	if signature == nil && !t.called && s.generation >= wire.Signed {
		signature = s.SkipSignature()
	}
	t.called = true
	return jsonx.Encode(fieldCall, jsonx.Encode("id", jsonx.Maybe(c.SentID), "name", c.SentName, "args", arguments),
		fieldSignature, signature)
}

// idOf returns the id that a call or a response is sent with, "" for one that was made here.
func (s *sender) idOf(p *wire.Part, foreign func(string) string) string {
	switch {
	case p.X.Made:
		return ""
	case s.own():
		return s.ids.Own(p.CallID)
	}
	return foreign(p.CallID)
}

// signature returns the thought signature of a part, nil if there is none. Such a signature also
// stands in calls that came by way of OpenAI's form, or of programs that keep it. One that is no
// base64 is none.
func (s *sender) signature(p *wire.Part) jsontext.Value {
	var raw jsontext.Value
	if s.own() {
		if raw = p.X.ThoughtSignature; jsonx.IsNull(raw) {
			raw = lookup(&p.X.Rest, fieldSignature)
		}
	} else if p.Kind == session.PartToolCall {
		raw = wire.CallSignature(&p.Part)
	}
	return s.Signature(raw)
}

// result writes a response with what belongs to it: further text within it, media within it or
// behind all responses.
func (s *sender) result(parts []wire.Part) {
	p := &parts[0]
	c := s.answered(p)
	var more []string
	var within, behind []jsontext.Value
	for i := 1; i < len(parts); i++ {
		q := &parts[i]
		switch {
		case q.Kind == session.PartText || q.Kind == session.PartRefusal:
			if text := q.Content(); text != "" {
				more = append(more, text)
			}
		case s.holds(q):
			within = append(within, s.within(q))
		default:
			if raw := s.medium(q); raw != nil {
				behind = append(behind, raw)
			}
		}
	}
	if len(behind) > 0 {
		s.media = append(appendText(s.media, "Attached to the result of "+c.SentName+":"), behind...)
	}
	s.loseInner(p, "id", "name", "response", "parts")
	s.loseBeside(p)
	response := jsonx.Encode("id", jsonx.Maybe(c.SentID), "name", c.SentName, "response", s.response(p, more), "parts",
		within)
	s.results = append(s.results, sentResult{c.At, jsonx.Encode(fieldResponse, response)})
}

// answered returns the call that a result answers, as it was sent: by id, else by name, else the
// first open one. A result without a call keeps its own.
func (s *sender) answered(p *wire.Part) wire.OpenCall {
	of := wire.Part{Part: session.Part{CallID: p.CallID, ToolName: p.ToolName}}
	if p.X.Made && !slices.ContainsFunc(s.Open, func(c wire.OpenCall) bool { return c.ID == p.CallID }) {
		of.CallID = ""
	}
	if c, ok := s.CloseCall(&of); ok {
		return c
	}
	return wire.OpenCall{SentName: legalName(p.ToolName), SentID: s.idOf(p, s.ids.Result), At: math.MaxInt}
}

// response returns what a function gave, as an object: that of the wire, or {"output": text}, as
// the API documents it, {"error": text} for a failure.
func (s *sender) response(p *wire.Part, more []string) jsontext.Value {
	text := p.Content()
	if s.own() && p.X.Key == "" && p.X.Shape == "" && len(more) == 0 && jsonx.IsObject([]byte(text)) {
		return jsonx.Clean([]byte(text))
	}
	key := cmp.Or(p.X.Key, "output")
	if p.X.Key == "" && p.Failed() {
		key = "error"
	}
	if len(more) > 0 {
		if text != "" {
			more = append([]string{text}, more...)
		}
		text = strings.Join(more, "\n")
	}
	o := jsonx.NewObject(key, text)
	return o.Value()
}

// holds reports whether a response can hold a medium: with models since the third generation,
// and those of a content that held it so, of a model that is not known.
func (s *sender) holds(p *wire.Part) bool {
	if p.Blob == nil || s.generation < wire.Signed && (s.generation > 0 || !p.X.Nested) {
		return false
	}
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"},
		p.X.MediaType)
}

// within writes a medium for the parts of a response.
func (s *sender) within(p *wire.Part) jsontext.Value {
	s.loseBeside(p)
	var name jsonx.Maybe
	if s.own() { // a response may refer to it by this name
		name = jsonx.Maybe(p.X.Name)
	}
	return jsonx.Encode(fieldInline, jsonx.Encode("mimeType", p.X.MediaType, "data", encode64(p.Blob.Data, ""),
		"displayName", name))
}

// medium writes an image, a sound or a file. It returns nil, with a loss, for what the API does
// not take.
func (s *sender) medium(p *wire.Part) jsontext.Value {
	if p.Kind != session.PartImage && p.Kind != session.PartAudio && p.Kind != session.PartFile {
		if p.X.Of == "" || p.X.Of == ofContent { // a field around a reply is no part of it
			s.LosePart(p)
		}
		return nil
	}
	uri := p.X.URL
	if s.own() && uri == "" {
		uri = p.X.FileID // an id of another provider's store names nothing here
	}
	reachable := wire.IsWeb(uri) || strings.HasPrefix(uri, "gs://")
	if p.Blob == nil && p.X.MediaType == "" && reachable {
		p.X.MediaType = typeOfName(uri, p.Kind)
	}
	var o jsonx.Object
	switch mediaType := p.X.MediaType; {
	case takes(mediaType) && p.Blob != nil:
		o = jsonx.NewObject(fieldInline, jsonx.Encode("mimeType", mediaType, "data", encode64(p.Blob.Data, "")))
	case takes(mediaType) && reachable:
		o = jsonx.NewObject(fieldFile, jsonx.Encode("mimeType", mediaType, "fileUri", uri))
	default:
		s.LoseMedium(p)
		return nil
	}
	s.loseBeside(p, fieldThought, fieldSignature, fieldVideoMetadata, fieldMediaResolution)
	if s.own() {
		s.beside(p, &o)
	}
	return o.Value()
}

// beside writes the fields beside a medium that the API takes.
func (s *sender) beside(p *wire.Part, o *jsonx.Object) {
	rest := &p.X.Rest
	if s.M.Role == session.Assistant {
		if jsonx.KindOf(rest.Get(fieldThought)) == 't' {
			o.Set(fieldThought, jsontext.Value("true"))
		}
		o.Add(fieldSignature, s.signature(p))
	}
	for _, known := range [...][]string{
		{fieldVideoMetadata, "startOffset", "endOffset", "fps"},
		{fieldMediaResolution, "level", "numTokens"},
	} {
		name := known[0]
		if inner, err := jsonx.ParseObject(name, lookup(rest, name)); err == nil {
			o.Set(name, s.keepOnly(inner, name+".", known[1:]))
		}
	}
}

// takes reports whether the API takes a type of media.
func takes(mediaType string) bool {
	mediaType, parameters, _ := strings.Cut(strings.ToLower(mediaType), ";")
	kind, rest, _ := strings.Cut(mediaType, "/")
	if callid.Legal(rest, ".+-", len(rest)) != rest || strings.ContainsFunc(parameters, func(r rune) bool {
		return r < ' ' || r > '~'
	}) {
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

// typeOfName guesses what an address leads to, since the API asks for it.
func typeOfName(uri string, kind session.PartKind) string {
	name, _, _ := strings.Cut(uri, "?")
	types := map[string]string{
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
		".svg": "image/svg+xml",
		".pdf": "application/pdf", ".mp3": "audio/mp3", ".wav": "audio/wav", ".mp4": "video/mp4", ".txt": "text/plain",
	}
	if mediaType := types[strings.ToLower(path.Ext(name))]; mediaType != "" {
		return mediaType
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

// legalName returns a function's name in the API's alphabet: a letter or an underscore, then
// those, digits, dots, colons and dashes, 64 at most.
func legalName(name string) string {
	legal := callid.Legal(name, "_.:-", len(name))
	if legal == "" {
		return "_"
	}
	if c := legal[0] | 0x20; legal[0] != '_' && (c < 'a' || c > 'z') {
		legal = "_" + legal
	}
	if len(legal) > wire.MaxName {
		return callid.TagName(legal, name, wire.MaxName)
	}
	return legal
}
