package text

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/snowballstem"
	snowballenglish "github.com/blevesearch/snowballstem/english"
	snowballfrench "github.com/blevesearch/snowballstem/french"
	snowballgerman "github.com/blevesearch/snowballstem/german"
	snowballrussian "github.com/blevesearch/snowballstem/russian"
)

// Language is that of a text, whose words have its stems.
type Language byte

// Texts in all other languages count as English ones: their words are rarely changed by its rules.
const (
	English Language = iota
	German
	French
)

// languageMarks end the stems of German and French texts, one each. In a text of its language only, server becomes
// serv, as an English text has for serve. Tokenize removes these private-use characters from text.
const languageMarks = "\uE002\uE003"

func (l Language) mark() string { return string([]rune(languageMarks)[l-1]) }

// WithoutMark returns a stem without the mark of its language.
func WithoutMark(stem string) string { return strings.TrimRight(stem, languageMarks) }

const (
	leastOfLanguage = 2       // function words by which a language is recognised
	languageSample  = 4 << 10 // bytes of a text by which its language is recognised
)

// LanguageOf returns the language of a text, by its function words.
func LanguageOf(s string) Language {
	if len(s) > languageSample {
		s = s[:languageSample]
	}
	var seen [French + 1]int
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) > 8 {
			continue
		}
		if l, ok := languageWith(strings.ToLower(w)); ok {
			seen[l]++
		}
	}
	best := English
	for _, l := range []Language{German, French} {
		if seen[l] >= leastOfLanguage && seen[l] > seen[best] {
			best = l
		}
	}
	return best
}

// Limits, in bytes, of a word that is stemmed. German joins words to longer ones.
const (
	LongestStemmed = 24
	longestGerman  = 48
)

// Stem returns the stem of a word of a text in the language; lower is the word in small letters, folded. English words
// in other texts keep their own stems, too: deployments is deploy in each language.
func (l Language) Stem(w, lower string) string {
	if l == English || len(lower) < 3 || len(lower) > longestGerman || !IsLowerASCII(lower) {
		return Stem(lower)
	}
	env := snowballstem.NewEnv(strings.ToLower(w))
	if l == German {
		snowballgerman.Stem(env)
	} else {
		snowballfrench.Stem(env)
	}
	return Stem(Plain(env.Current())) + l.mark()
}

// Stem returns the stem of an English word in lower case, by Porter's second algorithm: indexes and
// indexing become index, and went go. Russian words have their stems, too. Words of other letters are their own stems.
func Stem(w string) string {
	if len(w) < 3 || len(w) > 2*LongestStemmed {
		return w
	}
	env := snowballstem.NewEnv(w)
	switch {
	case len(w) <= LongestStemmed && IsLowerASCII(w):
		if base, ok := irregularForms()[w]; ok {
			env = snowballstem.NewEnv(base)
		}
		snowballenglish.Stem(env)
	case strings.IndexFunc(w, func(r rune) bool { return !unicode.Is(unicode.Cyrillic, r) }) < 0:
		snowballrussian.Stem(env)
	default:
		return w
	}
	return env.Current()
}

func IsLowerASCII(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}

//go:embed irregular.txt
var irregularText string

// irregularForms has the English words whose form shows no stem, with the word that they are forms of.
var irregularForms = sync.OnceValue(func() map[string]string {
	forms := map[string]string{}
	for line := range strings.Lines(irregularText) {
		words := strings.Fields(line)
		for _, form := range words[1:] {
			forms[form] = words[0]
		}
	}
	return forms
})

// FormsOf returns the irregular forms of a word, given one of them or the word.
func FormsOf(w string) (forms []string) {
	base := w
	if b, ok := irregularForms()[w]; ok {
		base = b
	}
	for form, of := range irregularForms() {
		if of == base {
			forms = append(forms, form)
		}
	}
	if len(forms) > 0 {
		forms = append(forms, base)
	}
	return forms
}

// Beginning returns how the other forms of a word begin, in whatever language: a longer word without its ending. Where
// the place in a text matters, it serves as a stem does.
func Beginning(word string) string {
	if IsUnspaced([]rune(word)[0]) || strings.ContainsFunc(word, unicode.IsDigit) {
		return word
	}
	switch r := []rune(word); {
	case len(r) > 6:
		return string(r[:len(r)-2])
	case len(r) > 4:
		return string(r[:len(r)-1])
	}
	return word
}
