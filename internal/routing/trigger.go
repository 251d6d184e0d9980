package routing

import (
	"regexp"
	"strings"
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
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		form := `(?is)^` + regexp.QuoteMeta(word)
		if c.BotName != "" {
			form += `(?:@` + regexp.QuoteMeta(strings.TrimPrefix(c.BotName, "@")) + `)?`
		}
		if found := regexp.MustCompile(form + `(?:[\s\v\x{85}\pZ](.*))?$`).FindStringSubmatch(text); found != nil {
			t := Trigger{Reset: true, Word: word, Remainder: strings.TrimSpace(found[1])}
			t.Model, t.Remainder = c.Models.cutModel(t.Remainder)
			return t
		}
	}
	return Trigger{}
}

// withoutMentions removes the bot's names from a text where they are whole words.
func withoutMentions(text string, names []string) string {
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		mention := regexp.MustCompile(`(?i)(^|[^\pL\pN_])` + regexp.QuoteMeta(name) + `(?:[ ,:]+|([^\pL\pN_])|$)`)
		for before := ""; text != before; { // names behind one another share the space between them
			before, text = text, mention.ReplaceAllString(text, "$1$2")
		}
	}
	return text
}
