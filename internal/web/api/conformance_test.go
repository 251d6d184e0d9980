package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/web/api"
)

// confCase is a case of session behaviour that needs a store; internal/routing has the others
// and counts them all.
type confCase struct {
	ID, Area            string
	Given, When, Expect jsontext.Value
}

func conform(t *testing.T, area string, run func(t *testing.T, c confCase)) {
	t.Helper()
	raw := testkit.Must(os.ReadFile("../../routing/testdata/sessions.json"))(t)
	var all []confCase
	testkit.Check(t, json.Unmarshal(raw, &all))
	n := 0
	for _, c := range all {
		if c.Area == area {
			n++
			t.Run(c.ID, func(t *testing.T) { run(t, c) })
		}
	}
	if n == 0 {
		t.Fatalf("no case of area %s", area)
	}
}

// into reads a part of a case and refuses members that the test does not know of.
func into[T any](t *testing.T, raw jsontext.Value) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// expect compares what was got with what the case wants, as JSON.
func expect(t *testing.T, got any, want jsontext.Value) {
	t.Helper()
	raw := testkit.Must(json.Marshal(got))(t)
	var a, b any
	testkit.Check(t, errors.Join(json.Unmarshal(raw, &a), json.Unmarshal(want, &b)))
	testkit.Equal(t, b, a)
}

// wound is a clock that stands where it was set.
type wound struct{ at atomic.Pointer[time.Time] }

func (w *wound) set(t time.Time) { w.at.Store(&t) }
func (w *wound) now() time.Time  { return *w.at.Load() }

// confRule are reset settings under the original's names.
type confRule struct {
	Mode        routing.Mode
	IdleMinutes *int `json:"idleMinutes"`
}

type confEvent struct {
	At         time.Time
	Kind       string
	Text       string
	Authorized bool
	Concurrent bool
	Class      string
}

// message appends one message at the clock's time.
func (k *kit) message(id, role string, origin session.Origin, content string) {
	k.t.Helper()
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{
		"messages": []any{map[string]any{
			"role": role, "origin": origin,
			"parts": []any{map[string]any{"kind": "text", "text": content}},
		}},
	}))
}

// happen does what an event of the cases says to a session, over HTTP where there is a route.
func (k *kit) happen(id string, e confEvent) {
	k.t.Helper()
	switch e.Kind {
	case "user_message", "queued_message":
		k.message(id, "user", session.Person, "hello")
	case "assistant_message":
		k.message(id, "assistant", session.Model, "hello to you")
	case "tool_result":
		k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{
			"messages": []any{map[string]any{
				"role":  "tool",
				"parts": []any{map[string]any{"kind": "tool_result", "call_id": "c", "text": "42"}},
			}},
		}))
	case "heartbeat_turn", "cron_event", "memory_flush":
		k.message(id, "user", session.Program, "are you there?")
		k.message(id, "assistant", session.Model, "NO_REPLY")
	case "compaction":
		k.want(201, k.do("POST", "/v1/sessions/"+id+"/compactions", `{"strategy":"clear"}`))
	case "metadata_patch":
		k.want(200, k.do("PATCH", "/v1/sessions/"+id, `{"title":"a name","metadata":{"label":"x"},"model":"m"}`))
	case "route_update":
		key := k.want(200, k.do("GET", "/v1/sessions/"+id, nil)).text("key")
		k.want(200, k.do("POST", "/v1/route", map[string]any{
			"key": key, "event": "system",
			"metadata": map[string]any{"channel": "telegram"},
		}))
	case "read":
		k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages", nil))
	case "list":
		k.want(200, k.do("GET", "/v1/sessions", nil))
	case "status":
		k.want(200, k.do("GET", "/v1/keys", nil))
	default:
		k.t.Fatalf("event %s", e.Kind)
	}
}

func TestActivityConformance(t *testing.T) {
	conform(t, "activity", func(t *testing.T, c confCase) {
		type times struct {
			LastActivityAt time.Time  `json:"last_activity_at"`
			LastInboundAt  *time.Time `json:"last_inbound_at,omitempty"`
		}
		given := into[times](t, c.Given)
		when := into[struct{ Events []confEvent }](t, c.When)
		clock := &wound{}
		clock.set(given.LastActivityAt)
		k := newKitAt(t, clock.now, nil)
		id := k.session(`{"key":"main"}`)
		k.message(id, "user", session.Person, "first")
		k.message(id, "assistant", session.Model, "well")
		for _, e := range when.Events {
			clock.set(e.At)
			k.happen(id, e)
		}
		after := testkit.Must(k.store.Session(t.Context(), session.ID(id)))(t)
		got := times{LastActivityAt: after.ActiveAt.Time}
		if bytes.Contains(c.Expect, []byte("inbound")) {
			got.LastInboundAt = &after.InboundAt.Time
		}
		expect(t, got, c.Expect)
	})
}

