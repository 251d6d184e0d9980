package api

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
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

// item is an item of a conversation: one of those that a message is in the dialect.
type item struct {
	id      string
	message session.MessageRef
	parts   []int // of the message
	whole   bool  // the message is this item alone
	json    jsontext.Value
}

// itemPrefixes begin the ids of items that came without one. Of other types it is item.
var itemPrefixes = map[string]string{
	"message": "msg", "reasoning": "rs", "compaction": "cmp",
	"function_call": "fc", "function_call_output": "fco", "custom_tool_call": "ctc", "custom_tool_call_output": "ctco",
	"web_search_call": "ws", "file_search_call": "fs", "code_interpreter_call": "ci", "image_generation_call": "ig",
	"computer_call": "cu", "computer_call_output": "cuo", "local_shell_call": "lsh", "local_shell_call_output": "lsho",
	"shell_call": "sh", "shell_call_output": "sho", "apply_patch_call": "apc", "apply_patch_call_output": "apco",
	"mcp_call": "mcp", "mcp_list_tools": "mcpl", "mcp_approval_request": "mcpr", "mcp_approval_response": "mcpa",
	"tool_search_call": "tsc", "tool_search_output": "tso",
}

// madeID returns the id of the n-th item of a message, from 0.
func madeID(kind string, ref session.MessageRef, n int) string {
	prefix := itemPrefixes[kind]
	if prefix == "" {
		prefix = "item"
	}
	id := fmt.Sprintf("%s_%s_%d", prefix, ref.Session, ref.Seq)
	if n > 0 {
		id += "_" + strconv.Itoa(n+1)
	}
	return id
}

// parseMadeID returns the message that a made id names.
func parseMadeID(id string) (ref session.MessageRef, is bool) {
	const least, most = 4, 5 // msg_20260211_001_42 and msg_20260211_001_42_2
	words := strings.Split(id, "_")
	if len(words) < least || len(words) > most {
		return ref, false
	}
	ref, err := session.ParseRef(words[1] + "_" + words[2] + "." + words[3])
	return ref, err == nil
}

// itemsOf returns the items of a message. Codes: Invalid.
func itemsOf(m *session.Message) ([]item, error) {
	exported, err := dialect.Export(dialect.OpenAIResponses, []session.Message{*m})
	if err != nil {
		return nil, err
	}
	var all []item
	for _, raw := range exported {
		o, _ := jsonx.ReadObject(raw)
		if output, ok := jsonx.ReadArray(o.Get("output")); ok && o.String("object") == "response" {
			for _, inner := range output {
				all = append(all, newItem(m, inner, len(all)))
			}
			continue
		}
		all = append(all, newItem(m, raw, len(all)))
	}
	for i := range all {
		if all[i].whole = len(all) == 1; !all[i].whole {
			all[i].parts = partsOfItem(m, all, i)
		}
	}
	return all, nil
}

// newItem gives an item the fields that OpenAI's API answers beside those that a client must send.
func newItem(m *session.Message, raw jsontext.Value, n int) item {
	o, _ := jsonx.ReadObject(raw)
	kind := o.String("type")
	if kind == "" && o.Has("role") {
		kind = "message"
		o.SetText("type", kind)
	}
	id := o.String("id")
	if id == "" || isFakeID(id) {
		id = madeID(kind, m.ID, n)
		o.SetText("id", id)
	}
	switch kind {
	case "message":
		o.Set("content", contentOf(o.Get("content"), o.String("role")))
		setStatus(&o)
	case "function_call", "function_call_output":
		setStatus(&o)
	case "reasoning":
		if jsonx.KindOf(o.Get("summary")) != '[' {
			o.Set("summary", jsontext.Value(`[]`))
		}
	}
	return item{id: id, message: m.ID, json: o.Value()}
}

func setStatus(o *jsonx.Object) {
	if jsonx.KindOf(o.Get("status")) != '"' {
		o.SetText("status", "completed")
	}
}

