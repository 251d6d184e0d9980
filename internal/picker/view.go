package picker

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sessiond/internal/transcript"
)

// Styles are attributes and colours of the terminal's own palette, which people choose for dark and light.
var (
	bold   = ansi.NewStyle().Bold()
	faint  = ansi.NewStyle().Faint()
	accent = ansi.NewStyle().Bold().ForegroundColor(ansi.Magenta)
	strong = ansi.NewStyle().Bold().Underline(true)
	alarm  = ansi.NewStyle().ForegroundColor(ansi.Red)
)

const (
	sideWidth   = 100 // columns from which the preview stands beside the list
	widestText  = 120 // columns of running text
	leastBelow  = 10  // rows from which there is a preview below the list
	ageColumns  = 9
	nameColumns = 12
	costColumns = 9
	mostNotes   = 3  // lines
	leastTitle  = 40 // columns of a title, before others get room
)

// layout is how the rows and columns of the screen are used.
type layout struct {
	alarm        bool     // a line for what is wrong with the store, the first
	scope        bool     // a line for the scope
	list         int      // rows
	listWidth    int      // columns
	preview      int      // rows; 0: none
	previewWidth int      // columns
	beside       bool     // the preview stands beside the list
	notes        []string // lines below the list, for what was not found or searched
	said         []string // lines for what a key did
	keys         bool     // a line for the keys
}

func (m *Model) layout() layout {
	l := layout{alarm: m.alarm != "" && m.height >= 3, scope: m.height >= 8, keys: m.height >= 4, listWidth: m.width}
	rest := m.height - 1
	if l.alarm {
		rest--
	}
	if l.scope {
		rest--
	}
	if l.keys {
		rest--
	}
	if m.said != "" {
		l.said = m.wrap(plain(m.said), m.width)
		l.said = l.said[:min(len(l.said), max(1, m.height/6))]
		rest -= len(l.said)
	}
	switch {
	case m.width >= sideWidth && rest >= 4:
		l.beside = true
		l.listWidth = min(m.width*11/20, 160)
		l.preview, l.previewWidth = rest, m.width-l.listWidth-3
	case rest >= leastBelow:
		l.preview, l.previewWidth = rest*9/20, m.width
		rest -= l.preview + 1 // and a line between
	}
	if len(m.found.Rows) > 0 && rest > 4 {
		for _, note := range m.found.Notes {
			l.notes = append(l.notes, m.wrap(plain(note), l.listWidth-2)...)
		}
		l.notes = l.notes[:min(len(l.notes), mostNotes)]
		rest -= len(l.notes)
	}
	l.list = max(1, rest)
	return l
}

