package gemini

import (
	"cmp"
	"encoding/json"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// standIn is said in the user's role before a context that would begin with a reply, which the
// API rejects.
const standIn = "(The beginning of the conversation is not part of this context.)"

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
			open, err := wire.OpenFor(Name, m)
			if err != nil {
				return wire.Sent{}, err
			}
			instruction = append(instruction, s.texts(&open)...)
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
	var request, system wire.Object
	if len(instruction) > 0 {
		system.Set("parts", wire.Array(instruction))
		request.Set("systemInstruction", system.JSON())
	}
	request.Set("contents", wire.Array(s.contents()))
	return wire.Sent{Request: session.JSON(request.JSON()), Losses: s.Losses()}, nil
}

// exportOthers returns messages of other forms as contents, with nothing in them that nobody said.
func exportOthers(msgs []session.Message) ([]json.RawMessage, error) {
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
	wire.Lossy
	generation int  // of the model; 0: not known
	export     bool // to be kept, not sent

	out     []turn
	ids     *callid.Names
	open    []sentCall
	calls   int              // seen so far
	results []sentResult     // responses to the calls of the last reply
	media   []jsontext.Value // what they hold and a response cannot
	skipped bool             // a loss says that calls are sent without a signature
}

// sentCall is a call of the last reply and the name that it is sent with.
type sentCall = wire.OpenCall[callPlace]

// callPlace is what the response to a call needs: the id that the wire has, "" for none, and the
// place among all calls.
type callPlace struct {
	id string
	at int
}

// sentResult is a response, with the place of its call.
type sentResult struct {
	at  int
	raw jsontext.Value
}

// contents returns the contents, one by one.
func (s *sender) contents() []json.RawMessage {
	out := make([]json.RawMessage, len(s.out))
	for i, t := range s.out {
		var o wire.Object
		o.SetText("role", t.role)
		o.Set("parts", wire.Array(t.parts))
		out[i] = o.JSON()
	}
	return out
}

func (s *sender) put(role string, parts []jsontext.Value) {
	s.out = append(s.out, turn{role: role, parts: parts})
}

// begin puts a turn of the user before a context that has none at its beginning.
func (s *sender) begin() { s.put(roleUser, appendText(nil, standIn)) }

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
	if !wire.IsTalk(of) {
		s.Lose(of, "a "+string(of.Kind)+" is no message")
		return nil
	}
	m, err := wire.OpenFor(Name, of)
	if err != nil {
		return err
	}
	s.LoseFields(of, &m.X.Rest, "", "role")
	if m.Role != session.Tool {
		s.flush()
	}
	if m.Author != "" {
		s.Lose(of, "the author's name "+strconv.Quote(wire.Clip(m.Author)))
	}
	switch wire.RoleOf(of) {
	case session.System:
		texts := s.texts(&m)
		switch {
		case len(texts) == 0:
		case s.export:
			s.put(roleSystem, texts)
		default:
			s.Lose(of, "system text in the middle of the conversation is sent in the user's role")
			s.put(roleUser, texts)
		}
	case session.User:
		s.user(&m)
	case session.Assistant:
		return s.model(&m)
	case session.Tool:
		for parts := range wire.Groups(m.Parts) {
			s.result(&m, parts)
		}
	default:
		s.Lose(of, "a message without a role")
	}
	return nil
}

// texts returns the text parts of a message in which nothing else is allowed.
func (s *sender) texts(m *wire.Message) []jsontext.Value {
	var parts []jsontext.Value
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartText && p.Kind != session.PartRefusal {
			s.losePart(m, p)
			continue
		}
		parts = appendText(parts, p.Content())
	}
	return parts
}

func (s *sender) user(m *wire.Message) {
	var parts []jsontext.Value
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case session.PartText, session.PartRefusal:
			parts = appendText(parts, p.Content())
			s.loseBeside(m, p)
		default:
			if raw := s.medium(m, p); raw != nil {
				parts = append(parts, raw)
			}
		}
	}
	if len(parts) > 0 {
		s.put(roleUser, parts)
		return
	}
	s.Lose(&m.Message, "nothing is left of it that could be sent")
	if len(s.out) == 0 && !s.export {
		s.begin() // what follows must not take its place at the beginning
	}
}

