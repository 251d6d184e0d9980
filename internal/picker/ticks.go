package picker

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"sessiond/internal/transcript"
)

// Tick is a line that a person turns on or off.
type Tick struct {
	Name  string
	About string // what it does
	On    bool
	Why   string // it cannot be turned on, because of this; "": it can
}

// AskTicks shows ticks below what is on the screen until the person goes on or leaves. It changes on; go is false
// after q, Esc or Ctrl-C.
func AskTicks(ctx context.Context, ticks []Tick, below string, t Terminal) (chosen []Tick, goOn bool, err error) {
	last, err := tea.NewProgram(newTicks(ticks, below), t.options(ctx)...).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return ticks, false, nil
	}
	if ctx.Err() != nil {
		return ticks, false, ctx.Err()
	}
	if err != nil {
		return ticks, false, err
	}
	m := last.(tickList)
	return m.ticks, m.goOn, nil
}

func (t Terminal) options(ctx context.Context) []tea.ProgramOption {
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out),
		tea.WithEnvironment(t.Environ), tea.WithFPS(120),
	}
	if t.NoColor {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	return options
}

// tickList is the state of AskTicks.
type tickList struct {
	ticks []Tick
	below string
	at    int
	width int
	goOn  bool
	done  bool
}

func newTicks(ticks []Tick, below string) tickList {
	return tickList{ticks: append([]Tick{}, ticks...), below: below}
}

// Init implements tea.Model.
func (m tickList) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m tickList) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case tea.KeyPressMsg:
		switch key := msg.String(); key {
		case "enter":
			m.goOn, m.done = true, true
			return m, tea.Quit
		case "q", "esc", "ctrl+c":
			m.done = true
			return m, tea.Quit
		case "up", "k":
			m.at = max(m.at-1, 0)
		case "down", "j", "tab":
			m.at = min(m.at+1, len(m.ticks)-1)
		case "space", " ", "x":
			m.toggle(m.at)
		default:
			if n := strings.Index("123456789", key); len(key) == 1 && n >= 0 && n < len(m.ticks) {
				m.at = n
				m.toggle(n)
			}
		}
	}
	return m, nil
}

// toggle turns a tick on or off, in a list of its own: a model is a value.
func (m *tickList) toggle(n int) {
	m.ticks = append([]Tick{}, m.ticks...)
	if m.ticks[n].Why == "" {
		m.ticks[n].On = !m.ticks[n].On
	}
}

// View implements tea.Model.
func (m tickList) View() tea.View {
	names := 0
	for _, t := range m.ticks {
		names = max(names, len(t.Name))
	}
	var lines []string
	for i, t := range m.ticks {
		mark, about := "[ ]", t.About
		switch {
		case t.Why != "":
			mark, about = " - ", t.Why
		case t.On:
			mark = "[x]"
		}
		pointer := "  "
		if i == m.at && !m.done {
			pointer = "> "
		}
		lines = append(lines, pointer+mark+" "+t.Name+strings.Repeat(" ", names-len(t.Name))+"  "+about)
	}
	lines = append(lines, "")
	lines = append(lines, strings.Split(m.below, "\n")...)
	if m.done {
		lines = append(lines, "")
	} else {
		lines = append(lines, "", "Enter: go on   Space or 1 2 3: change a tick   q: leave, nothing is done")
	}
	for i := range lines {
		if m.width > 0 {
			lines[i] = transcript.Truncate(lines[i], m.width)
		}
	}
	return tea.NewView(strings.Join(lines, "\n"))
}
