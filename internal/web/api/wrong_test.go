package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/web/api"
)

// bodies are the routes that read a body.
func bodies(id string) []string {
	return []string{
		"POST /v1/sessions",
		"PATCH /v1/sessions/" + id,
		"POST /v1/sessions/" + id + "/messages",
		"POST /v1/sessions/" + id + "/turns",
		"POST /v1/sessions/" + id + "/compactions",
		"POST /v1/sessions/" + id + "/calls",
		"POST /v1/sql",
		"POST /v1/backups",
	}
}

// state is all that a refused request must leave as it was.
func (k *kit) state() string {
	k.t.Helper()
	var all []string
	for _, table := range []string{
		"sessions", "messages", "parts", "blobs", "compactions", "contexts", "blocks", "frozen",
		"calls", "marks", "events", "idempotency_keys",
	} {
		all = append(all, fmt.Sprint(table, " ", k.count("SELECT COUNT(*) FROM "+table)))
	}
	return fmt.Sprint(all, k.count(`SELECT COALESCE(SUM(revision), 0) FROM sessions`))
}

// Whatever a body that is no body of a route looks like: a code, the place, and nothing stored.
func TestBodiesThatCannotBeRead(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "x")
	before := k.state()
	for _, target := range bodies(id) {
		method, path, _ := strings.Cut(target, " ")
		for _, tc := range []struct {
			name, body string
			status     int
			code       string
		}{
			{"half an object", `{"title":`, 400, "malformed"},
			{"no JSON", `hello`, 400, "malformed"},
			{"a field twice", `{"title":"a","title":"b"}`, 422, "invalid"},
			{"a field twice, in another case", `{"messages":[],"Messages":[]}`, 422, "invalid"},
			{"an array", `[1,2]`, 400, "malformed"},
			{"a string", `"text"`, 400, "malformed"},
			{"a number", `5`, 400, "malformed"},
			{"two objects", `{} {}`, 400, "malformed"},
			{"a tail", `{}x`, 400, "malformed"},
			{"a comment", `{/* */}`, 400, "malformed"},
			{"invalid UTF-8", "{\"a\":\"\xff\xfe\"}", 400, "malformed"},
			{"an unknown field", `{"no_such_field":1}`, 422, "invalid"},
			{"deep nesting", `{"a":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + `}`, 422, "invalid"},
			{"very deep nesting", `{"a":` + strings.Repeat("[", 200_000), 422, "invalid"},
		} {
			r := k.do(method, path, tc.body)
			if r.StatusCode != tc.status || r.text("code") != tc.code || r.text("detail") == "" ||
				r.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s with %s: %d %s", target, tc.name, r.StatusCode, r.raw)
			}
			if strings.Contains(r.raw, "\ufffd") || len(r.raw) > 1000 {
				t.Errorf("%s with %s echoes its input: %.300s", target, tc.name, r.raw)
			}
		}
	}
	if after := k.state(); after != before {
		t.Errorf("something was stored:\n%s\n%s", before, after)
	}
}

func TestWrongFieldsAreNamed(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "x")
	before := k.state()
	s := "/v1/sessions/" + id
	message := `"messages":[{"role":"user","content":"x"}]`
	for _, tc := range []struct{ method, path, body, field string }{
		{"POST", "/v1/sessions", `{"title":5}`, "title"},
		{"POST", "/v1/sessions", `{"title":"a\u0000b"}`, "title"},
		{"POST", "/v1/sessions", `{"title":"a\ud800b"}`, "title"},
		{"POST", "/v1/sessions", `{"key":"` + strings.Repeat("k", 5000) + `"}`, "key"},
		{"POST", "/v1/sessions", `{"kind":"party"}`, "kind"},
		{"POST", "/v1/sessions", `{"window":0}`, "window"},
		{"POST", "/v1/sessions", `{"window":-5}`, "window"},
		{"POST", "/v1/sessions", `{"window":1.5}`, "window"},
		{"POST", "/v1/sessions", `{"window":1e30}`, "window"},
		{"POST", "/v1/sessions", `{"draft":"yes"}`, "draft"},
		{"POST", "/v1/sessions", `{"metadata":"x"}`, "metadata"},
		{"POST", "/v1/sessions", `{"metadata":{"a\ud800":1}}`, "metadata"},
		{"POST", "/v1/sessions", `{"metadata":{"a":1,"a":2}}`, "metadata.a"},
		{"POST", s + "/messages", `{"messages":[{"role":"user","content":[{"type":"text","text":"x","text":"y"}]}]}`, "messages[0].content[0].text"},
		{"POST", "/v1/sessions", `{"settings":{"fraction":1.5}}`, "settings.fraction"},
		{"POST", "/v1/sessions", `{"settings":{"fraction":-0.1}}`, "settings.fraction"},
		{"POST", "/v1/sessions", `{"settings":{"fraction":"0.5"}}`, "settings.fraction"},
		{"POST", "/v1/sessions", `{"settings":{"fracton":0.5}}`, "settings.fracton"},
		{"POST", "/v1/sessions", `{"settings":{"summarizer":"http://127.0.0.1"}}`, "settings.summarizer"},
		{"POST", "/v1/sessions", `{"settings":{"preset":"lazy"}}`, "settings.preset"},
		{"POST", "/v1/sessions", `{"parent_id":"20200101_001"}`, "parent_id"},
		{"POST", "/v1/sessions", `{"parent_id":"` + id + `","parent_kind":"fork"}`, "parent_kind"},
		{"PATCH", s, `{"title":5}`, "title"},
		{"PATCH", s, `{"window":0}`, "window"},
		{"PATCH", s, `{"window":"big"}`, "window"},
		{"PATCH", s, `{"archived":"yes"}`, "archived"},
		{"PATCH", s, `{"metadata":[]}`, "metadata"},
		{"PATCH", s, `{"settings":{"fraction":2}}`, "settings.fraction"},
		{"PATCH", s, `{"settings":{"keep_recent":2}}`, "settings.keep_recent"},
		{"PATCH", s, `{"id":"x"}`, "id"},
		{"POST", s + "/messages", `{}`, "messages"},
		{"POST", s + "/messages", `{"messages":[]}`, "messages"},
		{"POST", s + "/messages", `{"messages":{}}`, "messages"},
		{"POST", s + "/messages", `{"messages":"x"}`, "messages"},
		{"POST", s + "/messages", `{"messages":[5]}`, "messages[0]"},
		{"POST", s + "/messages", `{"messages":[{"role":"boss","content":"x"}]}`, "messages[0].role"},
		{"POST", s + "/messages", `{"messages":[{"role":"user","content":"x"},{"role":"user","content":5}]}`, "messages[1].content"},
		{"POST", s + "/messages", `{` + message + `,"expect_head":"x"}`, "expect_head"},
		{"POST", s + "/messages", `{` + message + `,"expect_head":0}`, "expect_head"},
		{"POST", s + "/messages", `{` + message + `,"expect_head":"0"}`, "expect_head"},
		{"POST", s + "/messages", `{` + message + `,"expect_head":"-1"}`, "expect_head"},
		{"POST", s + "/messages", `{` + message + `,"expect_head":[1]}`, "expect_head"},
		{"POST", s + "/messages", `{` + message + `,"call":5}`, "call"},
		{"POST", s + "/turns", `{` + message + `,"dialect":"klingon"}`, "dialect"},
		{"POST", s + "/turns", `{` + message + `,"dialect":"native"}`, "dialect"},
		{"POST", s + "/turns", `{` + message + `,"window":0}`, "window"},
		{"POST", s + "/turns", `{` + message + `,"max_output":-1}`, "max_output"},
		{"POST", s + "/turns", `{` + message + `,"overhead_tokens":-1}`, "overhead_tokens"},
		{"POST", s + "/turns", `{` + message + `,"system":5}`, "system"},
		{"POST", s + "/turns", `{` + message + `,"system":"a\u0000"}`, "system"},
		{"POST", s + "/turns", `{` + message + `,"initial":5}`, "initial"},
		{"POST", s + "/turns", `{` + message + `,"initial":[{"kind":"nothing"}]}`, "initial"},
		{"POST", s + "/turns", `{` + message + `,"tools":"x"}`, "tools"},
		{"POST", s + "/turns", `{` + message + `,"settings":{"fraction":7}}`, "settings.fraction"},
		{"POST", s + "/turns", `{` + message + `,"settings":{"threshold":0.5}}`, "settings.threshold"},
		{"POST", s + "/turns", `{"parent":1}`, "parent"},
		{"POST", s + "/compactions", `{"strategy":"magic"}`, "strategy"},
		{"POST", s + "/compactions", `{"trigger":"mood"}`, "trigger"},
		{"POST", s + "/compactions", `{"reported_tokens":0}`, "reported_tokens"},
		{"POST", s + "/compactions", `{"keep_recent_tokens":-1}`, "keep_recent_tokens"},
		{"POST", s + "/compactions", `{"context_id":"ctx_5"}`, "context_id"},
		{"POST", s + "/compactions", `{"settings":{"fraction":-1}}`, "settings.fraction"},
		{"POST", s + "/compactions", `{"settings":{"summary_model":"x"}}`, "settings.summary_model"},
	} {
		r := k.do(tc.method, tc.path, tc.body)
		if r.StatusCode != 422 || r.text("code") != "invalid" || r.text("errors.0.path") != tc.field ||
			len(r.text("detail")) < 10 {
			t.Errorf("%s %s %.100s: %d %.400s\nwant the field %s", tc.method, tc.path, tc.body, r.StatusCode, r.raw, tc.field)
		}
	}
	if after := k.state(); after != before {
		t.Errorf("something was stored:\n%s\n%s", before, after)
	}
}

func TestUnknownNamesAreNotFound(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "x")
	before := k.state()
	message := `{"messages":[{"role":"user","content":"x"}]}`
	for _, unknown := range []string{
		"20200101_001", "nothing", "20260211_1", "20261341_001", "%2e%2e", "20260211_001%00",
		strings.Repeat("9", 300),
	} {
		s := "/v1/sessions/" + unknown
		for _, r := range []reply{
			k.do("GET", s, nil), k.do("PATCH", s, `{}`), k.do("DELETE", s, nil), k.do("POST", s+"/untrash", nil),
			k.do("POST", s+"/messages", message), k.do("GET", s+"/messages", nil), k.do("GET", s+"/messages/1", nil),
			k.do("PUT", s+"/messages/1/pin", nil),
			k.do("POST", s+"/turns", message), k.do("GET", s+"/context", nil), k.do("GET", s+"/compactions", nil),
			k.do("POST", s+"/compactions", nil),
			k.do("GET", s+"/compactions/cmp_1", nil), k.do("DELETE", s+"/compactions/cmp_1", nil),
			k.do("GET", s+"/compactions/cmp_1/sources", nil),
			k.do("POST", s+"/compactions/cmp_1/redo", nil), k.do("GET", s+"/calls", nil), k.do("POST", s+"/calls", `{}`),
		} {
			if r.StatusCode != 404 || r.text("code") != "not_found" {
				t.Errorf("%s: %d %s", unknown, r.StatusCode, r.raw)
			}
		}
	}
	s := "/v1/sessions/" + id
	for path, want := range map[string]int{
		"/messages/99": 404, "/messages/0": 404, "/messages/-1": 404, "/messages/x": 404,
		"/messages/99999999999999999999": 404, "/messages/20200101_001.1": 404,
		"/compactions/cmp_99": 404, "/compactions/x": 404, "/compactions/cmp_1/sources": 404,
		"/messages?dialect=klingon": 422, "/messages?cursor=x": 422, "/messages?cursor=20200101_001.1": 422,
		"/messages?limit=0": 422, "/messages?limit=1001": 422,
		"/messages?limit=x": 422, "/messages?order=up": 422, "/messages?path=none": 422, "/messages?after=-1": 422,
		"/messages?aftr=1":         422,
		"/context?dialect=klingon": 422, "/context?window=0": 422, "/context?window=-1": 422, "/context?window=x": 422,
		"/context?max_output=-1": 422, "/context?explain=perhaps": 422,
		"/compactions?cursor=x": 422, "/calls?cursor=x": 422,
	} {
		if r := k.do("GET", s+path, nil); r.StatusCode != want {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.raw)
		}
	}
	for path, want := range map[string]int{
		"?cursor=x": 422, "?cursor=" + strings.Repeat("A", 2000): 422, "?limit=-1": 422, "?since=soon": 422,
		"?source=word": 422, "?archived=perhaps": 422, "?metadata.=1": 422, "?titel=x": 422, "?metadata[]=1": 422,
		"?metadata[a=1": 422, "?other]=1": 422, "?source=pi&source=codex": 422, "?metadata.a=1&metadata.a=2": 422,
	} {
		if r := k.do("GET", "/v1/sessions"+path, nil); r.StatusCode != want || r.at("errors.0.path") == nil {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.raw)
		}
	}
	if after := k.state(); after != before {
		t.Errorf("something was stored:\n%s\n%s", before, after)
	}
}

// What is odd and allowed is stored whole.
func TestOddMessagesAreStoredWhole(t *testing.T) {
	for name, message := range map[string]string{
		"lone surrogate":      `{"role":"user","content":"a\ud800b"}`,
		"NUL":                 `{"role":"user","content":"a\u0000b"}`,
		"empty":               `{"role":"user","content":""}`,
		"null":                `{"role":"assistant","content":null}`,
		"result without call": `{"role":"tool","content":"x","tool_call_id":"nobody"}`,
		"deep": `{"role":"user","content":"x","own":` + strings.Repeat("[", 800) + strings.Repeat("]", 800) +
			`}`,
		"odd arguments": `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{not json \ud800"}}]}`,
		"big number":    `{"role":"user","content":"x","n":123456789012345678901234567890.5}`,
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, nil)
			path := "/v1/sessions/" + k.session(nil) + "/messages"
			k.want(201, k.do("POST", path, `{"dialect":"openai.chat","messages":[`+message+`]}`))
			r := k.want(200, k.do("GET", path+"?dialect=openai.chat", nil))
			if want := `{"data":[` + message + `],"places":`; !strings.HasPrefix(r.raw, want) {
				t.Errorf("came back as %.300s\nwant %.300s", r.raw, want)
			}
			k.want(200, k.do("GET", path, nil))
			k.want(201, k.do("POST", strings.TrimSuffix(path, "messages")+"turns", `{}`))
		})
	}
}

