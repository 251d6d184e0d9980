package native

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Fields of a message and of a part. Those that the server makes are accepted, so that what
// the API gave can be appended again, and ignored.
func messageFields() []string {
	return []string{
		"role", "content", "parts", "kind", "origin", "finish", "author", "external_id", "created_at",
		"display", "in_context", "metadata", "model", "provider", "call_id", "tool_name", "is_error",
	}
}

func madeFields() []string {
	return []string{"id", "seq", "parent", "tokens", "path_tokens", "day", "dialect", "session_id"}
}

func partFields() []string {
	return []string{"kind", "text", "tool_name", "call_id", "arguments", "is_error", "duration_ms", "extra", "data", "media_type"}
}

func madePartFields() []string { return []string{"tokens", "blob"} }

// Decode reads messages. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d wire.Reader
	return d.Read(raw, func(entry wire.Value) error {
		m, err := message(entry)
		d.Messages = append(d.Messages, m)
		return err
	})
}

func message(entry wire.Value) (session.Message, error) {
	m := session.Message{Kind: session.KindMessage, Dialect: Name, InContext: true, Display: true}
	o, err := entry.Fields()
	if err != nil {
		return m, err
	}
	if err := known(&o, messageFields(), madeFields()); err != nil {
		return m, err
	}
	f := fields{Fields: o}
	m.Kind = session.Kind(f.word("kind", string(m.Kind), "message", "bash", "custom_message", "custom", "branch_summary", "marker", "unknown"))
	talk := !slices.Contains([]session.Kind{session.KindCustom, session.KindMarker, session.KindUnknown}, m.Kind)
	roles := []string{"system", "user", "assistant", "tool"}
	if !talk {
		roles = append(roles, "")
	}
	m.Role = session.Role(f.word("role", "", roles...))
	m.Origin = session.Origin(f.word("origin", origin(m.Role), "person", "model", "tool", "program"))
	m.Finish = session.Finish(f.word("finish", "", "", "stop", "tool_calls", "length", "error", "aborted", "refusal", "paused"))
	m.Author = f.text("author")
	m.ExternalID = f.text("external_id")
	m.Model = f.text("model")
	m.Provider = f.text("provider")
	m.InContext = f.flag("in_context", talk)
	m.Display = f.flag("display", true)
	f.into("created_at", &m.CreatedAt)
	m.Metadata = f.objectOf("metadata")
	if f.err != nil {
		return m, f.err
	}
	return m, f.body(&m)
}

// body reads content or parts. Both may stand there, as the API gives both, if they say the same.
func (f *fields) body(m *session.Message) error {
	parts := f.Value("parts")
	if wire.IsNull(parts.Raw) {
		return f.content(m)
	}
	elements, err := parts.Elements()
	if err != nil {
		return err
	}
	for _, name := range []string{"call_id", "tool_name", "is_error"} {
		if !wire.IsNull(f.Get(name)) {
			return f.Field(name).Errorf(session.Invalid, "stands beside parts: put it into the part")
		}
	}
	for _, e := range elements {
		p, err := part(e, m.Role)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, p)
	}
	if wire.IsNull(f.Get("content")) {
		return nil
	}
	if text := f.text("content"); f.err == nil && text != m.Text() {
		return f.Field("content").Errorf(session.Invalid, "is not the text of the parts: give one of the two")
	}
	return f.err
}

