package api

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// maxMessages bounds one append.
const maxMessages = 10_000

type appendBody struct {
	Messages   []json.RawMessage `json:"messages" doc:"In any dialect that this version reads: {role, content}, {role, parts} or a provider's form"`
	Dialect    string            `json:"dialect,omitempty" doc:"Detected without it"`
	ExpectHead messageArg        `json:"expect_head,omitzero" doc:"The head that must still be there; null: the session must be empty"`
	Parent     messageArg        `json:"parent,omitzero" doc:"Append after this message and move the head there"`
	Call       *callBody         `json:"call,omitempty" doc:"The model call behind the last reply"`
}

// appendedView is what was stored.
type appendedView struct {
	Messages      []storedView        `json:"messages"`
	Head          *session.MessageRef `json:"head"`
	Revision      int64               `json:"revision"`
	ContextTokens int64               `json:"context_tokens"`
	Warnings      []string            `json:"warnings,omitempty" doc:"What was stored otherwise than it came, and why"`
}

// storedView names a message that was stored, without repeating what it says.
type storedView struct {
	ID         session.MessageRef  `json:"id"`
	Seq        int64               `json:"seq"`
	Parent     *session.MessageRef `json:"parent"`
	Role       session.Role        `json:"role"`
	Tokens     int64               `json:"tokens"`
	ExternalID string              `json:"external_id,omitempty"`
	CreatedAt  session.Time        `json:"created_at"`
}

type appendInput struct {
	InSession
	Keyed
	body[appendBody]
}

type appendOutput struct {
	Body appendedView
}

func (s *Server) appendMessages(ctx context.Context, in *appendInput) (*appendOutput, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	b := &in.value
	if len(b.Messages) == 0 {
		return nil, session.Errorf(session.Invalid, "messages is empty: give at least one message").At("messages", "must not be empty")
	}
	idem, err := in.idempotency(ctx, in.raw())
	if err != nil {
		return nil, err
	}
	view, err := s.append(ctx, id, b, idem)
	if err != nil {
		return nil, err
	}
	return &appendOutput{Body: view.appendedView}, nil
}

// appended is what an append did, as it is answered and as the store told it.
type appended struct {
	appendedView
	done store.Appended
}

// append decodes and stores messages. Codes: Malformed, Invalid, TooLarge, NotFound,
// Conflict (with the head).
func (s *Server) append(ctx context.Context, id session.ID, b *appendBody, idem *store.Idempotency) (*appended, error) {
	if len(b.Messages) > maxMessages {
		return nil, session.Errorf(session.TooLarge, "messages has %d elements; at most %d are taken at once", len(b.Messages), maxMessages).
			At("messages", "at most %d", maxMessages)
	}
	var decoded dialect.Decoded
	if len(b.Messages) > 0 {
		var err error
		if decoded, err = dialect.Decode(b.Dialect, b.Messages); err != nil {
			return nil, err
		}
	}
	in := store.Append{Session: id, Messages: decoded.Messages, Idem: idem}
	if b.ExpectHead.given {
		in.ExpectHead = &store.ExpectHead{Ref: b.ExpectHead.in(id)}
	}
	if b.Parent.null {
		return nil, session.Errorf(session.Invalid, "parent is null: it names the message to append after").At("parent", "must name a message")
	}
	in.Parent = b.Parent.in(id)
	if b.Call != nil {
		call, err := s.toCall(ctx, id, b.Call)
		if err != nil {
			return nil, under("call", err)
		}
		in.Call = call
	}
	done, err := s.Store.Append(ctx, in)
	if err != nil {
		return nil, s.withHead(ctx, id, err, b.ExpectHead.given)
	}
	if s.Changed != nil && !done.Replayed && len(done.Messages) > 0 {
		s.Changed(id)
	}
	if s.Reported != nil && !done.Replayed && in.Call != nil && in.Call.ContextID != nil {
		s.Reported(id)
	}
	view := &appended{done: done, appendedView: appendedView{
		Messages: make([]storedView, len(done.Messages)), Head: done.Head, Revision: done.Revision,
		ContextTokens: done.ContextTokens, Warnings: decoded.Warnings,
	}}
	for i := range done.Messages {
		m := &done.Messages[i]
		view.Messages[i] = storedView{m.ID, m.Seq, m.Parent, m.Role, m.Tokens, m.ExternalID, m.CreatedAt}
	}
	return view, nil
}

// withHead adds the head as it is to the problem of a stale expect_head.
func (s *Server) withHead(ctx context.Context, id session.ID, err error, expected bool) error {
	if !expected || session.CodeOf(err) != session.Conflict {
		return err
	}
	p := s.problem(ctx, err)
	if now, err := s.Store.Session(ctx, id); err == nil {
		p.Head = now.Head
	}
	return p
}

// messageView is a message as it is read: what is stored, and its text in one piece.
type messageView struct {
	session.Message
	Content string `json:"content" doc:"Its text, for reading"`
}

