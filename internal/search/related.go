package search

import (
	"strings"
	"sync"

	"sessiond/internal/words"
)

// relatedShare is the weight of a word that people use for another one.
const relatedShare = 0.5

var related = sync.OnceValue(func() map[string][]string {
	n := normalizer{stemmed: map[string]string{}}
	return words.RelatedBy(func(word string) string { return n.normalize(word, true).stems })
})

// relatedTo returns one term for the words that are used for another one; false if there are none.
func relatedTo(t term) (string, bool) {
	others := related()[t.norm.stems]
	if len(others) == 0 {
		return "", false
	}
	parts := make([]string, len(others))
	for i, word := range others {
		other, _ := field{text: word}.term()
		parts[i] = other.match()
	}
	return "(" + strings.Join(parts, " OR ") + ")", true
}
