package api_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/testkit/storetest"
)

func TestSessionIsCreatedReadAndListed(t *testing.T) {
	k := newKit(t, nil)
	r := k.want(201, k.do("POST", "/v1/sessions", `{"title":"a <b> & ü","key":"agent:main:main","kind":"cron","directory":"/tmp","model":"known",
		"window":1000,"metadata":{"user_id":"u1","n":9007199254740993}}`))
	id := r.text("id")
	if r.Header.Get("Location") != "/v1/sessions/"+id || r.Header.Get("ETag") != `"1"` {
		t.Errorf("headers %v", r.Header)
	}
	if !strings.Contains(r.raw, `a <b> & ü`) || !strings.Contains(r.raw, "9007199254740993") ||
		!strings.Contains(r.raw, `"created_at":"2026-02-11T10:00:00.`) {
		t.Errorf("%s", r.raw)
	}
	r = k.want(200, k.do("GET", "/v1/sessions/"+id, nil))
	if r.text("title") != "a <b> & ü" || r.text("kind") != "cron" || r.at("window") != 1000.0 || r.at("head") != nil {
		t.Errorf("%s", r.raw)
	}
	child := k.session(map[string]any{"parent_id": id, "title": "child"})
	for query, want := range map[string]string{
		"?q=ü": id, "?key=agent:main:main": id, "?model=known": id, "?directory=/tmp": id, "?metadata.user_id=u1": id,
		"?parent_id=" + id: child, "?source=sessiond&q=child": child, "?since=2026-02-11&q=child": child,
	} {
		r := k.want(200, k.do("GET", "/v1/sessions"+query, nil))
		if data, _ := r.at("data").([]any); len(data) != 1 || r.text("data.0.id") != want {
			t.Errorf("%s: %s", query, r.raw)
		}
	}
	for _, query := range []string{
		"?metadata.user_id=u2", "?until=2026-02-11", "?archived=true", "?trash=true",
		"?source=pi",
	} {
		if r := k.want(200, k.do("GET", "/v1/sessions"+query, nil)); r.at("data.0") != nil {
			t.Errorf("%s: %s", query, r.raw)
		}
	}
}

func TestListsComeInPieces(t *testing.T) {
	k := newKit(t, nil)
	for i := range 5 {
		k.session(map[string]any{"title": fmt.Sprint(i)})
	}
	var titles []string
	cursor := ""
	for page := 0; page < 3; page++ {
		r := k.want(200, k.do("GET", "/v1/sessions?limit=2&cursor="+cursor, nil))
		for _, s := range r.at("data").([]any) {
			titles = append(titles, s.(map[string]any)["title"].(string))
		}
		cursor, _ = r.at("next_cursor").(string)
		if (cursor == "") != (page == 2) {
			t.Errorf("page %d: next_cursor %q", page, cursor)
		}
	}
	if got := strings.Join(titles, ""); got != "43210" {
		t.Errorf("order %s, want the newest first", got)
	}
	if r := k.want(200, k.do("GET", "/v1/sessions?order=asc&limit=1", nil)); r.text("data.0.title") != "0" {
		t.Errorf("%s", r.raw)
	}
}

