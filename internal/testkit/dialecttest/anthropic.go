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

	"github.com/go-json-experiment/json/jsontext"
)

// ValidateAnthropic reports what Anthropic's Messages API would refuse in {"system", "messages"}.
// Rules: the API reference and the types of its SDKs (fields, required ones, enums), the guides
// to tool use, thinking, citations and files, and what the API answers with 400 beyond them:
// empty texts, results that are not first, thinking at an end, ids that stand twice. Entries of
// one role in a row are refused, too: the API joins them, but Send must not rely on
// that.
func ValidateAnthropic(raw []byte) error { return validateAnthropic(raw, false) }

// ValidateAnthropicSystem is ValidateAnthropic for models that take a system message in the middle:
// behind a user's entry, and in front of a reply or at the end. Source: Anthropic's guide to
// mid-conversation system messages.
func ValidateAnthropicSystem(raw []byte) error { return validateAnthropic(raw, true) }

func validateAnthropic(raw []byte, system bool) error {
	if bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) && !bytes.Equal(markHalves(raw), raw) {
		return errors.New("half a surrogate pair: the API takes it for no JSON")
	}
	request, err := only(raw, "system? messages:list")
	if err != nil {
		return err
	}
	c := anthropicCheck{ids: map[string]bool{}, server: map[string]bool{}, takesSystem: system}
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
	case c.images > 100:
		return fmt.Errorf("%d images, at most 100 are taken by each model", c.images)
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
	images   int

	takesSystem bool
	afterSystem bool // the entry before is a system message
}

