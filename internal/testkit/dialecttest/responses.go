package dialecttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ValidateResponses reports what OpenAI's Responses API would refuse in {"instructions"?, "input"}
// of a request with store:false. Rules: the API reference and OpenAPI description of input items
// (fields, types, required ones, enums), and what the API answers with 400 or 404 beyond it: the
// length of a call's id, the alphabet of names, output_text and refusal only in an assistant's
// message, one output for each call and behind it, nothing that is looked up in its storage (ids
// of items, references, reasoning without its encrypted content), reasoning followed by what it
// led to. Only items of MCP servers, which the API takes without storage, have ids.
func ValidateResponses(raw []byte) error {
	request, err := only(raw, "instructions?:name input:list")
	if err != nil {
		return err
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

// responsesItems lists the fields of each type of item beside the type.
var responsesItems = map[string]string{
	"message":               "role:assistant|user|system|developer content phase?:commentary|final_answer",
	"reasoning":             "summary:list encrypted_content:name",
	"compaction":            "encrypted_content:name",
	"function_call":         "call_id:name name:word128 arguments:text namespace?",
	"custom_tool_call":      "call_id:name name:word128 input:text",
	"local_shell_call":      "call_id:name action:object status:in_progress|completed|incomplete",
	"shell_call":            "call_id:name action:object status?:in_progress|completed|incomplete",
	"apply_patch_call":      "call_id:name operation:object status:in_progress|completed",
	"tool_search_call":      "call_id:name arguments status?:in_progress|completed|incomplete execution?",
	"web_search_call":       "action:object status:in_progress|searching|completed|failed",
	"mcp_list_tools":        "id:name server_label:name tools:list error?",
	"mcp_approval_request":  "id:name server_label:name name:text arguments:text",
	"mcp_approval_response": "approval_request_id:name approve:flag reason?",
	"mcp_call": "id:name server_label:name name:text arguments:text output?:text error? " +
		"approval_request_id? status?",
	"function_call_output":    "call_id:name output",
	"custom_tool_call_output": "call_id:name output",
	"shell_call_output":       "call_id:name output:list max_output_length?",
	"apply_patch_call_output": "call_id:name status:completed|failed output?:text",
	"tool_search_output":      "call_id:name tools:list status?:in_progress|completed|incomplete execution?",
}

func (v *responsesInput) item(k string, raw []byte) error {
	if k == "" {
		k = "message"
	}
	fields, known := responsesItems[k]
	if !known {
		return fmt.Errorf("type %q is not taken without storage", k)
	}
	item, err := only(raw, "type? "+fields)
	if err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	reasoned := v.reasoned
	v.reasoned = k == "reasoning"
	if reasoned && (strings.HasSuffix(k, "_output") || k == "mcp_approval_response" ||
		k == "message" && item.Text("role") != "assistant") {
		return errors.New("stands behind reasoning that led to something else")
	}
	if err := v.body(k, item); err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	return nil
}

func (v *responsesInput) body(k string, item Object) error {
	switch k {
	case "message":
		return responsesMessage(item)
	case "reasoning":
		if string(item["summary"]) == "[]" {
			return nil
		}
		return each("summary", item["summary"], func(_ string, e []byte) error {
			_, err := only(e, "type:summary_text text:text")
			return err
		})
	case "web_search_call":
		_, err := only(item["action"], "type:search|open_page|find_in_page query? queries? url? pattern? sources?")
		return err
	case "mcp_approval_request":
		v.requests[item.Text("id")] = true
	case "mcp_approval_response":
		if id := item.Text("approval_request_id"); !v.requests[id] {
			return fmt.Errorf("approval_request_id %q names no request before it", id)
		}
	case "compaction", "mcp_list_tools", "mcp_call":
	default:
		return v.callOrOutput(k, item)
	}
	return nil
}

func responsesMessage(item Object) error {
	types := []string{"input_text"}
	switch item.Text("role") {
	case "assistant":
		types = []string{"output_text", "refusal"}
	case "user":
		types = []string{"input_text", "input_image", "input_file"}
	}
	if item["phase"] != nil && item.Text("role") != "assistant" {
		return fmt.Errorf("phase %s of a message of role %s", item["phase"], item["role"])
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
	o, err := only(raw, map[string]string{
		"input_text": "type text:text", "output_text": "type text:text", "refusal": "type refusal:text",
		"input_image": "type image_url?:text file_id?:text detail:auto|low|high|original",
		"input_file":  "type file_id?:text file_url?:text filename?:text file_data?:text",
	}[k])
	switch {
	case err != nil:
		return err
	case k == "input_image":
		if url := o.Text("image_url"); isAddress(url) || url == "" && o.Text("file_id") != "" {
			return nil
		}
		return dataURL(o.Text("image_url"), "image/png", "image/jpeg", "image/gif", "image/webp")
	case k != "input_file", len(o) == 2 && (o.Text("file_id") != "" || isAddress(o.Text("file_url"))):
		return nil
	case o.Text("filename") == "" || len(o) != 3:
		return errors.New("must have a file_id, a file_url, or a filename and file_data")
	}
	return dataURL(o.Text("file_data"))
}

// callOrOutput checks a call, whose id must be its own, or the output of an open one.
func (v *responsesInput) callOrOutput(k string, item Object) error {
	id := item.Text("call_id")
	if !strings.HasSuffix(k, "_output") {
		if len(id) > 64 || v.calls[id] != "" {
			return fmt.Errorf("call_id %q must be of at most 64 letters, and no other call's", id)
		}
		v.calls[id], v.open[id] = k, true
		return nil
	}
	if !v.open[id] {
		return fmt.Errorf("call_id %q answers no open call", id)
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
	case "shell_call_output":
		return each("output", item["output"], func(_ string, c []byte) error {
			_, err := only(c, "stdout stderr outcome:object")
			return err
		})
	}
	return nil
}