// content reads {role, content:"text"}: one part. A tool's says with call_id what it answers.
func (f *fields) content(m *session.Message) error {
	p := session.TextPart("")
	if m.Role == session.Tool {
		p.Kind = session.PartToolResult
		p.CallID = f.text("call_id")
		p.ToolName = f.text("tool_name")
		f.into("is_error", &p.IsError)
		if f.err == nil && p.CallID == "" {
			return f.Field("call_id").Errorf(session.Invalid, "is missing: a tool's message says which call it answers")
		}
	} else {
		for _, name := range []string{"call_id", "tool_name", "is_error"} {
			if !wire.IsNull(f.Get(name)) {
				return f.Field(name).Errorf(session.Invalid, "belongs to a message of role tool, not %s", m.Role)
			}
		}
	}
	switch content := f.Value("content"); {
	case m.Kind != session.KindMessage && wire.IsNull(content.Raw):
		return f.err // a marker may say nothing
	case content.Kind() != '"':
		return content.Errorf(session.Invalid, "must be a string, not %s; other content goes into parts", wire.Describe(content.Raw))
	}
	p.Text = f.long("content", "text", &p)
	m.Parts = append(m.Parts, p)
	return f.err
}

func part(e wire.Value, role session.Role) (session.Part, error) {
	o, err := e.Fields()
	if err != nil {
		return session.Part{}, err
	}
	if err := known(&o, partFields(), madePartFields()); err != nil {
		return session.Part{}, err
	}
	f := fields{Fields: o}
	p := session.Part{Extra: f.objectOf("extra")}
	p.Kind = session.PartKind(f.word("kind", "", "text", "reasoning", "tool_call", "tool_result", "image", "audio", "file", "refusal", "data"))
	p.Text = f.long("text", "text", &p)
	p.Arguments = f.long("arguments", "arguments", &p)
	p.ToolName = f.text("tool_name")
	p.CallID = f.text("call_id")
	f.into("is_error", &p.IsError)
	f.into("duration_ms", &p.DurationMS)
	f.bytes(&p)
	if f.err == nil {
		f.err = sensible(o.Place, &p, role)
	}
	return p, f.err
}

// sensible refuses parts that say nothing or stand where they cannot.
func sensible(place wire.Place, p *session.Part, role session.Role) error {
	at := func(field, format string, args ...any) error {
		return place.Field(field).Errorf(session.Invalid, format, args...)
	}
	switch p.Kind {
	case session.PartToolCall:
		if role != session.Assistant {
			return at("kind", "is tool_call in a message of role %s: only an assistant calls tools", role)
		}
		if p.ToolName == "" {
			return at("tool_name", "is missing: a call names its tool")
		}
	case session.PartToolResult:
		if role != session.Tool && role != session.Assistant {
			return at("kind", "is tool_result in a message of role %s: results stand in a message of role tool", role)
		}
		if p.CallID == "" && p.ToolName == "" {
			return at("call_id", "is missing: a result says which call it answers")
		}
	case session.PartImage, session.PartAudio, session.PartFile:
		if p.Blob == nil && p.Text == "" && len(p.Extra) == 0 {
			return at("data", "is missing: give the bytes in base64, or extra.url")
		}
	}
	if p.Arguments != "" && p.Kind != session.PartToolCall {
		return at("arguments", "stand in a part of kind %s: only a tool_call has them", p.Kind)
	}
	if p.Kind.HasBytes() && len(p.Text) > session.BlobThreshold {
		return at("text", "is over %d bytes in a part of kind %s: put it into a part of kind text", session.BlobThreshold, p.Kind)
	}
	return nil
}

// known refuses fields that nobody knows, all at once.
func known(o *wire.Fields, fields, made []string) error {
	var unknown []string
	for _, f := range o.Members() {
		if f.Odd() || !slices.Contains(fields, f.Key) && !slices.Contains(made, f.Key) {
			unknown = append(unknown, fmt.Sprintf("%q", wire.Clip(f.Key)))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	const named = 5
	list := strings.Join(unknown[:min(len(unknown), named)], ", ")
	return o.Errorf(session.Invalid, "has fields that the native form does not know: %s; it knows %s. For a provider's form name the dialect", list, strings.Join(fields, ", "))
}

func origin(role session.Role) string {
	switch role {
	case session.User:
		return string(session.Person)
	case session.Assistant:
		return string(session.Model)
	case session.Tool:
		return string(session.ByTool)
	}
	return string(session.Program)
}
