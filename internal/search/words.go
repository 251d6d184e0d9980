package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenizer configures FTS5: it folds case and diacritics and splits at everything but letters and
// digits, so that internal/store.go and created_at are phrases. A currency sign before a digit is part
// of a token: see normalize.
const tokenizer = `unicode61 remove_diacritics 2 tokenchars ''$€£¥''`

const (
	// A longer run of letters and digits is no word (base64, minified code): only its beginning is
	// indexed, and a query for it is cut in the same way.
	maxWord  = 256 // bytes
	keptWord = 64  // bytes

	// An identifier is split into its words up to this length, and into at most this many.
	longestName = 40 // bytes
	mostParts   = 6

	// maxText is the limit of the indexed text of one message.
	maxText = 8 << 20 // bytes

	// tagMark begins every token for a fact about a message. It is a private-use character, which FTS5
	// treats as part of a word, and which normalize removes from text.
	tagMark = '\uE000'
)

// normalized is text prepared for FTS5, for indexing and for queries, as tokens separated by spaces.
type normalized struct {
	text      string // the words as written
	stems     string // the stem of each word
	inflected string // the words that are not their own stem, in lower case
	words     int    // number of tokens
	open      bool   // it ends in a single CJK character, which is only the beginning of a token
}

// normalize prepares text: runs of Chinese, Japanese and Korean become overlapping pairs, a possessive
// 's is dropped, $129 becomes "$129 129" so that it is found with and without its sign, getUserName is
// followed by its parts, and control and private-use characters become spaces. The last character of a
// CJK run is also a token of its own, so that a token begins at each character and a single one is found
// as a prefix. whole says that s is a whole text, not a phrase of a query.
func normalize(s string, whole bool) normalized {
	return (&normalizer{}).normalize(s, whole)
}

// normalize may be called again: it remembers the stems of one text for the next.
func (n *normalizer) normalize(s string, whole bool) normalized {
	*n = normalizer{stemmed: n.stemmed}
	n.text.Grow(len(s) + len(s)/8)
	n.stems.Grow(len(s))
	if len(s) > maxText {
		s = s[:maxText]
	}
	for i := 0; i < len(s); {
		i += n.step(s[i:])
	}
	n.endWord()
	open := !whole && len(n.pairs) == 1
	n.endPairs(!whole)
	return normalized{text: n.text.String(), stems: n.stems.String(), inflected: n.inflected.String(), words: n.words, open: open}
}

type normalizer struct {
	word  []byte // the current word
	pairs []rune // the current CJK run

	text, stems, inflected strings.Builder
	words                  int

	stemmed map[string]string // by word; nil: nothing is remembered
}

// step consumes the beginning of s and returns its length.
func (n *normalizer) step(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case isCJK(r):
		n.endWord()
		n.pairs = append(n.pairs, r)
		return size
	case isWord(r):
		n.endPairs(false)
		n.word = append(n.word, s[:size]...)
		return size
	}
	if r == '\'' || r == '’' {
		if rest := s[size:]; len(n.word) > 0 && isPossessive(rest) {
			n.endWord()
			return size + 1
		}
	}
	n.endWord()
	n.endPairs(false)
	if strings.ContainsRune("$€£¥", r) {
		if d := leadingDigits(s[size:]); d > 0 {
			n.writeToken(s[:size+d])
			n.writeToken(s[size : size+d])
			return size + d
		}
	}
	return size
}

func (n *normalizer) writeToken(token string) {
	write(&n.text, token)
	write(&n.stems, token)
	n.words++
}

func write(to *strings.Builder, token string) {
	if to.Len() > 0 {
		to.WriteByte(' ')
	}
	to.WriteString(token)
}

func (n *normalizer) endWord() {
	if len(n.word) == 0 {
		return
	}
	w := string(n.word)
	n.word = n.word[:0]
	if len(w) > maxWord {
		w = strings.ToValidUTF8(w[:keptWord], "")
	}
	n.writeWord(w)
	for _, part := range identifierParts(w) {
		n.writeWord(part)
	}
}

func (n *normalizer) writeWord(w string) {
	lower := strings.ReplaceAll(folded(w), "ß", "ss") // Straße, STRASSE
	cut, known := n.stemmed[lower]
	if !known {
		if cut = stem(lower); n.stemmed != nil {
			n.stemmed[lower] = cut
		}
	}
	write(&n.text, w)
	write(&n.stems, cut)
	if cut != lower {
		write(&n.inflected, lower)
	}
	n.words++
}

// identifierParts returns the words within a name such as getUserName, HTTPServer or sha256sum; none for
// a plain word, and for what has too many borders to be a name (base64), or single letters between them.
func identifierParts(w string) []string {
	if len(w) < 4 || len(w) > longestName {
		return nil
	}
	var parts []string
	from := 0
	for i := 1; i < len(w); i++ {
		before, here := class(w[i-1]), class(w[i])
		border := before != here && !(before == 'A' && here == 'a')
		if before == 'A' && here == 'A' && i+1 < len(w) && class(w[i+1]) == 'a' { // the S of HTTPServer
			border = true
		}
		if border {
			parts = append(parts, w[from:i])
			from = i
		}
	}
	parts = append(parts, w[from:])
	if n := len(parts); n == 1 || n > mostParts || slices.ContainsFunc(parts, func(p string) bool { return len(p) < 2 }) {
		return nil
	}
	return parts
}

// class returns a for small letters and all that is not ASCII, A for capitals, 0 for digits.
func class(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return 'A'
	case '0' <= c && c <= '9':
		return '0'
	}
	return 'a'
}

// endPairs writes the CJK run. At the end of a phrase it leaves out the last character, because the
// run may continue in the text.
func (n *normalizer) endPairs(phraseEnd bool) {
	for i := range n.pairs {
		switch {
		case i+1 < len(n.pairs):
			n.writeToken(string(n.pairs[i : i+2]))
		case !phraseEnd || len(n.pairs) == 1:
			n.writeToken(string(n.pairs[i]))
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

// isWord reports whether FTS5's unicode61 treats r as part of a word, except CJK and private-use
// characters.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r)) && !isCJK(r)
}

// isCJK reports whether r is of a script without spaces between words, or of Korean, whose words have
// endings without a space.
func isCJK(r rune) bool {
	return r >= 0x2E80 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}
