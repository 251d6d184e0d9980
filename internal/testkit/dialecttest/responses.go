package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ValidateResponses tells what OpenAI's Responses API would refuse in {"instructions"?, "input"}
// of a request with store:false. Rules: the API reference and OpenAPI description of input items
// (fields, types, required ones, enums), and what the API answers with 400 or 404 beyond it: the
// length of a call's id, the alphabet of names, output_text and refusal only in an assistant's
// message, one output for each call and behind it, nothing that is looked up in its storage (ids
// of items, references, reasoning without its encrypted content), reasoning followed by what it
// led to. Only items of MCP servers, which the API takes without storage, have ids.
func ValidateResponses(raw []byte) error {
	request, err := object(raw, "instructions", "input")
	if err != nil {
		return err
	}
	if i, given := request["instructions"]; given && (i[0] != '"' || string(i) == `""`) {
		return fmt.Errorf("instructions must be a string with something in it: %.60s", i)
	}
	v := responsesInput{calls: map[string]string{}, open: map[string]bool{}, requests: map[string]bool{}}
	if err := each("input", request["input"], v.item); err != nil {
		return err
	}
	for id := range v.open {
		return fmt.Errorf("input: no output for call %q", id)
	}
	if v.reasoned {
		return errors.New("input: ends with reasoning that nothing follows")
	}
	return nil
}

// responsesInput is what the items so far leave to those behind them.
type responsesInput struct {
	calls    map[string]string // call ids and the types of their items
	open     map[string]bool
	requests map[string]bool // for approvals
	reasoned bool            // the item before was reasoning
}

// itemFields lists the fields of each type of item: required ones, then optional ones.
func itemFields() map[string][2][]string {
	return map[string][2][]string{
		"message":                 {{"role", "content"}, {"phase"}},
		"reasoning":               {{"summary", "encrypted_content"}, nil},
		"compaction":              {{"encrypted_content"}, nil},
		"function_call":           {{"call_id", "name", "arguments"}, {"namespace"}},
		"custom_tool_call":        {{"call_id", "name", "input"}, nil},
		"local_shell_call":        {{"call_id", "action", "status"}, nil},
		"shell_call":              {{"call_id", "action"}, {"status"}},
		"apply_patch_call":        {{"call_id", "operation", "status"}, nil},
		"tool_search_call":        {{"arguments"}, {"call_id", "status", "execution"}},
		"web_search_call":         {{"action", "status"}, nil},
		"mcp_list_tools":          {{"id", "server_label", "tools"}, {"error"}},
		"mcp_approval_request":    {{"id", "server_label", "name", "arguments"}, nil},
		"mcp_approval_response":   {{"approval_request_id", "approve"}, {"reason"}},
		"mcp_call":                {{"id", "server_label", "name", "arguments"}, {"output", "error", "approval_request_id", "status"}},
		"function_call_output":    {{"call_id", "output"}, nil},
		"custom_tool_call_output": {{"call_id", "output"}, nil},
		"shell_call_output":       {{"call_id", "output"}, {"max_output_length"}},
		"apply_patch_call_output": {{"call_id", "status"}, {"output"}},
		"tool_search_output":      {{"tools"}, {"call_id", "status", "execution"}},
	}
}

