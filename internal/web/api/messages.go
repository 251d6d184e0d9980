package api

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// maxMessages bounds one append.
const maxMessages = 10_000

type appendBody struct {
	Messages   []jsontext.Value `json:"messages" doc:"The messages to append: {role, content}, or a provider's form, such as its reply, or sessiond's own {role, parts}"`
	Dialect    string           `json:"dialect,omitempty" enum:"native,openai.chat,openai.responses,anthropic,gemini,ui" doc:"Form of the messages; default: detected"`
	ExpectHead headArg          `json:"expect_head,omitzero" doc:"The head that the caller expects, else 409; null: the session must be empty"`
	Parent     messageArg       `json:"parent,omitzero" doc:"Append after this message instead of the head: begins a branch, and the head moves there"`
	Call       *callBody        `json:"call,omitempty" doc:"The model call behind the last reply"`

	turnDialect string // of the context that a turn asks for
}

// appendedView is what was stored.
type appendedView struct {
	Messages      []storedView        `json:"messages" doc:"The stored messages, without their content"`
	Head          *session.MessageRef `json:"head"`
	Revision      int64               `json:"revision"`
	ContextTokens int64               `json:"context_tokens"`
	Warnings      []string            `json:"warnings,omitempty" doc:"What was changed before storing, and why"`
}

// storedView is a stored message without its content.
type storedView struct {
	ID         session.MessageRef  `json:"id"`
	Seq        int64               `json:"seq"`
	Parent     *session.MessageRef `json:"parent"`
	Role       session.Role        `json:"role"`
	Tokens     int64               `json:"tokens"`
	ExternalID string              `json:"external_id,omitempty"`
	CreatedAt  session.Time        `json:"created_at"`
	Deliver    *string             `json:"deliver,omitempty" doc:"Of a reply that contains the token NO_REPLY: the text to send to the person; \"\": send nothing"`
}

type appendInput struct {
	InSession
	Keyed
	body[appendBody]
}

func (s *Server) appendMessages(ctx context.Context, in *appendInput) (*output[appendedView], error) {
	b := &in.value
	isOutput := b.Messages != nil && b.Dialect == dialect.OpenAIResponses && !b.Parent.given // a reply's output may be []
	if len(b.Messages) == 0 && !isOutput {
		return nil, session.Errorf(session.Invalid, "messages is empty: send at least one message").
			At("messages", "must not be empty")
	}
	view, err := s.append(ctx, in.ID, b, in.idem)
	if err != nil {
		return nil, err
	}
	return &output[appendedView]{view.appendedView}, nil
}

// appended is the result of an append: the answer, and the store's own record.
type appended struct {
	appendedView
	done store.Appended
}

// nameMaker writes the provider and the model of a call into the reply that it made, where the
// reply does not say it: reasoning in OpenAI's chat form goes back to its maker alone.
func nameMaker(msgs []session.Message, call *session.Call) {
	for i := range slices.Backward(msgs) {
		if m := &msgs[i]; m.Role == session.Assistant {
			if m.Dialect == dialect.OpenAIChat {
				m.Provider, m.Model = cmp.Or(m.Provider, call.Provider), cmp.Or(m.Model, call.Model)
			}
			return
		}
	}
}

