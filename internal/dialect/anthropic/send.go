package anthropic

import (
	"encoding/json"
	"strings"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Send makes {"system": …, "messages": […]} of a context, with the fields that the API takes in
// a request and no other. System text before the first turn is the request's system; later it
// is quoted in the user's role, so that what was sent before stays a prefix. Neighbours of one
// role are one entry, results stand first in the entry behind their calls. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := newSender(in.Model, false)
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
	s.mark(in.Borders)
	size := len(`{"messages":[]}`)
	for i := range s.entries {
		size += s.entries[i].size()
	}
	b := make([]byte, 0, size+s.systemSize())
	b = append(b, '{')
	if system := s.systemText(); system.raw != nil {
		b = append(b, `"system":[`...)
		b = append(append(b, system.raw...), `],`...)
	} else if system.text != "" {
		b = append(b, `"system":`...)
		b = append(wire.AppendText(b, system.text), ',')
	}
	b = append(b, `"messages":[`...)
	for i := range s.entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.entries[i].append(b)
	}
	return wire.Sent{Request: append(b, `]}`...), Losses: s.losses, ThinkingOff: s.thinkingOff()}, nil
}

// Roles of the wire.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// Stand-ins where the API demands a content and there is none.
const noContent = "(no content)"

// sent is a block as it is sent, and what decides where it may stand.
type sent struct {
	kind   string
	id     string // of a call, or of the call that a result answers
	caller string // of a call that the provider's own program made: that program's id
	from   *session.Message
	at     int    // the place of from in the context
	text   string // of a text
	marked bool   // it carries a cache mark
	raw    []byte
}

func (b *sent) thinks() bool { return b.kind == typeThinking || b.kind == typeRedacted }

// entry is an entry of messages.
type entry struct {
	role    string
	blocks  []sent
	foreign bool // a call in it was not made by the maker of the model, or lost its reasoning
}

func (e *entry) size() int {
	size := len(`{"role":"assistant","content":[]},`)
	for i := range e.blocks {
		size += len(e.blocks[i].raw) + 1
	}
	return size
}

func (e *entry) append(b []byte) []byte {
	b = append(b, `{"role":"`...)
	b = append(b, e.role...)
	b = append(b, `","content":[`...)
	for i := range e.blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e.blocks[i].raw...)
	}
	return append(b, `]}`...)
}

// sender writes messages one after the other.
type sender struct {
	model   string
	export  bool // for an export: nothing is left out because its other half is not there
	system  []string
	entries []entry
	losses  []string
	open    []openCall // calls of the last reply that wait for their results
	ids     *callid.Names
	calls   int  // seen so far, to name those that came without an id
	server  bool // some tool of the provider's own was used
	marked  bool // the system text carries a cache mark

	m     *session.Message // that is being written
	at    int              // its place in the context
	own   bool             // m came in this form
	maker bool             // and from the maker of the model that it is sent to
}

func newSender(model string, export bool) *sender {
	return &sender{model: model, export: export, ids: callid.New(callid.FixInvalid)}
}

// taken gives what was written since the last time, as entries of an export.
func (s *sender) taken() []json.RawMessage {
	var out []json.RawMessage
	for _, text := range s.system {
		var o wire.Object
		o.SetText("role", "system")
		o.SetText("content", text)
		out = append(out, o.JSON())
	}
	for i := range s.entries {
		out = append(out, s.entries[i].append(nil))
	}
	s.system, s.entries, s.open = nil, nil, nil
	return out
}

func (s *sender) systemSize() int {
	size := 0
	for _, text := range s.system {
		size += wire.TextSize(text) + len(`"system":,`)
	}
	return size
}

func (s *sender) lose(what string) { s.loseOf(s.m, what) }

// loseOf names what of an earlier message is left out.
func (s *sender) loseOf(m *session.Message, what string) {
	if ref := m.ID.String(); ref != "" {
		what = ref + ": " + what
	}
	s.losses = append(s.losses, what)
}

