package search

import (
	"slices"
	"strings"
	"unicode"
)

const (
	snippetWidth = 240     // characters
	snippetLead  = 60      // of them before the first match
	snippetReach = 1 << 20 // bytes of a message that are looked through
	maxMatches   = 500
)

// span is a match: characters [from, to) of a text, by which term.
type span struct{ from, to, term int }

// snippet cuts the part of text that shows most of the terms, on one line, and tells the
// byte ranges in it that matched. Control characters become spaces.
func snippet(text string, terms []term) (string, [][2]int) {
	if len(text) > snippetReach {
		text = strings.ToValidUTF8(text[:snippetReach], "")
	}
	shown := oneLine(text)
	folded := make([]rune, len(shown))
	for i, r := range shown {
		folded[i] = fold(r)
	}
	matches := findTerms(folded, terms)
	from := bestWindow(matches)
	to := min(len(shown), from+snippetWidth)
	if to-from < snippetWidth {
		from = max(0, to-snippetWidth)
	}
	var b strings.Builder
	var marks [][2]int
	if from > 0 {
		b.WriteString("…")
	}
	next := 0
	for i := from; i < to; i++ {
		for next < len(matches) && matches[next].from < i {
			next++
		}
		if next < len(matches) && matches[next].from == i && matches[next].to <= to {
			start := b.Len()
			for ; i < matches[next].to; i++ {
				b.WriteRune(shown[i])
			}
			marks = append(marks, [2]int{start, b.Len()})
			i--
			continue
		}
		b.WriteRune(shown[i])
	}
	if to < len(shown) {
		b.WriteString("…")
	}
	return b.String(), marks
}

// oneLine gives the characters of text with every run of white space and control characters
// as one space.
func oneLine(text string) []rune {
	out := make([]rune, 0, len(text))
	space := true
	for _, r := range text {
		if blank(r) {
			if !space {
				out = append(out, ' ')
			}
			space = true
			continue
		}
		out = append(out, r)
		space = false
	}
	for len(out) > 0 && out[len(out)-1] == ' ' {
		out = out[:len(out)-1]
	}
	return out
}

// blank tells white space and what has no form of its own, but for what joins emoji.
func blank(r rune) bool {
	if r < unicode.MaxASCII {
		return r <= ' '
	}
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d'
}

// findTerms finds where the terms stand in a folded text, in order, without overlaps.
func findTerms(text []rune, terms []term) []span {
	var found []span
	for n, t := range terms {
		for _, pattern := range t.patterns() {
			p := []rune(pattern)
			for i := 0; i+len(p) <= len(text) && len(found) < maxMatches*(n+1); i++ {
				if text[i] != p[0] || !slices.Equal(text[i:i+len(p)], p) || startsInside(text, i) {
					continue
				}
				end := i + len(p)
				for !isCJK(p[len(p)-1]) && end < len(text) && isWord(text[end]) {
					end++
				}
				if t.prefix || t.stem != "" || end == i+len(p) {
					found = append(found, span{i, end, n})
				}
				i = end - 1
			}
		}
	}
	slices.SortFunc(found, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	end := 0
	return slices.DeleteFunc(found, func(s span) bool {
		if s.from < end {
			return true
		}
		end = s.to
		return false
	})
}

// startsInside tells whether character i continues a word.
func startsInside(text []rune, i int) bool {
	return i > 0 && isWord(text[i]) && isWord(text[i-1])
}

// patterns gives the folded texts that show a term. A stem is found at the beginning of a word.
func (t term) patterns() []string {
	raw := strings.Map(fold, t.raw)
	if t.stem != "" && strings.HasPrefix(raw, t.stem) {
		return []string{t.stem}
	}
	if t.stem != "" && t.stem != raw {
		return []string{raw, t.stem}
	}
	return []string{raw}
}

// bestWindow gives the character at which a snippet should begin to show as many different
// terms as it can.
func bestWindow(matches []span) int {
	best, most := 0, 0
	for i := range matches {
		var terms uint64
		count := 0
		for _, m := range matches[i:] {
			if m.to-matches[i].from > snippetWidth-snippetLead {
				break
			}
			if terms&(1<<m.term) == 0 {
				terms |= 1 << m.term
				count++
			}
		}
		if count > most {
			best, most = max(0, matches[i].from-snippetLead), count
		}
	}
	return best
}

// plainLetters are the Latin letters with diacritics that fold takes off, as FTS5 does.
const plainLetters = "aàáâãäåāăą cçćĉċč dďđ eèéêëēĕėęě gĝğġģ hĥħ iìíîïĩīĭįı jĵ kķ lĺļľł nñńņň oòóôõöøōŏő rŕŗř sśŝşšș tţťŧț uùúûüũūŭůűų wŵ yýÿŷ zźżž"

// fold takes case and the diacritics of Latin letters off. It need not be as thorough as
// FTS5: it only finds the place to show.
func fold(r rune) rune {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	r = unicode.ToLower(r)
	if r >= 0xe0 && r < 0x250 {
		if i := strings.IndexRune(plainLetters, r); i >= 0 {
			return rune(plainLetters[strings.LastIndexByte(plainLetters[:i], ' ')+1])
		}
	}
	return r
}
