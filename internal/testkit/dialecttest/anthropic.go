package dialecttest

import (
	"bytes"
	"encoding/base64"
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
// one role in a row are refused, too: the API joins them, but Send must not rely on
// that.
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
	return each("content", content, func(k string, e []byte) error {
		switch {
		case failed && k != "text":
			return errors.New("all content must be type 'text' if 'is_error' is true")
		case slices.Contains([]string{"text", "image", "document", "search_result"}, k):
			return c.given(k, e)
		case k == "tool_reference":
			return c.strings(e, "tool_name")
		}
		return errors.New("not accepted in a result")
	})
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
	if string(raw) == "[]" {
		return nil
	}
	return each("content", raw, func(k string, h []byte) error {
		o, err := object(h, "type", "url", "title", "encrypted_content", "page_age")
		if err == nil && (k != "web_search_result" || o["title"] == nil) {
			err = fmt.Errorf("%.80s", h)
		}
		return errors.Join(err, nonEmpty(o["url"]), nonEmpty(o["encrypted_content"]))
	})
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

// given checks a block that is given to the model.
func (c *anthropicCheck) given(k string, raw []byte) error {
	switch k {
	case "text":
		return c.text(raw)
	case "image":
		b, err := c.block(raw, "source", "cache_control?")
		if err != nil {
			return err
		}
		return anthropicSource(b["source"], "base64", "url", "file")
	case "search_result":
		b, err := c.block(raw, "source", "title", "content", "citations?", "cache_control?")
		if err != nil {
			return err
		}
		return errors.Join(nonEmpty(b["source"]), nonEmpty(b["title"]), c.texts(b["content"]), citationsConfig(b["citations"]))
	case "container_upload":
		return c.strings(raw, "file_id")
	}
	b, err := c.block(raw, "source", "title?", "context?", "citations?", "cache_control?")
	if err != nil {
		return err
	}
	for _, f := range []string{"title", "context"} {
		if b[f] != nil && string(b[f]) != "null" {
			if err := nonEmpty(b[f]); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
		}
	}
	if kind(b["source"]) == "content" {
		s, err := object(b["source"], "type", "content")
		if err != nil {
			return err
		}
		return errors.Join(c.texts(s["content"]), citationsConfig(b["citations"]))
	}
	return errors.Join(anthropicSource(b["source"], "base64", "text", "url", "file"), citationsConfig(b["citations"]))
}

func (c *anthropicCheck) text(raw []byte) error {
	b, err := c.block(raw, "text", "citations?", "cache_control?")
	if err != nil {
		return err
	}
	var text string
	if err := json.Unmarshal(b["text"], &text); err != nil || strings.TrimSpace(text) == "" {
		return fmt.Errorf("text must hold something: %s", b["text"])
	}
	if cited := string(b["citations"]); cited == "" || cited == "null" || cited == "[]" {
		return nil
	}
	return each("citations", b["citations"], citation)
}

func citation(k string, raw []byte) error {
	fields, known := map[string][]string{
		"char_location":              {"document_index", "document_title", "start_char_index", "end_char_index"},
		"page_location":              {"document_index", "document_title", "start_page_number", "end_page_number"},
		"content_block_location":     {"document_index", "document_title", "start_block_index", "end_block_index"},
		"web_search_result_location": {"encrypted_index", "title", "url"},
		"search_result_location":     {"search_result_index", "source", "title", "start_block_index", "end_block_index"},
	}[k]
	if !known {
		return errors.New("the type is not known")
	}
	o, err := object(raw, append(fields, "type", "cited_text")...)
	if err != nil {
		return err
	}
	for _, f := range append(fields, "cited_text") {
		if o[f] == nil {
			return fmt.Errorf("%s is missing", f)
		}
	}
	return nil
}

// texts checks a string with something in it, or text blocks.
func (c *anthropicCheck) texts(raw []byte) error {
	blocks, err := c.contentBlocks(raw)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if kind(b) != "text" {
			return fmt.Errorf("type %q where only text is taken", kind(b))
		}
		if err := c.text(b); err != nil {
			return err
		}
	}
	return nil
}

// block decodes a block that has the given fields and a type; a name that ends in ? is
// optional. It counts cache marks.
func (c *anthropicCheck) block(raw []byte, fields ...string) (map[string]json.RawMessage, error) {
	names := []string{"type"}
	for _, f := range fields {
		names = append(names, strings.TrimSuffix(f, "?"))
	}
	b, err := object(raw, names...)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if !strings.HasSuffix(f, "?") && len(b[f]) == 0 {
			return nil, fmt.Errorf("%s is missing", f)
		}
	}
	if mark := b["cache_control"]; mark != nil {
		c.marks++
		if m, err := strs(mark, "type", "ttl"); err != nil || m["type"] != "ephemeral" {
			return nil, fmt.Errorf("cache_control: %s", mark)
		}
	}
	return b, nil
}

// strings checks a block whose fields are strings with something in them.
func (c *anthropicCheck) strings(raw []byte, fields ...string) error {
	b, err := c.block(raw, append(fields, "cache_control?")...)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := nonEmpty(b[f]); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

func anthropicInput(raw []byte) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return fmt.Errorf("input must be an object: %.80s", raw)
	}
	return nil
}

func anthropicSource(raw []byte, types ...string) error {
	k := kind(raw)
	if !slices.Contains(types, k) {
		return fmt.Errorf("source of type %q is not among %q", k, types)
	}
	fields := map[string][]string{"base64": {"media_type", "data"}, "text": {"media_type", "data"}, "url": {"url"}, "file": {"file_id"}}[k]
	s, err := strs(raw, append(fields, "type")...)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	for _, f := range fields {
		if s[f] == "" {
			return fmt.Errorf("source: %s is missing", f)
		}
	}
	isImage := !slices.Contains(types, "text")
	switch {
	case k == "url" && !strings.HasPrefix(s["url"], "https://"):
		return fmt.Errorf("source: only https is taken: %.80q", s["url"])
	case k == "text" && s["media_type"] != "text/plain", k == "base64" && !isImage && s["media_type"] != "application/pdf":
		return fmt.Errorf("source: media_type %q", s["media_type"])
	case k != "base64":
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(s["data"])
	if err != nil {
		return fmt.Errorf("source: data is no base64: %w", err)
	}
	if !isImage {
		return nil
	}
	signatures := map[string]string{"image/png": "\x89PNG", "image/jpeg": "\xff\xd8\xff", "image/gif": "GIF8", "image/webp": "RIFF"}
	if _, known := signatures[s["media_type"]]; !known {
		return fmt.Errorf("source: media_type %q", s["media_type"])
	}
	for mediaType, begins := range signatures {
		if strings.HasPrefix(string(data), begins) && mediaType != s["media_type"] {
			return fmt.Errorf("source: bytes of %s under the name of %s", mediaType, s["media_type"])
		}
	}
	return nil
}

func citationsConfig(raw []byte) error {
	if raw == nil {
		return nil
	}
	var on bool
	o, err := object(raw, "enabled")
	if err == nil {
		err = json.Unmarshal(o["enabled"], &on)
	}
	if err != nil {
		return fmt.Errorf("citations: %w", err)
	}
	return nil
}

// nonEmpty checks a string with something in it.
func nonEmpty(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || s == "" {
		return fmt.Errorf("must be a string with something in it: %.80s", raw)
	}
	return nil
}
