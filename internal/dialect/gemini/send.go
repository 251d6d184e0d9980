package gemini

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// standIn is what is said in the user's role before a context that would begin with a reply,
// which the API refuses.
const standIn = "(The beginning of the conversation is not part of this context.)"

// Send makes {"systemInstruction": …, "contents": […]} of a context, with the fields that the
// API takes in a request and no other. Replies that follow one another become one content, as
// the API wants calls directly behind a user's turn or a function's; the responses to a reply's
// calls become one content behind it. Turns of the user stay apart, so that what was sent stays
// a prefix. System text before the conversation is the instruction; in the middle of it, where
// that would change what was sent before, it is said in the user's role. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := sender{generation: wire.Generation(in.Model), ids: callid.New(callid.Strict)}
	var instruction []json.RawMessage
	instruction = appendText(instruction, in.System)
	started := false
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Role == session.System && isTalk(m) && !started {
			texts, err := s.texts(m)
			if err != nil {
				return wire.Sent{}, err
			}
			instruction = append(instruction, texts...)
			continue
		}
		started = started || isTalk(m)
		if err := s.message(m); err != nil {
			return wire.Sent{}, err
		}
	}
	s.flush()
	if len(s.out) == 0 && len(in.Messages) > 0 {
		s.begin("")
	}
	return wire.Sent{Request: s.request(instruction), Losses: s.losses}, nil
}

// request writes what was gathered, in one piece.
func (s *sender) request(instruction []json.RawMessage) session.JSON {
	size := len(`{"systemInstruction":{"parts":[]},"contents":[]}`)
	for _, p := range instruction {
		size += len(p) + len(`,`)
	}
	for i := range s.out {
		size += s.out[i].size() + len(`,`)
	}
	b := append(make([]byte, 0, size), '{')
	if len(instruction) > 0 {
		b = append(b, `"systemInstruction":{"parts":`...)
		b = append(wire.AppendArray(b, instruction), `},`...)
	}
	b = append(b, `"contents":[`...)
	for i := range s.out {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.out[i].append(b)
	}
	return append(b, `]}`...)
}

// exportOthers gives messages of other forms as contents. Nothing is put in that nobody said.
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
	parts  []json.RawMessage
	called bool // holds a function's call
}

// sender writes contents one after the other. It remembers what one message leaves to a later
// one: calls that wait for their responses, and media that may follow only after the last one.
type sender struct {
	generation int  // of the model; 0: not known
	export     bool // to be kept, not sent

	out     []turn
	losses  []string
	ids     *callid.Names
	open    []sentCall
	calls   int               // seen so far
	results []sentResult      // responses to the calls of the last reply
	media   []json.RawMessage // what they hold and a response cannot
	skipped bool              // it was said that calls are sent without a signature
}

// sentCall is a call of the last reply as it was sent.
type sentCall struct {
	id     string // as it came
	sentID string // "" where the wire has none
	name   string // as it came
	sent   string // as it was sent
	at     int    // its place among all calls
}

func (s *sender) lose(m *session.Message, what string) {
	if ref := m.ID.String(); ref != "" {
		what = ref + ": " + what
	}
	s.losses = append(s.losses, what)
}

// contents gives what was written, one by one.
func (s *sender) contents() []json.RawMessage {
	out := make([]json.RawMessage, len(s.out))
	for i := range s.out {
		out[i] = s.out[i].append(make([]byte, 0, s.out[i].size()))
	}
	return out
}

func (t *turn) size() int {
	size := len(`{"role":"system","parts":[]}`)
	for _, p := range t.parts {
		size += len(p) + len(`,`)
	}
	return size
}

func (t *turn) append(b []byte) []byte {
	b = append(b, `{"role":"`...)
	b = append(b, t.role...)
	b = append(b, `","parts":`...)
	return append(wire.AppendArray(b, t.parts), '}')
}

// begin puts a turn of the user before a context that has none at its beginning.
func (s *sender) begin(why string) {
	s.out = append(s.out, turn{role: roleUser, parts: appendText(nil, standIn)})
	if why != "" {
		s.losses = append(s.losses, why)
	}
}

// flush writes the responses that were gathered, in one content and in the order of their
// calls, by which the API knows those without an id; and behind it in another one the media
// that they could not hold. The API counts all parts beside responses as too many responses.
func (s *sender) flush() {
	if len(s.results) > 0 {
		slices.SortStableFunc(s.results, func(a, b sentResult) int { return cmp.Compare(a.at, b.at) })
		parts := make([]json.RawMessage, len(s.results))
		for i, r := range s.results {
			parts[i] = r.raw
		}
		s.out = append(s.out, turn{role: roleUser, parts: parts})
	}
	if len(s.media) > 0 {
		s.out = append(s.out, turn{role: roleUser, parts: s.media})
	}
	s.results, s.media = nil, nil
}

// isTalk tells whether a message is of a kind that is sent.
func isTalk(m *session.Message) bool {
	switch m.Kind {
	case session.KindCustom, session.KindMarker, session.KindUnknown:
		return false
	}
	return true
}