// isFakeID knows the ids that OpenAI's Agents SDKs give the items of models without the Responses API.
func isFakeID(id string) bool { return id == "__fake_id__" || id == "FAKE_ID" }

// contentOf returns the content of a message as a list.
func contentOf(content jsontext.Value, role string) jsontext.Value {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	elements, isList := jsonx.ReadArray(content)
	switch {
	case isList:
	case jsonx.KindOf(content) == '"':
		text := jsonx.NewObject("type", kind)
		text.Set("text", content)
		elements = []jsontext.Value{text.Value()}
	}
	for i, raw := range elements {
		if o, ok := jsonx.ReadObject(raw); ok && o.String("type") == "output_text" && !o.Has("annotations") {
			o.Set("annotations", jsontext.Value(`[]`))
			elements[i] = o.Value()
		}
	}
	return jsonx.Array(elements)
}

// partsOfItem returns the parts that the i-th of several items of a message is made of, by their index.
func partsOfItem(m *session.Message, all []item, i int) (parts []int) {
	if m.Dialect == dialect.OpenAIResponses {
		n := -1
		for j := range m.Parts {
			if extra, _ := jsonx.ReadObject(m.Parts[j].Extra); extra.Has("item") {
				n++
			}
			if max(n, 0) == i {
				parts = append(parts, j)
			}
		}
		return parts
	}
	o, _ := jsonx.ReadObject(all[i].json)
	kind, call := o.String("type"), o.String("call_id")
	for j := range m.Parts {
		p, is := &m.Parts[j], false
		switch p.Kind {
		case session.PartToolCall:
			is = strings.HasSuffix(kind, "_call") && p.CallID == call
		case session.PartToolResult:
			is = strings.HasSuffix(kind, "_output") && p.CallID == call
		case session.PartReasoning:
			is = kind == "reasoning"
		default:
			is = kind == "message"
		}
		if is {
			parts = append(parts, j)
		}
	}
	return parts
}

// hides reports whether an item is left out.
func hides(h store.Hidden, it *item) bool {
	if h.Has(it.message, -1) { // all of the message
		return true
	}
	return len(it.parts) > 0 && !slices.ContainsFunc(it.parts, func(p int) bool { return !h.Has(it.message, p) })
}