func (v *responsesInput) item(k string, raw []byte) error {
	if k == "" {
		k = "message"
	}
	fields, known := itemFields()[k]
	if !known {
		return fmt.Errorf("type %q is not taken without storage", k)
	}
	item, err := object(raw, append(append([]string{"type"}, fields[0]...), fields[1]...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	for _, f := range fields[0] {
		if len(item[f]) == 0 || string(item[f]) == "null" {
			return fmt.Errorf("%s: %s is required", k, f)
		}
	}
	reasoned := v.reasoned
	v.reasoned = k == "reasoning"
	if reasoned && (strings.HasSuffix(k, "_output") || k == "mcp_approval_response" || k == "message" && string(item["role"]) != `"assistant"`) {
		return errors.New("stands behind reasoning that led to something else")
	}
	if err := v.body(k, item); err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	return nil
}

func (v *responsesInput) body(k string, item map[string]json.RawMessage) error {
	switch k {
	case "message":
		return responsesMessage(item)
	case "reasoning":
		return errors.Join(filled(item, "encrypted_content"), summaries(item["summary"]))
	case "compaction":
		return filled(item, "encrypted_content")
	case "web_search_call":
		return webSearch(item)
	case "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call":
		return v.mcp(k, item)
	}
	if strings.HasSuffix(k, "_output") {
		return v.output(k, item)
	}
	return v.call(k, item)
}

// filled checks fields that must be strings with something in them.
func filled(item map[string]json.RawMessage, fields ...string) error {
	for _, f := range fields {
		if len(item[f]) < len(`"x"`) || item[f][0] != '"' {
			return fmt.Errorf("%s must be a string with something in it: %.60s", f, item[f])
		}
	}
	return nil
}

// summaries checks an array, empty or not, of {type: summary_text, text}.
func summaries(raw []byte) error {
	if string(raw) == "[]" {
		return nil
	}
	return each("summary", raw, func(k string, e []byte) error {
		o, err := strs(e, "type", "text")
		if _, given := o["text"]; err != nil || k != "summary_text" || !given {
			return fmt.Errorf("must be {type: summary_text, text}: %.60s (%w)", e, err)
		}
		return nil
	})
}

func responsesMessage(item map[string]json.RawMessage) error {
	var role string
	if err := json.Unmarshal(item["role"], &role); err != nil {
		return err
	}
	types := []string{"input_text"}
	switch role {
	case "assistant":
		types = []string{"output_text", "refusal"}
	case "user":
		types = []string{"input_text", "input_image", "input_file"}
	case "system", "developer":
	default:
		return fmt.Errorf("role %q", role)
	}
	if phase := item["phase"]; phase != nil && (role != "assistant" || string(phase) != `"commentary"` && string(phase) != `"final_answer"`) {
		return fmt.Errorf("phase %s of a message of role %s", phase, role)
	}
	return responsesContent(item["content"], types...)
}

// responsesContent checks a string, or a non-empty array of elements of the given types.
func responsesContent(raw []byte, types ...string) error {
	if raw[0] == '"' {
		return nil
	}
	return each("content", raw, func(k string, e []byte) error {
		if !slices.Contains(types, k) {
			return fmt.Errorf("the type is not among %q", types)
		}
		return responsesElement(k, e)
	})
}

func responsesElement(k string, raw []byte) error {
	switch k {
	case "input_text", "output_text":
		o, err := strs(raw, "type", "text")
		if _, given := o["text"]; err != nil || !given {
			return fmt.Errorf("text must be a string: %.60s (%w)", raw, err)
		}
		return nil
	case "refusal":
		o, err := strs(raw, "type", "refusal")
		if _, given := o["refusal"]; err != nil || !given {
			return fmt.Errorf("refusal must be a string: %.60s (%w)", raw, err)
		}
		return nil
	case "input_image":
		o, err := strs(raw, "type", "image_url", "file_id", "detail")
		if err != nil {
			return err
		}
		if !slices.Contains([]string{"auto", "low", "high", "original"}, o["detail"]) {
			return fmt.Errorf("detail %q", o["detail"])
		}
		if o["file_id"] != "" && o["image_url"] == "" || isAddress(o["image_url"]) {
			return nil
		}
		return dataURL(o["image_url"], "image/png", "image/jpeg", "image/gif", "image/webp")
	}
	o, err := strs(raw, "type", "file_id", "file_url", "filename", "file_data")
	switch {
	case err != nil:
		return err
	case len(o) == 2 && (o["file_id"] != "" || isAddress(o["file_url"])):
		return nil
	case o["filename"] == "" || len(o) != 3:
		return errors.New("must have a file_id, a file_url, or a filename and file_data")
	}
	return dataURL(o["file_data"])
}

func isAddress(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

func webSearch(item map[string]json.RawMessage) error {
	var action struct{ Type string }
	if err := json.Unmarshal(item["action"], &action); err != nil || !slices.Contains([]string{"search", "open_page", "find_in_page"}, action.Type) {
		return fmt.Errorf("action is of type %q (%w)", action.Type, err)
	}
	if _, err := object(item["action"], "type", "query", "queries", "url", "pattern", "sources"); err != nil {
		return fmt.Errorf("action: %w", err)
	}
	return status(item, "in_progress", "searching", "completed", "failed")
}

// status checks a status, where there is one.
func status(item map[string]json.RawMessage, allowed ...string) error {
	var s string
	if item["status"] == nil {
		return nil
	}
	if err := json.Unmarshal(item["status"], &s); err != nil || !slices.Contains(allowed, s) {
		return fmt.Errorf("status %s is not among %q", item["status"], allowed)
	}
	return nil
}

func (v *responsesInput) call(k string, item map[string]json.RawMessage) error {
	var id, name string
	if err := json.Unmarshal(item["call_id"], &id); err != nil || id == "" || len(id) > 64 || v.calls[id] != "" {
		return fmt.Errorf("call_id %s must be a string of 1 to 64 that no other call has", item["call_id"])
	}
	v.calls[id], v.open[id] = k, true
	if n := item["name"]; n != nil {
		if err := json.Unmarshal(n, &name); err != nil || len(name) > 128 || !toolName(name[:min(len(name), 64)]) || len(name) > 64 && !toolName(name[64:]) {
			return fmt.Errorf("name %s", n)
		}
	}
	for _, f := range []string{"arguments", "input"} {
		if a := item[f]; a != nil && a[0] != '"' && k != "tool_search_call" {
			return fmt.Errorf("%s must be a string: %.60s", f, a)
		}
	}
	for _, f := range []string{"action", "operation"} {
		if a := item[f]; a != nil && a[0] != '{' {
			return fmt.Errorf("%s must be an object: %.60s", f, a)
		}
	}
	if k == "apply_patch_call" {
		return status(item, "in_progress", "completed")
	}
	return status(item, "in_progress", "completed", "incomplete")
}

func (v *responsesInput) output(k string, item map[string]json.RawMessage) error {
	var id string
	if err := json.Unmarshal(item["call_id"], &id); err != nil || !v.open[id] {
		return fmt.Errorf("call_id %s answers no open call", item["call_id"])
	}
	delete(v.open, id)
	answers := strings.TrimSuffix(k, "_output")
	if k == "tool_search_output" {
		answers = "tool_search_call"
	}
	if of := v.calls[id]; of != answers && (of != "local_shell_call" || answers != "function_call") {
		return fmt.Errorf("answers a %s", of)
	}
	switch k {
	case "function_call_output", "custom_tool_call_output":
		return responsesContent(item["output"], "input_text", "input_image", "input_file")
	case "apply_patch_call_output":
		if o := item["output"]; o != nil && o[0] != '"' {
			return fmt.Errorf("output must be a string: %.60s", o)
		}
		return status(item, "completed", "failed")
	case "tool_search_output":
		if item["tools"][0] != '[' {
			return fmt.Errorf("tools must be an array: %.60s", item["tools"])
		}
		return status(item, "in_progress", "completed", "incomplete")
	}
	return each("output", item["output"], func(_ string, c []byte) error {
		if o, err := object(c, "stdout", "stderr", "outcome"); err != nil || len(o) != 3 || o["outcome"][0] != '{' {
			return fmt.Errorf("must have stdout, stderr and outcome: %.60s (%w)", c, err)
		}
		return nil
	})
}

func (v *responsesInput) mcp(k string, item map[string]json.RawMessage) error {
	if k == "mcp_approval_response" {
		var id string
		if err := json.Unmarshal(item["approval_request_id"], &id); err != nil || !v.requests[id] {
			return fmt.Errorf("approval_request_id %s names no request before it", item["approval_request_id"])
		}
		if a := string(item["approve"]); a != "true" && a != "false" {
			return fmt.Errorf("approve must be true or false: %s", a)
		}
		return nil
	}
	if err := filled(item, "id", "server_label"); err != nil {
		return err
	}
	if k == "mcp_list_tools" {
		if item["tools"][0] != '[' {
			return fmt.Errorf("tools must be an array: %.60s", item["tools"])
		}
		return nil
	}
	if k == "mcp_approval_request" {
		var id string
		if err := json.Unmarshal(item["id"], &id); err != nil {
			return err
		}
		v.requests[id] = true
	}
	for _, f := range []string{"name", "arguments", "output"} {
		if t := item[f]; t != nil && t[0] != '"' {
			return fmt.Errorf("%s must be a string: %.60s", f, t)
		}
	}
	return nil
}
