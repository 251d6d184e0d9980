package api_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestNULThroughEveryRoute sends texts with a NUL to the routes that store texts. JSON and what the text of a
// message or a result says are kept; a column's text is refused with the field's name. Afterwards everything
// stored can be listed, filtered, changed, searched and exported. The engines answer alike.
func TestNULThroughEveryRoute(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"metadata":{"plain":"x","displayName":"a\u0000b"},"key":"agent:main:x"}`)
	at := "/v1/sessions/" + id
	const nul = `a\u0000b`
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string // of a refusal
	}{
		{"POST", "/v1/sessions", `{"title":"` + nul + `"}`, 422, "title"},
		{"POST", "/v1/sessions", `{"key":"` + nul + `"}`, 422, "key"},
		{"POST", "/v1/sessions", `{"model":"` + nul + `"}`, 422, "model"},
		{"POST", "/v1/sessions", `{"metadata":{"a":"` + nul + `"}}`, 201, ""},
		{"POST", "/v1/sessions", `{"metadata":{"` + nul + `":"a"}}`, 201, ""},
		{"PATCH", at, `{"title":"` + nul + `"}`, 422, "title"},
		{"PATCH", at, `{"metadata":{"b":"` + nul + `"}}`, 200, ""},
		{"PUT", at + "/states/todos", `{"x":"` + nul + `"}`, 200, ""},
		{"PATCH", at + "/states/todos", `{"y":"` + nul + `"}`, 200, ""},
		{"POST", at + "/calls", `{"model":"` + nul + `"}`, 422, "model"},
		{"POST", at + "/turns", `{"system":"` + nul + `","messages":[{"role":"user","content":"x"}]}`, 422, "system"},
		{"POST", at + "/turns", `{"dialect":"openai.chat","messages":[{"role":"user","content":"` + nul + `"}]}`, 201, ""},
		{"POST", at + "/messages", `{"messages":[
			{"role":"user","content":"` + nul + `","name":"` + nul + `"},
			{"role":"assistant","content":"x","tool_calls":[{"id":"` + nul + `","type":"function","function":{"name":"f","arguments":"{\"q\":\"a\\u0000b\"}"}}]},
			{"role":"tool","tool_call_id":"` + nul + `","content":"` + nul + `"},
			{"role":"user","content":[{"type":"text","text":"x","` + nul + `":1}]}]}`, 201, ""},
		{"POST", at + "/fork", `{"title":"` + nul + `"}`, 422, "title"},
		{"PUT", at + "/messages/1/label", `{"label":"` + nul + `"}`, 422, "label"},
		{"POST", at + "/compactions", `{"instructions":"` + nul + `"}`, 422, "instructions"},
		{"PATCH", at, `{"metadata":{"c":"later"}}`, 200, ""},
	} {
		r := k.do(c.method, c.path, c.body)
		if r.StatusCode != c.status || c.field != "" && r.text("errors.0.path") != c.field {
			t.Errorf("%s %s %s: %d %.300s", c.method, c.path, c.body, r.StatusCode, r.raw)
		}
	}
	for path, part := range map[string]string{
		"/v1/sessions?metadata.plain=x": id, "/v1/sessions?metadata.c=later": id, "/v1/sessions?metadata.a=x": `"data":[]`,
		at: `"displayName":"a\u0000b"`, at + "/states/todos": `{"x":"a\u0000b","y":"a\u0000b"}`, "/v1/search?q=x": id,
		"/v1/sessions?metadata[c]=later":   id,
		"/v1/search?q=x&metadata[c]=later": id, "/v1/search?q=x&metadata.c=no": `"hits":[]`,
		at + "/tree": id, "/v1/keys": "agent:main:x",
		at + "/context?dialect=openai.chat": `"content":"a�b"`,
	} {
		r := k.want(200, k.do("GET", path, nil))
		if compact, _ := json.Marshal(r.doc); !strings.Contains(string(compact), part) && !strings.Contains(r.raw, part) {
			t.Errorf("GET %s has no %s: %s", path, part, r.raw)
		}
	}
}
