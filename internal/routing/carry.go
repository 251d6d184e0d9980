package routing

import (
	"encoding/json"
	"maps"
	"strings"
)

// Carry gives the members that the next generation of a key begins with, by what the one
// before it had. Settings and names belong to the key and stay; counters, what the last run
// used and what was cached belong to the generation and go; members that are not known here
// are the caller's own and stay. The list is the same for every reason. model is a reset's
// choice, provider/model or "".
func Carry(before map[string]json.RawMessage, model string) map[string]json.RawMessage {
	next := maps.Clone(before)
	if next == nil {
		next = map[string]json.RawMessage{}
	}
	for _, name := range ofOneGeneration() {
		delete(next, name)
	}
	for name, value := range atTheBeginning() {
		if _, had := before[name]; had {
			next[name] = json.RawMessage(value)
		}
	}
	if string(before["modelOverrideSource"]) == `"auto"` { // a fallback chose it, not a person
		for _, name := range []string{"providerOverride", "modelOverride", "modelOverrideSource"} {
			delete(next, name)
		}
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

// SplitModel takes provider/model apart; a name without a provider is a model's.
func SplitModel(model string) (provider, name string) {
	provider, name, ok := strings.Cut(model, "/")
	if !ok {
		return "", model
	}
	return provider, name
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string
	return b
}

// ofOneGeneration are the members that tell of one generation and are absent in the next.
func ofOneGeneration() []string {
	return []string{
		"contextTokens", "modelProvider", "model", "memoryFlushAt", "memoryFlushCompactionCount",
		"cliSessionIds", "claudeCliSessionId", "skillsSnapshot", "systemPromptReport", "sessionFile",
	}
}

// atTheBeginning are the members with a value of their own in a new generation.
func atTheBeginning() map[string]string {
	return map[string]string{
		"inputTokens": "0", "outputTokens": "0", "totalTokens": "0", "totalTokensFresh": "true",
		"compactionCount": "0", "systemSent": "false", "abortedLastRun": "false",
	}
}
