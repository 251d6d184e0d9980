package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sessiond/internal/web/api"
)

// long makes a session of some thousand tokens with a window that they fill.
func (k *kit) long(n int) string {
	k.t.Helper()
	id := k.session(`{"model":"known","window":8000,"settings":{"reserve_floor":0,"reserve_tokens":500}}`)
	var msgs []any
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		msgs = append(msgs, map[string]any{"role": role, "content": fmt.Sprintf("Message %d. ", i) +
			strings.Repeat("The cat sat on the mat near the door of house number 12. ", 12)})
	}
	k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{"messages": msgs}))
	return id
}

func TestCompactUndoRedo(t *testing.T) {
	k := newKit(t, nil)
	id := k.long(60)
	path := "/v1/sessions/" + id
	plan := k.want(200, k.do("POST", path+"/compactions", `{"dry_run":true}`))
	if plan.at("dry_run") != true || plan.at("plan.hidden_messages") == 0.0 || plan.at("plan.tokens_after") == nil {
		t.Errorf("%s", plan.raw)
	}
	if n := k.count(`SELECT COUNT(*) FROM compactions`); n != 0 {
		t.Fatalf("a dry run wrote %d records", n)
	}
	made := k.want(201, k.do("POST", path+"/compactions", `{"instructions":"keep numbers"}`))
	cid := made.text("id")
	if made.text("status") != "done" || made.text("summary") == "" ||
		made.Header.Get("Location") != path+"/compactions/"+cid || made.text("trigger") != "manual" {
		t.Errorf("%s", made.raw)
	}
	if r := k.want(200, k.do("GET", path+"/compactions", nil)); r.text("data.0.id") != cid || r.at("next_cursor") != nil {
		t.Errorf("%s", r.raw)
	}
	if r := k.want(200, k.do("GET", path+"/compactions/"+cid, nil)); r.text("id") != cid || r.text("session_id") != id {
		t.Errorf("%s", r.raw)
	}
	sources := k.want(200, k.do("GET", path+"/compactions/"+cid+"/sources?limit=3", nil))
	if len(sources.at("data").([]any)) != 3 || sources.text("data.0.id") != id+".1" ||
		sources.at("next_cursor") != id+".3" {
		t.Errorf("%s", sources.raw)
	}
	if r := k.want(200, k.do("GET", path+"/compactions/"+cid+"/sources?dialect=openai.chat&limit=1&cursor="+id+".3",
		nil)); r.text("data.0.role") != "assistant" {
		t.Errorf("%s", r.raw)
	}
	if ctx := k.want(200, k.do("GET", path+"/context", nil)); ctx.text("compaction.id") != cid {
		t.Errorf("%s", ctx.raw)
	}
	again := k.want(201, k.do("POST", path+"/compactions", nil))
	if again.text("status") != "skipped" || again.text("reason") == "" {
		t.Errorf("compacting twice: %s", again.raw)
	}
	if r := k.want(409, k.do("POST", path+"/compactions/"+cid+"/redo", nil)); r.text("code") != "conflict" {
		t.Errorf("%s", r.raw)
	}
}

func TestUndoGivesTheContextBack(t *testing.T) {
	k := newKit(t, nil)
	id := k.long(20)
	path := "/v1/sessions/" + id
	before := k.want(200, k.do("GET", path+"/context", nil))
	made := k.want(201, k.do("POST", path+"/compactions", `{"keep_recent_tokens":100,"settings":{"keep_recent_messages":2}}`))
	cid := made.text("id")
	if made.text("status") != "done" {
		t.Fatalf("%s", made.raw)
	}
	during := k.want(200, k.do("GET", path+"/context", nil))
	if fmt.Sprint(during.at("request")) == fmt.Sprint(before.at("request")) {
		t.Error("the compaction changed nothing")
	}
	if r := k.want(200, k.do("DELETE", path+"/compactions/"+cid, nil)); r.text("id") != id || r.Header.Get("ETag") == "" {
		t.Errorf("%s", r.raw)
	}
	after := k.want(200, k.do("GET", path+"/context", nil))
	if fmt.Sprint(after.at("request")) != fmt.Sprint(before.at("request")) {
		t.Error("after the undo the context is another")
	}
	k.want(409, k.do("DELETE", path+"/compactions/"+cid, nil))
	k.want(200, k.do("POST", path+"/compactions/"+cid+"/redo", nil))
	if again := k.do("GET", path+"/context", nil); fmt.Sprint(again.at("request")) != fmt.Sprint(during.at("request")) {
		t.Error("after the redo the context is another")
	}
	if r := k.do("GET", path+"/messages?limit=1000", nil); len(r.at("data").([]any)) != 20 {
		t.Error("compacting changed messages")
	}
}

