package routing

import (
	"encoding/json"
	"maps"
	"strings"

	"sessiond/internal/session"
)

// Carry returns the members that a key's next generation begins with. Settings and names belong
// to the key and stay. Counters, caches and facts about the last run belong to the generation and
// go. Unknown members are the caller's own and stay. The reason of the reset does not matter.
// model is the reset's choice, provider/model or "".
func Carry(before map[string]json.RawMessage, model string) map[string]json.RawMessage {
	next := maps.Clone(before)
	if next == nil {
		next = map[string]json.RawMessage{}
	}
	for _, name := range []string{
		"contextTokens", "modelProvider", "model", "memoryFlushAt", "memoryFlushCompactionCount",
		"cliSessionIds", "claudeCliSessionId", "skillsSnapshot", "systemPromptReport", "sessionFile",
	} {
		delete(next, name)
	}
	for name, value := range map[string]string{
		"inputTokens": "0", "outputTokens": "0", "totalTokens": "0", "totalTokensFresh": "true",
		"compactionCount": "0", "systemSent": "false", "abortedLastRun": "false",
	} {
		if _, had := before[name]; had {
			next[name] = json.RawMessage(value)
		}
	}
	if string(before["modelOverrideSource"]) == `"auto"` { // a fallback chose it, not a person
		delete(next, "providerOverride")
		delete(next, "modelOverride")
		delete(next, "modelOverrideSource")
	}
	if string(before["authProfileOverrideSource"]) == `"auto"` {
		delete(next, "authProfileOverride")
		delete(next, "authProfileOverrideSource")
	}
	if model != "" {
		provider, name := SplitModel(model)
		next["providerOverride"], next["modelOverride"] = quoted(provider), quoted(name)
		next["modelOverrideSource"] = quoted("user")
		delete(next, "authProfileOverride") // the pinned credential was for the other model
		delete(next, "authProfileOverrideSource")
	}
	return next
}

// SplitModel splits provider/model; a name without a slash is a model's.
func SplitModel(model string) (provider, name string) {
	if provider, name, ok := strings.Cut(model, "/"); ok {
		return provider, name
	}
	return "", model
}

func quoted(s string) json.RawMessage { return json.RawMessage(session.JSONOf(s)) }
