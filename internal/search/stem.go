package search

import (
	"strings"

	"github.com/kljensen/snowball/english"
)

// longestStemmed is the limit, in bytes, of a word that is stemmed.
const longestStemmed = 24

// stem returns the stem of an English word in lower case, by Porter's second algorithm: indexes and
// indexing become index. Words with other characters than a–z are their own stems.
func stem(w string) string {
	if len(w) < 3 || len(w) > longestStemmed || !isLowerASCII(w) {
		return w
	}
	return english.Stem(w, true)
}

func isLowerASCII(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
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
