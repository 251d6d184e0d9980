package picker

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestTicks(t *testing.T) {
	m := newTicks([]Tick{
		{Name: "one", On: true}, {Name: "two", On: true}, {Name: "three", Why: "there is none here"},
	}, "below")
	press := func(keys ...tea.Key) {
		for _, k := range keys {
			next, _ := m.Update(tea.KeyPressMsg(k))
			m = next.(tickList)
		}
	}
	rune1 := func(r rune) tea.Key { return tea.Key{Code: r, Text: string(r)} }
	press(rune1('1'), tea.Key{Code: tea.KeyDown}, tea.Key{Code: tea.KeySpace, Text: " "}, rune1('2'), rune1('3'))
	if m.ticks[0].On || !m.ticks[1].On || m.ticks[2].On {
		t.Errorf("ticks %+v", m.ticks)
	}
	next, _ := m.Update(tea.WindowSizeMsg{Width: 20, Height: 10})
	for line := range strings.Lines(next.(tickList).View().Content) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 20 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if press(tea.Key{Code: tea.KeyEscape}); m.goOn || !m.done {
		t.Error("Esc goes on")
	}
}
