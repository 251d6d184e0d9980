// Package native is sessiond's own form of a message: {role, content} for a plain text,
// {role, parts} for anything else, and the form in which the API gives messages back. It is
// strict: a field that it does not know is an error, so that a typo never passes silently.
package native

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "native"

// Form is the dialect. No provider takes it, so it has no Send.
func Form() wire.Form { return wire.Form{Name: Name, Decode: Decode, Export: Export} }

// bytesOf is what a part with bytes has beside its columns.
type bytesOf struct {
	Data      []byte `json:"data,omitempty"`
	MediaType string `json:"media_type,omitempty"`
}

// written is a part as the API gives it, with its bytes.
type written struct {
	session.Part
	Text string `json:"text,omitempty"` // also where it lies in a blob
	bytesOf
}

// Export returns messages as the API gives them, with the bytes of their parts, so that they
// can be appended again. Codes: Internal.
func Export(msgs []session.Message) ([]jsontext.Value, error) {
	out := make([]jsontext.Value, 0, len(msgs))
	for i := range msgs {
		raw, err := export(&msgs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

func export(m *session.Message) (jsontext.Value, error) {
	raw, err := session.MarshalPlain(m)
	if err != nil {
		return nil, err
	}
	o, err := jsonx.ParseObject("message", raw)
	if err != nil {
		return nil, err
	}
	parts := make([]written, len(m.Parts))
	for i := range m.Parts {
		p := &m.Parts[i]
		if err := wire.Loaded(p); err != nil {
			return nil, err
		}
		parts[i] = written{Part: *p, Text: p.Content()}
		if p.Blob != nil && p.Kind.HasBytes() {
			parts[i].bytesOf = bytesOf{Data: p.Blob.Data, MediaType: wire.MediaOf(p).MediaType}
		}
	}
	if raw, err = session.MarshalPlain(parts); err != nil {
		return nil, err
	}
	o.Set("parts", raw)
	return o.Value(), nil
}

// The fields that the form knows, for an error; and those that the server makes, which are
// accepted, so that the API's messages can be appended again, and ignored.
const (
	messageFields = "role, content, parts, kind, origin, finish, author, external_id, created_at, display, in_context, " +
		"metadata, model, provider, call_id, tool_name, is_error"
	partFields = "kind, text, tool_name, call_id, arguments, is_error, duration_ms, extra, data, media_type"
)

func madeFields() []string {
	return []string{"id", "seq", "parent", "tokens", "path_tokens", "day", "dialect", "session_id"}
}

// Decode reads messages. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []jsontext.Value) (wire.Decoded, error) {
	var d wire.Reader
	return d.Read(raw, func(path string, raw jsontext.Value) error {
		f, err := open(&d, path, raw, messageFields, madeFields()...)
		if err == nil {
			m := f.message()
			d.Messages = append(d.Messages, m)
			err = f.err
		}
		return err
	})
}

// fields reads the fields of one object and keeps the first error.
type fields struct {
	*wire.Reader
	jsonx.Object
	path string
	err  error
}

// open parses an object and rejects unknown fields, all at once.
func open(r *wire.Reader, path string, raw jsontext.Value, known string, made ...string) (f fields, err error) {
	f.Reader, f.path = r, path
	if f.Object, err = jsonx.ParseObject(path, raw); err != nil {
		return f, err
	}
	names := append(strings.Split(known, ", "), made...)
	var unknown []string
	for _, m := range f.Object {
		if !slices.Contains(names, m.Key) {
			unknown = append(unknown, fmt.Sprintf("%q", jsonx.Clip(m.Key)))
		}
	}
	if len(unknown) == 0 {
		return f, nil
	}
	const named = 5
	list := strings.Join(unknown[:min(len(unknown), named)], ", ")
	return f, jsonx.Errorf(session.Invalid, path,
		"has fields that the native form does not know: %s; it knows %s. For a provider's form name the dialect", list, known)
}

func (f *fields) fail(code session.Code, field, format string, args ...any) {
	if f.err == nil {
		f.err = jsonx.Errorf(code, jsonx.Join(f.path, field), format, args...)
	}
}

// has reports whether a field is there, and not null.
func (f *fields) has(field string) bool { return !jsonx.IsNull(f.Get(field)) }

// resultField is the first field that only a result has, "" if there is none.
func (f *fields) resultField() string {
	for _, field := range []string{"call_id", "tool_name", "is_error"} {
		if f.has(field) {
			return field
		}
	}
	return ""
}

func (f *fields) message() wire.Message {
	m := wire.NewMessage(Name, "", "")
	m.Kind = session.Kind(f.word("kind", "message", "message", "bash", "custom_message", "custom", "branch_summary",
		"marker", "unknown"))
	roles := []string{"system", "user", "assistant", "tool"}
	talk := wire.IsTalk(&m.Message)
	if !talk {
		roles = append(roles, "")
	}
	m.Role = session.Role(f.word("role", "", roles...))
	m.Origin = session.Origin(f.word("origin", string(m.Role.DefaultOrigin()), "person", "model", "tool", "program"))
	m.Finish = session.Finish(f.word("finish", "", "", "stop", "tool_calls", "length", "error", "aborted", "refusal",
		"paused"))
	m.Author = f.text("author")
	m.ExternalID = f.text("external_id")
	m.Model = f.text("model")
	m.Provider = f.text("provider")
	m.InContext, m.Display = talk, true
	if in := f.flag("in_context"); in != nil {
		m.InContext = *in
	}
	if display := f.flag("display"); display != nil {
		m.Display = *display
	}
	f.time(f.Get("created_at"), &m.CreatedAt)
	m.Metadata = f.object("metadata")
	if !f.has("parts") {
		f.content(&m)
	} else if f.err == nil {
		f.err = f.parts(&m)
	}
	return m
}

// parts reads parts. Content may stand beside them, as the API gives both, if it says the same, or the text that a part
// leaves out.
func (f *fields) parts(m *wire.Message) error {
	path := jsonx.Join(f.path, "parts")
	elements, err := wire.Elements(path, f.Get("parts"))
	if err != nil {
		return err
	}
	if name := f.resultField(); name != "" {
		return jsonx.Errorf(session.Invalid, jsonx.Join(f.path, name), "stands beside parts: put it into the part")
	}
	m.Message.Parts = make([]session.Part, len(elements))
	for i, e := range elements {
		of, err := open(f.Reader, jsonx.Index(path, i), e, partFields, "tokens", "blob")
		if err != nil {
			return err
		}
		p := of.part(m.Role)
		if of.err != nil {
			return of.err
		}
		m.Message.Parts[i] = p
		m.Parts = append(m.Parts, wire.Part{Part: p})
	}
	if !f.has("content") {
		return nil
	}
	text, err := f.StringOf(f.path, "content", f.Get("content"))
	if at := m.OnlyText(); err == nil && at >= 0 && m.Message.Parts[at].Text == "" { // as lists of messages are read
		m.Message.Parts[at].Text, m.Parts[at].Text = text, text
	}
	if err == nil && text != m.Text() {
		err = jsonx.Errorf(session.Invalid, jsonx.Join(f.path, "content"),
			"is not the text of the parts: give one of the two")
	}
	return err
}

// content reads {role, content:"text"}: one part. A tool's says with call_id what it answers.
func (f *fields) content(m *wire.Message) {
	p := session.TextPart("")
	if m.Role == session.Tool {
		p.Kind, p.IsError = session.PartToolResult, f.flag("is_error")
		p.CallID = f.text("call_id")
		p.ToolName = f.text("tool_name")
		if p.CallID == "" {
			f.fail(session.Invalid, "call_id", "is missing: a tool's message says which call it answers")
		}
	} else if name := f.resultField(); name != "" {
		f.fail(session.Invalid, name, "belongs to a message of role tool, not %s", m.Role)
	}
	content := f.Get("content")
	if m.Kind != session.KindMessage && jsonx.IsNull(content) {
		return // a marker may say nothing
	}
	if jsonx.KindOf(content) != '"' {
		f.fail(session.Invalid, "content", "must be a string, not %s; other content goes into parts", jsonx.Describe(content))
		return
	}
	p.Text = f.long("content", "text", &p)
	m.Parts = append(m.Parts, wire.Part{Part: p})
}

func (f *fields) part(role session.Role) (p session.Part) {
	p.Extra = f.object("extra")
	p.Kind = session.PartKind(f.word("kind", "", "text", "reasoning", "tool_call", "tool_result", "image", "audio", "file",
		"refusal", "data"))
	p.Text = f.long("text", "text", &p)
	p.Arguments = f.long("arguments", "arguments", &p)
	p.ToolName = f.text("tool_name")
	p.CallID = f.text("call_id")
	p.IsError = f.flag("is_error")
	if f.has("duration_ms") {
		ms, err := strconv.ParseInt(string(f.Get("duration_ms")), 10, 64)
		if p.DurationMS = &ms; err != nil {
			f.fail(session.Invalid, "duration_ms", "must be a number of milliseconds, not %s",
				jsonx.Clip(string(f.Get("duration_ms"))))
		}
	}
	f.bytes(&p)
	f.check(&p, role)
	return p
}

// string reads a field that must be a string. exact is false if UTF-8 cannot hold it.
func (f *fields) string(field string) (text string, exact bool) {
	if !f.has(field) {
		return "", true
	}
	if raw := f.Get(field); jsonx.KindOf(raw) != '"' {
		f.fail(session.Invalid, field, "must be a string, not %s", jsonx.Describe(raw))
		return "", true
	}
	return jsonx.Text(f.Get(field))
}

// text returns a short text, "" where there is none.
func (f *fields) text(field string) string {
	text, exact := f.string(field)
	if !exact {
		f.fail(session.Invalid, field, "holds a NUL or half a surrogate pair, which no text can")
	}
	return text
}

// flag returns a field that is true or false, nil where there is none.
func (f *fields) flag(field string) *bool {
	switch kind := jsonx.KindOf(f.Get(field)); kind {
	case 'n':
	case 't', 'f':
		return new(kind == 't')
	default:
		f.fail(session.Invalid, field, "must be true or false, not %s", jsonx.Describe(f.Get(field)))
	}
	return nil
}

// long returns the text of a part. One that UTF-8 cannot hold is kept raw in extra.raw.
func (f *fields) long(field, column string, p *session.Part) string {
	text, exact := f.string(field)
	if exact || f.err != nil {
		return text
	}
	f.setExtra(p, func(extra *jsonx.Object) error {
		var raw jsonx.Object
		if given := extra.Get("raw"); given != nil {
			var err error
			if raw, err = jsonx.ParseObject(jsonx.Join(f.path, "extra.raw"), given); err != nil {
				return err
			}
		}
		raw.Set(column, f.Get(field))
		extra.Set("raw", raw.Value())
		return nil
	})
	f.Warn(jsonx.Join(f.path, field),
		"holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw in extra")
	return text
}

func (f *fields) setExtra(p *session.Part, set func(*jsonx.Object) error) {
	var extra jsonx.Object
	var err error
	if len(p.Extra) > 0 {
		extra, err = jsonx.ParseObject(jsonx.Join(f.path, "extra"), p.Extra)
	}
	if err == nil {
		err = set(&extra)
	}
	if err != nil && f.err == nil {
		f.err = err
	}
	p.Extra = session.JSON(extra.Value())
}

// word returns one of a few words.
func (f *fields) word(field, otherwise string, words ...string) string {
	list := strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", ")
	if !f.has(field) {
		if otherwise == "" && !slices.Contains(words, "") {
			f.fail(session.Invalid, field, "is missing: it is one of %s", list)
		}
		return otherwise
	}
	word, _ := f.string(field)
	if !slices.Contains(words, word) {
		f.fail(session.Invalid, field, "is %q: it must be one of %s", jsonx.Clip(word), list)
	}
	return word
}

// time reads created_at.
func (f *fields) time(raw jsontext.Value, into *session.Time) {
	if jsonx.IsNull(raw) {
		return
	}
	if err := jsonv2.Unmarshal(raw, into); err != nil {
		var of *session.Error
		if errors.As(err, &of) {
			f.fail(of.Code, "created_at", "is wrong: %s", of.Message)
		}
		f.fail(session.Invalid, "created_at", "cannot be %s", jsonx.Clip(string(raw)))
	}
}

// object returns a JSON object of the caller's own.
func (f *fields) object(field string) session.JSON {
	switch raw := f.Get(field); {
	case jsonx.IsNull(raw):
		return nil
	case jsonx.KindOf(raw) != '{':
		f.fail(session.Invalid, field, "must be an object, not %s", jsonx.Describe(raw))
	case jsonx.Depth(raw) > wire.MaxExtraDepth:
		f.fail(session.TooLarge, field, "is nested deeper than %d levels", wire.MaxExtraDepth)
	}
	return session.JSON(f.Get(field))
}

// bytes reads data and media_type. The type stands in extra too, since one blob may lie in
// parts that call it differently.
func (f *fields) bytes(p *session.Part) {
	text, mediaType := f.text("data"), f.text("media_type")
	switch {
	case text == "" && mediaType != "":
		f.fail(session.Invalid, "media_type", "stands without data")
		return
	case text == "":
		if f.has("blob") && p.Text == "" {
			f.fail(session.Invalid, "blob", "names bytes that are not here: give them as data")
		}
		return
	case !p.Kind.HasBytes():
		f.fail(session.Invalid, "data", "stands in a part of kind %s: only image, audio, file and data have bytes", p.Kind)
		return
	case !strings.Contains(mediaType, "/"):
		f.fail(session.Invalid, "media_type", "must say what the bytes are, like image/png")
		return
	}
	data, ok := wire.Base64(text)
	if !ok {
		f.fail(session.Invalid, "data", "is no base64 (standard alphabet, padded, no line breaks)")
		return
	}
	f.setExtra(p, func(extra *jsonx.Object) error {
		extra.SetText("media_type", mediaType)
		return nil
	})
	wire.Attach(p, wire.Blob(mediaType, data))
}

// check rejects parts that say nothing or stand where they cannot.
func (f *fields) check(p *session.Part, role session.Role) {
	switch p.Kind {
	case session.PartToolCall:
		if role != session.Assistant {
			f.fail(session.Invalid, "kind", "is tool_call in a message of role %s: only an assistant calls tools", role)
		}
		if p.ToolName == "" {
			f.fail(session.Invalid, "tool_name", "is missing: a call names its tool")
		}
	case session.PartToolResult:
		if role != session.Tool && role != session.Assistant {
			f.fail(session.Invalid, "kind", "is tool_result in a message of role %s: results stand in a message of role tool",
				role)
		}
		if p.CallID == "" && p.ToolName == "" {
			f.fail(session.Invalid, "call_id", "is missing: a result says which call it answers")
		}
	case session.PartImage, session.PartAudio, session.PartFile:
		if p.Blob == nil && p.Text == "" && len(p.Extra) == 0 {
			f.fail(session.Invalid, "data", "is missing: give the bytes in base64, or extra.url")
		}
	}
	if p.Arguments != "" && p.Kind != session.PartToolCall {
		f.fail(session.Invalid, "arguments", "stand in a part of kind %s: only a tool_call has them", p.Kind)
	}
	if p.Kind.HasBytes() && len(p.Text) > session.BlobThreshold {
		f.fail(session.Invalid, "text", "is over %d bytes in a part of kind %s: put it into a part of kind text",
			session.BlobThreshold, p.Kind)
	}
}
