package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

const conversations = "/v1/conversations"

// said is an item that says a text.
func saidItem(text string) map[string]any { return map[string]any{"role": "user", "content": text} }

// conversation makes one with items of these texts, 20 at most, and returns its id.
func (k *kit) conversation(texts ...string) string {
	k.t.Helper()
	items := []any{}
	for _, text := range texts {
		items = append(items, saidItem(text))
	}
	return k.want(200, k.do("POST", conversations, map[string]any{"items": items})).text("id")
}

// list returns the ids and the texts of a page of items.
func (k *kit) list(id, query string) (ids, texts []string, more bool) {
	k.t.Helper()
	r := k.want(200, k.do("GET", conversations+"/"+id+"/items?"+query, nil))
	data, _ := r.at("data").([]any)
	for _, it := range data {
		o := it.(map[string]any)
		ids = append(ids, text(o, "id"))
		if content, ok := o["content"].([]any); ok && len(content) > 0 {
			texts = append(texts, text(content[0], "text"))
		} else {
			texts = append(texts, text(o, "type"))
		}
	}
	if len(ids) > 0 && (r.text("first_id") != ids[0] || r.text("last_id") != ids[len(ids)-1]) {
		k.t.Errorf("first_id and last_id: %s", r.raw)
	}
	more, _ = r.at("has_more").(bool)
	return ids, texts, more
}

func (k *kit) texts(id string) []string {
	k.t.Helper()
	_, texts, _ := k.list(id, "order=asc&limit=100")
	return texts
}

func TestConversationIsASession(t *testing.T) {
	k := newKit(t, nil)
	r := k.want(200, k.do("POST", conversations, `{"items":[{"role":"user","content":"How high is the quagga?"}],`+
		`"metadata":{"user":"u_7","größe":"2"}}`))
	id := r.text("id")
	sess := strings.TrimPrefix(id, "conv_")
	testkit.Equal(t, any(map[string]any{
		"id": id, "object": "conversation", "created_at": 1770804000.0,
		"metadata": map[string]any{"user": "u_7", "größe": "2"},
	}), r.doc)
	testkit.Equal(t, r.doc, k.want(200, k.do("GET", conversations+"/"+id, nil)).doc)
	testkit.Equal(t, any("How high is the quagga?"), k.do("GET", "/v1/sessions?metadata.user=u_7", nil).at("data.0.title"))

	// What is no text in the session's metadata is not the conversation's, and stays.
	k.want(200, k.do("PATCH", "/v1/sessions/"+sess, `{"metadata":{"deep":{"x":[1]}}}`))
	r = k.want(200, k.do("POST", conversations+"/"+id, `{"metadata":{"topic":"zoo"}}`))
	testkit.Equal(t, any(map[string]any{"topic": "zoo"}), r.at("metadata"))
	testkit.Equal(t, any(map[string]any{"topic": "zoo", "deep": map[string]any{"x": []any{1.0}}}),
		k.do("GET", "/v1/sessions/"+sess, nil).at("metadata"))
	testkit.Equal(t, any(map[string]any{}), k.do("POST", conversations+"/"+id, `{"metadata":null}`).at("metadata"))

	r = k.want(200, k.do("DELETE", conversations+"/"+id, nil))
	testkit.Equal(t, any(map[string]any{"id": id, "object": "conversation.deleted", "deleted": true}), r.doc)
	for _, request := range []string{
		"GET ", "POST ", "DELETE ", "GET /items", "POST /items", "GET /items/x", "DELETE /items/x",
	} {
		method, below, _ := strings.Cut(request, " ")
		body := any(nil)
		if method == "POST" {
			body = `{"metadata":{}}`
			if below != "" {
				body = `{"items":[]}`
			}
		}
		r := k.want(404, k.do(method, conversations+"/"+id+below, body))
		testkit.Equal(t, "Conversation with id '"+id+"' not found.", r.text("error.message"))
	}
	k.want(200, k.do("POST", "/v1/sessions/"+sess+"/untrash", nil))
	testkit.Equal(t, []string{"How high is the quagga?"}, k.texts(id))
}

