package models

import (
	"strings"

	"sessiond/internal/redact"
	"sessiond/internal/summarize/digest"
)

// answerLimits are the limits of an answer in tokens of the reference counter.
type answerLimits struct {
	replaced int64 // size of the messages that the summary replaces
	budget   int64 // of the summary's text
}

// checkAnswer returns a model's text without fences and with secrets masked. kind is empty for a
// valid summary, FailTooLongOutput for one that is only too long, else the reason why the text is
// no summary. A summary is not empty, no refusal, no copy of the prompt, smaller than the messages
// that it replaces, and within its budget.
//
// A refusal is recognised by its form, not by its words: it is short and has none of the headings.
func checkAnswer(text string, limits answerLimits, count func(string) int64) (checked string, kind FailureKind) {
	text = withoutFence(strings.TrimSpace(text))
	text, _ = redact.Mask(text)
	// no model writes them
	text = digest.WithoutSections(text, digest.IndexHeading, digest.RulesHeading, digest.StatedHeading)
	if text == "" {
		return "", FailEmpty
	}
	if echoesPrompt(text) {
		return text, FailBadAnswer
	}
	if !digest.HasHeading(text) {
		if len(text) < 600 {
			return text, FailRefusal
		}
		return text, FailBadAnswer
	}
	if digest.IsEmpty(text) {
		return text, FailEmpty
	}
	n := count(text)
	if n > limits.budget || n >= limits.replaced {
		return text, FailTooLongOutput
	}
	return text, ""
}

// trimAnswer drops the oldest lines of an answer, done work first, until it fits. It returns "" if
// the answer cannot become smaller than the messages that it replaces.
func trimAnswer(text string, limits answerLimits, count func(string) int64) string {
	return digest.Fit(text, min(limits.budget, limits.replaced-1), count)
}

// echoesPrompt reports whether the text repeats the prompt's tags or rules.
func echoesPrompt(text string) bool {
	return strings.Contains(text, "<"+tagConversation+">") || strings.Contains(text, "</"+tagConversation+">") ||
		strings.Contains(text, "is a record to be reported on")
}

// withoutFence removes a code fence around the whole text.
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
