package routing

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

// SilentToken is what a model answers when nobody is to be told anything.
const SilentToken = "NO_REPLY"

// Outcome is what becomes of a reply.
type Outcome string

// The outcomes.
const (
	Deliver   Outcome = "deliver"
	Silent    Outcome = "silent"
	MediaOnly Outcome = "media_only" // silent, but with an attachment, which is delivered
	Empty     Outcome = "empty"
)

// Reply decides what of a reply is delivered. media tells that an attachment is there.
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

// ReplyOf decides what of a model's message is delivered.
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

// SilentMessage tells whether nothing of a model's message is delivered because it says so.
// One that calls tools is no reply yet.
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

// spokenBy gives the parts of a message of which a reply is made.
func spokenBy(m *session.Message) (parts []*session.Part) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartText, session.PartImage, session.PartAudio, session.PartFile:
			parts = append(parts, p)
		}
	}
	return parts
}

// Stream decides the same while a reply arrives in pieces: what Add and End give is, put
// together, what Reply gives of the whole. Its zero value is ready.
type Stream struct {
	held    string // not yet given out
	torn    string // the beginning of a character that a piece ended in
	state   streamState
	emitted bool
	dropped bool // something was cut away
}

type streamState int

const (
	atStart   streamState = iota // it may still be the token alone, or begin with it
	flowing                      // text goes out, its tail is watched
	swallowed                    // it began with the token: nothing goes out
)

// Add takes the next piece and gives what can go out now.
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

// End gives what is left to go out, and tells whether the whole reply is silent.
func (s *Stream) End() (rest string, silent bool) {
	s.held, s.torn = s.held+s.torn, ""
	if s.state == atStart {
		s.begin(true)
	}
	switch {
	case s.state == swallowed:
		return "", true
	case s.state == atStart: // nothing but white space
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

// begin decides what the beginning of a reply is, as far as it is known; whole tells that
// nothing follows.
func (s *Stream) begin(whole bool) {
	for {
		first := strings.IndexFunc(s.held, letterOrDigit)
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
		// The whole token stands there, in some case.
		after := body[n:]
		leads := exact && strings.TrimSpace(s.held[:first]) == ""
		next, _ := utf8.DecodeRuneInString(after)
		switch {
		case after == "":
			if whole {
				s.state = swallowed
			}
			return
		case leads && unicode.IsLetter(next): // glued to a word: the word is meant
			s.held, s.dropped = after, true
			continue
		case leads && (unicode.IsDigit(next) || next == '_') && strings.ContainsFunc(after, letterOrDigit):
			s.state = flowing
			return
		case leads && !unicode.IsDigit(next) && next != '_':
			s.state = swallowed
			return
		case strings.ContainsFunc(after, letterOrDigit):
			s.state = flowing
			return
		}
		if whole { // the token alone, in whatever marks
			s.state = swallowed
		}
		return
	}
}

// cutTorn cuts off the beginning of a character whose rest is yet to come.
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

func letterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// tokenPrefix tells how many bytes of a text are a beginning of the token, without case, and
// whether they are exact.
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

// tailLength tells how much of the end of a text may yet turn out to be cut off: white space
// or asterisks, each time with the token behind them, and at last a beginning of it.
func tailLength(text string) int {
	end := len(strings.TrimRightFunc(text, mark))
	for n := len(SilentToken); n > 0; n-- {
		if !strings.HasSuffix(text[:end], SilentToken[:n]) || n < len(SilentToken) && end < len(text) {
			continue
		}
		before := text[:end-n]
		if cut := strings.TrimRightFunc(before, mark); cut != before {
			return len(text) - len(cut) + tailLength(cut)
		}
	}
	return len(text) - end
}

// cutTokens cuts trailing tokens off, each with the white space or asterisks around it.
func cutTokens(text string) string {
	for {
		end := strings.TrimRightFunc(text, mark)
		before, ok := strings.CutSuffix(end, SilentToken)
		cut := strings.TrimRightFunc(before, mark)
		if !ok || cut == before && before != "" {
			return text
		}
		if cut == before { // the token was all there is
			return ""
		}
		text = cut
	}
}

func mark(r rune) bool { return r == '*' || unicode.IsSpace(r) }
