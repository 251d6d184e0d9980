package text

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed stopwords.txt
var stopWordsText string

// commonWord says of a word that it is common, and what follows from that.
type commonWord struct {
	search   bool // a search in English ignores it
	recall   bool // a recall ignores it
	language int  // English, German or French, which alone uses it; -1: none
}

type commonWords struct {
	words map[string]commonWord
	runs  *strings.Replacer // removes those of scripts without spaces
}

// parseCommonWords returns the words of stopwords.txt.
var parseCommonWords = sync.OnceValue(func() commonWords {
	all := commonWords{words: map[string]commonWord{}}
	var runs []string
	languages := map[string]Language{"en": English, "de": German, "fr": French}
	for line := range strings.Lines(stopWordsText) {
		kind, rest, _ := strings.Cut(line, " ")
		name, lookedFor := strings.CutSuffix(kind, "-")
		name, alone := strings.CutSuffix(name, "!")
		for w := range strings.FieldsSeq(rest) {
			switch kind {
			case "#":
			case "run":
				runs = append(runs, w, " ")
			default:
				c := commonWord{search: name == "en", recall: !lookedFor, language: -1}
				if alone {
					c.language = int(languages[name])
				}
				all.words[w] = c
			}
		}
	}
	all.runs = strings.NewReplacer(runs...)
	return all
})

// IsStopWord reports whether a word says how a question in English is put, not what it is about. Nearly every message
// has some of them.
func IsStopWord(lower string) bool { return parseCommonWords().words[lower].search }

// IsCommonWord reports whether a recall learns nothing from a word of a question: most stop words of all languages, and
// the words in which requests are put, which a search still looks for.
func IsCommonWord(lower string) bool { return parseCommonWords().words[lower].recall }

// WithoutStopRuns returns a text of scripts without spaces with a space for each of their stop words.
func WithoutStopRuns(s string) string { return parseCommonWords().runs.Replace(s) }

// languageWith returns the language that alone uses a common word; ok is false if there is none.
func languageWith(lower string) (l Language, ok bool) {
	c, known := parseCommonWords().words[lower]
	if !known || c.language < 0 {
		return English, false
	}
	return Language(c.language), true
}
