// Package gemini is the wire form of Google's Gemini API, generateContent: contents of parts.
//
// One content is one session.Message and each part of it one session.Part, in order, with two
// exceptions. Parts within a function's response follow it as parts of their own. A content
// that mixes responses with what a person says becomes a tool's message and a user's message,
// which share extra.wire.entry and are put together again on export. Code that the provider
// ran and its output are a call and a result in one message of the model's.
//
// The wire often has no ids. Those that are made here (see madeID) are marked and neither
// exported nor sent. Field names are read in both spellings that protobuf's JSON allows
// (functionCall and function_call) and written as the API documents them.
package gemini

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "gemini"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{
		Name: Name, Decode: Decode, Export: Export, Send: Send, Rules: rules,
	}
}

// Roles of the wire.
const (
	roleUser     = "user"
	roleModel    = "model"
	roleFunction = "function" // older clients give it to responses
	roleTool     = "tool"     // some frameworks do
	roleSystem   = "system"   // of a systemInstruction
)

// Fields of which a part has one: what it is.
const (
	fieldText         = "text"
	fieldInline       = "inlineData"
	fieldFile         = "fileData"
	fieldCall         = "functionCall"
	fieldResponse     = "functionResponse"
	fieldCode         = "executableCode"
	fieldCodeResult   = "codeExecutionResult"
	fieldToolCall     = "toolCall"     // of a tool that the provider runs
	fieldToolResponse = "toolResponse" // and what that gave
)

// Fields that stand beside them.
const (
	fieldThought         = "thought"
	fieldSignature       = "thoughtSignature"
	fieldVideoMetadata   = "videoMetadata"
	fieldMediaResolution = "mediaResolution"
)

// snake returns the other spelling of a field: inline_data.
func snake(field string) string {
	b := make([]byte, 0, len(field)+2)
	for i := range len(field) {
		c := field[i]
		if c >= 'A' && c <= 'Z' {
			b = append(b, '_', c-'A'+'a')
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

// kindField returns the field by which a part is known that a name stands for, in either
// spelling; "" if it is none.
func kindField(name string) string {
	for _, field := range [...]string{
		fieldText, fieldInline, fieldFile, fieldCall, fieldResponse, fieldCode,
		fieldCodeResult, fieldToolCall, fieldToolResponse,
	} {
		if name == field || name == snake(field) {
			return field
		}
	}
	return ""
}

// Decode reads contents of a request, or of a reply: the content alone, the candidate around
// it, or the whole response of one candidate. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []jsontext.Value) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, func(path string, raw jsontext.Value) error {
		err := d.response(path, raw)
		d.entry++
		return err
	})
}

// decoder reads contents one after the other. It remembers the calls of the last reply, which
// responses without an id are matched with.
type decoder struct {
	wire.Reader
	entry int // which one is read
	open  []wire.OpenCall
	made  map[string]int // ids made since the last reply, by name
}

// around is a content and the objects around it: none in a request.
type around struct {
	content   jsonx.Object
	path      string // of the content
	none      bool   // there is no content
	candidate *jsonx.Object
	response  *jsonx.Object
}

// isReply reports whether it is a content of a reply.
func (a *around) isReply() bool { return a.candidate != nil || a.response != nil }

