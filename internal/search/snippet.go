package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"sessiond/internal/text"
)

const (
	snippetWidth = 240     // characters
	snippetLead  = 60      // of them before the first match
	snippetReach = 1 << 20 // bytes of a message that are searched
	maxMatches   = 500
	leastWithin  = 3 // letters of a part of a word that is marked
)

// span is a match of a term: characters [from, to) of a text.
type span struct{ from, to, term int }

// snippet returns the part of text with most of the terms, on one line, and the byte ranges of the
// matches in it. Control characters become spaces.
func snippet(text string, terms []term) (string, [][2]int) {
	if len(text) > snippetReach {
		text = strings.ToValidUTF8(text[:snippetReach], "")
	}
	shown, folded := oneLine(norm.NFC.String(text))
	matches := findTerms(folded, terms)
	if len(matches) == 0 {
		matches = findParts(shown, folded, terms)
	}
	from := bestWindow(matches)
	matches = merged(matches)
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

// oneLine returns the characters of text with each run of white space and control characters as one
// space, as they are shown and folded.
func oneLine(s string) (shown, folded []rune) {
	shown, folded = make([]rune, 0, len(s)), make([]rune, 0, len(s))
	space := true
	for _, r := range strings.TrimRightFunc(s, isBlank) {
		if isBlank(r) {
			if space {
				continue
			}
			r = ' '
		}
		space = r == ' '
		shown, folded = append(shown, r), append(folded, text.Fold(r))
	}
	return shown, folded
}

// isBlank reports white space and invisible characters, except the joiner of emoji.
func isBlank(r rune) bool {
	if r < unicode.MaxASCII {
		return r <= ' '
	}
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d'
}

// findTerms returns the matches of the terms in a folded text, in order.
func findTerms(in []rune, terms []term) []span {
	var found []span
	for n, t := range terms {
		for _, pattern := range t.patterns() {
			p := []rune(pattern)
			for i := 0; i+len(p) <= len(in) && len(found) < maxMatches*(n+1); i++ {
				if in[i] != p[0] || !slices.Equal(in[i:i+len(p)], p) || startsInside(in, i) {
					continue
				}
				end := i + len(p)
				for !text.IsUnspaced(p[len(p)-1]) && end < len(in) && text.IsWord(in[end]) {
					end++
				}
				if t.prefix || end == i+len(p) || t.word && (isHash(t.raw) || t.hasStemOf(string(in[i:end]))) {
					found = append(found, span{i, end, n})
				}
				i = end - 1
			}
		}
	}
	return inOrder(found)
}

// findParts returns the places of the tokens of the terms, also within words: completion in
// shellCompletion, read_file in readFile, PR60 in PR#60.
func findParts(shown, in []rune, terms []term) []span {
	var found []span
	tokens := 0
	for _, t := range terms {
		for token := range strings.FieldsSeq(t.norm.Stems) {
			p := []rune(text.Folded(token))
			tokens++
			for i := 0; i+len(p) <= len(in) && len(found) < maxMatches*tokens; i++ {
				end := i + len(p)
				if in[i] != p[0] || !slices.Equal(in[i:end], p) {
					continue
				}
				for end < len(in) && text.IsWord(in[end]) && unicode.IsLower(shown[end]) && len(p) >= leastWithin {
					end++
				}
				if len(p) >= leastWithin || !startsInside(in, i) && (end == len(in) || !text.IsWord(in[end])) {
					found = append(found, span{i, end, tokens})
				}
			}
		}
	}
	return inOrder(found)
}

func inOrder(found []span) []span {
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	return found
}

// merged returns matches, which are in order, with those that overlap as one: of pairs of characters.
func merged(found []span) (all []span) {
	for _, s := range found {
		if last := len(all) - 1; last >= 0 && s.from < all[last].to {
			all[last].to = max(all[last].to, s.to)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// startsInside reports whether character i continues a word.
func startsInside(in []rune, i int) bool {
	return i > 0 && text.IsWord(in[i]) && text.IsWord(in[i-1])
}

// patterns returns the folded texts to find for a term: that of a word is how its other forms begin.
func (t term) patterns() (all []string) {
	raw := text.Folded(norm.NFC.String(t.raw))
	add := func(pattern string) {
		if pattern != "" && !slices.ContainsFunc(all, func(shorter string) bool {
			return strings.HasPrefix(pattern, shorter)
		}) {
			all = append(all, pattern)
		}
	}
	switch {
	case !t.word:
	case isNumber(raw):
		for _, separator := range []string{",", ".", "'", "’", " "} {
			add(strings.Join(groupsOf(raw), separator))
		}
	case groupedNumber.MatchString(raw):
		add(strings.ReplaceAll(t.norm.Text, " ", ""))
	default:
		cut, ok := strings.CutSuffix(t.norm.Stems, "i")
		switch {
		case ok && len(cut) > 1 && strings.HasPrefix(raw, cut): // happi, of happy
			add(cut)
		case strings.HasPrefix(raw, t.norm.Stems):
			add(t.norm.Stems)
		}
		for _, stems := range t.stemsIn {
			add(commonStart(raw, text.WithoutMark(stems)))
		}
		for _, form := range text.FormsOf(raw) {
			add(form)
		}
	}
	add(raw)
	return all
}

// commonStart returns how two words begin, if that is most of the second.
func commonStart(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if n < 3 || n+2 < len(b) {
		return ""
	}
	return strings.ToValidUTF8(a[:n], "")
}

// hasStemOf reports whether a word is another form of the term.
func (t term) hasStemOf(word string) bool {
	for i, l := range t.languages {
		if l.Stem(word, word) == t.stemsIn[i] {
			return true
		}
	}
	return text.Stem(word) == t.norm.Stems
}

// bestWindow returns the first character of the snippet with the most different terms.
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
