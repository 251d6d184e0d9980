package dialecttest_test

import (
	"strings"
	"testing"

	"sessiond/internal/testkit/dialecttest"
)

const (
	hi        = `{"type":"message","role":"user","content":"hi"}`
	says      = `{"type":"message","role":"assistant","content":"hello"}`
	function  = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	answer    = `{"type":"function_call_output","call_id":"a","output":"7"}`
	shell     = `{"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"status":"completed"}`
	shellSays = `{"type":"shell_call_output","call_id":"a","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`
	thought   = `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAA="}`
	request   = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"f","arguments":"{}"}`
	approved  = `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`
)

func TestValidateResponsesAccepts(t *testing.T) {
	for name, items := range map[string]string{
		"plain":           hi + "," + says + `,{"role":"developer","content":[{"type":"input_text","text":"x"}]},{"role":"user","content":""}`,
		"a call answered": function + "," + answer,
		"answers out of order": function + "," + strings.Replace(function, `"a"`, `"b"`, 1) + "," +
			strings.Replace(answer, `"a"`, `"b"`, 1) + "," + answer,
		"reasoning":          thought + "," + thought + "," + function + "," + answer + "," + thought + "," + says,
		"a custom tool":      `{"type":"custom_tool_call","call_id":"a","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"a","output":[{"type":"input_text","text":"x"}]}`,
		"a local shell":      `{"type":"local_shell_call","call_id":"a","status":"completed","action":{"type":"exec","command":["ls"]}},` + answer,
		"a shell":            shell + "," + shellSays,
		"a patch":            `{"type":"apply_patch_call","call_id":"a","operation":{"type":"delete_file","path":"x"},"status":"completed"},{"type":"apply_patch_call_output","call_id":"a","status":"failed","output":"no"}`,
		"a search":           `{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`,
		"an approval":        request + "," + approved + `,{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","arguments":"{}","output":"x","approval_request_id":"mcpr_1"}`,
		"a refusal":          `{"role":"assistant","content":[{"type":"output_text","text":"x"},{"type":"refusal","refusal":"no"}],"phase":"final_answer"}`,
		"media":              `{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,QQ=="},{"type":"input_image","detail":"low","file_id":"f"},{"type":"input_file","file_url":"https://x"},{"type":"input_file","filename":"a","file_data":"data:a/b;base64,QQ=="}]}`,
		"a compaction":       `{"type":"compaction","encrypted_content":"x"}`,
		"a search for tools": `{"type":"tool_search_call","call_id":"a","arguments":{},"execution":"client"},{"type":"tool_search_output","call_id":"a","tools":[]}`,
	} {
		if err := dialecttest.ValidateResponses([]byte(`{"instructions":"x","input":[` + items + `]}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateResponsesRefuses(t *testing.T) {
	with := func(item, field string) string { return `{` + field + `,` + item[1:] }
	for name, items := range map[string]string{
		"nothing":                        ``,
		"an id of a message":             with(says, `"id":"msg_1"`),
		"an id of reasoning":             with(thought, `"id":"rs_1"`) + "," + says,
		"an id of a call":                with(function, `"id":"fc_1"`) + "," + answer,
		"a reference":                    `{"type":"item_reference","id":"rs_1"}`,
		"reasoning without its content":  `{"type":"reasoning","summary":[]},` + says,
		"reasoning of an empty content":  `{"type":"reasoning","summary":[],"encrypted_content":""},` + says,
		"reasoning without a summary":    `{"type":"reasoning","encrypted_content":"x"},` + says,
		"reasoning that led nowhere":     hi + "," + thought,
		"reasoning before a person":      thought + "," + hi,
		"reasoning before an output":     function + "," + thought + "," + answer,
		"a search by id":                 `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}}`,
		"a search of nothing":            `{"type":"web_search_call","status":"completed"}`,
		"a search of another kind":       `{"type":"web_search_call","status":"completed","action":{"type":"look"}}`,
		"an interpreter":                 `{"type":"code_interpreter_call","code":"1","container_id":"c","outputs":[],"status":"completed"}`,
		"an unknown type":                `{"type":"hologram"}`,
		"a role of another":              `{"role":"tool","content":"x"}`,
		"no content":                     `{"role":"user"}`,
		"a null content":                 `{"role":"user","content":null}`,
		"an empty array":                 `{"role":"user","content":[]}`,
		"an unknown field":               with(hi, `"name":"ann"`),
		"a status of a message":          with(says, `"status":"completed"`),
		"a phase of a person":            with(hi, `"phase":"commentary"`),
		"input in a reply":               `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`,
		"output of a person":             `{"role":"user","content":[{"type":"output_text","text":"x"}]}`,
		"annotations":                    `{"role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}`,
		"a cache mark":                   `{"role":"user","content":[{"type":"input_text","text":"x","cache_control":{}}]}`,
		"a picture in a reply":           `{"role":"assistant","content":[{"type":"input_image","detail":"auto","image_url":"https://x"}]}`,
		"a picture without detail":       `{"role":"user","content":[{"type":"input_image","image_url":"https://x"}]}`,
		"a picture that is none":         `{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,@"}]}`,
		"a picture of another type":      `{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/heic;base64,QQ=="}]}`,
		"sound":                          `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}}]}`,
		"a file of nothing":              `{"role":"user","content":[{"type":"input_file"}]}`,
		"a file without a name":          `{"role":"user","content":[{"type":"input_file","file_data":"data:a/b;base64,QQ=="}]}`,
		"a call unanswered":              function,
		"a call answered twice":          function + "," + answer + "," + answer,
		"an answer to nothing":           answer,
		"an answer before its call":      answer + "," + function,
		"the same id anew":               function + "," + answer + "," + function + "," + answer,
		"an answer of another kind":      function + `,{"type":"custom_tool_call_output","call_id":"a","output":"x"}`,
		"a shell answered as a function": shell + "," + answer,
		"a function answered as a shell": function + "," + shellSays,
		"a call without a name":          strings.Replace(function, `"f"`, `""`, 1) + "," + answer,
		"a tool's name with a dot":       strings.Replace(function, `"f"`, `"f.g"`, 1) + "," + answer,
		"a tool's name too long": strings.Replace(function, `"f"`, `"`+strings.Repeat("x", 129)+`"`, 1) + "," +
			answer,
		"a call's id too long":         strings.ReplaceAll(function+","+answer, `"a"`, `"`+strings.Repeat("x", 65)+`"`),
		"a call's id empty":            strings.ReplaceAll(function+","+answer, `"a"`, `""`),
		"arguments as an object":       strings.Replace(function, `"{}"`, `{}`, 1) + "," + answer,
		"a result as an object":        function + "," + strings.Replace(answer, `"7"`, `{"content":"7"}`, 1),
		"a patch of an unknown status": `{"type":"apply_patch_call","call_id":"a","operation":{},"status":"failed"},{"type":"apply_patch_call_output","call_id":"a","status":"failed"}`,
		"a shell without an outcome": shell + "," +
			strings.Replace(shellSays, `,"outcome":{"type":"exit","exit_code":0}`, ``, 1),
		"an approval of nothing":             approved,
		"an approval that is neither":        request + "," + strings.Replace(approved, `true`, `null`, 1),
		"an MCP call without a server":       `{"type":"mcp_call","id":"m","name":"f","arguments":"{}"}`,
		"a summary of another type":          `{"type":"reasoning","summary":[{"type":"text","text":"x"}],"encrypted_content":"x"},` + says,
		"a compaction without its content":   `{"type":"compaction"}`,
		"other letters in a field":           `{"Role":"user","content":"x"}`,
		"a computer, which needs an id":      `{"type":"computer_call","call_id":"a","action":{"type":"wait"},"pending_safety_checks":[],"status":"completed"}`,
		"a search with fields of no request": `{"type":"web_search_call","status":"completed","action":{"type":"search","cost":1}}`,
	} {
		if err := dialecttest.ValidateResponses([]byte(`{"input":[` + items + `]}`)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, body := range []string{
		`{}`, `[]`, `null`, `{"input":null}`, `{"input":"hi"}`,
		`{"input":[` + hi + `],"store":false}`, `{"input":[` + hi + `],"instructions":""}`,
		`{"input":[` + hi + `],"instructions":["x"]}`,
	} {
		if dialecttest.ValidateResponses([]byte(body)) == nil {
			t.Errorf("%s: accepted", body)
		}
	}
}
