package routing

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message is a person's text without a connector's wrapper.
type Message struct {
	Text       string
	Authorized bool // the sender may send commands
	InGroup    bool
}

// Trigger is the reset that a message requests.
type Trigger struct {
	Reset     bool
	Word      string // the trigger, as configured
	Remainder string // the rest of the message, in its own case; "": the agent may greet
	Model     string // provider/model at the beginning of the remainder; "": none
}

// DefaultTriggers are the words that reset a conversation.
func DefaultTriggers() []string { return []string{"/new", "/reset"} }

// Triggered returns the reset that a message requests: its text is a trigger, or begins with one
// and white space. In groups, mentions of the bot are removed first.
func (c *Config) Triggered(m Message) Trigger {
	if !m.Authorized {
		return Trigger{}
	}
	text := m.Text
	if m.InGroup {
		text = withoutMentions(text, c.Mentions)
	}
	text = strings.TrimSpace(text)
	triggers := c.Triggers
	if len(triggers) == 0 {
		triggers = DefaultTriggers()
	}
	for _, word := range triggers {
		word = strings.TrimSpace(word)
		rest, ok := cutFold(text, word)
		if !ok || word == "" {
			continue
		}
		if c.BotName != "" {
			if after, named := cutFold(rest, "@"+strings.TrimPrefix(c.BotName, "@")); named {
				rest = after
			}
		}
		if rest != "" && !unicode.IsSpace(firstRune(rest)) {
			continue
		}
		t := Trigger{Reset: true, Word: word, Remainder: strings.TrimSpace(rest)}
		t.Model, t.Remainder = c.Models.cutModel(t.Remainder)
		return t
	}
	return Trigger{}
}

// withoutMentions removes the bot's names from a text where they are whole words.
func withoutMentions(text string, names []string) string {
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		for at := 0; at < len(text); {
			i := indexFold(text[at:], name)
			if i < 0 {
				break
			}
			from := at + i
			rest, _ := cutFold(text[from:], name)
			if isWord(lastRune(text[:from])) || isWord(firstRune(rest)) { // a piece of a longer word
				at = len(text) - len(rest)
				continue
			}
			text = text[:from] + strings.TrimLeft(rest, " ,:")
			at = from
		}
	}
	return text
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// cutFold cuts a prefix off without regard to case. It compares runes, because both cases of some
// letters differ in length.
func cutFold(s, prefix string) (rest string, ok bool) {
	rest = s
	for _, want := range prefix {
		got, size := utf8.DecodeRuneInString(rest)
		if size == 0 || got != want && unicode.ToLower(got) != unicode.ToLower(want) {
			return s, false
		}
		rest = rest[size:]
	}
	return rest, true
}

func indexFold(s, word string) int {
	for i := range s {
		if _, ok := cutFold(s[i:], word); ok {
			return i
		}
	}
	return -1
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}
