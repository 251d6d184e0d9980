package dialecttest_test

import (
	"strings"
	"testing"

	"sessiond/internal/testkit/dialecttest"
)

const (
	userSays = `{"role":"user","content":"x"}`
	use      = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	answered = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`
	searched = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u","title":"","encrypted_content":"e","page_age":null}]}`
)

func TestValidateAnthropicAccepts(t *testing.T) {
	for name, messages := range map[string]string{
		"plain":                userSays + `,{"role":"assistant","content":"y"}`,
		"a prefilled reply":    userSays + `,{"role":"assistant","content":[{"type":"text","text":"{"}]}`,
		"a call answered":      userSays + `,` + use + `,` + answered,
		"a result and more":    userSays + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":false,"cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"x"}]}`,
		"a result of media":    userSays + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"tool_reference","tool_name":"f"}]}]}`,
		"thinking":             userSays + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"y"}]},` + userSays,
		"a search":             userSays + `,{"role":"assistant","content":[` + searched + `,{"type":"text","text":"y","citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"e","title":null,"url":"u"}]}]},` + userSays,
		"a pause":              userSays + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}`,
		"a program that waits": userSays + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}},{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},` + answered + `,{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result"}}]},` + userSays,
		"an MCP server's":      userSays + `,{"role":"assistant","content":[{"type":"mcp_tool_use","id":"m","name":"e","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[{"type":"text","text":"x"}]}]},` + userSays,
		"documents":            `{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="},"title":null,"citations":{"enabled":true}},{"type":"document","source":{"type":"content","content":"x"}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}]}`,
	} {
		if err := dialecttest.ValidateAnthropic([]byte(`{"system":"x","messages":[` + messages + `]}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateAnthropicRefuses(t *testing.T) {
	user := func(block string) string { return `{"role":"user","content":[` + block + `]}` }
	reply := func(blocks string) string { return userSays + `,{"role":"assistant","content":[` + blocks + `]}` }
	for name, messages := range map[string]string{
		"nothing":                ``,
		"a reply first":          `{"role":"assistant","content":"x"}`,
		"users in a row":         userSays + `,` + userSays,
		"replies in a row":       reply(`{"type":"text","text":"y"}`) + `,{"role":"assistant","content":"y"}`,
		"a system entry":         userSays + `,{"role":"system","content":"x"}`,
		"a field of a reply":     userSays + `,{"role":"assistant","content":"x","stop_reason":"end_turn"}`,
		"no content":             `{"role":"user"}`,
		"an empty text":          `{"role":"user","content":""}`,
		"an empty array":         `{"role":"user","content":[]}`,
		"a text of spaces":       user(`{"type":"text","text":" \n"}`),
		"half a pair":            `{"role":"user","content":"\ud800"}`,
		"an unknown block":       user(`{"type":"video"}`),
		"an unknown field":       user(`{"type":"text","text":"x","novel":1}`),
		"a mark of another kind": user(`{"type":"text","text":"x","cache_control":{"type":"persistent"}}`),
		"too many marks":         user(strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5), ",")),
		"a call unanswered":      userSays + `,` + use,
		"a call answered too late": userSays + `,` + use + `,` + userSays + `,{"role":"assistant","content":"y"},` +
			answered,
		"a result behind a text":      userSays + `,` + use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`,
		"a result twice":              userSays + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]}`,
		"an answered to nothing":      answered,
		"a failure that says nothing": userSays + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true}]}`,
		"a flag that is text":         userSays + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":"no"}]}`,
		"a call in a result":          userSays + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_use","id":"b","name":"f","input":{}}]}]}`,
		"an id anew":                  userSays + `,` + use + `,` + answered + `,` + use + `,` + answered,
		"an id of other letters": userSays + `,` + strings.Replace(use, `"a"`, `"a|b"`, 1) + `,` +
			strings.Replace(answered, `"a"`, `"a|b"`, 1),
		"a tool's name with a dot":       userSays + `,` + strings.Replace(use, `"f"`, `"f.g"`, 1) + `,` + answered,
		"an input that is text":          userSays + `,` + strings.Replace(use, `{}`, `"{}"`, 1) + `,` + answered,
		"an input of null":               userSays + `,` + strings.Replace(use, `{}`, `null`, 1) + `,` + answered,
		"a user's call":                  user(`{"type":"tool_use","id":"a","name":"f","input":{}}`),
		"a user's thinking":              user(`{"type":"thinking","thinking":"x","signature":"s"}`),
		"a reply's picture":              reply(`{"type":"image","source":{"type":"url","url":"https://x"}}`),
		"thinking at the end":            reply(`{"type":"text","text":"x"},{"type":"thinking","thinking":"x","signature":"s"}`) + `,` + userSays,
		"thinking without signature":     reply(`{"type":"thinking","thinking":"x"},{"type":"text","text":"x"}`),
		"thinking of an empty signature": reply(`{"type":"thinking","thinking":"x","signature":""},{"type":"text","text":"x"}`),
		"spaces at the very end":         userSays + `,{"role":"assistant","content":"y "}`,
		"a search without its result":    reply(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"text","text":"x"}`) + `,` + userSays,
		"a result without its search":    reply(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`),
		"a search by another's id":       reply(strings.ReplaceAll(searched, "srvtoolu_1", "toolu_1")),
		"hits that are none":             reply(strings.Replace(searched, "web_search_result\"", "hit\"", 1)),
		"a result of an unknown kind":    reply(`{"type":"server_tool_use","id":"srvtoolu_1","name":"x","input":{}},{"type":"x_tool_result","tool_use_id":"srvtoolu_1","content":{}}`),
		"a result of another's content": reply(strings.Replace(searched, `"content":[`,
			`"content":{"type":"web_fetch_result"},"x":[`, 1)),
		"a caller that never called":     userSays + `,` + strings.Replace(use, `{}`, `{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_9"}`, 1) + `,` + answered,
		"a server tool without a server": reply(`{"type":"mcp_tool_use","id":"m","name":"e","input":{}}`),
		"a citation of an unknown kind":  reply(`{"type":"text","text":"x","citations":[{"type":"other","cited_text":"x"}]}`),
		"a citation of a reply":          reply(`{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"x","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}`),
		"a picture of another type":      user(`{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"QQ=="}}`),
		"a picture of no base64":         user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"@"}}`),
		"a picture under another's name": user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"/9j/4A=="}}`),
		"a picture without TLS":          user(`{"type":"image","source":{"type":"url","url":"http://x"}}`),
		"a picture of text":              user(`{"type":"image","source":{"type":"text","media_type":"text/plain","data":"x"}}`),
		"a document of another type":     user(`{"type":"document","source":{"type":"base64","media_type":"application/zip","data":"QQ=="}}`),
		"a document of Markdown":         user(`{"type":"document","source":{"type":"text","media_type":"text/markdown","data":"x"}}`),
		"a search result of nothing":     user(`{"type":"search_result","source":"s","title":"t","content":[]}`),
		"an upload of nothing":           user(`{"type":"container_upload"}`),
	} {
		if err := dialecttest.ValidateAnthropic([]byte(`{"messages":[` + messages + `]}`)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, request := range []string{
		`{}`, `[]`, `null`, `{"messages":null}`,
		`{"messages":[` + userSays + `],"stream":true}`, `{"system":"","messages":[` + userSays + `]}`,
		`{"system":null,"messages":[` + userSays + `]}`,
	} {
		if dialecttest.ValidateAnthropic([]byte(request)) == nil {
			t.Errorf("%s: accepted", request)
		}
	}
}
