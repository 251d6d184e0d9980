package historytest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// GooseCounts is what an exported session of Goose holds.
type GooseCounts struct {
	Messages, Users, Replies, Requests, Responses int
	Hidden                                        int // messages that the agent does not see
	Summaries                                     int // pairs of a summary and the line that goes on
	Unknown                                       int // blocks of types that the documents do not name
}

type gooseMessage struct {
	ID       *string                      `json:"id"`
	Role     string                       `json:"role"`
	Created  *int64                       `json:"created"`
	Content  []map[string]json.RawMessage `json:"content"`
	Metadata *struct {
		UserVisible, AgentVisible *bool
	} `json:"metadata"`
}

// CheckGoose reads what `goose session export --format json` writes: the session's fields, the
// conversation, the fields of each block, responses only for requests, and a compaction as Goose
// leaves one: nothing before it that the agent sees.
func CheckGoose(file []byte) (GooseCounts, error) {
	var c GooseCounts
	var o map[string]json.RawMessage
	if err := json.Unmarshal(file, &o); err != nil {
		return c, err
	}
	for _, key := range []string{"id", "name", "working_dir", "session_type", "created_at", "updated_at"} {
		if text(o[key]) == nil {
			return c, fmt.Errorf("%s is no text: %s", key, o[key])
		}
	}
	for _, key := range []string{"created_at", "updated_at"} {
		if _, err := time.Parse(time.RFC3339, *text(o[key])); err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
	}
	if kind := *text(o["session_type"]); !slices.Contains([]string{"user", "scheduled", "sub_agent", "hidden", "terminal", "gateway", "acp"}, kind) {
		return c, fmt.Errorf("session_type %q", kind)
	}
	var sums struct {
		Input, Output, Total, Read, Write *int64
	}
	var usage map[string]*int64
	if err := json.Unmarshal(o["accumulated_usage"], &usage); err != nil {
		return c, fmt.Errorf("accumulated_usage: %w", err)
	}
	sums.Input, sums.Output, sums.Total, sums.Read, sums.Write = usage["input_tokens"], usage["output_tokens"], usage["total_tokens"], usage["cache_read_input_tokens"], usage["cache_write_input_tokens"]
	if sums.Input == nil || sums.Output == nil || sums.Total == nil || sums.Read == nil || sums.Write == nil || *sums.Read+*sums.Write > *sums.Input || *sums.Input+*sums.Output != *sums.Total {
		return c, fmt.Errorf("accumulated_usage does not add up: %s", o["accumulated_usage"])
	}
	var conversation []gooseMessage
	if err := json.Unmarshal(o["conversation"], &conversation); err != nil || conversation == nil {
		return c, fmt.Errorf("conversation: %w", err)
	}
	open := map[string]bool{}
	seen := false // by the agent, so far
	for i := range conversation {
		if err := c.message(&conversation[i], open); err != nil {
			return c, fmt.Errorf("conversation[%d]: %w", i, err)
		}
		m := &conversation[i]
		if i+1 < len(conversation) && m.Role == "user" && !*m.Metadata.UserVisible && *m.Metadata.AgentVisible && conversation[i+1].Role == "assistant" &&
			conversation[i+1].Metadata != nil && conversation[i+1].Metadata.UserVisible != nil && !*conversation[i+1].Metadata.UserVisible && !seen {
			c.Summaries++
		}
		seen = seen || *m.Metadata.AgentVisible
	}
	return c, nil
}

func (c *GooseCounts) message(m *gooseMessage, open map[string]bool) error {
	c.Messages++
	switch {
	case m.Role != "user" && m.Role != "assistant":
		return fmt.Errorf("role %q", m.Role)
	case m.ID == nil || *m.ID == "":
		return fmt.Errorf("no id")
	case m.Created == nil || *m.Created <= 0 || *m.Created > 10_000_000_000:
		return fmt.Errorf("created is no time in seconds")
	case m.Content == nil:
		return fmt.Errorf("content is no list")
	case m.Metadata == nil || m.Metadata.UserVisible == nil || m.Metadata.AgentVisible == nil:
		return fmt.Errorf("metadata does not say who sees it")
	}
	if m.Role == "user" {
		c.Users++
	} else {
		c.Replies++
	}
	if !*m.Metadata.AgentVisible {
		c.Hidden++
	}
	for i, b := range m.Content {
		if err := c.block(m.Role, b, open); err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
	}
	return nil
}

func (c *GooseCounts) block(role string, b map[string]json.RawMessage, open map[string]bool) error {
	kind := text(b["type"])
	if kind == nil {
		return fmt.Errorf("a block without a type")
	}
	texts := func(keys ...string) error {
		for _, key := range keys {
			if text(b[key]) == nil {
				return fmt.Errorf("%s: %s is no text", *kind, key)
			}
		}
		return nil
	}
	switch *kind {
	case "text":
		return texts("text")
	case "image", "document":
		if err := texts("data", "mimeType"); err != nil {
			return err
		}
		_, err := base64.StdEncoding.DecodeString(*text(b["data"]))
		return err
	case "thinking":
		return texts("thinking", "signature")
	case "toolRequest":
		var call struct {
			Status, Error string
			Value         struct {
				Name      string
				Arguments map[string]json.RawMessage
			}
		}
		if err := firstOf(texts("id"), json.Unmarshal(b["toolCall"], &call)); err != nil {
			return err
		}
		if role != "assistant" || !(call.Status == "error" && call.Error != "") && (call.Status != "success" || call.Value.Name == "" || call.Value.Arguments == nil) {
			return fmt.Errorf("toolRequest of %s: %s", role, b["toolCall"])
		}
		open[*text(b["id"])] = true
		c.Requests++
		return nil
	case "toolResponse":
		var result struct {
			Status string
			Value  struct {
				Content []map[string]json.RawMessage
				IsError *bool
			}
		}
		if err := firstOf(texts("id"), json.Unmarshal(b["toolResult"], &result)); err != nil {
			return err
		}
		if role != "user" || result.Status != "success" || result.Value.Content == nil || result.Value.IsError == nil {
			return fmt.Errorf("toolResponse of %s: %.200s", role, b["toolResult"])
		}
		if !open[*text(b["id"])] {
			return fmt.Errorf("it answers %s, which nobody requested", b["id"])
		}
		c.Responses++
		return nil
	}
	if !slices.Contains([]string{
		"toolConfirmationRequest", "actionRequired", "frontendToolRequest", "redactedThinking", "systemNotification", "error", "reasoning",
		"conversationCompacted", "contextLengthExceeded", "summarizationRequested",
	}, *kind) {
		c.Unknown++
	}
	return nil
}
