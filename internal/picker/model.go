package picker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sessiond/internal/session"
)

const (
	pieceRows = 100  // of the list that are read at once
	mostRows  = 1000 // that are read again when the database changes
)

// Model is the state of the picker. Update returns the next one; View draws it.
type Model struct {
	Config
	ctx           context.Context // of the requests to Data
	width, height int
	method        ansi.Method // how the terminal counts columns

	input   textinput.Model
	line    *line // asks for a title or a file; nil: keys go to the search
	help    bool
	scope   Scope
	sources []session.Source
	said    string // about the last key, until the next one
	failed  bool   // said is an error

	found   Found
	at, top int // the selected row, and the first one on the screen
	preview Preview
	stale   bool // the preview is of an older version
	scroll  int  // lines of the conversation below the preview
	version int64
	alarm   string // why what is stored may be lost, or a program's limit; ""

	// Every change of the search or the scope is a generation. One request for rows runs at a time: an answer of an
	// older generation is dropped, and the newest one is asked for.
	wanted, asked, answered int
	running                 bool
	keep                    bool // stay on the selected session
	previewing              bool
	queued                  *tea.KeyPressMsg // acts on the first row of the coming answer
	begins                  tea.Cmd          // Init
	choice                  Choice
}

// Messages of the requests.
type (
	dueMsg   struct{ generation int } // a pause in typing
	foundMsg struct {
		generation int
		more       bool // the next piece of a list
		found      Found
		err        error
	}
	previewMsg struct {
		id      session.ID
		preview Preview
		err     error
	}
	sourcesMsg struct{ sources []session.Source }
	versionMsg struct {
		version int64
		alarm   string
		err     error
	}
	doneMsg struct { // a key did what it does
		id      session.ID
		said    string
		copied  string // for the terminal's clipboard
		changed bool   // a row of the list
		choice  Choice // leave with it
		err     error
	}
)

// New returns a picker of all sessions, and reads the newest of them, so that the first screen has them. ctx ends its
// requests.
func New(ctx context.Context, cfg Config) Model {
	m := Model{Config: cfg, ctx: ctx, input: newInput(""), version: -1, wanted: 1}
	first, _ := m.ask()().(foundMsg)
	m.begins = m.receive(first)
	return m
}

func newInput(text string) textinput.Model {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 500
	in.SetStyles(textinput.Styles{})
	in.SetVirtualCursor(false)
	in.KeyMap.Paste.SetEnabled(false) // terminals paste by themselves
	in.Focus()
	in.SetValue(text)
	return in
}

// Init implements tea.Model.
func (m Model) Init() tea.Cmd {
	return tea.Batch(m.begins, m.look, func() tea.Msg {
		sources, _ := m.Data.Sources(m.ctx) // without them Ctrl-F has no other program to show
		return sourcesMsg{sources}
	})
}

// look asks whether the database has changed, and whether all is well.
func (m Model) look() tea.Msg {
	version, err := m.Data.Version(m.ctx)
	return versionMsg{version, m.Data.Alarm(m.ctx), err}
}

// Update implements tea.Model.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.keepVisible()
	return m, cmd
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.ModeReportMsg: // the renderer counts as this says
		if msg.Mode == ansi.ModeUnicodeCore && msg.Value != ansi.ModeNotRecognized && msg.Value != ansi.ModePermanentlyReset {
			m.method = ansi.GraphemeWidth
		}
	case tea.KeyPressMsg:
		return m.press(msg)
	case tea.PasteMsg:
		return m.edit(msg)
	case dueMsg:
		if msg.generation == m.wanted {
			return m.ask()
		}
	case foundMsg:
		return m.receive(msg)
	case previewMsg:
		return m.receivePreview(msg)
	case sourcesMsg:
		m.sources = msg.sources
	case versionMsg:
		return m.refresh(msg)
	case doneMsg:
		return m.done(msg)
	}
	return nil
}

// want begins a generation: another search, another scope, or, to keep the selection, the same as it is now.
func (m *Model) want(pause time.Duration, keep bool) tea.Cmd {
	m.keep = keep && !m.outdated()
	m.wanted++
	if generation := m.wanted; pause > 0 {
		return tea.Tick(pause, func(time.Time) tea.Msg { return dueMsg{generation} })
	}
	return m.ask()
}

// ask requests the rows of the newest generation, unless a request runs: its answer asks again.
func (m *Model) ask() tea.Cmd {
	if m.running || m.asked == m.wanted {
		return nil
	}
	m.running, m.asked = true, m.wanted
	data, ctx, generation, scope, text := m.Data, m.ctx, m.wanted, m.scope, m.query()
	limit := min(max(pieceRows, m.at+m.height), mostRows)
	return func() tea.Msg {
		var f Found
		var err error
		if text == "" {
			f, err = data.List(ctx, scope, "", limit)
		} else {
			f, err = data.Search(ctx, scope, text)
		}
		return foundMsg{generation: generation, found: f, err: err}
	}
}

// outdated reports whether the rows on the screen are not those that the person asked for last.
func (m *Model) outdated() bool { return !m.keep && m.answered != m.wanted }

func (m *Model) query() string { return strings.TrimSpace(m.input.Value()) }

