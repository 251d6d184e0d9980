package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenizer is FTS5's part of the work: it folds case and diacritics and splits at what is
// neither letter nor digit, so that internal/store.go and created_at are phrases of their
// pieces. A currency sign belongs to a token, but only before a digit: see normalize.
const tokenizer = `unicode61 remove_diacritics 2 tokenchars ''$€£¥''`

const (
	// A longer run of letters and digits is no word (base64, minified code): only its
	// beginning is indexed, and a query for it is cut alike.
	maxWord  = 256 // bytes
	keptWord = 64  // bytes

	// maxText bounds what is indexed of one message.
	maxText = 8 << 20 // bytes

	// tagMark begins every token that stands for a fact about a message. It is a private-use
	// character, which FTS5 takes as part of a word, and is never let through from text.
	tagMark = '\uE000'
)

// normalized is text made ready for FTS5, for indexing and for asking alike.
type normalized struct {
	text  string // for the column text, or for a quoted phrase
	stems string // of its English words, where they differ from the word, with a space between each two
	words int    // about how many tokens text has
	open  bool   // it ends in a single character of CJK, which is but the beginning of a token
}

// normalize prepares text: runs of Chinese, Japanese and Korean become overlapping pairs,
// a possessive 's goes, $129 becomes "$129 129" so that it is found with and without its
// sign, and control and private-use characters become spaces. The last character of a run of
// CJK also stands alone, so that a token begins at each character and a single one is found
// as a prefix. whole says that s is a whole text and not a phrase that is asked for.
func normalize(s string, whole bool) normalized {
	var n normalizer
	n.out.Grow(len(s) + len(s)/8)
	if len(s) > maxText {
		s = s[:maxText]
	}
	for i := 0; i < len(s); {
		if end := plainWord(s, i); end > i { // most text
			n.endPairs(false)
			n.word.WriteString(s[i:end])
			i = end
			continue
		}
		i += n.step(s[i:])
	}
	n.endWord()
	open := !whole && len(n.pairs) == 1
	n.endPairs(!whole)
	return normalized{text: n.out.String(), stems: n.stems.String(), words: n.words, open: open}
}

// plainWord gives the end of the ASCII letters and digits that begin at i.
func plainWord(s string, i int) int {
	for i < len(s) && s[i] < utf8.RuneSelf && isWord(rune(s[i])) {
		i++
	}
	return i
}

type normalizer struct {
	out   strings.Builder
	word  strings.Builder // the word that is being read
	pairs []rune          // the run of CJK that is being read
	stems strings.Builder
	words int
}

// step takes what begins s and tells how many bytes it took.
func (n *normalizer) step(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case isCJK(r):
		n.endWord()
		n.pairs = append(n.pairs, r)
		return size
	case isWord(r):
		n.endPairs(false)
		n.word.WriteString(s[:size])
		return size
	}
	if r == '\'' || r == '’' {
		if rest := s[size:]; n.word.Len() > 0 && isPossessive(rest) {
			n.endWord()
			return size + 1
		}
	}
	n.endWord()
	n.endPairs(false)
	if strings.ContainsRune("$€£¥", r) {
		if d := leadingDigits(s[size:]); d > 0 {
			n.put(s[:size+d])
			n.put(s[size : size+d])
			return size + d
		}
	}
	return size
}

func (n *normalizer) put(token string) {
	if n.out.Len() > 0 {
		n.out.WriteByte(' ')
	}
	n.out.WriteString(token)
	n.words++
}

func (n *normalizer) endWord() {
	if n.word.Len() == 0 {
		return
	}
	w := n.word.String()
	n.word.Reset()
	if len(w) > maxWord {
		w = strings.ToValidUTF8(w[:keptWord], "")
	}
	n.put(w)
	if len(w) <= longestStemmed {
		lower := strings.ToLower(w)
		if cut := stem(lower); cut != lower {
			if n.stems.Len() > 0 {
				n.stems.WriteByte(' ')
			}
			n.stems.WriteString(cut)
		}
	}
}

// endPairs writes the run of CJK. Its last character is left out where a phrase ends with it,
// because in the text that is asked for the run may go on.
func (n *normalizer) endPairs(phraseEnd bool) {
	for i := range n.pairs {
		switch {
		case i+1 < len(n.pairs):
			n.put(string(n.pairs[i : i+2]))
		case !phraseEnd || len(n.pairs) == 1:
			n.put(string(n.pairs[i]))
		}
	}
	n.pairs = n.pairs[:0]
}

func isPossessive(rest string) bool {
	if rest == "" || (rest[0] != 's' && rest[0] != 'S') {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest[1:])
	return len(rest) == 1 || !isWord(r)
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// isWord tells what FTS5's unicode61 takes as part of a word, without CJK and without what
// is private.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r)) && !isCJK(r)
}

// isCJK tells whether r is of a script that writes without spaces between words, or, for
// Korean, whose words take their endings without one.
func isCJK(r rune) bool {
	return r >= 0x2E80 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}