func TestMergePatchChangesWhatItNames(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"title":"old","model":"m","window":5,"metadata":{"a":1,"b":{"c":2,"d":3}}}`)
	path := "/v1/sessions/" + id
	r := k.want(200, k.do("PATCH", path, `{"title":"new","archived":true,"window":null,"metadata":{"a":null,"b":{"c":9}},"settings":{"fraction":0.5}}`))
	if r.text("title") != "new" || r.text("model") != "m" || r.at("window") != nil || r.at("archived_at") == nil ||
		r.at("metadata.a") != nil ||
		r.at("metadata.b.c") != 9.0 || r.at("metadata.b.d") != 3.0 || r.at("settings.fraction") != 0.5 {
		t.Errorf("%s", r.raw)
	}
	r = k.want(200, k.do("PATCH", path, `{"metadata":null,"settings":null,"archived":false,"title":null}`))
	if m, _ := r.at("metadata").(map[string]any); len(m) != 0 || r.at("settings") != nil || r.at("archived_at") != nil ||
		r.text("title") != "" {
		t.Errorf("%s", r.raw)
	}
	k.want(200, k.do("PATCH", path, `{}`))
}

func TestIfMatchGuardsARevision(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(nil)
	tag := k.do("GET", path, nil).Header.Get("ETag")
	r := k.want(200, k.do("PATCH", path, `{"title":"1"}`, header{"If-Match": tag}))
	if r.Header.Get("ETag") == tag {
		t.Error("the ETag did not change")
	}
	for _, try := range []reply{
		k.do("PATCH", path, `{"title":"2"}`, header{"If-Match": tag}),
		k.do("DELETE", path, nil, header{"If-Match": tag}),
		k.do("POST", path+"/untrash", nil, header{"If-Match": tag}),
	} {
		if k.want(412, try).text("code") != "precondition_failed" {
			t.Errorf("%s", try.raw)
		}
	}
	k.want(422, k.do("PATCH", path, `{"title":"2"}`, header{"If-Match": "W/x"}))
	k.want(200, k.do("PATCH", path, `{"title":"2"}`, header{"If-Match": "*"}))
}

// Without If-Match concurrent merges of different fields all arrive.
func TestConcurrentMergesLoseNothing(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if r := k.do("PATCH", path, fmt.Sprintf(`{"metadata":{"f%d":%d}}`, i, i)); r.StatusCode != 200 {
				t.Errorf("%s", r.raw)
			}
		})
	}
	wg.Wait()
	if m, _ := k.do("GET", path, nil).at("metadata").(map[string]any); len(m) != 4 {
		t.Errorf("metadata %v", m)
	}
}

func TestTrashAndBack(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "keep this")
	path := "/v1/sessions/" + id
	if r := k.want(422, k.do("DELETE", path+"?scrub=true", nil)); r.text("errors.0.path") != "scrub" {
		t.Errorf("%s", r.raw)
	}
	if k.do("GET", path, nil).at("deleted_at") != nil {
		t.Fatal("a refused scrub moved the session into the trash")
	}
	if k.want(200, k.do("DELETE", path, nil)).at("deleted_at") == nil {
		t.Error("not in the trash")
	}
	if k.do("GET", "/v1/sessions", nil).at("data.0") != nil ||
		k.do("GET", "/v1/sessions?trash=true", nil).text("data.0.id") != id {
		t.Error("the trash is listed wrongly")
	}
	if r := k.want(200, k.do("GET", "/v1/search?q=keep", nil)); r.at("hits.0") != nil {
		t.Errorf("found in the trash: %s", r.raw)
	}
	k.want(409, k.do("POST", path+"/messages", `{"messages":[{"role":"user","content":"x"}]}`))
	if k.want(200, k.do("POST", path+"/untrash", nil)).at("deleted_at") != nil {
		t.Error("still in the trash")
	}
	k.say(id, "user", "again")
}

func TestDraftIsListedWithItsFirstReply(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"draft":true}`)
	k.say(id, "user", "hello")
	if k.do("GET", "/v1/sessions", nil).at("data.0") != nil {
		t.Error("a draft is listed")
	}
	k.say(id, "assistant", "hi")
	if k.do("GET", "/v1/sessions", nil).text("data.0.id") != id {
		t.Error("not listed after its first reply")
	}
}

func TestRepeatedCreationMakesOneSession(t *testing.T) {
	k := newKit(t, nil)
	key := header{"Idempotency-Key": "k1"}
	first := k.want(201, k.do("POST", "/v1/sessions", `{"title":"a"}`, key))
	again := k.want(201, k.do("POST", "/v1/sessions", `{"title":"a"}`, key))
	if first.raw != again.raw {
		t.Errorf("answers differ:\n%s%s", first.raw, again.raw)
	}
	if r := k.want(422, k.do("POST", "/v1/sessions", `{"title":"b"}`, key)); r.text("code") != "invalid" {
		t.Errorf("%s", r.raw)
	}
	k.want(422, k.do("POST", "/v1/sessions", `{}`, header{"Idempotency-Key": strings.Repeat("k", 256)}))
	if n := k.count(`SELECT COUNT(*) FROM sessions`); n != 1 {
		t.Errorf("%d sessions", n)
	}
	path := "/v1/sessions/" + first.text("id")
	key = header{"Idempotency-Key": "k2"}
	k.want(200, k.do("PATCH", path, `{"title":"c"}`, key))
	revision := k.do("GET", path, nil).at("revision")
	k.want(200, k.do("PATCH", path, `{"title":"c"}`, key))
	if k.do("GET", path, nil).at("revision") != revision {
		t.Error("a repeated patch was applied again")
	}
	k.want(422, k.do("PATCH", path, `{"title":"d"}`, key))
	key = header{"Idempotency-Key": "k3"}
	k.want(200, k.do("DELETE", path, nil, key))
	k.want(200, k.do("DELETE", path, nil, key))
}