// response decodes {candidates: [{…}], …}, a candidate, or a content.
func (d *decoder) response(path string, raw jsontext.Value) error {
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return err
	}
	switch {
	case o.Has("parts") || o.Has("role"):
		return d.content(&around{content: o, path: path})
	case isCandidate(&o):
		return d.candidate(&around{candidate: &o, path: path})
	case !o.Has("candidates") && !hasAny(&o, "promptFeedback", "usageMetadata", "modelVersion"):
		return jsonx.Errorf(session.Invalid, jsonx.Join(path, "parts"), "is missing: a content is {role, parts}")
	}
	candidates := o.Get("candidates")
	if jsonx.IsNull(candidates) || jsonx.KindOf(candidates) == '[' && !jsonx.HasElements(candidates) {
		return d.content(&around{path: path, none: true, response: &o})
	}
	at := jsonx.Join(path, "candidates")
	elements, err := jsonx.ParseArray(at, candidates)
	if err != nil {
		return err
	}
	if len(elements) > 1 {
		return jsonx.Errorf(session.Invalid, at, "has %d elements: give the content of the one that was chosen",
			len(elements))
	}
	candidate, err := jsonx.ParseObject(jsonx.Index(at, 0), elements[0])
	if err != nil {
		return err
	}
	o.Drop("candidates")
	return d.candidate(&around{candidate: &candidate, response: &o, path: jsonx.Index(at, 0)})
}

// isCandidate tells a candidate from a content, which has neither of these fields, and from
// the replies of other providers.
func isCandidate(o *jsonx.Object) bool {
	if o.Has("candidates") {
		return false
	}
	text, _ := jsonx.Text(lookup(o, "finishReason"))
	return jsonx.KindOf(o.Get("content")) == '{' || text != "" && strings.ToUpper(text) == text
}

func hasAny(o *jsonx.Object, fields ...string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return o.Has(f) || o.Has(snake(f)) })
}

// lookup returns a field in either spelling; a null only where there is nothing else.
func lookup(o *jsonx.Object, field string) jsontext.Value {
	value := o.Get(field)
	if other := o.Get(snake(field)); jsonx.IsNull(value) && other != nil {
		value = other
	}
	return value
}

// candidate decodes {content, finishReason, …}.
func (d *decoder) candidate(a *around) error {
	content := a.candidate.Get("content")
	if jsonx.IsNull(content) {
		a.none = true
		return d.content(a)
	}
	a.path = jsonx.Join(a.path, "content")
	var err error
	if a.content, err = jsonx.ParseObject(a.path, content); err != nil {
		return err
	}
	a.candidate.Drop("content")
	return d.content(a)
}

// finishOf translates a finishReason. A call that the provider found malformed was not made.
func finishOf(reason string) session.Finish {
	switch reason {
	case "STOP":
		return session.FinishStop
	case "MAX_TOKENS":
		return session.FinishLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return session.FinishRefusal
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
		"MALFORMED_RESPONSE", "NO_IMAGE", "IMAGE_OTHER", "OTHER":
		return session.FinishError
	}
	return ""
}

// content decodes {role, parts}: one message, or two where results and other parts are mixed.
func (d *decoder) content(a *around) error {
	m, err := d.role(a)
	if err != nil {
		return err
	}
	if a.response != nil {
		m.Model = jsonx.ExactText(lookup(a.response, "modelVersion")) // it stays where it is
		if a.candidate == nil && lookup(a.response, "promptFeedback") != nil {
			m.Finish = session.FinishRefusal
		}
	}
	if a.candidate != nil {
		reason, _ := jsonx.Text(lookup(a.candidate, "finishReason"))
		m.Finish = finishOf(reason)
	}
	parts, err := d.parts(a, &m)
	if err != nil {
		return err
	}
	if m.Finish == session.FinishStop && len(d.open) > 0 && m.Role == session.Assistant {
		m.Finish = session.FinishToolCalls
	}
	group := d.divide(m, parts)
	encoded := encodeContent(group)
	first := &group[0]
	first.X.NoContent = a.none
	large, err := first.Keep(a.path, a.content, encoded)
	for i := range large {
		large[i].X.Of = ofContent
	}
	first.Parts = append(first.Parts, large...)
	if err == nil {
		err = a.keepLarge(first)
	}
	if err != nil {
		return err
	}
	first.X.Candidate, first.X.Response = a.candidate, a.response
	d.Messages = append(d.Messages, group...)
	return wire.Holds(a.path, max(len(first.Parts), len(group[len(group)-1].Parts)))
}

