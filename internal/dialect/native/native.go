// Package native is sessiond's own form of a message: {role, content} for a plain text,
// {role, parts} for anything else, and the form in which the API gives messages back. It is
// strict: a field that it does not know is an error, so that a typo never passes silently.
package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
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
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(msgs))
	for i := range msgs {
		raw, err := export(&msgs[i])
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

func export(m *session.Message) (json.RawMessage, error) {
	raw, err := session.MarshalPlain(m)
	if err != nil {
		return nil, err
	}
	o, err := wire.ParseObject("message", raw)
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
	return o.JSON(), nil
}

// message is a message as a caller writes it.
type message struct {
	Role       *wire.String   `json:"role"`
	Content    jsontext.Value `json:"content"`
	Parts      jsontext.Value `json:"parts"`
	Kind       *wire.String   `json:"kind"`
	Origin     *wire.String   `json:"origin"`
	Finish     *wire.String   `json:"finish"`
	Author     *wire.String   `json:"author"`
	ExternalID *wire.String   `json:"external_id"`
	CreatedAt  jsontext.Value `json:"created_at"`
	Display    *bool          `json:"display"`
	InContext  *bool          `json:"in_context"`
	Metadata   jsontext.Value `json:"metadata"`
	Model      *wire.String   `json:"model"`
	Provider   *wire.String   `json:"provider"`
	CallID     *wire.String   `json:"call_id"`
	ToolName   *wire.String   `json:"tool_name"`
	IsError    *bool          `json:"is_error"`

	Rest jsontext.Value `json:",embed"`
}

// part is a part as a caller writes it.
type part struct {
	Kind       *wire.String   `json:"kind"`
	Text       *wire.String   `json:"text"`
	ToolName   *wire.String   `json:"tool_name"`
	CallID     *wire.String   `json:"call_id"`
	Arguments  *wire.String   `json:"arguments"`
	IsError    *bool          `json:"is_error"`
	DurationMS *int64         `json:"duration_ms"`
	Extra      jsontext.Value `json:"extra"`
	Data       *wire.String   `json:"data"`
	MediaType  *wire.String   `json:"media_type"`

	Blob *string        `json:"blob"` // the server makes it
	Rest jsontext.Value `json:",embed"`
}

// resultField is the first field that only a result has, "" if there is none.
func (in *message) resultField() string {
	switch {
	case in.CallID != nil:
		return "call_id"
	case in.ToolName != nil:
		return "tool_name"
	case in.IsError != nil:
		return "is_error"
	}
	return ""
}

// The fields that the form knows, for an error; and those that the server makes, which are
// accepted, so that the API's messages can be appended again, and ignored.
const (
	messageFields = "role, content, parts, kind, origin, finish, author, external_id, created_at, display, in_context, metadata, model, provider, call_id, tool_name, is_error"
	partFields    = "kind, text, tool_name, call_id, arguments, is_error, duration_ms, extra, data, media_type"
)

func madeFields() []string {
	return []string{"id", "seq", "parent", "tokens", "path_tokens", "day", "dialect", "session_id"}
}

// Decode reads messages. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d wire.Reader
	return d.Read(raw, func(path string, raw jsontext.Value) error {
		f := fields{Reader: &d, path: path}
		m, err := f.message(raw)
		d.Messages = append(d.Messages, m)
		return err
	})
}

// fields reads the fields of one object and keeps the first error.
type fields struct {
	*wire.Reader
	path string
	err  error
}

func (f *fields) fail(code session.Code, field, format string, args ...any) {
	if f.err == nil {
		f.err = wire.Errorf(code, wire.Join(f.path, field), format, args...)
	}
}

