package routing

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

// SilentToken is a model's answer when nothing is to be delivered.
const SilentToken = "NO_REPLY"

// Outcome says whether and how a reply is delivered.
type Outcome string

// The outcomes.
const (
	Deliver   Outcome = "deliver"
	Silent    Outcome = "silent"
	MediaOnly Outcome = "media_only" // silent text with an attachment, which is delivered
	Empty     Outcome = "empty"
)

// Reply returns the outcome of a reply and the text to deliver. media reports an attachment.
func Reply(text string, media bool) (Outcome, string) {
	if strings.TrimSpace(text) == "" {
		return Empty, ""
	}
	silent, deliver := decide(text)
	switch {
	case silent && media:
		return MediaOnly, ""
	case silent:
		return Silent, ""
	}
	return Deliver, deliver
}

// ReplyOf returns the outcome of a model's message and the text to deliver.
func ReplyOf(m *session.Message) (Outcome, string) {
	var texts []string
	media := false
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText:
			texts = append(texts, p.Content())
		case session.PartImage, session.PartAudio, session.PartFile:
			media = true
		}
	}
	return Reply(strings.Join(texts, "\n"), media)
}

// SilentMessage reports whether a model's message asks to deliver nothing. A message that calls tools
// is no reply yet.
func SilentMessage(m *session.Message) bool {
	outcome, _ := ReplyOf(m)
	return outcome == Silent && m.Role == session.Assistant && len(m.Calls()) == 0
}

// decide reports whether a reply is silent, and returns the text to deliver.
func decide(text string) (silent bool, deliver string) {
	rest, silent := cutLeadingToken(text)
	if silent {
		return true, ""
	}
	deliver = cutTokens(rest)
	return deliver == "" && rest != "", deliver
}

// cutLeadingToken returns a reply without a token that is joined to its first word, and reports whether its beginning
// makes it silent.
func cutLeadingToken(text string) (rest string, silent bool) {
	for {
		body := strings.TrimLeftFunc(text, func(r rune) bool { return !isLetterOrDigit(r) })
		n, exact := tokenPrefix(body)
		after := body[n:]
		leads := exact && strings.TrimSpace(strings.TrimSuffix(text, body)) == ""
		next, _ := utf8.DecodeRuneInString(after)
		switch {
		case n < len(SilentToken):
			return text, false
		case after == "":
			return text, true
		case leads && unicode.IsLetter(next): // joined to a word: keep the word
			text = after
		case leads && !unicode.IsDigit(next) && next != '_':
			return text, true
		default: // silent if the token stands alone, between marks
			return text, !strings.ContainsFunc(after, isLetterOrDigit)
		}
	}
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// tokenPrefix returns the number of bytes at the beginning of a text that are a prefix of the token,
// without regard to case, and whether their case is exact.
func tokenPrefix(text string) (n int, exact bool) {
	for n < min(len(text), len(SilentToken)) && unicode.ToUpper(rune(text[n])) == rune(SilentToken[n]) {
		n++
	}
	return n, text[:n] == SilentToken[:n]
}

// cutTokens cuts trailing tokens off, each with the white space or asterisks around it.
func cutTokens(text string) string {
	for {
		end := strings.TrimRightFunc(text, isMark)
		before, ok := strings.CutSuffix(end, SilentToken)
		cut := strings.TrimRightFunc(before, isMark)
		if !ok || cut == before && before != "" {
			return text
		}
		if cut == before { // the text was only the token
			return ""
		}
		text = cut
	}
}

func isMark(r rune) bool { return r == '*' || unicode.IsSpace(r) }
