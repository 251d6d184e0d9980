package api_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
)

// rival is what eve has, and what ana has beside it: about a word, or nothing.
type rival struct {
	k, eve             *kit
	hers, anas, forked string // sessions
}

func newRival(t *testing.T, word string) rival {
	k := newOwnersKit(t)
	keyed := k.as(session.Scope{Owner: "eve", Key: "agent:eve:"})
	r := rival{k: k, eve: k.as(eve), anas: "20260211_003", forked: "20260211_004"}
	r.hers = r.eve.want(201, r.eve.do("POST", "/v1/sessions", `{"title":"my plan","directory":"/home/eve/proj","metadata":{"u":"1"}}`)).text("id")
	for i := range 6 {
		r.eve.say(r.hers, "user", fmt.Sprint("The harbour has berth ", i, " quagga dodo tapir and wobble",
			strings.Repeat(" grass", 60)))
		r.eve.say(r.hers, "assistant", "It has a crane and a ship.")
	}
	keyed.want(201, keyed.do("POST", "/v1/route", `{"key":"agent:eve:main","text":"hi"}`))
	if word == "" {
		return r
	}
	own, withKey := k.as(ana), k.as(withKeys)
	key := "agent:ana:" + word
	r.anas = withKey.want(201, withKey.do("POST", "/v1/route", `{"key":"`+key+`","text":"hi"}`)).text("session_id")
	path := "/v1/sessions/" + r.anas
	own.want(200, own.do("PATCH", path, `{"title":"`+word+` census","metadata":{"u":"`+word+`"}}`))
	own.want(200, own.do("PATCH", "/v1/keys/"+key, `{"label":"`+word+`s"}`))
	for i := range 8 {
		own.say(r.anas, "user", fmt.Sprint("What does the ", word, " eat? ", i, strings.Repeat(" hay", 100)))
		own.say(r.anas, "assistant", "It eats "+word+"food.")
	}
	own.want(201, own.do("POST", path+"/messages", `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"write_file","arguments":"{\"path\":\"/zoo/`+word+`\",\"content\":\"x\"}"}}]}],"dialect":"openai.chat"}`))
	own.want(201, own.do("POST", path+"/compactions", `{"keep_recent_tokens":100,"settings":{"keep_recent_messages":2}}`))
	r.forked = own.want(201, own.do("POST", path+"/fork", `{"at":3}`)).text("id")
	own.want(200, own.do("PUT", path+"/states/todos", `{"x":"`+word+`"}`))
	own.want(200, own.do("PUT", path+"/messages/2/label", `{"text":"`+word+`"}`))
	return r
}

var times = regexp.MustCompile(`"[a-z]*_at":"[^"]*"`)

// ask returns all of an answer to eve but times and the request's own id.
func (r rival) ask(method, path, body string) string {
	var in any
	if body != "" {
		in = body
	}
	got := r.eve.do(method, path, in)
	var headers []string
	for name, values := range got.Header {
		if name != "X-Request-Id" {
			headers = append(headers, fmt.Sprint(name, values))
		}
	}
	slices.Sort(headers)
	return fmt.Sprint(got.StatusCode, headers, times.ReplaceAllString(got.raw, "TIME"))
}

