package picker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sessiond/internal/session"
)

// key is a key with what it does, for people.
type key struct{ name, short, long string }

// keys are all keys but those that move. The first ones stand at the bottom of the screen.
var keys = []key{
	{"Enter", "resume", "continue the session in its program and folder"},
	{"Tab", "folder", "list everywhere, this project, or this folder only"},
	{"^F", "program", "list the sessions of one program, then of the next one"},
	{"^S", "star", "star the session, or take the star off"},
	{"^Y", "copy id", "copy the id (the terminal's clipboard, also over ssh)"},
	{"^T", "copy command", "copy the command that resumes the session"},
	{"^K", "continue in", "continue the session in another program, as `sessiond to` does"},
	{"^R", "rename", "give the session a title"},
	{"^D", "archive", "archive the session, or list it again"},
	{"^X", "export", "write the session to a file"},
	{"^O", "open", "open the session's page in a browser"},
	{"^G", "sub-agents", "list sub-agents and automated sessions, too"},
	{"^V", "view", "list starred sessions only, then archived ones instead"},
}

var moves = []key{
	{"↑ ↓", "", "the session before, the next one; also ^P ^N, Page up, Page down"},
	{"Shift-↑ ↓", "", "read back in the preview, and forward"},
	{"Esc ^C", "", "leave; from this page and from a question, go back"},
}

// line is a question at the top of the screen.
type line struct {
	asks  string
	input textinput.Model
	do    func(ctx context.Context, text string) doneMsg
}

// press is a key. Keys that are text go to the search.
func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.Keystroke()
	if name == "ctrl+c" {
		return tea.Quit
	}
	m.said, m.queued = "", nil
	if m.help {
		m.help = false
		return nil
	}
	if m.line != nil {
		return m.answer(k, name)
	}
	switch name {
	case "esc":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "up", "ctrl+p":
		return m.move(-1)
	case "down", "ctrl+n":
		return m.move(1)
	case "pgup":
		return m.move(-m.layout().list)
	case "pgdown":
		return m.move(m.layout().list)
	case "home":
		return m.move(-len(m.found.Rows))
	case "end":
		return m.move(len(m.found.Rows))
	case "shift+up":
		m.scrollBy(1)
	case "shift+down":
		m.scrollBy(-1)
	case "tab":
		m.scope.Where = (m.scope.Where + 1) % (Here + 1)
		return m.want(0, false)
	case "shift+tab":
		m.scope.Where = (m.scope.Where + Here) % (Here + 1)
		return m.want(0, false)
	case "ctrl+f":
		m.scope.Source = m.nextSource()
		return m.want(0, false)
	case "ctrl+g":
		m.scope.SubAgents = !m.scope.SubAgents
		return m.want(0, false)
	case "ctrl+v":
		m.scope.Starred, m.scope.Archived = !m.scope.Starred && !m.scope.Archived, m.scope.Starred
		return m.want(0, false)
	case "f1":
		m.help = true
	case "enter", "ctrl+y", "ctrl+t", "ctrl+k", "ctrl+r", "ctrl+d", "ctrl+x", "ctrl+o", "ctrl+s":
		if m.outdated() {
			m.queued = &k
			return m.ask()
		}
		if name == "enter" {
			return m.enter()
		}
		if row, any := m.selected(); any {
			return m.act(name, row)
		}
	default:
		if k.Text == "?" && m.input.Value() == "" {
			m.help = true
			return nil
		}
		return m.edit(k)
	}
	return nil
}

// edit changes the text of the search, or of the question.
func (m *Model) edit(msg tea.Msg) (cmd tea.Cmd) {
	if m.line != nil {
		asked := *m.line
		asked.input, cmd = asked.input.Update(msg)
		m.line = &asked
		return cmd
	}
	before := m.query()
	m.input, cmd = m.input.Update(msg)
	switch after := m.query(); {
	case after == before:
		return cmd
	case after == "":
		return tea.Batch(cmd, m.want(0, false))
	}
	return tea.Batch(cmd, m.want(m.Debounce, false))
}

func (m *Model) move(by int) tea.Cmd {
	m.at = min(max(0, m.at+by), max(0, len(m.found.Rows)-1))
	return m.moved()
}

func (m *Model) scrollBy(lines int) {
	m.scroll += lines
	l := m.layout()
	m.previewLines(l.previewWidth, l.preview) // limits it
}

