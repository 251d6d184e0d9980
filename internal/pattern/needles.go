package pattern

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most texts that a pattern is tried on do not match it. needles are texts of which each match contains one; to look
// for them takes a small part of the time of the regular expression.
type needles struct {
	begins [hashed / 64]uint64     // by the hash of two bytes with which a needle begins
	byByte [utf8.RuneSelf][]needle // by the first byte, below 0x80
	other  []needle                // with another first byte
}

// needle is a text in small letters, if it is ASCII.
type needle struct {
	text         string
	starts, ends bool // at the border of a word
}

const (
	hashed = 1 << 12
	// border stands in the strings of a match for \b.
	border = "\x00"
	// mostNeedles is the limit of the strings of an expression.
	mostNeedles = 400
)

// needlesOf returns the needles of an expression; nil if a match may be without any.
func needlesOf(expression string) *needles {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	exact, needed := stringsOf(re)
	if exact != nil {
		needed = exact
	}
	found := &needles{}
	for _, s := range needed {
		n := needle{text: strings.ReplaceAll(s, border, "")}
		if n.text == "" {
			return nil
		}
		n.starts = strings.HasPrefix(s, border) && isWordByte(n.text[0])
		n.ends = strings.HasSuffix(s, border) && isWordByte(n.text[len(n.text)-1])
		found.add(n)
	}
	if needed == nil {
		return nil
	}
	return found
}

func (n *needles) add(one needle) {
	first := one.text[0]
	if len(one.text) > 1 {
		n.mark(first, one.text[1])
	} else {
		for second := range 256 {
			n.mark(first, byte(second))
		}
	}
	if first < utf8.RuneSelf {
		n.byByte[first] = append(n.byByte[first], one)
	} else {
		n.other = append(n.other, one)
	}
}

func (n *needles) mark(first, second byte) {
	h := hash(first, second)
	n.begins[h/64] |= 1 << (h % 64)
}

func hash(first, second byte) uint { return (uint(first)*67 ^ uint(second)*5) % hashed }

// mayMatch reports whether a text has a needle.
func (n *needles) mayMatch(s string) bool {
	for i := range len(s) {
		first, second := lower[s[i]], byte(0)
		if i+1 < len(s) {
			second = lower[s[i+1]]
		}
		if h := hash(first, second); n.begins[h/64]&(1<<(h%64)) != 0 && n.standsAt(s, i, first) {
			return true
		}
	}
	// (?i) takes these two letters for s and k.
	return strings.Contains(s, "ſ") || strings.Contains(s, "\u212a")
}

func (n *needles) standsAt(s string, at int, first byte) bool {
	candidates := n.other
	if first < utf8.RuneSelf {
		candidates = n.byByte[first]
	}
	for k := range candidates {
		if c := &candidates[k]; c.standsAt(s, at) {
			return true
		}
	}
	return false
}

func (n *needle) standsAt(s string, at int) bool {
	end := at + len(n.text)
	if end > len(s) || n.starts && at > 0 && isWordByte(s[at-1]) || n.ends && end < len(s) && isWordByte(s[end]) {
		return false
	}
	for i := range len(n.text) {
		if lower[s[at+i]] != n.text[i] {
			return false
		}
	}
	return true
}

// lower has the small letter of each byte of ASCII, and all others.
var lower = func() (table [256]byte) {
	for c := range table {
		table[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	return table
}()

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// stringsOf returns all strings that an expression matches, with borders, if they are few; else strings of which each
// match contains one, if there are such.
func stringsOf(re *syntax.Regexp) (exact, needed []string) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return []string{""}, nil
	case syntax.OpWordBoundary:
		return []string{border}, nil
	case syntax.OpLiteral:
		return stringsOfLiteral(re)
	case syntax.OpCharClass:
		return charactersOf(re), nil
	case syntax.OpCapture:
		return stringsOf(re.Sub[0])
	case syntax.OpQuest:
		if exact, _ := stringsOf(re.Sub[0]); exact != nil {
			return append([]string{""}, exact...), nil
		}
	case syntax.OpPlus:
		return nil, neededOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return nil, neededOf(re.Sub[0])
		}
	case syntax.OpConcat:
		return stringsOfSequence(re)
	case syntax.OpAlternate:
		return stringsOfChoice(re)
	}
	return nil, nil
}

// neededOf returns strings of which each match contains one; nil if a match may be without any.
func neededOf(re *syntax.Regexp) []string {
	exact, needed := stringsOf(re)
	if exact == nil {
		return needed
	}
	if shortest(exact) == 0 {
		return nil
	}
	return exact
}

// stringsOfLiteral returns the literal. One with letters beyond ASCII that have two cases is cut to its longest part
// without them.
func stringsOfLiteral(re *syntax.Regexp) (exact, needed []string) {
	text := string(re.Rune)
	if re.Flags&syntax.FoldCase == 0 {
		return []string{lowerASCII(text)}, nil
	}
	longest, whole := "", true
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= utf8.RuneSelf && hasCases(r) }) {
		whole = len(part) == len(text)
		if len(part) > len(longest) {
			longest = part
		}
	}
	switch {
	case longest == "":
		return nil, nil
	case whole:
		return []string{lowerASCII(text)}, nil
	}
	return nil, []string{lowerASCII(longest)}
}

func hasCases(r rune) bool { return unicode.SimpleFold(r) != r }

func lowerASCII(s string) string {
	out := []byte(s)
	for i, c := range out {
		out[i] = lower[c]
	}
	return string(out)
}

// charactersOf returns the characters of a small class; nil for another one.
func charactersOf(re *syntax.Regexp) (all []string) {
	const most = 12
	for i := 0; i+1 < len(re.Rune); i += 2 {
		if re.Rune[i+1]-re.Rune[i] >= most {
			return nil
		}
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if r == 'ſ' || r == '\u212a' { // mayMatch looks for them
				continue
			}
			if s := lowerASCII(string(r)); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		if len(all) > most {
			return nil
		}
	}
	return all
}

func stringsOfSequence(re *syntax.Regexp) (exact, needed []string) {
	current, whole := []string{""}, true
	best := func(other []string) {
		if other != nil && shortest(other) > 0 && (needed == nil || shortest(other) > shortest(needed)) {
			needed = other
		}
	}
	for _, sub := range re.Sub {
		exact, inside := stringsOf(sub)
		if exact != nil && len(exact)*len(current) <= mostNeedles {
			current = joined(current, exact)
			continue
		}
		whole = false
		best(current)
		current = []string{""}
		if exact != nil {
			current = exact
			continue
		}
		best(inside)
	}
	if whole {
		return current, nil
	}
	best(current)
	return nil, needed
}

func stringsOfChoice(re *syntax.Regexp) (exact, needed []string) {
	whole := true
	for _, sub := range re.Sub {
		e, n := stringsOf(sub)
		if e == nil {
			whole = false
			e = n
		}
		if e == nil || len(exact)+len(e) > mostNeedles {
			return nil, nil
		}
		exact = append(exact, e...)
	}
	if whole {
		return exact, nil
	}
	if shortest(exact) == 0 {
		return nil, nil
	}
	return nil, exact
}

func joined(before, after []string) (all []string) {
	for _, a := range before {
		for _, b := range after {
			all = append(all, a+b)
		}
	}
	return all
}

// shortest returns the length of the shortest string, without borders.
func shortest(all []string) int {
	least := mostNeedles
	for _, s := range all {
		least = min(least, len(s)-strings.Count(s, border))
	}
	return least
}
