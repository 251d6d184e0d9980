package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/internal/web/api"
)

// ids returns a field of the items of a list.
func (r reply) ids(field string) string {
	all, _ := r.at("data").([]any)
	var out []string
	for _, item := range all {
		out = append(out, fmt.Sprint(item.(map[string]any)[field]))
	}
	return strings.Join(out, " ")
}

// talk makes a session of messages that say their own number.
func (k *kit) talk(n int) string {
	k.t.Helper()
	id := k.session(`{"title":"Plan"}`)
	for i := range n {
		k.say(id, []string{"user", "assistant"}[i%2], fmt.Sprint("message ", i+1))
	}
	return id
}

func TestTheHeadGoesBackAndForth(t *testing.T) {
	k := newKit(t, nil)
	id := k.talk(4)
	s := "/v1/sessions/" + id
	before := k.want(200, k.do("GET", s, nil))
	r := k.want(200, k.do("PUT", s+"/head", `{"seq":2}`, header{"If-Match": before.Header.Get("ETag")}))
	if r.text("head") != id+".2" || r.at("epoch") != 1.0 || r.Header.Get("ETag") == before.Header.Get("ETag") {
		t.Errorf("%s", r.raw)
	}
	k.want(412, k.do("PUT", s+"/head", `{"seq":4}`, header{"If-Match": before.Header.Get("ETag")}))
	again := k.want(200, k.do("PUT", s+"/head", `{"seq":"`+id+`.2"}`))
	if again.at("epoch") != 1.0 || again.Header.Get("ETag") != r.Header.Get("ETag") {
		t.Errorf("going where the head is changed something: %s", again.raw)
	}
	k.say(id, "user", "another way")
	if got := k.do("GET", s+"/messages", nil).ids("seq"); got != "1 2 5" {
		t.Errorf("path %s", got)
	}
	tree := k.want(200, k.do("GET", s+"/tree", nil))
	if tree.at("segments") != 3.0 || tree.at("leaves") != 2.0 || tree.text("head") != id+".5" ||
		tree.at("data.0.count") != 2.0 || tree.at("data.0.on_path") != true {
		t.Errorf("%s", tree.raw)
	}
	start := k.want(200, k.do("PUT", s+"/head", `{"seq":null}`))
	if start.at("head") != nil || start.at("context_tokens") != 0.0 {
		t.Errorf("%s", start.raw)
	}
	if got := k.do("GET", s+"/messages", nil).ids("seq"); got != "" {
		t.Errorf("path %s", got)
	}
	k.want(201, k.do("POST", s+"/messages", `{"messages":[{"role":"user","content":"anew"}],"expect_head":null}`))
	if got := k.do("GET", s+"/messages?path=all", nil).ids("seq"); got != "1 2 3 4 5 6" {
		t.Errorf("all %s", got)
	}
}

func TestARepeatedMoveOfTheHeadIsOne(t *testing.T) {
	var works []func(context.Context)
	k := newKit(t, func(d *api.Deps) {
		d.Run = func(work func(context.Context)) bool { works = append(works, work); return true }
	})
	id := k.talk(4)
	s := "/v1/sessions/" + id
	key := header{"Idempotency-Key": "once"}
	k.want(202, k.do("PUT", s+"/head", `{"seq":2,"summarize":true}`, key))
	k.want(200, k.do("PUT", s+"/head", `{"seq":2,"summarize":true}`, key))
	k.want(422, k.do("PUT", s+"/head", `{"seq":3}`, key))
	if len(works) != 1 {
		t.Fatalf("%d summaries are made", len(works))
	}
	works[0](t.Context())
	page := k.do("GET", s+"/messages?order=desc&limit=1", nil)
	if page.text("data.0.kind") != "branch_summary" || !strings.Contains(page.text("data.0.content"), "message 3") ||
		page.text("data.0.parent") != id+".2" {
		t.Errorf("%s", page.raw)
	}
	k.want(200, k.do("PUT", s+"/head", `{"seq":1,"summarize":false}`))
	if len(works) != 1 {
		t.Error("a summary that nobody asked for")
	}
}

