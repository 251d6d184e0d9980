package session

import (
	"cmp"
	"slices"
	"strings"

	"sessiond/internal/pattern"
)

// Tags in which Claude Code wraps what it stores as messages in the user's role.
const (
	tagCommand = "command-name"
	tagLoading = "command-message" // what is shown while the command loads: its name, or a sentence
	tagArgs    = "command-args"
	tagNotice  = "task-notification"
)

// unwrapped are tags around a text that reads well without them.
var unwrapped = []string{
	"local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-stdout",
	"bash-stderr",
}

const noOutput = "(no output)"

// ReadableText returns a message's text as a person reads it: a command as it was typed, the output of one, and a
// notice of a task without the tags around them. Any other text is returned as it is.
func ReadableText(text string) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case !strings.HasPrefix(trimmed, "<"):
		return text
	case strings.HasPrefix(trimmed, "<"+tagCommand+">"), strings.HasPrefix(trimmed, "<"+tagLoading+">"):
		if line := CommandLine(trimmed); line != "" {
			return line + rest(trimmed, tagCommand, tagLoading, tagArgs)
		}
	case strings.HasPrefix(trimmed, "<bash-input>"):
		return "! " + within(trimmed, "bash-input") + rest(trimmed, "bash-input")
	case strings.HasPrefix(trimmed, "<"+tagNotice+">"):
		notice := within(trimmed, tagNotice)
		if said := strings.TrimSpace(within(notice, "summary") + "\n" + within(notice, "result")); said != "" {
			return said + rest(trimmed, tagNotice)
		}
	}
	outputs, others := unwrap(trimmed)
	if others == trimmed {
		return text
	}
	if others != "" {
		outputs = append(outputs, ReadableText(others))
	}
	for len(outputs) > 1 && outputs[len(outputs)-1] == noOutput {
		outputs = outputs[:len(outputs)-1]
	}
	return cmp.Or(strings.TrimSpace(strings.Join(outputs, "\n")), noOutput)
}

// unwrap returns what stands in the unwrapped elements at the beginning of a text, without those that are empty, and
// the text behind them. An element without an end takes the rest with it.
func unwrap(text string) (inner []string, rest string) {
	for {
		tag, _, _ := strings.Cut(strings.TrimPrefix(text, "<"), ">")
		body, opened := strings.CutPrefix(text, "<"+tag+">")
		if !opened || !slices.Contains(unwrapped, tag) {
			return inner, text
		}
		said, after, _ := strings.Cut(body, "</"+tag+">")
		if said = strings.TrimSpace(said); said != "" {
			inner = append(inner, said)
		}
		text = strings.TrimSpace(after)
	}
}

// CommandLine returns a command of Claude Code as it was typed: /init with its arguments; "" if the text is none.
func CommandLine(text string) string {
	name := within(text, tagCommand)
	if name == "" {
		name = within(text, tagLoading)
	}
	if name == "" {
		return ""
	}
	return strings.TrimSpace(name + " " + within(text, tagArgs))
}

var (
	// agentNote is the line for the model below the answer of a sub-agent, with its usage.
	agentNote = pattern.New(`\n?\s*agentId: (\w+) \(for resuming[^\n]*\)\s*(?:<usage>[^<]*</usage>)?\s*$`)
	// agentStart is the result of a call that starts a sub-agent in the background: the rest of it instructs the model.
	agentStart = pattern.New(`^Async agent launched successfully\.[^\n]*\n+agentId: (\w+) `)
)

// ReadableResult returns a tool's result without what Claude Code adds for the model alone: ids of sub-agents, and what
// not to do with them.
func ReadableResult(text string) string {
	if id := agentStart.FindStringSubmatch(text); id != nil {
		return "The agent " + id[1] + " was started and works in the background."
	}
	const note = "agentId: "
	if at := strings.LastIndex(text, note); at < 0 || len(text)-at > 1000 {
		return text
	}
	return agentNote.ReplaceAllString(text, "")
}

// within returns what stands in the first element with a tag; "" without one.
func within(text, tag string) string {
	_, inner, _ := strings.Cut(text, "<"+tag+">")
	inner, _, _ = strings.Cut(inner, "</"+tag+">")
	return strings.TrimSpace(inner)
}

// rest returns what stands outside of the first elements with some tags, on a line of its own; "" if nothing does.
func rest(text string, tags ...string) string {
	for _, tag := range tags {
		before, inner, found := strings.Cut(text, "<"+tag+">")
		if _, after, closed := strings.Cut(inner, "</"+tag+">"); found && closed {
			text = before + after
		} else if found {
			text = before
		}
	}
	if text = strings.TrimSpace(text); text != "" {
		text = "\n" + text
	}
	return text
}