// Whatever another owner has, and whether they have anything, each answer to eve is the same byte for byte: also
// scores, counts, suggestions and errors.
func TestAnswersDependOnNoOtherOwner(t *testing.T) {
	var paths []string
	for _, query := range []string{
		"quagga", "quagg*", "quagga+berth", "quaga", "qagga", "harbour+quagga", "%22quagga+eat%22", "census", "aardvark",
		"hay", "haay", "wobble", "crane",
		"quaggafood", "hay+grass", "what+does+the+quagga+eat%3F", "berth+-quagga", "berth+key:agent:ana:quagga",
		"berth+project:/zoo", "ship+session:ANAS",
		"ship+source:pi", "ship+tool:write_file", "hay+role:assistant", "hay+after:30d", "write_file", "tool:write_file+zoo",
		"hay+in:zoo",
	} {
		for _, how := range []string{
			"", "&group=session", "&order=newest", "&expand=2", "&order=newest&group=session",
			"&session=HERS", "&metadata.u=quagga",
		} {
			paths = append(paths, "/v1/search?q="+query+how)
		}
	}
	for _, query := range []string{
		"", "q=quagga", "q=census", "metadata.u=quagga", "key=agent:ana:quagga", "project=/zoo", "parent_id=ANAS",
		"owner=ana", "owner=eve", "trash=true",
		"archived=true", "source=codex", "host=x", "model=gpt-4o", "directory=/zoo", "limit=1",
	} {
		paths = append(paths, "/v1/sessions?"+query)
	}
	paths = append(paths, "/v1/keys", "/v1/keys?q=quagga", "/v1/keys/agent:ana:quagga", "/v1/keys/agent:eve:main",
		"/v1/files?path=/zoo/quagga", "/v1/files?path=/zoo",
		"/v1/usage", "/v1/queries", "/healthz", "/readyz")
	for _, below := range []string{
		"", "/messages", "/messages/1", "/tree", "/context?dialect=openai.chat", "/compactions",
		"/calls", "/states", "/states/todos", "/export?format=md",
	} {
		paths = append(paths, "/v1/sessions/HERS"+below, "/v1/sessions/ANAS"+below, "/v1/sessions/FORKED"+below)
	}
	worlds := []string{"quagga", "aardvark", ""}
	answers := make([][]string, len(worlds))
	t.Run("ask", func(t *testing.T) {
		for i, word := range worlds {
			t.Run("about "+word, func(t *testing.T) {
				r := newRival(t, word)
				fill := strings.NewReplacer("HERS", r.hers, "ANAS", r.anas, "FORKED", r.forked)
				for _, path := range paths {
					answers[i] = append(answers[i], r.ask("GET", fill.Replace(path), ""))
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	for i, path := range paths {
		for world := 1; world < len(worlds); world++ {
			if a, b := answers[0][i], answers[world][i]; a != b {
				t.Errorf("GET %s tells of another owner:\n%.600s\nnot\n%.600s", path, a, b)
			}
		}
	}
}

// What names a session or message of another owner is answered as what names none, in every field of every route.
func TestNamesOfOthersAreAnsweredAsUnknownOnes(t *testing.T) {
	r := newRival(t, "quagga")
	const none = "20260211_900"
	probes := []string{
		`POST /v1/sessions {"parent_id":"ID"}`,
		`POST /v1/sessions {"parent_id":"ID","parent_message":1}`,
		`POST /v1/sessions {"parent_id":"ID","parent_call":"c"}`,
		`POST /v1/sessions {"parent_id":"HERS","parent_message":"ID.1"}`,
		`POST /v1/route {"key":"agent:ID:main","text":"hi"}`,
		`GET /v1/search?q=ship&session=ID`,
		`GET /v1/search?q=ship+session:ID`,
		`GET /v1/search?q=ID`,
		`GET /v1/events?session=ID`,
		`GET /v1/sessions?parent_id=ID`,
		`GET /v1/sessions?q=ID`,
		`GET /v1/sessions/HERS/messages?after=ID.1`,
		`GET /v1/sessions/HERS/messages?before=ID.1`,
		`GET /v1/sessions/HERS/messages/ID.1`,
		`PUT /v1/sessions/HERS/messages/ID.1/pin`,
		`DELETE /v1/sessions/HERS/messages/ID.1/pin`,
		`PUT /v1/sessions/HERS/messages/ID.1/label {"text":"x"}`,
		`PUT /v1/sessions/HERS/head {"seq":"ID.1"}`,
		`POST /v1/sessions/HERS/messages/pop {"expect_head":"ID.1"}`,
		`PUT /v1/sessions/HERS/head {"seq":"ID.1","summarize":true}`,
		`POST /v1/sessions/HERS/fork {"at":"ID.1"}`,
		`POST /v1/sessions/HERS/messages {"messages":[{"role":"user","content":"x"}],"parent":"ID.1"}`,
		`POST /v1/sessions/HERS/messages {"messages":[{"role":"user","content":"x"}],"expect_head":"ID.1"}`,
		`POST /v1/sessions/HERS/turns {"messages":[{"role":"user","content":"x"}],"parent":"ID.1"}`,
		`POST /v1/sessions/HERS/turns {"messages":[{"role":"user","content":"x"}],"expect_head":"ID.1"}`,
		`POST /v1/sessions/HERS/compactions {"through":"ID.1"}`,
		`POST /v1/sessions/HERS/compactions {"through":"ID.1","dry_run":true}`,
		`DELETE /v1/sessions/ID`,
		`DELETE /v1/sessions/ID?purge=true`,
		`DELETE /v1/sessions/ID?purge=true&scrub=true`,
		`POST /v1/sessions/ID/untrash`,
		`PATCH /v1/sessions/ID {"title":"x"}`,
		`PATCH /v1/sessions/ID {"title":5}`,
		`POST /v1/sessions/ID/messages {"messages":[]}`,
		`POST /v1/sessions/ID/messages nonsense`,
		`POST /v1/sessions/ID/turns {"dialect":"openai.chat"}`,
		`POST /v1/sessions/ID/fork {}`,
		`POST /v1/sessions/ID/flushes {"outcome":"ok"}`,
		`POST /v1/sessions/ID/calls {"model":"m","provider":"p","input_tokens":1}`,
		`PUT /v1/sessions/ID/head {"seq":1}`,
		`POST /v1/sessions/ID/messages/pop {}`,
		`PUT /v1/sessions/ID/states/todos {}`,
		`PUT /v1/sessions/ID/states {"states":[{"name":"todos","value":{}}]}`,
		`PATCH /v1/sessions/ID/states {"states":[{"name":"todos","delete":true}]}`,
		`GET /v1/conversations/conv_ID`,
		`POST /v1/conversations/conv_ID {"metadata":{}}`,
		`DELETE /v1/conversations/conv_ID`,
		`POST /v1/conversations/conv_ID/items {"items":[{"role":"user","content":"x"}]}`,
		`GET /v1/conversations/conv_ID/items`,
		`GET /v1/conversations/conv_ID/items/msg_ID_1`,
		`GET /v1/conversations/conv_HERS/items/msg_ID_1`,
		`GET /v1/conversations/conv_HERS/items?after=msg_ID_1`,
		`DELETE /v1/conversations/conv_HERS/items/msg_ID_1`,
		`POST /v1/sessions/ID/compactions {}`,
		`GET /v1/sessions/ID?rollup=true`,
		`GET /v1/sessions/ID/context?explain=true`,
		`GET /v1/sessions/ID/export?format=nonsense`,
		`GET /v1/sessions/ID/messages?limit=99999`,
	}
	before := r.eve.state()
	for _, probe := range probes {
		ask := func(id string) string {
			fields := strings.SplitN(strings.NewReplacer("HERS", r.hers, "ID", id).Replace(probe), " ", 3)
			return strings.ReplaceAll(r.ask(fields[0], fields[1], strings.Join(fields[2:], "")), id, "ID")
		}
		want := ask(none)
		for _, hidden := range []string{r.anas, r.forked} {
			if got := ask(hidden); got != want {
				t.Errorf("%s tells that it is another owner's:\n%.500s\nnot\n%.500s", probe, got, want)
			}
		}
	}
	if r.eve.state() != before {
		t.Error("something was stored")
	}
	// A token that may not begin a key does not learn whether it is another owner's or none's.
	for _, scope := range []session.Scope{
		eve,
		{Owner: "eve", Key: "agent:eve:"},
		{Owner: "eve", Source: session.SourceCodex},
	} {
		r.eve.handler = r.k.as(scope).handler
		for path, body := range map[string]string{"/v1/route": `{"key":"KEY","text":"hi"}`, "/v1/sessions": `{"key":"KEY"}`} {
			ask := func(key string) string {
				return strings.ReplaceAll(r.ask("POST", path, strings.Replace(body, "KEY", key, 1)), key, "KEY")
			}
			if taken, free := ask("agent:ana:quagga"), ask("agent:ana:gnu"); taken != free {
				t.Errorf("%+v: a key of another owner is answered\n%s\nand a free one\n%s", scope, taken, free)
			}
		}
	}
}