func TestWrongHeadsForksLabelsAndParents(t *testing.T) {
	k := newKit(t, nil)
	id, other := k.talk(3), k.talk(1)
	s := "/v1/sessions/" + id
	before := k.state()
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"PUT", "/head", `{"seq":9}`, 422, "seq"},
		{"PUT", "/head", `{"seq":"` + other + `.1"}`, 422, "seq"},
		{"PUT", "/head", `{"seq":0}`, 422, "seq"},
		{"PUT", "/head", `{"seq":1.5}`, 422, "seq"},
		{"PUT", "/head", `{"seq":"two"}`, 422, "seq"},
		{"PUT", "/head", `{"seq":[1]}`, 422, "seq"},
		{"PUT", "/head", `{}`, 422, "seq"},
		{"PUT", "/head", `{"seq":1,"sumarize":true}`, 422, "sumarize"},
		{"PUT", "/head", `{"seq":1,"summarize":"yes"}`, 422, "summarize"},
		{"PUT", "/head", `[1]`, 400, ""},
		{"POST", "/fork", `{"at":9}`, 422, "at"},
		{"POST", "/fork", `{"at":null}`, 422, "at"},
		{"POST", "/fork", `{"at":"` + other + `.1"}`, 422, "at"},
		{"POST", "/fork", `{"title":7}`, 422, "title"},
		{"POST", "/fork", `{"states":["todos"]}`, 422, "states[0]"},
		{"POST", "/fork", `{"states":"todos"}`, 422, "states"},
		{"POST", "/fork", `{"from":1}`, 422, "from"},
		{"POST", "/messages", `{"messages":[{"role":"user","content":"x"}],"parent":"` + other + `.1"}`, 422, "parent"},
		{"POST", "/messages", `{"messages":[{"role":"user","content":"x"}],"parent":9}`, 422, "parent"},
		{"PUT", "/messages/1/label", `{"text":" "}`, 422, "text"},
		{"PUT", "/messages/1/label", `{"text":"` + strings.Repeat("ä", 65) + `"}`, 422, "text"},
		{"PUT", "/messages/1/label", `{"text":"a\u0007b"}`, 422, "text"},
		{"PUT", "/messages/1/label", `{"label":"x"}`, 422, "label"},
		{"PUT", "/messages/9/label", `{"text":"x"}`, 404, ""},
		{"PUT", "/messages/" + other + ".1/label", `{"text":"x"}`, 404, ""},
		{"PUT", "/messages/" + other + ".1/pin", ``, 404, ""},
		{"GET", "/messages/" + other + ".1", ``, 404, ""},
		{"GET", "/messages?after=" + other + ".1", ``, 422, "after"},
		{"GET", "/messages?before=x", ``, 422, "before"},
		{"GET", "/tree?cursor=x", ``, 422, "cursor"},
		{"GET", "/tree?cursor=" + other + ".1", ``, 422, "cursor"},
		{"GET", "/tree?limit=0", ``, 422, "limit"},
		{"GET", "?rollup=perhaps", ``, 422, "rollup"},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		r := k.do(c.method, s+c.path, body)
		if r.StatusCode != c.status || c.field != "" && r.text("errors.0.path") != c.field {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, r.StatusCode, r.raw)
		}
	}
	for _, c := range []struct{ body, field string }{
		{`{"parent_kind":"fork","parent_id":"` + id + `"}`, "parent_kind"},
		{`{"parent_message":1}`, "parent_id"},
		{`{"parent_id":"` + id + `","parent_message":9}`, "parent_message"},
		{`{"parent_id":"20200101_001"}`, "parent_id"},
	} {
		if r := k.do("POST", "/v1/sessions", c.body); r.StatusCode != 422 || r.text("errors.0.path") != c.field {
			t.Errorf("%s: %d %s", c.body, r.StatusCode, r.raw)
		}
	}
	if after := k.state(); after != before {
		t.Errorf("something was written:\n%s\n%s", before, after)
	}
}