func TestItemsComeBackWithWhatOpenAIAnswers(t *testing.T) {
	k := newKit(t, nil)
	id := k.conversation()
	path := conversations + "/" + id + "/items"
	odd := "rs_a/b?#é %2F.."
	r := k.want(200, k.do("POST", path+"?include[]=reasoning.encrypted_content&include[]=message.output_text.logprobs",
		map[string]any{"items": []any{
			saidItem("high?"),
			map[string]any{"type": "reasoning", "id": odd, "encrypted_content": "…", "summary": []any{}},
			map[string]any{"type": "function_call", "call_id": "c1", "name": "tide", "arguments": "{}"},
			map[string]any{"type": "function_call_output", "call_id": "c1", "output": "low"},
			map[string]any{"type": "of_next_year", "deep": []any{nil, map[string]any{"x": 1.5}}},
			map[string]any{
				"type": "message", "role": "assistant", "id": "msg_own", "phase": "final_answer",
				"content": []any{map[string]any{"type": "output_text", "text": "Low."}},
			},
			map[string]any{"role": "developer", "content": "Be brief.", "id": "__fake_id__"},
		}}))
	s := strings.TrimPrefix(id, "conv_")
	want := []any{
		map[string]any{
			"id": "msg_" + s + "_1", "type": "message", "role": "user", "status": "completed",
			"content": []any{map[string]any{"type": "input_text", "text": "high?"}},
		},
		map[string]any{"id": odd, "type": "reasoning", "encrypted_content": "…", "summary": []any{}},
		map[string]any{
			"id": "fc_" + s + "_3", "type": "function_call", "call_id": "c1", "name": "tide", "arguments": "{}",
			"status": "completed",
		},
		map[string]any{
			"id": "fco_" + s + "_4", "type": "function_call_output", "call_id": "c1", "output": "low", "status": "completed",
		},
		map[string]any{"id": "item_" + s + "_5", "type": "of_next_year", "deep": []any{nil, map[string]any{"x": 1.5}}},
		map[string]any{
			"id": "msg_own", "type": "message", "role": "assistant", "status": "completed", "phase": "final_answer",
			"content": []any{map[string]any{"type": "output_text", "text": "Low.", "annotations": []any{}}},
		},
		map[string]any{
			"id": "msg_" + s + "_7", "type": "message", "role": "developer", "status": "completed",
			"content": []any{map[string]any{"type": "input_text", "text": "Be brief."}},
		},
	}
	testkit.Equal(t, any(want), r.at("data"))
	testkit.Equal(t, any(want), k.want(200, k.do("GET", path+"?order=asc", nil)).at("data"))
	for _, it := range want {
		r := k.want(200, k.do("GET", path+"/"+url.PathEscape(text(it, "id")), nil))
		testkit.Equal(t, it, r.doc)
	}
	if r := k.do("GET", "/v1/sessions/"+s+"/messages?dialect=openai.responses", nil); r.at("data.0.content") != "high?" {
		t.Errorf("what was sent is not what is stored: %s", r.raw)
	}
}

func TestItemsAreListedInPages(t *testing.T) {
	k := newKit(t, nil)
	texts := make([]string, 50)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	id := k.conversation(texts[:20]...)
	for some := range slices.Chunk(texts[20:], 15) {
		items := []any{}
		for _, text := range some {
			items = append(items, saidItem(text))
		}
		k.want(200, k.do("POST", conversations+"/"+id+"/items", map[string]any{"items": items}))
	}
	for _, order := range []string{"asc", "desc", ""} {
		for _, limit := range []int{1, 7, 50, 100, 0} {
			query := url.Values{}
			if order != "" {
				query.Set("order", order)
			}
			if limit > 0 {
				query.Set("limit", fmt.Sprint(limit))
			}
			var all []string
			for more, pages := true, 0; more; pages++ {
				var ids, some []string
				ids, some, more = k.list(id, query.Encode())
				if want := min(len(texts)-len(all), limit+20*max(0, 1-limit)); len(some) != want || pages > 50 {
					t.Fatalf("%s: %d items of %d", query.Encode(), len(some), want)
				}
				all = append(all, some...)
				query.Set("after", ids[len(ids)-1])
			}
			if order != "asc" {
				slices.Reverse(all)
			}
			testkit.Equal(t, texts, all)
		}
	}
}