// receive shows the answer to the newest request.
func (m *Model) receive(msg foundMsg) tea.Cmd {
	m.running = false
	if msg.generation != m.wanted {
		return m.ask()
	}
	m.answered = m.wanted
	switch {
	case msg.err != nil:
		m.fail(msg.err)
		if !m.keep {
			m.found = Found{}
		}
	case msg.more:
		m.found.Rows, m.found.Next = append(m.found.Rows, msg.found.Rows...), msg.found.Next
	case m.keep:
		m.replace(msg.found)
	default:
		m.found, m.at, m.top = msg.found, 0, 0
		if k := m.queued; k != nil {
			return tea.Batch(m.moved(), m.press(*k))
		}
	}
	return m.moved()
}

// replace shows the same list as it is now, and stays on the selected session.
func (m *Model) replace(f Found) {
	was, any := m.selected()
	m.found = f
	if !any {
		return
	}
	at := slices.IndexFunc(f.Rows, func(r Row) bool { return r.ID == was.ID })
	if at < 0 {
		if m.said == "" {
			m.say(string(was.ID) + " is not in this list any more.")
		}
		at = min(m.at, max(0, len(f.Rows)-1))
	}
	m.top += at - m.at
	m.at = at
}

func (m *Model) selected() (Row, bool) {
	if m.at < len(m.found.Rows) {
		return m.found.Rows[m.at], true
	}
	return Row{}, false
}

// moved requests what the selected row needs: its preview, and more rows near the end of the list.
func (m *Model) moved() tea.Cmd {
	row, any := m.selected()
	if !any {
		m.preview = Preview{}
		return nil
	}
	var cmds []tea.Cmd
	data, ctx := m.Data, m.ctx
	if m.preview.ID != row.ID || m.stale {
		if m.preview.ID != row.ID {
			m.scroll = 0
		}
		if !m.previewing {
			m.previewing, m.stale = true, false
			cmds = append(cmds, func() tea.Msg {
				p, err := data.Preview(ctx, row.ID)
				return previewMsg{row.ID, p, err}
			})
		}
	}
	if near := len(m.found.Rows) - 2*m.height; m.at >= near && m.found.Next != "" && !m.running {
		m.running = true
		generation, scope, cursor := m.wanted, m.scope, m.found.Next
		cmds = append(cmds, func() tea.Msg {
			f, err := data.List(ctx, scope, cursor, pieceRows)
			return foundMsg{generation: generation, more: true, found: f, err: err}
		})
	}
	return tea.Batch(cmds...)
}

func (m *Model) receivePreview(msg previewMsg) tea.Cmd {
	m.previewing = false
	row, any := m.selected()
	switch {
	case errors.Is(msg.err, ErrGone):
		m.forget(msg.id)
	case !any || row.ID != msg.id: // the selection has moved on
	case msg.err != nil:
		m.preview = Preview{Row: row}
		m.fail(msg.err)
	default:
		m.preview = msg.preview
	}
	return m.moved()
}

// forget removes a session that does not exist any more from the list.
func (m *Model) forget(id session.ID) {
	m.found.Rows = slices.DeleteFunc(m.found.Rows, func(r Row) bool { return r.ID == id })
	m.at = min(m.at, max(0, len(m.found.Rows)-1))
	m.say(string(id) + " does not exist any more: it was deleted after this list was read.")
}

// refresh reads the list again if the database has changed. The answer of a search stays until the search changes,
// only its preview is read again: a search may be expensive, and a working daemon stores something all the time.
func (m *Model) refresh(msg versionMsg) tea.Cmd {
	var cmds []tea.Cmd
	if m.Poll > 0 {
		cmds = append(cmds, tea.Tick(m.Poll, func(time.Time) tea.Msg { return m.look() }))
	}
	if msg.err == nil && m.version >= 0 && msg.version != m.version {
		cmds = append(cmds, m.again(m.query() == "" && m.at < mostRows-m.height))
	}
	m.alarm = msg.alarm
	if msg.err == nil {
		m.version = msg.version
	}
	return tea.Batch(cmds...)
}

// again reads the preview once more, and the rows.
func (m *Model) again(rows bool) tea.Cmd {
	m.stale = true
	if rows {
		return tea.Batch(m.want(0, true), m.moved())
	}
	return m.moved()
}

// done says what a key did.
func (m *Model) done(msg doneMsg) tea.Cmd {
	switch {
	case errors.Is(msg.err, ErrGone):
		m.forget(msg.id)
		return m.moved()
	case msg.err != nil:
		m.fail(msg.err)
		return nil
	case msg.choice != Choice{}:
		m.choice = msg.choice
		return tea.Quit
	}
	m.say(msg.said)
	var cmds []tea.Cmd
	if msg.copied != "" {
		cmds = append(cmds, tea.SetClipboard(msg.copied))
	}
	if msg.changed {
		cmds = append(cmds, m.again(true))
	}
	return tea.Batch(cmds...)
}

func (m *Model) say(text string) { m.said, m.failed = text, false }

func (m *Model) fail(err error) { m.said, m.failed = err.Error(), true }

// keepVisible scrolls the list to the selected row.
func (m *Model) keepVisible() {
	rows := m.layout().list
	m.top = min(m.top, m.at, max(0, len(m.found.Rows)-rows))
	m.top = max(m.top, m.at-rows+1, 0)
}
