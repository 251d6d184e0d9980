package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// What a session's settings say of the strategy is what turns do above the threshold.
func TestStrategiesOfSettings(t *testing.T) {
	turn := `{"messages":[{"role":"user","content":"and now?"}],"explain":true}`
	k := newKit(t, nil)
	for _, strategy := range []string{"summarize", "truncate", "clear"} {
		path := "/v1/sessions/" + k.long(60)
		k.want(200, k.do("PATCH", path, `{"settings":{"strategy":"`+strategy+`"}}`))
		r := k.want(201, k.do("POST", path+"/turns", turn))
		done := k.want(200, k.do("GET", path+"/compactions/"+r.text("context.compaction.id"), nil))
		if done.text("strategy") != strategy || done.text("status") != "done" || (done.text("summary") == "") != (strategy != "summarize") {
			t.Errorf("%s: %s", strategy, done.raw)
		}
		if !strings.Contains(fmt.Sprint(r.at("context.settings")), strategy) {
			t.Errorf("%s: %v", strategy, r.at("context.settings"))
		}
		if sent := fmt.Sprint(r.at("context.request")); !strings.Contains(sent, "and now?") || strings.Contains(sent, "Message 59.") == (strategy == "clear") {
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
	if r.text("context.directives.0.type") != "compaction_choice" || fmt.Sprint(r.at("context.directives.0.choices")) != "[summarize truncate clear]" {
		t.Fatalf("%s", r.raw)
	}
	var more []any
	for i := range 40 {
		more = append(more, map[string]any{"role": []string{"assistant", "user"}[i%2], "content": strings.Repeat("The cat sat on the mat near the door of house number 12. ", 12)})
	}
	r = k.want(201, k.do("POST", path+"/turns", map[string]any{"messages": more}))
	if r.at("context") != nil || r.text("problem.code") != "compaction_required" || r.at("appended") == nil {
		t.Fatalf("%s", r.raw)
	}
	if r = k.want(409, k.do("GET", path+"/context", nil)); r.text("code") != "compaction_required" {
		t.Errorf("%s", r.raw)
	}
	k.want(201, k.do("POST", path+"/compactions", `{"strategy":"truncate"}`))
	if r = k.want(201, k.do("POST", path+"/turns", `{}`)); r.at("context") == nil || r.text("context.compaction.status") != "done" {
		t.Errorf("%s", r.raw)
	}
}

// A preset is a name in a session's settings; what it brings is told with explain.
func TestPresetsOverHTTP(t *testing.T) {
	k := newKit(t, nil)
	for preset, threshold := range map[string]float64{"goose": 6399, "pi": 6000, "opencode": 5999, "codex": 7199, "moltbot": 4000, "aggressive": 5600} {
		id := k.session(`{"model":"known","window":8000,"settings":{"preset":"` + preset + `"}}`)
		var msgs []any
		for i := range 60 {
			msgs = append(msgs, map[string]any{"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprintf("Message %d. ", i) + strings.Repeat("The cat sat on the mat near the door of house number 12. ", 12)})
		}
		r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/turns", map[string]any{"messages": append(msgs, map[string]any{"role": "user", "content": "and now?"}), "explain": true}))
		if r.at("context.tokens.threshold") != threshold || r.text("context.compaction.status") != "done" || !strings.Contains(fmt.Sprint(r.at("context.settings")), "preset "+preset) {
			t.Errorf("%s: %v %v %v", preset, r.at("context.tokens"), r.at("context.compaction"), r.at("context.settings"))
		}
		words := strings.Contains(fmt.Sprint(r.at("context.provenance")), "kind:words")
		if words != (preset == "codex") {
			t.Errorf("%s: the person's words are kept: %v", preset, words)
		}
		if c := r.at("context.counting"); r.text("context.counting.method") != "estimate" || r.at("context.counting.anchor") != nil {
			t.Errorf("%s: %v", preset, c)
		}
	}
}
