package summarize

import (
	"unicode"
	"unicode/utf8"

	"sessiond/internal/redact"
)

// passage is one text of a message, with who made it.
type passage struct {
	text   string
	by     speaker
	failed bool // it is the result of a call that failed
}

// reading is what is found in one passage: the same wherever that stands. Sentences, terms and
// facts are numbered from its beginning.
type reading struct {
	sentences []sentence
	terms     []uint32
	facts     []fact
}

// reader reads passages, one at a time.
type reader struct {
	reading

	// While one sentence is read:
	name   string // the last name, and which chunk it was
	nameAt int
	word   string // the last plain word
	nth    int    // chunks so far
	shape  uint32
	cjk    rune // the CJK rune before, for bigrams
}

// read gives what is found in a passage, until the next one is read.
func (rd *reader) read(at passage) *reading {
	rd.sentences, rd.terms, rd.facts = rd.sentences[:0], rd.terms[:0], rd.facts[:0]
	text, _ := redact.Mask(at.text)
	pasted := false
	sentences(text, func(s string) {
		from, facts := len(rd.terms), len(rd.facts)
		rd.words(s)
		sen := sentence{
			text: s, nth: int32(len(rd.sentences)), by: at.by, failed: at.failed,
			shape: uint16(rd.shape ^ rd.shape>>16), key: uint64(len(s)) << 32,
			terms: [2]int32{int32(from), int32(len(rd.terms))}, facts: int32(len(rd.facts) - facts),
		}
		for _, f := range rd.facts[facts:] {
			if f.kind == factAmount || f.kind == factNumber || f.kind == factVersion {
				sen.numbers++
			}
		}
		if at.by == byPerson {
			pasted = pasted || !plain(s)
			sen.pasted = pasted
		}
		for _, t := range rd.terms[from:] {
			sen.key = (sen.key ^ uint64(t)) * 1099511628211
		}
		rd.sentences = append(rd.sentences, sen)
	})
	n := len(rd.sentences)
	if n == 0 {
		return &rd.reading
	}
	rd.sentences[n-1].last = true
	if at.by == byPerson && n < mixed { // a path or two in what was typed
		for k := range rd.sentences {
			rd.sentences[k].pasted = wordless(rd.sentences[k].text)
		}
	} else if end := &rd.sentences[n-1]; end.pasted {
		end.pasted = !plain(end.text) // what is thought of it comes behind it
	}
	return &rd.reading
}

// words splits a sentence into terms and facts. Letters and digits make terms, case folded;
// CJK text has no spaces, so its terms are pairs of neighbouring characters.
func (rd *reader) words(s string) {
	rd.name, rd.word, rd.nth, rd.cjk, rd.shape = "", "", 0, 0, fnvOffset
	first := true
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && delimiter[c] {
			rd.cjk = 0
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if isCJK(r) {
				i = rd.cjkRun(s, i)
				first = false
				continue
			}
			if !unicode.IsLetter(r) && !unicode.Is(unicode.Sc, r) {
				rd.cjk = 0
				i += n
				continue
			}
		}
		rd.cjk = 0
		end := rd.chunk(s, i, first)
		first = false
		i = end
	}
}

// chunk reads what stands between two delimiters, counts its words and keeps it when it is
// a fact. It gives the end of the chunk.
func (rd *reader) chunk(s string, i int, first bool) int {
	var f form
	h, word, digits := uint32(fnvOffset), 0, 0
	j, prev := i, byte(0)
	for j < len(s) {
		c := s[j]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[j:])
			letter := unicode.IsLetter(r)
			if isCJK(r) || !letter && !unicode.Is(unicode.Sc, r) {
				break
			}
			if letter {
				f.letters++
				if unicode.IsUpper(r) {
					f.upper++
					if j == i {
						f.capital = true
					}
				}
				h = (h ^ uint32(unicode.ToLower(r))) * fnvPrime
				word++
			} else {
				f.money = true
			}
			prev = 'a'
			j += n
			continue
		}
		if delimiter[c] && !(f.url && urlByte(c)) {
			break
		}
		switch {
		case c >= 'a' && c <= 'z':
			f.letters++
			f.lower++
			h = (h ^ uint32(c)) * fnvPrime
			word++
		case c >= 'A' && c <= 'Z':
			f.letters++
			f.upper++
			if j == i {
				f.capital = true
			} else if prev >= 'a' && prev <= 'z' {
				f.inner = true
			}
			h = (h ^ uint32(c|0x20)) * fnvPrime
			word++
		case c >= '0' && c <= '9':
			f.digits++
			h = (h ^ uint32(c)) * fnvPrime
			word++
		default:
			f.mark(s, j)
			if word > 0 {
				rd.terms = append(rd.terms, h)
				if f.digits == digits {
					rd.shape = (rd.shape ^ h) * fnvPrime
				}
				h, word, digits = fnvOffset, 0, f.digits
			}
		}
		prev = c
		j++
	}
	if word > 0 {
		rd.terms = append(rd.terms, h)
		if f.digits == digits {
			rd.shape = (rd.shape ^ h) * fnvPrime
		}
	}
	if j == i {
		return i + 1
	}
	rd.keep(s, i, j, f, first)
	return j
}

// cjkRun reads a run of CJK text and gives its end. A run of katakana is often a name.
func (rd *reader) cjkRun(s string, i int) int {
	kana := -1
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isCJK(r) {
			break
		}
		if rd.cjk != 0 {
			h := (fnvOffset^uint32(rd.cjk))*fnvPrime ^ uint32(r)*2654435761
			rd.terms = append(rd.terms, h)
			rd.shape = (rd.shape ^ h) * fnvPrime
		}
		rd.cjk = r
		switch isKana := r >= 0x30a1 && r <= 0x30fe; {
		case isKana && kana < 0:
			kana = i
		case !isKana && kana >= 0:
			rd.katakana(s[kana:i])
			kana = -1
		}
		i += n
	}
	if kana >= 0 {
		rd.katakana(s[kana:i])
	}
	return i
}

func (rd *reader) katakana(s string) {
	if utf8.RuneCountInString(s) >= 3 {
		rd.facts = append(rd.facts, fact{text: s, kind: factName, sentence: int32(len(rd.sentences)), term: int32(len(rd.terms)) - 1})
		rd.name, rd.nameAt, rd.word = s, rd.nth, ""
	}
}

const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
)

// delimiter marks the ASCII bytes that end a chunk.
var delimiter = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c <= ' ' || c == 0x7f
	}
	for _, c := range "\"'`,;()[]{}<>|=*!?\\^" {
		t[c] = true
	}
	return t
}()

// urlByte tells that a delimiter may stand inside a URL.
func urlByte(c byte) bool {
	switch c {
	case '=', '?', ';', ',', '!':
		return true
	}
	return false
}

// isCJK tells whether r is of a script that is written without spaces.
func isCJK(r rune) bool {
	return r >= 0x3040 && r <= 0x30ff || r >= 0x3400 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7af || r >= 0xf900 && r <= 0xfaff || r >= 0x20000 && r <= 0x3134f
}