// Who deletes what a page lists gets the next page all the same.
func TestDeletedItemsAreLeftOut(t *testing.T) {
	k := newKit(t, nil)
	id := k.conversation("a", "b", "c", "d", "e", "f", "g")
	path := conversations + "/" + id + "/items"
	ids, _, _ := k.list(id, "order=asc")
	remove := func(item string) {
		t.Helper()
		testkit.Equal(t, id, k.want(200, k.do("DELETE", path+"/"+item, nil)).text("id"))
		r := k.want(404, k.do("GET", path+"/"+item, nil))
		testkit.Equal(t, "Item with id '"+item+"' not found.", r.text("error.message"))
		k.want(404, k.do("DELETE", path+"/"+item, nil))
	}
	remove(ids[6]) // the last one: the head moves
	remove(ids[2]) // in the middle: a marker
	testkit.Equal(t, []string{"a", "b", "d", "e", "f"}, k.texts(id))
	remove(ids[5])
	_, texts, more := k.list(id, "limit=2")
	testkit.Equal(t, []string{"e", "d"}, texts)
	if !more {
		t.Error("more follow")
	}
	for after, want := range map[string][2]string{
		ids[2]: {"de", "ba"}, ids[6]: {"", "edba"}, ids[5]: {"", "edba"}, ids[0]: {"bde", ""},
	} {
		for i, order := range []string{"asc", "desc"} {
			_, texts, _ := k.list(id, "order="+order+"&after="+after)
			testkit.Equal(t, want[i], strings.Join(texts, ""))
		}
	}
	sess := "/v1/sessions/" + strings.TrimPrefix(id, "conv_")
	k.want(201, k.do("POST", sess+"/messages", `{"messages":[{"role":"user","content":"h"}]}`))
	got := ""
	request := k.want(200, k.do("GET", sess+"/context?dialect=openai.responses", nil)).at("request.input").([]any)
	for _, it := range request {
		if content, ok := it.(map[string]any)["content"].(string); ok {
			got += content
		}
	}
	testkit.Equal(t, "abdeh", got)
	testkit.Equal(t, []string{"a", "b", "d", "e", "h"}, k.texts(id))
	r := k.want(200, k.do("GET", sess+"/messages?path=all", nil))
	if all := r.at("data").([]any); len(all) != 10 { // eight that were said, two markers
		t.Errorf("%d messages: %s", len(all), r.raw)
	}
	// A fork has what its origin had, and each goes on by itself.
	fork := "conv_" + k.want(201, k.do("POST", sess+"/fork", `{}`)).text("id")
	testkit.Equal(t, k.texts(id), k.texts(fork))
	k.want(200, k.do("DELETE", conversations+"/"+fork+"/items/"+ids[0], nil))
	testkit.Equal(t, "bdeh", strings.Join(k.texts(fork), ""))
	testkit.Equal(t, "abdeh", strings.Join(k.texts(id), ""))
	for _, text := range "hedba" {
		ids, texts, _ := k.list(id, "limit=1")
		testkit.Equal(t, string(text), texts[0])
		remove(ids[0])
	}
	testkit.Equal(t, []string(nil), k.texts(id))
}

// An id is given back, stays unique, and is free again after its item was deleted.
func TestItemIDsOfTheClient(t *testing.T) {
	k := newKit(t, nil)
	id := k.conversation("a")
	path := conversations + "/" + id + "/items"
	add := func(status int, item string) reply {
		t.Helper()
		return k.want(status, k.do("POST", path, `{"items":[{"type":"reasoning","summary":[],"id":"`+item+`"}]}`))
	}
	for range 3 {
		add(200, "rs_1")
		r := add(400, "rs_1")
		testkit.Equal(t, any("items"), r.at("error.param"))
		k.want(200, k.do("POST", path, `{"items":[{"role":"user","content":"z"}]}`))
		testkit.Equal(t, "rs_1", k.want(200, k.do("GET", path+"/rs_1", nil)).text("id"))
		k.want(200, k.do("DELETE", path+"/rs_1", nil))
	}
	s := strings.TrimPrefix(id, "conv_")
	add(400, "msg_"+s+"_99") // which another item will have
	add(400, "msg_"+s+"_1")
	r := k.want(400, k.do("POST", path, `{"items":[{"type":"reasoning","summary":[],"id":"x"},{"role":"user","content":"","id":"x"}]}`))
	if !strings.Contains(r.text("error.message"), "Duplicate item found with id x.") {
		t.Error(r.raw)
	}
}