// loseBeside names the fields beside the one that says what a part is, but for those that are
// sent.
func (s *sender) loseBeside(m *wire.Message, p *wire.Part, sent ...string) {
	if !wire.IsNull(p.X.ThoughtSignature) && !slices.Contains(sent, fieldSignature) {
		s.Lose(&m.Message, "field "+fieldSignature)
	}
	for _, f := range p.X.Rest.Members() {
		known := kindField(f.Key) != "" || f.Key == fieldThought && wire.KindOf(f.Value) != 't' || f.Key == "cache_control"
		if !wire.IsNull(f.Value) && !known && !slices.ContainsFunc(sent, func(name string) bool { return f.Key == name || f.Key == snake(name) }) {
			s.Lose(&m.Message, "field "+wire.Clip(f.Key))
		}
	}
}

// loseInner names the fields of the object that says what a part is.
func (s *sender) loseInner(m *wire.Message, p *wire.Part, sent ...string) {
	for _, f := range p.X.Rest.Members() {
		if inner, err := wire.ParseObject("", f.Value); err == nil && kindField(f.Key) != "" {
			for _, f := range inner.Members() {
				if !wire.IsNull(f.Value) && !slices.Contains(sent, f.Key) {
					s.Lose(&m.Message, "field "+wire.Clip(f.Key))
				}
			}
		}
	}
}

func (s *sender) losePart(m *wire.Message, p *wire.Part) {
	if p.X.Of == "" || p.X.Of == ofContent { // what stands around a reply is no part of it
		s.LosePart(&m.Message, &p.Part)
	}
}

func appendText(parts []jsontext.Value, text string) []jsontext.Value {
	return wire.AppendTextElement(parts, `{"text":`, text)
}

// model writes a reply behind the one before it, or as a content of its own.
func (s *sender) model(m *wire.Message) error {
	s.open = nil
	t := turn{role: roleModel}
	merged := len(s.out) > 0 && s.out[len(s.out)-1].role == roleModel
	if merged {
		t = s.out[len(s.out)-1]
	}
	before := len(t.parts)
	spoken := ""
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartAudio && m.Dialect != Name {
			if spoken += p.Content(); p.Content() == "" {
				s.losePart(m, p)
			}
			continue
		}
		raw, err := s.modelPart(m, p, &t)
		if err != nil {
			return err
		}
		if raw != nil {
			t.parts = append(t.parts, raw)
		}
	}
	if len(t.parts) == before { // what was said aloud stands in for what was not written
		t.parts = appendText(t.parts, spoken)
	}
	switch {
	case len(t.parts) == before:
		s.Lose(&m.Message, "nothing is left of it that could be sent")
		return nil
	case merged:
		s.out[len(s.out)-1] = t
		return nil
	case len(s.out) == 0 && !s.export:
		s.begin()
		s.Lose(&m.Message, "a reply comes first, so a short text in the user's role was put before it")
	}
	s.out = append(s.out, t)
	return nil
}

// modelPart writes one part of a reply; nil if it is left out.
func (s *sender) modelPart(m *wire.Message, p *wire.Part, t *turn) (jsontext.Value, error) {
	own := m.Dialect == Name
	switch {
	case p.Kind == session.PartText, p.Kind == session.PartRefusal, p.Kind == session.PartReasoning && own:
		s.loseBeside(m, p, fieldSignature)
		signature := s.signature(m, p)
		if p.Content() == "" && signature == nil {
			return nil, nil
		}
		var o wire.Object
		o.SetText(fieldText, p.Content())
		if p.Kind == session.PartReasoning {
			o.Set(fieldThought, jsontext.Value("true"))
		}
		o.SetValue(fieldSignature, signature)
		return o.Value(), nil
	case isInline(m, p):
		return s.inline(m, p)
	case p.Kind == session.PartToolCall:
		return s.call(m, p, t), nil
	case own && (p.Kind == session.PartImage || p.Kind == session.PartAudio || p.Kind == session.PartFile):
		return s.medium(m, p), nil
	}
	s.losePart(m, p)
	return nil, nil
}

// isInline reports whether the provider ran a call: its result stands in the same reply.
func isInline(m *wire.Message, p *wire.Part) bool {
	other := session.PartToolResult
	switch p.Kind {
	case session.PartToolResult:
		other = session.PartToolCall
	case session.PartToolCall:
	default:
		return false
	}
	return slices.ContainsFunc(m.Parts, func(q wire.Part) bool { return q.Kind == other && q.CallID == p.CallID })
}

