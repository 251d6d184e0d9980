package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/web/api"
)

var ana, eve = session.Scope{Owner: "ana"}, session.Scope{Owner: "eve"}

// withKeys is a token of ana's that may begin routing keys.
var withKeys = session.Scope{Owner: "ana", Key: "agent:"}

// newOwnersKit is a server with a named token: on PostgreSQL the first one makes the role of tokens.
func newOwnersKit(t *testing.T) *kit {
	t.Helper()
	k := newKit(t, func(d *api.Deps) {
		d.BackupDir, d.Events = t.TempDir(), api.NewFeed()
		d.Changed = func(session.ID) { d.Events.Nudge() }
	})
	testkit.Must(k.store.AddToken(t.Context(), store.Token{Name: "ana", Owner: "ana"}))(t)
	return k
}

// as sends the requests of a kit with a named token.
func (k *kit) as(scope session.Scope) *kit {
	limited := *k
	limited.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.handler.ServeHTTP(w, r.WithContext(session.WithScope(r.Context(), scope)))
	})
	return &limited
}

// visit is a request to a route: what it answers to the owner of the session, and to another owner. {id} is the
// session, {cid} its compaction.
type visit struct {
	operation, path string // in {} as in the route table
	query, body     string
	own, other      int
	keeps           bool // what the other owner writes is the other's, and says nothing of the session
}

