package api_test

import (
	"strings"
	"testing"
)

func TestEmptyOutputIsAccepted(t *testing.T) {
	k := newKit(t, nil)
	id := k.session(nil)
	k.say(id, "user", "x")
	path := "/v1/sessions/" + id + "/messages"
	r := k.want(201, k.do("POST", path, `{"messages":[],"dialect":"openai.responses","call":{"provider":"openai","usage":{"input_tokens":5,"output_tokens":0}}}`))
	if r.text("head") != id+".1" || k.messages() != 1 || k.count(`SELECT COUNT(*) FROM calls`) != 1 {
		t.Errorf("%s", r.raw)
	}
	k.want(201, k.do("POST", path, `{"messages":[{"object":"response","status":"completed","output":[]}]}`))
	k.want(422, k.do("POST", path, `{"messages":[]}`))
	k.want(422, k.do("POST", path, `{"dialect":"openai.responses"}`))
	k.want(422, k.do("POST", path, `{"messages":[],"dialect":"openai.responses","parent":1}`))
}

func TestOddUsageLosesNoReply(t *testing.T) {
	for name, usage := range map[string]string{
		"empty":                  `{}`,
		"no object":              `7`,
		"more cached than input": `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":20}}`,
		"a number as text":       `{"input_tokens":"10"}`,
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, nil)
			id := k.session(nil)
			for _, route := range []string{"/messages", "/turns"} {
				r := k.want(201, k.do("POST", "/v1/sessions/"+id+route, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}],"call":{"provider":"openai","model":"gpt-4o","usage":`+usage+`,"metadata":{"try":1}}}`))
				if !strings.Contains(r.raw, "the usage is kept as it came") {
					t.Errorf("no warning: %s", r.raw)
				}
			}
			if n := k.count(`SELECT COUNT(*) FROM calls WHERE metadata ->> 'usage' IS NOT NULL AND CAST(metadata ->> 'try' AS TEXT) = '1' AND input_tokens = 0 AND cost_nanousd IS NULL`); n != 2 {
				t.Errorf("%d calls have the usage", n)
			}
			k.want(422, k.do("POST", "/v1/sessions/"+id+"/calls", `{"provider":"openai","usage":`+usage+`}`)) // no reply to lose
		})
	}
}