func TestUnknownDialectsAreNamed(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	before := k.state()
	for _, body := range []string{
		`{"dialect":"klingon","messages":[{"role":"user","content":"x"}]}`,
		`{"messages":[{"role":"model","parts":[{"text":"x"}],"tool_calls":[]}]}`,      // signs of two
		`{"messages":[{"role":"user","content":"x","name":"bob","origin":"person"}]}`, // signs of two
	} {
		if r := k.want(422, k.do("POST", "/v1/sessions/"+id+"/messages", body)); r.text("code") != "invalid" ||
			!strings.Contains(r.raw, "dialect") && !strings.Contains(r.raw, "looks like") {
			t.Errorf("%s", r.raw)
		}
	}
	if after := k.state(); after != before {
		t.Error("something was stored")
	}
}

func TestDuplicateExternalIDStoresNothing(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(nil) + "/messages"
	k.want(201, k.do("POST", path, `{"messages":[{"role":"user","content":"x","external_id":"e1"}]}`))
	before := k.state()
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"new","external_id":"e2"},{"role":"user","content":"x","external_id":"e1"}]}`,
		`{"messages":[{"role":"user","content":"a","external_id":"e3"},{"role":"user","content":"b","external_id":"e3"}]}`,
	} {
		if r := k.want(409, k.do("POST", path, body, header{"Idempotency-Key": "k"})); r.text("code") != "conflict" {
			t.Errorf("%s", r.raw)
		}
		if after := k.state(); after != before {
			t.Errorf("something was stored:\n%s\n%s", before, after)
		}
	}
}

func TestHugeBodies(t *testing.T) {
	effort.NotShort(t, "megabytes pass through one goroutine")
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id + "/messages"
	k.want(201, k.do("POST", path, `{"messages":[{"role":"user","content":"`+strings.Repeat("x", 10<<20)+`"}]}`))
	before := k.state()
	for target, size := range map[string]int{path: 33 << 20, "/v1/sessions": 2 << 20, "/v1/sql": 2 << 20} {
		r := k.want(413, k.do("POST", target, `{"messages":"`+strings.Repeat("x", size)+`"}`))
		if r.text("code") != "too_large" || !strings.Contains(r.text("detail"), "MiB") {
			t.Errorf("%s", r.raw)
		}
	}
	if after := k.state(); after != before {
		t.Error("something was stored")
	}
}

// broken is a body that breaks off.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestABodyThatBreaksOffStoresNothing(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	before := k.state()
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/sessions/"+id+"/messages",
		broken{strings.NewReader(`{"messages":[{"role":"user","content":"x"}]}`)}))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "is incomplete") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if after := k.state(); after != before {
		t.Error("something was stored")
	}
}

// Bodies that arrive at once have a budget. Beyond it a request is to be sent again, and what it held is
// free when it ends.
func TestLargeBodiesAtOnceAreBounded(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(nil) + "/messages"
	small := func(want int) {
		t.Helper()
		r := k.want(want, k.do("POST", path, `{"messages":[{"role":"user","content":"`+strings.Repeat("x", 4<<20)+`"}]}`))
		if want == 503 && r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	var wg sync.WaitGroup
	var held []*io.PipeWriter
	for range 2 {
		body, in := io.Pipe()
		held = append(held, in)
		wg.Go(func() {
			k.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, body))
		})
		testkit.Must(in.Write(bytes.Repeat([]byte(" "), 31<<20)))(t)
		testkit.Must(in.Write([]byte(" ")))(t) // returns after the next read, so the bytes before are counted
	}
	small(503)
	for _, in := range held {
		testkit.Check(t, in.CloseWithError(io.ErrUnexpectedEOF))
	}
	wg.Wait()
	small(201)
}

// slow is a body that never comes: the connection's deadline passes.
type slow struct{}

func (slow) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestABodyThatNeverComes(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/sessions/"+id+"/messages", slow{}))
	if w.Code != http.StatusRequestTimeout || !strings.Contains(w.Body.String(), `"code":"malformed"`) ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestNestingUpToTheLimitIsStored(t *testing.T) {
	k := newKit(t, nil)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	id := k.session(`{"metadata":{"a":` + deep(998) + `}}`) // a thousand levels with the two around it
	k.want(200, k.do("PATCH", "/v1/sessions/"+id, `{"metadata":{"b":`+deep(998)+`}}`))
	if r := k.want(200, k.do("GET", "/v1/sessions/"+id, nil)); !strings.Contains(r.raw, `"b":`+deep(998)) ||
		!strings.Contains(r.raw, `"a":`+deep(998)) {
		t.Error("the metadata came back otherwise")
	}
	for _, n := range []int{100, 895, 900, 905, 990, 996} {
		id := k.session(nil)
		message := `{"role":"user","content":"x","own":` + deep(n) + `}`
		path := "/v1/sessions/" + id + "/messages"
		k.want(201, k.do("POST", path, `{"dialect":"openai.chat","messages":[`+message+`]}`))
		if r := k.want(200, k.do("GET", path+"?dialect=openai.chat", nil)); !strings.Contains(r.raw, message) {
			t.Errorf("%d levels came back otherwise", n)
		}
	}
	k.want(422, k.do("POST", "/v1/sessions", `{"metadata":{"a":`+deep(999)+`}}`))
}

type panicking struct{ api.Contexts }

func (panicking) Assemble(ctx context.Context, id session.ID, b contextmgr.Budget) (contextmgr.View, error) {
	panic("secret state")
}

func TestAPanicIsAnAnswer(t *testing.T) {
	k := newKit(t, func(d *api.Deps) { d.Contexts = panicking{d.Contexts} })
	id := k.session(nil)
	r := k.want(500, k.do("GET", "/v1/sessions/"+id+"/context", nil))
	if r.text("code") != "internal" || strings.Contains(r.raw, "secret") || r.text("request_id") == "" ||
		r.Header.Get("X-Request-Id") != r.text("request_id") {
		t.Errorf("%s", r.raw)
	}
	if !strings.Contains(k.log.String(), r.text("request_id")) || !strings.Contains(k.log.String(), "panicked") {
		t.Errorf("the log does not tell: %s", k.log)
	}
	k.want(200, k.do("GET", "/v1/sessions/"+id, nil))
}

// The log says what was asked for, never what was said.
func TestTheLogHoldsNoContent(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"title":"hidden-title"}`)
	k.say(id, "user", "hidden-words")
	k.do("POST", "/v1/sessions/"+id+"/messages", `{"messages":[{"role":"boss","content":"hidden-words"}]}`)
	k.do("GET", "/v1/search?q=hidden-words", nil, header{"Authorization": "Bearer hidden-token"})
	if log := k.log.String(); strings.Contains(log, "hidden") || !strings.Contains(log, "/v1/search") {
		t.Errorf("%s", log)
	}
}

