package openclaw

import (
	"regexp"
	"strings"
)

var agentKey = regexp.MustCompile(`^agent:([a-z0-9][a-z0-9_-]{0,63}):(.+)$`)

// canonicalKey gives a session key in the form in which keys are stored: with its agent in
// front, in lower case but for the ids of Signal groups and Matrix rooms, whose case counts.
// `global` and `unknown` belong to no agent. "" stays "".
func canonicalKey(key, agent, channel string) string {
	key = strings.TrimSpace(key)
	if key == "" {
		return ""
	}
	folded := fold(key)
	switch {
	case folded == "global", folded == "unknown":
		return folded
	case strings.HasPrefix(folded, "agent:"):
	case strings.HasPrefix(folded, "group:") && channel != "": // as long ago
		folded = "agent:" + agent + ":" + strings.ToLower(channel) + ":" + folded
	default:
		folded = "agent:" + agent + ":" + folded
	}
	parts := strings.Split(folded, ":")
	for i, part := range parts {
		if part == "direct" && i >= 2 && i <= 4 {
			parts[i] = "dm"
			break
		}
	}
	return strings.Join(parts, ":")
}

// fold makes a key lower-case. What follows the mark of a Signal group or a Matrix room keeps
// its case.
func fold(key string) string {
	low := strings.ToLower(key)
	for _, mark := range []string{"signal:group:", "matrix:channel:", "matrix:group:", "matrix:room:"} {
		if at := strings.Index(low, mark); at >= 0 && (at == 0 || low[at-1] == ':') && len(low) == len(key) {
			return low[:at+len(mark)] + key[at+len(mark):]
		}
	}
	return low
}

// agentOf gives the agent that a canonical key names, "" for none.
func agentOf(key string) string {
	if m := agentKey.FindStringSubmatch(key); m != nil {
		return m[1]
	}
	return ""
}

// kindOf gives the kind of session that a canonical key names.
func kindOf(key string) string {
	rest := key
	if m := agentKey.FindStringSubmatch(key); m != nil {
		rest = m[2]
	}
	for _, kind := range []string{"subagent", "cron", "hook"} {
		if strings.HasPrefix(rest, kind+":") || kind == "subagent" && strings.Contains(rest, ":subagent:") {
			return kind
		}
	}
	return "chat"
}