var visits = []visit{
	{"post", "/v1/sessions", "", `{"title":"new"}`, 201, 201, true},
	{"get", "/v1/sessions", "?q=zebra", "", 200, 200, false},
	{"get", "/v1/sessions/{id}", "?rollup=true", "", 200, 404, false},
	{"patch", "/v1/sessions/{id}", "", `{"title":"zebra plan"}`, 200, 404, false},
	{"delete", "/v1/sessions/{id}", "", "", 200, 404, false},
	{"post", "/v1/sessions/{id}/untrash", "", "", 200, 404, false},
	{
		"post", "/v1/sessions/{id}/messages", "", `{"messages":[{"role":"user","content":"another zebra"}]}`, 201, 404,
		false,
	},
	{"get", "/v1/sessions/{id}/messages", "", "", 200, 404, false},
	{"get", "/v1/sessions/{id}/messages/{seq}", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/messages/{seq}/pin", "", "", 200, 404, false},
	{"delete", "/v1/sessions/{id}/messages/{seq}/pin", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/messages/{seq}/label", "", `{"text":"stripes"}`, 200, 404, false},
	{"delete", "/v1/sessions/{id}/messages/{seq}/label", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/messages/{seq}/tags/{tag}", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/messages/{seq}/note", "", `{"text":"of the zebra"}`, 200, 404, false},
	{"get", "/v1/sessions/{id}/messages/{seq}/note", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/tags/{tag}", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/note", "", `{"text":"of the zebra"}`, 200, 404, false},
	{"get", "/v1/sessions/{id}/note", "", "", 200, 404, false},
	{"get", "/v1/sessions/{id}/marks", "", "", 200, 404, false},
	{"get", "/v1/tags", "", "", 200, 200, false},
	{"delete", "/v1/sessions/{id}/messages/{seq}/tags/{tag}", "", "", 200, 404, false},
	{"delete", "/v1/sessions/{id}/tags/{tag}", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/head", "", `{"seq":39}`, 200, 404, false},
	{"post", "/v1/sessions/{id}/messages/pop", "", `{}`, 200, 404, false},
	{"post", "/v1/sessions/{id}/fork", "", `{}`, 201, 404, false},
	{"get", "/v1/sessions/{id}/tree", "", "", 200, 404, false},
	{"put", "/v1/sessions/{id}/states", "", `{"states":[{"name":"zoo","value":{"zebra":1}}]}`, 200, 404, false},
	{"patch", "/v1/sessions/{id}/states", "", `{"states":[{"name":"zoo","value":{"more":2}}]}`, 200, 404, false},
	{"put", "/v1/sessions/{id}/states/{name}", "", `{"zebra":1}`, 200, 404, false},
	{"get", "/v1/sessions/{id}/states/{name}", "", "", 200, 404, false},
	{"patch", "/v1/sessions/{id}/states/{name}", "", `{"more":2}`, 200, 404, false},
	{"get", "/v1/sessions/{id}/states", "", "", 200, 404, false},
	{"delete", "/v1/sessions/{id}/states/{name}", "", "", 204, 404, false},
	{"post", "/v1/sessions/{id}/states/{name}", "", `"zebra"`, 200, 404, false},
	{"post", "/v1/sessions/{id}/turns", "", `{"messages":[{"role":"user","content":"a turn on the zebra"}],"model":"m"}`, 201, 404, false},
	{"get", "/v1/sessions/{id}/export", "?format=md", "", 200, 404, false},
	{"get", "/v1/sessions/{id}/context", "", "", 200, 404, false},
	{"post", "/v1/sessions/{id}/flushes", "", `{"outcome":"ok"}`, 200, 404, false},
	{"post", "/v1/sessions/{id}/compactions", "", `{"dry_run":true}`, 200, 404, false},
	{"get", "/v1/sessions/{id}/compactions", "", "", 200, 404, false},
	{"get", "/v1/sessions/{id}/compactions/{cid}", "", "", 200, 404, false},
	{"get", "/v1/sessions/{id}/compactions/{cid}/sources", "", "", 200, 404, false},
	{"delete", "/v1/sessions/{id}/compactions/{cid}", "", "", 200, 404, false},
	{"post", "/v1/sessions/{id}/compactions/{cid}/redo", "", "", 200, 404, false},
	{"post", "/v1/sessions/{id}/calls", "", `{"model":"m","provider":"p","input_tokens":1,"output_tokens":1}`, 201, 404, false},
	{"get", "/v1/sessions/{id}/calls", "", "", 200, 404, false},
	{"post", "/v1/route", "", `{"key":"agent:main:zebra","text":"hi"}`, 201, 403, false},
	{"get", "/v1/keys", "?q=zebra", "", 200, 200, false},
	{"get", "/v1/keys/{key}", "", "", 200, 404, false},
	{"patch", "/v1/keys/{key}", "", `{"label":"stripes"}`, 200, 404, false},
	{"get", "/v1/search", "?q=zebra", "", 200, 200, false},
	{"get", "/v1/files", "?path=/zoo", "", 200, 200, false},
	{"post", "/v1/hook", "", `{"program":"codex","directory":"/zoo","event":"UserPromptSubmit","prompt":"what does the zebra eat in winter"}`, 200, 200, false},
	{"get", "/v1/usage", "", "", 403, 403, false},
	{"get", "/v1/queries", "", "", 403, 403, false},
	{"get", "/v1/queries/{name}", "", "", 403, 403, false},
	{"post", "/v1/sql", "", `{"sql":"SELECT 1"}`, 403, 403, false},
	{"post", "/v1/backups", "", `{}`, 403, 403, false},
	{"post", "/v1/sources/{program}/lines", "?project=zoo&session=zebra", `{"lines":[{"u":1}]}`, 201, 201, true},
	{"get", "/v1/sources/{program}/sessions", "?project=zoo", "", 200, 200, false},
	{"get", "/v1/sources/{program}/lines", "?project=zoo&session=zebra", "", 200, 200, false},
	{"get", "/v1/sources/{program}/subpaths", "?project=zoo&session=zebra", "", 200, 200, false},
	{"get", "/v1/sources/{program}/summaries", "?project=zoo", "", 200, 200, false},
	{"delete", "/v1/sources/{program}/lines", "?project=zoo&session=zebra", "", 200, 200, true},
	{"post", "/v1/conversations", "", `{"items":[{"role":"user","content":"new"}]}`, 200, 200, true},
	{"get", "/v1/conversations/{conversation_id}", "", "", 200, 404, false},
	{"post", "/v1/conversations/{conversation_id}", "", `{"metadata":{"of":"zebra"}}`, 200, 404, false},
	{"post", "/v1/conversations/{conversation_id}/items", "", `{"items":[{"role":"user","content":"a zebra"}]}`, 200, 404, false},
	{"get", "/v1/conversations/{conversation_id}/items", "", "", 200, 404, false},
	{"get", "/v1/conversations/{conversation_id}/items/{item_id}", "", "", 200, 404, false},
	{"delete", "/v1/conversations/{conversation_id}/items/{item_id}", "", "", 200, 404, false},
	{"delete", "/v1/conversations/{conversation_id}", "", "", 200, 404, false},
	{"post", "/v1/sessions/{id}/untrash", "", "", 200, 404, false},
	{"get", "/healthz", "", "", 200, 200, false},
	{"get", "/readyz", "", "", 200, 200, false},
	{"get", "/version", "", "", 200, 200, false},
}

// Every route, by the token of the session's owner and by another's: the other one learns and changes nothing.
func TestNamedTokensSeeAndWriteTheirOwn(t *testing.T) {
	k := newOwnersKit(t)
	own, other := k.as(ana), k.as(eve)
	id := own.want(201, own.do("POST", "/v1/sessions", `{"title":"zebra plan","directory":"/zoo"}`)).text("id")
	path := "/v1/sessions/" + id
	for i := range 20 {
		own.say(id, "user", fmt.Sprint("What does the zebra eat? ", i, strings.Repeat(" grass", 100)))
		own.say(id, "assistant", "It eats hay.")
	}
	own.want(201, own.do("POST", path+"/messages", `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"write_file","arguments":"{\"path\":\"/zoo/plan\",\"content\":\"x\"}"}}]}],"dialect":"openai.chat"}`))
	cid := own.want(201, own.do("POST", path+"/compactions", `{"keep_recent_tokens":100,"settings":{"keep_recent_messages":2}}`)).text("id")
	mine := other.want(201, other.do("POST", "/v1/sessions", `{"title":"mine"}`)).text("id")
	other.say(mine, "user", "Something else.")
	seen := map[string]bool{}
	fill := strings.NewReplacer("{id}", id, "{cid}", cid, "{seq}", "1", "{name}", "todos", "{tag}", "zebra",
		"{key}", "agent:main:zebra", "{program}", "claude-code", "{conversation_id}", "conv_"+id, "{item_id}", "msg_"+id+"_1")
	for _, v := range visits {
		seen[v.operation+" "+v.path] = true
		target := strings.Replace(fill.Replace(v.path), "/states/todos",
			"/states/"+map[bool]string{true: "log", false: "todos"}[v.operation == "post"], 1) + v.query
		before := k.state()
		var body any
		if v.body != "" {
			body = v.body
		}
		if v.path == "/v1/route" { // the owner first: the key is taken
			own.want(403, own.do("POST", target, body)) // no token without --key begins one
			keyed := k.as(withKeys)
			keyed.want(v.own, keyed.do("POST", target, body))
			before = k.state()
			own = k.as(ana)
		}
		r := other.do(strings.ToUpper(v.operation), target, body)
		if r.StatusCode != v.other {
			t.Errorf("%s %s answers another owner %d, want %d: %.300s", v.operation, target, r.StatusCode, v.other, r.raw)
		}
		if strings.Contains(r.raw, "zebra plan") || strings.Contains(r.raw, `"`+id) ||
			r.StatusCode == 200 && strings.Contains(r.raw, "hay") {
			t.Errorf("%s %s tells another owner: %.300s", v.operation, target, r.raw)
		}
		if after := k.state(); after != before && !v.keeps {
			t.Errorf("%s %s of another owner changed something", v.operation, target)
		}
		if v.path == "/v1/route" {
			continue
		}
		if r := own.do(strings.ToUpper(v.operation), target, body); r.StatusCode != v.own {
			t.Errorf("%s %s answers the owner %d, want %d: %.300s", v.operation, target, r.StatusCode, v.own, r.raw)
		} else if v.operation == "get" && v.own == 200 && strings.HasPrefix(v.path, "/v1/") &&
			!strings.HasPrefix(v.path, "/v1/sources/") && !strings.Contains(r.raw, id) &&
			!strings.Contains(r.raw, "zebra") {
			t.Errorf("%s %s tells the owner nothing of the session: %.300s", v.operation, target, r.raw)
		}
	}
	doc, _ := k.do("GET", "/openapi.json", nil).doc.(map[string]any)
	for path, methods := range doc["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			if !seen[method+" "+path] && path != "/v1/events" { // below
				t.Errorf("no visit of %s %s by another owner", method, path)
			}
		}
	}
	crossed(t, k, id, cid, mine)
}

// crossed are requests in another owner's own session that name what is of ana's.
func crossed(t *testing.T, k *kit, id, cid, mine string) {
	t.Helper()
	other := k.as(eve)
	before := k.count(`SELECT COUNT(*) FROM messages`)
	for _, v := range []struct{ method, path, body string }{
		{"GET", "/compactions/" + cid, ""},
		{"GET", "/compactions/" + cid + "/sources", ""},
		{"DELETE", "/compactions/" + cid, ""},
		{"POST", "/compactions/" + cid + "/redo", ""},
		{"GET", "/messages/" + id + ".1", ""},
		{"PUT", "/messages/" + id + ".1/pin", ""},
		{"PUT", "/messages/" + id + ".1/label", `{"text":"x"}`},
		{"PUT", "/head", `{"seq":"` + id + `.1"}`},
		{"POST", "/messages/pop", `{"expect_head":"` + id + `.1"}`},
		{"POST", "/fork", `{"at":"` + id + `.1"}`},
		{"POST", "/messages", `{"messages":[{"role":"user","content":"x"}],"parent":"` + id + `.1"}`},
		{"POST", "/turns", `{"messages":[{"role":"user","content":"x"}],"parent":"` + id + `.1"}`},
	} {
		var body any
		if v.body != "" {
			body = v.body
		}
		if r := other.do(v.method, "/v1/sessions/"+mine+v.path, body); r.StatusCode < 400 ||
			strings.Contains(r.raw, "zebra") {
			t.Errorf("%s %s in another owner's session: %d %.300s", v.method, v.path, r.StatusCode, r.raw)
		}
	}
	// What exists and is hidden is answered as what does not exist.
	for _, v := range []struct{ method, path, body string }{
		{"GET", "/v1/sessions/SESSION/messages/1", ""},
		{"PUT", "/v1/sessions/SESSION/messages/1/pin", ""},
		{"DELETE", "/v1/sessions/SESSION?purge=true&scrub=true", ""},
		{"GET", "/v1/sessions/" + mine + "/messages/SESSION.1", ""},
		{"PUT", "/v1/sessions/" + mine + "/messages/SESSION.1/label", `{"text":"x"}`},
		{"PUT", "/v1/sessions/" + mine + "/head", `{"seq":"SESSION.1"}`},
		{"POST", "/v1/sessions/" + mine + "/fork", `{"at":"SESSION.1"}`},
		{"POST", "/v1/sessions", `{"parent_id":"` + mine + `","parent_message":"SESSION.1"}`},
	} {
		ask := func(session string) string {
			var body any
			if v.body != "" {
				body = strings.ReplaceAll(v.body, "SESSION", session)
			}
			r := other.do(v.method, strings.ReplaceAll(v.path, "SESSION", session), body)
			return fmt.Sprint(r.StatusCode, strings.ReplaceAll(r.raw, session, "SESSION"))
		}
		if hidden, none := ask(id), ask("20200101_001"); hidden != none {
			t.Errorf("%s %s tells that a session exists: %s, not %s", v.method, v.path, hidden, none)
		}
	}
	if r := other.do("POST", "/v1/sessions", `{"parent_id":"`+id+`"}`); r.StatusCode != 422 {
		t.Errorf("a child of another owner's session: %d %.300s", r.StatusCode, r.raw)
	}
	if r := other.do("GET", "/v1/search?q=zebra+session:"+id, nil); strings.Contains(r.raw, "hay") ||
		strings.Contains(r.raw, "eat") {
		t.Errorf("a search in another owner's session: %.300s", r.raw)
	}
	if after := k.count(`SELECT COUNT(*) FROM messages`); after != before {
		t.Errorf("%d messages were stored", after-before)
	}
}

func TestScopesNarrowByProgramAndKey(t *testing.T) {
	k := newOwnersKit(t)
	own := k.as(withKeys)
	support := own.want(201, own.do("POST", "/v1/route", `{"key":"agent:support:main","text":"hi"}`)).text("session_id")
	private := own.want(201, own.do("POST", "/v1/route", `{"key":"agent:private:main","text":"hi"}`)).text("session_id")
	bot := k.as(session.Scope{Owner: "ana", Key: "agent:support:"})
	bot.want(200, bot.do("GET", "/v1/sessions/"+support, nil))
	bot.want(404, bot.do("GET", "/v1/sessions/"+private, nil))
	bot.want(403, bot.do("POST", "/v1/route", `{"key":"agent:private:main","text":"hi"}`))
	bot.want(403, bot.do("POST", "/v1/route", `{"key":"agent:other:main","text":"hi"}`))
	bot.want(201, bot.do("POST", "/v1/route", `{"key":"agent:support:dm","text":"hi"}`))
	bot.want(403, bot.do("POST", "/v1/sessions", `{"title":"no key"}`))
	imported := k.as(session.Scope{Owner: "ana", Source: session.SourceCodex})
	if r := imported.want(200, imported.do("GET", "/v1/sessions", nil)); strings.Contains(r.raw, support) {
		t.Errorf("a token for codex lists %.200s", r.raw)
	}
	imported.want(403, imported.do("POST", "/v1/sessions", `{}`))
	// The daemon's own token sees all, and what is below a session is of the session's owner.
	k.want(200, k.do("GET", "/v1/sessions/"+private, nil))
	if next := k.want(201, k.do("POST", "/v1/route",
		`{"key":"agent:private:main","event":"reset"}`)); next.text("session.owner") != "ana" {
		t.Errorf("the next session of ana's key is %q's", next.text("session.owner"))
	}
	child := k.want(201, k.do("POST", "/v1/sessions", `{"parent_id":"`+private+`"}`))
	if child.text("owner") != "ana" {
		t.Errorf("the child of ana's session is %q's", child.text("owner"))
	}
}

// The daemon's own token begins the next generation of ana's key: the key stays ana's. No other owner reads its label.
func TestKeysStayTheOwners(t *testing.T) {
	k := newOwnersKit(t)
	own := k.as(ana)
	const routed = `{"key":"agent:main:zebra","text":"hi"}`
	own.want(403, own.do("POST", "/v1/route", routed))
	keyed := k.as(withKeys)
	keyed.want(201, keyed.do("POST", "/v1/route", routed))
	k.want(201, k.do("POST", "/v1/route", `{"key":"agent:main:zebra","text":"/new"}`))
	own.want(200, own.do("POST", "/v1/route", routed))
	if made := k.want(201, k.do("POST", "/v1/sessions", `{"key":"agent:main:zebra"}`)); made.text("owner") != "ana" {
		t.Errorf("the next session of ana's key is %q's", made.text("owner"))
	}
	own.want(200, own.do("POST", "/v1/route", routed))
	own.want(200, own.do("PATCH", "/v1/keys/agent:main:zebra", `{"label":"stripes"}`))

	other := k.as(session.Scope{Owner: "eve", Key: "agent:main:hers"})
	for range 2 {
		other.want(201, other.do("POST", "/v1/sessions", `{"key":"agent:main:hers"}`))
	}
	cursor := other.want(200, other.do("GET", "/v1/keys/agent:main:hers?limit=1", nil)).text("next_cursor")
	if r := other.do("GET", "/v1/keys/agent:main:zebra?cursor="+cursor, nil); strings.Contains(r.raw, "stripes") {
		t.Errorf("a cursor of another key tells the label: %s", r.raw)
	}
	if r := other.want(409, other.do("PATCH", "/v1/keys/agent:main:hers", `{"label":"stripes"}`)); strings.Contains(r.raw,
		"zebra") {
		t.Errorf("a label that is taken tells whose: %s", r.raw)
	}
}

// A search with a narrow token tells nothing of the owner's other sessions, and titles are found with every token.
func TestSearchesOfNarrowTokens(t *testing.T) {
	k := newOwnersKit(t)
	own := k.as(ana)
	private := own.want(201, own.do("POST", "/v1/sessions", `{"title":"Quagga census"}`)).text("id")
	own.say(private, "user", "The zebra eats hay.")
	for _, narrow := range []session.Scope{
		{Owner: "ana", Key: "agent:support:"},
		{Owner: "ana", Source: session.SourceCodex},
	} {
		bot := k.as(narrow)
		there, nowhere := bot.do("GET", "/v1/search?q=zebra", nil), bot.do("GET", "/v1/search?q=gnu", nil)
		if there.raw != nowhere.raw {
			t.Errorf("with %+v a hidden word answers %s, and none %s", narrow, there.raw, nowhere.raw)
		}
	}
	for _, who := range []*kit{k, own} {
		if r := who.want(200, who.do("GET", "/v1/search?q=quagga&group=session", nil)); !strings.Contains(r.raw, private) {
			t.Errorf("a search for a word of a title: %s", r.raw)
		}
	}
}

// One key of a retry, from two owners: each gets an answer of their own. So do two tokens of one owner that see
// different sessions.
func TestIdempotencyKeysAreTheOwners(t *testing.T) {
	k := newOwnersKit(t)
	key := header{"Idempotency-Key": "1"}
	own, other := k.as(ana), k.as(eve)
	a := own.want(201, own.do("POST", "/v1/sessions", `{"title":"same"}`, key)).text("id")
	b := other.want(201, other.do("POST", "/v1/sessions", `{"title":"same"}`, key)).text("id")
	again := own.want(201, own.do("POST", "/v1/sessions", `{"title":"same"}`, key)).text("id")
	if a == b || a != again {
		t.Errorf("ana gets %s, then %s; eve gets %s", a, again, b)
	}
	bot := k.as(session.Scope{Owner: "ana", Key: "agent:support:"})
	bot.want(403, bot.do("POST", "/v1/sessions", `{"title":"same"}`, key)) // as without the key
	purge := "/v1/sessions/" + a + "?purge=true"
	first := own.want(200, own.do("DELETE", purge, nil, key))
	if second := own.want(200, own.do("DELETE", purge, nil, key)); second.raw != first.raw {
		t.Errorf("a repeated purge answers %s, then %s", first.raw, second.raw)
	}
	other.want(404, other.do("DELETE", purge, nil, key))
}

// The caller's id of a call is of one owner: another one neither reads nor changes the call with it.
func TestCallsOfAnotherOwnerStayTheirs(t *testing.T) {
	k := newOwnersKit(t)
	own, other := k.as(ana), k.as(eve)
	a, b := own.session(nil), other.session(nil)
	const call = `{"provider":"zebra","model":"m","input_tokens":7,"cost_usd":5,"external_id":"1"}`
	made := own.want(201, own.do("POST", "/v1/sessions/"+a+"/calls", call))
	before := k.state()
	const more = `"provider":"p","model":"m","input_tokens":1000000,"cost_usd":1000,"external_id":"1"`
	for path, body := range map[string]string{
		"/calls":    `{` + more + `}`,
		"/messages": `{"messages":[{"role":"assistant","content":"x"}],"call":{` + more + `}}`,
		"/turns":    `{"messages":[{"role":"assistant","content":"x"}],"call":{` + more + `}}`,
	} {
		if r := other.want(409, other.do("POST", "/v1/sessions/"+b+path, body)); strings.Contains(r.raw, "zebra") ||
			strings.Contains(r.raw, a) {
			t.Errorf("%s tells of another owner's call: %s", path, r.raw)
		}
	}
	if k.state() != before {
		t.Error("something was changed")
	}
	if again := own.want(201, own.do("POST", "/v1/sessions/"+a+"/calls", call)); again.text("id") != made.text("id") {
		t.Errorf("ana's call is %s, then %s", made.raw, again.raw)
	}
}

// A stream of events tells each owner of their own sessions, also from what another stream read before.
func TestEventsOfOneOwner(t *testing.T) {
	k := newOwnersKit(t)
	own, other := k.as(ana), k.as(eve)
	a, b := own.session(nil), other.session(nil)
	own.say(a, "user", "hi")
	other.say(b, "user", "hi")
	own.say(a, "user", "hi again")
	for _, c := range []struct {
		who  *kit
		want string
		last float64 // the seq of the last message: all events before it were passed over, or told
	}{{other, b, 1}, {own, a, 2}} {
		server := httptest.NewServer(c.who.handler)
		for l, seq := listen(t, server, "?after=0", ""), any(0.0); seq != c.last; {
			_, event, ended := l.block()
			if ended || event != nil && event["session_id"] != c.want {
				t.Fatalf("the stream has %v (ended %t), want events of %s alone", event, ended, c.want)
			}
			seq = event["seq"]
		}
		server.CloseClientConnections()
		server.Close()
	}
	other.want(404, other.do("GET", "/v1/events?session="+a, nil))
	// A heartbeat names the newest event of all owners: a stream that continues there has no gap.
	other.say(b, "user", "hi again")
	epoch, _, last, err := k.store.EventRange(t.Context())
	testkit.Check(t, err)
	server := httptest.NewServer(own.handler)
	defer server.Close()
	defer server.CloseClientConnections()
	l := listen(t, server, "", fmt.Sprintf("%s-%d", epoch, last))
	own.say(a, "user", "and again")
	if kind, event, _ := l.block(); kind != "messages.appended" {
		t.Errorf("the stream continues with %s %v", kind, event)
	}
}

func TestListsByOwnerAndHost(t *testing.T) {
	k := newOwnersKit(t)
	hers := k.as(ana).session(nil)
	k.session(nil)
	for query, want := range map[string]int{"": 2, "?owner=ana": 1, "?owner=eve": 0, "?host=alpha": 0} {
		r := k.want(200, k.do("GET", "/v1/sessions"+query, nil))
		if got := strings.Count(r.raw, `"title"`); got != want {
			t.Errorf("%q lists %d sessions, want %d", query, got, want)
		}
	}
	if r := k.do("GET", "/v1/sessions?owner=ana", nil); r.text("data.0.id") != hers {
		t.Errorf("ana's session is %s, listed is %s", hers, r.raw)
	}
}
