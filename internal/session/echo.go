package session

import "strings"

// Around what sessiond puts into a conversation of another program: answers of its tools, texts of its hooks.
const (
	echoTag   = "from_sessiond"
	echoOpen  = "<" + echoTag + ">"
	echoClose = "</" + echoTag + ">"
)

// Echo marks a text that goes into a conversation, so that it is known again when the conversation is imported. It
// is history there: nothing is found, recalled or summarised twice.
func Echo(text string) string {
	return echoOpen + "\n" + EscapeTags(text, echoTag) + "\n" + echoClose
}

// WithoutEcho returns a text without what sessiond put into it. An echo that somebody cut off ends with the text.
func WithoutEcho(text string) string {
	for {
		before, rest, found := strings.Cut(text, echoOpen)
		if !found {
			return text
		}
		_, after, _ := strings.Cut(rest, echoClose)
		text = before + after
	}
}
