package api_test

import (
	"fmt"
	"testing"
)

func TestFilesAreFollowedToTheirConversations(t *testing.T) {
	k := newKit(t, nil)
	call := func(id, tool, arguments string) {
		t.Helper()
		k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": []any{map[string]any{
			"role": "assistant", "parts": []any{map[string]any{
				"kind": "tool_call", "call_id": "c", "tool_name": tool,
				"arguments": arguments,
			}},
		}}}))
	}
	first, second := k.session(`{"title":"first","directory":"/p"}`), k.session(`{"title":"second"}`)
	call(first, "read", `{"path":"a b.go"}`)
	call(second, "edit", `{"path":"/p/a b.go"}`)
	call(second, "read", `{"path":"/p/sub/c.go"}`)
	r := k.want(200, k.do("GET", "/v1/files?path=/p/a%20b.go", nil))
	if r.text("data.0.session.id") != second || r.text("data.1.session.title") != "first" || r.at("data.2") != nil ||
		r.text("data.0.last.message_id") != second+".1" || r.text("data.0.last.op") != "edit" ||
		fmt.Sprint(r.at("data.1.ops.read")) != "1" {
		t.Errorf("%s", r.raw)
	}
	for query, want := range map[string]int{
		"path=/p": 2, "path=/p/": 2, "path=/": 2, "path=/p/sub": 1, "path=/p/a": 0, "path=/p/x/../sub": 1, "path=/P": 0,
		"path=/p&op=read": 2, "path=/p&op=changed": 1, "path=/p&op=delete": 0, "path=/p&order=asc": 2, "path=/p&limit=1": 1,
	} {
		if r := k.want(200, k.do("GET", "/v1/files?"+query, nil)); len(r.at("data").([]any)) != want {
			t.Errorf("%s: %s", query, r.raw)
		}
	}
	page := k.want(200, k.do("GET", "/v1/files?path=/p&limit=1", nil))
	rest := k.want(200, k.do("GET", "/v1/files?path=/p&limit=1&cursor="+page.text("next_cursor"), nil))
	if rest.text("data.0.session.id") != first || rest.at("next_cursor") != nil {
		t.Errorf("%s", rest.raw)
	}
}

func TestFilesRefuseWhatIsNoPath(t *testing.T) {
	k := newKit(t, nil)
	for query, status := range map[string]int{
		"": 422, "path=": 422, "path=a.go": 422, "path=./a.go": 422, "path=~/a.go": 422, "path=%ff": 422, "path=/a%00b": 422,
		"path=/p&op=look": 422, "path=/p&limit=0": 422, "path=/p&limit=5000": 422, "path=/p&order=up": 422,
		"path=/p&cursor=x": 422, "path=/p&paths=1": 422,
	} {
		r := k.want(status, k.do("GET", "/v1/files?"+query, nil))
		if r.at("code") == nil {
			t.Errorf("%s: %s", query, r.raw)
		}
	}
	for _, method := range []string{"POST", "DELETE", "PUT"} {
		k.want(405, k.do(method, "/v1/files?path=/p", nil))
	}
}