// append decodes and stores messages. Codes: Malformed, Invalid, TooLarge, NotFound,
// Conflict (with the head).
func (s *Server) append(ctx context.Context, id session.ID, b *appendBody, idem *store.Idempotency) (*appended, error) {
	if len(b.Messages) > maxMessages {
		return nil, session.Errorf(session.TooLarge, "messages has %d elements; the limit of one request is %d",
			len(b.Messages), maxMessages).
			At("messages", "at most %d", maxMessages)
	}
	var decoded dialect.Decoded
	if len(b.Messages) > 0 {
		var err error
		decode, name := dialect.Decode, b.Dialect
		if name == "" {
			decode, name = dialect.DecodeFor, b.turnDialect
		}
		if decoded, err = decode(name, b.Messages); err != nil {
			return nil, err
		}
	}
	in := store.Append{Session: id, Messages: decoded.Messages, Idem: idem}
	if b.ExpectHead.given {
		in.ExpectHead = &store.ExpectHead{Ref: b.ExpectHead.in(id)}
	}
	if b.Parent.null {
		return nil, session.Errorf(session.Invalid,
			"parent is null: name the message to append after, or leave parent out").At("parent", "must name a message")
	}
	in.Parent = b.Parent.in(id)
	if b.Call != nil {
		call, warning, err := s.replyCall(ctx, id, b.Call)
		if err != nil {
			return nil, session.Under("call", err)
		}
		if in.Call = call; warning != "" {
			decoded.Warnings = append(decoded.Warnings, warning)
		}
		nameMaker(decoded.Messages, call)
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
	if s.Answered != nil && !done.Replayed && done.Session.TitleSource == "first_message" &&
		done.Session.LastSeq <= earlyOn && hasReply(done.Messages) {
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

type popBody struct {
	ExpectHead headArg `json:"expect_head,omitzero" doc:"The head that the caller expects, else 409; null: the session must be empty"`
}

type popInput struct {
	InSession
	Keyed
	Dialect string `query:"dialect" enum:"native,openai.chat,openai.responses,anthropic,gemini,ui" doc:"Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own"`
	body[popBody]
}

// poppedView is a message that was the last one.
type poppedView struct {
	Message  *messageItem        `json:"message" doc:"The message; null: there was none. Of several items in the dialect the last one"`
	Items    []messageItem       `json:"items,omitempty" doc:"With a dialect: all items that the message is in it, in order"`
	Head     *session.MessageRef `json:"head"`
	Revision int64               `json:"revision"`
}

func (s *Server) popMessage(ctx context.Context, in *popInput) (*output[poppedView], error) {
	pop := store.Pop{Session: in.ID, Idem: in.idem}
	if in.value.ExpectHead.given {
		pop.ExpectHead = &store.ExpectHead{Ref: in.value.ExpectHead.in(in.ID)}
	}
	done, err := s.Store.PopMessage(ctx, pop)
	if err != nil {
		return nil, s.withHead(ctx, in.ID, err, in.value.ExpectHead.given)
	}
	view := poppedView{Head: done.Session.Head, Revision: done.Session.Revision}
	if done.Ref == nil {
		return reply(view, nil)
	}
	m, err := s.Store.LargeTreeMessage(ctx, in.ID, *done.Ref, s.reserveLarge)
	if err != nil {
		return nil, err
	}
	all, err := items(in.Dialect, []session.Message{m})
	if len(all) > 0 {
		view.Message = &all[len(all)-1]
	}
	if in.Dialect != "" {
		view.Items = all
	}
	return reply(view, err)
}

// earlyOn is the last seq at which a session may get a better title.
const earlyOn = 12

// hasReply reports whether the messages include a visible reply of a model with text.
func hasReply(msgs []session.Message) bool {
	return slices.ContainsFunc(msgs, func(m session.Message) bool {
		return m.Role == session.Assistant && m.Origin == session.Model && m.Display && m.Text() != ""
	})
}

// delivered returns the text of a reply to send to the person, if it differs from the whole text.
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

// withHead adds the current head to the problem of a stale expect_head.
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

// messageView is a stored message with its text in one piece.
type messageView struct {
	session.Message
	Content string `json:"content" doc:"All its text. In a list, a part whose text this is has no text of its own"`
}

// messageItem is a message in our form or in a provider's.
type messageItem struct {
	view *messageView
	wire jsontext.Value
}

// writeJSON writes the message: a large text is not copied into one JSON value.
func (m messageItem) writeJSON(w io.Writer) error {
	if m.view == nil {
		_, err := w.Write(m.wire)
		return err
	}
	type columns session.Message // without its MarshalJSON, which reads the content from the parts
	view := struct {
		columns
		Content string `json:"content"`
	}{columns(m.view.Message), m.view.Content}
	var large largeTexts // in the order of the JSON
	view.Parts = slices.Clone(view.Parts)
	for i := range view.Parts {
		large.take(&view.Parts[i].Text)
		large.take(&view.Parts[i].Arguments)
	}
	large.take(&view.Content)
	encoded, err := session.MarshalPlain(view)
	if err != nil {
		return err
	}
	return large.write(w, encoded)
}

// messageList is a page of messages. In a dialect a message may be several items.
type messageList struct {
	Data       []messageItem `json:"data"`
	Places     []itemPlace   `json:"places,omitempty" doc:"With dialect: the message of each item of data; of an item made of several, the last"`
	NextCursor *string       `json:"next_cursor" doc:"Send it as cursor to get the next page; null: this is the last page"`
}

// itemPlace names the message of an item.
type itemPlace struct {
	ID  session.MessageRef `json:"id"`
	Seq int64              `json:"seq"`
}

// writeMessages writes a list of messages one by one.
func writeMessages(w io.Writer, l *messageList) error {
	begin := `{"data":[`
	for i := range l.Data {
		if _, err := io.WriteString(w, begin); err != nil {
			return err
		}
		if err := l.Data[i].writeJSON(w); err != nil {
			return err
		}
		begin = ","
	}
	if len(l.Data) > 0 {
		begin = ""
	}
	places := ""
	if l.Places != nil {
		encoded, err := session.MarshalPlain(l.Places)
		if err != nil {
			return err
		}
		places = `,"places":` + string(encoded)
	}
	next, err := session.MarshalPlain(l.NextCursor)
	if err == nil {
		_, err = io.WriteString(w, begin+`]`+places+`,"next_cursor":`+string(next)+"}\n")
	}
	return err
}

// MarshalJSON implements json.Marshaler, for messages within other values.
func (m messageItem) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := m.writeJSON(&b)
	return b.Bytes(), err
}

// Schema implements huma.SchemaProvider.
func (messageItem) Schema(r huma.Registry) *huma.Schema {
	native := r.Schema(reflect.TypeFor[messageView](), true, "Message")
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "A message, as the schema Message has it; with ?dialect= in the provider's form",
		Extensions:  map[string]any{"x-native": native}, // a union with any object is beyond some generators
	}
}

// items returns messages in our form, or in a dialect. Codes: Invalid.
func items(form string, msgs []session.Message) ([]messageItem, error) {
	out := make([]messageItem, len(msgs))
	if form == "" {
		for i := range msgs {
			m := &msgs[i]
			for j := range m.Parts { // a long text is kept beside its part; a reader wants it in it
				p := &m.Parts[j]
				if p.Text = p.Content(); p.Text != "" {
					p.Blob = nil
				}
			}
			m.Parts = emptyNotNil(m.Parts)
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

// listItems is items for a list, in which a message carries a long text once.
func listItems(form string, msgs []session.Message) ([]messageItem, error) {
	out, err := items(form, msgs)
	for i := range out {
		if out[i].view != nil {
			out[i].view.dropRepeated()
		}
	}
	return out, err
}

// dropRepeated removes the text of the part whose text is the whole content. Several texts stay in
// their parts, since the content does not show where one ends.
func (v *messageView) dropRepeated() {
	if at := v.OnlyText(); at >= 0 {
		v.Parts[at].Text = ""
	}
}

type listMessagesInput struct {
	InSession
	Paged
	After   string `query:"after" doc:"Only messages after this one: a seq of this session, or an id like 20260211_001.42"`
	Before  string `query:"before" doc:"Only messages before this one, named as in after"`
	Path    string `query:"path" enum:"head,all" doc:"head (the default): the path to the head, including messages that a fork shares; all: every message of this session, on all branches"`
	Dialect string `query:"dialect" enum:"native,openai.chat,openai.responses,anthropic,gemini,ui" doc:"Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own"`
}

// bound parses after, before or a cursor: a seq of the session, or any message of its path.
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
		return errCursor()
	case err != nil:
		return session.Errorf(session.Invalid,
			"%s names no message: write a seq of this session, or an id like 20260211_001.42", field).
			At(field, "not a seq or an id")
	case named.Session == id:
		*seq = named.Seq
	default:
		*ref = &named
	}
	return nil
}

func (s *Server) listMessages(ctx context.Context, in *listMessagesInput) (*output[messageList], error) {
	page := store.MessagePage{
		Limit: in.Limit, Descending: in.Order == "desc", All: in.Path == "all",
		Reserve: s.reserveLarge,
	}
	if err := bound(in.ID, "after", in.After, &page.After, &page.AfterRef); err != nil {
		return nil, err
	}
	if err := bound(in.ID, "before", in.Before, &page.Before, &page.BeforeRef); err != nil {
		return nil, err
	}
	seq, ref := &page.After, &page.AfterRef
	if page.Descending {
		seq, ref = &page.Before, &page.BeforeRef
	}
	cursor, skip, err := in.parseCursor()
	if err != nil {
		return nil, err
	}
	if err := bound(in.ID, "cursor", cursor, seq, ref); err != nil {
		return nil, err
	}
	if _, grouped := dialect.FirstEntry(in.Dialect, nil); grouped {
		return s.listEntries(ctx, in, page)
	}
	msgs, more, err := s.Store.Messages(ctx, in.ID, page)
	if in.Cursor != "" && session.CodeOf(err) == session.Invalid { // the head was moved, or it never was a cursor
		err = errCursor()
	}
	if err != nil {
		return nil, err
	}
	if in.Dialect != "" {
		return in.replyItems(msgs, more, cursor, skip)
	}
	next := ""
	if more {
		next = msgs[len(msgs)-1].ID.String()
	}
	data, err := listItems(in.Dialect, msgs)
	list := ListOf(data, next)
	return reply(messageList{Data: list.Data, NextCursor: list.NextCursor}, err)
}

// parseCursor returns the message that a cursor names, and how many items behind it were answered already: a page of a
// dialect may end within a message, as 20260211_001.42/2. Codes: Invalid.
func (in *listMessagesInput) parseCursor() (message string, skip int, err error) {
	message, items, within := strings.Cut(in.Cursor, "/")
	if !within {
		return in.Cursor, 0, nil
	}
	if skip, err = strconv.Atoi(items); err != nil || skip < 1 || in.Dialect == "" {
		return "", 0, errCursor()
	}
	return message, skip, nil
}

// replyItems answers at most as many items as the limit says, each with its place. Codes: Invalid.
func (in *listMessagesInput) replyItems(msgs []session.Message, more bool, last string, skip int,
) (*output[messageList], error) {
	list := messageList{Data: []messageItem{}, Places: []itemPlace{}}
	most := cmp.Or(in.Limit, defaultItems)
	for i := range msgs {
		m := &msgs[i]
		of, err := items(in.Dialect, msgs[i:i+1])
		if err != nil {
			return nil, err
		}
		if in.Order == "desc" {
			slices.Reverse(of)
		}
		if skip > len(of) { // the head was moved
			return nil, errCursor()
		}
		for n := skip; n < len(of); n++ {
			if len(list.Data) == most {
				if n > 0 {
					last += "/" + strconv.Itoa(n)
				}
				list.NextCursor = &last
				return reply(list, nil)
			}
			list.Data = append(list.Data, of[n])
			list.Places = append(list.Places, itemPlace{m.ID, m.Seq})
		}
		last, skip = m.ID.String(), 0
	}
	if more {
		list.NextCursor = &last
	}
	return reply(list, nil)
}

const defaultItems = 50 // of a page

// Limits of what is read for a page of entries that are several messages each. A longer entry is cut.
const (
	entryMessages = 200 // at once
	entryReads    = 8
)

// listEntries lists messages in a dialect in which an entry may be several messages. An entry is listed when all of it
// was read. Codes: Invalid.
func (s *Server) listEntries(ctx context.Context, in *listMessagesInput, page store.MessagePage,
) (*output[messageList], error) {
	most := cmp.Or(in.Limit, defaultItems)
	page.Limit = max(most, entryMessages)
	var msgs []session.Message // in the order of the conversation
	var entries [][]session.Message
	for reads := 0; ; reads++ {
		read, more, err := s.Store.Messages(ctx, in.ID, page)
		if in.Cursor != "" && session.CodeOf(err) == session.Invalid {
			err = errCursor()
		}
		if err != nil {
			return nil, err
		}
		if page.Descending {
			slices.Reverse(read)
			msgs = append(read, msgs...)
		} else {
			msgs = append(msgs, read...)
		}
		entries = split(in.Dialect, msgs)
		if !more {
			return entryItems(in.Dialect, entries, most, page.Descending, false)
		}
		if whole := len(entries) - 1; whole > 0 { // the one at the end of what was read may go on
			if page.Descending {
				entries = entries[1:]
			} else {
				entries = entries[:whole]
			}
			return entryItems(in.Dialect, entries, most, page.Descending, true)
		}
		if reads == entryReads {
			return entryItems(in.Dialect, entries, most, page.Descending, true)
		}
		seq, ref, end := &page.After, &page.AfterRef, msgs[len(msgs)-1].ID
		if page.Descending {
			seq, ref, end = &page.Before, &page.BeforeRef, msgs[0].ID
		}
		*seq, *ref = 0, nil
		if err := bound(in.ID, "cursor", end.String(), seq, ref); err != nil {
			return nil, err
		}
	}
}

// split splits messages into entries of a dialect.
func split(form string, msgs []session.Message) (entries [][]session.Message) {
	for len(msgs) > 0 {
		n, _ := dialect.FirstEntry(form, msgs)
		entries = append(entries, msgs[:n])
		msgs = msgs[n:]
	}
	return entries
}

// entryItems answers at most so many of the entries, each with the place of its last message. Codes: Invalid.
func entryItems(form string, entries [][]session.Message, most int, descending, more bool,
) (*output[messageList], error) {
	list := messageList{Data: []messageItem{}, Places: []itemPlace{}}
	if descending {
		slices.Reverse(entries)
	}
	for i, e := range entries {
		item, err := items(form, e)
		if err != nil {
			return nil, err
		}
		last := e[len(e)-1]
		for _, one := range item { // an entry of nothing that is shown is none
			list.Data = append(list.Data, one)
			list.Places = append(list.Places, itemPlace{last.ID, last.Seq})
		}
		if i+1 < len(entries) && len(list.Data) < most || i+1 == len(entries) && !more {
			continue
		}
		cursor := last.ID.String()
		if descending {
			cursor = e[0].ID.String()
		}
		list.NextCursor = &cursor
		break
	}
	return reply(list, nil)
}

// InMessage is the part of an input that names a message of a session's tree in the path.
type InMessage struct {
	InSession
	Seq string `path:"seq" example:"42" doc:"A seq of this session, or the id of any message on its tree: 20260211_001.42"`

	ref session.MessageRef
}

// parsePath parses the session and the message. Codes: NotFound.
func (in *InMessage) parsePath() error {
	err := in.InSession.parsePath()
	if err != nil {
		return err
	}
	named := in.Seq
	if !strings.Contains(named, ".") {
		named = string(in.ID) + "." + named
	}
	if in.ref, err = session.ParseRef(named); err != nil {
		return session.Errorf(session.NotFound,
			"no message has this name: a seq counts from 1, and an id looks like 20260211_001.42")
	}
	return nil
}

type getMessageInput struct {
	InMessage
	Dialect string `query:"dialect" enum:"native,openai.chat,openai.responses,anthropic,gemini,ui" doc:"Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own"`
}

func (s *Server) readMessage(ctx context.Context, in *getMessageInput) (*output[messageItem], error) {
	m, err := s.oneMessage(ctx, in.ID, in.ref, in.Dialect)
	if err != nil {
		return nil, err
	}
	return reply(*m, nil)
}

// oneMessage reads a message of a session's tree in a form. Codes: NotFound, Invalid (it is several in that form).
func (s *Server) oneMessage(ctx context.Context, id session.ID, ref session.MessageRef, form string,
) (*messageItem, error) {
	m, err := s.Store.LargeTreeMessage(ctx, id, ref, s.reserveLarge)
	if err != nil {
		return nil, err
	}
	data, err := items(form, []session.Message{m})
	if err != nil {
		return nil, err
	}
	if len(data) != 1 {
		return nil, session.Errorf(session.Invalid, "message %s is not a single message in dialect %q: read the list", ref,
			form).At("dialect", "not one message in it")
	}
	return &data[0], nil
}