func TestRoutingConformance(t *testing.T) {
	type generation struct {
		ID             string
		StartedAt      time.Time `json:"started_at"`
		LastActivityAt time.Time `json:"last_activity_at"`
	}
	type given struct {
		Zone       string
		Config     struct{ Reset *confRule }
		Key        string
		Generation *generation
		RunActive  bool `json:"run_active"`
	}
	conform(t, "routing", func(t *testing.T, c confCase) {
		g := into[given](t, c.Given)
		when := into[struct{ Events []confEvent }](t, c.When)
		want := into[struct {
			Routed      []string
			Generations []struct {
				ID        string
				EndReason *string    `json:"end_reason"`
				EndedAt   *time.Time `json:"ended_at"`
				Ended     bool
			}
		}](t, c.Expect)
		zone := testkit.Must(routing.LoadZone(g.Zone))(t)
		rules := routing.Config{Zone: zone}
		if r := g.Config.Reset; r != nil {
			rules.Reset.Base = &routing.Rule{Mode: r.Mode, IdleMinutes: r.IdleMinutes}
		}
		clock := &wound{}
		clock.set(when.Events[0].At)
		k := newKitAt(t, clock.now, func(d *api.Deps) { d.Routing = rules })

		names := map[string]string{}
		name := func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprintf("g%d", len(names)+1)
			}
			return names[id]
		}
		if g.Generation != nil {
			clock.set(g.Generation.StartedAt)
			r := k.want(201, k.do("POST", "/v1/route", map[string]any{"key": g.Key}))
			name(r.text("session_id"))
			clock.set(g.Generation.LastActivityAt)
			k.message(r.text("session_id"), "user", session.Person, "before")
			if !g.RunActive {
				k.message(r.text("session_id"), "assistant", session.Model, "answered")
			}
		}
		var routed []string
		for i := 0; i < len(when.Events); i++ {
			e := when.Events[i]
			clock.set(e.At)
			if e.Concurrent {
				together := when.Events[i:]
				for _, id := range k.routeAtOnce(g.Key, together) {
					routed = append(routed, name(id))
				}
				break
			}
			routed = append(routed, name(k.arrive(g.Key, e)))
		}
		if !slices.Equal(routed, want.Routed) {
			t.Errorf("routed to %v, want %v", routed, want.Routed)
		}
		list := k.want(200, k.do("GET", "/v1/keys/"+g.Key+"?order=asc", nil))
		all := list.at("data").([]any)
		if len(all) != len(want.Generations) {
			t.Fatalf("%d generations: %s", len(all), list.raw)
		}
		for i, w := range want.Generations {
			sess := all[i].(map[string]any)
			id, reason := sess["id"].(string), sess["end_reason"]
			if name(id) != w.ID || (sess["ended_at"] != nil) != (w.Ended || w.EndReason != nil) {
				t.Errorf("generation %d: %v", i, sess)
			}
			if w.EndReason != nil && reason != *w.EndReason {
				t.Errorf("%s ended for %v, not %s", w.ID, reason, *w.EndReason)
			}
			if w.EndedAt != nil && sess["ended_at"] != session.At(*w.EndedAt).Format("2006-01-02T15:04:05.000Z07:00") {
				t.Errorf("%s ended at %v, not %v", w.ID, sess["ended_at"], w.EndedAt)
			}
			k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages", nil)) // it stays readable
		}
	})
}

// routeAtOnce routes several messages of persons at the same moment.
func (k *kit) routeAtOnce(key string, events []confEvent) []string {
	k.t.Helper()
	ids := make([]string, len(events))
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i, e := range events {
		wg.Go(func() {
			<-begin
			r := k.do("POST", "/v1/route", map[string]any{"key": key, "text": e.Text, "authorized": e.Authorized})
			ids[i] = r.text("session_id")
		})
	}
	close(begin)
	wg.Wait()
	return ids
}

