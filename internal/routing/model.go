package routing

import (
	"strings"
	"unicode"
)

// Models are the models that a reset may choose by name.
type Models struct {
	Allowed []string          // provider/model
	Aliases map[string]string // short name → provider/model
}

// cutModel cuts a model off the beginning of a text: an alias, provider/model, or provider and
// model as two words. Only the case of letters may differ.
func (m *Models) cutModel(text string) (model, rest string) {
	first, after := cutWord(text)
	if first == "" {
		return "", text
	}
	for alias, target := range m.Aliases {
		if strings.EqualFold(alias, first) {
			return target, after
		}
	}
	second, afterBoth := cutWord(after)
	for _, allowed := range m.Allowed {
		switch {
		case strings.EqualFold(allowed, first):
			return allowed, after
		case second != "" && strings.EqualFold(allowed, first+"/"+second):
			return allowed, afterBoth
		}
	}
	return "", text
}

func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}
