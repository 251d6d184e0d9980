package api_test

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/web/api"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	return testkit.Must(routing.LoadZone("Europe/Berlin"))(t)
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	return testkit.Must(time.Parse(time.RFC3339, s))(t)
}

// Thirty messages hit a key after its day has ended; one session is made, and all get it.
func TestMessagesAtOnceGetOneNewSession(t *testing.T) {
	clock := &wound{}
	clock.set(at(t, "2026-07-14T20:00:00Z"))
	k := newKitAt(t, clock.now, func(d *api.Deps) { d.Routing.Zone = berlin(t) })
	old := k.want(201, k.do("POST", "/v1/route", `{"key":"main","text":"hi"}`)).text("session_id")
	k.message(old, "user", session.Person, "hi")
	k.message(old, "assistant", session.Model, "hello")
	clock.set(at(t, "2026-07-15T08:00:00Z"))
	var mu sync.Mutex
	got, created := map[string]int{}, 0
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			r := k.do("POST", "/v1/route", `{"key":"agent:main:main","text":"good morning"}`)
			mu.Lock()
			defer mu.Unlock()
			got[r.text("session_id")]++
			if r.StatusCode == 201 {
				created++
			}
		})
	}
	wg.Wait()
	if len(got) != 1 || got[old] != 0 || created != 1 || k.count(`SELECT COUNT(*) FROM sessions`) != 2 {
		t.Errorf("routed to %v, created %d", got, created)
	}
}

func TestRouteCarriesSettingsIntoTheNextSession(t *testing.T) {
	k := newKit(t, func(d *api.Deps) {
		d.Routing.Models = routing.Models{
			Allowed: []string{"openai/gpt-4o-mini"},
			Aliases: map[string]string{"mini": "openai/gpt-4o-mini"},
		}
	})
	first := k.want(201, k.do("POST", "/v1/route", `{"channel":"telegram","chat_type":"group","peer":"-100","text":"hi","metadata":{"subject":"Family","displayName":""}}`))
	id := first.text("session_id")
	if first.text("key") != "agent:main:telegram:group:-100" || first.text("session.metadata.subject") != "Family" ||
		first.at("session.metadata.displayName") != nil {
		t.Fatalf("%s", first.raw)
	}
	k.want(200, k.do("PATCH", "/v1/sessions/"+id, `{"settings":{"fraction":0.5},"window":50000,"metadata":{"thinkingLevel":"high","systemSent":true,"user_id":"u1"}}`))
	again := k.want(200, k.do("POST", "/v1/route", `{"key":"agent:main:telegram:group:-100","text":"more","metadata":{"subject":"","space":"Home"}}`))
	if again.text("session_id") != id || again.text("session.metadata.subject") != "Family" ||
		again.text("session.metadata.space") != "Home" {
		t.Errorf("%s", again.raw)
	}
	next := k.want(201, k.do("POST", "/v1/route", `{"key":"agent:main:telegram:group:-100","text":"/new Mini Write a poem"}`))
	if next.text("reason") != "command" || next.text("previous") != id || next.text("trigger") != "/new" ||
		next.text("text") != "Write a poem" ||
		next.text("model") != "openai/gpt-4o-mini" || next.at("greet") != false || next.at("generation") != 2.0 {
		t.Errorf("%s", next.raw)
	}
	s := "session."
	if next.at(s+"settings.fraction") != 0.5 || next.at(s+"window") != 50000.0 ||
		next.text(s+"metadata.thinkingLevel") != "high" ||
		next.at(s+"metadata.systemSent") != false || next.text(s+"metadata.user_id") != "u1" ||
		next.text(s+"model") != "gpt-4o-mini" || next.text(s+"provider") != "openai" {
		t.Errorf("%s", next.raw)
	}
	greet := k.want(201, k.do("POST", "/v1/route", `{"key":"agent:main:telegram:group:-100","text":"/reset"}`))
	if greet.at("greet") != true || greet.text("text") != "" || greet.text("model") != "openai/gpt-4o-mini" {
		t.Errorf("%s", greet.raw)
	}
	if r := k.want(200, k.do("POST", "/v1/route", `{"key":"agent:main:telegram:group:-100","text":"/new","authorized":false}`)); r.text("text") != "/new" || r.at("trigger") != nil {
		t.Errorf("%s", r.raw)
	}
}