// inline writes what the provider ran, which no other provider's form can say.
func (s *sender) inline(m *wire.Message, p *wire.Part) (jsontext.Value, error) {
	if m.Dialect != Name || !isAccepted(m, p.CallID) {
		if p.Kind == session.PartToolCall {
			s.Lose(&m.Message, "the call of "+wire.Clip(p.ToolName)+" that a provider ran, with its result: not in the form that the API takes")
		}
		return nil, nil
	}
	inner, err := innerOf(p)
	if err != nil {
		return nil, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	known := keepOnly(inner, inlineFields(p.X.Type), func(field string) { s.Lose(&m.Message, "field "+field) })
	var o wire.Object
	o.Set(p.X.Type, known.JSON())
	s.loseBeside(m, p, fieldSignature)
	o.SetValue(fieldSignature, s.signature(m, p))
	return o.Value(), nil
}

// innerOf returns all that the wire said in the object of a call that the provider ran, or of
// its result.
func innerOf(p *wire.Part) (wire.Object, error) {
	o, err := encodePart(p, nil)
	if err != nil {
		return o, err
	}
	o.Merge(&p.X.Rest)
	_, name := kindOf(&o)
	return wire.ParseObject(name, o.Get(name))
}

// keepOnly returns the fields of those names, in our spelling; lost is told of the others.
func keepOnly(o wire.Object, fields []string, lost func(field string)) wire.Object {
	var known wire.Object
	for _, name := range fields {
		if v := lookup(&o, name); !wire.IsNull(v) {
			known.Set(name, wire.Clean(v))
		}
	}
	for _, f := range o.Members() {
		if !wire.IsNull(f.Value) && !slices.ContainsFunc(fields, func(name string) bool { return f.Key == name || f.Key == snake(name) }) {
			lost(wire.Clip(f.Key))
		}
	}
	return known
}

// isAccepted reports whether a call that the provider ran, and its result, hold what the API
// takes. Either goes only with the other.
func isAccepted(m *wire.Message, callID string) bool {
	code, output := 0, 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.CallID != callID || p.Kind != session.PartToolCall && p.Kind != session.PartToolResult {
			continue
		}
		o, err := innerOf(p)
		if err != nil {
			return false
		}
		isA := func(field string, kind byte) bool { v := o.Get(field); return wire.IsNull(v) || wire.KindOf(v) == kind }
		isOne := func(field string, words ...string) bool { return slices.Contains(words, o.Text(field)) }
		id, _ := wire.Text(o.Get("id"))
		tool, _ := wire.Text(lookup(&o, "toolType"))
		ok := wire.IsNull(o.Get("id")) || id != ""
		switch p.X.Type {
		case fieldCode:
			ok = ok && isOne("language", "PYTHON", "LANGUAGE_UNSPECIFIED") && wire.KindOf(o.Get("code")) == '"'
			code++
		case fieldCodeResult:
			ok = ok && isOne("outcome", outcomeOK, "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED", "OUTCOME_UNSPECIFIED") && isA("output", '"')
			output++
		case fieldToolCall:
			ok = ok && tool != "" && isA("args", '{')
			code++
		case fieldToolResponse:
			ok = ok && tool != "" && isA("response", '{')
			output++
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return code == output
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
func (s *sender) call(m *wire.Message, p *wire.Part, t *turn) jsontext.Value {
	s.calls++
	c := sentCall{ID: p.CallID, Name: p.ToolName, Sent: legalName(p.ToolName), More: callPlace{s.idOf(m, p, s.ids.Call), s.calls}}
	s.LoseName(&m.Message, "tool's name", p.ToolName, c.Sent)
	s.open = append(s.open, c)
	s.loseInner(m, p, "name", "id", "args")
	s.loseBeside(m, p, fieldSignature)
	var inner, o wire.Object
	inner.SetTexts("id", c.More.id)
	inner.SetText("name", c.Sent)
	inner.Set("args", s.arguments(m, p))
	o.Set(fieldCall, inner.JSON())
	signature := s.signature(m, p)
	if signature == nil && !t.called && s.generation >= wire.Signed {
		signature = wire.Quote(wire.NoSignature)
		if !s.skipped {
			s.Lose(&m.Message, "calls without a thought signature are sent with the one that skips its check")
		}
		s.skipped = true
	}
	t.called = true
	o.SetValue(fieldSignature, signature)
	return o.Value()
}

// idOf returns the id that a call or a response is sent with, "" for one that was made here.
func (s *sender) idOf(m *wire.Message, p *wire.Part, foreign func(string) string) string {
	switch {
	case p.X.Made:
		return ""
	case m.Dialect == Name:
		return s.ids.Own(p.CallID)
	}
	return foreign(p.CallID)
}

// arguments returns a call's arguments as an object, which the API wants.
func (s *sender) arguments(m *wire.Message, p *wire.Part) jsontext.Value {
	switch {
	case strings.TrimSpace(p.Arguments) == "":
		return jsontext.Value("{}")
	case wire.IsObject(p.Arguments):
		return wire.Clean([]byte(p.Arguments))
	}
	s.Lose(&m.Message, "the arguments of a call of "+wire.Clip(p.ToolName)+" are no object: sent as a text within one")
	var o wire.Object
	o.SetText("arguments", p.Arguments)
	return o.Value()
}

// signature returns the thought signature of a part, nil if there is none. Such a signature also
// stands in calls that came by way of OpenAI's form, or of programs that keep it. One that is no
// base64 is none.
func (s *sender) signature(m *wire.Message, p *wire.Part) jsontext.Value {
	var raw jsontext.Value
	if m.Dialect == Name {
		if raw = p.X.ThoughtSignature; wire.IsNull(raw) {
			raw = lookup(&p.X.Rest, fieldSignature)
		}
	} else if p.Kind == session.PartToolCall {
		raw = wire.CallSignature(&p.Part)
	}
	if wire.IsNull(raw) || string(raw) == `""` {
		return nil
	}
	text, exact := wire.Text(raw)
	if !exact || !wire.IsSignature(text) {
		s.Lose(&m.Message, "a thought signature that is no base64")
		return nil
	}
	return raw
}

// result writes a response with what belongs to it: further text within it, media within it or
// behind all responses.
func (s *sender) result(m *wire.Message, parts []wire.Part) {
	p := &parts[0]
	if p.Kind != session.PartToolResult {
		for i := range parts {
			s.losePart(m, &parts[i])
		}
		return
	}
	c := s.answered(m, p)
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
			within = append(within, s.within(m, q))
		default:
			if raw := s.medium(m, q); raw != nil {
				behind = append(behind, raw)
			}
		}
	}
	if len(behind) > 0 {
		s.media = append(appendText(s.media, "Attached to the result of "+c.Sent+":"), behind...)
	}
	var inner, o wire.Object
	inner.SetTexts("id", c.More.id)
	inner.SetText("name", c.Sent)
	inner.Set("response", responseOf(m, p, more))
	if len(within) > 0 {
		inner.Set("parts", wire.Array(within))
	}
	s.loseInner(m, p, "id", "name", "response", "parts")
	s.loseBeside(m, p)
	o.Set(fieldResponse, inner.JSON())
	s.results = append(s.results, sentResult{c.More.at, o.Value()})
}

// answered returns the call that a result answers, as it was sent: by id, else by name, else the
// first open one. A result without a call keeps its own.
func (s *sender) answered(m *wire.Message, p *wire.Part) sentCall {
	of := p.Part
	if p.X.Made && !slices.ContainsFunc(s.open, func(c sentCall) bool { return c.ID == p.CallID }) {
		of.CallID = ""
	}
	if c, ok := wire.CloseCall(&s.open, &of); ok {
		return c
	}
	return sentCall{Sent: legalName(p.ToolName), More: callPlace{s.idOf(m, p, s.ids.Result), math.MaxInt}}
}

// responseOf returns what a function gave, as an object: that of the wire, or {"output": text}, as
// the API documents it, {"error": text} for a failure.
func responseOf(m *wire.Message, p *wire.Part, more []string) jsontext.Value {
	text := p.Content()
	if m.Dialect == Name && p.X.Key == "" && p.X.Shape == "" && len(more) == 0 && wire.IsObject(text) {
		return wire.Clean([]byte(text))
	}
	key := p.X.Key
	if key == "" {
		key = "output"
		if p.IsError != nil && *p.IsError {
			key = "error"
		}
	}
	if len(more) > 0 {
		if text != "" {
			more = append([]string{text}, more...)
		}
		text = strings.Join(more, "\n")
	}
	var o wire.Object
	o.SetText(key, text)
	return o.Value()
}

// holds reports whether a response can hold a medium: with models since the third generation,
// and those of a content that held it so, of a model that is not known.
func (s *sender) holds(p *wire.Part) bool {
	if p.Blob == nil || s.generation < wire.Signed && (s.generation > 0 || !p.X.Nested) {
		return false
	}
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}, p.X.MediaType)
}

