package main

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sessiond/internal/session"
)

//go:embed talks/*.txt
var talkFiles embed.FS

// heldMark ends the name of a conversation that is not looked at while the product is tuned.
const heldMark = "-held"

// written gives the conversations that come with the program. A line is what somebody says: P a
// person, A the model, T a tool. A line that begins with ? labels a fact that was said before
// it: its kind, its text, what is asked, and perhaps the same asked in other words. "~ N" is a
// template of talk of no importance, used over and over with its number for # and one of the
// words for {a|b}; "= N" puts so many turns of it here, the rest comes at the end. "--" begins a comment.
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
		t := talk{name: strings.TrimSuffix(e.Name(), ".txt")}
		t.language, t.held = strings.CutSuffix(t.name, heldMark)
		if err := t.parse(string(raw)); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		talks = append(talks, t)
	}
	return talks, nil
}

// smallTalk is how many turns of no importance there are, so that there is something to compact.
const smallTalk = 300

func (t *talk) parse(text string) error {
	var filler smallTalker
	for line := range strings.Lines(text) { // templates may stand anywhere
		if template, ok := strings.CutPrefix(strings.TrimSpace(line), "~ "); ok {
			ask, answer, _ := strings.Cut(template, " | ")
			filler.templates = append(filler.templates, [2]string{ask, answer})
		}
	}
	for line := range strings.Lines(text) {
		who, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch who {
		case "", "~", "--":
		case "P", "A", "T":
			t.messages = append(t.messages, sayings(who, said, len(t.messages))...)
		case "?":
			f := strings.SplitN(said, " | ", 4)
			if len(f) < 3 {
				return fmt.Errorf("a label is KIND | TEXT | QUESTION: %q", line)
			}
			f = append(f, "")
			t.labelled = append(t.labelled, fact{kind: f[0], text: f[1], asked: f[2], otherwise: f[3], told: len(t.messages) - 1})
		case "=":
			n, err := strconv.Atoi(said)
			if err != nil {
				return fmt.Errorf("= is followed by a number: %q", line)
			}
			t.messages = append(t.messages, filler.turns(n)...)
		default:
			return fmt.Errorf("a line begins with P, A, T, ?, ~, = or --: %q", line)
		}
	}
	t.messages = append(t.messages, filler.turns(smallTalk-filler.n)...)
	return nil
}

// smallTalker makes turns of no importance from templates.
type smallTalker struct {
	templates [][2]string
	n         int // turns so far
}

func (s *smallTalker) turns(n int) []session.Message {
	var out []session.Message
	for range n {
		template := s.templates[s.n%len(s.templates)]
		s.n++
		for k, who := range []string{"P", "A"} {
			out = append(out, sayings(who, s.vary(template[k]), 0)...)
		}
	}
	return out
}

var oneOf = regexp.MustCompile(`\{[^}]*\}`)

// vary puts the turn's number and words of its own into a template.
func (s *smallTalker) vary(template string) string {
	k := 0
	text := oneOf.ReplaceAllStringFunc(template, func(words string) string {
		choice := strings.Split(strings.Trim(words, "{}"), "|")
		k++
		return choice[(s.n*(7+2*k)+s.n/5*k)%len(choice)]
	})
	return strings.ReplaceAll(text, "#", strconv.Itoa(s.n))
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