// A reply that came by another route may be several items. Each can be read and deleted by itself.
func TestItemsOfOneMessage(t *testing.T) {
	k := newKit(t, nil)
	for name, body := range map[string]string{
		"responses": `{"messages":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},` +
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look."}]},` +
			`{"type":"function_call","id":"fc_1","call_id":"c1","name":"tide","arguments":"{}"}]}`,
		"anthropic": `{"dialect":"anthropic","messages":[{"role":"assistant","content":[{"type":"text","text":"I look."},` +
			`{"type":"tool_use","id":"c1","name":"tide","input":{}}]}]}`,
		"response": `{"messages":[{"object":"response","status":"completed","output":[` +
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look."}]},` +
			`{"type":"function_call","id":"fc_1","call_id":"c1","name":"tide","arguments":"{}"}]}]}`,
	} {
		id := k.conversation("high?")
		sess := "/v1/sessions/" + strings.TrimPrefix(id, "conv_")
		k.want(201, k.do("POST", sess+"/messages", body))
		k.want(200, k.do("POST", conversations+"/"+id+"/items", `{"items":[{"type":"function_call_output","call_id":"c1","output":"low"}]}`))
		ids, texts, _ := k.list(id, "order=asc")
		at := slices.Index(texts, "I look.")
		if at < 0 || at+3 != len(ids) {
			t.Fatalf("%s: %q", name, texts)
		}
		for n, item := range ids {
			got := k.want(200, k.do("GET", conversations+"/"+id+"/items/"+item, nil)).text("id")
			testkit.Equal(t, item, got)
			after, _, _ := k.list(id, "order=asc&limit=100&after="+item)
			testkit.Equal(t, ids[n+1:], append([]string{}, after...))
		}
		k.want(200, k.do("DELETE", conversations+"/"+id+"/items/"+ids[at], nil))
		testkit.Equal(t, slices.Delete(slices.Clone(texts), at, at+1), k.texts(id))
		context := k.want(200, k.do("GET", sess+"/context?dialect=openai.chat", nil)).raw
		if strings.Contains(context, "I look.") || !strings.Contains(context, "tide") || !strings.Contains(context, "low") {
			t.Errorf("%s: %s", name, context)
		}
	}
}