func TestRepeatedRouteAnswersTheSame(t *testing.T) {
	k := newKit(t, nil)
	k.want(201, k.do("POST", "/v1/route", `{"key":"main"}`))
	key := header{"Idempotency-Key": "r1"}
	first := k.want(201, k.do("POST", "/v1/route", `{"key":"main","text":"/new hi"}`, key))
	again := k.want(201, k.do("POST", "/v1/route", `{"key":"main","text":"/new hi"}`, key))
	for _, field := range []string{"session_id", "reason", "previous", "text", "trigger"} {
		if first.text(field) == "" || first.text(field) != again.text(field) {
			t.Errorf("%s: %v, then %v", field, first.at(field), again.at(field))
		}
	}
	if n := k.count(`SELECT COUNT(*) FROM sessions`); n != 2 {
		t.Errorf("%d sessions", n)
	}
	k.want(422, k.do("POST", "/v1/route", `{"key":"main","text":"/new ho"}`, key))
}

// A clock that jumps back makes nothing stale and no time runs backwards within a key.
func TestClockThatJumpsBack(t *testing.T) {
	clock := &wound{}
	clock.set(at(t, "2026-07-15T10:00:00Z"))
	k := newKitAt(t, clock.now, func(d *api.Deps) { d.Routing.Zone = berlin(t) })
	id := k.want(201, k.do("POST", "/v1/route", `{"key":"main"}`)).text("session_id")
	k.message(id, "user", session.Person, "hi")
	k.message(id, "assistant", session.Model, "hello")
	clock.set(at(t, "2026-07-12T10:00:00Z"))
	if r := k.want(200, k.do("POST", "/v1/route", `{"key":"main","text":"again"}`)); r.text("session_id") != id {
		t.Errorf("%s", r.raw)
	}
	r := k.want(201, k.do("POST", "/v1/route", `{"key":"main","text":"/new"}`))
	if r.text("session.created_at") != "2026-07-15T10:00:00.000Z" {
		t.Errorf("the next generation began at %v, before the one that it follows", r.at("session.created_at"))
	}
	if r := k.want(200, k.do("POST", "/v1/route", `{"key":"main","text":"on"}`)); r.at("freshness.stale") != false {
		t.Errorf("%s", r.raw)
	}
}

func TestWrongRoutes(t *testing.T) {
	k := newKit(t, func(d *api.Deps) { d.Routing.DMScope = routing.DMPerPeer })
	for _, c := range []struct{ name, body, field, says string }{
		{"nothing", `{}`, "key", "names no conversation"},
		{"a line break", `{"key":"agent:main:a\nb"}`, "key", "control character"},
		{"a direction mark", `{"key":"agent:main:a\u202eb"}`, "key", "control character"},
		{"10 kB", `{"key":"` + strings.Repeat("k", 10_000) + `"}`, "key", "the limit is 4096"},
		{"600 bytes", `{"key":"` + strings.Repeat("k", 600) + `"}`, "key", "at most 512"},
		{"only colons", `{"key":":::"}`, "key", "is empty"},
		{"no rest", `{"key":"agent:ops"}`, "key", "names an agent but no conversation"},
		{"an agent of nothing", `{"key":"agent:日本:main"}`, "agent", "has no letter"},
		{"a nameless agent", `{"agent":"!!","channel":"x","peer":"1"}`, "agent", "has no letter"},
		{"two ways at once", `{"key":"main","job":"nightly"}`, "key", "exclude one another"},
		{"no peer", `{"channel":"telegram","chat_type":"direct"}`, "peer", "needs the peer's id"},
		{
			"a kind of chat", `{"channel":"telegram","chat_type":"crowd","peer":"1"}`, "chat_type",
			"one of direct, group, channel, room",
		},
		{"an unknown zone", `{"key":"main","timezone":"Europe/Atlantis"}`, "timezone", "not a time zone"},
		{"a time to come", `{"key":"main","at":"2031-01-01T00:00:00Z"}`, "at", "more than a day ahead"},
		{"no time", `{"key":"main","at":"noon"}`, "at", "RFC 3339"},
		{"an event", `{"key":"main","event":"party"}`, "event", "must be one of"},
		{"an unknown field", `{"keys":"main"}`, "keys", "does not know"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := k.do("POST", "/v1/route", c.body)
			if r.StatusCode != 422 || r.text("errors.0.path") != c.field || !strings.Contains(r.text("detail"), c.says) {
				t.Errorf("%d %s", r.StatusCode, r.raw)
			}
		})
	}
	if n := k.count(`SELECT COUNT(*) FROM sessions`); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	k.want(404, k.do("GET", "/v1/keys/agent:main:nobody", nil))
	k.want(422, k.do("GET", "/v1/keys/agent:main", nil))
	k.want(422, k.do("GET", "/v1/keys?cursor=x", nil))
	k.want(404, k.do("PATCH", "/v1/keys/agent:main:nobody", `{"label":"x"}`))
	k.want(422, k.do("POST", "/v1/sessions", `{"key":"agent:main"}`))
	k.want(422, k.do("GET", "/v1/sessions?key=agent:main", nil))
}

