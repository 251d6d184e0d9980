package main

import (
	"embed"
	"fmt"
	"strings"

	"sessiond/internal/session"
)

//go:embed talks/*.txt
var talkFiles embed.FS

// written gives the conversations that come with the program. A line is what somebody says: P a
// person, A the model, T a tool. A line that begins with ? labels a fact: its kind, its text,
// what is asked. "~ N" is a template of small talk, repeated that often with its number.
func written() ([]talk, error) {
	entries, err := talkFiles.ReadDir("talks")
	if err != nil {
		return nil, fmt.Errorf("the conversations of the program: %w", err)
	}
	var talks []talk
	for _, e := range entries {
		raw, err := talkFiles.ReadFile("talks/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("the conversations of the program: %w", err)
		}
		t := talk{name: strings.TrimSuffix(e.Name(), ".txt"), own: true}
		if err := t.parse(string(raw)); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		talks = append(talks, t)
	}
	return talks, nil
}

// smallTalk is how many turns of no importance follow, so that there is something to compact.
const smallTalk = 300

func (t *talk) parse(text string) error {
	var first []session.Message
	var filler [][2]string
	for line := range strings.Lines(text) {
		who, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch who {
		case "":
		case "P", "A", "T":
			first = append(first, sayings(who, said, len(first))...)
		case "?":
			f := strings.SplitN(said, " | ", 3)
			if len(f) != 3 {
				return fmt.Errorf("a label is KIND | TEXT | QUESTION: %q", line)
			}
			t.labelled = append(t.labelled, fact{f[0], f[1], f[2]})
		case "~":
			ask, answer, _ := strings.Cut(said, " | ")
			filler = append(filler, [2]string{ask, answer})
		default:
			return fmt.Errorf("a line begins with P, A, T, ? or ~: %q", line)
		}
	}
	t.messages = first
	for i := range smallTalk {
		f := filler[i%len(filler)]
		for k, who := range []string{"P", "A"} {
			t.messages = append(t.messages, sayings(who, strings.ReplaceAll(f[k], "#", fmt.Sprint(i+1)), 0)...)
		}
	}
	return nil
}

// sayings makes messages; what a tool says comes with its call.
func sayings(who, said string, n int) []session.Message {
	m := session.Message{Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true, Parts: []session.Part{session.TextPart(said)}}
	switch who {
	case "A":
		m.Role, m.Origin, m.Finish = session.Assistant, session.Model, session.FinishStop
	case "T":
		id := fmt.Sprintf("c%d", n)
		call := m
		call.Role, call.Origin, call.Finish = session.Assistant, session.Model, session.FinishToolCalls
		call.Parts = []session.Part{{Kind: session.PartToolCall, CallID: id, ToolName: "lookup", Arguments: "{}"}}
		m.Role, m.Origin = session.Tool, session.ByTool
		m.Parts = []session.Part{{Kind: session.PartToolResult, CallID: id, ToolName: "lookup", Text: said}}
		return []session.Message{call, m}
	}
	return []session.Message{m}
}