// View implements tea.Model.
func (m Model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.width <= 0 || m.height <= 0 {
		return v
	}
	l := m.layout()
	var lines []string
	if l.alarm {
		lines = append(lines, alarm.Styled(m.method.Truncate(plain(m.alarm), m.width, "…")))
	}
	lines = append(lines, m.top1())
	if l.scope {
		lines = append(lines, m.scopeLine())
	}
	switch {
	case m.help:
		lines = append(lines, m.helpLines()...)
	case l.beside:
		left, right := m.listLines(l), m.previewLines(l.previewWidth, l.preview)
		for i := range l.preview {
			lines = append(lines, m.fit(at(left, i), l.listWidth)+faint.Styled(" │ ")+at(right, i))
		}
	default:
		lines = append(lines, m.listLines(l)...)
		if l.preview > 0 {
			lines = append(lines, faint.Styled(strings.Repeat("─", m.width)))
			lines = append(lines, m.pad(m.previewLines(l.previewWidth, l.preview), l.preview)...)
		}
	}
	foot := m.footLines(l)
	lines = append(m.pad(lines, m.height-len(foot)), foot...)
	for i := range lines {
		lines[i] = m.method.Truncate(lines[i], m.width, "…")
	}
	v.SetContent(strings.Join(lines, "\n"))
	if v.Cursor = m.cursor(); v.Cursor != nil && l.alarm {
		v.Cursor.Y++
	}
	return v
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// pad returns exactly n lines.
func (m *Model) pad(lines []string, n int) []string {
	n = max(0, n)
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines[:n]
}

// field is the text field at the top: what stands before it, and its columns.
func (m *Model) field() (before string, text string, cursor, width int) {
	in := &m.input
	before = "❯ "
	if m.line != nil {
		in, before = &m.line.input, m.line.asks+" "
	}
	before = m.method.Truncate(before, max(2, m.width-8), "… ")
	width = max(1, m.width-m.method.StringWidth(before)-1)
	text = in.Value()
	cursor = m.method.StringWidth(string([]rune(text)[:in.Position()]))
	if over := cursor - width; over > 0 { // the end of a long text is shown
		text, cursor = m.method.TruncateLeft(text, over, ""), width
	}
	return before, text, cursor, width
}

func (m *Model) top1() string {
	before, text, _, width := m.field()
	switch {
	case m.line == nil && text == "":
		text = faint.Styled(m.method.Truncate("Type to search titles and messages", width, "…"))
	default:
		text = m.method.Truncate(text, width, "")
	}
	head := accent.Styled(before) + text
	state := ""
	switch {
	case m.line != nil:
	case m.outdated() && m.query() != "":
		state = "searching …"
	case m.outdated():
		state = "reading …"
	case m.query() != "" && len(m.found.Rows) > 0:
		state = fmt.Sprintf("%d found", len(m.found.Rows))
	}
	if gap := m.width - m.method.StringWidth(head) - len([]rune(state)); state != "" && gap > 1 {
		head += strings.Repeat(" ", gap) + faint.Styled(state)
	}
	return head
}

func (m *Model) cursor() *tea.Cursor {
	if m.help {
		return nil
	}
	before, _, cursor, _ := m.field()
	return tea.NewCursor(min(m.method.StringWidth(before)+cursor, m.width-1), 0)
}

// scopeLine says which sessions are listed; what differs from the usual stands out.
func (m *Model) scopeLine() string {
	var parts []string
	for where, name := range []string{"everywhere", "project " + m.Project, "folder " + transcript.LastFolder(m.Here)} {
		style := faint
		if Where(where) == m.scope.Where {
			style = strong
		}
		parts = append(parts, style.Styled(plain(name)))
	}
	out := "  " + strings.Join(parts, "  ")
	for _, filter := range []struct {
		on   bool
		name string
	}{
		{m.scope.Source != "", string(m.scope.Source)},
		{m.scope.SubAgents, "with sub-agents"},
		{m.scope.Starred, "starred"},
		{m.scope.Archived, "archived"},
	} {
		if filter.on {
			out += faint.Styled(" · ") + accent.Styled(filter.name)
		}
	}
	return out
}

// columns are those of the list.
type columns struct{ title, project, source, cost, age int }

func (m *Model) columns(width int) (c columns) {
	c.title = width - 2
	if width >= 40 {
		c.age = ageColumns
		c.title -= c.age + 1
	}
	for _, one := range []struct {
		to           *int
		width, least int
		show         bool
	}{
		{&c.project, nameColumns, leastTitle - 6, m.scope.Where == Everywhere},
		{&c.source, nameColumns, leastTitle, m.scope.Source == ""},
		{&c.cost, costColumns, leastTitle + 10, true},
	} {
		if one.show && c.title-one.width-1 >= one.least {
			*one.to = one.width
			c.title -= one.width + 1
		}
	}
	return c
}

// listLines are the rows on the screen and the notes below them.
func (m *Model) listLines(l layout) []string {
	if len(m.found.Rows) == 0 {
		return m.pad(m.nothing(l.listWidth), l.list)
	}
	var lines []string
	c := m.columns(l.listWidth)
	for i := m.top; i < min(m.top+l.list, len(m.found.Rows)); i++ {
		lines = append(lines, m.rowLine(m.found.Rows[i], c, i == m.at))
	}
	lines = m.pad(lines, l.list)
	for _, note := range l.notes {
		lines = append(lines, faint.Styled("  "+note))
	}
	return lines
}

func (m *Model) rowLine(r Row, c columns, selected bool) string {
	marker, style := "  ", ansi.NewStyle()
	if selected {
		marker, style = accent.Styled("❯ "), bold
	}
	title, width := titleOf(r), c.title
	children := ""
	if n := r.Children(); n > 0 && !m.scope.SubAgents {
		children = fmt.Sprintf(" +%d", n)
	}
	title = m.method.Truncate(title, width-len(children), "…")
	out := marker + m.fit(style.Styled(title)+faint.Styled(children), width)
	for _, cell := range []struct {
		text  string
		width int
	}{{r.Name, c.project}, {string(r.Source), c.source}} {
		if cell.width > 0 {
			out += " " + faint.Styled(m.fit(m.method.Truncate(plain(cell.text), cell.width, "…"), cell.width))
		}
	}
	if c.cost > 0 {
		cost, _ := transcript.CostCell(&r.Session, &r.Measure, !m.scope.SubAgents)
		out += " " + faint.Styled(fmt.Sprintf("%*s", c.cost, m.method.Truncate(cost, c.cost, "…")))
	}
	if c.age > 0 {
		out += " " + faint.Styled(fmt.Sprintf("%*s", c.age, age(r.ActiveAt.Time, m.Now())))
	}
	return out
}

// nothing says why the list is empty.
func (m *Model) nothing(width int) []string {
	var text string
	switch query := m.query(); {
	case m.outdated():
		return nil
	case m.found.Empty:
		text = "Nothing is stored yet. Press Enter to import the conversations that your agents have had on this host: " +
			"`sessiond import` lists them and asks before it begins."
	case query != "":
		text = "Nothing found. Fewer words find more; word* finds beginnings."
	case m.scope.Starred:
		text = "No session is starred here: ^S stars one."
	case m.scope.Archived:
		text = "No session is archived here."
	default:
		text = "No session is here."
	}
	if !m.found.Empty && m.scope != (Scope{}) {
		text += " The second line says which sessions are searched and listed: Tab, ^F, ^G and ^V change that."
	}
	var lines []string
	for _, text := range append([]string{text}, m.found.Notes...) {
		for _, one := range m.wrap(plain(text), width-2) {
			lines = append(lines, "  "+one)
		}
	}
	return lines
}

// footLines are what a key did, and the keys.
func (m *Model) footLines(l layout) (lines []string) {
	style := accent
	if m.failed {
		style = alarm
	}
	for _, text := range l.said {
		lines = append(lines, style.Styled(text))
	}
	if !l.keys {
		return lines
	}
	const help = "? help"
	out := ""
	for _, k := range keys {
		if m.method.StringWidth(out+k.name+k.short)+3+len(help) > m.width {
			break
		}
		out += bold.Styled(k.name) + faint.Styled(" "+k.short) + "  "
	}
	return append(lines, out+bold.Styled("?")+faint.Styled(" help"))
}

func (m *Model) helpLines() []string {
	lines := []string{""}
	for _, k := range append(append([]key{}, moves...), keys...) {
		lines = append(lines, "  "+bold.Styled(m.fit(k.name, 11))+k.long)
	}
	lines = append(lines, "")
	const help = "Any key goes back. A search can have \"exact words\", -word, begin*, after:7d and more; " +
		"`sessiond search --help` lists all."
	for _, text := range m.wrap(help, m.width-2) {
		lines = append(lines, "  "+faint.Styled(text))
	}
	return lines
}

// fit pads a line to a width, or cuts it.
func (m *Model) fit(s string, width int) string {
	s = m.method.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(0, width-m.method.StringWidth(s)))
}

