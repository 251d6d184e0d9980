package gemini

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// sentResult is a response, with the place of its call in the reply.
type sentResult struct {
	at  int
	raw json.RawMessage
}

// tool gathers the responses of a tool's message. Other parts belong to the result before them.
func (s *sender) tool(m *session.Message) error {
	for i := range m.Parts {
		if err := wire.Loaded(&m.Parts[i]); err != nil {
			return err
		}
	}
	for at := 0; at < len(m.Parts); {
		next := at + 1
		for next < len(m.Parts) && m.Parts[next].Kind != session.PartToolResult {
			next++
		}
		if m.Parts[at].Kind == session.PartToolResult {
			if err := s.result(m, m.Parts[at:next]); err != nil {
				return err
			}
		} else {
			for i := at; i < next; i++ {
				s.losePart(m, &m.Parts[i])
			}
		}
		at = next
	}
	return nil
}

// result writes a response with what belongs to it: further text within it, media within it or
// behind all responses.
func (s *sender) result(m *session.Message, parts []session.Part) error {
	p := &parts[0]
	x, err := extraOf(m, p)
	if err != nil {
		return err
	}
	c := s.answered(m, p, x)
	var more []string
	var within, behind []json.RawMessage
	for i := 1; i < len(parts); i++ {
		q := &parts[i]
		if q.Kind == session.PartText || q.Kind == session.PartRefusal {
			if text := q.Content(); text != "" {
				more = append(more, text)
			}
			continue
		}
		qx, err := extraOf(m, q)
		if err != nil {
			return err
		}
		if s.holds(q, qx) {
			if raw := s.within(m, q, qx); raw != nil {
				within = append(within, raw)
			}
		} else if raw := s.medium(m, q, qx); raw != nil {
			behind = append(behind, raw)
		}
	}
	if len(behind) > 0 {
		s.media = append(appendText(s.media, "Attached to the result of "+c.sent+":"), behind...)
	}
	var inner, o wire.Object
	if c.sentID != "" {
		inner.SetText("id", c.sentID)
	}
	inner.SetText("name", c.sent)
	inner.Set("response", response(m, p, x, more))
	if len(within) > 0 {
		inner.Set("parts", wire.AppendArray(nil, within))
	}
	for _, f := range x.Inner.Members() {
		switch f.Key {
		case "id", "name", "response", "parts":
			continue
		}
		if !wire.IsNull(f.Value) {
			s.lose(m, "field "+wire.Clip(f.Key))
		}
	}
	s.loseBeside(m, x)
	o.Set(fieldResponse, inner.JSON())
	s.results = append(s.results, sentResult{c.at, o.JSON()})
	return nil
}

// answered gives the call that a result answers, as it was sent: by id, else by name, else the
// first open one. A result without a call keeps its own.
func (s *sender) answered(m *session.Message, p *session.Part, x *partExtra) sentCall {
	at := slices.IndexFunc(s.open, func(c sentCall) bool { return c.id == p.CallID && c.id != "" })
	if at < 0 && (p.CallID == "" || x.Made) {
		at = slices.IndexFunc(s.open, func(c sentCall) bool { return c.name == p.ToolName })
		if at < 0 && len(s.open) > 0 {
			at = 0
		}
	}
	if at >= 0 {
		c := s.open[at]
		s.open = slices.Delete(s.open, at, at+1)
		return c
	}
	c := sentCall{sent: legalName(p.ToolName), at: math.MaxInt}
	switch {
	case x.Made:
	case m.Dialect == Name:
		c.sentID = s.ids.Own(p.CallID)
	default:
		c.sentID = s.ids.Result(p.CallID)
	}
	return c
}

// response gives what a function gave, as an object: that of the wire, or {"output": text}, as
// the API documents it, {"error": text} for a failure.
func response(m *session.Message, p *session.Part, x *partExtra, more []string) json.RawMessage {
	text := p.Content()
	if raw := json.RawMessage(text); m.Dialect == Name && x.Key == "" && x.Shape == "" && len(more) == 0 && wire.KindOf(raw) == '{' && json.Valid(raw) {
		return whole(raw)
	}
	key := x.Key
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
	return o.JSON()
}

// holds tells whether a response can hold a medium: with models since the third generation,
// and those of a content that held it so, of a model that is not known.
func (s *sender) holds(p *session.Part, x *partExtra) bool {
	if p.Blob == nil || s.generation < wire.Signed && (s.generation > 0 || !x.Nested) {
		return false
	}
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}, x.MediaType)
}
