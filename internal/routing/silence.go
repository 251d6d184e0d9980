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

// Stream decides the same as Reply while a reply arrives in pieces: the results of Add and End, joined,
// are the text that Reply returns. The zero value is ready.
type Stream struct{ text, returned string }

// Add adds the next piece and returns the text that can be delivered now: no beginning and no end that may still
// become the token.
func (s *Stream) Add(piece string) string {
	s.text += piece
	rest, silent, open := begin(withoutTorn(s.text), false)
	if silent || open {
		return ""
	}
	before := len(s.returned)
	s.returned = rest[:len(rest)-tailLength(rest[before:])]
	return s.returned[before:]
}

// End returns the rest of the text to deliver, and reports whether the whole reply is silent.
func (s *Stream) End() (rest string, silent bool) {
	silent, deliver := decide(s.text)
	return deliver[len(s.returned):], silent
}

// decide reports whether a whole reply is silent, and returns the text to deliver.
func decide(text string) (silent bool, deliver string) {
	rest, silent, _ := begin(text, true)
	if silent {
		return true, ""
	}
	deliver = cutTokens(rest)
	return deliver == "" && rest != "", deliver
}

// begin judges a reply by its beginning. rest is the text without a token that is joined to its first word; open
// reports that what follows decides; whole says that nothing follows.
func begin(text string, whole bool) (rest string, silent, open bool) {
	for {
		body := strings.TrimLeftFunc(text, func(r rune) bool { return !isLetterOrDigit(r) })
		n, exact := tokenPrefix(body)
		after := body[n:]
		leads := exact && strings.TrimSpace(strings.TrimSuffix(text, body)) == ""
		next, _ := utf8.DecodeRuneInString(after)
		switch {
		case n < len(SilentToken):
			return text, false, after == "" && !whole
		case after == "":
			return text, whole, !whole
		case leads && unicode.IsLetter(next): // joined to a word: keep the word
			text = after
		case leads && !unicode.IsDigit(next) && next != '_':
			return text, true, false
		case strings.ContainsFunc(after, isLetterOrDigit):
			return text, false, false
		default: // the token alone, between marks
			return text, whole, !whole
		}
	}
}

// withoutTorn cuts off an incomplete character at the end.
func withoutTorn(text string) string {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
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

// tailLength returns the length of the end of a text that may still be cut off: white space or
// asterisks, repeated with the token behind them, and a prefix of the token at the very end.
func tailLength(text string) int {
	end := len(strings.TrimRightFunc(text, isMark))
	for n := len(SilentToken); n > 0; n-- {
		if !strings.HasSuffix(text[:end], SilentToken[:n]) || n < len(SilentToken) && end < len(text) {
			continue
		}
		before := text[:end-n]
		if cut := strings.TrimRightFunc(before, isMark); cut != before {
			return len(text) - len(cut) + tailLength(cut)
		}
	}
	return len(text) - end
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
