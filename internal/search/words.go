package search

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// tokenizer configures FTS5: it folds case and diacritics and splits at everything but letters, their marks and
// digits, so that internal/store.go and created_at are phrases. A currency sign before a digit is part
// of a token: see normalize.
const tokenizer = `unicode61 remove_diacritics 2 categories ''L* N* Mn Mc Co'' tokenchars ''$€£¥''`

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

	// tagMark begins every token for a fact about a message, symbolMark one for an emoji. They are private-use
	// characters, which FTS5 treats as part of a word, and which normalize removes from text.
	tagMark    = '\uE000'
	symbolMark = '\uE001'
)

// normalized is text prepared for FTS5, for indexing and for queries, as tokens separated by spaces.
type normalized struct {
	text      string // the words as written
	stems     string // the stem of each word
	inflected string // the words that are not their own stem, in lower case
	symbols   string // tokens of its emoji
	words     int    // number of tokens, without those of emoji
	open      bool   // it ends in a single character without spaces, which is only the beginning of a token
}

// normalize prepares text: runs of scripts without spaces become overlapping pairs of characters, a possessive
// 's is dropped, $129 becomes "$129 129" so that it is found with and without its sign, getUserName is
// followed by its parts, and control and private-use characters become spaces. Composed and decomposed letters are
// one. The last character of a run is also a token of its own, so that a token begins at each character and a
// single one is found as a prefix. whole says that s is a whole text, not a phrase of a query.
func normalize(s string, in language, whole bool) normalized {
	return (&normalizer{}).normalize(s, in, whole)
}

// normalize may be called again: it remembers the stems of one text for the next.
func (n *normalizer) normalize(s string, in language, whole bool) normalized {
	*n = normalizer{stemmed: n.stemmed, language: in}
	n.text.Grow(len(s) + len(s)/8)
	n.stems.Grow(len(s))
	if len(s) > maxText {
		s = s[:maxText]
	}
	s = norm.NFC.String(s)
	for i := 0; i < len(s); {
		i += n.step(s[i:])
	}
	n.endWord()
	open := !whole && len(n.run) == 1
	n.endRun(!whole)
	return normalized{
		text: n.text.String(), stems: n.stems.String(), inflected: n.inflected.String(), symbols: n.symbols.String(),
		words: n.words, open: open,
	}
}

type normalizer struct {
	word     []byte   // the current word
	run      []string // the characters, with their marks, of the current run without spaces
	language language // of the text

	text, stems, inflected, symbols strings.Builder
	words                           int

	stemmed map[string]stemmed // by language and word; nil: nothing is remembered
}

// stemmed is a word in small letters, folded, and its stem.
type stemmed struct{ lower, stem string }

// step consumes the beginning of s and returns its length.
func (n *normalizer) step(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case isUnspaced(r):
		n.endWord()
		if last := len(n.run) - 1; last >= 0 && isMark(r) {
			n.run[last] += s[:size]
		} else {
			n.run = append(n.run, s[:size])
		}
		return size
	case isWord(r):
		n.endRun(false)
		n.word = append(n.word, s[:size]...)
		return size
	case isSymbol(r):
		write(&n.symbols, string(symbolMark)+strconv.FormatInt(int64(r), 36))
	}
	if r == '\'' || r == '’' {
		if rest := s[size:]; len(n.word) > 0 && isPossessive(rest) {
			n.endWord()
			return size + 1
		}
	}
	n.endWord()
	n.endRun(false)
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
	key := w
	if n.language != english {
		key += string(rune(n.language))
	}
	s, known := n.stemmed[key]
	if !known {
		s.lower = plain(w)
		if s.stem = n.language.stem(w, s.lower); n.stemmed != nil {
			n.stemmed[key] = s
		}
	}
	write(&n.text, w)
	write(&n.stems, s.stem)
	if strings.TrimRight(s.stem, languageMarks) != s.lower {
		write(&n.inflected, s.lower)
	}
	n.words++
}

// plain returns a word in small letters without diacritics: Straße, STRASSE.
func plain(w string) string { return strings.ReplaceAll(folded(w), "ß", "ss") }

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

// endRun writes the pairs of the run. At the end of a phrase it leaves out the last character, because the
// run may continue in the text.
func (n *normalizer) endRun(phraseEnd bool) {
	for i := range n.run {
		switch {
		case i+1 < len(n.run):
			n.writeToken(n.run[i] + n.run[i+1])
		case !phraseEnd || len(n.run) == 1:
			n.writeToken(n.run[i])
		}
	}
	n.run = n.run[:0]
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

// isWord reports whether the tokenizer treats r as part of a word, except private-use characters and scripts
// without spaces.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || isMark(r)) && !isUnspaced(r)
}

// isMark reports whether r belongs to the character before it: an accent, or a vowel of Thai. The variation
// selectors of emoji are no letters' marks.
func isMark(r rune) bool {
	return r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Mc) && (r < 0xFE00 || r > 0xFE0F)
}

// isUnspaced reports whether r is of a script without spaces between words, or of Korean, whose words have
// endings without a space.
func isUnspaced(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r < 0x2E80:
		return r != '฿' && unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Hangul)
	}
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// isSymbol reports whether r is an emoji that can stand alone, not a skin tone.
func isSymbol(r rune) bool {
	return r >= 0x1F000 && r < 0x1FB00 && (r < 0x1F3FB || r > 0x1F3FF) || r >= 0x2600 && r < 0x27C0 ||
		r >= 0x2B1B && r < 0x2B56 || r >= 0x231A && r < 0x2400 && unicode.IsSymbol(r)
}