// within writes a medium for the parts of a response.
func (s *sender) within(m *wire.Message, p *wire.Part) jsontext.Value {
	s.loseBeside(m, p)
	var inner, o wire.Object
	inner.SetTexts("mimeType", p.X.MediaType, "data", encode64(p.Blob.Data, ""))
	if m.Dialect == Name { // a response may refer to it by this name
		inner.SetTexts("displayName", p.X.Name)
	}
	o.Set(fieldInline, inner.JSON())
	return o.Value()
}

// medium writes an image, a sound or a file. It returns nil, with a loss, for what the API does
// not take.
func (s *sender) medium(m *wire.Message, p *wire.Part) jsontext.Value {
	if p.Kind != session.PartImage && p.Kind != session.PartAudio && p.Kind != session.PartFile {
		s.losePart(m, p)
		return nil
	}
	var inner, o wire.Object
	field := fieldInline
	uri := p.X.URL
	if m.Dialect == Name && uri == "" {
		uri = p.X.FileID // an id of another provider's store names nothing here
	}
	mediaType := p.X.MediaType
	switch {
	case p.Blob != nil && takes(mediaType):
		inner.SetTexts("mimeType", mediaType, "data", encode64(p.Blob.Data, ""))
	case p.Blob == nil && (wire.IsWeb(uri) || strings.HasPrefix(uri, "gs://")):
		if mediaType == "" {
			mediaType = typeOfName(uri, p.Kind)
		}
		if takes(mediaType) {
			field = fieldFile
			inner.SetTexts("mimeType", mediaType, "fileUri", uri)
		}
	}
	if inner.Len() == 0 {
		s.Lose(&m.Message, string(p.Kind)+" "+mediaType+": its bytes or its type are not what the API takes")
		return nil
	}
	o.Set(field, inner.JSON())
	s.loseBeside(m, p, fieldThought, fieldSignature, fieldVideoMetadata, fieldMediaResolution)
	if m.Dialect == Name {
		s.beside(m, p, &o)
	}
	return o.Value()
}

