package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

type routeBody struct {
	Key      name `json:"key,omitempty" doc:"A routing key; default: built from the fields below"`
	Agent    name `json:"agent,omitempty" doc:"The agent's name; default: the configured one"`
	Channel  name `json:"channel,omitempty" doc:"The chat program, like telegram or discord"`
	Account  name `json:"account,omitempty" doc:"The account of the channel that received the message; default: the only one"`
	ChatType name `json:"chat_type,omitempty" doc:"Kind of conversation: direct (the default), group, channel, room"`
	Peer     name `json:"peer,omitempty" doc:"The id of the group or person; default for a direct message: the sender"`
	Topic    name `json:"topic,omitempty" doc:"Id of a forum topic"`
	Thread   name `json:"thread,omitempty" doc:"Id of a thread in the conversation"`
	Job      name `json:"job,omitempty" doc:"A scheduled job's id"`
	Hook     hook `json:"hook,omitzero" doc:"Key of a webhook; true: a new key for each request"`
	From     name `json:"from,omitempty" doc:"Instead of these fields: the origin as older connectors write it, like group:ID"`

	Text       text   `json:"text,omitempty" doc:"The person's text, without any wrapper"`
	Sender     name   `json:"sender,omitempty" doc:"The id of the person who sent the message"`
	Authorized *bool  `json:"authorized,omitempty" doc:"The sender may reset the session; default: by routing.commanders in the configuration"`
	At         moment `json:"at,omitzero" doc:"Time of arrival; default: now"`
	Timezone   name   `json:"timezone,omitempty" doc:"Time zone of the daily boundary; default: the configured one"`
	Event      string `json:"event,omitempty" enum:"message,system,run,reset,failed" doc:"message (the default); system: a heartbeat, which neither resets nor refreshes; run: a job or webhook starts, always in a new session (the default of their keys); reset: a program requests a new session; failed: a run ended in error"`
	Error      text   `json:"error,omitempty" doc:"Of event failed: the provider's error text"`
	Running    *bool  `json:"running,omitempty" doc:"A turn is running; default: derived from the last message"`
	Metadata   object `json:"metadata,omitempty" doc:"Fields that the connector knows, like subject and displayName; merged into the session's metadata. Empty values change nothing"`
}

// hook is a webhook's own key, or true.
type hook struct {
	given bool
	key   name
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *hook) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" {
		h.given = true
		return nil
	}
	if string(raw) == "false" || string(raw) == "null" {
		return nil
	}
	h.given = true
	return h.key.UnmarshalJSON(raw)
}

// Schema implements huma.SchemaProvider.
func (hook) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeBoolean}}}
}

// routeView says which session to use, and why.
type routeView struct {
	Key        string          `json:"key"`
	SessionID  session.ID      `json:"session_id" doc:"The session to use"`
	Generation int64           `json:"generation"`
	Created    bool            `json:"created" doc:"This request made the session"`
	Reason     *string         `json:"reason" enum:"daily,idle,command,rpc,run,overflow,role_order,corrupt" doc:"Why the previous session ended; null: no session ended"`
	Previous   *session.ID     `json:"previous" doc:"The session that ended"`
	Trigger    *string         `json:"trigger" doc:"The reset command that the text began with"`
	Text       string          `json:"text" doc:"The text for the model, without a reset command"`
	Greet      bool            `json:"greet" doc:"A reset without further text: the agent may greet"`
	Model      *string         `json:"model" doc:"provider/model for the next run; null: the agent chooses"`
	Type       routing.Type    `json:"type" enum:"dm,group,thread" doc:"Kind of conversation"`
	Source     routing.Source  `json:"source" enum:"chat,cron,hook,subagent,acp" doc:"What the key stands for"`
	ParentKey  *string         `json:"parent_key" doc:"Of a thread: the conversation above it"`
	Failure    *string         `json:"failure" enum:"overflow,compaction_failure,role_order,corrupt,other" doc:"Of event failed: what the error means"`
	Freshness  freshnessView   `json:"freshness" doc:"Whether the session is out of date, and when it will be"`
	Session    session.Session `json:"session" doc:"The session to use"`
}

// freshnessView says why the previous session is stale or not.
type freshnessView struct {
	Stale         bool          `json:"stale" doc:"The next message begins a new session"`
	Boundary      *session.Time `json:"boundary" doc:"The daily boundary in force; null: no daily rule"`
	IdleExpiresAt *session.Time `json:"idle_expires_at" doc:"Time at which the session becomes stale; null: no idle rule"`
}

type routeInput struct {
	Keyed
	body[routeBody]
}

type routeOutput struct {
	Status int
	Body   routeView
}

