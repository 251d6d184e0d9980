package codex

import (
	"strings"

	"sessiond/internal/history"
)

// cutRule tells which strings of a rollout may be cut: what was said, and what tools were given
// and gave. Within what stays whole, a title and a folder are looked for.
func cutRule() history.CutRule {
	return history.CutRule{
		Fields: []string{
			"text", "message", "content", "output", "arguments", "input", "image_url", "data", "encrypted_content",
			"stdout", "stderr", "aggregated_output", "formatted_output", "result",
		},
		Stay:  []string{request, "<cwd>"},
		Whole: staysWhole, Skip: true,
	}
}

// staysWhole tells of records that say how others are to be seen, and of an output that is JSON,
// in which it is told how the run ended.
func staysWhole(line []byte) bool {
	o, _ := history.Fields(line)
	r := recordOf(o, line)
	switch r.kind {
	case typeItem:
		output, _ := history.Text(r.payload.Get("output"))
		return strings.HasPrefix(strings.TrimSpace(output), "{")
	case typeEvent:
		switch r.sub {
		case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "exec_command_end", "mcp_tool_call_end", "item_completed":
			return false
		}
	}
	return true
}
