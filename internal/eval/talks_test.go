package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// talk is a conversation to compact.
type talk struct {
	name      string
	directory string
	messages  []session.Message
	labelled  []fact // by hand; nil: sampled by rule
}

// leastTalk is the number of messages of a transcript that can be compacted five times.
const leastTalk = 40

// importTalks returns the conversations of a folder of transcripts that are long enough.
func (r *rig) importTalks(t *testing.T, folder string) (talks []talk) {
	none := func(string) string { return "" }
	for name, source := range map[string]history.Source{
		"pi": pi.New(none), "codex": codex.New(none, time.Now),
		"claude-code": claudecode.New(none, time.Now), "opencode": opencode.New(none, time.Now),
	} {
		root := filepath.Join(folder, name)
		if _, err := os.Stat(root); err == nil {
			importer := history.Importer{Store: r.store}
			testkit.Must(importer.Run(t.Context(), source, []string{root}))(t)
		}
	}
	all, _, err := r.store.Sessions(t.Context(), store.Filter{}, store.Page{Limit: 1000})
	testkit.Check(t, err)
	for _, s := range all {
		if s.HeadID == nil {
			continue
		}
		talk := talk{name: string(s.Source) + " " + s.Title, directory: s.Directory}
		for _, m := range testkit.Must(r.store.Path(t.Context(), *s.HeadID, 0))(t) {
			if m.Kind != session.KindMessage || !m.InContext || m.Role == session.System {
				continue
			}
			plain := newMessage(m.Role, m.Origin)
			plain.Finish = m.Finish
			for _, p := range m.Parts {
				if p.Kind == session.PartText || p.Kind == session.PartToolCall || p.Kind == session.PartToolResult {
					plain.Parts = append(plain.Parts, session.Part{Kind: p.Kind, Text: p.Content(), ToolName: p.ToolName, CallID: p.CallID, Arguments: p.Arguments, IsError: p.IsError})
				}
			}
			if len(plain.Parts) > 0 {
				talk.messages = append(talk.messages, plain)
			}
		}
		if len(talk.messages) >= leastTalk {
			talks = append(talks, talk)
		}
	}
	return talks
}

func newMessage(role session.Role, origin session.Origin, parts ...session.Part) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true, Parts: parts}
}

// writtenTalks returns the conversations in the folder talks. A line of their files is
//
//	P, A or T TEXT                                said by a person, the model, a tool
//	? KIND | TEXT | QUESTION [| IN OTHER WORDS]   a label of a fact that was said before it
//	~ TEXT | ANSWER                               a template of small talk: # is its number, {a|b} a choice
//	= N                                           N turns of small talk; the rest of them comes at the end
//	-- COMMENT
func writtenTalks(t *testing.T) (talks []talk) {
	for _, path := range testkit.Must(filepath.Glob("talks/*.txt"))(t) {
		talk, small := talk{name: filepath.Base(path)}, smallTalk{}
		for line := range strings.Lines(string(testkit.Must(os.ReadFile(path))(t))) {
			who, said, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch who {
			case "", "--":
			case "P", "A", "T":
				talk.messages = append(talk.messages, parseSaying(who, said, len(talk.messages))...)
			case "?":
				f := append(strings.Split(said, " | "), "")
				talk.labelled = append(talk.labelled, fact{kind: f[0], text: f[1], asked: f[2], otherwise: f[3], told: len(talk.messages) - 1})
			case "~":
				small.templates = append(small.templates, said)
			case "=":
				talk.messages = append(talk.messages, small.next(testkit.Must(strconv.Atoi(said))(t))...)
			default:
				t.Fatalf("%s: %q", path, line)
			}
		}
		talk.messages = append(talk.messages, small.next(300-small.n)...)
		talks = append(talks, talk)
	}
	return talks
}

// parseSaying returns the messages of a line; what a tool says comes with its call.
func parseSaying(who, said string, n int) []session.Message {
	if who == "P" {
		return []session.Message{newMessage(session.User, session.Person, session.TextPart(said))}
	}
	reply := newMessage(session.Assistant, session.Model, session.TextPart(said))
	reply.Finish = session.FinishStop
	if who == "A" {
		return []session.Message{reply}
	}
	id := fmt.Sprintf("c%d", n)
	reply.Finish, reply.Parts = session.FinishToolCalls, []session.Part{{Kind: session.PartToolCall, CallID: id, ToolName: "lookup", Arguments: "{}"}}
	return []session.Message{reply, newMessage(session.Tool, session.ByTool, session.Part{Kind: session.PartToolResult, CallID: id, ToolName: "lookup", Text: said})}
}

// smallTalk makes turns of no importance from templates.
type smallTalk struct {
	templates []string
	n         int // turns so far
}

func (s *smallTalk) next(n int) (msgs []session.Message) {
	for range n {
		ask, answer, _ := strings.Cut(s.templates[s.n%len(s.templates)], " | ")
		s.n++
		msgs = append(msgs, parseSaying("P", s.fill(ask), 0)...)
		msgs = append(msgs, parseSaying("A", s.fill(answer), 0)...)
	}
	return msgs
}

var choice = regexp.MustCompile(`\{[^}]*\}`)

// fill puts the turn's number and choices into a template.
func (s *smallTalk) fill(template string) string {
	k := 0
	text := choice.ReplaceAllStringFunc(template, func(words string) string {
		options := strings.Split(strings.Trim(words, "{}"), "|")
		k++
		return options[(s.n*(7+2*k)+s.n/5*k)%len(options)]
	})
	return strings.ReplaceAll(text, "#", strconv.Itoa(s.n))
}
