package api

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// A conversation of OpenAI's API is a session, and each of its items a message. The shapes are those of OpenAI's
// OpenAPI document; package problem says errors in its form.

const conversationPrefix = "conv_"

// InConversation is the part of an input that names a conversation in the path.
type InConversation struct {
	Conversation string `path:"conversation_id" doc:"The conversation's id: conv_ and the id of its session" example:"conv_20260211_001"`

	id session.ID
}

func (in *InConversation) sessionID() session.ID { return in.id }

// parsePath parses the id. Codes: NotFound.
func (in *InConversation) parsePath() (err error) {
	name, is := strings.CutPrefix(in.Conversation, conversationPrefix)
	if in.id, err = session.ParseID(name); err != nil || !is {
		return noConversation(in.Conversation)
	}
	return nil
}

func (in *InConversation) missing() error { return noConversation(in.Conversation) }

func noConversation(id string) error {
	return session.Errorf(session.NotFound, "Conversation with id '%s' not found.", jsonx.Clip(id))
}

// conversation reads the session of a conversation. One in the trash is no conversation. Codes: NotFound.
func (s *Server) conversation(ctx context.Context, in *InConversation) (session.Session, error) {
	sess, err := s.Store.Session(ctx, in.id)
	if session.CodeOf(err) == session.NotFound || err == nil && sess.DeletedAt != nil {
		err = noConversation(in.Conversation)
	}
	return sess, err
}

// conversationView is a conversation.
type conversationView struct {
	ID        string            `json:"id" doc:"conv_ and the id of the session"`
	Object    string            `json:"object" enum:"conversation" doc:"conversation"`
	CreatedAt int64             `json:"created_at" doc:"Time of creation, in seconds since 1970"`
	Metadata  map[string]string `json:"metadata" doc:"The members of the session's metadata that are texts"`
}

func replyConversation(sess session.Session, err error) (*output[conversationView], error) {
	if err != nil {
		return nil, err
	}
	v := conversationView{
		ID: conversationPrefix + string(sess.ID), Object: "conversation", CreatedAt: sess.CreatedAt.Unix(),
		Metadata: map[string]string{},
	}
	for name, value := range textsOf(sess.Metadata) {
		v.Metadata[name] = value
	}
	return reply(v, nil)
}

// textsOf returns the members of an object that are texts.
func textsOf(metadata session.JSON) map[string]string {
	texts := map[string]string{}
	o, _ := jsonx.ReadObject(metadata)
	for _, f := range o {
		if jsonx.KindOf(f.Value) == '"' {
			texts[f.Key] = jsonx.ExactText(f.Value)
		}
	}
	return texts
}

// pairs is metadata in OpenAI's form: up to 16 texts.
type pairs map[string]string

// Limits of metadata, in characters.
const (
	mostPairs    = 16
	longestKey   = 64
	longestValue = 512
)

// UnmarshalJSON implements json.Unmarshaler.
func (p *pairs) UnmarshalJSON(raw []byte) error {
	*p = pairs{}
	if jsonx.IsNull(raw) {
		return nil
	}
	o, ok := jsonx.ReadObject(raw)
	if !ok {
		return refuse("must be an object, not %s", jsonx.Describe(raw))
	}
	if len(o) > mostPairs {
		return refuse("has %d pairs; the limit is %d", len(o), mostPairs)
	}
	for _, f := range o {
		if utf8.RuneCountInString(f.Key) > longestKey {
			return refuse("has a key of more than %d characters", longestKey)
		}
		if jsonx.KindOf(f.Value) != '"' {
			return refuse("has a value that is not a string: %s", jsonx.Describe(f.Value))
		}
		value, err := exactText(f.Value)
		if err != nil {
			return err
		}
		if utf8.RuneCountInString(value) > longestValue {
			return refuse("has a value of more than %d characters", longestValue)
		}
		(*p)[f.Key] = value
	}
	return nil
}

// replaceTexts returns an object with other texts; its other members stay.
func replaceTexts(metadata session.JSON, texts pairs) session.JSON {
	o, _ := jsonx.ReadObject(metadata)
	for name := range textsOf(metadata) {
		o.Drop(name)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		o.SetText(name, texts[name])
	}
	return session.JSON(o.Value())
}

type conversationBody struct {
	Items    []jsontext.Value `json:"items,omitempty" maxItems:"20" doc:"The first items, up to 20"`
	Metadata pairs            `json:"metadata,omitempty" doc:"Up to 16 pairs of texts, kept in the session's metadata"`
}

type createConversationInput struct {
	Keyed
	body[conversationBody]
}

func (s *Server) createConversation(ctx context.Context, in *createConversationInput,
) (*output[conversationView], error) {
	msgs, err := decodeItems(in.value.Items)
	if err != nil {
		return nil, err
	}
	sess, err := s.Store.CreateSession(ctx, store.NewSession{
		Metadata: replaceTexts(session.JSON(`{}`), in.value.Metadata), Idem: in.idem,
	})
	if err == nil && len(msgs) > 0 {
		var idem *store.Idempotency
		if in.idem != nil {
			idem = &store.Idempotency{Key: in.idem.Key + "\x00items", Route: in.idem.Route, Body: in.idem.Body}
		}
		_, err = s.appendItems(ctx, sess, msgs, idem)
	}
	return replyConversation(sess, err)
}

func (s *Server) readConversation(ctx context.Context, in *InConversation) (*output[conversationView], error) {
	return replyConversation(s.conversation(ctx, in))
}

type conversationUpdateBody struct {
	Metadata change[pairs] `json:"metadata" required:"true" doc:"Up to 16 pairs of texts, which replace those there were; null: none"`
}

type updateConversationInput struct {
	InConversation
	Keyed
	body[conversationUpdateBody]
}

func (s *Server) updateConversation(ctx context.Context, in *updateConversationInput,
) (*output[conversationView], error) {
	if !in.value.Metadata.given {
		return nil, session.Errorf(session.Invalid, "Missing required parameter: 'metadata'.").At("metadata", "missing")
	}
	for attempt := 1; ; attempt++ {
		sess, err := s.conversation(ctx, &in.InConversation)
		if err != nil {
			return nil, err
		}
		metadata := replaceTexts(sess.Metadata, in.value.Metadata.value)
		after, err := s.Store.PatchSession(ctx, sess.ID,
			store.SessionPatch{Metadata: &metadata, IfRevision: &sess.Revision, Idem: in.idem})
		if session.CodeOf(err) == session.PreconditionFailed && attempt < patchAttempts {
			continue // another write came between
		}
		return replyConversation(after, err)
	}
}

type deleteConversationInput struct {
	InConversation
	Keyed
}

// deletedView says that a conversation is deleted.
type deletedView struct {
	ID      string `json:"id" doc:"Its id"`
	Object  string `json:"object" enum:"conversation.deleted" doc:"conversation.deleted"`
	Deleted bool   `json:"deleted" doc:"true"`
}

func (s *Server) deleteConversation(ctx context.Context, in *deleteConversationInput) (*output[deletedView], error) {
	repeated, err := s.Store.IsRepeated(ctx, in.idem)
	if err == nil && !repeated {
		_, err = s.conversation(ctx, &in.InConversation)
	}
	if err != nil {
		return nil, err
	}
	_, err = s.Store.SetTrash(ctx, in.id, true, nil, in.idem)
	if session.CodeOf(err) == session.NotFound {
		err = noConversation(in.Conversation)
	}
	return reply(deletedView{in.Conversation, "conversation.deleted", true}, err)
}