// decodeItems decodes items, each to a message of its own. Codes: Malformed, Invalid, TooLarge.
func decodeItems(raw []jsontext.Value) ([]session.Message, error) {
	if len(raw) > mostItems {
		return nil, session.Errorf(session.Invalid,
			"Invalid 'items': array too long. Expected an array with maximum length %d, but got an array with length %d "+
				"instead.",
			mostItems, len(raw)).At("items", "too long")
	}
	msgs := make([]session.Message, 0, len(raw))
	ids := map[string]bool{}
	for i, r := range raw {
		path := jsonx.Index("items", i)
		decoded, err := dialect.Decode(dialect.OpenAIResponses, raw[i:i+1])
		if err != nil {
			return nil, atItem(path, err)
		}
		o, _ := jsonx.ReadObject(r)
		if kind := o.String("type"); kind == "item_reference" || kind == "" && !o.Has("role") || len(decoded.Messages) != 1 {
			return nil, session.Errorf(session.Invalid,
				"%s is no item of its own: send the item itself, not a reference or a response", path).At(path, "no item")
		}
		m := decoded.Messages[0]
		if id := o.String("id"); id != "" && !isFakeID(id) {
			if ids[id] {
				return nil, duplicateItem(id)
			}
			m.ExternalID, ids[id] = id, true
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// atItem names the item in an error about the messages of a request.
func atItem(path string, err error) error {
	const only = "messages[0]"
	known, is := err.(*session.Error) //nolint:errorlint // of the decoder
	if !is {
		return err
	}
	moved := session.Errorf(known.Code, "%s", strings.Replace(known.Message, only, path, 1))
	for _, f := range known.Fields {
		moved.Fields = append(moved.Fields,
			session.FieldError{Path: strings.Replace(f.Path, only, path, 1), Message: f.Message})
	}
	return moved
}

func duplicateItem(id string) error {
	return session.Errorf(session.Invalid,
		"Duplicate item found with id %s. Remove duplicate items from your input and try again.", jsonx.Clip(id)).
		At("items", "duplicate")
}

// appendItems appends decoded items. An id that the conversation shows already is refused; one of an item that was
// deleted is free again. Codes: Invalid, NotFound, Conflict (in the trash).
func (s *Server) appendItems(ctx context.Context, sess session.Session, msgs []session.Message, idem *store.Idempotency,
) ([]item, error) {
	v, err := s.viewOf(ctx, sess)
	if err != nil {
		return nil, err
	}
	for i := range msgs {
		if id := msgs[i].ExternalID; id != "" {
			if msgs[i].ExternalID, err = v.keyFor(ctx, id, idem != nil); err != nil {
				return nil, err
			}
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

// conversationItems is what a conversation shows of its session.
type conversationItems struct {
	s      *Server
	sess   session.Session
	hidden store.Hidden
	on     []session.ID // the sessions of its path, the newest first
}

func (s *Server) viewOf(ctx context.Context, sess session.Session) (*conversationItems, error) {
	v := &conversationItems{s: s, sess: sess, on: []session.ID{sess.ID}}
	var err error
	if v.hidden, err = s.Store.Hidden(ctx, sess.HeadID); err != nil || sess.ParentKind != session.ParentFork ||
		sess.HeadID == nil {
		return v, err
	}
	spans, err := s.Store.Spans(ctx, *sess.HeadID)
	for i := range spans {
		if !slices.Contains(v.on, spans[i].Session) {
			v.on = append(v.on, spans[i].Session)
		}
	}
	return v, err
}

// keyFor returns the external id of a new item with an id of its own. Codes: Invalid (an item has it, or will have it).
func (v *conversationItems) keyFor(ctx context.Context, id string, retried bool) (string, error) {
	if ref, is := parseMadeID(id); is && ref.Session == v.sess.ID && ref.Seq > v.sess.LastSeq {
		return "", session.Errorf(session.Invalid, "The conversation will give the id %s to another item: leave it out.", id).
			At("items", "not free")
	}
	at, err := v.find(ctx, id)
	switch {
	case err != nil && session.CodeOf(err) != session.NotFound:
		return "", err
	case err == nil && at.shown && !retried:
		return "", duplicateItem(id)
	case err == nil && at.shown:
		return id, nil // of a repeated request, or it is refused
	}
	for n := 1; ; n++ {
		key := store.NumberedKey(id, n)
		if taken, err := v.s.Store.MessageByKey(ctx, v.sess.ID, key); err != nil || taken == nil {
			return key, err
		}
	}
}

// foundItem is an item and its place.
type foundItem struct {
	item
	n     int             // in its message
	of    session.Message // which it is of
	row   int64
	on    bool // its message is on the path
	shown bool // and the item is not left out
}

// find returns the item with an id, one that is shown before one that was deleted. Codes: NotFound.
func (v *conversationItems) find(ctx context.Context, id string) (*foundItem, error) {
	var refs []session.MessageRef
	for _, sess := range v.on {
		of, err := v.s.Store.MessagesByWireID(ctx, sess, id)
		if err != nil {
			return nil, err
		}
		refs = append(refs, of...)
	}
	if ref, is := parseMadeID(id); is && slices.Contains(v.on, ref.Session) {
		refs = append(refs, ref)
	}
	var deleted *foundItem
	for _, ref := range refs {
		at, err := v.itemOf(ctx, ref, id)
		switch {
		case err != nil:
			return nil, err
		case at != nil && at.shown:
			return at, nil
		case at != nil && deleted == nil:
			deleted = at
		}
	}
	if deleted == nil {
		return nil, noItem(id)
	}
	return deleted, nil
}

// itemOf returns the item of a message that has an id; nil: there is none.
func (v *conversationItems) itemOf(ctx context.Context, ref session.MessageRef, id string) (*foundItem, error) {
	m, err := v.s.Store.LargeTreeMessage(ctx, v.sess.ID, ref, v.s.reserveLarge)
	if session.CodeOf(err) == session.NotFound || session.CodeOf(err) == session.Invalid {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := itemsOf(&m)
	n := slices.IndexFunc(all, func(it item) bool { return it.id == id })
	if err != nil || n < 0 {
		return nil, err
	}
	at := &foundItem{item: all[n], n: n, of: m, row: m.RowID}
	if v.sess.HeadID != nil {
		at.on, err = v.s.Store.OnPath(ctx, *v.sess.HeadID, at.row)
	}
	at.shown = at.on && !hides(v.hidden, &at.item)
	return at, err
}

func noItem(id string) error {
	return session.Errorf(session.NotFound, "Item with id '%s' not found.", jsonx.Clip(id))
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

// itemPage collects a page of a conversation's items.
type itemPage struct {
	v     *conversationItems
	most  int
	page  store.MessagePage
	items []item
	size  int
	more  bool // others follow
	ended bool // no message is left to read
}

// begin continues behind an item. Where that is no longer on the path, older and newer ones are told apart by its age.
// Codes: NotFound.
func (l *itemPage) begin(ctx context.Context, after string) error {
	at, err := l.v.find(ctx, after)
	if err != nil {
		return err
	}
	if at.on {
		all, err := itemsOf(&at.of)
		if err != nil {
			return err
		}
		rest := all[at.n+1:]
		if l.page.Descending {
			rest = all[:at.n]
		}
		l.from(at.message)
		l.add(rest)
		return nil
	}
	nearest, err := l.v.s.Store.NearestOn(ctx, l.v.sess.HeadID, at.row)
	switch {
	case err != nil:
		return err
	case nearest == nil:
		l.ended = l.page.Descending
		return nil
	case l.page.Descending:
		m, err := l.v.s.Store.LargeTreeMessage(ctx, l.v.sess.ID, *nearest, l.v.s.reserveLarge)
		if err != nil {
			return err
		}
		all, err := itemsOf(&m)
		if err != nil {
			return err
		}
		l.from(*nearest)
		l.add(all)
		return nil
	}
	l.from(*nearest)
	return nil
}

// from begins the next reading behind a message.
func (l *itemPage) from(ref session.MessageRef) {
	if l.page.Descending {
		l.page.BeforeRef = &ref
	} else {
		l.page.AfterRef = &ref
	}
}

// add adds the items of a message that are shown, in the order of the page.
func (l *itemPage) add(all []item) {
	if l.page.Descending {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	for i := range all {
		switch {
		case hides(l.v.hidden, &all[i]):
		case len(l.items) == l.most || l.size >= itemsSize:
			l.more = true
			return
		default:
			l.items = append(l.items, all[i])
			l.size += len(all[i].json)
		}
	}
}

func (l *itemPage) read(ctx context.Context) error {
	for l.page.Limit = l.most + 1; !l.more && !l.ended; l.page.Limit = mostListedItems {
		if l.size >= itemsSize { // what follows may be as large: the next page says whether it is shown
			l.more = true
			return nil
		}
		msgs, more, err := l.v.s.Store.Messages(ctx, l.v.sess.ID, l.page)
		if err != nil {
			return err
		}
		for i := range msgs {
			all, err := itemsOf(&msgs[i])
			if err != nil {
				return err
			}
			if l.add(all); l.more {
				return nil
			}
		}
		if l.ended = !more; more {
			l.from(msgs[len(msgs)-1].ID)
		}
	}
	return nil
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
	if err == nil && !at.shown && in.idem == nil { // the store knows whether a request with a key is a repeated one
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
