package api_test

import (
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/web/api"
)

func TestAMemoryFlushIsAskedForAndAcknowledged(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"window":8000}`)
	turn := func(body string) reply { return k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", body)) }
	var r reply
	for n := 1; ; n++ {
		r = turn(`{"messages":[{"role":"user","content":"` + strings.Repeat("a word and another, ", 50) + `"}],"workspace_access":"ro"}`)
		if ds := r.at("context.directives").([]any); len(ds) != 0 || n == 100 {
			t.Fatalf("a read-only workspace is asked, or nobody: %v of %v", ds, r.at("context.tokens"))
		}
		if r = turn(`{}`); len(r.at("context.directives").([]any)) > 0 {
			break
		}
	}
	if r.text("context.directives.0.type") != "memory_flush" || !strings.Contains(r.text("context.directives.0.prompt"), "memory/20") {
		t.Fatalf("%v of %v", r.at("context.directives"), r.at("context.tokens"))
	}
	r = k.want(200, k.do("POST", "/v1/sessions/"+id+"/flushes", `{}`))
	if r.text("outcome") != "ok" || r.text("generation") != "" || r.text("at") == "" {
		t.Errorf("%s", r.raw)
	}
	if r := turn(`{}`); len(r.at("context.directives").([]any)) != 0 {
		t.Errorf("asked again: %v", r.at("context.directives"))
	}
	for body, field := range map[string]string{`{"outcome":"maybe"}`: "outcome", `{"generation":"x"}`: "generation", `{"generation":"cmp_99"}`: "generation"} {
		if r := k.do("POST", "/v1/sessions/"+id+"/flushes", body); r.StatusCode != 422 || r.text("errors.0.path") != field {
			t.Errorf("%s: %s", body, r.raw)
		}
	}
	k.want(404, k.do("POST", "/v1/sessions/20200101_001/flushes", `{}`))
	if r := k.do("POST", "/v1/sessions/"+id+"/turns", `{"workspace_access":"maybe"}`); r.StatusCode != 422 {
		t.Errorf("%s", r.raw)
	}
}

func TestASilentReplyIsStoredAndNotShown(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	for i, c := range []struct {
		says    string
		display bool
		deliver any
	}{
		{"NO_REPLY", false, ""},
		{"**NO_REPLY**", false, ""},
		{"The build is green. NO_REPLY", true, "The build is green."},
		{"No reply is needed.", true, nil},
	} {
		r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": []any{map[string]any{"role": "assistant", "content": c.says}}}))
		if r.at("messages.0.deliver") != c.deliver {
			t.Errorf("%s: %v is delivered", c.says, r.at("messages.0.deliver"))
		}
		got := k.want(200, k.do("GET", "/v1/sessions/"+id+"/messages?after="+string(rune('0'+i)), nil))
		if got.at("data.0.display") != c.display || got.text("data.0.content") != c.says {
			t.Errorf("%s: %s", c.says, got.raw)
		}
	}
	r := k.want(200, k.do("GET", "/v1/sessions/"+id+"/context", nil))
	if !strings.Contains(r.raw, "NO_REPLY") {
		t.Error("a silent reply left the context")
	}
}

func TestAReplyEarlyOnIsToldOf(t *testing.T) {
	told := 0
	k := newKit(t, func(d *api.Deps) { d.Answered = func(session.ID) { told++ } })
	id := k.session(nil)
	k.say(id, "user", "What does CompanyB ask for?")
	if told != 0 {
		t.Error("told of a question")
	}
	k.say(id, "assistant", "$129")
	if told != 1 {
		t.Errorf("told %d times of a reply", told)
	}
	k.want(200, k.do("PATCH", "/v1/sessions/"+id, `{"title":"mine"}`))
	k.say(id, "assistant", "really")
	if told != 1 {
		t.Error("told of a session with a name")
	}
}
