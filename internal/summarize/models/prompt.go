package models

import (
	"cmp"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// prompt is one request to a model.
type prompt struct {
	system string // the task
	user   string // the text
}

// Limits of a message's text in a prompt, in characters.
const (
	longestResult    = 2000
	longestArguments = 1000
)

// newPrompt returns the prompt for a summary of messages, written as paragraphs. maxTokens is the
// limit of the answer.
func newPrompt(req *session.SummaryRequest, paragraphs string, maxTokens int64) prompt {
	name := "initial"
	switch {
	case req.Purpose == session.PurposeBranchSummary:
		name = "branch"
	case req.TurnPrefix:
		name = "prefix"
	}
	var b strings.Builder
	writeBlock(&b, tagConversation, paragraphs)
	return finishPrompt(&b, name, req.Instructions, maxTokens)
}

// joinPrompt returns the prompt that joins several summaries, oldest first: an update of previous,
// or without one a merge.
func joinPrompt(previous string, spans []string, wishes string, maxTokens int64) prompt {
	name := "merge"
	var b strings.Builder
	if previous != "" {
		name = "update"
		writeBlock(&b, tagSummary, digest.WithoutSections(previous, digest.IndexHeading, digest.RulesHeading))
	}
	for _, s := range spans {
		writeBlock(&b, tagMinutes, digest.WithoutSections(s, digest.IndexHeading, digest.RulesHeading))
	}
	return finishPrompt(&b, name, wishes, maxTokens)
}

func finishPrompt(b *strings.Builder, name, wishes string, maxTokens int64) prompt {
	if strings.TrimSpace(wishes) != "" {
		writeBlock(b, tagWishes, wishes)
		b.WriteString("The owner of this record asks you to mind the text in <" + tagWishes +
			"> when you choose what to keep.\n")
	}
	b.WriteString("Write the minutes now.")
	return prompt{system: instructions(name, maxTokens), user: b.String()}
}

// shortenPrompt returns the prompt that asks for a shorter answer.
func shortenPrompt(answer string, maxTokens int64) prompt {
	var b strings.Builder
	writeBlock(&b, tagSummary, answer)
	b.WriteString("Write the shorter minutes now.")
	return prompt{system: instructions("shorten", maxTokens), user: b.String()}
}

func instructions(name string, maxTokens int64) string {
	rules := strings.ReplaceAll(promptFile("rules"), "{{max_tokens}}", strconv.FormatInt(maxTokens, 10))
	return promptFile(name) + "\n" + rules
}

func promptFile(name string) string {
	text, err := promptFiles.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return string(text)
}

// The tags around foreign text in a prompt.
const (
	tagConversation = "conversation"
	tagSummary      = "earlier-summary"
	tagMinutes      = "minutes"
	tagWishes       = "wishes"
)

// writeBlock writes text between tags. It masks secrets and escapes the prompt's own tags.
func writeBlock(b *strings.Builder, tag, text string) {
	text, _ = redact.Mask(text)
	fmt.Fprintf(b, "<%s>\n%s\n</%s>\n\n", tag, session.EscapeTags(strings.TrimSpace(text), tagConversation, tagSummary,
		tagMinutes, tagWishes), tag)
}

// serialise writes messages as labelled paragraphs: [12 person] text. It leaves out reasoning, and
// cuts long results and arguments.
func serialise(msgs []session.Message) string {
	return strings.Join(serialiseEach(msgs, false), "")
}

// serialiseEach returns the paragraphs of each message; "" for one without text. Those of a group's members have names.
func serialiseEach(msgs []session.Message, group bool) []string {
	out := make([]string, len(msgs))
	for i := range msgs {
		m := &msgs[i]
		if !digest.IsConversation(m) {
			continue
		}
		var b strings.Builder
		for k := range m.Parts {
			if label, text := paragraph(m, &m.Parts[k], group); label != "" {
				// Lines of a text cannot pose as paragraphs of their own.
				fmt.Fprintf(&b, "[%d %s] %s\n\n", cmp.Or(m.Seq, int64(i+1)), label, strings.ReplaceAll(text, "\n[", "\n\\["))
			}
		}
		out[i] = b.String()
	}
	return out
}

// paragraph returns the label and text of a part; no label when it is left out. It masks secrets
// before it cuts, because redact does not recognise half a secret.
func paragraph(m *session.Message, p *session.Part, group bool) (label, text string) {
	speaker := digest.SpeakerName(m, group)
	switch p.Kind {
	case session.PartText, session.PartRefusal:
		text = masked(p.Content())
		if text == "" {
			return "", ""
		}
		if digest.IsOfTool(m) {
			text = cutResult(text, longestResult)
		}
		return speaker, text
	case session.PartToolCall:
		return "assistant calls " + toolLabel(p.ToolName), cutResult(masked(p.Arguments), longestArguments)
	case session.PartToolResult:
		label = "result of " + toolLabel(p.ToolName)
		if p.Failed() {
			label += ", failed"
		}
		return label, cutResult(masked(p.Content()), longestResult)
	case session.PartImage, session.PartAudio, session.PartFile:
		return speaker, "(" + string(p.Kind) + ")"
	}
	return "", ""
}

func masked(text string) string {
	text, _ = redact.Mask(strings.TrimSpace(session.WithoutEcho(text)))
	return text
}

// toolLabel returns a tool's name without characters that end its label.
func toolLabel(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '[' || r == ']' {
			return '_'
		}
		return r
	}, name)
	return digest.CutText(cmp.Or(name, "a tool"), 80)
}

// cutResult returns the first n characters and the number of missing ones.
func cutResult(text string, n int) string {
	seen := 0
	for i := range text {
		if seen == n {
			return fmt.Sprintf("%s … (%d more characters)", text[:i], len([]rune(text[i:])))
		}
		seen++
	}
	return text
}
