package api

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// KeyView is a routing key as lists show it.
type KeyView struct {
	Key         string           `json:"key"`
	Label       string           `json:"label,omitempty" doc:"A person's name for the key; unique"`
	Kind        string           `json:"kind" enum:"direct,group,global,unknown" doc:"Kind of conversation"`
	DisplayName *string          `json:"display_name" doc:"A name for people, from the connector; null: none"`
	Title       string           `json:"title" doc:"Title of the row, for people"`
	SessionID   session.ID       `json:"session_id" doc:"The current session of the key"`
	Generation  int64            `json:"generation"`
	Messages    int64            `json:"message_count" doc:"Messages of the current session"`
	Model       string           `json:"model,omitempty"`
	StartedAt   session.Time     `json:"started_at" doc:"Time the current session began"`
	ActiveAt    session.Time     `json:"active_at" doc:"Time of the last message in a turn that a person began"`
	InboundAt   *session.Time    `json:"inbound_at"`
	Stale       bool             `json:"stale" doc:"The next message begins a new session"`
	Context     routing.Fullness `json:"context" doc:"How full the window is, by the last report"`
}

// Keys returns the rows of a list of keys; now decides whether they are stale. It writes nothing.
func Keys(ctx context.Context, s *store.Store, rules *routing.Config, catalogue Catalogue, now time.Time,
	keys []store.Key,
) ([]KeyView, error) {
	rows := make([]KeyView, len(keys))
	for i := range keys {
		k := &keys[i]
		counters, err := s.Counters(ctx, k.Session.ID)
		if err != nil {
			return nil, err
		}
		rows[i] = keyRow(k, rules, now)
		window := int64(routing.DefaultWindow)
		if info, known := catalogue.Model(k.Session.Model); known {
			window = info.Window
		}
		rows[i].Context = countersOf(counters).Fullness(window)
	}
	return rows, nil
}

func keyRow(k *store.Key, rules *routing.Config, now time.Time) KeyView {
	sess := &k.Session
	names := namesOf(sess.Metadata)
	names.Label = cmp.Or(k.Label, names.Label)
	display := routing.DisplayName(sess.Key, &names)
	given := display
	if sess.TitleSource != "first_message" {
		given = cmp.Or(display, sess.Title)
	}
	class := routing.Classify(sess.Key)
	inbound := sess.CreatedAt
	if sess.InboundAt != nil {
		inbound = *sess.InboundAt
	}
	zone := rules.Zone
	if zone == nil {
		zone = time.UTC
	}
	fresh := rules.Reset.Policy(class.Type, cmp.Or(class.Channel, names.Channel)).Fresh(now, inbound.Time,
		sess.ActiveAt.Time, zone)
	title := string(sess.ID) // which says the day already
	if given != "" || names.Subject != "" || sess.Title != "" {
		title = routing.Title(given, names.Subject, sess.Title, title, sess.UpdatedAt.Time)
	}
	return KeyView{
		Key: sess.Key, Label: k.Label, Kind: routing.RowKind(sess.Key, &names), DisplayName: notEmpty(display), Title: title,
		SessionID: sess.ID, Generation: sess.Generation, Messages: sess.MessageCount, Model: sess.Model,
		StartedAt: sess.CreatedAt, ActiveAt: sess.ActiveAt, InboundAt: sess.InboundAt, Stale: !fresh.Fresh,
	}
}

// namesOf parses the names in metadata from connectors, and skips values of another form.
func namesOf(metadata session.JSON) routing.Names {
	var members map[string]jsontext.Value
	var n routing.Names
	if json.Unmarshal(metadata, &members) != nil {
		return n
	}
	for field, to := range map[string]any{
		"displayName": &n.DisplayName, "label": &n.Label, "subject": &n.Subject, "groupChannel": &n.GroupChannel,
		"space":   &n.Space,
		"groupId": &n.GroupID, "channel": &n.Channel, "chatType": &n.ChatType, "origin": &n.Origin,
	} {
		if raw, there := members[field]; there {
			_ = json.Unmarshal(raw, to)
		}
	}
	return n
}

