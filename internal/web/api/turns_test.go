package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/web/api"
)

func TestTurnAppendsAndGivesTheContext(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"model":"known"}`)
	path := "/v1/sessions/" + id
	r := k.want(201, k.do("POST", path+"/turns", `{"dialect":"openai.chat","system":"Be brief.","initial":"The project is <x>.","volatile":"It is noon.",
		"tools":[{"type":"function","function":{"name":"read"}}],"messages":[{"role":"user","content":"hello"}],"explain":true}`))
	if r.text("appended.head") != id+".1" || r.at("problem") != nil ||
		!strings.HasPrefix(r.text("context.context_id"), "ctx_") {
		t.Fatalf("%s", r.raw)
	}
	roles := func(r reply, at string) (all []string) {
		for _, m := range r.at(at).([]any) {
			all = append(all, m.(map[string]any)["role"].(string))
		}
		return all
	}
	if got := fmt.Sprint(roles(r, "context.request.messages")); got != "[system user user]" {
		t.Errorf("roles %s: %s", got, r.raw)
	}
	for _, part := range []string{"Be brief.", "The project is <x>.", "It is noon.", "hello"} {
		if !strings.Contains(r.raw, part) {
			t.Errorf("the context lacks %q: %s", part, r.raw)
		}
	}
	for _, field := range []string{
		"tokens.total", "tokens.window", "tokens.threshold", "tokens.reserve", "tokens.method", "prefix.epoch",
		"pending_calls",
		"provenance.0.kind", "adjustments", "losses", "directives", "warnings", "settings.0.name",
	} {
		if r.at("context."+field) == nil {
			t.Errorf("the context has no %s", field)
		}
	}
	// Reading uses what the turn gave, and writes nothing.
	before := k.count(`SELECT COUNT(*) FROM contexts`)
	read := k.want(200, k.do("GET", path+"/context", nil))
	if fmt.Sprint(read.at("request")) != fmt.Sprint(r.at("context.request")) || read.at("context_id") != nil ||
		read.at("settings") != nil {
		t.Errorf("read: %s", read.raw)
	}
	if k.count(`SELECT COUNT(*) FROM contexts`) != before {
		t.Error("reading wrote")
	}
	if read := k.want(200, k.do("GET", path+"/context?explain=true&window=50000&max_output=100",
		nil)); read.at("settings") == nil || read.at("tokens.window") != 50000.0 {
		t.Errorf("%s", read.raw)
	}
}

// A loop of tools that another provider's model began goes on with Anthropic's, which would
// refuse to think in it; and the caller's cache marks are placed anew.
func TestTurnForAnthropic(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", map[string]any{
		"dialect": "anthropic", "model": "claude-opus-4-5", "system": "Be brief.",
		"messages": jsontext.Value(`[{"role":"user","content":"look"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"call_1","content":"seen"}]`),
	}))
	if r.text("context.thinking_level") != "off" ||
		!strings.Contains(fmt.Sprint(r.at("context.adjustments")), "thinking must be off") {
		t.Errorf("nobody is told that thinking must be off: %s", r.raw)
	}
	if n := strings.Count(r.raw, `"cache_control":{"type":"ephemeral"}`); n != 2 {
		t.Errorf("%d cache marks: %s", n, r.raw)
	}
	r = k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", map[string]any{
		"dialect": "anthropic", "settings": map[string]any{"cache_slots": 1},
		"messages": jsontext.Value(`[{"role":"assistant","content":[{"type":"text","text":"done"}]},{"role":"user","content":[{"type":"text","text":"thanks","cache_control":{"type":"ephemeral"}}]}]`),
	}))
	if n := strings.Count(r.raw, "cache_control"); r.at("context.thinking_level") != nil || n != 1 {
		t.Errorf("%d cache marks: %s", n, r.raw)
	}
}

func TestTurnWithoutMessages(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "hello")
	r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", `{"dialect":"openai.chat"}`))
	if m, _ := r.at("appended.messages").([]any); len(m) != 0 || r.text("appended.head") != id+".1" ||
		r.at("context.request.messages.0.content") != "hello" {
		t.Errorf("%s", r.raw)
	}
	k.want(409, k.do("POST", "/v1/sessions/"+id+"/turns", `{"expect_head":null}`))
}

func TestUnknownModelGetsAWarning(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", `{"model":"nobody-knows","messages":[{"role":"user","content":"x"}]}`))
	if !strings.Contains(fmt.Sprint(r.at("context.warnings")), "nobody-knows") ||
		r.at("context.tokens.window") != 128000.0 {
		t.Errorf("%s", r.raw)
	}
	if r := k.want(200, k.do("GET", "/v1/sessions/"+id+"/context?model=nobody-knows",
		nil)); !strings.Contains(fmt.Sprint(r.at("warnings")), "nobody-knows") {
		t.Errorf("%s", r.raw)
	}
}

func TestPendingCallsAreNotInvented(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(nil) + "/turns"
	r := k.want(201, k.do("POST", path, `{"dialect":"openai.chat","messages":[{"role":"user","content":"x"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_b","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`))
	if r.at("context.request") != nil || r.text("context.pending_calls.0") != "call_b" {
		t.Errorf("%s", r.raw)
	}
	if r = k.want(201, k.do("POST", path, `{"close_calls":true}`)); r.at("context.request") == nil {
		t.Errorf("%s", r.raw)
	}
}

// failing is a manager whose contexts fail in a chosen way.
type failing struct {
	api.Contexts
	err error
}

func (f failing) Turn(context.Context, session.ID, contextmgr.TurnInput) (contextmgr.View, error) {
	return contextmgr.View{}, f.err
}

func TestTheAppendNeverDependsOnTheContext(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code string
	}{
		{session.Errorf(session.CompactionRequired, "above the limit"), "compaction_required"},
		{session.Errorf(session.DoesNotFit, "too large: tools"), "does_not_fit"},
		{errors.New("secret cause"), "internal"},
	} {
		t.Run(tc.code, func(t *testing.T) {
			k := newKit(t, func(d *api.Deps) { d.Contexts = failing{d.Contexts, tc.err} })
			id := k.session(nil)
			r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", `{"messages":[{"role":"user","content":"x"}]}`))
			if r.text("problem.code") != tc.code || r.at("context") != nil || r.text("appended.head") != id+".1" ||
				strings.Contains(r.raw, "secret") {
				t.Errorf("%s", r.raw)
			}
			if n := k.messages(); n != 1 {
				t.Errorf("%d messages", n)
			}
			if tc.code == "internal" && (!strings.Contains(k.log.String(), "secret cause") ||
				!strings.Contains(k.log.String(), r.text("problem.request_id"))) {
				t.Errorf("the log does not tell the cause: %s", k.log)
			}
		})
	}
}

func TestRepeatedTurnWritesOnce(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"model":"known"}`)
	path := "/v1/sessions/" + id + "/turns"
	key := header{"Idempotency-Key": "t1"}
	body := `{"dialect":"openai.chat","system":"s","messages":[{"role":"user","content":"x"}]}`
	first := k.want(201, k.do("POST", path, body, key))
	contexts := k.count(`SELECT COUNT(*) FROM contexts`)
	again := k.want(201, k.do("POST", path, body, key))
	if fmt.Sprint(first.at("appended")) != fmt.Sprint(again.at("appended")) ||
		fmt.Sprint(first.at("context.request")) != fmt.Sprint(again.at("context.request")) ||
		first.at("context.context_id") != again.at("context.context_id") {
		t.Errorf("answers differ:\n%s%s", first.raw, again.raw)
	}
	k.say(id, "assistant", "later")
	past := k.want(201, k.do("POST", path, body, key))
	if fmt.Sprint(first.at("context.request")) != fmt.Sprint(past.at("context.request")) {
		t.Errorf("the context is not that of the first time: %s", past.raw)
	}
	if k.messages() != 2 || k.count(`SELECT COUNT(*) FROM contexts`) != contexts {
		t.Error("a repeated turn wrote")
	}
	k.want(422, k.do("POST", path, `{"messages":[{"role":"user","content":"y"}]}`, key))
}

// A caller whose first answer was lost before the context was made gets it by asking again.
func TestRepeatedTurnFinishesWhatWasCutOff(t *testing.T) {
	broken := true
	k := newKit(t, func(d *api.Deps) { d.Contexts = sometimes{d.Contexts, &broken} })
	path := "/v1/sessions/" + k.session(nil) + "/turns"
	key := header{"Idempotency-Key": "t1"}
	body := `{"system":"keep me","messages":[{"role":"user","content":"x"}]}`
	if r := k.want(201, k.do("POST", path, body, key)); r.at("problem") == nil {
		t.Fatalf("%s", r.raw)
	}
	broken = false
	if r := k.want(201, k.do("POST", path, body, key)); r.text("context.context_id") == "" ||
		!strings.Contains(r.raw, "keep me") {
		t.Errorf("%s", r.raw)
	}
	if n := k.messages(); n != 1 {
		t.Errorf("%d messages", n)
	}
}

type sometimes struct {
	api.Contexts
	broken *bool
}

func (s sometimes) Turn(ctx context.Context, id session.ID, in contextmgr.TurnInput) (contextmgr.View, error) {
	if *s.broken {
		return contextmgr.View{}, errors.New("cut off")
	}
	return s.Contexts.Turn(ctx, id, in)
}

func TestCallsAreReportedWithAnAppend(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id
	turn := k.want(201, k.do("POST", path+"/turns", `{"model":"priced","messages":[{"role":"user","content":"x"}]}`))
	ctxID := turn.text("context.context_id")
	k.want(201, k.do("POST", path+"/turns", map[string]any{
		"model": "priced", "messages": []any{map[string]any{"role": "assistant", "content": "y"}},
		"call": map[string]any{
			"provider": "openai", "model": "priced",
			"usage": jsontext.Value(`{"prompt_tokens":100,"completion_tokens":5}`), "context_id": ctxID, "latency_ms": 12,
		},
	}))
	r := k.want(200, k.do("GET", path+"/calls", nil))
	if r.at("data.0.input_tokens") != 100.0 || r.at("data.0.output_tokens") != 5.0 ||
		r.text("data.0.price_source") != "catalogue" || r.at("data.0.latency_ms") != 12.0 ||
		r.text("data.0.purpose") != "chat" {
		t.Errorf("%s", r.raw)
	}
	if n := k.count(`SELECT COUNT(*) FROM calls WHERE message_id IS NOT NULL AND context_id IS NOT NULL`); n != 1 {
		t.Errorf("the call is linked %d times", n)
	}
	s := k.do("GET", path, nil)
	if s.at("input_tokens") != 100.0 || s.text("model") != "priced" {
		t.Errorf("%s", s.raw)
	}
}

func TestAMemoryFlushIsAskedForAndAcknowledged(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(`{"window":8000}`)
	turn := func(body string) reply { return k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", body)) }
	var r reply
	for n := 1; ; n++ {
		r = turn(`{"messages":[{"role":"user","content":"` + strings.Repeat("a word and another, ", 50) +
			`"}],"workspace_access":"ro"}`)
		if ds := r.at("context.directives").([]any); len(ds) != 0 || n == 100 {
			t.Fatalf("a read-only workspace is asked, or nobody: %v of %v", ds, r.at("context.tokens"))
		}
		if r = turn(`{}`); len(r.at("context.directives").([]any)) > 0 {
			break
		}
	}
	if r.text("context.directives.0.type") != "memory_flush" ||
		!strings.Contains(r.text("context.directives.0.prompt"), "memory/20") {
		t.Fatalf("%v of %v", r.at("context.directives"), r.at("context.tokens"))
	}
	r = k.want(200, k.do("POST", "/v1/sessions/"+id+"/flushes", `{}`))
	if r.text("outcome") != "ok" || r.text("generation") != "" || r.text("at") == "" {
		t.Errorf("%s", r.raw)
	}
	if r := turn(`{}`); len(r.at("context.directives").([]any)) != 0 {
		t.Errorf("asked again: %v", r.at("context.directives"))
	}
	for body, field := range map[string]string{
		`{"outcome":"maybe"}`: "outcome", `{"generation":"x"}`: "generation",
		`{"generation":"cmp_99"}`: "generation",
	} {
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
		r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages",
			map[string]any{"messages": []any{map[string]any{"role": "assistant", "content": c.says}}}))
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

// Plain messages of a turn are of the dialect that it names, and come back as they came: a text as
// a text, blocks as blocks. A message with a sign of another dialect is of that one.
func TestPlainMessagesComeBackAsTheyCame(t *testing.T) {
	for _, c := range []struct{ dialect, messages, stored, request string }{
		{"anthropic", `[{"role":"user","content":"hi"}]`, "anthropic", `[{"content":"hi","role":"user"}]`},
		{
			"anthropic", `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, "anthropic",
			`[{"content":[{"text":"hi","type":"text"}],"role":"user"}]`,
		},
		{"openai.chat", `[{"role":"user","content":"hi"}]`, "openai.chat", `[{"content":"hi","role":"user"}]`},
		{
			"openai.responses", `[{"role":"user","content":"hi"}]`, "openai.responses",
			`[{"content":"hi","role":"user","type":"message"}]`,
		},
		{"gemini", `[{"role":"user","content":"hi"}]`, "native", `[{"parts":[{"text":"hi"}],"role":"user"}]`},
		{
			"anthropic", `[{"role":"user","parts":[{"kind":"text","text":"hi"}]}]`, "native",
			`[{"content":"hi","role":"user"}]`,
		},
		{"anthropic", `[{"role":"user","content":"hi","metadata":{"x":1}}]`, "native", `[{"content":"hi","role":"user"}]`},
		{"anthropic", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/a.png"}}]}]`, "openai.chat", `[{"content":[{"source":{"type":"url","url":"https://x/a.png"},"type":"image"}],"role":"user"}]`},
	} {
		t.Run(c.dialect+" "+c.messages, func(t *testing.T) {
			k := newKit(t, nil)
			path := "/v1/sessions/" + k.session(`{"model":"known"}`)
			r := k.want(201, k.do("POST", path+"/turns",
				`{"dialect":"`+c.dialect+`","settings":{"cache_slots":0},"messages":`+c.messages+`}`))
			field := map[string]string{"openai.responses": "input", "gemini": "contents"}[c.dialect]
			if field == "" {
				field = "messages"
			}
			got, _ := json.Marshal(r.at("context.request." + field))
			if string(got) != c.request {
				t.Errorf("request %s\nwant %s", got, c.request)
			}
			if stored := k.want(200, k.do("GET", path+"/messages/1", nil)); stored.text("dialect") != c.stored {
				t.Errorf("stored as %s, want %s", stored.text("dialect"), c.stored)
			}
		})
	}
}

// DeepSeek and its like answer 400 to a result whose call comes without the reasoning that led to
// it, with and without a record of the call.
func TestReasoningOfACallIsInTheNextContext(t *testing.T) {
	k := newKit(t, nil)
	for _, fields := range []string{`"reasoning_content":"I must call."`, `"reasoning_details":[{"index":0,"text":"I must call.","type":"reasoning.text"}]`} {
		for _, call := range []string{``, `,"call":{"provider":"deepseek","model":"deepseek-v4-flash","input_tokens":20,"output_tokens":9}`} {
			path := "/v1/sessions/" + k.session(`{"model":"deepseek-v4-flash"}`)
			k.want(201, k.do("POST", path+"/turns", `{"dialect":"openai.chat","messages":[{"role":"user","content":"How is it?"}]}`))
			k.want(201, k.do("POST", path+"/messages", `{"messages":[{"role":"assistant","content":"",`+fields+`,"tool_calls":[{"id":"w1","type":"function","function":{"name":"weather","arguments":"{}"}}]}]`+call+`}`))
			r := k.want(201, k.do("POST", path+"/turns", `{"dialect":"openai.chat","messages":[{"role":"tool","tool_call_id":"w1","content":"sun"}]}`))
			reply, _ := json.Marshal(r.at("context.request.messages.1"))
			if !strings.Contains(string(reply), fields) || r.at("context.losses.0") != nil {
				t.Errorf("the reply goes back as %s, losses %v", reply, r.at("context.losses"))
			}
			other := k.want(200, k.do("GET", path+"/context?model=gpt-5", nil))
			if reply, _ = json.Marshal(other.at("request.messages.1")); strings.Contains(string(reply), "I must call.") {
				t.Errorf("OpenAI gets the reasoning of DeepSeek: %s", reply)
			}
		}
	}
}

// A tool whose name the provider does not take is sent under another, and the answer says which.
func TestAnswerNamesRenamedTools(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(`{"model":"known"}`)
	long := strings.Repeat("x", 87)
	r := k.want(201, k.do("POST", path+"/turns", `{"dialect":"openai.responses","messages":[{"role":"user","content":"go"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"`+long+`","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]}`))
	names, _ := r.at("context.tool_names").(map[string]any)
	for sent, own := range names {
		if len(sent) > 64 || own != long || !strings.Contains(r.raw, `"name":"`+sent+`"`) {
			t.Errorf("%s is sent as %s: %s", own, sent, r.raw)
		}
	}
	if len(names) != 1 {
		t.Errorf("tool_names %v", names)
	}
}
