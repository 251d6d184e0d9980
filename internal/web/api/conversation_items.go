package api

import (
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Limits of items.
const (
	mostItems        = 20 // of one request
	mostListedItems  = 100
	usualListedItems = 20
	itemsSize        = 4 << 20 // bytes: no item follows those with which a page has them
)

// includable are the values of include. What they name is in every answer anyway.
var includable = []string{
	"file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
	"message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
	"reasoning.encrypted_content", "message.output_text.logprobs",
}

// isInclude reports whether a parameter is include, as OpenAI's clients spell it. It may be there several times.
func isInclude(name string) bool { return name == "include" || name == "include[]" }

// includes lets a route have the parameter include.
func includes(op *huma.Operation) {
	explode := true
	op.RejectUnknownQueryParameters = false
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "include", In: "query", Style: "form", Explode: &explode,
		Description: "Fields that OpenAI's API leaves out unless asked. Here every answer has all that was stored",
		Schema: &huma.Schema{
			Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: anyOf(includable)},
		},
	})
}

func anyOf(values []string) (all []any) {
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

// Including checks the parameters of a route that has include: the framework lets all pass there.
type Including struct{}

func (Including) checkQuery(query url.Values, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !isInclude(name) && !slices.Contains(known, name) {
			return session.Errorf(session.Invalid, "Unknown parameter: '%s'.", jsonx.Clip(name)).At(jsonx.Clip(name), "unknown")
		}
		for _, value := range query[name] {
			if isInclude(name) && !slices.Contains(includable, value) {
				return session.Errorf(session.Invalid, "Invalid value: '%s'. Supported values are: '%s'.", jsonx.Clip(value),
					strings.Join(includable, "', '")).At("include", "unknown value")
			}
		}
	}
	return nil
}

// appendItems appends decoded items. An id that the conversation shows already is refused; one of an item that was
// deleted is free again. Codes: Invalid, NotFound, Conflict (in the trash).
func (s *Server) appendItems(ctx context.Context, sess session.Session, msgs []session.Message, idem *store.Idempotency,
) ([]item, error) {
	repeated, err := s.Store.IsRepeated(ctx, idem)
	if err != nil {
		return nil, err
	}
	if !repeated {
		v, err := s.viewOf(ctx, sess)
		if err != nil {
			return nil, err
		}
		if err := v.nameKeys(ctx, msgs); err != nil {
			return nil, err
		}
	}
	done, err := s.Store.Append(ctx, store.Append{Session: sess.ID, Messages: msgs, Idem: idem})
	if session.CodeOf(err) == session.Conflict && !strings.Contains(err.Error(), "external_id") {
		err = noConversation(conversationPrefix + string(sess.ID)) // it was deleted meanwhile
	}
	if session.CodeOf(err) == session.Conflict {
		err = session.Errorf(session.Invalid, "Duplicate item found. Remove duplicate items from your input and try again.").
			At("items", "duplicate")
	}
	if err != nil {
		return nil, err
	}
	if s.Changed != nil && !done.Replayed && len(done.Messages) > 0 {
		s.Changed(sess.ID)
	}
	var all []item
	for i := range done.Messages {
		of, err := itemsOf(&done.Messages[i])
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// itemList is a list of items.
type itemList struct {
	Object  string    `json:"object" enum:"list" doc:"list"`
	Data    []rawItem `json:"data" doc:"The items"`
	FirstID *string   `json:"first_id" doc:"The id of the first one; null: there is none"`
	LastID  *string   `json:"last_id" doc:"The id of the last one, for after; null: there is none"`
	HasMore bool      `json:"has_more" doc:"Others follow"`
}

// rawItem is an item in OpenAI's form.
type rawItem jsontext.Value

// writeJSON writes a list item by item, since they can be large.
func (l *itemList) writeJSON(w io.Writer) error {
	rest, err := session.MarshalPlain(struct {
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
		HasMore bool    `json:"has_more"`
	}{l.FirstID, l.LastID, l.HasMore})
	if err == nil {
		_, err = io.WriteString(w, `{"object":"list","data":[`)
	}
	for i := range l.Data {
		if i > 0 && err == nil {
			_, err = io.WriteString(w, ",")
		}
		if err == nil {
			_, err = w.Write(l.Data[i])
		}
	}
	if err == nil {
		_, err = io.WriteString(w, "],"+string(rest[1:])+"\n")
	}
	return err
}

// Schema implements huma.SchemaProvider.
func (rawItem) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "An item of OpenAI's API: a message, a call, the output of one, reasoning … with its id",
		Type:        huma.TypeObject, AdditionalProperties: true,
	}
}