// messageItem is a message in our form or in a provider's.
type messageItem struct {
	view *messageView
	wire json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (m messageItem) MarshalJSON() ([]byte, error) {
	if m.view == nil {
		return m.wire, nil
	}
	return session.MarshalPlain(m.view)
}

// Schema implements huma.SchemaProvider.
func (messageItem) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "A message; with ?dialect= the provider's form instead",
		AnyOf:       []*huma.Schema{huma.SchemaFromType(r, schemaType(messageView{})), {Type: huma.TypeObject, AdditionalProperties: true}},
	}
}

// items gives messages as they are read, or in a dialect. Codes: Invalid.
func items(form string, msgs []session.Message) ([]messageItem, error) {
	out := make([]messageItem, len(msgs))
	if form == "" {
		for i := range msgs {
			m := &msgs[i]
			for j := range m.Parts { // a long text is kept beside its part; a reader wants it in it
				m.Parts[j].Text = m.Parts[j].Content()
			}
			out[i].view = &messageView{Message: *m, Content: m.Text()}
		}
		return out, nil
	}
	exported, err := dialect.Export(form, msgs)
	if err != nil {
		return nil, err
	}
	out = make([]messageItem, len(exported))
	for i, raw := range exported {
		out[i].wire = raw
	}
	return out, nil
}

type listMessagesInput struct {
	InSession
	Paged
	After   int64  `query:"after" minimum:"0" doc:"Only seqs after this one"`
	Before  int64  `query:"before" minimum:"0" doc:"Only seqs before this one"`
	Path    string `query:"path" enum:"head,all" doc:"head (the default): the path to the head; all: branches, too"`
	Dialect string `query:"dialect" doc:"A provider's form instead of ours"`
}

func (s *Server) listMessages(ctx context.Context, in *listMessagesInput) (*listOutput[messageItem], error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	page := store.MessagePage{After: in.After, Before: in.Before, Limit: in.Limit, Descending: in.Order == "desc", All: in.Path == "all"}
	if in.Cursor != "" {
		ref, err := session.ParseRef(in.Cursor)
		if err != nil || ref.Session != id {
			return nil, session.Errorf(session.Invalid, "cursor is none of this list's: begin without one").At("cursor", "not a next_cursor of this list")
		}
		if page.Descending {
			page.Before = ref.Seq
		} else {
			page.After = ref.Seq
		}
	}
	msgs, more, err := s.Store.Messages(ctx, id, page)
	if err != nil {
		return nil, err
	}
	next := ""
	if more {
		next = msgs[len(msgs)-1].ID.String()
	}
	data, err := items(in.Dialect, msgs)
	if err != nil {
		return nil, err
	}
	return &listOutput[messageItem]{Body: listOf(data, next)}, nil
}

// InMessage is the part of an input that names a message of a session by the path.
type InMessage struct {
	InSession
	Seq int64 `path:"seq" example:"42"`
}

// ref gives the message's name. Codes: NotFound.
func (in *InMessage) ref() (session.MessageRef, error) {
	id, err := in.sessionID()
	if err == nil && in.Seq < 1 {
		err = session.Errorf(session.NotFound, "there is no message %d: seqs count from 1", in.Seq)
	}
	return session.MessageRef{Session: id, Seq: in.Seq}, err
}

type getMessageInput struct {
	InMessage
	Dialect string `query:"dialect" doc:"A provider's form instead of ours"`
}

type messageOutput struct {
	Body messageItem
}

func (s *Server) getMessage(ctx context.Context, in *getMessageInput) (*messageOutput, error) {
	ref, err := in.ref()
	if err != nil {
		return nil, err
	}
	m, err := s.Store.Message(ctx, ref)
	if err != nil {
		return nil, err
	}
	data, err := items(in.Dialect, []session.Message{m})
	if err != nil {
		return nil, err
	}
	if len(data) != 1 {
		return nil, session.Errorf(session.Invalid, "message %s is no single message in dialect %q: read the list", ref, in.Dialect).At("dialect", "not one message in it")
	}
	return &messageOutput{Body: data[0]}, nil
}

type markInput struct {
	InMessage
	Keyed
}

func (s *Server) pin(ctx context.Context, in *markInput) (*sessionOutput, error) {
	return s.setPin(ctx, in, true)
}

func (s *Server) unpin(ctx context.Context, in *markInput) (*sessionOutput, error) {
	return s.setPin(ctx, in, false)
}

func (s *Server) setPin(ctx context.Context, in *markInput, on bool) (*sessionOutput, error) {
	ref, err := in.ref()
	if err != nil {
		return nil, err
	}
	if on {
		if err := s.Contexts.CheckPin(ctx, ref.Session, ref); err != nil {
			return nil, err
		}
	}
	after, err := s.Store.SetMark(ctx, ref.Session, ref, store.MarkPin, "", on)
	if err != nil {
		return nil, err
	}
	return sessionAnswer(after), nil
}