// arrive lets an event come in at a key and gives the session that is current after it.
func (k *kit) arrive(key string, e confEvent) string {
	k.t.Helper()
	body := map[string]any{"key": key}
	switch e.Kind {
	case "user_message":
		body["text"], body["authorized"] = e.Text, e.Authorized
	case "rpc_reset":
		body["event"] = "reset"
	case "cron_run", "hook_run": // the key says it
	case "run_failed":
		body["event"] = "failed"
		body["error"] = map[string]string{
			"compaction_failure": "Context overflow: Summarization failed: 400 prompt is too long",
			"role_order":         "messages: roles must alternate",
			"corrupt":            "Please ensure that function call turn comes immediately after a user turn",
		}[e.Class]
	case "metadata_patch", "heartbeat_turn":
		body["event"] = "system"
		id := k.do("POST", "/v1/route", body).text("session_id")
		k.happen(id, e)
		return id
	default:
		k.t.Fatalf("event %s", e.Kind)
	}
	r := k.do("POST", "/v1/route", body)
	if r.StatusCode != 200 && r.StatusCode != 201 {
		k.t.Fatalf("%s", r.raw)
	}
	return r.text("session_id")
}

// confEntry is a session's entry under the original's names.
type confEntry struct {
	InputTokens      *int64  `json:"inputTokens"`
	OutputTokens     *int64  `json:"outputTokens"`
	TotalTokens      *int64  `json:"totalTokens"`
	TotalTokensFresh *bool   `json:"totalTokensFresh"`
	ContextTokens    *int64  `json:"contextTokens"`
	ModelProvider    *string `json:"modelProvider"`
	Model            *string `json:"model"`
	CompactionCount  int64   `json:"compactionCount"`
}

func (e confEntry) counters() routing.Counters {
	c := routing.Counters{
		InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, TotalTokens: e.TotalTokens,
		Fresh: true, Window: e.ContextTokens, Compactions: e.CompactionCount,
	}
	if e.TotalTokensFresh != nil {
		c.Fresh = *e.TotalTokensFresh
	}
	if e.ModelProvider != nil {
		c.Provider = *e.ModelProvider
	}
	if e.Model != nil {
		c.Model = *e.Model
	}
	return c
}

func TestUsageConformance(t *testing.T) {
	type usage struct {
		Input, Output, CacheRead, CacheWrite, Total int64
	}
	conform(t, "usage", func(t *testing.T, c confCase) {
		counters := into[struct{ Entry confEntry }](t, c.Given).Entry.counters()
		w := into[struct {
			Usage           *usage
			Calls           []usage
			Provider, Model string
			ContextWindow   *int64 `json:"context_window"`
		}](t, c.When)
		if w.Usage != nil {
			w.Calls = append(w.Calls, *w.Usage)
		}
		for _, u := range w.Calls {
			counters.Report(routing.Usage{
				Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Total: u.Total,
				Provider: w.Provider, Model: w.Model, Window: w.ContextWindow,
			})
		}
		expect(t, map[string]any{"entry": map[string]any{
			"inputTokens": counters.InputTokens, "outputTokens": counters.OutputTokens, "totalTokens": counters.TotalTokens,
			"totalTokensFresh": counters.Fresh, "contextTokens": counters.Window, "modelProvider": counters.Provider,
			"model": counters.Model,
		}}, c.Expect)
	})
}