func TestConversationErrorsAreOpenAIs(t *testing.T) {
	k := newKit(t, nil)
	id := k.conversation("a")
	path := conversations + "/" + id
	many := strings.Repeat(`{"role":"user","content":"x"},`, 21)
	pairs := ""
	for i := range 17 {
		pairs += fmt.Sprintf(`"k%d":"v",`, i)
	}
	for _, c := range []struct {
		request, body, param string
		status               int
	}{
		{"GET " + conversations, "", "", 405},
		{"GET " + path + "/nothing", "", "", 404},
		{"GET /v1/conversations/conv_20010101_001", "", "", 404},
		{"GET /v1/conversations/20260211_001", "", "", 404},
		{"GET /v1/conversations/a%2Fb%3F", "", "", 404},
		{"POST " + conversations, `{"items":`, "", 400},
		{"POST " + conversations, `[]`, "", 400},
		{"POST " + conversations, `{"nonsense":1}`, "nonsense", 400},
		{"POST " + conversations, `{"items":[` + strings.TrimSuffix(many, ",") + `]}`, "items", 400},
		{"POST " + conversations, `{"items":{}}`, "items", 400},
		{"POST " + conversations, `{"items":["x"]}`, "items[0]", 400},
		{"POST " + conversations, `{"items":[{"role":"user","content":"x"},{"role":"king","content":"x"}]}`, "items[1].role", 400},
		{"POST " + conversations, `{"items":[{"type":"item_reference","id":"msg_1"}]}`, "items[0]", 400},
		{"POST " + conversations, `{"items":[{"object":"response","output":[]}]}`, "items[0]", 400},
		{"POST " + conversations, `{"metadata":{` + strings.TrimSuffix(pairs, ",") + `}}`, "metadata", 400},
		{"POST " + conversations, `{"metadata":{"a":1}}`, "metadata", 400},
		{"POST " + conversations, `{"metadata":{"` + strings.Repeat("é", 65) + `":"v"}}`, "metadata", 400},
		{"POST " + conversations, `{"metadata":{"a":"` + strings.Repeat("é", 513) + `"}}`, "metadata", 400},
		{"POST " + conversations, `{"metadata":[]}`, "metadata", 400},
		{"POST " + path, `{}`, "metadata", 400},
		{"POST " + path + "/items", `{}`, "items", 400},
		{"POST " + path + "/items", strings.Repeat(" ", 33<<20), "", 413},
		{"GET " + path + "/items?limit=0", "", "limit", 400},
		{"GET " + path + "/items?limit=101", "", "limit", 400},
		{"GET " + path + "/items?limit=x", "", "limit", 400},
		{"GET " + path + "/items?order=up", "", "order", 400},
		{"GET " + path + "/items?order=asc&order=desc", "", "query.order", 400},
		{"GET " + path + "/items?page=2", "", "page", 400},
		{"GET " + path + "/items?include[]=all", "", "include", 400},
		{"GET " + path + "/items?after=msg_1", "", "", 404},
		{"GET " + path + "/items/msg_1", "", "", 404},
		{"GET " + path + "/items/msg_20260211_001_99", "", "", 404},
		{"DELETE " + path + "/items/rs_%2F", "", "", 404},
	} {
		method, target, _ := strings.Cut(c.request, " ")
		body := any(nil)
		if method == "POST" {
			body = c.body
		}
		r := k.do(method, target, body)
		if r.StatusCode != c.status || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %.60s: %d %.200s", c.request, c.body, r.StatusCode, r.raw)
			continue
		}
		e, _ := r.at("error").(map[string]any)
		param, _ := e["param"].(string)
		if len(e) != 4 || e["type"] != "invalid_request_error" || e["message"] == "" || param != c.param {
			t.Errorf("%s %.60s: param %q in %.200s", c.request, c.body, param, r.raw)
		}
	}
	testkit.Equal(t, []string{"a"}, k.texts(id))
	if n := k.count(`SELECT COUNT(*) FROM sessions`); n != 1 {
		t.Errorf("refused requests made %d sessions", n-1)
	}
}

// A repeated request with its key answers the same and does nothing more.
func TestRepeatedConversationRequests(t *testing.T) {
	k := newKit(t, nil)
	twice := func(key, method, path string, body any) reply {
		t.Helper()
		first := k.want(200, k.do(method, path, body, header{"Idempotency-Key": key}))
		again := k.want(200, k.do(method, path, body, header{"Idempotency-Key": key}))
		testkit.Equal(t, first.doc, again.doc)
		return first
	}
	id := twice("1", "POST", conversations, `{"items":[{"role":"user","content":"a"}],"metadata":{"a":"b"}}`).text("id")
	path := conversations + "/" + id
	twice("2", "POST", path+"/items", `{"items":[{"role":"user","content":"b"},{"type":"reasoning","summary":[],"id":"rs_1"}]}`)
	twice("3", "POST", path, `{"metadata":{"a":"c"}}`)
	ids, texts, _ := k.list(id, "order=asc")
	testkit.Equal(t, []string{"a", "b", "reasoning"}, texts)
	twice("4", "DELETE", path+"/items/"+ids[0], nil)
	twice("5", "DELETE", path+"/items/rs_1", nil)
	testkit.Equal(t, []string{"b"}, k.texts(id))
	key := header{"Idempotency-Key": "6"} // a new request with a key is no repeated one
	k.want(404, k.do("DELETE", path+"/items/rs_1", nil, key))
	k.want(400, k.do("POST", path+"/items", `{"items":[{"role":"assistant","content":"","id":"`+ids[1]+`"}]}`, key))
	twice("7", "DELETE", path, nil)
	k.want(404, k.do("DELETE", path, nil, header{"Idempotency-Key": "8"}))
	if n := k.messages(); n != 5 { // three items, two markers
		t.Errorf("%d messages", n)
	}
}
