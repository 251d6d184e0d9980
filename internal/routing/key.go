package routing

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

// MaxKey is the length of a key in bytes.
const MaxKey = 512

// Keys without an agent.
const (
	GlobalKey  = "global"  // the whole installation, in global scope
	UnknownKey = "unknown" // traffic of an unknown conversation
)

const agentPrefix = "agent:"

// Key is a key in its parts: agent:AGENT:REST.
type Key struct {
	Agent string
	Rest  string // everything after the agent, colons included
}

func (k Key) String() string { return agentPrefix + k.Agent + ":" + k.Rest }

// Parse splits a key that begins with an agent. ok is false for every other key.
func Parse(key string) (k Key, ok bool) {
	parts := fold(split(key))
	if len(parts) < 3 || parts[0] != "agent" {
		return Key{}, false
	}
	return Key{Agent: parts[1], Rest: strings.Join(parts[2:], ":")}, true
}

// Canonical returns the stored form of a key: in lower case, without empty parts, beginning with
// the agent, and with one name for the main session. Codes: Invalid.
func (c *Config) Canonical(key string) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	parts := fold(split(key))
	switch {
	case len(parts) == 0:
		return "", badKey("is empty")
	case len(parts) == 1 && (parts[0] == GlobalKey || parts[0] == UnknownKey):
		return parts[0], nil
	}
	agent := c.agent()
	if parts[0] == "agent" {
		if len(parts) < 3 {
			return "", badKey("names an agent but no conversation; it looks like agent:main:main")
		}
		agent, parts = parts[1], parts[2:]
	}
	agent, err := NormalizeID(agent)
	if err != nil {
		return "", err
	}
	rest := strings.Join(parts, ":")
	if rest == DefaultID || rest == c.mainKey() {
		return c.main(agent), nil
	}
	return Key{Agent: agent, Rest: rest}.String(), nil
}

// main returns the key of an agent's main session.
func (c *Config) main(agent string) string {
	if c.Scope == ScopeGlobal {
		return GlobalKey
	}
	return Key{Agent: agent, Rest: c.mainKey()}.String()
}

// CheckKey rejects keys that would harm a log, a header or a file name. Codes: Invalid.
func CheckKey(key string) error {
	switch {
	case len(key) > MaxKey:
		return badKey("is %d bytes long; at most %d are allowed", len(key), MaxKey)
	case !utf8.ValidString(key):
		return badKey("is not UTF-8")
	case strings.ContainsFunc(strings.TrimSpace(key), unprintable):
		return badKey("contains a control character: a line break, a tab, or an invisible one")
	}
	return nil
}

// unprintable reports control characters and those that change the direction or the line breaks
// of the text around them.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFEFF' || unicode.Is(unicode.Bidi_Control, r)
}

func badKey(format string, args ...any) error {
	return invalid("key", "the key "+format, args...)
}

func invalid(field, format string, args ...any) error {
	err := session.Errorf(session.Invalid, format, args...)
	return err.At(field, "%s", err.Message)
}

// split returns the parts of a key without empty ones.
func split(key string) []string {
	parts := strings.Split(strings.TrimSpace(key), ":")
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// fold returns the parts of a key in lower case, except case-sensitive ids: Signal's groups
// (base64) and Matrix's rooms and events.
func fold(parts []string) []string {
	out := slices.Clone(parts)
	lower := func(i int) {
		if i < len(out) {
			out[i] = strings.ToLower(out[i])
		}
	}
	at := 0
	lower(0)
	if len(out) > 0 && out[0] == "agent" {
		lower(1)
		at = 2
	}
	rest := out[min(at, len(out)):]
	exact := caseMatters(rest)
	for i := range rest {
		word := strings.ToLower(rest[i])
		if isMarker(rest, i) {
			rest[i] = word
			exact = i+1 < len(rest) && strings.EqualFold(parts[at], "matrix")
			continue
		}
		if i < 2 || !exact {
			rest[i] = word
		}
	}
	return out
}

// caseMatters reports whether the ids of a conversation are case-sensitive.
func caseMatters(rest []string) bool {
	if len(rest) < 2 {
		return false
	}
	switch kind := strings.ToLower(rest[1]); strings.ToLower(rest[0]) {
	case "signal":
		return kind == KindGroup
	case "matrix":
		return isGroup(kind)
	}
	return false
}

// isMarker reports whether part i begins the name of a thread or a topic.
func isMarker(rest []string, i int) bool {
	if i < 1 || i+1 >= len(rest) {
		return false
	}
	return strings.EqualFold(rest[i], markThread) || strings.EqualFold(rest[i], markTopic)
}

const (
	markThread = "thread"
	markTopic  = "topic"
)