func TestAForkIsReadWithWhatItShares(t *testing.T) {
	k := newKit(t, nil)
	id := k.talk(5)
	k.want(200, k.do("PUT", "/v1/sessions/"+id+"/messages/2/label", `{"text":" here "}`))
	made := k.want(201, k.do("POST", "/v1/sessions/"+id+"/fork", `{"at":3}`))
	fork := made.text("id")
	if made.text("title") != "Plan (fork #1)" || made.text("head") != id+".3" ||
		made.Header.Get("Location") != "/v1/sessions/"+fork || made.at("message_count") != 0.0 {
		t.Errorf("%s", made.raw)
	}
	f := "/v1/sessions/" + fork
	k.say(fork, "user", "in the fork")
	var got []string
	next := ""
	for range 10 {
		page := k.want(200, k.do("GET", f+"/messages?limit=1&cursor="+next, nil))
		got = append(got, page.ids("id"))
		if next, _ = page.at("next_cursor").(string); next == "" {
			break
		}
	}
	want := fmt.Sprintf("%s.1 %s.2 %s.3 %s.1", id, id, id, fork)
	if strings.Join(got, " ") != want {
		t.Errorf("in pages %v, not %s", got, want)
	}
	if got := k.do("GET", f+"/messages?after="+id+".2", nil).ids("id"); got != id+".3 "+fork+".1" {
		t.Errorf("after a shared one: %s", got)
	}
	if got := k.do("GET", f+"/messages?before="+id+".2&order=desc", nil).ids("id"); got != id+".1" {
		t.Errorf("before a shared one: %s", got)
	}
	if m := k.want(200, k.do("GET", f+"/messages/"+id+".2", nil)); m.text("content") != "message 2" {
		t.Errorf("%s", m.raw)
	}
	view := k.want(200, k.do("GET", f+"/context", nil))
	if !strings.Contains(view.raw, "message 3") || !strings.Contains(view.raw, "in the fork") ||
		strings.Contains(view.raw, "message 4") {
		t.Errorf("%s", view.raw)
	}
	if chat := k.want(200, k.do("GET", f+"/messages?dialect=openai.chat", nil)); !strings.Contains(chat.raw,
		`{"role":"user","content":"message 1"}`) {
		t.Errorf("%s", chat.raw)
	}
	tree := k.want(200, k.do("GET", f+"/tree", nil))
	if tree.at("data.0.shared") != true || tree.text("data.0.labels.0.text") != "here" ||
		tree.text("data.0.children.0") != fork+".1" {
		t.Errorf("%s", tree.raw)
	}
	if link := k.want(200, k.do("GET", f, nil)); link.text("link.message_id") != id+".3" ||
		link.text("link.kind") != "fork" {
		t.Errorf("%s", link.raw)
	}
	k.want(201, k.do("POST", f+"/messages", `{"messages":[{"role":"user","content":"regenerated"}],"parent":"`+id+`.1"}`))
	k.want(200, k.do("PUT", f+"/head", `{"seq":"`+id+`.2"}`))
	k.want(422, k.do("PUT", f+"/head", `{"seq":"`+id+`.4"}`))
	second := k.want(201, k.do("POST", f+"/fork", `{"title":"Mine"}`))
	if second.text("title") != "Mine" || second.text("head") != id+".2" || second.text("parent_id") != fork {
		t.Errorf("%s", second.raw)
	}
}

