package picker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sessiond/internal/picker"
	"sessiond/internal/search"
	"sessiond/internal/session"
)

var now = time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC)

// shelf is the data behind a picker: sessions in memory.
type shelf struct {
	mu       sync.Mutex
	rows     []picker.Row // newest first
	version  int64
	asked    []string // what the picker asked for, in order
	err      error    // of everything about a session
	unopened bool     // no browser can be started
	alarm    string
}

func (s *shelf) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
}

func (s *shelf) List(_ context.Context, in picker.Scope, cursor string, limit int) (picker.Found, error) {
	s.note("list %+v after %q", in, cursor)
	at := 0
	if cursor != "" {
		at = 1 + slices.IndexFunc(s.rows, func(r picker.Row) bool { return string(r.ID) == cursor })
	}
	var f picker.Found
	for _, r := range s.rows[at:] {
		if (r.ArchivedAt != nil) != in.Archived || in.Starred && r.StarredAt == nil ||
			in.Source != "" && r.Source != in.Source {
			continue
		}
		if len(f.Rows) == limit {
			f.Next = string(f.Rows[limit-1].ID)
			break
		}
		f.Rows = append(f.Rows, r)
	}
	f.Empty = len(s.rows) == 0
	return f, nil
}

func (s *shelf) Search(_ context.Context, in picker.Scope, text string) (f picker.Found, err error) {
	s.note("search %+v %q", in, text)
	for _, r := range s.rows {
		if strings.Contains(strings.ToLower(r.Title), text) {
			if at := strings.Index(r.Title, text); at >= 0 {
				r.Passages = []search.Hit{{
					Seq: 27, Role: session.User, Snippet: r.Title + " …",
					Marks: [][2]int{{at, at + len(text)}},
				}}
			}
			f.Rows = append(f.Rows, r)
		}
	}
	f.Notes = []string{"no searched message has `\x1b[31mxyzzy`"}
	return f, nil
}

func (s *shelf) find(id session.ID) (*picker.Row, error) {
	i := slices.IndexFunc(s.rows, func(r picker.Row) bool { return r.ID == id })
	if i < 0 {
		return nil, picker.ErrGone
	}
	return &s.rows[i], s.err
}

func (s *shelf) Preview(_ context.Context, id session.ID) (picker.Preview, error) {
	r, err := s.find(id)
	if err != nil {
		return picker.Preview{}, err
	}
	message := func(seq int64, role session.Role, text string) session.Message {
		parent := seq - 1
		return session.Message{
			ID: session.MessageRef{Session: id, Seq: seq}, SessionID: id, Seq: seq, RowID: seq, ParentID: &parent,
			Kind: session.KindMessage, Role: role,
			Display: true, CreatedAt: session.At(now.Add(-time.Hour)), Parts: []session.Part{session.TextPart(text)},
		}
	}
	return picker.Preview{
		Row:     *r,
		Prompts: []session.Message{message(1, session.User, "First, "+r.Title), message(3, session.User, "And the tests?")},
		Last: []session.Message{
			message(3, session.User, "And the tests?"),
			message(4, session.Assistant, "All pass.\n\nThe end of "+r.Title),
		},
	}, nil
}

func (s *shelf) Alarm(context.Context) string { return s.alarm }

func (s *shelf) Version(context.Context) (int64, error) { return s.version, nil }

func (s *shelf) Sources(context.Context) ([]session.Source, error) {
	return []session.Source{session.SourceClaudeCode, session.SourcePi}, nil
}

func (s *shelf) Resume(_ context.Context, id session.ID) (string, error) {
	_, err := s.find(id)
	return "cd /src && claude --resume " + string(id), err
}

func (s *shelf) Rename(_ context.Context, id session.ID, title string) error {
	return s.change(id, func(r *picker.Row) { r.Title = title })
}

func (s *shelf) Archive(_ context.Context, id session.ID, on bool) error {
	return s.change(id, func(r *picker.Row) { r.ArchivedAt = when(on) })
}

func (s *shelf) Star(_ context.Context, id session.ID, on bool) error {
	return s.change(id, func(r *picker.Row) { r.StarredAt = when(on) })
}

func when(on bool) *session.Time {
	if !on {
		return nil
	}
	at := session.At(now)
	return &at
}

func (s *shelf) change(id session.ID, do func(*picker.Row)) error {
	r, err := s.find(id)
	if err == nil {
		do(r)
		s.version++
	}
	return err
}