// countersOf sums up the calls and compactions of a generation, in their order.
func countersOf(steps []store.CounterStep) *routing.Counters {
	var c routing.Counters
	c.Fresh = true
	for _, s := range steps {
		switch {
		case s.Call != nil:
			c.Report(routing.Usage{
				Input: s.Call.InputTokens, Output: s.Call.OutputTokens, CacheRead: s.Call.CacheReadTokens,
				CacheWrite: s.Call.CacheWriteTokens,
				Provider:   s.Call.Provider, Model: s.Call.Model,
			})
		case s.Compaction != nil:
			after := &s.Compaction.TokensAfter
			if *after == 0 {
				after = nil
			}
			c.Compacted(after)
		}
	}
	return &c
}

type listKeysInput struct {
	Paged
	Query         string `query:"q" doc:"Part of the key, the label, a name, the title or the session's id"`
	ActiveMinutes int64  `query:"active_minutes" minimum:"1" maximum:"52704000" doc:"Only keys active in the last so many minutes"`
	All           bool   `query:"all" doc:"List the keys global and unknown, too"`
}

func (s *Server) listKeys(ctx context.Context, in *listKeysInput) (*listOutput[KeyView], error) {
	filter := store.KeyFilter{Query: in.Query, All: in.All}
	if in.ActiveMinutes > 0 {
		since := session.At(s.Now().Add(-time.Duration(in.ActiveMinutes) * time.Minute))
		filter.Since = &since
	}
	data, next, err := s.Store.Keys(ctx, filter, in.page(false))
	if err != nil {
		return nil, err
	}
	rows, err := Keys(ctx, s.Store, &s.Routing, s.Catalogue, s.Now(), data)
	return replyList(rows, next, err)
}

// InKey is the part of an input that names a key by the path, percent-encoded where it holds
// a slash.
type InKey struct {
	Key string `path:"key" doc:"The routing key; a short form like main is accepted" example:"agent:main:main"`
}

type keyGenerations struct {
	Key        string            `json:"key"`
	Label      string            `json:"label,omitempty" doc:"A person's name for the key; unique"`
	Type       routing.Type      `json:"type" enum:"dm,group,thread" doc:"Kind of conversation"`
	Source     routing.Source    `json:"source" enum:"chat,cron,hook,subagent,acp" doc:"What the key stands for"`
	ParentKey  *string           `json:"parent_key" doc:"Of a thread: the conversation above it"`
	Policy     policyView        `json:"policy" doc:"When the key begins a new session"`
	Data       []session.Session `json:"data" doc:"The sessions of the key, newest first"`
	NextCursor *string           `json:"next_cursor" doc:"Send it as cursor to get the next page; null: this is the last page"`
}

type policyView struct {
	Mode        routing.Mode `json:"mode" enum:"daily,idle,both,off" doc:"daily (at at_hour), idle (after idle_minutes), both, off"`
	AtHour      int          `json:"at_hour" doc:"Local hour of the daily reset, 0 to 23, in mode daily and both"`
	IdleMinutes *int         `json:"idle_minutes" doc:"Minutes without a message after which a new session begins; null: no idle rule"`
}

type getKeyInput struct {
	InKey
	Paged
}

func (s *Server) readKey(ctx context.Context, in *getKeyInput) (*output[keyGenerations], error) {
	key, err := s.Routing.Canonical(in.Key)
	if err != nil {
		return nil, err
	}
	label, data, next, err := s.Store.Generations(ctx, key, in.page(false))
	if err != nil {
		return nil, err
	}
	class := routing.Classify(key)
	policy := s.Routing.Reset.Policy(class.Type, class.Channel)
	page := ListOf(data, next)
	return reply(keyGenerations{
		Key: key, Label: label, Type: class.Type, Source: class.Source, ParentKey: notEmpty(class.Parent),
		Policy: policyView{policy.Mode, policy.AtHour, policy.IdleMinutes}, Data: page.Data, NextCursor: page.NextCursor,
	}, nil)
}

type keyPatchBody struct {
	Label change[name] `json:"label,omitempty" doc:"1 to 64 characters, unique among keys; null removes it"`
}

type patchKeyInput struct {
	InKey
	body[keyPatchBody]
}

func (s *Server) patchKey(ctx context.Context, in *patchKeyInput) (*output[keyGenerations], error) {
	key, err := s.Routing.Canonical(in.Key)
	if err != nil {
		return nil, err
	}
	if in.value.Label.given {
		label, err := routing.CheckLabel(string(in.value.Label.value))
		if err != nil {
			return nil, err
		}
		if err := s.Store.SetKeyLabel(ctx, key, label); err != nil {
			return nil, err
		}
	}
	return s.readKey(ctx, &getKeyInput{InKey: in.InKey})
}
