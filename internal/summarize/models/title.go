package models

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"sessiond/internal/session"
)

// Limits of a title: of the model's answer in tokens, and of the stored text in characters.
const (
	titleTokens = 64
	titleRunes  = 80
)

// NewTitler returns a Summarizer whose Summary is a conversation's title. It asks the configured
// model once and has a circuit breaker of its own. Without a configured model it is nil. Codes:
// Invalid.
func NewTitler(cfg Config, deps Deps) (Summarizer, error) {
	deps = deps.withDefaults()
	remote, err := NewRemote(cfg, deps)
	if remote == nil || err != nil {
		return nil, err
	}
	return NewBreaker(titler{remote}, breakerThreshold, breakerCoolDown, deps), nil
}

// titler asks a model for titles.
type titler struct{ *Remote }

// Summarize returns a title for the beginning of a conversation. The error is a *Failure unless ctx
// was cancelled; the Summary then still has the Calls.
func (t titler) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	req.Purpose = session.PurposeTitle
	out := session.Summary{Provider: t.provider, Model: t.model}
	budget, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	var b strings.Builder
	writeBlock(&b, tagConversation, serialise(req.Messages))
	b.WriteString("Write the title now.")
	answer, err := t.once(ctx, budget, prompt{system: promptFile("title"), user: b.String()}, titleTokens, &req,
		&out.Calls)
	if err != nil {
		return out, err
	}
	if out.Text = cleanTitle(answer.text); out.Text == "" {
		return out, &Failure{
			Kind: FailBadAnswer, Message: "the answer of " + t.model + " contains no title",
			cause: errors.New("no title"),
		}
	}
	return out, nil
}

// titleMarks are the marks that models write around a title.
const titleMarks = "#*_`\"'“”„«»‘’ "

// cleanTitle returns the first line of an answer with text, without the marks around it.
func cleanTitle(answer string) string {
	for line := range strings.Lines(answer) {
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		}), " ")
		line = strings.TrimLeft(line, titleMarks)
		if len(line) > len("title:") && strings.EqualFold(line[:len("title:")], "title:") {
			line = strings.TrimLeft(line[len("title:"):], titleMarks)
		}
		line = strings.TrimRight(line, titleMarks+".")
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > titleRunes {
			return strings.TrimSpace(string(runes[:titleRunes-1])) + "…"
		}
		return line
	}
	return ""
}