func TestChildrenHangWhereTheyWereStarted(t *testing.T) {
	k := newKit(t, nil)
	id := k.talk(2)
	child := k.session(`{"parent_id":"` + id + `","parent_message":2,"parent_call":"call_1","kind":"subagent","title":"Look it up"}`)
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/fork", nil))
	k.want(201, k.do("POST", "/v1/sessions/"+child+"/calls", `{"provider":"p","model":"priced","input_tokens":5,"output_tokens":2}`))
	if got := k.do("GET", "/v1/sessions?parent_kind=child&parent_id="+id, nil).ids("id"); got != child {
		t.Errorf("children %s", got)
	}
	sum := k.want(200, k.do("GET", "/v1/sessions/"+id+"?rollup=true", nil))
	if sum.at("rollup.children") != 1.0 || sum.at("rollup.input_tokens") != 5.0 ||
		sum.at("input_tokens") != 0.0 || sum.at("rollup.cost_usd") != 7e-9 {
		t.Errorf("%s", sum.raw)
	}
	if link := k.want(200, k.do("GET", "/v1/sessions/"+child, nil)); link.text("link.message_id") != id+".2" ||
		link.text("link.call_id") != "call_1" {
		t.Errorf("%s", link.raw)
	}
}

func TestStatesOverHTTP(t *testing.T) {
	k := newKit(t, nil)
	id := k.talk(1)
	s := "/v1/sessions/" + id + "/states"
	k.want(404, k.do("GET", s+"/todos", nil))
	first := k.want(200, k.do("PUT", s+"/todos", ` [{"text":"a <b>","n":1.10}] `, header{"If-None-Match": "*"}))
	if first.Header.Get("ETag") != `"1"` || first.raw != `[{"text":"a <b>","n":1.10}]`+"\n" {
		t.Errorf("%s %s", first.Header, first.raw)
	}
	k.want(412, k.do("PUT", s+"/todos", `[]`, header{"If-None-Match": "*"}))
	k.want(412, k.do("PUT", s+"/todos", `[]`, header{"If-Match": `"7"`}))
	k.want(200, k.do("PUT", s+"/todos", `[]`, header{"If-Match": `"1"`}))
	for value, status := range map[string]int{
		`7`: 422, `{}`: 422, ``: 400, `{`: 400, `[1] 2`: 400, "[\"\xff\"]": 400,
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000): 422,
	} {
		method := "PUT"
		if status == 422 && len(value) < 10 { // no array to append to
			k.want(200, k.do("PUT", s+"/x", value))
			method, value = "POST", `1`
		}
		if r := k.do(method, s+"/x", value); r.StatusCode != status {
			t.Errorf("%s %.20q: %d %s", method, value, r.StatusCode, r.raw)
		}
	}
	k.want(200, k.do("PUT", s+"/toggles", `{"a":true,"b":{"c":1,"d":2}}`))
	if r := k.want(200, k.do("PATCH", s+"/toggles",
		`{"a":null,"b":{"c":3},"e":[1]}`)); r.raw != `{"b":{"c":3,"d":2},"e":[1]}`+"\n" {
		t.Errorf("%s", r.raw)
	}
	k.want(400, k.do("PATCH", s+"/toggles", `[1]`))
	k.want(422, k.do("PATCH", s+"/toggles", `{"a":1,"a":2}`))
	k.want(422, k.do("PUT", s+"/"+strings.Repeat("x", 65), `1`))
	k.want(422, k.do("PUT", s+"/a%20b", `1`))
	k.want(413, k.do("PUT", s+"/big", `"`+strings.Repeat("x", 1<<20)+`"`))
	k.want(422, k.do("PUT", s+"/todos", `[]`, header{"If-None-Match": `"1"`}))
	k.want(204, k.do("DELETE", s+"/toggles", nil))
	k.want(204, k.do("DELETE", s+"/toggles", nil))
	k.want(404, k.do("GET", s+"/toggles", nil))
	if got := k.do("GET", s, nil).ids("name"); got != "todos x" {
		t.Errorf("states %s", got)
	}
	made := k.want(201, k.do("POST", "/v1/sessions/"+id+"/fork", `{"states":["todos"]}`)).text("id")
	if r := k.want(200, k.do("GET", "/v1/sessions/"+made+"/states", nil)); r.ids("name") != "todos" ||
		r.at("data.0.revision") != 1.0 {
		t.Errorf("%s", r.raw)
	}
	if n := k.count(`SELECT COUNT(*) FROM events WHERE type = 'state.changed'`); n < 6 {
		t.Errorf("%d events", n)
	}
}

