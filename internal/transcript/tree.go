package transcript

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Tree draws a session's tree. The path to the head, then the newest branch, runs straight down; other
// branches are indented, one step per level. A filled mark is on the path to the head.
//
//	● user #1 · Why does it fail?
//	⋮ 3 more
//	● assistant #5 · Because of the lexer.
//	├─○ user #6 · Try the old one
//	│ ○ assistant #7 · That is worse.  [dead end]
//	● user #8 · Try the new one  ◀ head
//
// Segments must hold every parent before its children. Of a long line only its ends and its marked
// messages are drawn. Stored text cannot act on the terminal.
func Tree(w io.Writer, shown session.ID, segments []session.Segment, opt TerminalOptions) error {
	t := treeDrawing{
		TerminalOptions: opt, own: shown, segments: segments, out: bufio.NewWriter(w),
		style: style{on: opt.Color},
	}
	t.at, t.lasts = make(map[session.MessageRef]int, len(segments)), make(map[session.MessageRef]bool, len(segments))
	for i := range segments {
		t.at[segments[i].First.ID], t.lasts[segments[i].Last.ID] = i, true
	}
	t.draw()
	return t.out.Flush()
}

type treeDrawing struct {
	TerminalOptions
	own      session.ID
	segments []session.Segment
	at       map[session.MessageRef]int // segments by their first message
	lasts    map[session.MessageRef]bool
	out      *bufio.Writer
	style    style
}

// growing is a segment to draw.
type growing struct {
	index, level int
	side         bool // it leaves the line of the level before
}

func (t *treeDrawing) draw() {
	var roots []int
	for i := range t.segments {
		if p := t.segments[i].Parent; p == nil || !t.lasts[*p] {
			roots = append(roots, i)
		}
	}
	t.headPathLast(roots)
	for n, root := range roots {
		if n > 0 {
			t.line("")
		}
		for todo := []growing{{index: root}}; len(todo) > 0; {
			next := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			t.segment(next)
			var follow []int
			for _, child := range t.segments[next.index].Children {
				if i, ok := t.at[child]; ok {
					follow = append(follow, i)
				}
			}
			if len(follow) == 0 {
				continue
			}
			t.headPathLast(follow)
			last := len(follow) - 1
			todo = append(todo, growing{index: follow[last], level: next.level})
			for _, i := range slices.Backward(follow[:last]) {
				todo = append(todo, growing{index: i, level: next.level + 1, side: true})
			}
		}
	}
}

// headPathLast moves the segment that leads to the head to the end, where it is drawn straight on.
func (t *treeDrawing) headPathLast(indexes []int) {
	slices.SortStableFunc(indexes, func(a, b int) int {
		switch {
		case t.segments[a].OnPath == t.segments[b].OnPath:
			return 0
		case t.segments[a].OnPath:
			return 1
		}
		return -1
	})
}

// maxLevels limits the indentation, to keep room for text on narrow terminals.
func (t *treeDrawing) maxLevels() int {
	if t.Width <= 0 {
		return 20
	}
	return max(1, t.Width/6)
}

func (t *treeDrawing) segment(g growing) {
	s := &t.segments[g.index]
	level := min(g.level, t.maxLevels())
	rest := strings.Repeat("│ ", level)
	first := rest
	if g.side {
		first = strings.Repeat("│ ", level-1) + "├─"
	}
	told := s.First.ID.Seq - 1
	for _, seq := range marked(s) {
		if more := seq - told - 1; more > 0 {
			t.writeLine(rest, "⋮ ", t.style.dim, fmt.Sprintf("%d more", more), "")
		}
		told = seq
		t.message(first, s, seq)
		first = rest
		t.writeBranches(rest, s, seq)
	}
}

