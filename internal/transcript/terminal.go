package transcript

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/session"
)

const (
	defaultWidth = 80
	maxWidth     = 120 // of running text: longer lines are hard to read
)

// TerminalOptions configure a transcript in a terminal. The zero value is plain text of 80 columns.
type TerminalOptions struct {
	Width  int            // columns; 0: 80
	Color  bool           // write colours
	Raw    bool           // texts and results in full and unwrapped, for reading exactly
	Expand bool           // unfold reasoning, arguments, results, summaries and hidden messages
	Zone   *time.Location // of times; nil: time.Local
	// Program shows the rows of the program itself. Else the last line counts them, with the words of Folded behind the
	// number; "": there is no such line.
	Program bool
	Folded  string
	Mark    *session.MessageRef // a message to point at
}

// NewTerminal returns a writer for a terminal. Control sequences are stripped from every stored text.
func NewTerminal(w io.Writer, opt TerminalOptions) Writer {
	if opt.Width <= 0 {
		opt.Width = defaultWidth
	}
	if opt.Zone == nil {
		opt.Zone = time.Local
	}
	return &terminal{
		TerminalOptions: opt, out: bufio.NewWriter(w), style: style{on: opt.Color},
		clock: clock{zone: opt.Zone},
	}
}

// Item implements Writer.
func (t *terminal) Item(item *Item) error {
	t.item(item)
	return nil // Close returns the first error
}

// Close implements Writer.
func (t *terminal) Close() error {
	if t.folded > 0 && t.Folded != "" {
		t.gap()
		t.line(t.style.dim(OneLine("· +"+Counted(t.folded, "row")+" of the program"+t.Folded, min(t.Width, maxWidth))))
	}
	return t.out.Flush()
}

type terminal struct {
	TerminalOptions
	out   *bufio.Writer
	style style
	clock clock
	begun bool

	folded int // rows of the program that are not shown
}

// line leaves errors to Flush, which returns the first one.
func (t *terminal) line(s string) { _, _ = t.out.WriteString(s + "\n") }

func (t *terminal) gap() {
	if t.begun {
		t.line("")
	}
	t.begun = true
}

func (t *terminal) item(item *Item) {
	switch {
	case item.Talk == session.OfProgram && !t.Program:
		t.folded++
		return
	case item.Hidden && !t.Expand && !t.Raw && item.Talk != session.OfProgram:
		return
	}
	switch item.Kind {
	case ItemCompaction:
		t.gap()
		t.line(t.style.bold(t.rule(compactionLine(item.Compaction, &t.clock))))
		if t.Expand || t.Raw {
			t.text(item.Compaction.Summary, t.style.dim)
		}
	case ItemBranch:
		t.gap()
		t.line(t.style.dim(t.rule(branchLine(item.Branch))))
	case ItemMarker:
		t.marker(item)
	default:
		t.message(item)
	}
}

// rule draws a line across, with words in its middle.
func (t *terminal) rule(words string) string {
	words = OneLine(words, max(8, t.Width-6))
	rest := max(0, min(t.Width, maxWidth)-Width(words)-2)
	left := max(2, rest/2)
	return strings.Repeat("─", left) + " " + words + " " + strings.Repeat("─", max(2, rest-left))
}

func (t *terminal) marker(item *Item) {
	t.gap()
	t.line(t.style.dim(OneLine("· "+markerLine(item), min(t.Width, maxWidth))))
}

func (t *terminal) message(item *Item) {
	t.gap()
	t.heading(item)
	for i := range item.Blocks {
		b := &item.Blocks[i]
		switch b.Kind {
		case BlockTool:
			t.tool(b.Tool)
		case BlockReasoning:
			t.reasoning(b)
		case BlockAttachment:
			t.line("  " + t.style.cyan(Truncate(b.Attachment.String(), t.Width-2)))
		case BlockData:
			t.line("  " + t.style.dim(OneLine("[data] "+b.Text, t.Width-2)))
		case BlockRefusal:
			t.text(b.Text, t.style.yellow)
		default:
			t.text(b.Text, nil)
		}
	}
	if ended := finishText(item); ended != "" {
		t.line("  " + t.style.yellow("(ended: "+ended+")"))
	}
}

// heading is the line above a message: the speaker, and on the right its time and number. A new date
// is shown once.
func (t *terminal) heading(item *Item) {
	right := t.clock.format(item.At) + "  #" + strconv.FormatInt(item.Ref.Seq, 10)
	who, bullet := speaker(item), "● "
	if t.Mark != nil && *t.Mark == item.Ref {
		bullet = "▶ "
	}
	if item.Hidden {
		who += " · hidden"
	}
	width := min(t.Width, maxWidth)
	who = OneLine(who, max(8, width-Width(right)-4))
	space := max(2, width-Width(who)-Width(right)-2)
	t.line(t.style.role(item.Role)(bullet+who) + strings.Repeat(" ", space) + t.style.dim(right))
}

// text writes a text, indented by two columns. paint colours each line; nil: no colour.
func (t *terminal) text(s string, paint func(string) string) {
	if strings.TrimSpace(Clean(s)) == "" {
		return
	}
	for _, line := range t.lines(s, 2) {
		if line == "" {
			t.line("")
			continue
		}
		if paint != nil {
			line = paint(line)
		}
		t.line("  " + line)
	}
}

func (t *terminal) reasoning(b *Block) {
	switch {
	case strings.TrimSpace(b.Text) == "":
		t.line("  " + t.style.dim(unreadable))
	case t.Expand || t.Raw:
		t.text(b.Text, t.style.dim)
	default:
		t.line("  " + t.style.dim(OneLine("(thought) "+b.Text, min(t.Width, maxWidth)-2)))
	}
}

// tool writes a call and its result on one line, or both in full.
func (t *terminal) tool(use *ToolUse) {
	mark := t.style.green("◇")
	switch {
	case use.IsError:
		mark = t.style.red("✗")
	case !use.Answered():
		mark = t.style.yellow("◌")
	}
	name := use.toolName(40)
	width := min(t.Width, maxWidth) - 4
	outcome := use.outcome(max(10, width/3))
	arguments := use.shortArguments(max(0, width-Width(name)-Width(outcome)-2))
	line := t.style.bold(name)
	if arguments != "" {
		line += " " + arguments
	}
	t.line("  " + mark + " " + line + " " + t.style.dim(outcome))
	if t.Expand || t.Raw {
		t.body("arguments", use.Arguments)
		t.body("result", use.Result)
	}
}

func (t *terminal) body(name, s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	t.line("    " + t.style.dim(name+":"))
	for _, line := range t.lines(s, 4) {
		t.line(strings.TrimRight("    "+line, " "))
	}
}

// lines returns a text's lines, which fit behind an indent.
func (t *terminal) lines(s string, indent int) []string {
	s = strings.Trim(Clean(s), "\n")
	if t.Raw {
		return strings.Split(s, "\n")
	}
	return Wrap(s, min(t.Width, maxWidth)-indent)
}

// style colours text, if colours are on.
type style struct{ on bool }

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) dim(text string) string    { return s.paint("2", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }
func (s style) cyan(text string) string   { return s.paint("36", text) }

func (s style) role(role session.Role) func(string) string {
	code := map[session.Role]string{
		session.User: "1;34", session.Assistant: "1;32", session.Tool: "1;35", session.System: "1;33",
	}[role]
	if code == "" {
		code = "1"
	}
	return func(text string) string { return s.paint(code, text) }
}
