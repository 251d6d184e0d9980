package api

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"sessiond/internal/dialect"
	"sessiond/internal/routing"
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
	Deliver    *string             `json:"deliver,omitempty" doc:"Of a reply with the silent token NO_REPLY: what the person is sent of it; \"\": nothing"`
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
	if s.Answered != nil && !done.Replayed && done.Session.TitleSource == "first_message" && done.Session.LastSeq <= earlyOn && hasReply(done.Messages) {
		s.Answered(id)
	}
	view := &appended{done: done, appendedView: appendedView{
		Messages: make([]storedView, len(done.Messages)), Head: done.Head, Revision: done.Revision,
		ContextTokens: done.ContextTokens, Warnings: decoded.Warnings,
	}}
	for i := range done.Messages {
		m := &done.Messages[i]
		view.Messages[i] = storedView{m.ID, m.Seq, m.Parent, m.Role, m.Tokens, m.ExternalID, m.CreatedAt, delivered(m)}
	}
	return view, nil
}

// earlyOn is the last seq at which a session is thought about for a title.
const earlyOn = 12

// hasReply tells whether a model answered in words.
func hasReply(msgs []session.Message) bool {
	return slices.ContainsFunc(msgs, func(m session.Message) bool {
		return m.Role == session.Assistant && m.Origin == session.Model && m.Display && m.Text() != ""
	})
}

// delivered gives what of a reply the person is sent, where that is not all of it.
func delivered(m *session.Message) *string {
	if m.Role != session.Assistant || m.Origin != session.Model || len(m.Calls()) > 0 {
		return nil
	}
	outcome, text := routing.ReplyOf(m)
	if outcome == routing.Empty || text == m.Text() {
		return nil
	}
	return &text
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

// items returns messages in our form, or in a dialect. Codes: Invalid.
func items(form string, msgs []session.Message) ([]messageItem, error) {
	out := make([]messageItem, len(msgs))
	if form == "" {
		for i := range msgs {
			m := &msgs[i]
			for j := range m.Parts { // a long text is kept beside its part; a reader wants it in it
				m.Parts[j].Text = m.Parts[j].Content()
			}
			out[i] = messageItem{view: &messageView{Message: *m, Content: m.Text()}}
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
	After   string `query:"after" doc:"Only what follows this message on the path: a seq of this session, or an id (S.n) of the part that a fork shares"`
	Before  string `query:"before" doc:"Only what comes before this message, named like after"`
	Path    string `query:"path" enum:"head,all" doc:"head (the default): the path to the head, of a fork with the part that it shares; all: every message of this session, branches too"`
	Dialect string `query:"dialect" doc:"A provider's form instead of ours"`
}

// bound reads after, before or a cursor: a seq of the session, or any message of its path.
// Codes: Invalid.
func bound(id session.ID, field, value string, seq *int64, ref **session.MessageRef) error {
	if value == "" {
		return nil
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
		*seq = n
		return nil
	}
	named, err := session.ParseRef(value)
	switch {
	case err != nil && field == "cursor":
		return session.Errorf(session.Invalid, "cursor is none of this list's: begin without one").At(field, "not a next_cursor of this list")
	case err != nil:
		return session.Errorf(session.Invalid, "%s names no message: give a seq of this session, or an id like 20260211_001.42", field).At(field, "no seq and no id")
	case named.Session == id:
		*seq = named.Seq
	default:
		*ref = &named
	}
	return nil
}

func (s *Server) listMessages(ctx context.Context, in *listMessagesInput) (*listOutput[messageItem], error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	page := store.MessagePage{Limit: in.Limit, Descending: in.Order == "desc", All: in.Path == "all"}
	if err := bound(id, "after", in.After, &page.After, &page.AfterRef); err != nil {
		return nil, err
	}
	if err := bound(id, "before", in.Before, &page.Before, &page.BeforeRef); err != nil {
		return nil, err
	}
	if page.Descending {
		err = bound(id, "cursor", in.Cursor, &page.Before, &page.BeforeRef)
	} else {
		err = bound(id, "cursor", in.Cursor, &page.After, &page.AfterRef)
	}
	if err != nil {
		return nil, err
	}
	msgs, more, err := s.Store.Messages(ctx, id, page)
	if in.Cursor != "" && session.CodeOf(err) == session.Invalid { // the head was moved, or it never was one
		err = session.Errorf(session.Invalid, "cursor is none of this list's: begin without one").At("cursor", "not a next_cursor of this list")
	}
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

// InMessage is the part of an input that names a message of a session's tree by the path.
type InMessage struct {
	InSession
	Seq string `path:"seq" example:"42" doc:"A seq of this session, or the id of any message on its tree: 20260211_001.42"`
}

// ref gives the session and the message's name. Codes: NotFound.
func (in *InMessage) ref() (session.ID, session.MessageRef, error) {
	id, err := in.sessionID()
	if err != nil {
		return id, session.MessageRef{}, err
	}
	named := in.Seq
	if !strings.Contains(named, ".") {
		named = string(id) + "." + named
	}
	ref, err := session.ParseRef(named)
	if err != nil {
		err = session.Errorf(session.NotFound, "there is no message of that name: a seq counts from 1, and an id looks like 20260211_001.42")
	}
	return id, ref, err
}

type getMessageInput struct {
	InMessage
	Dialect string `query:"dialect" doc:"A provider's form instead of ours"`
}

type messageOutput struct {
	Body messageItem
}

func (s *Server) getMessage(ctx context.Context, in *getMessageInput) (*messageOutput, error) {
	id, ref, err := in.ref()
	if err != nil {
		return nil, err
	}
	m, err := s.Store.TreeMessage(ctx, id, ref)
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
