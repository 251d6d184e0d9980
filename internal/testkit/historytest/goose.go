package historytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// GooseCounts counts the messages of an exported session of Goose.
type GooseCounts struct {
	Messages, Users, Replies, Requests, Responses int
	Hidden                                        int // messages that the agent does not see
	Summaries                                     int // pairs of a summary and the message that continues after it
	Unknown                                       int // blocks of undocumented types
}

// gooseBlocks are the fields of a block of each type.
var gooseBlocks = map[string]string{
	"text": "text:text", "image": "data:data mimeType:text", "document": "data:data mimeType:text",
	"thinking": "thinking:text signature:text", "toolRequest": "id:text toolCall:object",
	"toolResponse": "id:text toolResult:object", "toolConfirmationRequest": "", "actionRequired": "",
	"frontendToolRequest": "", "redactedThinking": "", "systemNotification": "", "error": "", "reasoning": "",
	"conversationCompacted": "", "contextLengthExceeded": "", "summarizationRequested": "",
}

// CheckGoose reads the output of `goose session export --format json`: the session's fields, the fields
// of each block, responses only for requests, and compactions as Goose stores them: the agent sees no
// message before a summary.
func CheckGoose(file []byte) (GooseCounts, error) {
	var c GooseCounts
	var o object
	if err := json.Unmarshal(file, &o); err != nil {
		return c, err
	}
	if err := o.Need("id:text name:text working_dir:text session_type:text created_at:text updated_at:text " +
		"accumulated_usage:object"); err != nil {
		return c, err
	}
	for _, key := range []string{"created_at", "updated_at"} {
		if _, err := time.Parse(time.RFC3339, o.Text(key)); err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
	}
	if !slices.Contains([]string{"user", "scheduled", "sub_agent", "hidden", "terminal", "gateway", "acp"},
		o.Text("session_type")) {
		return c, fmt.Errorf("session_type %s", o["session_type"])
	}
	var u struct {
		Input  *int64 `json:"input_tokens"`
		Output *int64 `json:"output_tokens"`
		Total  *int64 `json:"total_tokens"`
		Read   *int64 `json:"cache_read_input_tokens"`
		Write  *int64 `json:"cache_write_input_tokens"`
	}
	if err := json.Unmarshal(o["accumulated_usage"], &u); err != nil || u.Input == nil || u.Output == nil ||
		u.Total == nil || u.Read == nil || u.Write == nil ||
		*u.Read+*u.Write > *u.Input || *u.Input+*u.Output != *u.Total {
		return c, fmt.Errorf("accumulated_usage does not add up: %s", o["accumulated_usage"])
	}
	conversation, err := listOf(o, "conversation")
	if err != nil {
		return c, err
	}
	open := map[string]bool{}
	seen := false                       // by the agent, so far
	shown := func(m object) [2]string { // to the user, and to the agent
		metadata := m.Inner("metadata")
		return [2]string{string(metadata["userVisible"]), string(metadata["agentVisible"])}
	}
	for i, m := range conversation {
		if err := c.message(m, open); err != nil {
			return c, fmt.Errorf("conversation[%d]: %w", i, err)
		}
		if i+1 < len(conversation) && !seen && m.Text("role") == "user" && shown(m) == [2]string{"false", "true"} &&
			conversation[i+1].Text("role") == "assistant" && shown(conversation[i+1])[0] == "false" {
			c.Summaries++
		}
		if shown(m)[1] == "true" {
			seen = true
		} else {
			c.Hidden++
		}
	}
	return c, nil
}

func (c *GooseCounts) message(m object, open map[string]bool) error {
	c.Messages++
	if err := m.Need("id:name created:number content:list metadata:object"); err != nil {
		return err
	}
	if err := m.Inner("metadata").Need("userVisible:flag agentVisible:flag"); err != nil {
		return err
	}
	var created int64
	if err := json.Unmarshal(m["created"], &created); err != nil || created <= 0 || created > 10_000_000_000 {
		return fmt.Errorf("created %s is no time in seconds", m["created"])
	}
	switch m.Text("role") {
	case "user":
		c.Users++
	case "assistant":
		c.Replies++
	default:
		return fmt.Errorf("role %s", m["role"])
	}
	blocks, err := listOf(m, "content")
	if err != nil {
		return err
	}
	for i, b := range blocks {
		if err := c.block(m.Text("role"), b, open); err != nil {
			return fmt.Errorf("content[%d] (%s): %w", i, b["type"], err)
		}
	}
	return nil
}

func (c *GooseCounts) block(role string, b object, open map[string]bool) error {
	kind := b.Text("type")
	if err := b.Need("type:text"); err != nil {
		return err
	}
	fields, known := gooseBlocks[kind]
	if !known {
		c.Unknown++
	}
	if err := b.Need(fields); err != nil {
		return err
	}
	switch kind {
	case "toolRequest":
		call := b.Inner("toolCall")
		failed := call.Text("status") == "error" && call.Text("error") != ""
		if role != "assistant" || !failed && (call.Text("status") != "success" ||
			call.Inner("value").Need("name:name arguments:object") != nil) {
			return fmt.Errorf("toolCall of %s: %s", role, b["toolCall"])
		}
		open[b.Text("id")] = true
		c.Requests++
	case "toolResponse":
		result := b.Inner("toolResult")
		if role != "user" || result.Text("status") != "success" ||
			result.Inner("value").Need("content:list isError:flag") != nil {
			return fmt.Errorf("toolResult of %s: %.200s", role, b["toolResult"])
		}
		if !open[b.Text("id")] {
			return fmt.Errorf("it answers the unknown request %s", b["id"])
		}
		c.Responses++
	}
	return nil
}
