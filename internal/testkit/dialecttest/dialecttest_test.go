package dialecttest_test

import (
	"strings"
	"testing"

	"sessiond/internal/testkit/dialecttest"
)

func TestEqualJSONIsSharp(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "\u0061" : 1 } `, true},
		{`1.0`, `1`, false},
		{`1e2`, `100`, false},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`"\u00e9"`, `"é"`, true},
		{`"\ud83d\ude00"`, `"😀"`, true},
		{`"\ud83d"`, `"\ufffd"`, false},
		{`"\ud83d"`, `"\ud83e"`, false},
		{`"\ud83d"`, `"\uD83D"`, true},
		{`"\\ud83d"`, `"\ud83d"`, false},
		{`{"\ud800":1}`, `{"\ufffd":1}`, false},
		{`"\u0000"`, `"\ufffd"`, false},
		{`"<"`, `"\u003c"`, true},
		{`[]`, `null`, false},
		{`{`, `{`, false},
	} {
		if got := dialecttest.EqualJSON([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`

func TestValidateOpenAIChatAccepts(t *testing.T) {
	for name, messages := range map[string]string{
		"plain":           `{"role":"system","content":"x"},{"role":"user","content":"x","name":"ann"},{"role":"assistant","content":"y"}`,
		"users in a row":  `{"role":"user","content":"x"},{"role":"user","content":"y"}`,
		"a call answered": call + `,{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}`,
		"the same id anew": call + `,{"role":"tool","tool_call_id":"a","content":""},` + call +
			`,{"role":"tool","tool_call_id":"a","content":""}`,
		"a refusal": `{"role":"assistant","content":[{"type":"refusal","refusal":"x"}]}`,
		"media":     `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ==","detail":"low"}},{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},{"type":"file","file":{"file_id":"x"}}]}`,
	} {
		if err := dialecttest.ValidateOpenAIChat([]byte(`{"messages":[` + messages + `]}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateOpenAIChatRefuses(t *testing.T) {
	long := strings.Repeat("x", 65)
	for name, messages := range map[string]string{
		"nothing":                   ``,
		"an unknown field":          `{"role":"user","content":"x","cache_control":{}}`,
		"other letters":             `{"role":"user","Content":"x"}`,
		"an unknown role":           `{"role":"model","content":"x"}`,
		"no content":                `{"role":"user"}`,
		"an empty content":          `{"role":"user","content":""}`,
		"a reply of nothing":        `{"role":"assistant","content":""}`,
		"a null content":            `{"role":"user","content":null}`,
		"an empty array":            `{"role":"user","content":[]}`,
		"a null reply":              `{"role":"assistant","content":null}`,
		"a field of an element":     `{"role":"user","content":[{"type":"text","text":"x","cache_control":{}}]}`,
		"a picture in a reply":      `{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}`,
		"a picture in a result":     call + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}`,
		"a picture that is none":    `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,@"}}]}`,
		"a picture of another type": `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,QQ=="}}]}`,
		"a detail that is none":     `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x","detail":"ultra"}}]}`,
		"a sound of another format": `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ==","format":"ogg"}}]}`,
		"a file of nothing":         `{"role":"user","content":[{"type":"file","file":{}}]}`,
		"a refusal beside text":     `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"refusal","refusal":"x"}]}`,
		"reasoning":                 `{"role":"assistant","content":"x","reasoning_content":"y"}`,
		"no calls":                  `{"role":"assistant","content":"x","tool_calls":[]}`,
		"a call unanswered":         call,
		"a call answered too late":  call + `,{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}`,
		"a call answered twice":     call + `,{"role":"tool","tool_call_id":"a","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}`,
		"an answer to nothing":      `{"role":"tool","tool_call_id":"a","content":"x"}`,
		"an answer to another":      call + `,{"role":"tool","tool_call_id":"b","content":"x"}`,
		"a result's name":           call + `,{"role":"tool","tool_call_id":"a","name":"f","content":"x"}`,
		"arguments as an object": strings.Replace(call, `"{}"`, `{}`, 1) +
			`,{"role":"tool","tool_call_id":"a","content":"x"}`,
		"a tool's name with a dot": strings.Replace(call, `"f"`, `"f.g"`, 1) +
			`,{"role":"tool","tool_call_id":"a","content":"x"}`,
		"a tool's name too long": strings.Replace(call, `"f"`, `"`+long+`"`, 1) +
			`,{"role":"tool","tool_call_id":"a","content":"x"}`,
		"a call's id too long": strings.Replace(call, `"a"`, `"`+long+`"`, 1) + `,{"role":"tool","tool_call_id":"` +
			long + `","content":"x"}`,
		"an index of a call": strings.Replace(call, `"id"`, `"index":0,"id"`, 1) +
			`,{"role":"tool","tool_call_id":"a","content":"x"}`,
		"an author's name of spaces":   `{"role":"user","content":"x","name":"Ann Lee"}`,
		"an author's name too long":    `{"role":"user","content":"x","name":"` + long + `"}`,
		"an author without a name":     `{"role":"user","content":"x","name":""}`,
		"the same id twice in a reply": `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"a","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a","content":""}`,
	} {
		if err := dialecttest.ValidateOpenAIChat([]byte(`{"messages":[` + messages + `]}`)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, request := range []string{
		`{}`, `[]`, `null`, `{"messages":null}`,
		`{"messages":[{"role":"user","content":"x"}],"stream":true}`,
	} {
		if dialecttest.ValidateOpenAIChat([]byte(request)) == nil {
			t.Errorf("%s: accepted", request)
		}
	}
}