// keepLarge makes the large fields around a content parts of their own.
func (a *around) keepLarge(m *wire.Message) error {
	for of, o := range []*jsonx.Object{a.candidate, a.response} {
		if o == nil {
			continue
		}
		large, err := wire.TakeLarge(o, a.path, []string{ofCandidate, ofResponse}[of])
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, large...)
	}
	return nil
}

func (d *decoder) role(a *around) (wire.Message, error) {
	m := wire.NewMessage(Name, session.User, session.Person)
	at := jsonx.Join(a.path, "role")
	role := roleUser
	if a.isReply() {
		role = roleModel
	}
	if jsonx.IsNull(a.content.Get("role")) {
		m.X.Role = wire.ShapeAbsent
	} else {
		var err error
		if role, err = d.StringOf(a.path, "role", a.content.Get("role")); err != nil {
			return m, err
		}
	}
	switch role {
	case roleUser:
	case roleModel:
		m.Role, m.Origin = session.Assistant, session.Model
		d.open, d.made = nil, nil
	case roleSystem:
		m.Role, m.Origin = session.System, session.Program
	case roleFunction, roleTool:
		m.X.Role = role
	default:
		return m, jsonx.Errorf(session.Invalid, at, "is %q: it must be user or model", jsonx.Clip(role))
	}
	if a.isReply() && m.Role != session.Assistant {
		return m, jsonx.Errorf(session.Invalid, at, "is %q in a reply: it must be model", jsonx.Clip(role))
	}
	return m, nil
}

// placed is a part and its place in the content; -1 for one within the response before it.
type placed struct {
	wire.Part
	at int
}

func (p *placed) isResult() bool { return p.Kind == session.PartToolResult }

// divide makes a content with responses a tool's message. Where it holds more than these and
// the media that belong to them, the rest is a user's message that stands behind it.
func (d *decoder) divide(m wire.Message, parts []placed) []wire.Message {
	mixed := false
	for i := range parts {
		p := &parts[i]
		mixed = mixed || !p.isResult() && p.at >= 0 && (i == 0 || !p.Kind.HasBytes() || p.Kind == session.PartData)
	}
	if m.Role == session.Assistant || !slices.ContainsFunc(parts, func(p placed) bool { return p.isResult() }) {
		for i := range parts {
			m.Parts = append(m.Parts, parts[i].Part)
		}
		return []wire.Message{m}
	}
	rest := wire.NewMessage(Name, session.User, session.Person)
	m.Role, m.Origin = session.Tool, session.ByTool
	number := strconv.AppendInt(nil, int64(d.entry), 10)
	here, there := &wire.Entry{Entry: number}, &wire.Entry{Entry: number}
	id, inResult := "", false
	for i := range parts {
		p := &parts[i]
		if p.isResult() {
			id = p.CallID
		}
		if p.at >= 0 {
			inResult = p.isResult() || !mixed
		}
		to, of := &rest, there
		if inResult {
			to, of, p.CallID = &m, here, id
		}
		to.Parts = append(to.Parts, p.Part)
		if p.at >= 0 {
			of.At = append(of.At, p.at)
		}
	}
	if !mixed {
		return []wire.Message{m}
	}
	m.X.Wire, rest.X.Wire = here, there
	return []wire.Message{m, rest}
}