func TestListingConformance(t *testing.T) {
	type entry struct {
		confEntry
		Key            string
		LastActivityAt *time.Time `json:"last_activity_at"`
		Label          string
		GroupChannel   string `json:"groupChannel"`
		Subject, Space string
	}
	type given struct {
		Entry          confEntry
		ModelWindow    *int64 `json:"model_window"`
		DefaultWindow  int64  `json:"default_window"`
		Entries        []entry
		Now            time.Time
		ExistingLabels []string `json:"existing_labels"`
	}
	type when struct {
		Op               string
		ActiveMinutes    int64 `json:"active_minutes"`
		Limit            *int64
		Search           *string
		DisplayName      *string   `json:"display_name"`
		Subject          *string   `json:"subject"`
		FirstUserMessage string    `json:"first_user_message"`
		SessionID        string    `json:"session_id"`
		UpdatedAt        time.Time `json:"updated_at"`
		Labels           []string
	}
	conform(t, "listing", func(t *testing.T, c confCase) {
		g, w := into[given](t, c.Given), into[when](t, c.When)
		switch w.Op {
		case "status":
			counters := g.Entry.counters()
			window := g.DefaultWindow
			if g.ModelWindow != nil {
				window = *g.ModelWindow
			}
			f := counters.Fullness(window)
			expect(t, map[string]any{
				"totalTokens": f.TotalTokens, "percentUsed": f.PercentUsed,
				"remainingTokens": f.RemainingTokens,
			}, c.Expect)
		case "rows":
			var rows []any
			for _, e := range g.Entries {
				names := routing.Names{Subject: e.Subject, GroupChannel: e.GroupChannel, Space: e.Space}
				row := map[string]any{"kind": routing.RowKind(e.Key, &names), "displayName": nil}
				if display := routing.DisplayName(e.Key, &names); display != "" {
					row["displayName"] = display
				}
				rows = append(rows, row)
			}
			expect(t, map[string]any{"rows": rows}, c.Expect)
		case "list":
			clock := &wound{}
			clock.set(g.Now)
			k := newKitAt(t, clock.now, nil)
			for _, e := range g.Entries {
				clock.set(*e.LastActivityAt)
				k.session(map[string]any{"key": e.Key})
				if e.Label != "" {
					k.want(200, k.do("PATCH", "/v1/keys/"+e.Key, map[string]any{"label": e.Label}))
				}
			}
			clock.set(g.Now)
			r := k.want(200, k.do("GET", fmt.Sprintf("/v1/keys?active_minutes=%d", w.ActiveMinutes), nil))
			keys := []string{}
			for _, row := range r.at("data").([]any) {
				keys = append(keys, row.(map[string]any)["key"].(string))
			}
			expect(t, map[string]any{"keys": keys}, c.Expect)
		case "title":
			expect(t, map[string]any{"title": routing.Title("", "", w.FirstUserMessage, w.SessionID, w.UpdatedAt)}, c.Expect)
		case "set_labels":
			k := newKit(t, nil)
			for i, label := range g.ExistingLabels {
				k.session(map[string]any{"key": fmt.Sprintf("old-%d", i)})
				k.want(200, k.do("PATCH", fmt.Sprintf("/v1/keys/old-%d", i), map[string]any{"label": label}))
			}
			results := []any{}
			for i, label := range w.Labels {
				k.session(map[string]any{"key": fmt.Sprintf("new-%d", i)})
				switch r := k.do("PATCH", fmt.Sprintf("/v1/keys/new-%d", i), map[string]any{"label": label}); r.StatusCode {
				case 200:
					results = append(results, map[string]any{"label": r.text("label")})
				case 409:
					results = append(results, map[string]any{"error": "conflict"})
				default:
					if r.StatusCode != 422 || r.text("errors.0.path") != "label" {
						t.Fatalf("%s", r.raw)
					}
					results = append(results, map[string]any{"error": "invalid_label"})
				}
			}
			expect(t, map[string]any{"results": results}, c.Expect)
		default:
			t.Fatalf("op %s", w.Op)
		}
	})
}

// What is counted from calls and compactions of a real session is what the rule alone gives.
func TestCountersOfARealSession(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"key":"main"}`)
	call := func(body string) { k.want(201, k.do("POST", "/v1/sessions/"+id+"/calls", body)) }
	full := func() any { return k.want(200, k.do("GET", "/v1/keys", nil)).at("data.0.context.total_tokens") }
	if full() != nil {
		t.Errorf("before any call: %v", full())
	}
	call(`{"provider":"anthropic","model":"m","input_tokens":1200,"cache_read_tokens":45000,"cache_write_tokens":800,"output_tokens":300}`)
	call(`{"provider":"anthropic","model":"m","purpose":"title","input_tokens":99,"output_tokens":3}`)
	if full() != 47000.0 {
		t.Errorf("after a call: %v", full())
	}
	call(`{"provider":"anthropic","model":"m","input_tokens":0,"output_tokens":50}`)
	if full() != nil {
		t.Errorf("after a call without a prompt figure: %v", full())
	}
	k.message(id, "user", session.Person, strings.Repeat("hello ", 50))
	k.message(id, "assistant", session.Model, "Hello.") // else the turn is open and stays
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/compactions", `{"strategy":"clear"}`))
	steps, err := k.store.Counters(context.Background(), session.ID(id))
	if err != nil || len(steps) != 3 || steps[2].Compaction == nil {
		t.Errorf("%+v, %v", steps, err)
	}
}
