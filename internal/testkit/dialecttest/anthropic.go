package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ValidateAnthropic tells what Anthropic's Messages API would refuse in {"system", "messages"}.
// Rules: the API reference and the types of its SDKs (fields, required ones, enums), the guides
// to tool use, thinking, citations and files, and what the API answers with 400 beyond them:
// empty texts, results that are not first, thinking at an end, ids that stand twice. Entries of
// one role in a row are refused, too: the API joins them, but whoever sends should know what it
// sends.
func ValidateAnthropic(raw []byte) error {
	if bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) && !bytes.Equal(markHalves(raw), raw) {
		return errors.New("half a surrogate pair: the API takes it for no JSON")
	}
	request, err := object(raw, "system", "messages")
	if err != nil {
		return err
	}
	c := anthropicCheck{ids: map[string]bool{}, server: map[string]bool{}}
	if system := request["system"]; system != nil {
		if err := c.texts(system); err != nil {
			return fmt.Errorf("system: %w", err)
		}
	}
	messages, err := array(request["messages"])
	if err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	for i, m := range messages {
		if err := c.entry(m, i, len(messages)); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	switch {
	case len(c.open) > 0:
		return fmt.Errorf("calls %q have no result", c.open)
	case c.marks > 4:
		return fmt.Errorf("%d cache marks, at most 4 are taken", c.marks)
	}
	return nil
}

// anthropicCheck is what one entry says about the next.
type anthropicCheck struct {
	role     string          // of the entry before
	open     []string        // calls of the entry before that wait for results
	ids      map[string]bool // of all calls
	server   map[string]bool // calls of the provider's own tools, true: answered
	programs []string        // server calls whose program called a tool in the entry before
	marks    int
}

func (c *anthropicCheck) entry(raw []byte, i, n int) error {
	m, err := object(raw, "role", "content")
	if err != nil {
		return err
	}
	var role string
	if err := json.Unmarshal(m["role"], &role); err != nil || role != "user" && role != "assistant" {
		return fmt.Errorf("role %s", m["role"])
	}
	switch {
	case i == 0 && role != "user":
		return errors.New("the first entry must be a user's")
	case role == c.role:
		return fmt.Errorf("two entries of role %s in a row", role)
	}
	c.role = role
	blocks, err := c.contentBlocks(m["content"])
	if err != nil {
		return err
	}
	if role == "assistant" {
		return c.assistant(blocks, i == n-1)
	}
	return c.user(blocks)
}

// contentBlocks returns the blocks of a content; a string is one of text.
func (c *anthropicCheck) contentBlocks(raw []byte) ([]json.RawMessage, error) {
	if len(raw) > 0 && raw[0] == '"' {
		return []json.RawMessage{[]byte(`{"type":"text","text":` + string(raw) + `}`)}, nil
	}
	blocks, err := array(raw)
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return blocks, nil
}

func (c *anthropicCheck) user(blocks []json.RawMessage) error {
	leading := true
	for i, b := range blocks {
		k := kind(b)
		var err error
		switch k {
		case "tool_result":
			if !leading {
				return fmt.Errorf("content[%d]: a tool_result behind something else", i)
			}
			err = c.toolResult(b)
		case "text", "image", "document", "search_result", "container_upload":
			leading = false
			err = c.given(k, b)
		default:
			err = errors.New("not accepted in a user's entry")
		}
		if err != nil {
			return fmt.Errorf("content[%d] (%s): %w", i, k, err)
		}
	}
	if len(c.open) > 0 {
		return fmt.Errorf("calls %q have no result directly behind them", c.open)
	}
	return nil
}

