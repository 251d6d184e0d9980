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

// WithoutEcho returns a text without what sessiond put into it. An echo that was cut off ends with the text. A line
// break follows the tag, or its escape in JSON; else the text only speaks of the tag.
func WithoutEcho(text string) string {
	for from := 0; ; {
		at := strings.Index(text[from:], echoOpen)
		if at < 0 {
			return text
		}
		at += from
		rest := text[at+len(echoOpen):]
		if from = at; rest != "" && !strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, `\`) &&
			!strings.HasPrefix(rest, "\r\n") {
			from += len(echoOpen)
			continue
		}
		_, after, _ := strings.Cut(rest, echoClose)
		text = text[:at] + after
	}
}
