package summarize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths of a sentence in bytes: from soft on it ends at the next space or comma, at hard
// it ends wherever a rune does. Machine output has lines without an end.
const (
	softSentence = 280
	hardSentence = 440
)

// sentences gives the sentences of text in order, trimmed, without the empty ones. A line
// break ends one, and so does a full stop of Latin or CJK script.
func sentences(text string, yield func(string)) {
	start := 0
	emit := func(end int) {
		if s := trimMarkup(text[start:end]); s != "" {
			yield(s)
		}
		start = end
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			emit(i)
		case '.', '!', '?':
			if endsSentence(text, i, start) {
				emit(i + 1)
			}
		case 0xe3, 0xef: // the first byte of 。 and of ！？
			if strings.HasPrefix(text[i:], "。") || strings.HasPrefix(text[i:], "！") || strings.HasPrefix(text[i:], "？") {
				emit(i + 3)
				i += 2
			}
		case ' ', ',', '}', '\t':
			if i-start >= softSentence {
				emit(i + 1)
			}
		default:
			if i-start >= hardSentence && utf8.RuneStart(c) {
				emit(i)
			}
		}
	}
	emit(len(text))
}

// endsSentence tells whether the mark at i ends a sentence that began at start. "v1.2",
// "z. B.", "e.g. this" and "1. first" do not.
func endsSentence(text string, i, start int) bool {
	if i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\t' {
		return false
	}
	if text[i] != '.' {
		return true
	}
	word := 0
	for j := i - 1; j >= start && text[j] != ' ' && text[j] != '.'; j-- {
		word++
	}
	next := i + 1
	for next < len(text) && text[next] == ' ' {
		next++
	}
	lower := next < len(text) && text[next] >= 'a' && text[next] <= 'z'
	return word >= 3 && !lower
}

// trimMarkup takes white space and the marks of lists, headings and quotes off the ends of
// a line. A fence of code is nothing.
func trimMarkup(s string) string {
	s = strings.TrimSpace(s)
	for {
		rest := strings.TrimLeft(s, "-*#>+•")
		if rest == s || rest != "" && rest[0] != ' ' {
			break
		}
		s = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(s, "```") {
		return ""
	}
	return s
}

// plain tells whether a sentence consists of words rather than of what programs print: paths,
// brackets, marks, numbers. Characters that are written without spaces between words count for
// words.
func plain(s string) bool {
	words, other := wordsOf(s)
	return words > 2*other
}

// wordless tells that there is not one word in it.
func wordless(s string) bool {
	words, _ := wordsOf(s)
	return words == 0
}

// wordsOf counts words, and what stands between white space and is none.
func wordsOf(s string) (words, other int) {
	for token := range strings.FieldsSeq(s) {
		letters, rest, cjk := 0, 0, 0
		for _, r := range token {
			switch {
			case isCJK(r):
				cjk++
			case unicode.IsLetter(r) || unicode.Is(unicode.Mn, r):
				letters++
			case strings.ContainsRune(".,;:!?'’\"()-–—", r):
			default:
				rest++
			}
		}
		switch {
		case cjk > 0:
			words += 1 + cjk/2
			other += min(rest, 1)
		case letters > 0 && letters <= 24 && rest == 0:
			words++
		default:
			other++
		}
	}
	return words, other
}

// question tells whether a sentence asks.
func question(s string) bool {
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// cutRunes shortens s to at most n bytes, on a rune boundary, at a space if one is near, and
// says so with an ellipsis.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	if n <= 0 {
		return ""
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if sp := strings.LastIndexByte(s[:n], ' '); sp > n*3/4 {
		n = sp
	}
	return strings.TrimRightFunc(s[:n], unicode.IsSpace) + "…"
}
