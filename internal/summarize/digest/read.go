package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// reader splits the sentences of one passage into terms and facts.
type reader struct {
	span  *span
	terms []uint32 // of the passage

	// Of the current sentence:
	name   string // the last name
	nameAt int    // its chunk
	word   string // the last plain word
	chunks int    // so far
	shape  uint32
}

// readSentence sets the terms and the shape of a sentence and adds its facts to the span. Letters
// and digits make terms, in lower case. CJK text has no spaces: its terms are pairs of neighbouring
// characters.
func (rd *reader) readSentence(sen *sentence) {
	rd.name, rd.word, rd.chunks, rd.shape = "", "", 0, fnvOffset
	from, s, first := len(rd.terms), sen.text, true
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case isCJK(r):
			i = rd.readCJK(s, i)
			first = false
		case endsChunk(r, false):
			i += n
		default:
			i = rd.readChunk(s, i, first)
			first = false
		}
	}
	sen.terms = rd.terms[from:]
	sen.shape = uint16(rd.shape ^ rd.shape>>16)
}

// addTerm adds a term. The shape of a sentence consists of its terms without digits.
func (rd *reader) addTerm(hash uint32, hasDigit bool) {
	rd.terms = append(rd.terms, hash)
	if !hasDigit {
		rd.shape = (rd.shape ^ hash) * fnvPrime
	}
}

// readChunk reads the chunk that begins at i, adds its terms and its fact, and returns its end.
func (rd *reader) readChunk(s string, i int, first bool) (end int) {
	var f form
	hash, length, digits := uint32(fnvOffset), 0, 0 // of the current word; digits before it
	endWord := func() {
		if length > 0 {
			rd.addTerm(hash, f.digits > digits)
		}
		hash, length, digits = fnvOffset, 0, f.digits
	}
	prev := rune(0)
	for end = i; end < len(s); {
		r, n := utf8.DecodeRuneInString(s[end:])
		if endsChunk(r, f.url) {
			break
		}
		letter, digit := unicode.IsLetter(r), r >= '0' && r <= '9'
		switch {
		case letter || digit:
			f.addLetterOrDigit(r, prev, end == i)
			hash = (hash ^ uint32(unicode.ToLower(r))) * fnvPrime
			length++
		case r >= utf8.RuneSelf:
			f.money = true
		default:
			f.addMark(s, end)
			endWord()
		}
		if prev = r; r >= utf8.RuneSelf {
			prev = 'a'
		}
		end += n
	}
	endWord()
	rd.addFact(s, i, end, f, first)
	return end
}

// endsChunk reports whether r is no part of a chunk. Some delimiters may be part of a URL.
func endsChunk(r rune, inURL bool) bool {
	if r < utf8.RuneSelf {
		return delimiter[r] && !(inURL && strings.ContainsRune("=?;,!", r))
	}
	return isCJK(r) || !unicode.IsLetter(r) && !unicode.Is(unicode.Sc, r)
}

// readCJK reads the run of CJK text that begins at i and returns its end. A run of katakana is
// often a name.
func (rd *reader) readCJK(s string, i int) (end int) {
	kana, prev := -1, rune(0)
	for end = i; end < len(s); {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !isCJK(r) {
			break
		}
		if prev != 0 {
			rd.addTerm((fnvOffset^uint32(prev))*fnvPrime^uint32(r)*2654435761, false)
		}
		prev = r
		switch isKana := r >= 0x30a1 && r <= 0x30fe; {
		case isKana && kana < 0:
			kana = end
		case !isKana && kana >= 0:
			rd.addKatakana(s[kana:end])
			kana = -1
		}
		end += n
	}
	if kana >= 0 {
		rd.addKatakana(s[kana:end])
	}
	return end
}

func (rd *reader) addKatakana(s string) {
	if utf8.RuneCountInString(s) >= 3 {
		rd.span.facts = append(rd.span.facts, fact{
			text: s, kind: factName, sentence: len(rd.span.sentences),
			term: rd.terms[len(rd.terms)-1],
		})
		rd.name, rd.nameAt, rd.word = s, rd.chunks, ""
	}
}

const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
)

// delimiter marks the ASCII characters that end a chunk.
var delimiter = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c <= ' ' || c == 0x7f
	}
	for _, c := range "\"'`,;()[]{}<>|=*!?\\^" {
		t[c] = true
	}
	return t
}()

// isCJK reports whether r is of a script that is written without spaces.
func isCJK(r rune) bool {
	return r >= 0x3040 && r <= 0x30ff || r >= 0x3400 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7af ||
		r >= 0xf900 && r <= 0xfaff || r >= 0x20000 && r <= 0x3134f
}
