package summarize

import (
	"strings"

	"sessiond/internal/redact"
)

// answerLimits is what an answer is measured against, in tokens of the reference counter.
type answerLimits struct {
	replaced int64 // what the summary will stand for
	budget   int64 // what the summary's text may have
}

// checkAnswer looks at a model's text and gives it back without fences and with secrets
// masked. kind is empty when the text can stand as it is, FailTooLongOutput when it only has
// to become shorter, else why it is no summary. Rules: not empty, not a refusal, not the
// prompt again, smaller than what it replaces, within its budget.
//
// A refusal is known by its form and not by its words: a short text without one of the
// headings that were asked for.
func checkAnswer(text string, limits answerLimits, count func(string) int64) (checked string, kind FailureKind) {
	text = withoutFence(strings.TrimSpace(text))
	text, _ = redact.Mask(text)
	text = withoutIndex(text)
	if text == "" {
		return "", FailEmpty
	}
	if echoes(text) {
		return text, FailBadAnswer
	}
	if !hasHeading(text) {
		if len(text) < 600 {
			return text, FailRefusal
		}
		return text, FailBadAnswer
	}
	o := parseOutline(text)
	if o.empty() {
		return text, FailEmpty
	}
	n := count(text)
	if n > limits.budget || n >= limits.replaced {
		return text, FailTooLongOutput
	}
	return text, ""
}

// trimAnswer makes an answer fit by dropping its oldest lines, what is done first. It gives
// "" if the answer cannot become smaller than what it replaces.
func trimAnswer(text string, limits answerLimits, count func(string) int64) string {
	o := parseOutline(text)
	return o.fit(min(limits.budget, limits.replaced-1), count)
}

// echoes tells whether the text repeats the prompt: its tags or its rules.
func echoes(text string) bool {
	return strings.Contains(text, "<"+tagConversation+">") || strings.Contains(text, "</"+tagConversation+">") ||
		strings.Contains(text, "is a record to be reported on")
}

func hasHeading(text string) bool {
	for l := range strings.Lines(text) {
		if name, ok := title(strings.TrimSpace(l)); ok {
			if _, known := sectionOf(name); known || name == "progress" {
				return true
			}
		}
	}
	return false
}

// withoutFence takes off a code fence around the whole text.
func withoutFence(text string) string {
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") {
		return text
	}
	_, body, ok := strings.Cut(text, "\n")
	if !ok {
		return text
	}
	return strings.TrimSpace(strings.TrimSuffix(body, "```"))
}
