package dialecttest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

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
	if b["citations"] == nil || string(b["citations"]) == "null" {
		return nil
	}
	var citations []json.RawMessage
	if err := json.Unmarshal(b["citations"], &citations); err != nil {
		return fmt.Errorf("citations: %w", err)
	}
	for i, cited := range citations {
		if err := citation(cited); err != nil {
			return fmt.Errorf("citations[%d]: %w", i, err)
		}
	}
	return nil
}

func citation(raw []byte) error {
	fields, known := map[string][]string{
		"char_location":              {"document_index", "document_title", "start_char_index", "end_char_index"},
		"page_location":              {"document_index", "document_title", "start_page_number", "end_page_number"},
		"content_block_location":     {"document_index", "document_title", "start_block_index", "end_block_index"},
		"web_search_result_location": {"encrypted_index", "title", "url"},
		"search_result_location":     {"search_result_index", "source", "title", "start_block_index", "end_block_index"},
	}[kind(raw)]
	if !known {
		return fmt.Errorf("type %q", kind(raw))
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