func (f *fields) message(raw jsontext.Value) (wire.Message, error) {
	m := wire.NewMessage(Name, "", "")
	var in message
	if err := wire.UnmarshalObject(f.path, raw, &in); err != nil {
		return m, err
	}
	if err := known(f.path, in.Rest, messageFields, madeFields()...); err != nil {
		return m, err
	}
	m.Kind = session.Kind(f.word("kind", in.Kind, "message", "message", "bash", "custom_message", "custom", "branch_summary", "marker", "unknown"))
	roles := []string{"system", "user", "assistant", "tool"}
	talk := wire.IsTalk(&m.Message)
	if !talk {
		roles = append(roles, "")
	}
	m.Role = session.Role(f.word("role", in.Role, "", roles...))
	m.Origin = session.Origin(f.word("origin", in.Origin, string(m.Role.DefaultOrigin()), "person", "model", "tool", "program"))
	m.Finish = session.Finish(f.word("finish", in.Finish, "", "", "stop", "tool_calls", "length", "error", "aborted", "refusal", "paused"))
	m.Author = f.text("author", in.Author)
	m.ExternalID = f.text("external_id", in.ExternalID)
	m.Model = f.text("model", in.Model)
	m.Provider = f.text("provider", in.Provider)
	m.InContext = in.InContext == nil && talk || in.InContext != nil && *in.InContext
	m.Display = in.Display == nil || *in.Display
	f.time(in.CreatedAt, &m.CreatedAt)
	m.Metadata = f.object("metadata", in.Metadata)
	if wire.IsNull(in.Parts) {
		f.content(&in, &m)
	} else if f.err == nil {
		f.err = f.parts(&in, &m)
	}
	return m, f.err
}

// parts reads parts. Content may stand beside them, as the API gives both, if it says the same, or the text that a part leaves out.
func (f *fields) parts(in *message, m *wire.Message) error {
	path := wire.Join(f.path, "parts")
	elements, err := wire.Elements(path, in.Parts)
	if err != nil {
		return err
	}
	if name := in.resultField(); name != "" {
		return wire.Errorf(session.Invalid, wire.Join(f.path, name), "stands beside parts: put it into the part")
	}
	m.Message.Parts = make([]session.Part, len(elements))
	for i, e := range elements {
		of := fields{Reader: f.Reader, path: wire.Index(path, i)}
		p, err := of.part(e, m.Role)
		if err != nil {
			return err
		}
		m.Message.Parts[i] = p
		m.Parts = append(m.Parts, wire.Part{Part: p})
	}
	if wire.IsNull(in.Content) {
		return nil
	}
	text, err := f.StringOf(f.path, "content", in.Content)
	if at := m.OnlyText(); err == nil && at >= 0 && m.Message.Parts[at].Text == "" { // as lists of messages are read
		m.Message.Parts[at].Text, m.Parts[at].Text = text, text
	}
	if err == nil && text != m.Text() {
		err = wire.Errorf(session.Invalid, wire.Join(f.path, "content"), "is not the text of the parts: give one of the two")
	}
	return err
}

// content reads {role, content:"text"}: one part. A tool's says with call_id what it answers.
func (f *fields) content(in *message, m *wire.Message) {
	p := session.TextPart("")
	if m.Role == session.Tool {
		p.Kind, p.IsError = session.PartToolResult, in.IsError
		p.CallID = f.text("call_id", in.CallID)
		p.ToolName = f.text("tool_name", in.ToolName)
		if p.CallID == "" {
			f.fail(session.Invalid, "call_id", "is missing: a tool's message says which call it answers")
		}
	} else if name := in.resultField(); name != "" {
		f.fail(session.Invalid, name, "belongs to a message of role tool, not %s", m.Role)
	}
	if m.Kind != session.KindMessage && wire.IsNull(in.Content) {
		return // a marker may say nothing
	}
	if wire.KindOf(in.Content) != '"' {
		f.fail(session.Invalid, "content", "must be a string, not %s; other content goes into parts", wire.Describe(in.Content))
		return
	}
	text, exact := wire.Text(in.Content)
	p.Text = f.long("content", "text", &wire.String{S: text, Exact: exact, Raw: in.Content}, &p)
	m.Parts = append(m.Parts, wire.Part{Part: p})
}

func (f *fields) part(raw jsontext.Value, role session.Role) (p session.Part, err error) {
	var in part
	if err := wire.UnmarshalObject(f.path, raw, &in); err != nil {
		return p, err
	}
	if err := known(f.path, in.Rest, partFields, "tokens"); err != nil {
		return p, err
	}
	p.Extra = f.object("extra", in.Extra)
	p.Kind = session.PartKind(f.word("kind", in.Kind, "", "text", "reasoning", "tool_call", "tool_result", "image", "audio", "file", "refusal", "data"))
	p.Text = f.long("text", "text", in.Text, &p)
	p.Arguments = f.long("arguments", "arguments", in.Arguments, &p)
	p.ToolName = f.text("tool_name", in.ToolName)
	p.CallID = f.text("call_id", in.CallID)
	p.IsError, p.DurationMS = in.IsError, in.DurationMS
	f.bytes(&in, &p)
	f.check(&p, role)
	return p, f.err
}