// parts decodes the parts of a content.
func (d *decoder) parts(a *around, m *wire.Message) ([]placed, error) {
	path := jsonx.Join(a.path, "parts")
	list := a.content.Get("parts")
	if jsonx.IsNull(list) {
		if !jsonx.IsNull(a.content.Get("content")) { // another provider's, whose words would be lost
			return nil, jsonx.Errorf(session.Invalid, jsonx.Join(a.path, "content"),
				"stands where parts should: a content is {role, parts}")
		}
		m.X.Shape, _, _ = d.Content(a.path, "parts", list)
		return nil, nil
	}
	elements, err := wire.Elements(path, list)
	if err != nil {
		return nil, err
	}
	readers := make([]partReader, len(elements))
	for i, e := range elements {
		r := &readers[i]
		r.decoder, r.path, r.raw = d, jsonx.Index(path, i), e
		if r.Object, err = jsonx.ParseObject(r.path, e); err != nil {
			return nil, err
		}
		r.field, r.name = kindOf(&r.Object)
	}
	if m.Role == session.Assistant {
		pair(readers)
	}
	var out []placed
	for i := range readers {
		parts, err := readers[i].read(m.Role)
		if err != nil {
			return nil, err
		}
		for j, p := range parts {
			at := i
			if j > 0 {
				at = -1
			}
			out = append(out, placed{p, at})
		}
	}
	return out, nil
}

// pair finds the parts of a reply that are a call which the provider ran, and its result
// behind it: by id, or where one has none, the nearest of its kind. It gives each of the two
// the id that they share, made where the wire has none. Either alone is no call: it could never be
// answered, or answers nothing.
func pair(parts []partReader) {
	var open []int
	made := 0
	for i := range parts {
		r := &parts[i]
		isResult := r.field == fieldCodeResult || r.field == fieldToolResponse
		if !isResult && r.field != fieldCode && r.field != fieldToolCall {
			continue
		}
		inner, err := jsonx.ParseObject("", r.Get(r.name))
		if err != nil {
			continue // read reports it
		}
		id := inner.Text("id")
		if r.id = id; !isResult {
			open = append(open, i)
			continue
		}
		for j, at := range slices.Backward(open) {
			c := &parts[at]
			if (c.field == fieldCode) != (r.field == fieldCodeResult) || c.id != id && c.id != "" && id != "" {
				continue
			}
			if id == "" {
				id = c.id
			}
			if id == "" {
				made++
				id = "made_inline_" + strconv.Itoa(made)
			}
			c.pair, r.pair = id, id
			open = slices.Delete(open, j, j+1)
			break
		}
	}
}

// partReader decodes one part of a content.
type partReader struct {
	*decoder
	jsonx.Object
	path        string
	raw         jsontext.Value
	field, name string // what the part is, as the API and as the wire spells it
	id          string // of a call that the provider ran, or of its result
	pair        string // the id that the two share, "" for none
}

// IsPart reports whether an object has a field by which a part of this form is known.
func IsPart(o *jsonx.Object) bool {
	return slices.ContainsFunc(*o, func(f jsonx.Member) bool {
		return kindField(f.Key) != ""
	}) || hasAny(o, fieldThought, fieldSignature)
}

// kindOf returns the field that says what a part is, and its name as it stands there. An empty
// text beside another one says nothing; two that say something are none that can be told.
func kindOf(o *jsonx.Object) (field, name string) {
	emptyText := false
	for _, m := range *o {
		f := kindField(m.Key)
		switch {
		case f == "" || m.Odd() || jsonx.IsNull(m.Value) || f != fieldText && jsonx.KindOf(m.Value) != '{':
		case f == fieldText && string(m.Value) == `""`:
			emptyText = true
		case field == "":
			field, name = f, m.Key
		case f != field:
			return "", ""
		case m.Key == f: // in both spellings: ours counts
			name = f
		}
	}
	if field == "" && emptyText {
		return fieldText, fieldText
	}
	return field, name
}

// read decodes a part, and the media of a response behind it.
func (r *partReader) read(role session.Role) ([]wire.Part, error) {
	p := wire.Part{X: wire.Extra{ThoughtSignature: r.Get(fieldSignature)}}
	if r.name != r.field {
		p.X.Field = r.name
	}
	var nested []wire.Part
	var err error
	switch {
	case r.field == fieldText, r.field == "" && r.onlySignature():
		err = r.text(&p)
	case r.field == fieldInline, r.field == fieldFile:
		err = r.medium(&p)
	case r.field == fieldCall && role == session.Assistant:
		err = r.call(&p)
	case r.field == fieldCall:
		err = jsonx.Errorf(session.Invalid, jsonx.Join(r.path, r.name),
			"stands in a content of another role than model: only the model calls functions")
	case r.field == fieldResponse && role == session.User:
		nested, err = r.response(&p)
	case r.pair != "":
		err = r.inline(&p)
	default:
		return []wire.Part{r.unknown()}, nil
	}
	if err != nil {
		return nil, err
	}
	err = p.Keep(r.path, r.raw, &r.Object, encodePart(&p, nested))
	return append([]wire.Part{p}, nested...), err
}

