package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// ValidateReasoningChat reports what the many servers of this form would refuse whose models reason
// aloud: what OpenAI's own would, but that replies may hold their reasoning as it came.
func ValidateReasoningChat(raw []byte) error {
	var request map[string]jsontext.Value
	var messages []Object
	if err := json.Unmarshal(raw, &request); err != nil {
		return err
	}
	if err := json.Unmarshal(request["messages"], &messages); err != nil {
		return err
	}
	for i, m := range messages {
		if m.Text("role") != "assistant" {
			continue
		}
		if err := m.Need("reasoning_content?:text reasoning?:text reasoning_details?:list"); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		for _, field := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
			delete(m, field)
		}
	}
	request["messages"], _ = json.Marshal(messages)
	plain, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return ValidateOpenAIChat(plain)
}

// ValidateOpenAIChat reports what OpenAI's Chat Completions would refuse in {"messages": […]}.
// Rules: the API reference and OpenAPI description (fields, types, required ones, enums), and
// what the API answers with 400 beyond it: the alphabet and the length of names, the length of
// a call's id, results directly behind their calls, one for each. An empty content is refused, too,
// but for a result's: OpenAI takes it, stricter servers of the form do not.
func ValidateOpenAIChat(raw []byte) error {
	request, err := only(raw, "messages:list")
	if err != nil {
		return err
	}
	var open []string // calls that wait for their results
	err = each("messages", request["messages"], func(_ string, m []byte) error {
		var head struct{ Role string }
		if err := json.Unmarshal(m, &head); err != nil {
			return err
		}
		if head.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("calls %q have no result directly behind them", open)
		}
		var err error
		open, err = chatMessage(head.Role, m, open)
		return err
	})
	if err != nil {
		return err
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: calls %q have no result", open)
	}
	return nil
}

// chatMessage checks a message and returns the calls that wait for their results behind it.
func chatMessage(role string, raw []byte, open []string) ([]string, error) {
	fields, known := map[string]string{
		"system": "role content name?", "developer": "role content name?", "user": "role content name?",
		"tool":      "role content tool_call_id:text",
		"assistant": "role content? refusal?:text? name? tool_calls?:list",
	}[role]
	if !known {
		return nil, fmt.Errorf("role %q", role)
	}
	m, err := only(raw, fields)
	if err != nil {
		return nil, err
	}
	if name := m["name"]; name != nil && !participant.MatchString(m.Text("name")) {
		return nil, fmt.Errorf("name: %s", name)
	}
	if role != "tool" && string(m["content"]) == `""` {
		return nil, errors.New("the content must not be empty")
	}
	switch role {
	case "assistant":
		return chatAssistant(m)
	case "tool":
		at := slices.Index(open, m.Text("tool_call_id"))
		if at < 0 {
			return nil, fmt.Errorf("tool_call_id %s answers no open call of the reply before it (%q)", m["tool_call_id"], open)
		}
		return slices.Delete(slices.Clone(open), at, at+1), content(m["content"], "text")
	case "user":
		return nil, content(m["content"], "text", "image_url", "input_audio", "file")
	}
	return nil, content(m["content"], "text")
}

// participant is the name of who speaks.
var participant = regexp.MustCompile(`^[^<|\\/>\s\v]{1,64}$`)

func chatAssistant(m Object) (calls []string, err error) {
	if m["tool_calls"] != nil {
		if calls, err = toolCalls(m["tool_calls"]); err != nil {
			return nil, err
		}
	}
	c := m["content"]
	if c == nil || string(c) == "null" {
		if len(calls) == 0 {
			return nil, errors.New("content is required without tool_calls")
		}
		return calls, nil
	}
	if err := content(c, "text", "refusal"); err != nil {
		return nil, err
	}
	if parts, err := array(c); err == nil && len(parts) > 1 && slices.ContainsFunc(parts, func(p jsontext.Value) bool {
		return kind(p) == "refusal"
	}) {
		return nil, errors.New("content: a refusal stands alone")
	}
	return calls, nil
}

func toolCalls(raw []byte) (ids []string, err error) {
	err = each("tool_calls", raw, func(k string, c []byte) error {
		body := map[string]string{"function": "arguments", "custom": "input"}[k]
		if body == "" {
			return errors.New("the type is not known")
		}
		call, err := only(c, "id:name type "+k+":object")
		if err != nil {
			return err
		}
		id := call.Text("id")
		if len(id) > 40 || slices.Contains(ids, id) {
			return fmt.Errorf("id %q must be of at most 40 letters, and no other call's", id)
		}
		ids = append(ids, id)
		_, err = only(call[k], "name:word64 "+body+":text")
		return err
	})
	return ids, err
}

// content checks a string, or a non-empty array of elements of the given types.
func content(raw []byte, types ...string) error {
	if raw[0] == '"' {
		return nil
	}
	return each("content", raw, func(k string, e []byte) error {
		if !slices.Contains(types, k) {
			return fmt.Errorf("the type is not among %q", types)
		}
		if k == "text" || k == "refusal" {
			_, err := only(e, "type "+k+":text")
			return err
		}
		o, err := only(e, "type "+k+":object")
		if err != nil {
			return err
		}
		return medium(k, o[k])
	})
}

func medium(k string, raw []byte) error {
	fields := map[string]string{
		"image_url": "url:text detail?:auto|low|high", "input_audio": "data:data format:wav|mp3",
		"file": "file_id?:text filename?:text file_data?:text",
	}
	o, err := only(raw, fields[k])
	switch {
	case err != nil, k == "input_audio", k == "file" && len(o) == 1 && o.Text("file_id") != "":
		return err
	case k == "image_url":
		if isAddress(o.Text("url")) {
			return nil
		}
		return dataURL(o.Text("url"), "image/png", "image/jpeg", "image/gif", "image/webp")
	case o.Text("filename") == "":
		return errors.New("file_data needs a filename")
	}
	return dataURL(o.Text("file_data"))
}
