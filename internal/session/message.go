package session

import (
	"slices"
	"strings"
)

// Role is semantic: a tool's result is `tool` whatever the dialect calls it.
type Role string

// The roles. A message outside the conversation (a marker, an unknown record) has none.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Origin says who made a message.
type Origin string

// The origins. Text that a program injects in the user's role is Program, not Person.
const (
	Person  Origin = "person"
	Model   Origin = "model"
	ByTool  Origin = "tool"
	Program Origin = "program"
)

// DefaultOrigin returns who makes messages of a role, unless they say otherwise.
func (r Role) DefaultOrigin() Origin {
	switch r {
	case User:
		return Person
	case Assistant:
		return Model
	case Tool:
		return ByTool
	}
	return Program
}

// Kind is what a message is in the log.
type Kind string

// The kinds.
const (
	KindMessage       Kind = "message"
	KindBash          Kind = "bash"           // a shell command that the person ran
	KindCustomMessage Kind = "custom_message" // injected by an extension, in the context
	KindCustom        Kind = "custom"         // an extension's state, out of the context
	KindBranchSummary Kind = "branch_summary" // a summary of an abandoned branch
	KindMarker        Kind = "marker"         // a change of model, a title, a label: out of the context
	KindUnknown       Kind = "unknown"        // kept raw from a source, out of the context
)

// Finish says why a reply ended.
type Finish string

// The finishes, with OpenAI's words where they exist.
const (
	FinishStop      Finish = "stop"
	FinishToolCalls Finish = "tool_calls"
	FinishLength    Finish = "length"
	FinishError     Finish = "error"
	FinishAborted   Finish = "aborted"
	FinishRefusal   Finish = "refusal"
	FinishPaused    Finish = "paused"
)

// Failed reports whether a reply ended before it was complete. Its calls were never run.
func (f Finish) Failed() bool { return f == FinishError || f == FinishAborted }

// Message is one immutable entry of a session. If its parent is in another session, the session is a
// fork.
type Message struct {
	RowID     int64       `db:"id" json:"-"`
	SessionID ID          `db:"session_id" json:"-"`
	Seq       int64       `db:"seq" json:"seq"`
	ID        MessageRef  `db:"-" json:"id" doc:"The message's id: its session and its seq, like 20260211_001.42"`
	ParentID  *int64      `db:"parent_id" json:"-"`
	Parent    *MessageRef `db:"-" json:"parent"`
	Depth     int64       `db:"depth" json:"-"` // messages on its path before it

	Kind   Kind   `db:"kind" json:"kind" doc:"message, bash (a command that the person ran), custom_message, custom, branch_summary, marker (a change of the model or the title), unknown (kept as it came)"`
	Role   Role   `db:"role" json:"role"`
	Origin Origin `db:"origin" json:"origin"`
	Finish Finish `db:"finish" json:"finish,omitempty"`
	Author string `db:"author" json:"author,omitempty" doc:"The speaker's name in the provider's form"`

	Tokens     int64 `db:"tokens" json:"tokens"` // by the frozen reference counter
	PathTokens int64 `db:"path_tokens" json:"-"` // sum over its path, with itself, of the messages in the context
	InContext  bool  `db:"in_context" json:"in_context" doc:"Contexts contain it"`
	Display    bool  `db:"display" json:"display" doc:"It is shown to people"`
	Talk       Talk  `db:"talk" json:"-"` // of a stored message

	Provider   string `db:"provider" json:"provider,omitempty" doc:"Of a reply: the model's provider"`
	Model      string `db:"model" json:"model,omitempty" doc:"Of a reply: the model's id"`
	Dialect    string `db:"dialect" json:"dialect,omitempty" doc:"The form it came in: openai.chat, openai.responses, anthropic, gemini, ui, native"`
	ExternalID string `db:"external_id" json:"external_id,omitempty"`
	Day        string `db:"day" json:"day"`
	CreatedAt  Time   `db:"created_at" json:"created_at"`
	Metadata   JSON   `db:"metadata" json:"metadata,omitempty"`
	Extra      JSON   `db:"extra" json:"-"` // fields of the wire form without a column

	Parts []Part `db:"-" json:"parts" doc:"Its content, in order"`
}

// ContextEdit is a marker's statement about an earlier message, in its extra as context_edit: on paths with the marker
// that message has other content, or less. Pi writes it, for example to take back a failed reply.
type ContextEdit struct {
	Target  string `json:"target"`             // external id, or the written form of a MessageRef
	Parts   []Part `json:"parts,omitempty"`    // the new content; none: the message is left out
	LeftOut []int  `json:"left_out,omitempty"` // instead: only these parts are left out, by their index
}

// Text returns the message's text parts, joined by line breaks.
func (m *Message) Text() string {
	var texts []string
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case PartText, PartRefusal, PartToolResult:
			if t := p.Content(); t != "" {
				texts = append(texts, t)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// OnlyText returns the index of the one part whose text is the message's text; -1 if it has none or
// several such parts.
func (m *Message) OnlyText() int {
	at := -1
	for i := range m.Parts {
		switch m.Parts[i].Kind {
		case PartText, PartRefusal, PartToolResult:
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// MarshalJSON adds the member content: the message's text, for people.
func (m Message) MarshalJSON() ([]byte, error) {
	type columns Message
	if m.Parts == nil {
		m.Parts = []Part{}
	}
	return MarshalPlain(struct {
		columns
		Content string `json:"content"`
	}{columns(m), m.Text()})
}

// Calls returns the parts that call a tool, in order.
func (m *Message) Calls() []*Part { return m.partsOf(PartToolCall) }

// Results returns the parts that answer a call, in order.
func (m *Message) Results() []*Part { return m.partsOf(PartToolResult) }

// HasResultOf reports whether the message itself holds the result of one of its calls: then the provider ran the tool.
func (m *Message) HasResultOf(callID string) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Kind == PartToolResult && p.CallID == callID })
}

func (m *Message) partsOf(kind PartKind) []*Part {
	var found []*Part
	for i := range m.Parts {
		if m.Parts[i].Kind == kind {
			found = append(found, &m.Parts[i])
		}
	}
	return found
}