func (c *anthropicCheck) toolResult(raw []byte) error {
	b, err := c.block(raw, "tool_use_id", "content?", "is_error?", "cache_control?")
	if err != nil {
		return err
	}
	var id string
	if err := json.Unmarshal(b["tool_use_id"], &id); err != nil {
		return fmt.Errorf("tool_use_id: %w", err)
	}
	at := slices.Index(c.open, id)
	if at < 0 {
		return fmt.Errorf("tool_use_id %q answers no open call of the entry before (%q)", id, c.open)
	}
	c.open = slices.Delete(c.open, at, at+1)
	failed := false
	if b["is_error"] != nil {
		if string(b["is_error"]) == "null" || json.Unmarshal(b["is_error"], &failed) != nil {
			return fmt.Errorf("is_error: %s", b["is_error"])
		}
	}
	content := b["content"]
	if len(content) == 0 || string(content) == `""` {
		if failed {
			return errors.New("content cannot be empty if is_error is true")
		}
		return nil
	}
	if content[0] == '"' {
		return nil
	}
	blocks, err := array(content)
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	for i, e := range blocks {
		k := kind(e)
		switch k {
		case "text", "image", "document", "search_result":
			err = c.given(k, e)
		case "tool_reference":
			err = c.strings(e, "tool_name")
		default:
			err = errors.New("not accepted in a result")
		}
		if err != nil {
			return fmt.Errorf("content[%d] (%s): %w", i, k, err)
		}
	}
	return nil
}

func (c *anthropicCheck) assistant(blocks []json.RawMessage, last bool) error {
	c.programs = nil
	for i, b := range blocks {
		k := kind(b)
		var err error
		switch k {
		case "text":
			err = c.text(b)
		case "thinking":
			err = c.thinking(b)
		case "redacted_thinking":
			err = c.strings(b, "data")
		case "tool_use":
			err = c.toolUse(b)
		case "server_tool_use", "mcp_tool_use":
			err = c.serverUse(k, b)
		default:
			err = c.serverResult(k, b)
		}
		if err != nil {
			return fmt.Errorf("content[%d] (%s): %w", i, k, err)
		}
	}
	for id, answered := range c.server {
		if !answered && !last && !slices.Contains(c.programs, id) {
			return fmt.Errorf("server call %q has no result", id)
		}
	}
	end := blocks[len(blocks)-1]
	switch kind(end) {
	case "thinking", "redacted_thinking":
		return errors.New("the final block of an assistant's entry cannot be thinking")
	case "text":
		var t struct{ Text string }
		if json.Unmarshal(end, &t) == nil && last && strings.TrimRightFunc(t.Text, unicode.IsSpace) != t.Text {
			return errors.New("the final assistant content cannot end with white space")
		}
	}
	return nil
}

func (c *anthropicCheck) thinking(raw []byte) error {
	b, err := c.block(raw, "thinking", "signature")
	if err != nil {
		return err
	}
	var text string
	if err := json.Unmarshal(b["thinking"], &text); err != nil || b["thinking"][0] != '"' {
		return fmt.Errorf("thinking: %s", b["thinking"])
	}
	return nonEmpty(b["signature"])
}

func (c *anthropicCheck) toolUse(raw []byte) error {
	b, err := c.block(raw, "id", "name", "input", "caller?", "cache_control?")
	if err != nil {
		return err
	}
	id, err := c.newID(b["id"], "")
	if err != nil {
		return err
	}
	var name string
	if err := json.Unmarshal(b["name"], &name); err != nil || !anthropicName(name) || len(name) > 128 {
		return fmt.Errorf("name: %s", b["name"])
	}
	if _, err := c.caller(b["caller"], true); err != nil {
		return err
	}
	c.open = append(c.open, id)
	return anthropicInput(b["input"])
}

func (c *anthropicCheck) serverUse(k string, raw []byte) error {
	fields, prefix := []string{"id", "name", "input", "caller?", "cache_control?"}, "srvtoolu_"
	if k == "mcp_tool_use" {
		fields, prefix = []string{"id", "name", "input", "server_name", "cache_control?"}, ""
	}
	b, err := c.block(raw, fields...)
	if err != nil {
		return err
	}
	id, err := c.newID(b["id"], prefix)
	if err != nil {
		return err
	}
	c.server[id] = false
	if k == "mcp_tool_use" {
		err = nonEmpty(b["server_name"])
	}
	_, wrong := c.caller(b["caller"], false)
	return errors.Join(err, wrong, nonEmpty(b["name"]), anthropicInput(b["input"]))
}

