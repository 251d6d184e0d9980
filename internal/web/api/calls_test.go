package api_test

import (
	"strings"
	"testing"
)

func TestCallsAreRecordedAndSummed(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	path := "/v1/sessions/" + id + "/calls"
	r := k.want(201, k.do("POST", path, `{"provider":"openai","model":"priced","input_tokens":100,"cache_read_tokens":7,"output_tokens":10,"reasoning_tokens":3,"purpose":"tool","cost_usd":0.25}`))
	if r.at("cost_usd") != 0.25 || r.text("price_source") != "reported" || r.text("purpose") != "tool" ||
		r.text("status") != "ok" || r.text("session_id") != id {
		t.Errorf("%s", r.raw)
	}
	k.want(201, k.do("POST", path, `{"model":"nobody-knows","input_tokens":1,"status":"failed","error":"429"}`))
	k.want(201, k.do("POST", path, `{"provider":"openai","model":"priced","usage":{"prompt_tokens":4,"completion_tokens":2}}`))
	r = k.want(200, k.do("GET", path+"?limit=2", nil))
	if len(r.at("data").([]any)) != 2 || r.at("data.1.cost_usd") != nil {
		t.Errorf("%s", r.raw)
	}
	next, _ := r.at("next_cursor").(string)
	if r = k.want(200, k.do("GET", path+"?cursor="+next, nil)); len(r.at("data").([]any)) != 1 ||
		r.at("data.0.input_tokens") != 4.0 || r.at("next_cursor") != nil {
		t.Errorf("%s", r.raw)
	}
	u := k.want(200, k.do("GET", "/v1/usage", nil))
	if u.at("calls") != 3.0 || u.at("tokens.input") != 105.0 || u.at("tokens.cache_read") != 7.0 ||
		u.at("unpriced_calls") != 1.0 {
		t.Errorf("%s", u.raw)
	}
	if u := k.want(200, k.do("GET", "/v1/usage?source=pi&since=2026-01-01&until=2026-12-31", nil)); u.at("calls") != 0.0 {
		t.Errorf("%s", u.raw)
	}
}

func TestUsageIsGrouped(t *testing.T) {
	k := newKit(t, nil)
	k.want(201, k.do("POST", "/v1/sessions/"+k.session(nil)+"/calls", `{"model":"priced","input_tokens":1}`))
	r := k.want(200, k.do("GET", "/v1/usage?group_by=model,day", nil))
	if r.text("by_model.0.model") != "priced" || r.text("by_day.0.day") != "2026-02-11" ||
		len(r.at("by_source").([]any)) != 0 {
		t.Errorf("%s", r.raw)
	}
	r = k.want(200, k.do("GET", "/v1/usage?group_by=project,purpose", nil))
	if r.text("by_purpose.0.purpose") != "chat" ||
		r.at("by_project.0.calls") != 1.0 || len(r.at("by_model").([]any)) != 0 {
		t.Errorf("%s", r.raw)
	}
	for _, query := range []string{"group_by=colour", "since=soon", "until=2026-13-01", "source=word"} {
		k.want(422, k.do("GET", "/v1/usage?"+query, nil))
	}
}

func TestUsageOfATag(t *testing.T) {
	k := newKit(t, nil)
	tagged := k.session(nil)
	for _, id := range []string{tagged, k.session(nil)} {
		k.want(201, k.do("POST", "/v1/sessions/"+id+"/calls", `{"model":"priced","input_tokens":1}`))
	}
	k.want(200, k.do("PUT", "/v1/sessions/"+tagged+"/tags/release", nil))
	if r := k.want(200, k.do("GET", "/v1/usage?tag=release", nil)); r.at("calls") != 1.0 || r.at("sessions") != 1.0 {
		t.Errorf("%s", r.raw)
	}
	k.want(422, k.do("GET", "/v1/usage?tag=unknown", nil))
}

func TestRepeatedCallCountsOnce(t *testing.T) {
	k := newKit(t, nil)
	path := "/v1/sessions/" + k.session(nil) + "/calls"
	for range 2 {
		k.want(201, k.do("POST", path, `{"model":"m","input_tokens":1}`, header{"Idempotency-Key": "c"}))
		k.want(201, k.do("POST", path, `{"model":"m","input_tokens":1,"external_id":"req_1"}`))
	}
	if n := k.count(`SELECT COUNT(*) FROM calls`); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestCallsThatAreRefused(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	for body, field := range map[string]string{
		`{"input_tokens":-1}`:                               "input_tokens",
		`{"input_tokens":1.5}`:                              "input_tokens",
		`{"input_tokens":"5"}`:                              "input_tokens",
		`{"output_tokens":99999999999999999}`:               "output_tokens",
		`{"latency_ms":-1}`:                                 "latency_ms",
		`{"cost_usd":-1}`:                                   "cost_usd",
		`{"cost_usd":1e12}`:                                 "cost_usd",
		`{"purpose":"fun"}`:                                 "purpose",
		`{"status":"maybe"}`:                                "status",
		`{"context_id":"ctx_99"}`:                           "context_id",
		`{"context_id":"x"}`:                                "context_id",
		`{"usage":{"tokens":1}}`:                            "usage",
		`{"provider":"openai","usage":{},"input_tokens":1}`: "usage",
		`{"model":5}`:                                       "model",
		`{"modell":"m"}`:                                    "modell",
		`{"created_at":"yesterday"}`:                        "created_at",
		`{"metadata":[1]}`:                                  "metadata",
	} {
		if r := k.want(422, k.do("POST", "/v1/sessions/"+id+"/calls", body)); r.text("errors.0.path") != field {
			t.Errorf("%s: %s", body, r.raw)
		}
		if field == "usage" { // which loses no reply
			continue
		}
		r := k.want(422, k.do("POST", "/v1/sessions/"+id+"/messages",
			`{"messages":[{"role":"assistant","content":"x"}],"call":`+body+`}`))
		if r.text("errors.0.path") != "call."+field && r.text("errors.0.path") != field {
			t.Errorf("in an append, %s: %s", body, r.raw)
		}
	}
	if k.messages() != 0 || k.count(`SELECT COUNT(*) FROM calls`) != 0 {
		t.Error("something was stored")
	}
	k.want(404, k.do("POST", "/v1/sessions/20200101_001/calls", `{"model":"m"}`))
}

func TestCostsAreNotLostInUnits(t *testing.T) {
	k := newKit(t, nil)
	r := k.want(201, k.do("POST", "/v1/sessions/"+k.session(nil)+"/calls", `{"cost_usd":0.000000001}`))
	if !strings.Contains(r.raw, `"cost_usd":1e-9`) {
		t.Errorf("%s", r.raw)
	}
}