func (m *Model) wrap(s string, width int) []string { return transcript.Wrap(s, max(1, width)) }

func titleOf(r Row) string {
	title := cmp.Or(plain(r.Title), "(no title)")
	if r.StarredAt != nil {
		title = "★ " + title
	}
	return title
}

// plain returns a text in one line, without what acts on a terminal.
func plain(s string) string { return strings.Join(strings.Fields(steady(transcript.Clean(s))), " ") }

// steady removes what terminals draw with different widths: joined emoji fall apart, and lose their skin colours and
// variants.
func steady(s string) string {
	if !strings.ContainsFunc(s, variesInWidth) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if variesInWidth(r) {
			return -1
		}
		return r
	}, s)
}

func variesInWidth(r rune) bool {
	return r == 0x200d || r == 0xfe0e || r == 0xfe0f || r >= 0x1f3fb && r <= 0x1f3ff
}

// age formats a time in at most ageColumns columns: the more there is since, the less exactly.
func age(t, now time.Time) string {
	t = t.In(now.Location())
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	switch days := int(day(now).Sub(day(t)).Hours() / 24); {
	case now.Sub(t).Abs() < time.Minute:
		return "now"
	case now.Sub(t) < time.Hour && t.Before(now):
		return fmt.Sprintf("%d min", int(now.Sub(t).Minutes()))
	case days == 0:
		return t.Format("15:04")
	case days == 1:
		return "yesterday"
	case days > 0 && days < 7:
		return t.Format("Monday")
	case t.Year() == now.Year():
		return t.Format("2 Jan")
	}
	return t.Format("Jan 2006")
}
