package search

import "strings"

// longestStemmed is the length in bytes above which a word is taken as it is.
const longestStemmed = 24

// stem cuts the endings of an English word in lower case: prices, priced and pricing become
// pric. It is light on purpose: what it gives is only ever compared with what it gave, and
// stands beside the words in a column of its own, so that phrases and prefixes see the words
// as they were written. Words that are not plain a–z come back as they are.
func stem(w string) string {
	if len(w) < 4 || len(w) > longestStemmed || !isPlain(w) {
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

// cutVerb cuts -ing and -ed where a syllable remains, and the doubled letter that they made.
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

func isPlain(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}