func newItemList(all []item, more bool) itemList {
	l := itemList{Object: "list", Data: make([]rawItem, len(all)), HasMore: more}
	for i := range all {
		l.Data[i] = rawItem(all[i].json)
	}
	if len(all) > 0 {
		l.FirstID, l.LastID = &all[0].id, &all[len(all)-1].id
	}
	return l
}

type itemsBody struct {
	Items []jsontext.Value `json:"items" required:"true" maxItems:"20" doc:"The items, up to 20, in OpenAI's form"`
}

type createItemsInput struct {
	InConversation
	Keyed
	Including
	body[itemsBody]
}

func (s *Server) createConversationItems(ctx context.Context, in *createItemsInput) (*output[itemList], error) {
	if err := in.checkQuery(requestOf(ctx).query); err != nil {
		return nil, err
	}
	if in.value.Items == nil {
		return nil, session.Errorf(session.Invalid, "Missing required parameter: 'items'.").At("items", "missing")
	}
	sess, err := s.conversation(ctx, &in.InConversation)
	if err != nil {
		return nil, err
	}
	msgs, err := decodeItems(in.value.Items)
	if err != nil || len(msgs) == 0 {
		return reply(newItemList(nil, false), err)
	}
	all, err := s.appendItems(ctx, sess, msgs, in.idem)
	return reply(newItemList(all, false), err)
}

type listItemsInput struct {
	InConversation
	Including
	After string `query:"after" doc:"Only items after this one, by its id; also one that was deleted meanwhile"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" doc:"Items per answer; default 20"`
	Order string `query:"order" enum:"asc,desc" doc:"asc: oldest first; desc (the default): newest first"`
}

func (s *Server) listConversationItems(ctx context.Context, in *listItemsInput) (*output[itemList], error) {
	if err := in.checkQuery(requestOf(ctx).query, "after", "limit", "order"); err != nil {
		return nil, err
	}
	sess, err := s.conversation(ctx, &in.InConversation)
	if err != nil {
		return nil, err
	}
	v, err := s.viewOf(ctx, sess)
	if err != nil {
		return nil, err
	}
	l := itemPage{v: v, most: usualListedItems, page: store.MessagePage{
		Descending: in.Order != "asc", Reserve: s.reserveLarge,
	}}
	if in.Limit > 0 {
		l.most = min(in.Limit, mostListedItems)
	}
	if in.After != "" {
		if err := l.begin(ctx, in.After); err != nil {
			return nil, err
		}
	}
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	return reply(newItemList(l.items, l.more), nil)
}

// InItem is the part of an input that names an item of a conversation in the path.
type InItem struct {
	InConversation
	Item string `path:"item_id" doc:"The item's id" example:"msg_20260211_001_42"`
}

// findItem finds the item that the path names, also one that was deleted. Codes: NotFound.
func (s *Server) findItem(ctx context.Context, in *InItem) (*foundItem, error) {
	sess, err := s.conversation(ctx, &in.InConversation)
	if err != nil {
		return nil, err
	}
	v, err := s.viewOf(ctx, sess)
	if err != nil {
		return nil, err
	}
	return v.find(ctx, in.Item)
}

type readItemInput struct {
	InItem
	Including
}

func (s *Server) readConversationItem(ctx context.Context, in *readItemInput) (*output[rawItem], error) {
	if err := in.checkQuery(requestOf(ctx).query); err != nil {
		return nil, err
	}
	at, err := s.findItem(ctx, &in.InItem)
	if err == nil && !at.shown {
		err = noItem(in.Item)
	}
	if err != nil {
		return nil, err
	}
	return reply(rawItem(at.json), nil)
}

type deleteItemInput struct {
	InItem
	Keyed
}

func (s *Server) deleteConversationItem(ctx context.Context, in *deleteItemInput) (*output[conversationView], error) {
	at, err := s.findItem(ctx, &in.InItem)
	if err != nil {
		return nil, err
	}
	repeated, err := s.Store.IsRepeated(ctx, in.idem)
	if err == nil && !at.shown && !repeated {
		err = noItem(in.Item)
	}
	if err != nil {
		return nil, err
	}
	hide := store.Hide{Session: in.id, Message: at.message, Idem: in.idem}
	if !at.whole {
		if hide.Parts = at.parts; len(at.parts) == 0 {
			return nil, session.Errorf(session.Invalid,
				"Item '%s' cannot be told from the others of message %s: delete those, too.", jsonx.Clip(in.Item), at.message)
		}
	}
	sess, err := s.Store.HideMessage(ctx, hide)
	if session.CodeOf(err) == session.NotFound { // another process was first
		err = noItem(in.Item)
	}
	return replyConversation(sess, err)
}