func (s *sender) message(m *session.Message) error {
	s.m = m
	s.own = m.Dialect == Name
	s.maker = s.own && madeBy(m, s.model)
	for i := range m.Parts {
		if err := wire.Loaded(&m.Parts[i]); err != nil {
			return err
		}
	}
	if s.own {
		x, err := messageExtraOf(m)
		if err != nil {
			return err
		}
		s.loseFields(x.Fields)
	}
	if m.Author != "" {
		s.lose("the author's name")
	}
	switch m.Kind {
	case session.KindCustom, session.KindMarker, session.KindUnknown:
		s.lose("a " + string(m.Kind) + " is no message")
		return nil
	case session.KindBash, session.KindCustomMessage, session.KindBranchSummary:
		return s.user()
	}
	switch m.Role {
	case session.System:
		s.instructions()
	case session.User:
		return s.user()
	case session.Assistant:
		return s.assistant()
	case session.Tool:
		return s.tool()
	default:
		s.lose("a message without a role")
	}
	return nil
}

// madeBy tells whether what is signed in a message can be sent to a model: its maker reads its
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

// loseFields names what stood beside the documented fields of an entry or a reply.
func (s *sender) loseFields(fields wire.Object) {
	for _, f := range fields.Members() {
		switch f.Key {
		case "role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "context_management", "diagnostics", "input_transformations":
			continue // the columns hold what matters of them
		}
		if !wire.IsNull(f.Value) {
			s.lose("field " + wire.Clip(f.Key))
		}
	}
}

// put writes a block into the open entry of that role, or begins the next one.
func (s *sender) put(role string, b sent) {
	b.from, b.at = s.m, s.at
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
	e.blocks = append(e.blocks, sent{})
	copy(e.blocks[at+1:], e.blocks[at:])
	e.blocks[at] = b
}

// putText writes a text, if there is one: the API refuses an empty one and one of spaces.
func (s *sender) putText(role, text string) bool {
	if strings.TrimSpace(text) == "" {
		return false
	}
	s.put(role, textBlock(text))
	return true
}

const textPrefix = `{"type":"text","text":`

// instructions writes a system message.
func (s *sender) instructions() {
	var texts []string
	for i := range s.m.Parts {
		p := &s.m.Parts[i]
		switch text := p.Content(); {
		case p.Kind != session.PartText && p.Kind != session.PartRefusal:
			s.losePart(p)
		case text != "":
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n\n")
	switch {
	case strings.TrimSpace(text) == "":
	case len(s.entries) == 0:
		s.system = append(s.system, text)
	default:
		s.lose("a system message in the middle is sent in the user's role")
		s.putText(roleUser, "<system>\n"+text+"\n</system>")
	}
}

// user writes what a person or a program said. One of whom nothing can be sent still has
// their turn.
func (s *sender) user() error {
	said := false
	for i := range s.m.Parts {
		p := &s.m.Parts[i]
		switch p.Kind {
		case session.PartRefusal:
			said = s.putText(roleUser, p.Content()) || said
		case session.PartText, session.PartImage, session.PartFile, session.PartAudio:
			b, err := s.content(p)
			if err != nil {
				return err
			}
			if b.raw != nil {
				s.put(roleUser, b)
				said = true
			}
		default:
			s.losePart(p)
		}
	}
	if last := len(s.entries) - 1; !said && (last < 0 || s.entries[last].role != roleUser) {
		s.putText(roleUser, noContent)
	}
	return nil
}

func (s *sender) losePart(p *session.Part) {
	what := string(p.Kind) + " in a message of role " + string(s.m.Role)
	switch p.Kind {
	case session.PartReasoning:
		what = "reasoning"
	case session.PartData:
		what = "unknown part"
		if len(p.Extra) == 0 {
			break
		}
		var x struct{ Type, Field string }
		if json.Unmarshal(p.Extra, &x) != nil {
			break
		}
		if x.Type != "" {
			what = "unknown part type " + wire.Clip(x.Type)
		} else if x.Field != "" {
			what = "field " + wire.Clip(x.Field)
		}
	}
	s.lose(what)
}