func TestRepeatedUndoAndRedoAnswerTheSame(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.long(20) + "/compactions"
	cid := k.want(201, k.do("POST", path, `{"keep_recent_tokens":100,"settings":{"keep_recent_messages":2}}`)).text("id")
	for _, step := range []struct{ method, path, key string }{
		{"DELETE", path + "/" + cid, "u"},
		{"POST", path + "/" + cid + "/redo", "r"},
	} {
		first := k.want(200, k.do(step.method, step.path, nil, header{"Idempotency-Key": step.key}))
		again := k.want(200, k.do(step.method, step.path, nil, header{"Idempotency-Key": step.key}))
		if first.raw != again.raw {
			t.Errorf("%s: answers differ:\n%s%s", step.method, first.raw, again.raw)
		}
	}
	k.want(409, k.do("POST", path+"/"+cid+"/redo", nil))
}

func TestUndoBeyondTheWindowWarns(t *testing.T) {
	k := newKit(t, nil)
	id := k.long(60)
	cid := k.want(201, k.do("POST", "/v1/sessions/"+id+"/compactions", nil)).text("id")
	k.want(200, k.do("PATCH", "/v1/sessions/"+id, `{"window":1000}`))
	path := "/v1/sessions/" + id + "/compactions/" + cid
	for range 2 { // the repeated answer is the same
		r := k.want(200, k.do("DELETE", path, nil, header{"Idempotency-Key": "u"}))
		if !strings.Contains(r.text("warnings.0"), "the next turn compacts again") || r.text("id") != id {
			t.Errorf("%s", r.raw)
		}
	}
	k.want(200, k.do("POST", path+"/redo", nil))
}

func TestCompactionBehindItsAnswer(t *testing.T) {
	var later []func(context.Context)
	room := true
	k := newKit(t, func(d *api.Deps) {
		d.Run = func(work func(context.Context)) bool {
			if room {
				later = append(later, work)
			}
			return room
		}
	})
	path := "/v1/sessions/" + k.long(60) + "/compactions"
	async := header{"Prefer": "respond-async"}
	r := k.want(202, k.do("POST", path, `{}`, async, header{"Idempotency-Key": "k"}))
	record := path + "/" + r.text("id")
	if r.text("status") != "running" || r.Header.Get("Location") != record ||
		r.Header.Get("Preference-Applied") != "respond-async" || len(later) != 1 {
		t.Errorf("%s %v", r.raw, r.Header)
	}
	if r.at("plan.hidden_messages") == 0.0 {
		t.Errorf("no plan: %s", r.raw)
	}
	if again := k.want(202, k.do("POST", path, `{}`, async,
		header{"Idempotency-Key": "k"})); again.text("id") != r.text("id") || len(later) != 1 {
		t.Errorf("the repeated request began another: %s", again.raw)
	}
	if r := k.do("GET", record, nil); r.text("status") != "running" {
		t.Errorf("%s", r.raw)
	}
	later[0](t.Context())
	if r := k.do("GET", record, nil); r.text("status") != "done" || r.text("summary") == "" {
		t.Errorf("%s", r.raw)
	}
	k.want(200, k.do("POST", path, `{"dry_run":true}`, async))
	room = false
	path = "/v1/sessions/" + k.long(60) + "/compactions"
	if r := k.want(503, k.do("POST", path, `{}`, async,
		header{"Idempotency-Key": "b"})); r.Header.Get("Retry-After") == "" || r.text("code") != "busy" {
		t.Errorf("%s", r.raw)
	}
	if r := k.do("GET", path, nil); r.text("data.0.status") != "failed" {
		t.Errorf("%s", r.raw)
	}
	room = true
	k.want(202, k.do("POST", path, `{}`, async, header{"Idempotency-Key": "b"}))
}