// Several documents change in one step: all of them, or none.
func TestSeveralStatesChangeTogether(t *testing.T) {
	k := newKit(t, nil)
	id := k.talk(1)
	s := "/v1/sessions/" + id + "/states"
	r := k.want(200, k.do("PUT", s, `{"states":[{"name":"todos","value":["a"],"if_revision":0},{"name":"mood","value":null}]}`))
	if r.ids("name") != "todos mood" || r.at("data.0.revision") != 1.0 || r.at("data.1.size") != 4.0 {
		t.Errorf("%s", r.raw)
	}
	before := k.state()
	for body, want := range map[string]struct {
		status int
		field  string
	}{
		`{"states":[{"name":"todos","value":["b"]},{"name":"mood","value":1,"if_revision":7}]}`: {412, ""},
		`{"states":[{"name":"todos","value":["b"]},{"name":"mood","value":1,"if_revision":0}]}`: {412, ""},
		`{"states":[{"name":"todos","value":["b"]},{"name":"a b","value":1}]}`:                  {422, "states[1].name"},
		`{"states":[{"name":"todos","value":["b"]},{"name":"todos","value":["c"]}]}`:            {422, "states[1].name"},
		`{"states":[{"name":"todos","value":["b"]},{"name":"x"}]}`:                              {422, "states[1].value"},
		`{"states":[{"name":"todos","delete":true,"value":1}]}`:                                 {422, "states[0].value"},
		`{"states":[{"name":"todos","value":1,"if_revision":-1}]}`:                              {422, "states[0].if_revision"},
		`{"states":[{"name":"todos","value":["b"]},{"name":"big","value":"` + strings.Repeat("x", 1<<20) + `"}]}`: {
			413, "states[1].value",
		},
		`{"states":[]}`: {422, "states"}, `{}`: {422, "states"}, `{"states":[7]}`: {422, "states[0]"},
	} {
		r := k.do("PUT", s, body)
		if field, _ := r.at("errors.0.path").(string); r.StatusCode != want.status || field != want.field {
			t.Errorf("%.90s: %d %s", body, r.StatusCode, r.raw)
		}
	}
	k.want(404, k.do("PUT", "/v1/sessions/20200101_001/states", `{"states":[{"name":"todos","value":1}]}`))
	k.want(422, k.do("PATCH", s, `{"states":[{"name":"mood","value":{"a":1,"a":2}}]}`))
	if r := k.do("PATCH", s, `{"states":[{"name":"todos","delete":true},{"name":"mood","value":[]}]}`); r.StatusCode != 400 {
		t.Errorf("%d %s", r.StatusCode, r.raw)
	}
	if after := k.state(); after != before {
		t.Errorf("a rejected batch changed the database:\n%s\n%s", before, after)
	}
	again := header{"Idempotency-Key": "batch"}
	patch := `{"states":[{"name":"mood","value":{"b":2}},{"name":"todos","delete":true},{"name":"none","delete":true}]}`
	for range 2 {
		r = k.want(200, k.do("PATCH", s, patch, again))
		if r.ids("name") != "mood" || r.at("data.0.revision") != 2.0 {
			t.Errorf("%s", r.raw)
		}
	}
	if r := k.want(200, k.do("GET", s+"/mood", nil)); r.raw != `{"b":2}`+"\n" {
		t.Error(r.raw)
	}
	k.want(404, k.do("GET", s+"/todos", nil))
	if n := k.count(`SELECT COUNT(*) FROM events WHERE type = 'state.changed'`); n != 4 {
		t.Errorf("%d events, want 4: of the first batch two, of the second two", n)
	}
}

