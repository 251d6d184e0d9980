package summarize

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"sessiond/internal/session"
)

// Sizes of a title: what a model may answer, and what is taken of it.
const (
	titleTokens = 64
	titleRunes  = 80
)

// NewTitler makes what asks the configured model for a conversation's title, once each time;
// nil where no model is configured. Its Summary is the title alone. It stands behind a circuit
// breaker of its own. Codes: Invalid.
func NewTitler(cfg Config, deps Deps) (Summarizer, error) {
	deps = deps.withDefaults()
	var remote *Remote
	var err error
	switch cfg.Provider {
	case "gemini":
		remote, err = NewGemini(cfg, deps)
	case "openai":
		remote, err = NewOpenAI(cfg, deps)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return NewBreaker(titler{remote}, breakerThreshold, breakerCoolDown, deps.Now), nil
}

// titler asks a model for titles.
type titler struct{ *Remote }

// Summarize gives a title for the beginning of a conversation. The error is a *Failure unless
// ctx was cancelled; the Summary then still holds the Calls.
func (t titler) Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	req.Purpose = session.PurposeTitle
	out := session.Summary{Provider: t.provider, Model: t.model}
	budget, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	task, err := promptFiles.ReadFile("prompts/title.md")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	var b strings.Builder
	writeBlock(&b, tagConversation, serialise(req.Messages))
	b.WriteString("Write the title now.")
	answer, err := t.once(ctx, budget, prompt{system: string(task), user: b.String()}, titleTokens, &req, &out.Calls)
	if err != nil {
		return out, err
	}
	if out.Text = cleanTitle(answer.text); out.Text == "" {
		return out, &Failure{Kind: FailBadAnswer, Message: "the answer of " + t.model + " holds no title", cause: errors.New("no title")}
	}
	return out, nil
}

// titleMarks are what models put around a title.
const titleMarks = "#*_`\"'“”„«»‘’ "

// cleanTitle takes a title out of an answer: its first line that says something, without
// marks around it.
func cleanTitle(answer string) string {
	for line := range strings.Lines(answer) {
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
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