// A key with a slash is named in a path by its percent-encoded form, and keeps its case.
func TestKeysWithSlashesAreReadAndSearched(t *testing.T) {
	k := newKit(t, nil)
	key := "agent:main:signal:group:AbC+/9=%41"
	for range 3 {
		id := k.want(201, k.do("POST", "/v1/route", map[string]any{
			"key":   "Agent:MAIN:Signal:group:AbC+/9=%41",
			"event": "reset",
		})).text("session_id")
		k.message(id, "user", session.Person, "a needle")
	}
	r := k.want(200, k.do("GET", "/v1/keys/"+url.PathEscape(key)+"?limit=2", nil))
	if r.text("key") != key || len(r.at("data").([]any)) != 2 ||
		r.at("data.0.generation") != 3.0 || r.at("data.1.end_reason") != "rpc" {
		t.Fatalf("%s", r.raw)
	}
	more := k.want(200, k.do("GET", "/v1/keys/"+url.PathEscape(key)+"?limit=2&cursor="+r.text("next_cursor"), nil))
	if len(more.at("data").([]any)) != 1 || more.at("data.0.generation") != 1.0 || more.at("next_cursor") != nil {
		t.Errorf("%s", more.raw)
	}
	if r := k.want(200, k.do("GET", "/v1/sessions?key="+url.QueryEscape(key), nil)); len(r.at("data").([]any)) != 3 {
		t.Errorf("listed: %s", r.raw)
	}
	if r := k.want(200, k.do("GET", "/v1/search?q=needle&key="+url.QueryEscape(key),
		nil)); len(r.at("hits").([]any)) != 3 {
		t.Errorf("found: %s", r.raw)
	}
	if r := k.want(200, k.do("GET", "/v1/keys?q=sIGNAL", nil)); len(r.at("data").([]any)) != 1 ||
		r.text("data.0.display_name") == "" {
		t.Errorf("keys: %s", r.raw)
	}
}

// A session that is made with a key is the key's next generation, whoever makes it.
func TestSessionWithAKeyIsItsNextGeneration(t *testing.T) {
	k := newKit(t, nil)
	a := k.want(201, k.do("POST", "/v1/route", `{"key":"main"}`)).text("session_id")
	b := k.session(`{"key":"MAIN"}`)
	r := k.want(200, k.do("GET", "/v1/keys/main", nil))
	if r.text("data.0.id") != b || r.at("data.0.generation") != 2.0 || r.text("data.1.id") != a ||
		r.text("data.1.end_reason") != "rpc" {
		t.Errorf("%s", r.raw)
	}
	k.want(200, k.do("DELETE", "/v1/sessions/"+b, nil))
	if r := k.want(201, k.do("POST", "/v1/route", `{"key":"main","text":"hi"}`)); r.at("generation") != 3.0 {
		t.Errorf("routed into the trash: %s", r.raw)
	}
}

func TestKeysOfJobsHooksAndThreads(t *testing.T) {
	k := newKit(t, nil)
	for _, c := range []struct{ body, key, kind, field, value string }{
		{`{"job":"Nightly"}`, "agent:main:cron:nightly", "cron", "source", "cron"},
		{`{"hook":"hook:Gmail:18f2"}`, "agent:main:hook:gmail:18f2", "hook", "source", "hook"},
		{`{"from":"group:ABC","channel":"telegram"}`, "agent:main:telegram:group:abc", "chat", "type", "group"},
		{
			`{"key":"agent:main:slack:channel:c1","thread":"1699.1"}`, "agent:main:slack:channel:c1:thread:1699.1", "chat",
			"parent_key", "agent:main:slack:channel:c1",
		},
		{`{"channel":"telegram","sender":"7"}`, "agent:main:main", "chat", "type", "dm"},
	} {
		r := k.want(201, k.do("POST", "/v1/route", c.body))
		if r.text("key") != c.key || r.text("session.kind") != c.kind || r.text(c.field) != c.value {
			t.Errorf("%s: %s", c.body, r.raw)
		}
	}
	a, b := k.want(201, k.do("POST", "/v1/route", `{"hook":true}`)),
		k.want(201, k.do("POST", "/v1/route", `{"hook":true}`))
	if a.text("key") == b.text("key") || !strings.HasPrefix(a.text("key"), "agent:main:hook:") {
		t.Errorf("%s and %s", a.text("key"), b.text("key"))
	}
}