// aheadOfTime is how far the time of a request may lie ahead of the daemon's clock.
const aheadOfTime = 24 * time.Hour

// routeMessage finds or creates the session of an incoming message. Codes: Invalid.
func (s *Server) routeMessage(ctx context.Context, in *routeInput) (*routeOutput, error) {
	b := &in.value
	key, err := b.keyBy(&s.Routing)
	if err != nil {
		return nil, err
	}
	arrival, err := s.arrival(b, key)
	if err != nil {
		return nil, err
	}
	var decided routing.Decision
	done, err := s.Store.Route(ctx, store.Route{
		Key: key, Idem: in.idem,
		Decide: func(current *store.Generation) (store.Turnover, error) {
			decided = s.Routing.Decide(generation(current, b.Running, arrival.At), arrival)
			return turnover(current, decided, arrival, session.JSON(b.Metadata))
		},
	})
	if err != nil {
		return nil, err
	}
	out := &routeOutput{Status: http.StatusOK, Body: s.routed(key, b, arrival, decided, done)}
	if done.Created {
		out.Status = http.StatusCreated
		if s.Changed != nil {
			s.Changed(done.Session.ID)
		}
	}
	return out, nil
}

// routed builds the answer. It parses the text again, also for a repeated request.
func (s *Server) routed(key string, b *routeBody, a routing.Arrival, d routing.Decision, done store.Routed) routeView {
	v := routeView{
		Key: key, SessionID: done.Session.ID, Generation: done.Session.Generation, Created: done.Created,
		Reason: notEmpty(done.Reason), Previous: notEmpty(done.Previous), Text: string(b.Text),
		Type: a.Class.Type, Source: a.Class.Source, ParentKey: notEmpty(a.Class.Parent),
		Model: notEmpty(chosenModel(done.Session.Metadata)), Session: done.Session,
		Freshness: freshnessView{
			Stale: !done.Created && !d.Freshness.Fresh && d.Policy.Mode != "", Boundary: timeOf(d.Freshness.Boundary),
			IdleExpiresAt: timeOf(d.Freshness.IdleExpiresAt),
		},
	}
	if a.Event == routing.EventMessage {
		if t := s.Routing.Triggered(a.Message); t.Reset {
			v.Trigger, v.Text, v.Greet = &t.Word, t.Remainder, t.Remainder == ""
		}
	}
	if a.Event == routing.EventFailed {
		class := string(routing.Recover(a.Error).Class)
		v.Failure = &class
	}
	return v
}