// serverResult checks the result of a tool that the provider ran.
func (c *anthropicCheck) serverResult(k string, raw []byte) error {
	types := map[string][]string{
		"web_search_tool_result":                 {"web_search_tool_result_error"},
		"web_fetch_tool_result":                  {"web_fetch_result", "web_fetch_tool_result_error"},
		"code_execution_tool_result":             {"code_execution_result", "encrypted_code_execution_result", "code_execution_tool_result_error"},
		"bash_code_execution_tool_result":        {"bash_code_execution_result", "bash_code_execution_tool_result_error"},
		"text_editor_code_execution_tool_result": {"text_editor_code_execution_view_result", "text_editor_code_execution_create_result", "text_editor_code_execution_str_replace_result", "text_editor_code_execution_tool_result_error"},
		"tool_search_tool_result":                {"tool_search_tool_search_result", "tool_search_tool_result_error"},
		"advisor_tool_result":                    {"advisor_result", "advisor_redacted_result", "advisor_tool_result_error"},
		"mcp_tool_result":                        {},
	}
	allowed, known := types[k]
	if !known {
		return errors.New("not accepted in an assistant's entry")
	}
	fields := []string{"tool_use_id", "content", "cache_control?"}
	switch k {
	case "mcp_tool_result":
		fields = []string{"tool_use_id", "content?", "is_error?", "cache_control?"}
	case "web_search_tool_result", "web_fetch_tool_result":
		fields = append(fields, "caller?")
	}
	b, err := c.block(raw, fields...)
	if err != nil {
		return err
	}
	var id string
	answered, called := false, false
	if json.Unmarshal(b["tool_use_id"], &id) == nil {
		answered, called = c.server[id]
	}
	if !called || answered {
		return fmt.Errorf("tool_use_id %s answers no call before it", b["tool_use_id"])
	}
	c.server[id] = true
	content := b["content"]
	switch {
	case k == "mcp_tool_result":
		if len(content) == 0 || content[0] == '"' || string(content) == "[]" {
			return nil
		}
		return c.texts(content)
	case k == "web_search_tool_result" && content[0] == '[':
		return c.searchHits(content)
	case slices.Contains(allowed, kind(content)):
		return nil
	}
	return fmt.Errorf("content: %.80s", content)
}

func (c *anthropicCheck) searchHits(raw []byte) error {
	var hits []json.RawMessage
	if err := json.Unmarshal(raw, &hits); err != nil {
		return err
	}
	for i, h := range hits {
		o, err := object(h, "type", "url", "title", "encrypted_content", "page_age")
		if err != nil || kind(h) != "web_search_result" {
			return fmt.Errorf("content[%d]: %.80s: %w", i, h, err)
		}
		if err := errors.Join(nonEmpty(o["url"]), nonEmpty(o["encrypted_content"])); err != nil || o["title"] == nil {
			return fmt.Errorf("content[%d]: %.80s", i, h)
		}
	}
	return nil
}

// caller checks who called a tool: the model, or a program of its own that runs on the server.
func (c *anthropicCheck) caller(raw []byte, waits bool) (string, error) {
	if raw == nil || kind(raw) == "direct" {
		return "", nil
	}
	o, err := strs(raw, "type", "tool_id")
	if err != nil {
		return "", fmt.Errorf("caller: %w", err)
	}
	if _, called := c.server[o["tool_id"]]; !called || !strings.HasPrefix(o["type"], "code_execution_") {
		return "", fmt.Errorf("caller: %s is no call before this one", raw)
	}
	if waits {
		c.programs = append(c.programs, o["tool_id"])
	}
	return o["tool_id"], nil
}

// newID checks the id of a call: ^[a-zA-Z0-9_-]+$, and ^srvtoolu_[a-zA-Z0-9_]+$ for a tool that
// the provider runs. It must be the only one.
func (c *anthropicCheck) newID(raw []byte, prefix string) (string, error) {
	var id string
	if err := json.Unmarshal(raw, &id); err != nil || !anthropicName(id) {
		return "", fmt.Errorf("id: %.80s", raw)
	}
	if rest, found := strings.CutPrefix(id, prefix); !found || prefix != "" && (rest == "" || strings.Contains(rest, "-")) {
		return "", fmt.Errorf("id: %q does not begin with %s", id, prefix)
	}
	if c.ids[id] {
		return "", fmt.Errorf("id %q stands twice", id)
	}
	c.ids[id] = true
	return id, nil
}

// anthropicName checks ^[a-zA-Z0-9_-]+$.
func anthropicName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return name != "" && strings.Trim(name, letters) == ""
}
