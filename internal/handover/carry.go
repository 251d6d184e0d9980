// Package handover decides what of a conversation another program is given: which messages, in which form, and what a
// note before them says. It reads and writes nothing.
package handover

import (
	"cmp"
	"slices"
	"strings"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/callid"
	"sessiond/internal/redact"
	"sessiond/internal/session"
)

// Kinds of content that stays behind, as reports count them.
const (
	LeftReasoning = "thoughts"
	LeftProgram   = "texts of the program"
	LeftSystem    = "system prompts"
	LeftMedia     = "audio and files"
	LeftData      = "pieces that only their provider reads"
	LeftRules     = "standing rules" // for which the window has no room
)

// Carrier turns messages into those that any program can be given: what people, models and tools said, calls paired
// with their results, and pictures. Everything else belongs to the program that made it. A Carrier is for one
// conversation, whose messages come in order and repaired. The zero value works.
type Carrier struct {
	Mask *redact.Masker // nil: nothing is masked
	Left map[string]int // what stayed behind, by kind
	Said int            // messages that were carried

	calls *callid.Names
	tools map[string]string // by the id of the call: results of some programs name none
	last  session.Time      // of the message before: a result that closes a call has none
}

// Carry returns what a message becomes: no message, one, or several if the provider ran tools within it. kind is the
// message's provenance in a context.
func (c *Carrier) Carry(m *session.Message, kind string) []session.Message {
	switch {
	case kind == contextmgr.ItemInitial:
		c.leave(LeftProgram)
		return nil
	case m.Role == session.System:
		c.leave(LeftSystem)
		return nil
	case kind == contextmgr.ItemMessage && session.TalkOf(m) == session.OfProgram:
		c.leave(LeftProgram)
		return nil
	}
	var carried []session.Message
	add := func(role session.Role, p session.Part) {
		if n := len(carried); n == 0 || carried[n-1].Role != role {
			carried = append(carried, session.Message{
				ID: m.ID, Kind: session.KindMessage, Role: role, Origin: m.Origin, InContext: true, Display: true,
				Model: m.Model, Provider: m.Provider, CreatedAt: m.CreatedAt,
			})
		}
		last := &carried[len(carried)-1]
		last.Parts = append(last.Parts, p)
	}
	for i := range m.Parts {
		part, role := c.part(m, &m.Parts[i])
		if part != nil {
			add(role, *part)
		}
	}
	for i := range carried {
		if carried[i].CreatedAt.IsZero() {
			carried[i].CreatedAt = c.last
		}
		c.last = carried[i].CreatedAt
	}
	c.Said += len(carried)
	return carried
}

func (c *Carrier) leave(kind string) {
	if c.Left == nil {
		c.Left = map[string]int{}
	}
	c.Left[kind]++
}

// part returns what a part becomes, and in which role; nil: it stays behind.
func (c *Carrier) part(m *session.Message, p *session.Part) (*session.Part, session.Role) {
	if c.calls == nil {
		c.calls, c.tools = callid.New(callid.FixInvalid), map[string]string{}
	}
	text := func(said string) (*session.Part, session.Role) {
		if said = c.Mask.Text(withoutNotices(said)); strings.TrimSpace(said) == "" {
			return nil, ""
		}
		return &session.Part{Kind: session.PartText, Text: said}, m.Role
	}
	switch p.Kind {
	case session.PartText, session.PartRefusal:
		if m.Role == session.User {
			return text(session.ReadableText(session.WithoutEcho(p.Content())))
		}
		return text(p.Content())
	case session.PartToolCall:
		id := c.calls.Call(nameOfCall(p))
		c.tools[id] = toolName(p.ToolName)
		return &session.Part{
			Kind: p.Kind, ToolName: c.tools[id], CallID: id, Arguments: c.Mask.Arguments(p.Arguments),
		}, session.Assistant
	case session.PartToolResult:
		said := session.ReadableResult(session.WithoutEcho(p.Content()))
		id := c.calls.Answer(nameOfCall(p))
		return &session.Part{
			Kind: p.Kind, ToolName: cmp.Or(c.tools[id], toolName(p.ToolName)), CallID: id, IsError: p.IsError,
			Text: c.Mask.Text(withoutNotices(said)),
		}, session.Tool
	case session.PartImage:
		if p.Blob != nil && strings.HasPrefix(p.Blob.MediaType, "image/") && m.Role != session.Assistant {
			return &session.Part{Kind: p.Kind, Blob: p.Blob}, m.Role
		}
		c.leave(LeftMedia)
	case session.PartReasoning:
		c.leave(LeftReasoning)
	case session.PartAudio, session.PartFile:
		c.leave(LeftMedia)
		return text("[a file of the conversation is not included here]")
	default:
		c.leave(LeftData)
	}
	return nil, ""
}

// nameOfCall returns the id of a call or result, its tool's name where the provider gave none.
func nameOfCall(p *session.Part) string {
	if p.CallID != "" {
		return p.CallID
	}
	return "call_" + toolName(p.ToolName)
}

// mostToolName is the longest name of a tool that all providers take.
const mostToolName = 64

// toolName returns a name in the form that all providers take.
func toolName(name string) string {
	if name == "" {
		return "tool"
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), mostToolName)]
}

// notices are tags around what a program adds to texts for the model alone.
var notices = []string{"system-reminder", "system_reminder", "environment_details"}

// withoutNotices removes what a program added to a text. An element without an end stays: people ask about tags, too.
func withoutNotices(text string) string {
	for _, tag := range notices {
		for from := 0; ; {
			at := strings.Index(text[from:], "<"+tag+">")
			if at < 0 {
				break
			}
			at += from
			end := strings.Index(text[at:], "</"+tag+">")
			if end < 0 {
				break
			}
			before := strings.TrimRight(text[:at], "\n")
			text, from = before+text[at+end+len("</"+tag+">"):], len(before)
		}
	}
	return text
}

// CarryContext carries a context's messages, whose kinds are in its provenance.
func (c *Carrier) CarryContext(v *contextmgr.View) (carried []session.Message) {
	for i := range v.Messages {
		kind := contextmgr.ItemMessage
		at := slices.IndexFunc(v.Provenance, func(p contextmgr.Provenance) bool { return p.Message == i })
		if at >= 0 {
			kind = v.Provenance[at].Kind
		}
		carried = append(carried, c.Carry(&v.Messages[i], kind)...)
	}
	return carried
}