func (s *sender) message(m *session.Message) error {
	if !isTalk(m) {
		s.lose(m, "a "+string(m.Kind)+" is no message")
		return nil
	}
	if err := s.loseFields(m); err != nil {
		return err
	}
	if m.Role != session.Tool {
		s.flush()
	}
	if m.Author != "" {
		s.lose(m, "the author's name "+strconv.Quote(wire.Clip(m.Author)))
	}
	switch m.Kind {
	case session.KindBash, session.KindCustomMessage, session.KindBranchSummary:
		return s.user(m)
	}
	switch m.Role {
	case session.System:
		texts, err := s.texts(m)
		if err != nil || len(texts) == 0 {
			return err
		}
		if s.export {
			s.out = append(s.out, turn{role: roleSystem, parts: texts})
			return nil
		}
		s.lose(m, "system text in the middle of the conversation is sent in the user's role")
		s.out = append(s.out, turn{role: roleUser, parts: texts})
		return nil
	case session.User:
		return s.user(m)
	case session.Assistant:
		return s.model(m)
	case session.Tool:
		return s.tool(m)
	}
	s.lose(m, "a message without a role")
	return nil
}

// cacheMark is what gateways take in any provider's form: no words of the conversation.
const cacheMark = "cache_control"

// loseFields names what stood beside the documented fields of a content of this form.
func (s *sender) loseFields(m *session.Message) error {
	if m.Dialect != Name || len(m.Extra) == 0 {
		return nil
	}
	x, err := messageExtraOf(m)
	if err != nil {
		return err
	}
	for _, f := range x.Fields.Members() {
		if !wire.IsNull(f.Value) && f.Key != "role" && f.Key != cacheMark {
			s.lose(m, "field "+wire.Clip(f.Key))
		}
	}
	return nil
}

// texts gives the text parts of a message in which nothing else is allowed.
func (s *sender) texts(m *session.Message) ([]json.RawMessage, error) {
	var parts []json.RawMessage
	for i := range m.Parts {
		p := &m.Parts[i]
		if err := wire.Loaded(p); err != nil {
			return nil, err
		}
		if p.Kind != session.PartText && p.Kind != session.PartRefusal {
			s.losePart(m, p)
			continue
		}
		parts = appendText(parts, p.Content())
	}
	return parts, nil
}

func (s *sender) user(m *session.Message) error {
	var parts []json.RawMessage
	for i := range m.Parts {
		p := &m.Parts[i]
		if err := wire.Loaded(p); err != nil {
			return err
		}
		x, err := extraOf(m, p)
		if err != nil {
			return err
		}
		switch p.Kind {
		case session.PartText, session.PartRefusal:
			parts = appendText(parts, p.Content())
			s.loseBeside(m, x)
		default:
			if raw := s.medium(m, p, x); raw != nil {
				parts = append(parts, raw)
			}
		}
	}
	if len(parts) == 0 {
		s.lose(m, "nothing is left of it that could be sent")
		if len(s.out) == 0 && !s.export {
			s.begin("") // what follows must not take its place at the beginning
		}
		return nil
	}
	s.out = append(s.out, turn{role: roleUser, parts: parts})
	return nil
}

// extraOf reads the extra of a part that came in this form; of any other it says nothing.
func extraOf(m *session.Message, p *session.Part) (*partExtra, error) {
	var x partExtra
	if m.Dialect != Name {
		x.Media = wire.MediaOf(p)
		return &x, nil
	}
	x, err := partExtraOf(p)
	if x.MediaType == "" && p.Blob != nil {
		x.MediaType = wire.MediaOf(p).MediaType
	}
	return &x, err
}

// loseBeside names the fields beside a text that are not sent.
func (s *sender) loseBeside(m *session.Message, x *partExtra, sent ...string) {
fields:
	for _, f := range x.Fields.Members() {
		if wire.IsNull(f.Value) || f.Key == cacheMark || f.Key == fieldText || f.Key == fieldThought && wire.KindOf(f.Value) != 't' {
			continue
		}
		for _, ok := range sent {
			if f.Key == ok || f.Key == snake(ok) {
				continue fields
			}
		}
		s.lose(m, "field "+wire.Clip(f.Key))
	}
}

func (s *sender) losePart(m *session.Message, p *session.Part) {
	what := string(p.Kind) + " in a message of role " + string(m.Role)
	switch p.Kind {
	case session.PartReasoning:
		what = "reasoning"
	case session.PartData:
		what = "unknown part"
		var x struct {
			Type  string `json:"type"`
			Field string `json:"field"`
			Where string `json:"where"`
		}
		if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &x) == nil {
			switch {
			case x.Where != "" && x.Where != "content":
				return // what stands around a reply is no part of it
			case x.Type != "":
				what = "unknown part type " + wire.Clip(x.Type)
			case x.Field != "":
				what = "field " + wire.Clip(x.Field)
			}
		}
	}
	s.lose(m, what)
}

const textPrefix = `{"text":`

func appendText(parts []json.RawMessage, text string) []json.RawMessage {
	if text == "" {
		return parts
	}
	b := make([]byte, 0, len(textPrefix)+wire.TextSize(text)+len(`}`))
	return append(parts, append(wire.AppendText(append(b, textPrefix...), text), '}'))
}