// nextSource returns the program that Ctrl-F shows next; "" after the last one.
func (m *Model) nextSource() session.Source {
	next := slices.Index(m.sources, m.scope.Source) + 1
	if next == len(m.sources) {
		return ""
	}
	return m.sources[next]
}

func (m *Model) enter() tea.Cmd {
	row, any := m.selected()
	if !any {
		if m.found.Empty {
			m.choice.Import = true
			return tea.Quit
		}
		return nil
	}
	return m.run(row.ID, func(ctx context.Context) doneMsg {
		_, err := m.Data.Resume(ctx, row.ID)
		return doneMsg{choice: Choice{Resume: row.ID}, err: err}
	})
}

// act does what a key does with the selected session.
func (m *Model) act(name string, row Row) tea.Cmd {
	id, data := row.ID, m.Data
	switch name {
	case "ctrl+y":
		return m.run(id, func(context.Context) doneMsg {
			return doneMsg{said: "Copied: " + string(id), copied: string(id)}
		})
	case "ctrl+t":
		return m.run(id, func(ctx context.Context) doneMsg {
			command, err := data.Resume(ctx, id)
			return doneMsg{said: "Copied: " + command, copied: command, err: err}
		})
	case "ctrl+k":
		m.question("Continue in ("+strings.Join(m.Targets, " ")+"):", otherThan(m.Targets, row.Source),
			func(_ context.Context, program string) doneMsg {
				if !slices.Contains(m.Targets, program) {
					return doneMsg{err: fmt.Errorf("%q is none of %s", program, strings.Join(m.Targets, ", "))}
				}
				return doneMsg{choice: Choice{Resume: id, In: program}}
			})
	case "ctrl+d":
		return m.toggle(row, row.ArchivedAt == nil, data.Archive,
			"Archived: %s. ^V ^V lists archived sessions, ^D there brings one back.", "Back in the list: %s")
	case "ctrl+s":
		return m.toggle(row, row.StarredAt == nil, data.Star, "Starred: %s", "No star any more: %s")
	case "ctrl+o":
		return m.run(id, func(ctx context.Context) doneMsg {
			link, err := data.Open(ctx, id)
			if link != "" {
				return doneMsg{
					said: "No browser can be started here. Copied the link, good for one minute: " + link, copied: link,
					err: err,
				}
			}
			return doneMsg{said: "Opened in your browser.", err: err}
		})
	case "ctrl+r":
		m.question("New title:", plain(row.Title), func(ctx context.Context, title string) doneMsg {
			return doneMsg{id: id, said: "Renamed.", changed: true, err: data.Rename(ctx, id, title)}
		})
	case "ctrl+x":
		m.question("Export to (.md .html .jsonl):", string(id)+".md", func(ctx context.Context, file string) doneMsg {
			said, err := data.Export(ctx, id, file)
			return doneMsg{id: id, said: said, err: err}
		})
	}
	return nil
}

// otherThan returns the first program that is not the session's own.
func otherThan(targets []string, own session.Source) string {
	for _, name := range targets {
		if name != string(own) {
			return name
		}
	}
	return ""
}

// toggle turns something about a session on or off, and says so.
func (m *Model) toggle(row Row, on bool, set func(context.Context, session.ID, bool) error, saidOn,
	saidOff string,
) tea.Cmd {
	said := saidOn
	if !on {
		said = saidOff
	}
	return m.run(row.ID, func(ctx context.Context) doneMsg {
		return doneMsg{said: fmt.Sprintf(said, titleOf(row)), changed: true, err: set(ctx, row.ID, on)}
	})
}

// run does something about a session beside the screen.
func (m *Model) run(id session.ID, do func(context.Context) doneMsg) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		msg := do(ctx)
		msg.id = id
		return msg
	}
}

func (m *Model) question(asks, text string, do func(context.Context, string) doneMsg) {
	m.line = &line{asks: asks, input: newInput(text), do: do}
	m.line.input.CursorEnd()
}

// answer is a key in a question.
func (m *Model) answer(k tea.KeyPressMsg, name string) tea.Cmd {
	switch name {
	case "esc":
		m.line = nil
		return nil
	case "enter":
		asked := m.line
		m.line = nil
		text := strings.TrimSpace(asked.input.Value())
		if text == "" {
			return nil
		}
		ctx := m.ctx
		return func() tea.Msg { return asked.do(ctx, text) }
	}
	return m.edit(k)
}