func TestPurge(t *testing.T) {
	how := "?purge=true"
	if !storetest.OnPostgres() { // there sessiond has no file to scrub
		how += "&scrub=true"
	}
	k := newKit(t, nil)
	id, other := k.session(nil), k.session(nil)
	k.say(id, "user", "delete this")
	k.say(other, "user", "keep that")
	path := "/v1/sessions/" + id
	k.want(412, k.do("DELETE", path+"?purge=true", nil, header{"If-Match": `"1"`}))
	key := header{"Idempotency-Key": "gone"}
	first := k.want(200, k.do("DELETE", path+how, nil, key))
	if first.text("id") != id || first.at("messages") != 1.0 || first.at("scrubbed") != !storetest.OnPostgres() {
		t.Errorf("%s", first.raw)
	}
	if again := k.want(200, k.do("DELETE", path+how, nil, key)); again.raw != first.raw {
		t.Errorf("a retry answered %s, not %s", again.raw, first.raw)
	}
	for _, gone := range []string{"", "/messages", "/messages/1", "/context", "/compactions"} {
		k.want(404, k.do("GET", path+gone, nil))
	}
	k.want(404, k.do("POST", path+"/messages", `{"messages":[{"role":"user","content":"x"}]}`))
	k.want(404, k.do("POST", path+"/untrash", nil))
	k.want(404, k.do("DELETE", path+"?purge=true", nil))
	if r := k.want(200, k.do("GET", "/v1/search?q=delete", nil)); r.at("hits.0") != nil {
		t.Errorf("%s", r.raw)
	}
	if r := k.want(200, k.do("GET", "/v1/sessions?trash=true", nil)); r.at("data.0") != nil {
		t.Errorf("%s", r.raw)
	}
	if r := k.want(200, k.do("GET", "/v1/search?q=keep", nil)); r.text("hits.0.session_id") != other {
		t.Errorf("%s", r.raw)
	}
}

func TestASessionIsExported(t *testing.T) {
	k := newKit(t, nil)
	made := k.want(201, k.do("POST", "/v1/sessions", map[string]any{"title": "A <plan>"}))
	id := strings.TrimPrefix(made.Header.Get("Location"), "/v1/sessions/")
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": []any{
		map[string]any{"role": "user", "content": "my key is AKIAIOSFODNN7EXAMPLE"},
	}}))
	for format, want := range map[string][3]string{
		"":      {"application/x-ndjson", ".jsonl", `{"type":"export","program":"sessiond","version":1}`},
		"jsonl": {"application/x-ndjson", ".jsonl", `{"type":"end","sessions":1}`},
		"md":    {"text/markdown; charset=utf-8", ".md", `# A \<plan\>`},
		"html":  {"text/html; charset=utf-8", ".html", `<h1 dir="auto">A &lt;plan&gt;</h1>`},
	} {
		w := httptest.NewRecorder()
		k.handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/sessions/"+id+"/export?format="+format, nil))
		head := w.Result().Header
		if w.Code != 200 || head.Get("Content-Type") != want[0] ||
			head.Get("Content-Disposition") != `attachment; filename="`+id+want[1]+`"` {
			t.Errorf("%q is answered with %d, %v", format, w.Code, head)
		}
		if body := w.Body.String(); !strings.Contains(body, want[2]) || !strings.Contains(body, "AKIAIOSFODNN7EXAMPLE") {
			t.Errorf("%q holds %.300s", format, body)
		}
	}
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/sessions/"+id+"/export?format=md&redact=true", nil))
	if body := w.Body.String(); strings.Contains(body, "AKIAIOSFODNN7EXAMPLE") ||
		!strings.Contains(body, "secret: aws key id") {
		t.Errorf("masked: %s", body)
	}
	k.want(422, k.do("GET", "/v1/sessions/"+id+"/export?format=docx", nil))
	k.want(404, k.do("GET", "/v1/sessions/20200101_001/export", nil))
}
