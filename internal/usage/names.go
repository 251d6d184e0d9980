package usage

import (
	"regexp"
	"strings"
)

// find looks a model up by any name that a program or a gateway uses.
func (c *Catalogue) find(name string) (id string, ok bool) {
	name = normalizeName(name)
	for {
		if id, ok = c.names[name]; ok {
			return id, true
		}
		shorter := nameEnding.ReplaceAllString(name, "")
		if shorter == name {
			return "", false
		}
		name = shorter
	}
}

// normalizeName removes the gateways and providers before a model's name (openrouter/anthropic/…,
// us.anthropic.…) and writes it in lower case, with - for the dots in version numbers.
func normalizeName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, maker := range []string{"anthropic.", "openai.", "google.", "deepseek.", "qwen.", "mistral."} {
		if _, rest, ok := strings.Cut(name, maker); ok {
			name = rest
		}
	}
	return strings.ReplaceAll(name, ".", "-")
}

// isVariant reports whether a gateway's name asks for a variant with another price, such as :free.
func isVariant(name string) bool {
	_, variant, ok := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return ok && strings.Trim(variant, "0123456789") != ""
}

// nameEnding matches the endings behind a model's name: a variant (:free, [1m]), a revision
// (-v1:0, @20250929), a date (-20250929, -2025-04-14, -09-2025), -latest, -preview.
var nameEnding = regexp.MustCompile(`(:[a-z0-9._-]*|\[[0-9a-z]*\]|@[a-z0-9-]*|-v[0-9]+|-20[0-9]{2}-?[01][0-9]-?[0-3][0-9]|-[01][0-9]-(20[0-9]{2}|[0-3][0-9])|-latest|-preview|-exp|-experimental)$`)
