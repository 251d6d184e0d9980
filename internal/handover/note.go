package handover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Note is the first message of a handover: where the conversation comes from and where its work stands.
type Note struct {
	From    string // the program, as people call it
	To      string
	Session session.ID
	Model   string // that spoke last; "": unknown

	Earlier int  // messages that a summary stands for
	Kept    int  // messages that follow word for word
	Whole   bool // all do

	FromMessage string // the first one that follows; "": all do, or a summary

	Asked []Request // in the messages that a summary stands for
	Place Place
	Todos []Todo
	Rules []string // files with rules that the target does not read by itself
}

// Place is where the work stands.
type Place struct {
	Directory string
	Branch    string
	Head      string   // the commit, with its subject
	Changed   []string // files, as git reports them
	More      int      // changed files that are not among them
}

// Todo is a step of a plan that a model keeps with a tool.
type Todo struct {
	Text string
	Done bool
	Now  bool // it is being done
}

// Text writes the note. It is a message of the program: importers know it by its tag.
func (n *Note) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	model := ""
	if n.Model != "" {
		model = ", model " + n.Model
	}
	line("This conversation began in %s (session %s in sessiond%s). It goes on here, in %s, with the same task, "+
		"folder and rules.", n.From, n.Session, model, n.To)
	switch {
	case n.Whole:
		line("All of it follows.")
	case n.FromMessage != "":
		line("Its messages from number %s on follow.", n.FromMessage)
	case n.Earlier > 0:
		line("A summary of the older %d messages follows, then the newest %d word for word.", n.Earlier, n.Kept)
	default:
		line("Its messages follow word for word.")
	}
	line("Calls in it name tools of %s. Those tools are not here: use your own.", n.From)
	line("")
	if n.Place.Directory != "" {
		line("Folder: %s", n.Place.Directory)
	}
	if n.Place.Branch != "" {
		line("Branch: %s%s", n.Place.Branch, prefixed(", at ", n.Place.Head))
	}
	if len(n.Place.Changed) > 0 {
		line("Changed files that are not committed (git status):")
		for _, file := range n.Place.Changed {
			line("  %s", file)
		}
		if n.Place.More > 0 {
			line("  … and %d more", n.Place.More)
		}
	}
	if open := openTodos(n.Todos); len(open) > 0 {
		line("Open steps of the plan:")
		for _, t := range open {
			line("- %s%s", t.Text, map[bool]string{true: " (in progress)"}[t.Now])
		}
	}
	if len(n.Rules) > 0 {
		line("Rules of this project are also in %s: read that before you change anything.", strings.Join(n.Rules, ", "))
	}
	if len(n.Asked) > 0 {
		line("Asked in the older messages, oldest first, by their numbers (… ends a shortened one):")
		for i := range n.Asked {
			line("%s", n.Asked[i].line())
		}
	}
	return session.HandoverNote(strings.TrimRight(b.String(), "\n"))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func openTodos(all []Todo) (open []Todo) {
	for _, t := range all {
		if !t.Done {
			open = append(open, t)
		}
	}
	return open
}

// Plan is the newest plan of a conversation, whose messages are added in order. The zero value works.
type Plan struct {
	Todos []Todo

	ids     []string          // of Todos, where each is made by a call of its own
	created map[string]string // subjects of tasks by the call that makes them, until its result names the task
}

// Add reads the calls and results of a message.
func (p *Plan) Add(m *session.Message) {
	for i := range m.Parts {
		part := &m.Parts[i]
		switch {
		case part.Kind == session.PartToolCall && part.ToolName == "TaskCreate":
			var task struct{ Subject, Description string }
			if json.Unmarshal([]byte(part.Arguments), &task) == nil {
				if p.created == nil {
					p.created = map[string]string{}
				}
				p.created[part.CallID] = strings.Join(strings.Fields(cmp.Or(task.Subject, task.Description)), " ")
			}
		case part.Kind == session.PartToolCall && part.ToolName == "TaskUpdate":
			p.update(part.Arguments)
		case part.Kind == session.PartToolResult:
			_, said, _ := strings.Cut(part.Content(), "Task #")
			if id, _, made := strings.Cut(said, " created"); made && p.created[part.CallID] != "" {
				p.Todos = append(p.Todos[:len(p.ids):len(p.ids)], Todo{Text: p.created[part.CallID]})
				p.ids = append(p.ids, id)
			}
		default:
			if todos, ok := TodosOf(part); ok {
				p.Todos, p.ids = todos, nil
			}
		}
	}
}

// update changes one task.
func (p *Plan) update(arguments string) {
	var change struct{ TaskID, Subject, Status string }
	if json.Unmarshal([]byte(arguments), &change) != nil { // it reads names in any case
		return
	}
	at := slices.Index(p.ids, change.TaskID)
	if at < 0 {
		return
	}
	t := &p.Todos[at]
	t.Text = cmp.Or(change.Subject, t.Text)
	if change.Status != "" {
		t.Done = change.Status == "completed" || change.Status == "deleted"
		t.Now = change.Status == "in_progress"
	}
}

// TodosOf returns the plan that a call writes down. ok is false for other calls.
func TodosOf(p *session.Part) (todos []Todo, ok bool) {
	name := strings.ToLower(p.ToolName)
	if p.Kind != session.PartToolCall || !strings.Contains(name, "todo") && name != "update_plan" {
		return nil, false
	}
	type step struct {
		Content, Description, Step, Text, Title, Status string
		Completed                                       bool
	}
	var plan struct{ Todos, Plan, Items []step }
	if json.Unmarshal([]byte(p.Arguments), &plan) != nil {
		return nil, false
	}
	for _, list := range [][]step{plan.Todos, plan.Plan, plan.Items} {
		for _, s := range list {
			t := Todo{
				Done: s.Completed || s.Status == "completed" || s.Status == "cancelled" || s.Status == "done",
				Now:  s.Status == "in_progress",
			}
			for _, text := range []string{s.Content, s.Step, s.Description, s.Text, s.Title} {
				if t.Text == "" {
					t.Text = strings.Join(strings.Fields(text), " ")
				}
			}
			if t.Text != "" {
				todos = append(todos, t)
			}
		}
	}
	return todos, true
}