// beside writes the fields beside a medium that the API takes.
func (s *sender) beside(m *wire.Message, p *wire.Part, o *wire.Object) {
	rest := &p.X.Rest
	if m.Role == session.Assistant {
		if wire.KindOf(rest.Get(fieldThought)) == 't' {
			o.Set(fieldThought, jsontext.Value("true"))
		}
		o.SetValue(fieldSignature, s.signature(m, p))
	}
	for _, known := range [...][]string{{fieldVideoMetadata, "startOffset", "endOffset", "fps"}, {fieldMediaResolution, "level", "numTokens"}} {
		name := known[0]
		if inner, err := wire.ParseObject(name, lookup(rest, name)); err == nil {
			inner = keepOnly(inner, known[1:], func(field string) { s.Lose(&m.Message, "field "+name+"."+field) })
			o.Set(name, inner.JSON())
		}
	}
}

// takes reports whether the API takes a type of media.
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

// maxName is the length of a function's name that the API takes.
const maxName = 64

// legalName returns a function's name in the API's alphabet: a letter or an underscore, then
// those, digits, dots, colons and dashes, 64 at most.
func legalName(name string) string {
	legal := legalIn(name, maxName, "_.:-")
	if legal == "" {
		return "_"
	}
	if c := legal[0] | 0x20; legal[0] != '_' && (c < 'a' || c > 'z') {
		legal = "_" + legal[:min(len(legal), maxName-1)]
	}
	return legal
}

// legalIn writes an underscore for a character that is neither letter, digit nor among more.
func legalIn(s string, most int, more string) string {
	legal := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (callid.Valid(string(r)) && r != '_' && r != '-' || strings.ContainsRune(more, r)) {
			return r
		}
		return '_'
	}, s)
	return legal[:min(len(legal), most)]
}
