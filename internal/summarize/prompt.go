package summarize

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"sessiond/internal/redact"
	"sessiond/internal/session"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// prompt is one question to a model: what it is to do and what it is about, kept apart.
type prompt struct {
	system string
	user   string
}

// Sizes in bytes of what one message may put into a prompt.
const (
	longestResult    = 2000
	longestArguments = 1000
)

// newPrompt writes the prompt for a summary of messages, which paragraphs tell. maxTokens is
// what the answer may have.
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

// joinPrompt writes the prompt that makes one summary of several, oldest first: an update of
// previous, or without one a merge.
func joinPrompt(previous string, spans []string, wishes string, maxTokens int64) prompt {
	name := "merge"
	var b strings.Builder
	if previous != "" {
		name = "update"
		writeBlock(&b, tagSummary, withoutIndex(previous))
	}
	for _, s := range spans {
		writeBlock(&b, tagMinutes, withoutIndex(s))
	}
	return finishPrompt(&b, name, wishes, maxTokens)
}

func finishPrompt(b *strings.Builder, name, wishes string, maxTokens int64) prompt {
	if strings.TrimSpace(wishes) != "" {
		writeBlock(b, tagWishes, wishes)
		b.WriteString("The owner of this record asks you to mind the text in <" + tagWishes + "> when you choose what to keep.\n")
	}
	b.WriteString("Write the minutes now.")
	return prompt{system: instructions(name, maxTokens), user: b.String()}
}

// shortenPrompt asks for an answer again, shorter.
func shortenPrompt(answer string, maxTokens int64) prompt {
	var b strings.Builder
	writeBlock(&b, tagSummary, answer)
	b.WriteString("Write the shorter minutes now.")
	return prompt{system: instructions("shorten", maxTokens), user: b.String()}
}

func instructions(name string, maxTokens int64) string {
	task, err := promptFiles.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	rules, err := promptFiles.ReadFile("prompts/rules.md")
	if err != nil {
		panic(err)
	}
	return string(task) + "\n" + strings.ReplaceAll(string(rules), "{{max_tokens}}", strconv.FormatInt(maxTokens, 10))
}

// The tags that delimit foreign text in a prompt.
const (
	tagConversation = "conversation"
	tagSummary      = "earlier-summary"
	tagMinutes      = "minutes"
	tagWishes       = "wishes"
)

// writeBlock puts text between tags. Secrets are masked, and nothing in the text can close
// the block or open another.
func writeBlock(b *strings.Builder, tag, text string) {
	text, _ = redact.Mask(text)
	fmt.Fprintf(b, "<%s>\n%s\n</%s>\n\n", tag, escapeTags(strings.TrimSpace(text)), tag)
}

// escapeTags writes the "<" of everything that looks like one of the prompt's own tags as
// "&lt;". Other markup stays as it is, since it may be what the conversation is about.
func escapeTags(s string) string {
	var b strings.Builder
	done := 0
	for i := range len(s) {
		if s[i] != '<' {
			continue
		}
		rest := strings.TrimLeft(s[i+1:min(len(s), i+40)], " \t\r\n/")
		for _, tag := range [...]string{tagConversation, tagSummary, tagMinutes, tagWishes} {
			if len(rest) >= len(tag) && strings.EqualFold(rest[:len(tag)], tag) {
				b.WriteString(s[done:i] + "&lt;")
				done = i + 1
				break
			}
		}
	}
	return b.String() + s[done:]
}

// serialise writes messages as labelled paragraphs: [12 person] text. Reasoning is left out,
// long results and arguments are cut and say by how much.
func serialise(msgs []session.Message) string {
	return strings.Join(serialiseEach(msgs), "")
}

// serialiseEach gives the paragraphs of each message; "" for one that says nothing.
func serialiseEach(msgs []session.Message) []string {
	out := make([]string, len(msgs))
	for i := range msgs {
		m := &msgs[i]
		if !told(m) {
			continue
		}
		n := m.Seq
		if n == 0 {
			n = int64(i + 1)
		}
		var b strings.Builder
		for k := range m.Parts {
			if label, text := paragraph(m, &m.Parts[k]); label != "" {
				fmt.Fprintf(&b, "[%d %s] %s\n\n", n, label, escapeLabels(text))
			}
		}
		out[i] = b.String()
	}
	return out
}

// paragraph gives the label and text of a part; no label when it is left out. Secrets are
// masked before anything is cut, for half a secret has no shape any more.
func paragraph(m *session.Message, p *session.Part) (label, text string) {
	switch p.Kind {
	case session.PartText, session.PartRefusal:
		text = masked(p.Content())
		if text == "" {
			return "", ""
		}
		if speakerOf(m) == byTool {
			text = cutResult(text, longestResult)
		}
		return [...]string{byPerson: "person", byModel: "assistant", byTool: "tool", byProgram: "program"}[speakerOf(m)], text
	case session.PartToolCall:
		return "assistant calls " + oneWord(p.ToolName), cutResult(masked(p.Arguments), longestArguments)
	case session.PartToolResult:
		label = "result of " + oneWord(p.ToolName)
		if p.IsError != nil && *p.IsError {
			label += ", failed"
		}
		return label, cutResult(masked(p.Content()), longestResult)
	case session.PartImage, session.PartAudio, session.PartFile:
		return [...]string{byPerson: "person", byModel: "assistant", byTool: "tool", byProgram: "program"}[speakerOf(m)], "(" + string(p.Kind) + ")"
	}
	return "", ""
}

func masked(text string) string {
	text, _ = redact.Mask(strings.TrimSpace(text))
	return text
}

// oneWord keeps a tool's name from breaking out of its label.
func oneWord(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '[' || r == ']' {
			return '_'
		}
		return r
	}, name)
	if name == "" {
		return "a tool"
	}
	return cutRunes(name, 80)
}

// cutResult keeps the first n characters and says how many are missing.
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

// escapeLabels keeps lines of a text from posing as paragraphs of their own.
func escapeLabels(text string) string {
	if !strings.Contains(text, "\n[") {
		return text
	}
	return strings.ReplaceAll(text, "\n[", "\n\\[")
}

// withoutIndex gives a summary without its indexes, which are made without the model. A
// summary that two were joined to has two.
func withoutIndex(summary string) string {
	if !strings.Contains(summary, indexHeading) {
		return summary
	}
	var b strings.Builder
	in := false
	for line := range strings.Lines(summary) {
		text := strings.TrimSpace(line)
		switch {
		case text == indexHeading:
			in = true
		case strings.HasPrefix(text, "#") || text == "---":
			in = false
		}
		if !in {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}