// text returns a short text, "" where there is none.
func (f *fields) text(field string, s *wire.String) string {
	if s == nil {
		return ""
	}
	if !s.Exact {
		f.fail(session.Invalid, field, "holds a NUL or half a surrogate pair, which no text can")
	}
	return s.S
}

// long returns the text of a part. One that UTF-8 cannot hold is kept raw in extra.raw.
func (f *fields) long(field, column string, s *wire.String, p *session.Part) string {
	if s == nil {
		return ""
	}
	if s.Exact || f.err != nil {
		return s.S
	}
	f.setExtra(p, func(extra *wire.Object) error {
		var raw wire.Object
		if given := extra.Get("raw"); given != nil {
			var err error
			if raw, err = wire.ParseObject(wire.Join(f.path, "extra.raw"), given); err != nil {
				return err
			}
		}
		raw.Set(column, s.Raw)
		extra.Set("raw", raw.JSON())
		return nil
	})
	f.Warn(wire.Join(f.path, field), "holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw in extra")
	return s.S
}

func (f *fields) setExtra(p *session.Part, set func(*wire.Object) error) {
	var extra wire.Object
	var err error
	if len(p.Extra) > 0 {
		extra, err = wire.ParseObject(wire.Join(f.path, "extra"), p.Extra)
	}
	if err == nil {
		err = set(&extra)
	}
	if err != nil && f.err == nil {
		f.err = err
	}
	p.Extra = session.JSON(extra.JSON())
}

// word returns one of a few words.
func (f *fields) word(field string, s *wire.String, otherwise string, words ...string) string {
	list := strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", ")
	if s == nil {
		if otherwise == "" && !slices.Contains(words, "") {
			f.fail(session.Invalid, field, "is missing: it is one of %s", list)
		}
		return otherwise
	}
	if !slices.Contains(words, s.S) {
		f.fail(session.Invalid, field, "is %q: it must be one of %s", wire.Clip(s.S), list)
	}
	return s.S
}

// time reads created_at.
func (f *fields) time(raw jsontext.Value, into *session.Time) {
	if wire.IsNull(raw) {
		return
	}
	if err := jsonv2.Unmarshal(raw, into); err != nil {
		var of *session.Error
		if errors.As(err, &of) {
			f.fail(of.Code, "created_at", "is wrong: %s", of.Message)
		}
		f.fail(session.Invalid, "created_at", "cannot be %s", wire.Clip(string(raw)))
	}
}

// object returns a JSON object of the caller's own.
func (f *fields) object(field string, raw jsontext.Value) session.JSON {
	switch {
	case wire.IsNull(raw):
		return nil
	case wire.KindOf(raw) != '{':
		f.fail(session.Invalid, field, "must be an object, not %s", wire.Describe(raw))
	case wire.Depth(raw) > wire.MaxExtraDepth:
		f.fail(session.TooLarge, field, "is nested deeper than %d levels", wire.MaxExtraDepth)
	}
	return session.JSON(raw)
}

// bytes reads data and media_type. The type stands in extra too, since one blob may lie in
// parts that call it differently.
func (f *fields) bytes(in *part, p *session.Part) {
	text, mediaType := f.text("data", in.Data), f.text("media_type", in.MediaType)
	switch {
	case text == "" && mediaType != "":
		f.fail(session.Invalid, "media_type", "stands without data")
		return
	case text == "":
		if in.Blob != nil && p.Text == "" {
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
	f.setExtra(p, func(extra *wire.Object) error {
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
			f.fail(session.Invalid, "kind", "is tool_result in a message of role %s: results stand in a message of role tool", role)
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
		f.fail(session.Invalid, "text", "is over %d bytes in a part of kind %s: put it into a part of kind text", session.BlobThreshold, p.Kind)
	}
}

// known rejects unknown fields, all at once.
func known(path string, rest jsontext.Value, fields string, made ...string) error {
	var unknown []string
	o, err := wire.ParseObject(path, rest)
	if len(rest) == 0 || err != nil {
		return nil
	}
	for _, f := range o.Members() {
		if !slices.Contains(made, f.Key) {
			unknown = append(unknown, fmt.Sprintf("%q", wire.Clip(f.Key)))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	const named = 5
	list := strings.Join(unknown[:min(len(unknown), named)], ", ")
	return wire.Errorf(session.Invalid, path, "has fields that the native form does not know: %s; it knows %s. For a provider's form name the dialect", list, fields)
}
