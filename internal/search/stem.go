package search

import "strings"

// longestStemmed is the limit, in bytes, of a word that is stemmed.
const longestStemmed = 24

// stem cuts the endings of an English word in lower case: prices, priced and pricing become pric.
// Stems are only compared with stems, in a column of their own; phrases and prefixes see the words as
// written. Words with other characters than a–z stay unchanged.
func stem(w string) string {
	if len(w) < 4 || len(w) > longestStemmed || !isLowerASCII(w) {
		return w
	}
	w = cutPlural(w)
	if cut, ok := cutVerb(w); ok {
		w = cut
	}
	if cut, ok := strings.CutSuffix(w, "ly"); ok && len(cut) > 3 {
		w = cut
	}
	if cut, ok := strings.CutSuffix(w, "e"); ok && len(cut) > 2 {
		w = cut
	}
	return w
}

func cutPlural(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// cutVerb cuts -ing and -ed if a syllable remains, and the letter that they doubled.
func cutVerb(w string) (string, bool) {
	for _, ending := range []string{"ing", "ed"} {
		cut, ok := strings.CutSuffix(w, ending)
		if !ok || len(cut) < 3 || !strings.ContainsAny(cut, "aeiouy") || strings.HasSuffix(w, "eed") {
			continue
		}
		if n := len(cut); n > 3 && cut[n-1] == cut[n-2] && !strings.ContainsRune("lsz", rune(cut[n-1])) {
			cut = cut[:n-1]
		}
		return cut, true
	}
	return w, false
}

func isLowerASCII(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}
