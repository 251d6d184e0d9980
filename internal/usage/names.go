package usage

import (
	"regexp"
	"strings"
)

// find looks a model up by any name that a program or a gateway gives it.
func (c *Catalogue) find(name string) (id string, ok bool) {
	k := key(name)
	for {
		if id, ok = c.names[k]; ok {
			return id, true
		}
		shorter := cutEnding(k)
		if shorter == k {
			return "", false
		}
		k = shorter
	}
}

// key brings the spellings of a model's name together: without the gateways and providers
// before it (openrouter/anthropic/…, us.anthropic.…), in lower case, with - for the dots
// that some write in version numbers.
func key(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, maker := range []string{"anthropic.", "openai.", "google.", "deepseek.", "qwen.", "mistral."} {
		if _, rest, ok := strings.Cut(name, maker); ok {
			name = rest
		}
	}
	return strings.ReplaceAll(name, ".", "-")
}

// isVariant tells whether a gateway's name asks for another offer of the model, such as
// :free, whose price is not that of the model.
func isVariant(name string) bool {
	_, variant, ok := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return ok && strings.Trim(variant, "0123456789") != ""
}

// ending matches what names carry behind the model: a variant (:free, [1m]), a revision
// (-v1:0, @20250929), a date (-20250929, -2025-04-14, -09-2025), -latest, -preview.
var ending = regexp.MustCompile(`(:[a-z0-9._-]*|\[[0-9a-z]*\]|@[a-z0-9-]*|-v[0-9]+|-20[0-9]{2}-?[01][0-9]-?[0-3][0-9]|-[01][0-9]-(20[0-9]{2}|[0-3][0-9])|-latest|-preview|-exp|-experimental)$`)

func cutEnding(k string) string { return ending.ReplaceAllString(k, "") }
