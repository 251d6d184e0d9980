package openclaw

import (
	"strings"

	"sessiond/internal/routing"
)

// canonicalKey returns a session key in the form in which keys are stored, with its agent in
// front. channel is where a group of the old form, without one, lies. "" is no key, and so is
// one that cannot be stored.
func canonicalKey(key, agent, channel string) string {
	if strings.TrimSpace(key) == "" {
		return ""
	}
	if strings.HasPrefix(strings.ToLower(key), "group:") && channel != "" {
		key = channel + ":" + key
	}
	rules := routing.Config{Agent: agent}
	canonical, err := rules.Canonical(key)
	if err != nil {
		return ""
	}
	return canonical
}

// agentOf returns the agent that a canonical key names, "" for none.
func agentOf(key string) string {
	k, _ := routing.Parse(key)
	return k.Agent
}

// kindOf returns the kind of session that a canonical key names.
func kindOf(key string) string {
	switch source := routing.Classify(key).Source; source {
	case routing.SourceCron, routing.SourceHook, routing.SourceSubagent:
		return string(source)
	}
	if strings.Contains(key, ":subagent:") { // of a sub-agent
		return string(routing.SourceSubagent)
	}
	return "chat"
}
