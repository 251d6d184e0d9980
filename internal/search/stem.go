package search

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

// language is that of a text, whose words have its stems.
type language byte

// Texts in all other languages count as English ones: their words are rarely changed by its rules.
const (
	english language = iota
	german
	french
)

// languageMarks end the stems of German and French texts, one each. In a text of its language only, server becomes
// serv, as an English text has for serve. normalize removes these private-use characters from text.
const languageMarks = "\uE002\uE003"

func (l language) mark() string { return string([]rune(languageMarks)[l-1]) }

const (
	leastOfLanguage = 2       // function words that tell a language
	languageSample  = 4 << 10 // bytes of a text by which its language is told
)

// languageOf tells the language of a text by its function words.
func languageOf(text string) language {
	if len(text) > languageSample {
		text = text[:languageSample]
	}
	var seen [french + 1]int
	words := functionWords()
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) > 8 {
			continue
		}
		if l, ok := words[strings.ToLower(w)]; ok {
			seen[l]++
		}
	}
	best := english
	for _, l := range []language{german, french} {
		if seen[l] >= leastOfLanguage && seen[l] > seen[best] {
			best = l
		}
	}
	return best
}

// functionWords has words that only one of the languages uses, and that nearly every sentence has one of.
var functionWords = sync.OnceValue(func() map[string]language {
	set := map[string]language{}
	for l, words := range map[language]string{
		english: `the a an and of to is are was were be been it its this that these those with for from not you your we our they
			have has had do does did will would can could should what when where which who how why there then my me at by or if`,
		german: `der das und ist ein eine einen einem einer eines nicht ich wir mit für auf den dem von zu zum zur im sich auch
			wie wird wurde wurden sind hatte haben werden dass kann können bei beim oder aber nur noch nach wo wer wann warum
			welche welcher welches es er sie ihr mir mich uns unser unsere wenn vom aus über unter als dann doch schon sein
			seine die habe muss soll sollen bitte jetzt`,
		french: `le la les un une et du que qui dans pour pas sur nous vous avec il elle ils je ce cette ces sont au aux ne se est
			été être avait ont où quand comment pourquoi quel quelle quels quelles mais ou si son sa ses notre nos votre
			c'est plus par de des en fait faut`,
	} {
		for w := range strings.FieldsSeq(words) {
			set[w] = l
		}
	}
	return set
})

// Limits, in bytes, of a word that is stemmed. German joins words to longer ones.
const (
	longestStemmed = 24
	longestGerman  = 48
)

// stem returns the stem of a word of a text in the language; lower is the word in small letters, folded. English words
// in other texts keep their own stems, too: deployments is deploy in each language.
func (l language) stem(w, lower string) string {
	if l == english || len(lower) < 3 || len(lower) > longestGerman || !isLowerASCII(lower) {
		return stem(lower)
	}
	env := snowballstem.NewEnv(strings.ToLower(w))
	if l == german {
		snowballgerman.Stem(env)
	} else {
		snowballfrench.Stem(env)
	}
	return stem(plain(env.Current())) + l.mark()
}

// stem returns the stem of an English word in lower case, by Porter's second algorithm: indexes and
// indexing become index, and went go. Russian words have their stems, too. Words of other letters are their own stems.
func stem(w string) string {
	if len(w) < 3 || len(w) > 2*longestStemmed {
		return w
	}
	env := snowballstem.NewEnv(w)
	switch {
	case len(w) <= longestStemmed && isLowerASCII(w):
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

func isLowerASCII(w string) bool {
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

// formsOf returns the irregular forms of a word, given one of them or the word.
func formsOf(w string) (forms []string) {
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

// isStopWord tells whether a word says how a question is put, not what it is about. Nearly every message
// has some of them.
func isStopWord(lower string) bool { return stopWords[lower] }

var stopWords = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`
		a an the this that these those
		i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself
		it its itself they them their theirs themselves one someone anyone something anything everything
		am is are was were be been being do does did doing done have has had having
		can could will would shall should may might must
		not no nor and or but if then than so because as until while of at by for with about against between into
		through during before after above below to from up down in out on off over under again further once
		here there when where why how what which who whom whose whether
		all any both each few more most other some such only own same too very just also
		s t d ll m re ve don didn doesn isn wasn weren won wouldn shouldn couldn hasn haven hadn aren ain
		tell show find say says said mention mentioned talk talked discuss discussed please
		get got many much kind thing things`) {
		set[w] = true
	}
	return set
}()
