package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a sentence in bytes, for machine output without line breaks: from the soft limit on it
// ends at the next space or comma, from the hard one on at the next character.
const (
	softSentence = 280
	hardSentence = 440
)

// splitSentences returns the sentences of text, trimmed, without empty ones. A line break ends a
// sentence, and so does a full stop of Latin or CJK script.
func splitSentences(text string) (sentences []string) {
	start := 0
	endAt := func(end int) {
		if s := trimMarkup(text[start:end]); s != "" {
			sentences = append(sentences, s)
		}
		start = end
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			endAt(i)
		case '.', '!', '?':
			if endsSentence(text, i, start) {
				endAt(i + 1)
			}
		case 0xe3, 0xef: // the first byte of 。 and of ！？
			if strings.HasPrefix(text[i:], "。") || strings.HasPrefix(text[i:], "！") || strings.HasPrefix(text[i:], "？") {
				endAt(i + 3)
				i += 2
			}
		case ' ', ',', '}', '\t':
			if i-start >= softSentence {
				endAt(i + 1)
			}
		default:
			if i-start >= hardSentence && utf8.RuneStart(c) {
				endAt(i)
			}
		}
	}
	endAt(len(text))
	return sentences
}

// wrappedLine is the length in bytes from which on a line may go on in the next one.
const wrappedLine = 50

// unwrapped joins the lines of a text that was wrapped: a long one without an end and one that begins in small letters.
func unwrapped(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var b strings.Builder
	before := ""
	for i, line := range strings.Split(text, "\n") {
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(line)
		switch {
		case i == 0:
		case len(before) >= wrappedLine && (unicode.IsLower(last) || last == ',') && unicode.IsLower(first):
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}

// endsSentence reports whether the mark at i ends the sentence that begins at start. The marks of
// "v1.2", "z. B.", "e.g. this" and "1. first" do not.
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
	isLower := func(c byte) bool { return c >= 'a' && c <= 'z' }
	lower := next < len(text) && isLower(text[next])
	// ask me. Then
	if word == 2 && isLower(text[i-1]) && isLower(text[i-2]) && next < len(text) && text[next] >= 'A' &&
		text[next] <= 'Z' {
		return !strings.Contains(" vs no pp cf al eg ie ca st dr mr ms nr ", " "+text[i-2:i]+" ")
	}
	return word >= 3 && !lower
}

// trimMarkup trims white space and the marks of lists, headings and quotes. It returns "" for a
// code fence.
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

// isPlain reports whether a sentence consists of words rather than of program output: paths,
// brackets, marks, numbers.
func isPlain(s string) bool {
	words, other := countWords(s)
	return words > 2*other
}

// isWordless reports whether a sentence contains no word.
func isWordless(s string) bool {
	words, _ := countWords(s)
	return words == 0
}

// countWords counts the words of s, and the other pieces between white space. Two characters of a
// script without spaces count as a word.
func countWords(s string) (words, other int) {
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

// isQuestion reports whether a sentence ends with a question mark.
func isQuestion(s string) bool {
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// CutText shortens s to at most n bytes, with an ellipsis, at a space if one is near, else at the
// end of a character.
func CutText(s string, n int) string {
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
