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

// echoMarks are the tags of an echo as programs keep them: Gemini CLI escapes what a hook adds.
var echoMarks = [][2]string{{echoOpen, echoClose}, {escapedMarkup(echoOpen), escapedMarkup(echoClose)}}

func escapedMarkup(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text)
}

// hookTag is the element in which Gemini CLI puts what its hooks add to a prompt.
const hookTag = "hook_context"

// WithoutEcho returns a text without what sessiond put into it. An echo that was cut off ends with the text. A line
// break follows the tag, or its escape in JSON; else the text only speaks of the tag.
func WithoutEcho(text string) string {
	for _, mark := range echoMarks {
		text = withoutMarked(text, mark[0], mark[1])
	}
	return text
}

func withoutMarked(text, open, end string) string {
	for from := 0; ; {
		at := strings.Index(text[from:], open)
		if at < 0 {
			return text
		}
		at += from
		rest := text[at+len(open):]
		if from = at; rest != "" && !strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, `\`) &&
			!strings.HasPrefix(rest, "\r\n") {
			from += len(open)
			continue
		}
		_, after, _ := strings.Cut(rest, end)
		before := text[:at]
		if alone, ok := strings.CutSuffix(before, "<"+hookTag+">"); ok {
			if behind, closed := strings.CutPrefix(after, "</"+hookTag+">"); closed || after == "" {
				before, after = alone, strings.TrimPrefix(behind, "\n\n")
			}
		}
		text, from = before+after, len(before)
	}
}

// handoverTag is around the note with which a conversation begins that sessiond handed over to another program.
const handoverTag = "sessiond_handover"

// HandoverNote marks the note of a handover, so that no import takes it for a person's words.
func HandoverNote(text string) string {
	return "<" + handoverTag + ">\n" + EscapeTags(text, handoverTag) + "\n</" + handoverTag + ">"
}

// IsHandoverNote reports whether a text is the note of a handover.
func IsHandoverNote(text string) bool { return strings.HasPrefix(text, "<"+handoverTag+">\n") }