// Whoever asks for the same while it is being made is answered with the same record.
func TestTwoCompactionsAtOnceAreOne(t *testing.T) {
	var later []func(context.Context)
	k := newKit(t, func(d *api.Deps) {
		d.Run = func(work func(context.Context)) bool { later = append(later, work); return true }
	})
	path := "/v1/sessions/" + k.long(60) + "/compactions"
	async := header{"Prefer": "respond-async"}
	first := k.want(202, k.do("POST", path, `{}`, async, header{"Idempotency-Key": "a"}))
	second := k.want(202, k.do("POST", path, `{}`, async, header{"Idempotency-Key": "b"}))
	if first.text("id") != second.text("id") || first.text("plan.through") != second.text("plan.through") {
		t.Errorf("%s%s", first.raw, second.raw)
	}
	for _, work := range later { // the second one's has nothing left to wait for
		work(t.Context())
	}
	if r := k.want(201, k.do("POST", path, `{}`, async,
		header{"Idempotency-Key": "b"})); r.text("id") != first.text("id") || r.text("status") != "done" {
		t.Errorf("%s", r.raw)
	}
	if n := k.count(`SELECT COUNT(*) FROM compactions`); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestARunningCompactionIsCancelled(t *testing.T) {
	var later []func(context.Context)
	k := newKit(t, func(d *api.Deps) {
		d.Run = func(work func(context.Context)) bool { later = append(later, work); return true }
	})
	path := "/v1/sessions/" + k.long(60)
	before := k.do("GET", path+"/context", nil).raw
	record := k.want(202, k.do("POST", path+"/compactions", `{}`,
		header{"Prefer": "respond-async"})).Header.Get("Location")
	for range 2 { // the second is a retry of the first
		if r := k.want(200, k.do("DELETE", record, nil,
			header{"Idempotency-Key": "c"})); path != "/v1/sessions/"+r.text("id") {
			t.Errorf("%s", r.raw)
		}
	}
	later[0](t.Context())
	if r := k.do("GET", record, nil); r.text("status") != "failed" || r.text("reason") != "it was cancelled" {
		t.Errorf("%s", r.raw)
	}
	if after := k.do("GET", path+"/context", nil).raw; after != before {
		t.Error("what was cancelled changed the context")
	}
	if r := k.want(404, k.do("DELETE", record, nil)); r.text("code") != "not_found" {
		t.Errorf("%s", r.raw)
	}
	if n := k.count(`SELECT COUNT(*) FROM events WHERE type = 'compaction.failed'`); n != 1 {
		t.Errorf("%d events", n)
	}
	if r := k.want(201, k.do("POST", path+"/compactions", `{}`)); r.text("status") != "done" {
		t.Errorf("%s", r.raw)
	}
}

func TestOwnSummaryAndStrategies(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.long(60) + "/compactions"
	if r := k.want(201, k.do("POST", path, `{"summary":"They counted cats."}`)); !strings.Contains(r.text("summary"),
		"They counted cats.") {
		t.Errorf("%s", r.raw)
	}
	for _, strategy := range []string{"truncate", "clear"} {
		path := "/v1/sessions/" + k.long(60) + "/compactions"
		if r := k.want(201, k.do("POST", path, `{"strategy":"`+strategy+`"}`)); r.text("strategy") != strategy ||
			r.text("status") != "done" {
			t.Errorf("%s", r.raw)
		}
	}
	path = "/v1/sessions/" + k.long(60) + "/compactions"
	if r := k.want(201, k.do("POST", path,
		`{"trigger":"overflow","reported_tokens":9000}`)); r.text("trigger") != "overflow" || r.text("status") != "done" {
		t.Errorf("%s", r.raw)
	}
}

// What a session's settings say of the strategy is what turns do above the threshold.
func TestStrategiesOfSettings(t *testing.T) {
	turn := `{"messages":[{"role":"user","content":"and now?"}],"explain":true}`
	k := newKit(t, nil)
	for _, strategy := range []string{"summarize", "truncate", "clear"} {
		path := "/v1/sessions/" + k.long(60)
		k.want(200, k.do("PATCH", path, `{"settings":{"strategy":"`+strategy+`"}}`))
		r := k.want(201, k.do("POST", path+"/turns", turn))
		done := k.want(200, k.do("GET", path+"/compactions/"+r.text("context.compaction.id"), nil))
		if done.text("strategy") != strategy || done.text("status") != "done" ||
			(done.text("summary") == "") != (strategy != "summarize") {
			t.Errorf("%s: %s", strategy, done.raw)
		}
		if !strings.Contains(fmt.Sprint(r.at("context.settings")), strategy) {
			t.Errorf("%s: %v", strategy, r.at("context.settings"))
		}
		if sent := fmt.Sprint(r.at("context.request")); !strings.Contains(sent, "and now?") ||
			strings.Contains(sent, "Message 59.") == (strategy == "clear") {
			t.Errorf("%s: %.1000s", strategy, sent)
		}
	}
}

// With ask the caller chooses: above the threshold it is told to, above the limit there is no
// context until it has.
func TestTheCallerIsAskedForAStrategy(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.long(40)
	k.want(200, k.do("PATCH", path, `{"settings":{"strategy":"ask","fraction":0.5}}`))
	r := k.want(201, k.do("POST", path+"/turns", `{"messages":[{"role":"user","content":"and now?"}]}`))
	if r.text("context.directives.0.type") != "compaction_choice" ||
		fmt.Sprint(r.at("context.directives.0.choices")) != "[summarize truncate clear]" {
		t.Fatalf("%s", r.raw)
	}
	var more []any
	for i := range 40 {
		more = append(more, map[string]any{
			"role":    []string{"assistant", "user"}[i%2],
			"content": strings.Repeat("The cat sat on the mat near the door of house number 12. ", 12),
		})
	}
	r = k.want(201, k.do("POST", path+"/turns", map[string]any{"messages": more}))
	if r.at("context") != nil || r.text("problem.code") != "compaction_required" || r.at("appended") == nil {
		t.Fatalf("%s", r.raw)
	}
	if r = k.want(409, k.do("GET", path+"/context", nil)); r.text("code") != "compaction_required" {
		t.Errorf("%s", r.raw)
	}
	k.want(201, k.do("POST", path+"/compactions", `{"strategy":"truncate"}`))
	if r = k.want(201, k.do("POST", path+"/turns", `{}`)); r.at("context") == nil ||
		r.text("context.compaction.status") != "done" {
		t.Errorf("%s", r.raw)
	}
}

// A preset is a name in a session's settings; what it brings is told with explain.
func TestPresetsOverHTTP(t *testing.T) {
	k := newKit(t, nil)
	for preset, threshold := range map[string]float64{
		"goose": 6399, "pi": 6000, "opencode": 5999, "codex": 7199,
		"moltbot": 4000, "aggressive": 5600,
	} {
		id := k.session(`{"model":"known","window":8000,"settings":{"preset":"` + preset + `"}}`)
		var msgs []any
		for i := range 60 {
			msgs = append(msgs, map[string]any{
				"role": []string{"user", "assistant"}[i%2],
				"content": fmt.Sprintf("Message %d. ", i) +
					strings.Repeat("The cat sat on the mat near the door of house number 12. ", 12),
			})
		}
		r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns",
			map[string]any{"messages": append(msgs, map[string]any{"role": "user", "content": "and now?"}), "explain": true}))
		if r.at("context.tokens.threshold") != threshold || r.text("context.compaction.status") != "done" ||
			!strings.Contains(fmt.Sprint(r.at("context.settings")), "preset "+preset) {
			t.Errorf("%s: %v %v %v", preset, r.at("context.tokens"), r.at("context.compaction"), r.at("context.settings"))
		}
		words := strings.Contains(fmt.Sprint(r.at("context.provenance")), "kind:words")
		if words != (preset == "codex") {
			t.Errorf("%s: the person's words are kept: %v", preset, words)
		}
		if c := r.at("context.counting"); r.text("context.counting.method") != "estimate" ||
			r.at("context.counting.anchor") != nil {
			t.Errorf("%s: %v", preset, c)
		}
	}
}