func (s *shelf) Export(_ context.Context, id session.ID, file string) (string, error) {
	_, err := s.find(id)
	return file + ": 1 session", err
}

func (s *shelf) Open(_ context.Context, id session.ID) (string, error) {
	if s.unopened {
		return "http://127.0.0.1:7433/open/abc", nil
	}
	_, err := s.find(id)
	return "", err
}

// filled returns sessions with titles; the first one is the newest.
func filled(titles ...string) *shelf {
	s := &shelf{}
	cost := int64(12_100_000_000)
	for i, title := range titles {
		r := picker.Row{Session: session.Session{
			ID: session.ID(fmt.Sprintf("20261124_%03d", len(titles)-i)), Title: title, Source: session.SourceClaudeCode,
			Project: "/home/ada/src/parser",
			Model:   "claude-opus-4-6", GitBranch: "main", SaidCount: 142, CostNanoUSD: &cost,
			ActiveAt: session.At(now.Add(-time.Duration(i*i) * 7 * time.Hour)), Kind: "chat",
		}, Measure: session.Measure{Context: session.ContextSize{Tokens: 124_000, Reported: true, Window: 200_000}}}
		if i%3 == 2 {
			r.Source, r.Rollup, r.Project = session.SourcePi, &session.Rollup{Children: 12, CostNanoUSD: r.CostNanoUSD},
				"/home/ada/src/a-long-project-name"
		}
		r.Name = filepath.Base(r.Project)
		s.rows = append(s.rows, r)
	}
	return s
}

// person uses a picker: requests are answered at once, unless they are held.
type person struct {
	*testing.T
	model  tea.Model
	data   *shelf
	hold   bool
	held   []tea.Cmd
	copied string
	left   bool
}

func sit(t *testing.T, data *shelf, width, height int) *person {
	t.Helper()
	p := &person{T: t, data: data}
	p.model = picker.New(t.Context(), picker.Config{
		Data: data, Now: func() time.Time {
			return now
		}, Home: "/home/ada", Project: "parser", Here: "/home/ada/src/parser/cmd",
		Targets: []string{"claude-code", "codex"},
	})
	p.run(p.model.Init())
	p.tell(tea.WindowSizeMsg{Width: width, Height: height})
	return p
}

// tell gives the picker a message, and then the answers to what it asks.
func (p *person) tell(msg tea.Msg) {
	var cmd tea.Cmd
	p.model, cmd = p.model.Update(msg)
	_ = p.model.View()
	p.run(cmd)
}

func (p *person) run(cmd tea.Cmd) {
	switch {
	case cmd == nil:
		return
	case p.hold:
		p.held = append(p.held, cmd)
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, one := range msg {
			p.run(one)
		}
	case tea.QuitMsg:
		p.left = true
	default:
		if fmt.Sprintf("%T", msg) == "tea.setClipboardMsg" {
			p.copied = fmt.Sprint(msg)
			return
		}
		p.tell(msg)
	}
}

// release answers what was held.
func (p *person) release() {
	p.hold = false
	held := p.held
	p.held = nil
	for _, cmd := range held {
		p.run(cmd)
	}
}

// keys presses keys: names like "down" or "ctrl+r", or text between quotes.
func (p *person) keys(names ...string) {
	p.Helper()
	codes := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgup":   tea.KeyPgUp,
		"pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace, "f1": tea.KeyF1,
	}
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, "'"); ok {
			for _, r := range text {
				p.tell(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			continue
		}
		k := tea.KeyPressMsg{}
		rest := name
		for prefix, mod := range map[string]tea.KeyMod{"ctrl+": tea.ModCtrl, "shift+": tea.ModShift} {
			if after, ok := strings.CutPrefix(rest, prefix); ok {
				rest, k.Mod = after, mod
			}
		}
		if k.Code = codes[rest]; k.Code == 0 {
			k.Code = []rune(rest)[0]
		}
		p.tell(k)
	}
}

// screen is what the person reads, without colours and spaces at the ends of lines.
func (p *person) screen() string {
	lines := strings.Split(ansi.Strip(p.model.View().Content), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (p *person) sees(texts ...string) {
	p.Helper()
	for _, text := range texts {
		if !strings.Contains(p.screen(), text) {
			p.Fatalf("no %q on the screen:\n%s", text, p.screen())
		}
	}
}

func (p *person) seesNot(text string) {
	p.Helper()
	if strings.Contains(p.screen(), text) {
		p.Fatalf("%q is on the screen:\n%s", text, p.screen())
	}
}

var errBroken = errors.New("the disk is broken")