func (c *anthropicCheck) entry(raw []byte, i, n int) error {
	m, err := only(raw, "role:user|assistant|system content")
	if err != nil {
		return err
	}
	role := m.Text("role")
	afterSystem := c.afterSystem
	c.afterSystem = role == "system"
	switch {
	case role == "system" && !c.takesSystem:
		return errors.New("role 'system' is not supported on this model")
	case role == "system" && (c.role != "user" || afterSystem || len(c.open) > 0):
		return errors.New("a system message must follow a user's entry")
	case role == "system":
		return c.texts(m["content"])
	case afterSystem && role != "assistant":
		return errors.New("a system message must be the last entry or stand before a reply")
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
func (c *anthropicCheck) contentBlocks(raw []byte) ([]jsontext.Value, error) {
	if len(raw) > 0 && raw[0] == '"' {
		return []jsontext.Value{[]byte(`{"type":"text","text":` + string(raw) + `}`)}, nil
	}
	blocks, err := array(raw)
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return blocks, nil
}

func (c *anthropicCheck) user(blocks []jsontext.Value) error {
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
	b, err := c.block(raw, "tool_use_id:text content? is_error?:flag cache_control?")
	if err != nil {
		return err
	}
	at := slices.Index(c.open, b.Text("tool_use_id"))
	if at < 0 {
		return fmt.Errorf("tool_use_id %s answers no open call of the entry before (%q)", b["tool_use_id"], c.open)
	}
	c.open = slices.Delete(c.open, at, at+1)
	failed, content := string(b["is_error"]) == "true", b["content"]
	switch {
	case len(content) == 0 || string(content) == `""`:
		if failed {
			return errors.New("content cannot be empty if is_error is true")
		}
		return nil
	case content[0] == '"':
		return nil
	}
	return each("content", content, func(k string, e []byte) error {
		switch {
		case failed && k != "text":
			return errors.New("all content must be type 'text' if 'is_error' is true")
		case slices.Contains([]string{"text", "image", "document", "search_result"}, k):
			return c.given(k, e)
		case k == "tool_reference":
			_, err := c.block(e, "tool_name:name cache_control?")
			return err
		}
		return errors.New("not accepted in a result")
	})
}

func (c *anthropicCheck) assistant(blocks []jsontext.Value, last bool) error {
	c.programs = nil
	for i, b := range blocks {
		k := kind(b)
		var err error
		switch k {
		case "text":
			err = c.text(b)
		case "compaction":
			_, err = c.block(b, "content:text? encrypted_content?:text? cache_control?")
		case "thinking":
			_, err = c.block(b, "thinking:text signature:name")
		case "redacted_thinking":
			_, err = c.block(b, "data:name cache_control?")
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

func (c *anthropicCheck) toolUse(raw []byte) error {
	b, err := c.block(raw, "id:word name:word64 input:object caller? cache_control?")
	if err != nil {
		return err
	}
	c.open = append(c.open, b.Text("id"))
	return errors.Join(c.newID(b.Text("id")), c.caller(b["caller"], true))
}

func (c *anthropicCheck) serverUse(k string, raw []byte) error {
	fields := "id:word name:name input:object caller? cache_control?"
	if k == "mcp_tool_use" {
		fields = "id:word name:name input:object server_name:name cache_control?"
	}
	b, err := c.block(raw, fields)
	if err != nil {
		return err
	}
	id := b.Text("id")
	if rest, found := strings.CutPrefix(id, "srvtoolu_"); k == "server_tool_use" &&
		(!found || rest == "" || strings.Contains(rest, "-")) {
		return fmt.Errorf("id %q does not begin with srvtoolu_", id)
	}
	c.server[id] = false
	return errors.Join(c.newID(id), c.caller(b["caller"], false))
}

// serverResult checks the result of a tool that the provider ran.
func (c *anthropicCheck) serverResult(k string, raw []byte) error {
	types := map[string][]string{
		"web_search_tool_result": {"web_search_tool_result_error"},
		"web_fetch_tool_result":  {"web_fetch_result", "web_fetch_tool_result_error"},
		"code_execution_tool_result": {
			"code_execution_result", "encrypted_code_execution_result",
			"code_execution_tool_result_error",
		},
		"bash_code_execution_tool_result": {"bash_code_execution_result", "bash_code_execution_tool_result_error"},
		"text_editor_code_execution_tool_result": {
			"text_editor_code_execution_view_result",
			"text_editor_code_execution_create_result", "text_editor_code_execution_str_replace_result",
			"text_editor_code_execution_tool_result_error",
		},
		"tool_search_tool_result": {"tool_search_tool_search_result", "tool_search_tool_result_error"},
		"advisor_tool_result":     {"advisor_result", "advisor_redacted_result", "advisor_tool_result_error"},
		"mcp_tool_result":         {},
	}
	allowed, known := types[k]
	if !known {
		return errors.New("not accepted in an assistant's entry")
	}
	fields := "tool_use_id:text content cache_control?"
	switch k {
	case "mcp_tool_result":
		fields = "tool_use_id:text content? is_error? cache_control?"
	case "web_search_tool_result", "web_fetch_tool_result":
		fields += " caller?"
	}
	b, err := c.block(raw, fields)
	if err != nil {
		return err
	}
	id := b.Text("tool_use_id")
	if answered, called := c.server[id]; !called || answered {
		return fmt.Errorf("tool_use_id %q answers no call before it", id)
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
	return each("content", raw, func(_ string, h []byte) error {
		_, err := only(h, "type:web_search_result url:name title encrypted_content:name page_age?")
		return err
	})
}

// caller checks who called a tool: the model, or a program of its own that runs on the server.
func (c *anthropicCheck) caller(raw []byte, waits bool) error {
	if raw == nil || kind(raw) == "direct" {
		return nil
	}
	o, err := only(raw, "type:name tool_id:name")
	if err != nil {
		return fmt.Errorf("caller: %w", err)
	}
	if _, called := c.server[o.Text("tool_id")]; !called || !strings.HasPrefix(o.Text("type"), "code_execution_") {
		return fmt.Errorf("caller: %s is no call before this one", raw)
	}
	if waits {
		c.programs = append(c.programs, o.Text("tool_id"))
	}
	return nil
}

// newID checks that the id of a call is the only one.
func (c *anthropicCheck) newID(id string) error {
	if c.ids[id] {
		return fmt.Errorf("id %q stands twice", id)
	}
	c.ids[id] = true
	return nil
}

// given checks a block that is given to the model.
func (c *anthropicCheck) given(k string, raw []byte) error {
	if k == "text" {
		return c.text(raw)
	}
	b, err := c.block(raw, map[string]string{
		"image": "source:object cache_control?", "container_upload": "file_id:name cache_control?",
		"search_result": "source:name title:name content citations? cache_control?",
		"document":      "source:object title?:name? context?:name? citations? cache_control?",
	}[k])
	if err != nil {
		return err
	}
	if citations := b["citations"]; citations != nil {
		if _, err := only(citations, "enabled:flag"); err != nil {
			return fmt.Errorf("citations: %w", err)
		}
	}
	switch {
	case k == "image":
		c.images++
		return anthropicSource(b["source"], "base64", "url", "file")
	case k == "search_result":
		return c.texts(b["content"])
	case k == "document" && kind(b["source"]) == "content":
		s, err := only(b["source"], "type content")
		if err != nil {
			return err
		}
		return c.texts(s["content"])
	case k == "document":
		return anthropicSource(b["source"], "base64", "text", "url", "file")
	}
	return nil
}

func (c *anthropicCheck) text(raw []byte) error {
	b, err := c.block(raw, "text:text citations? cache_control?")
	if err != nil {
		return err
	}
	if strings.TrimSpace(b.Text("text")) == "" {
		return fmt.Errorf("text must hold something: %s", b["text"])
	}
	if cited := string(b["citations"]); cited == "" || cited == "null" || cited == "[]" {
		return nil
	}
	return each("citations", b["citations"], citation)
}

func citation(k string, raw []byte) error {
	fields, known := map[string]string{
		"char_location":              "document_index document_title start_char_index end_char_index",
		"page_location":              "document_index document_title start_page_number end_page_number",
		"content_block_location":     "document_index document_title start_block_index end_block_index",
		"web_search_result_location": "encrypted_index title url",
		"search_result_location":     "search_result_index source title start_block_index end_block_index",
	}[k]
	if !known {
		return errors.New("the type is not known")
	}
	_, err := only(raw, "type cited_text "+fields)
	return err
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

// block decodes a block that has a type and these fields. It counts cache marks.
func (c *anthropicCheck) block(raw []byte, fields string) (Object, error) {
	b, err := only(raw, "type "+fields)
	if err != nil {
		return nil, err
	}
	if mark := b["cache_control"]; mark != nil {
		c.marks++
		if _, err := only(mark, "type:ephemeral ttl?:text"); err != nil {
			return nil, fmt.Errorf("cache_control: %w", err)
		}
	}
	return b, nil
}

func anthropicSource(raw []byte, types ...string) error {
	k := kind(raw)
	if !slices.Contains(types, k) {
		return fmt.Errorf("source of type %q is not among %q", k, types)
	}
	s, err := only(raw, "type "+map[string]string{
		"base64": "media_type:name data:data", "text": "media_type:text/plain data:name", "url": "url:name",
		"file": "file_id:name",
	}[k])
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	mediaType := s.Text("media_type")
	isImage := !slices.Contains(types, "text")
	switch {
	case k == "url" && !strings.HasPrefix(s.Text("url"), "https://"):
		return fmt.Errorf("source: only https is taken: %s", s["url"])
	case k == "base64" && !isImage && mediaType != "application/pdf":
		return fmt.Errorf("source: media_type %q", mediaType)
	case k != "base64" || !isImage:
		return nil
	}
	signatures := map[string]string{
		"image/png": "\x89PNG", "image/jpeg": "\xff\xd8\xff", "image/gif": "GIF8",
		"image/webp": "RIFF",
	}
	if _, known := signatures[mediaType]; !known {
		return fmt.Errorf("source: media_type %q", mediaType)
	}
	data, _ := base64.StdEncoding.DecodeString(s.Text("data"))
	for of, begins := range signatures {
		if strings.HasPrefix(string(data), begins) && of != mediaType {
			return fmt.Errorf("source: bytes of %s under the name of %s", of, mediaType)
		}
	}
	return nil
}