// unknown keeps a part that no kind holds: undocumented fields, or a known one where
// it is not expected, such as code without its output.
func (r *partReader) unknown() wire.Part {
	if r.field == "" {
		for _, f := range r.Object {
			if !f.Odd() && !jsonx.IsNull(f.Value) && !slices.Contains([]string{
				fieldThought, fieldSignature,
				snake(fieldSignature),
			}, f.Key) {
				r.field = f.Key
				break
			}
		}
		r.WarnUnknown(r.path, r.field)
	}
	return wire.Data(r.raw, wire.Extra{Type: r.field})
}

// onlySignature reports whether a part is nothing but a signature: the text beside it was empty,
// and some clients leave that out.
func (r *partReader) onlySignature() bool {
	return jsonx.KindOf(lookup(&r.Object, fieldSignature)) == '"' &&
		!slices.ContainsFunc(r.Object, func(f jsonx.Member) bool {
			return !jsonx.IsNull(f.Value) && f.Key != fieldSignature && f.Key != snake(fieldSignature) && f.Key != fieldThought
		})
}

func (r *partReader) text(p *wire.Part) (err error) {
	p.Kind = session.PartText
	if jsonx.KindOf(r.Get(fieldThought)) == 't' {
		p.Kind = session.PartReasoning
	}
	if r.field == "" {
		p.X.Shape = wire.ShapeAbsent
		return nil
	}
	p.Text, err = r.StringOf(r.path, fieldText, r.Get(fieldText))
	return err
}

// inner reads the object that says what the part is.
func (r *partReader) inner() (o jsonx.Object, path string, err error) {
	path = jsonx.Join(r.path, r.name)
	o, err = jsonx.ParseObject(path, r.Get(r.name))
	return o, path, err
}

// files is where the provider keeps what was uploaded to it: an address only for the key that
// uploaded it, and so an id rather than a URL.
const files = "https://generativelanguage.googleapis.com/"

// medium decodes {inlineData: {mimeType, data}} or {fileData: {mimeType, fileUri}}.
func (r *partReader) medium(p *wire.Part) error {
	o, _, err := r.inner()
	if err != nil {
		return err
	}
	x := &p.X
	x.MediaType = jsonx.ExactText(lookup(&o, "mimeType"))
	x.Name = jsonx.ExactText(lookup(&o, "displayName"))
	switch {
	case strings.HasPrefix(x.MediaType, "image/"):
		p.Kind = session.PartImage
	case strings.HasPrefix(x.MediaType, "audio/"):
		p.Kind = session.PartAudio
	default: // a film is a file
		p.Kind = session.PartFile
	}
	if r.field == fieldFile {
		if uri := jsonx.ExactText(lookup(&o, "fileUri")); strings.HasPrefix(uri, files) {
			x.FileID = uri
		} else {
			x.URL = uri
		}
		x.Field = r.name // a part without bytes may be either
		return nil
	}
	data, encoding, ok := decode64(o.Text("data"))
	if ok {
		blobType := x.MediaType
		if blobType == "" {
			blobType = "application/octet-stream"
		}
		x.Encoding = encoding
		wire.Attach(&p.Part, wire.Blob(blobType, data))
	}
	return nil
}

