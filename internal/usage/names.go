package usage

import (
	"strings"

	"sessiond/internal/pattern"
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

// makers are the providers whose own list prices count, in the order in which lists are searched for a model.
var makers = []string{
	"anthropic", "openai", "google", "xai", "deepseek", "mistral", "moonshotai", "zai", "minimax", "alibaba", "qwen",
	"xiaomi", "meta", "llama",
	"amazon-bedrock", "cohere", "ant-ling", "inclusionai", "stepfun",
}

// normalizeName removes the gateways and providers before a model's name (openrouter/anthropic/…,
// us.anthropic.…, openai:…) and writes it in lower case, with - for the dots in version numbers.
func normalizeName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, maker := range []string{
		"anthropic.", "openai.", "google.", "deepseek.", "qwen.", "mistral.", "moonshot.",
		"minimax.", "zai.", "meta.", "amazon.",
	} {
		if _, rest, ok := strings.Cut(name, maker); ok {
			name = rest
		}
	}
	for _, maker := range makers {
		if rest, ok := strings.CutPrefix(name, maker+":"); ok {
			name = rest
		}
	}
	return strings.ReplaceAll(name, ".", "-")
}

// isVariant reports whether a gateway's name asks for a variant with another price, such as :free.
func isVariant(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	before, variant, ok := strings.Cut(name, ":")
	for _, maker := range makers {
		if strings.EqualFold(before, maker) {
			return false
		}
	}
	return ok && strings.Trim(variant, "0123456789") != ""
}

// nameEnding matches the endings behind a model's name: a variant (:free, [1m]), a revision
// (-v1:0, @20250929), a date (-20250929, -2025-04-14, -09-2025), -latest, -preview, how much it thinks, its mode.
var nameEnding = pattern.New(`(:[a-z0-9._-]*|\[[0-9a-z]*\]|@[a-z0-9-]*|-v[0-9]+|-20[0-9]{2}-?[01][0-9]-?[0-3][0-9]|-[01][0-9]-(20[0-9]{2}|[0-3][0-9])|-latest|-preview|-exp|-experimental|-thinking|-xhigh|-high|-medium|-low|-minimal|-fast)$`)

// modeOfName returns the mode that a name asks for beyond the model's own: claude-opus-5-fast, which some programs
// write, is claude-opus-5 in fast mode.
func modeOfName(name, id string) string {
	if strings.HasSuffix(strings.ToLower(name), "-"+ModeFast) && !strings.HasSuffix(normalizeName(id), "-"+ModeFast) {
		return ModeFast
	}
	return ""
}

// familyOf returns a model's name without its versions: claude-opus for claude-opus-4-8, gpt-sol for gpt-6.2-sol.
func familyOf(name string) string {
	var kept []string
	for word := range strings.SplitSeq(name, "-") {
		if word = strings.TrimRight(word, "0123456789"); strings.Trim(word, "0123456789") != "" {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, "-")
}

// findFamilies notes the newest model of each family, by the days of their prices.
func (c *Catalogue) findFamilies() {
	newest := map[string]string{} // day
	for id, info := range c.models {
		rows := c.prices[id]
		if len(rows) == 0 || info.Window == 0 {
			continue
		}
		family, day := familyOf(normalizeName(id)), rows[0].ValidFrom+" "+id
		if day > newest[family] {
			newest[family], c.families[family] = day, id
		}
	}
}

// relative returns the newest model of an unknown one's family: of the most words of the name that a family has.
// The name of a model on the user's own hardware, which says its size behind a colon, has none.
func (c *Catalogue) relative(name string) (id string, ok bool) {
	if isVariant(name) {
		return "", false
	}
	family := familyOf(nameEnding.ReplaceAllString(normalizeName(name), ""))
	for family != "" {
		if id, ok = c.families[family]; ok {
			return id, true
		}
		family = family[:max(0, strings.LastIndexByte(family, '-'))]
	}
	return "", false
}
