package routing

import (
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Carry returns the members that a key's next generation begins with. Settings and names belong
// to the key and stay. Counters, caches and facts about the last run belong to the generation and
// go. Unknown members are the caller's own and stay. The reason of the reset does not matter.
// model is the reset's choice, provider/model or "".
func Carry(before map[string]jsontext.Value, model string) map[string]jsontext.Value {
	next := maps.Clone(before)
	if next == nil {
		next = map[string]jsontext.Value{}
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
			next[name] = jsontext.Value(value)
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

func quoted(s string) jsontext.Value { return jsontext.Value(session.JSONOf(s)) }