func notEmpty[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

func timeOf(t *time.Time) *session.Time {
	if t == nil {
		return nil
	}
	at := session.At(*t)
	return &at
}

// keyBy returns the key that the body names or describes. Codes: Invalid.
func (b *routeBody) keyBy(rules *routing.Config) (string, error) {
	given := 0
	for _, is := range []bool{b.Key != "", b.Job != "", b.Hook.given, b.From != "", b.Peer != "" ||
		b.Channel != "" && b.From == "" && b.Key == ""} {
		if is {
			given++
		}
	}
	agent, kind := string(b.Agent), strings.ToLower(string(b.ChatType))
	var key string
	var err error
	switch {
	case given == 0 && b.Sender == "":
		return "", session.Errorf(session.Invalid,
			"the request names no conversation: give key, or channel and peer, or job, or hook").At("key", "missing")
	case given > 1:
		return "", session.Errorf(session.Invalid,
			"key, peer, job, hook and from exclude one another: give one of them").At("key", "given more than once")
	case b.Key != "":
		key, err = rules.Canonical(string(b.Key))
	case b.Job != "":
		key, err = rules.Job(agent, string(b.Job))
	case b.Hook.given:
		key, err = rules.Hook(agent, string(b.Hook.key), newUUID())
	case b.From != "":
		key, err = rules.Inbound(agent, string(b.From), string(b.Channel), kind)
	case kind == "" || kind == "direct" || kind == routing.KindDirect:
		key, err = rules.Direct(agent, string(b.Channel), string(b.Account), cmp.Or(string(b.Peer), string(b.Sender)))
	default:
		key, err = rules.Peer(agent, kind, string(b.Channel), string(b.Peer), string(b.Topic))
	}
	if err == nil && b.Thread != "" {
		key, _, err = rules.Thread(key, string(b.Thread), true)
	}
	return key, err
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// arrival builds the router's input. Codes: Invalid.
func (s *Server) arrival(b *routeBody, key string) (routing.Arrival, error) {
	class := routing.Classify(key)
	a := routing.Arrival{
		Event: routing.Event(b.Event), At: session.At(s.Now()).Time, Error: string(b.Error), Class: class,
		Channel: string(b.Channel), Zone: s.Routing.Zone,
		Message: routing.Message{
			Text: string(b.Text), InGroup: class.Type != routing.TypeDirect,
			Authorized: s.Routing.MayReset(string(b.Channel), string(b.Sender)),
		},
	}
	if b.Authorized != nil {
		a.Message.Authorized = *b.Authorized
	}
	switch {
	case a.Event == "" && (class.Source == routing.SourceCron || class.Source == routing.SourceHook):
		a.Event = routing.EventRun
	case a.Event == "":
		a.Event = routing.EventMessage
	}
	if err := oneOf("event", string(a.Event), "message", "system", "run", "reset", "failed"); err != nil {
		return a, err
	}
	if !b.At.IsZero() {
		if b.At.After(a.At.Add(aheadOfTime)) {
			return a, session.Errorf(session.Invalid, "at is more than a day ahead of the daemon's clock (%s)",
				session.At(a.At).Format(time.RFC3339)).
				At("at", "too far ahead")
		}
		a.At = b.At.Time.Time
	}
	if b.Timezone != "" {
		zone, err := routing.LoadZone(string(b.Timezone))
		if err != nil {
			return a, err
		}
		a.Zone = zone
	}
	if a.Zone == nil {
		a.Zone = time.UTC
	}
	return a, nil
}

func generation(g *store.Generation, running *bool, now time.Time) *routing.Generation {
	if g == nil {
		return nil
	}
	out := &routing.Generation{StartedAt: g.CreatedAt.Time, ActiveAt: g.ActiveAt.Time}
	if g.InboundAt != nil {
		out.InboundAt = g.InboundAt.Time
	}
	if running != nil {
		out.Running = *running
	} else if g.HeadRole != "" {
		out.Running = routing.TurnRuns(g.HeadRole, g.HeadFinish, g.HeadAt.Time, now)
	}
	return out
}

// turnover builds the store's part of a decision: what a new generation inherits, or the
// metadata of a generation that continues.
func turnover(current *store.Generation, d routing.Decision, a routing.Arrival,
	told session.JSON,
) (store.Turnover, error) {
	t := store.Turnover{New: d.New, Reason: string(d.Reason), At: session.At(a.At)}
	if !d.New {
		if merged := tell(current.Metadata, told); string(merged) != string(current.Metadata) {
			t.Metadata = merged
		}
		return t, nil
	}
	next := store.NewSession{Kind: kindOf(a.Class.Source)}
	before := map[string]jsontext.Value{}
	if current != nil {
		next.Settings, next.Directory, next.Project, next.Window = current.Settings, current.Directory, current.Project,
			current.Window
		if current.ParentKind == session.ParentChild {
			next.ParentID, next.ParentKind = current.ParentID, current.ParentKind
		}
		if err := json.Unmarshal(current.Metadata, &before); err != nil {
			return t, fmt.Errorf("metadata of %s: %w", current.ID, err)
		}
	}
	metadata, err := session.MarshalPlain(routing.Carry(before, d.Trigger.Model))
	if err != nil {
		return t, fmt.Errorf("metadata of the next generation: %w", err)
	}
	next.Metadata = tell(metadata, told)
	if next.Model = chosenModel(next.Metadata); next.Model != "" {
		next.Provider, next.Model = routing.SplitModel(next.Model)
	}
	t.Next = next
	return t, nil
}

func kindOf(s routing.Source) string {
	switch s {
	case routing.SourceCron, routing.SourceHook, routing.SourceSubagent:
		return string(s)
	}
	return "chat"
}

// tell merges a connector's metadata into the stored one. Connectors often know less than
// before, so empty values erase nothing.
func tell(metadata, told session.JSON) session.JSON {
	if len(told) == 0 {
		return metadata
	}
	var news map[string]jsontext.Value
	if json.Unmarshal(told, &news) != nil {
		return metadata
	}
	for field, value := range news {
		if slices.Contains([]string{`""`, `null`, `{}`, `[]`}, string(value)) {
			delete(news, field)
		}
	}
	if len(news) == 0 {
		return metadata
	}
	return jsonx.Patch(metadata, session.JSONOf(news))
}

// chosenModel returns the model that a person chose for a key, "" without a choice.
func chosenModel(metadata session.JSON) string {
	var m struct {
		Provider string `json:"providerOverride"`
		Model    string `json:"modelOverride"`
	}
	if json.Unmarshal(metadata, &m) != nil || m.Model == "" || m.Provider == "" {
		return m.Model
	}
	return m.Provider + "/" + m.Model
}
