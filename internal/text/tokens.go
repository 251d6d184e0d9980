package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// A longer run of letters and digits is no word (base64, minified code): only its beginning is
	// a token, of at most KeptWord bytes.
	maxWord  = 256 // bytes
	KeptWord = 64  // bytes

	// An identifier is split into its words up to this length, and into at most this many.
	longestName = 40 // bytes
	mostParts   = 6

	// MaxText is the part of a text that has tokens.
	MaxText = 8 << 20 // bytes

	// symbolMark begins the token of an emoji. It is a private-use character, which FTS5 treats as part of a word, and
	// which Tokenize removes from text.
	symbolMark = '\uE001'
)

// Tokens are the tokens of a text, each list separated by spaces.
type Tokens struct {
	Text      string // the words as written; "" of a text for an index
	Stems     string // the stem of each word
	Inflected string // the words that are not their own stem, in lower case
	Symbols   string // tokens of its emoji
	Count     int    // without those of emoji
	Open      bool   // it ends in a single character without spaces, which is only the beginning of a token
}

// Tokenize splits a text for an index or a query: runs of scripts without spaces become overlapping pairs of
// characters, a possessive 's is dropped, $129 becomes "$129 129" so that it is found with and without its sign,
// getUserName is followed by its parts, and control and private-use characters become spaces. Composed and decomposed
// letters are one. The last character of a run is also a token of its own, so that a token begins at each character and
// a single one is found as a prefix. whole says that s is a whole text, not a phrase of a query.
func Tokenize(s string, in Language, whole bool) Tokens {
	return (&Tokenizer{}).Tokenize(s, in, whole)
}

// Tokenizer tokenizes texts one after the other and remembers the stems of their words.
type Tokenizer struct {
	s        string
	at       int      // what of s is read
	word     string   // the current word, up to at
	run      []string // the characters, with their marks, of the current run without spaces
	language Language // of the text

	text, stems, inflected, symbols strings.Builder
	words                           int

	known map[wordKey]wordForms // for an index, which has no use for Text; nil: nothing is remembered
}

type wordKey struct {
	word     string
	language Language
}

// wordForms are a word in small letters, folded, its stem, and the words that it consists of.
type wordForms struct {
	lower, stem string
	parts       []string
}

// mostKnown is the number of words that a tokenizer remembers, some 10 MB.
const mostKnown = 1 << 16

// NewTokenizer returns a tokenizer for an index. It returns no Text.
func NewTokenizer() *Tokenizer { return &Tokenizer{known: map[wordKey]wordForms{}} }

// Tokenize does what the function Tokenize does.
func (n *Tokenizer) Tokenize(s string, in Language, whole bool) Tokens {
	if len(s) > MaxText {
		s = s[:MaxText]
	}
	*n = Tokenizer{known: n.known, language: in, s: norm.NFC.String(s)}
	n.stems.Grow(len(s))
	for n.at < len(n.s) {
		n.at += n.step()
	}
	n.endWord()
	open := !whole && len(n.run) == 1
	n.endRun(!whole)
	n.s = ""
	return Tokens{
		Text: n.text.String(), Stems: n.stems.String(), Inflected: n.inflected.String(), Symbols: n.symbols.String(),
		Count: n.words, Open: open,
	}
}

// step reads a character, or a run of ASCII letters and digits, and returns its length.
func (n *Tokenizer) step() int {
	s := n.s[n.at:]
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case IsUnspaced(r):
		n.endWord()
		if last := len(n.run) - 1; last >= 0 && IsMark(r) {
			n.run[last] += s[:size]
		} else {
			n.run = append(n.run, s[:size])
		}
		return size
	case IsWord(r):
		n.endRun(false)
		for r < utf8.RuneSelf && size < len(s) && s[size] < utf8.RuneSelf && IsWord(rune(s[size])) {
			size++
		}
		n.word = n.s[n.at-len(n.word) : n.at+size]
		return size
	case IsSymbol(r):
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

func (n *Tokenizer) writeToken(token string) {
	n.writeText(token)
	write(&n.stems, token)
	n.words++
}

func (n *Tokenizer) writeText(token string) {
	if n.known == nil {
		write(&n.text, token)
	}
}

func write(to *strings.Builder, token string) {
	if to.Len() > 0 {
		to.WriteByte(' ')
	}
	to.WriteString(token)
}

func (n *Tokenizer) endWord() {
	if n.word == "" {
		return
	}
	w := n.word
	n.word = ""
	if len(w) > maxWord {
		w = strings.ToValidUTF8(w[:KeptWord], "")
	}
	for _, part := range n.writeWord(w) {
		n.writeWord(part)
	}
}

// writeWord writes a word and returns the words that it consists of.
func (n *Tokenizer) writeWord(w string) (parts []string) {
	forms := n.forms(w)
	n.writeText(w)
	write(&n.stems, forms.stem)
	if WithoutMark(forms.stem) != forms.lower {
		write(&n.inflected, forms.lower)
	}
	n.words++
	return forms.parts
}

func (n *Tokenizer) forms(w string) wordForms {
	if known, ok := n.known[wordKey{w, n.language}]; ok {
		return known
	}
	if n.known != nil {
		w = strings.Clone(w) // a part of the text would keep all of it in memory
	}
	lower := Plain(w)
	forms := wordForms{lower: lower, stem: n.language.Stem(w, lower), parts: IdentifierParts(w)}
	if n.known != nil {
		if len(n.known) >= mostKnown {
			clear(n.known)
		}
		n.known[wordKey{w, n.language}] = forms
	}
	return forms
}

// IdentifierParts returns the words within a name such as getUserName, HTTPServer or sha256sum; none for
// a plain word, and for what has too many borders to be a name (base64), or single letters between them.
func IdentifierParts(w string) []string {
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
func (n *Tokenizer) endRun(phraseEnd bool) {
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
	return len(rest) == 1 || !IsWord(r)
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
