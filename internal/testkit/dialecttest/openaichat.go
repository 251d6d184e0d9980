package dialecttest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ValidateOpenAIChat tells what OpenAI's Chat Completions would refuse in {"messages": […]}.
// Rules: the API reference and OpenAPI description (fields, types, required ones, enums), and
// what the API answers with 400 beyond it: the alphabet and the length of names, the length of
// a call's id, results directly behind their calls, one for each.
func ValidateOpenAIChat(raw []byte) error {
	request, err := object(raw, "messages")
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

func chatMessage(role string, raw []byte, open []string) ([]string, error) {
	switch role {
	case "system", "developer":
		m, err := object(raw, "role", "content", "name")
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(participant(m["name"]), content(m["content"], "text"))
	case "user":
		m, err := object(raw, "role", "content", "name")
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(participant(m["name"]), content(m["content"], "text", "image_url", "input_audio", "file"))
	case "assistant":
		return chatAssistant(raw)
	case "tool":
		m, err := object(raw, "role", "content", "tool_call_id")
		if err != nil {
			return nil, err
		}
		var id string
		if err := json.Unmarshal(m["tool_call_id"], &id); err != nil {
			return nil, fmt.Errorf("tool_call_id: %w", err)
		}
		at := slices.Index(open, id)
		if at < 0 {
			return nil, fmt.Errorf("tool_call_id %q answers no open call of the reply before it (%q)", id, open)
		}
		return slices.Delete(slices.Clone(open), at, at+1), content(m["content"], "text")
	}
	return nil, fmt.Errorf("role %q", role)
}

func chatAssistant(raw []byte) ([]string, error) {
	m, err := object(raw, "role", "content", "refusal", "name", "tool_calls")
	if err != nil {
		return nil, err
	}
	if err := participant(m["name"]); err != nil {
		return nil, err
	}
	if r := m["refusal"]; r != nil && string(r) != "null" && r[0] != '"' {
		return nil, fmt.Errorf("refusal must be a string or null: %s", r)
	}
	var calls []string
	if m["tool_calls"] != nil {
		if calls, err = toolCalls(m["tool_calls"]); err != nil {
			return nil, fmt.Errorf("tool_calls: %w", err)
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
	if parts, err := array(c); err == nil && len(parts) > 1 && slices.ContainsFunc(parts, func(p json.RawMessage) bool { return kind(p) == "refusal" }) {
		return nil, errors.New("content: a refusal stands alone")
	}
	return calls, nil
}

func toolCalls(raw []byte) ([]string, error) {
	var ids []string
	err := each("", raw, func(k string, c []byte) error {
		body, text := map[string]string{"function": "arguments", "custom": "input"}[k], ""
		if body == "" {
			return errors.New("the type is not known")
		}
		call, err := object(c, "id", "type", k)
		if err != nil {
			return err
		}
		var id, name string
		if err := json.Unmarshal(call["id"], &id); err != nil || id == "" || len(id) > 40 || slices.Contains(ids, id) {
			return fmt.Errorf("id %s must be a string of 1 to 40 that no other call has", call["id"])
		}
		f, err := object(call[k], "name", body)
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		if err := json.Unmarshal(f["name"], &name); err != nil || !toolName(name) {
			return fmt.Errorf("%s.name: %s", k, f["name"])
		}
		if err := json.Unmarshal(f[body], &text); err != nil || f[body][0] != '"' {
			return fmt.Errorf("%s.%s must be a string: %s", k, body, f[body])
		}
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

// content checks a string, or a non-empty array of elements of the given types.
func content(raw []byte, types ...string) error {
	if len(raw) == 0 {
		return errors.New("content is missing")
	}
	if raw[0] == '"' {
		return nil
	}
	return each("content", raw, func(k string, e []byte) error {
		if !slices.Contains(types, k) {
			return fmt.Errorf("the type is not among %q", types)
		}
		o, err := object(e, "type", k)
		if err != nil {
			return err
		}
		return element(k, o[k])
	})
}

func element(k string, raw []byte) error {
	var text string
	switch k {
	case "text", "refusal":
		if err := json.Unmarshal(raw, &text); err != nil || raw[0] != '"' {
			return fmt.Errorf("%s must be a string: %s", k, raw)
		}
		return nil
	case "image_url":
		o, err := strs(raw, "url", "detail")
		if err != nil {
			return err
		}
		if d, given := o["detail"]; given && !slices.Contains([]string{"auto", "low", "high"}, d) {
			return fmt.Errorf("detail %q", d)
		}
		if strings.HasPrefix(o["url"], "https://") || strings.HasPrefix(o["url"], "http://") {
			return nil
		}
		return dataURL(o["url"], "image/png", "image/jpeg", "image/gif", "image/webp")
	case "input_audio":
		o, err := strs(raw, "data", "format")
		if err != nil {
			return err
		}
		if _, err := base64.StdEncoding.DecodeString(o["data"]); err != nil || o["data"] == "" {
			return fmt.Errorf("data is no base64: %w", err)
		}
		if o["format"] != "wav" && o["format"] != "mp3" {
			return fmt.Errorf("format %q", o["format"])
		}
		return nil
	}
	o, err := strs(raw, "file_id", "filename", "file_data")
	if err != nil {
		return err
	}
	if o["file_id"] != "" && len(o) == 1 {
		return nil
	}
	if o["filename"] == "" {
		return errors.New("file_data needs a filename")
	}
	return dataURL(o["file_data"])
}

// dataURL checks a data: URL in base64, of one of the media types if any are named.
func dataURL(url string, mediaTypes ...string) error {
	head, data, _ := strings.Cut(url, ",")
	rest, isData := strings.CutPrefix(head, "data:")
	mediaType, isBase64 := strings.CutSuffix(rest, ";base64")
	if !isData || !isBase64 || len(mediaTypes) > 0 && !slices.Contains(mediaTypes, mediaType) || !strings.Contains(mediaType, "/") {
		return fmt.Errorf("url begins with %.60q", head)
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		return fmt.Errorf("url holds no base64: %w", err)
	}
	return nil
}

// toolName checks ^[a-zA-Z0-9_-]{1,64}$.
func toolName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters) == ""
}

// participant checks the optional name of who speaks.
func participant(raw []byte) error {
	if raw == nil {
		return nil
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil || name == "" || utf8.RuneCountInString(name) > 64 || strings.ContainsAny(name, "<|\\/> \t\n\v\f\r") {
		return fmt.Errorf("name: %s", raw)
	}
	return nil
}

func kind(raw []byte) string {
	var o struct{ Type string }
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Type
}

// object decodes an object that has no fields but the given ones, in exactly these letters.
func object(raw []byte, fields ...string) (map[string]json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("null where an object must be")
	}
	for f := range o {
		if !slices.Contains(fields, f) {
			return nil, fmt.Errorf("field %q is not accepted here", f)
		}
	}
	return o, nil
}

// strs decodes an object whose fields are all strings.
func strs(raw []byte, fields ...string) (map[string]string, error) {
	if _, err := object(raw, fields...); err != nil {
		return nil, err
	}
	var o map[string]string
	return o, json.Unmarshal(raw, &o)
}

// array decodes an array that must not be empty.
func array(raw []byte) ([]json.RawMessage, error) {
	var a []json.RawMessage
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if len(a) == 0 {
		return nil, errors.New("must be a non-empty array")
	}
	return a, nil
}

// each checks the elements of an array, which must not be empty, and says which one is wrong.
func each(field string, raw []byte, check func(k string, e []byte) error) error {
	elements, err := array(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	for i, e := range elements {
		if err := check(kind(e), e); err != nil {
			return fmt.Errorf("%s[%d] (%s): %w", field, i, kind(e), err)
		}
	}
	return nil
}