// marked returns the messages of a segment that are drawn.
func marked(s *session.Segment) []int64 {
	seqs := []int64{s.First.ID.Seq, s.Last.ID.Seq}
	for _, l := range s.Labels {
		seqs = append(seqs, l.Message.Seq)
	}
	for _, c := range s.Overlays {
		seqs = append(seqs, c.Through.Seq)
	}
	for _, h := range s.Hanging {
		seqs = append(seqs, h.Message.Seq)
	}
	slices.Sort(seqs)
	return slices.Compact(seqs)
}

func (t *treeDrawing) message(prefix string, s *session.Segment, seq int64) {
	ref := session.MessageRef{Session: s.First.ID.Session, Seq: seq}
	name := "#" + fmt.Sprint(seq)
	if ref.Session != t.own {
		name = ref.String()
	}
	mark, paint := "○ ", t.style.dim
	if s.OnPath {
		mark, paint = "● ", plain
	}
	var m *session.TreeMessage
	switch seq {
	case s.First.ID.Seq:
		m = &s.First
	case s.Last.ID.Seq:
		m = &s.Last
	}
	words := name
	if m != nil {
		words = who(m) + " " + name
		if said := saidIn(m); said != "" {
			words += " · " + said
		}
	}
	var tail []string
	for _, l := range s.Labels {
		if l.Message == ref {
			tail = append(tail, "["+l.Text+"]")
		}
	}
	if s.Head && s.Last.ID == ref {
		tail = append(tail, "◀ head")
	}
	t.writeLine(prefix, mark, paint, words, strings.Join(tail, " "))
}

func plain(s string) string { return s }

func who(m *session.TreeMessage) string {
	return SpeakerLabel(&session.Message{Kind: m.Kind, Role: m.Role, Origin: m.Origin})
}

func saidIn(m *session.TreeMessage) string {
	said := m.Preview
	if m.ToolName != "" {
		said = strings.TrimSpace(said + " → " + m.ToolName)
	}
	if m.Finish.Failed() {
		said = strings.TrimSpace(said + " (ended: " + string(m.Finish) + ")")
	}
	return said
}

// writeBranches writes the branches of a message under it.
func (t *treeDrawing) writeBranches(prefix string, s *session.Segment, seq int64) {
	for _, c := range s.Overlays {
		if c.Through.Seq != seq {
			continue
		}
		state := "not in force here"
		switch {
		case c.InForce:
			state = "in force: " + overlayText(c.Strategy)
		case c.Undone:
			state = "undone"
		}
		t.writeLine(prefix, "┄ ", t.style.bold, c.ID+", "+state, "")
	}
	for _, h := range s.Hanging {
		if h.Message.Seq != seq {
			continue
		}
		mark, what := "⑂ ", "fork "
		if h.Kind == session.ParentChild {
			mark, what = "↳ ", "started "
		}
		t.writeLine(prefix, mark, t.style.cyan, strings.TrimSpace(what+string(h.Session)+"  "+h.Title), "")
	}
}

// overlayText says what an overlay shows instead of the hidden messages.
func overlayText(strategy session.Strategy) string {
	switch strategy {
	case session.StrategyPrune:
		return "pieces of what is above are hidden from the model"
	case session.StrategyTruncate, session.StrategyClear:
		return "what is above is hidden from the model"
	default:
		return "the model sees a summary of what is above"
	}
}

// writeLine writes a line: the branches, a mark, text cut to the room, and a tail that is kept.
func (t *treeDrawing) writeLine(prefix, mark string, paint func(string) string, words, tail string) {
	width := t.Width
	if width <= 0 {
		width = maxWidth
	}
	room := max(8, min(width, maxWidth)-Width(prefix)-Width(mark))
	tail = OneLine(tail, max(8, room/2))
	if tail != "" {
		room = max(4, room-Width(tail)-2)
	}
	line := t.style.dim(prefix) + paint(mark+OneLine(words, room))
	if tail != "" {
		line += "  " + t.style.yellow(tail)
	}
	t.line(line)
}

// line leaves errors to Flush, which returns the first one.
func (t *treeDrawing) line(s string) { _, _ = t.out.WriteString(s + "\n") }