// No parameter makes the daemon fail or work for long: each text of each query is tried with what is too
// long, too much, or no text.
func TestOddParametersOfEveryRoute(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "hello")
	var spec struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string `json:"name"`
				In     string `json:"in"`
				Schema struct {
					Type any `json:"type"`
				} `json:"schema"`
			} `json:"parameters"`
		} `json:"paths"`
	}
	testkit.Check(t, json.Unmarshal([]byte(k.do("GET", "/openapi.json", nil).raw), &spec))
	odd := []string{
		strings.Repeat("x", 60_000), strings.Repeat("word ", 10_000), strings.Repeat(`"`, 5000), strings.Repeat("(", 5000),
		"a\x00b", "\xff\xfe", "-1", "1e400",
		"9999-99-99", "\u202e\x1b[31m", "'; DROP TABLE messages; --", `{"a":`, strings.Repeat("%", 3000) + "_",
		"../../etc/passwd",
	}
	tried := 0
	for path, methods := range spec.Paths {
		op, ok := methods["get"]
		if !ok || strings.Contains(path, "/events") {
			continue // a stream does not end
		}
		route := strings.NewReplacer("{id}", id, "{seq}", "1").Replace(path)
		names := []string{"metadata.a", "metadata." + strings.Repeat("k", 60_000)}
		for _, p := range op.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		for _, name := range names {
			for _, value := range odd {
				tried++
				if r := k.do("GET", route+"?"+url.QueryEscape(name)+"="+url.QueryEscape(value), nil); r.StatusCode >= 500 {
					t.Errorf("%s?%.40s=%.40q: %d %.200s", path, name, value, r.StatusCode, r.raw)
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d requests", tried)
	}
}
