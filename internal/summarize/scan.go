package summarize

import (
	"unicode"
	"unicode/utf8"

	"sessiond/internal/redact"
	"sessiond/internal/session"
)

// speaker says who made a text, for scoring.
type speaker uint8

const (
	byPerson speaker = iota
	byModel
	byTool
	byProgram
)

// sentence is one sentence of the span with what scoring needs to know of it.
type sentence struct {
	text      string
	msg       int32 // index into the span's messages
	nth       int32 // in its part
	terms     [2]int32
	facts     int32 // numbers, paths, URLs, identifiers in it
	numbers   int32
	shape     uint16 // hash of its terms without a digit
	by        speaker
	last      bool // of its part
	failed    bool // in the result of a call that failed
	duplicate bool // the same sentence stood in the span before
	pasted    bool // by a person, but more likely output or code that was put in
}

// mixed is from how many sentences on what a person sends may be partly pasted.
const mixed = 3

// buckets is the size of the table that counts terms by their hash. A collision makes a
// rare term look less rare, nothing worse.
const buckets = 1 << 18

// span is what one pass over the messages finds.
type span struct {
	msgs      []session.Message
	sentences []sentence
	terms     []uint32        // hashes of the terms of all sentences, one after the other
	count     []uint16        // occurrences of a term by its hash
	alike     []uint16        // sentences with the same shape
	asked     []bool          // whether a person used the term
	wanted    map[uint32]bool // terms of the instructions
	facts     []fact
	seen      map[uint64]struct{} // sentences, by hash

	// While one sentence is read:
	name   string // the last name, and which chunk it was
	nameAt int
	word   string // the last plain word
	nth    int    // chunks so far
	shape  uint32
	cjk    rune // the CJK rune before, for bigrams
}

// scan reads the text of the messages once. Reasoning is left out: it is the model's own.
// Secrets are masked before anything else looks at the text.
func scan(msgs []session.Message) *span {
	sp := &span{
		msgs:  msgs,
		count: make([]uint16, buckets),
		alike: make([]uint16, 1<<16),
		asked: make([]bool, buckets),
	}
	sp.grow()
	for i := range msgs {
		m := &msgs[i]
		if !told(m) {
			continue
		}
		by := speakerOf(m)
		for k := range m.Parts {
			p := &m.Parts[k]
			switch p.Kind {
			case session.PartText, session.PartRefusal:
				sp.read(i, by, p.Content(), false)
			case session.PartToolResult:
				sp.read(i, byTool, p.Content(), p.IsError != nil && *p.IsError)
			case session.PartToolCall:
				sp.read(i, byTool, p.Arguments, false)
			}
		}
	}
	return sp
}

// grow makes room for what text of this size usually holds.
func (sp *span) grow() {
	size := 0
	for i := range sp.msgs {
		for k := range sp.msgs[i].Parts {
			p := &sp.msgs[i].Parts[k]
			size += len(p.Content()) + len(p.Arguments)
		}
	}
	sp.sentences = make([]sentence, 0, size/60+16)
	sp.terms = make([]uint32, 0, size/6+16)
	sp.facts = make([]fact, 0, size/24+16)
	sp.seen = make(map[uint64]struct{}, size/100+16)
}

// told tells whether a message is part of the conversation as a model knows it.
func told(m *session.Message) bool {
	switch m.Kind {
	case session.KindMarker, session.KindCustom, session.KindUnknown:
		return false
	}
	return m.Role != session.System
}

func speakerOf(m *session.Message) speaker {
	switch {
	case m.Origin == session.Person:
		return byPerson
	case m.Origin == session.ByTool || m.Role == session.Tool:
		return byTool
	case m.Origin == session.Model || m.Role == session.Assistant:
		return byModel
	}
	return byProgram
}