func TestTwoApprovalsAtOnceAreBothKept(t *testing.T) {
	k := newKit(t, nil)
	id := k.talk(1)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r := k.do("POST", "/v1/sessions/"+id+"/states/permissions", fmt.Sprintf(`{"tool":"bash","n":%d}`, i),
				header{"Idempotency-Key": fmt.Sprint("k", i%10)})
			if r.StatusCode != http.StatusOK && i < 10 && r.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%d %s", r.StatusCode, r.raw)
			}
		})
	}
	wg.Wait()
	r := k.want(200, k.do("GET", "/v1/sessions/"+id+"/states/permissions", nil))
	if all, _ := r.doc.([]any); len(all) != 10 { // each key was used twice, with another body the second time
		t.Errorf("%s", r.raw)
	}
}

// Of many clients that take the last message back at once, each gets another one. Nothing is deleted.
func TestEachPopAnswersAnotherMessage(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{}`)
	path := "/v1/sessions/" + id + "/messages"
	if r := k.want(200, k.do("POST", path+"/pop", `{}`)); r.at("message") != nil || r.at("head") != nil {
		t.Errorf("of no message: %s", r.raw)
	}
	k.want(201, k.do("POST", path, `{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},`+
		`{"role":"user","content":"3"},{"role":"assistant","content":"4"}]}`))
	r := k.want(409, k.do("POST", path+"/pop", `{"expect_head":3}`))
	testkit.Equal(t, any(id+".4"), r.at("head"))
	key := header{"Idempotency-Key": "pop-1"}
	for range 2 {
		r := k.want(200, k.do("POST", path+"/pop?dialect=openai.chat", `{"expect_head":4}`, key))
		testkit.Equal(t, any(map[string]any{"role": "assistant", "content": "4"}), r.at("message"))
		testkit.Equal(t, any(id+".3"), r.at("head"))
	}
	var wait sync.WaitGroup
	got := make([]any, 5)
	for i := range got {
		wait.Go(func() {
			if m, ok := k.want(200, k.do("POST", path+"/pop", `{}`)).at("message").(map[string]any); ok {
				got[i] = m["content"]
			}
		})
	}
	wait.Wait()
	slices.SortFunc(got, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	testkit.Equal(t, []any{"1", "2", "3", nil, nil}, got)
	all := k.want(200, k.do("GET", path+"?path=all", nil)).at("data").([]any)
	if len(all) != 4 {
		t.Errorf("%d messages are left of 4", len(all))
	}
}

// A reply of several items is one message. The head has moved when it is answered, so all of its items are.
func TestPopAnswersAllItemsOfAMessage(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(`{}`) + "/messages"
	thought := map[string]any{"type": "reasoning", "id": "rs_1", "summary": []any{}}
	call := map[string]any{"type": "function_call", "call_id": "c1", "name": "tide", "arguments": "{}"}
	k.say(strings.Split(path, "/")[3], "user", "high?")
	k.want(201, k.do("POST", path, map[string]any{"dialect": "openai.responses", "messages": []any{thought, call}}))
	for range 2 { // the second is the answer of the first again
		r := k.want(200, k.do("POST", path+"/pop?dialect=openai.responses", `{}`, header{"Idempotency-Key": "pop"}))
		testkit.Equal(t, any(call), r.at("message"))
		testkit.Equal(t, any([]any{thought, call}), r.at("items"))
	}
	r := k.want(200, k.do("POST", path+"/pop", `{}`))
	testkit.Equal(t, any("high?"), r.at("message.content"))
	if r.at("items") != nil || r.at("head") != nil {
		t.Error(r.raw)
	}
}