// decode64 decodes base64 of the standard alphabet, or of the one for URLs, which the API takes
// and some clients write, where encoding gives the same text again.
func decode64(text string) (data []byte, encoding string, ok bool) {
	if data, ok = wire.Base64(text); ok {
		return data, "", true
	}
	data, err := base64.URLEncoding.Strict().DecodeString(text)
	ok = err == nil && len(data) > 0 && base64.URLEncoding.EncodedLen(len(data)) == len(text)
	return data, "url", ok
}

// call decodes {functionCall: {id, name, args}}. Arguments are the bytes of args as they came.
func (r *partReader) call(p *wire.Part) error {
	o, path, err := r.inner()
	if err != nil {
		return err
	}
	p.Kind = session.PartToolCall
	if err := r.nameAndID(&o, path, p); err != nil {
		return err
	}
	if p.CallID == "" {
		p.CallID, p.X.Made = r.makeID(p.ToolName), true
	}
	r.open = append(r.open, wire.OpenCall{ID: p.CallID, Name: p.ToolName})
	return r.arguments(&o, path, p)
}

// nameAndID reads the name and the id of a call or a response. An empty id is none.
func (r *partReader) nameAndID(o *jsonx.Object, path string, p *wire.Part) (err error) {
	if p.ToolName, err = r.StringOf(path, "name", o.Get("name")); err == nil && !jsonx.IsNull(o.Get("id")) {
		p.CallID, err = r.StringOf(path, "id", o.Get("id"))
	}
	return err
}

// arguments reads args: an object, whose bytes are kept; any other value is kept too.
func (r *partReader) arguments(o *jsonx.Object, path string, p *wire.Part) (err error) {
	switch raw := o.Get("args"); jsonx.KindOf(raw) {
	case 'n':
	case '"':
		p.X.Shape = wire.ShapeString
		p.Arguments, err = r.StringOf(path, "args", raw)
	default:
		p.Arguments = string(raw)
	}
	return err
}

// makeID makes the id of a call that came without one, or of a response to one: the n-th call
// of a name in a reply. That the same ids come again in later replies does no harm, since a
// result answers the nearest call; and the response to a call of an earlier append finds it by
// its name, if the number is another.
func (d *decoder) makeID(name string) string {
	if d.made == nil {
		d.made = map[string]int{}
	}
	d.made[name]++
	const most = 24
	id := callid.Legal(name, "_-", most) // one that all providers accept
	if id != name {
		sum := sha1.Sum([]byte(name))
		id = hex.EncodeToString(sum[:])[:most]
	}
	return session.MadeCallID + id + "_" + strconv.Itoa(d.made[name])
}

// response decodes {functionResponse: {id, name, response, parts}}, parts as parts of their own.
func (r *partReader) response(p *wire.Part) (nested []wire.Part, err error) {
	o, path, err := r.inner()
	if err != nil {
		return nil, err
	}
	p.Kind = session.PartToolResult
	if err := r.nameAndID(&o, path, p); err != nil {
		return nil, err
	}
	if p.CallID == "" { // it answers the first open call of its name, perhaps one of an earlier append
		p.X.Made = true
		if c, ok := r.closeCall(func(c wire.OpenCall) bool { return c.Name == p.ToolName }); ok {
			p.CallID = c.ID
		} else {
			p.CallID = r.makeID(p.ToolName)
		}
	} else {
		r.closeCall(func(c wire.OpenCall) bool { return c.ID == p.CallID })
	}
	if err := r.output(&o, path, p); err != nil {
		return nil, err
	}
	if list := o.Get("parts"); jsonx.HasElements(list) {
		nested, err = r.nested(jsonx.Join(path, "parts"), jsontext.Value(list))
	}
	return nested, err
}

func (d *decoder) closeCall(is func(wire.OpenCall) bool) (c wire.OpenCall, ok bool) {
	i := slices.IndexFunc(d.open, is)
	if i < 0 {
		return c, false
	}
	c = d.open[i]
	d.open = slices.Delete(d.open, i, i+1)
	return c, true
}