// read takes one part's text into the span.
func (sp *span) read(msg int, by speaker, text string, failed bool) {
	text, _ = redact.Mask(text)
	first, nth := len(sp.sentences), int32(0)
	pasted := false
	sentences(text, func(s string) {
		from, facts := int32(len(sp.terms)), len(sp.facts)
		sp.words(s, by)
		sen := sentence{
			text: s, msg: int32(msg), nth: nth, by: by, failed: failed,
			shape: uint16(sp.shape ^ sp.shape>>16),
			terms: [2]int32{from, int32(len(sp.terms))}, facts: int32(len(sp.facts) - facts),
		}
		for _, f := range sp.facts[facts:] {
			if f.kind == factAmount || f.kind == factNumber || f.kind == factVersion {
				sen.numbers++
			}
		}
		if by == byPerson {
			pasted = pasted || !plain(s)
			sen.pasted = pasted
		}
		if sp.alike[sen.shape] < 1<<15 {
			sp.alike[sen.shape]++
		}
		key := uint64(len(s)) << 32
		for _, t := range sp.terms[from:] {
			key = (key ^ uint64(t)) * 1099511628211
		}
		if _, dup := sp.seen[key]; dup {
			sen.duplicate = true
		}
		sp.seen[key] = struct{}{}
		sp.sentences = append(sp.sentences, sen)
		nth++
	})
	n := len(sp.sentences)
	if n == first {
		return
	}
	sp.sentences[n-1].last = true
	if by == byPerson && n-first < mixed { // a path or two in what was typed
		for k := first; k < n; k++ {
			sp.sentences[k].pasted = wordless(sp.sentences[k].text)
		}
	} else if end := &sp.sentences[n-1]; end.pasted {
		end.pasted = !plain(end.text) // what is thought of it comes behind it
	}
}

// term counts one term.
func (sp *span) term(h uint32, by speaker) {
	sp.terms = append(sp.terms, h)
	k := h % buckets
	if sp.count[k] < 1<<15 {
		sp.count[k]++
	}
	if by == byPerson {
		sp.asked[k] = true
	}
}

// words splits a sentence into terms and facts. Letters and digits make terms, case folded;
// CJK text has no spaces, so its terms are pairs of neighbouring characters.
func (sp *span) words(s string, by speaker) {
	sp.name, sp.word, sp.nth, sp.cjk, sp.shape = "", "", 0, 0, fnvOffset
	first := true
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && delimiter[c] {
			sp.cjk = 0
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if isCJK(r) {
				i = sp.cjkRun(s, i, by)
				first = false
				continue
			}
			if !unicode.IsLetter(r) && !unicode.Is(unicode.Sc, r) {
				sp.cjk = 0
				i += n
				continue
			}
		}
		sp.cjk = 0
		end := sp.chunk(s, i, by, first)
		first = false
		i = end
	}
}

// chunk reads what stands between two delimiters, counts its words and keeps it when it is
// a fact. It gives the end of the chunk.
func (sp *span) chunk(s string, i int, by speaker, first bool) int {
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
				sp.term(h, by)
				if f.digits == digits {
					sp.shape = (sp.shape ^ h) * fnvPrime
				}
				h, word, digits = fnvOffset, 0, f.digits
			}
		}
		prev = c
		j++
	}
	if word > 0 {
		sp.term(h, by)
		if f.digits == digits {
			sp.shape = (sp.shape ^ h) * fnvPrime
		}
	}
	if j == i {
		return i + 1
	}
	sp.keep(s, i, j, f, first)
	return j
}

// cjkRun reads a run of CJK text and gives its end. A run of katakana is often a name.
func (sp *span) cjkRun(s string, i int, by speaker) int {
	kana := -1
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isCJK(r) {
			break
		}
		if sp.cjk != 0 {
			h := (fnvOffset^uint32(sp.cjk))*fnvPrime ^ uint32(r)*2654435761
			sp.term(h, by)
			sp.shape = (sp.shape ^ h) * fnvPrime
		}
		sp.cjk = r
		switch isKana := r >= 0x30a1 && r <= 0x30fe; {
		case isKana && kana < 0:
			kana = i
		case !isKana && kana >= 0:
			sp.katakana(s[kana:i])
			kana = -1
		}
		i += n
	}
	if kana >= 0 {
		sp.katakana(s[kana:i])
	}
	return i
}

func (sp *span) katakana(s string) {
	if utf8.RuneCountInString(s) >= 3 {
		sp.facts = append(sp.facts, fact{text: s, kind: factName, sentence: int32(len(sp.sentences)), term: int32(len(sp.terms)) - 1})
		sp.name, sp.nameAt, sp.word = s, sp.nth, ""
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
