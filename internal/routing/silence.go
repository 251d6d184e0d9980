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
	var s Stream
	out := s.Add(text)
	rest, silent := s.End()
	switch {
	case silent && media:
		return MediaOnly, ""
	case silent:
		return Silent, ""
	}
	return Deliver, out + rest
}

// ReplyOf returns the outcome of a model's message and the text to deliver.
func ReplyOf(m *session.Message) (Outcome, string) {
	var texts []string
	media := false
	for _, p := range spokenBy(m) {
		if p.Kind == session.PartText {
			texts = append(texts, p.Content())
		} else {
			media = true
		}
	}
	return Reply(strings.Join(texts, "\n"), media)
}

// SilentMessage reports whether a model's message asks to deliver nothing. A message that calls tools
// is no reply yet.
func SilentMessage(m *session.Message) bool {
	if m.Role != session.Assistant || len(m.Calls()) > 0 {
		return false
	}
	var s Stream
	for i, spoken := range spokenBy(m) {
		switch {
		case spoken.Kind != session.PartText:
			return false
		case i > 0:
			s.Add("\n")
		}
		if s.Add(spoken.Content()); s.emitted {
			return false
		}
	}
	_, silent := s.End()
	return silent
}

// spokenBy returns the parts of a message that make a reply.
func spokenBy(m *session.Message) (parts []*session.Part) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText, session.PartImage, session.PartAudio, session.PartFile:
			parts = append(parts, p)
		}
	}
	return parts
}

// Stream decides the same as Reply while a reply arrives in pieces: the results of Add and End, joined,
// are the text that Reply returns. The zero value is ready.
type Stream struct {
	held    string // not yet returned
	torn    string // an incomplete character at the end of the last piece
	state   streamState
	emitted bool
	dropped bool // some text was cut off
}

type streamState int

const (
	atStart   streamState = iota // the reply may still begin with the token
	flowing                      // text is returned, except a tail that may be the token
	swallowed                    // the reply began with the token: nothing is returned
)

// Add adds the next piece and returns the text that can be delivered now.
func (s *Stream) Add(piece string) string {
	whole, torn := cutTorn(s.torn + piece)
	s.held, s.torn = s.held+whole, torn
	if s.state == atStart {
		s.begin(false)
	}
	switch s.state {
	case swallowed:
		s.held = ""
		return ""
	case atStart:
		return ""
	}
	return s.release(len(s.held) - tailLength(s.held))
}

// End returns the rest of the text to deliver, and reports whether the whole reply is silent.
func (s *Stream) End() (rest string, silent bool) {
	s.held, s.torn = s.held+s.torn, ""
	if s.state == atStart {
		s.begin(true)
	}
	switch {
	case s.state == swallowed:
		return "", true
	case s.state == atStart: // only white space
		return "", false
	}
	if cut := cutTokens(s.held); cut != s.held {
		s.held, s.dropped = cut, true
	}
	rest = s.release(len(s.held))
	return rest, s.dropped && !s.emitted
}

func (s *Stream) release(n int) string {
	out := s.held[:n]
	s.held = s.held[n:]
	s.emitted = s.emitted || out != ""
	return out
}

// begin sets the state by the beginning of a reply, as far as it is known; whole reports that nothing
// follows.
func (s *Stream) begin(whole bool) {
	for {
		first := strings.IndexFunc(s.held, isLetterOrDigit)
		if first < 0 {
			if whole && strings.TrimSpace(s.held) != "" {
				s.state = flowing
			}
			return
		}
		body := s.held[first:]
		n, exact := tokenPrefix(body)
		if n < len(SilentToken) {
			if n < len(body) || whole {
				s.state = flowing
			}
			return
		}
		// The text begins with the whole token, in upper or lower case.
		after := body[n:]
		leads := exact && strings.TrimSpace(s.held[:first]) == ""
		next, _ := utf8.DecodeRuneInString(after)
		switch {
		case after == "":
			if whole {
				s.state = swallowed
			}
			return
		case leads && unicode.IsLetter(next): // joined to a word: keep the word
			s.held, s.dropped = after, true
			continue
		case leads && (unicode.IsDigit(next) || next == '_') && strings.ContainsFunc(after, isLetterOrDigit):
			s.state = flowing
			return
		case leads && !unicode.IsDigit(next) && next != '_':
			s.state = swallowed
			return
		case strings.ContainsFunc(after, isLetterOrDigit):
			s.state = flowing
			return
		}
		if whole { // the token alone, between marks
			s.state = swallowed
		}
		return
	}
}

// cutTorn cuts off an incomplete character at the end.
func cutTorn(text string) (whole, torn string) {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i], text[i:]
			}
			break
		}
	}
	return text, ""
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// tokenPrefix returns the number of bytes at the beginning of a text that are a prefix of the token,
// without regard to case, and whether their case is exact.
func tokenPrefix(text string) (n int, exact bool) {
	exact = true
	for n < len(SilentToken) && n < len(text) {
		a, b := text[n], SilentToken[n]
		if a != b {
			if a < 'a' || a > 'z' || a-'a'+'A' != b {
				return n, exact
			}
			exact = false
		}
		n++
	}
	return n, exact
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