// output reads the response. The readable text of {"output": "text"}, and of any other object
// of one text, is that text; of all others their JSON. The API says that "error" holds what
// went wrong.
func (r *partReader) output(o *jsonx.Object, path string, p *wire.Part) (err error) {
	raw := o.Get("response")
	switch jsonx.KindOf(raw) {
	case 'n':
		return nil
	case '"':
		p.X.Shape = wire.ShapeString
		p.Text, err = r.StringOf(path, "response", raw)
		return err
	case '{':
		object, err := jsonx.ParseObject(jsonx.Join(path, "response"), raw)
		if err != nil {
			return err
		}
		if failure := object.Get("error"); !jsonx.IsNull(failure) && !object.Has("output") {
			p.IsError = new(true)
		}
		if fields := object; len(fields) == 1 && fields[0].Key != "" && !fields[0].Odd() && len(fields[0].Key) <= maxKey {
			if text, exact := jsonx.Text(fields[0].Value); exact {
				p.Text, p.X.Key = text, fields[0].Key
				return nil
			}
		}
	}
	p.Text = string(raw)
	return nil
}

// maxKey is the longest name of a field, in bytes, that says what a text is.
const maxKey = 200

// nested decodes the parts of a response: media that the tool gave.
func (r *partReader) nested(path string, list jsontext.Value) ([]wire.Part, error) {
	elements, err := jsonx.ParseArray(path, list)
	if err != nil {
		return nil, err
	}
	if len(elements) >= session.MaxParts {
		return nil, jsonx.Errorf(session.Invalid, path, "has %d elements: a message holds at most %d parts, split it",
			len(elements), session.MaxParts)
	}
	parts := make([]wire.Part, len(elements))
	for i, e := range elements {
		n := partReader{decoder: r.decoder, path: jsonx.Index(path, i), raw: e}
		if n.Object, err = jsonx.ParseObject(n.path, e); err != nil {
			return nil, err
		}
		n.field, n.name = kindOf(&n.Object)
		if n.field != fieldInline && n.field != fieldFile {
			r.Warn(n.path, "is no medium: kept for export, not sent")
			parts[i] = wire.Data(e, wire.Extra{Nested: true, Type: n.field})
			continue
		}
		media, err := n.read(noRole)
		if err != nil {
			return nil, err
		}
		parts[i] = media[0]
		parts[i].X.Nested = true
	}
	return parts, nil
}

// noRole is the role of a part within a response.
const noRole session.Role = ""

// codeTool is the name of the tool by which the provider runs code.
const codeTool = "code_execution"

// outcomeOK is the outcome of code that ran to its end.
const outcomeOK = "OUTCOME_OK"

// inline decodes a part that belongs to a call which the provider ran.
func (r *partReader) inline(p *wire.Part) error {
	o, path, err := r.inner()
	if err != nil {
		return err
	}
	p.Kind, p.ToolName, p.CallID = session.PartToolCall, codeTool, r.pair
	p.X.Type = r.field
	p.X.Made = o.Text("id") != r.pair
	switch r.field {
	case fieldCode:
		if !p.X.Made {
			o.Drop("id")
		}
		p.Arguments = string(o.Value()) // {language, code}
	case fieldToolCall:
		p.ToolName = jsonx.ExactText(lookup(&o, "toolType"))
		err = r.arguments(&o, path, p)
	case fieldCodeResult:
		p.Kind = session.PartToolResult
		p.IsError = new(o.String("outcome") != outcomeOK)
		if jsonx.KindOf(o.Get("output")) == '"' {
			p.Text, err = r.StringOf(path, "output", o.Get("output"))
		}
	case fieldToolResponse:
		p.Kind = session.PartToolResult
		p.ToolName = jsonx.ExactText(lookup(&o, "toolType"))
		if raw := o.Get("response"); !jsonx.IsNull(raw) {
			p.Text = string(raw)
		}
	}
	return err
}
