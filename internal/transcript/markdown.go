package transcript

import (
	"bufio"
	"cmp"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/session"
)

// Heading is the heading of a transcript on a page of its own.
type Heading struct {
	Title string
	Facts []string // id, source, model …
}

// Extent describes how many messages were said in a session, and how many are not on a path: 34 messages, 32 of
// them on other branches. onPath counts its own said messages on the path.
func Extent(s *session.Session, onPath int64) string {
	words := Counted(s.SaidCount, "message")
	if aside := s.SaidCount - onPath; aside > 0 {
		words += ", " + Count(aside) + " of them on other branches"
	}
	return words
}

// HeadingOf returns the heading of a session's path, which holds onPath of its said messages. The cost is that of the
// session alone.
func HeadingOf(s *session.Session, onPath int64, zone *time.Location) Heading {
	return HeadingWith(s, &session.Measure{}, onPath, zone)
}

// HeadingWith is HeadingOf with the session's context, and the cost with its sub-agents.
func HeadingWith(s *session.Session, m *session.Measure, onPath int64, zone *time.Location) Heading {
	h := Heading{Title: cmp.Or(s.Title, string(s.ID))}
	facts := []string{string(s.ID), string(s.Source), s.Model, s.Directory, Extent(s, onPath)}
	facts = append(facts, Context(m.Context), s.CreatedAt.In(zone).Format("2006-01-02 15:04"), Costs(s, m))
	for _, fact := range facts {
		if fact != "" && fact != "?" {
			h.Facts = append(h.Facts, fact)
		}
	}
	return h
}

// lines returns the heading's texts as clean lines.
func (h Heading) lines() Heading {
	clean := Heading{Title: OneLine(h.Title, headingWidth)}
	for _, fact := range h.Facts {
		clean.Facts = append(clean.Facts, OneLine(fact, headingWidth))
	}
	return clean
}

const headingWidth = 400 // columns

// Writer writes items in order. Close returns the first error.
type Writer interface {
	Item(item *Item) error
	Close() error
}

// NewMarkdown returns a writer of Markdown (CommonMark with GitHub's details): a heading for each
// message, its text as a quotation, tool calls and reasoning folded. Stored text cannot leave its
// place: every line is quoted or fenced by more than it holds, and its HTML and images are only text.
func NewMarkdown(w io.Writer, heading Heading, zone *time.Location) Writer {
	m := &markdown{out: bufio.NewWriter(w), clock: clock{zone: zone}}
	heading = heading.lines()
	m.line("# " + plainMarkdown(heading.Title))
	m.line("")
	m.line(plainMarkdown(strings.Join(heading.Facts, " · ")))
	return m
}

// Item implements Writer.
func (m *markdown) Item(item *Item) error {
	m.item(item)
	return nil // Close returns the first error
}

// Close implements Writer.
func (m *markdown) Close() error { return m.out.Flush() }

type markdown struct {
	out   *bufio.Writer
	clock clock
}

// line leaves errors to Flush, which returns the first one.
func (m *markdown) line(s string) { _, _ = m.out.WriteString(s + "\n") }

func (m *markdown) item(item *Item) {
	if item.Kind == ItemMarker && item.Hidden {
		return
	}
	m.line("")
	switch item.Kind {
	case ItemCompaction:
		m.line("---")
		m.line("")
		m.note(compactionLine(item.Compaction, &m.clock))
		if summary := item.Compaction.Summary; strings.TrimSpace(summary) != "" {
			m.line("")
			m.open("summary")
			m.quote(summary)
			m.shut()
		}
	case ItemBranch:
		m.line("---")
		m.line("")
		m.note(branchLine(item.Branch))
	case ItemMarker:
		m.note("· " + markerLine(item))
	default:
		m.message(item)
	}
}

// note writes a line of ours about the transcript.
func (m *markdown) note(s string) { m.line("*" + plainMarkdown(OneLine(s, headingWidth)) + "*") }

func (m *markdown) message(item *Item) {
	m.line("### " + plainMarkdown(speaker(item)) + " · #" + strconv.FormatInt(item.Ref.Seq, 10) + " · " +
		m.clock.format(item.At))
	if item.Hidden {
		m.line("")
		m.open("hidden")
	}
	for i := range item.Blocks {
		m.line("")
		m.block(&item.Blocks[i])
	}
	if item.Hidden {
		m.shut()
	}
	if ended := finishText(item); ended != "" {
		m.line("")
		m.note("(ended: " + ended + ")")
	}
}

func (m *markdown) block(b *Block) {
	switch b.Kind {
	case BlockTool:
		m.tool(b.Tool)
	case BlockReasoning:
		if strings.TrimSpace(b.Text) == "" {
			m.note(unreadable)
			return
		}
		m.open("thought: " + OneLine(b.Text, 60))
		m.quote(b.Text)
		m.shut()
	case BlockAttachment:
		m.note(b.Attachment.String())
	case BlockData:
		m.open("data")
		m.fence("", b.Text)
		m.shut()
	default:
		m.quote(b.Text)
	}
}

func (m *markdown) tool(use *ToolUse) {
	m.open(strings.Join([]string{use.toolName(40), use.shortArguments(80), use.outcome(60)}, " "))
	if strings.TrimSpace(use.Arguments) != "" {
		m.fence("json", use.Arguments)
	}
	if use.Result != "" {
		if use.Arguments != "" {
			m.line("")
		}
		m.fence("", use.Result)
	}
	m.shut()
}

// open begins a fold. Its first line is HTML, which ends at the blank line behind it.
func (m *markdown) open(summary string) {
	m.line("<details><summary>" + html.EscapeString(OneLine(summary, 200)) + "</summary>")
	m.line("")
}

func (m *markdown) shut() {
	m.line("")
	m.line("</details>")
}

// quote writes a text, with its Markdown, as a quotation.
func (m *markdown) quote(s string) {
	for line := range strings.SplitSeq(escapeActive(s), "\n") {
		m.line(strings.TrimRight("> "+line, " "))
	}
}

// fence writes a text as it is, between fences longer than any in it.
func (m *markdown) fence(language, s string) {
	s = strings.Trim(Clean(s), "\n")
	bar := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	m.line(bar + language)
	m.line(s)
	m.line(bar)
}

// longestRun returns the length of the longest run of a byte.
func longestRun(s string, of byte) (longest int) {
	n := 0
	for i := range len(s) {
		if s[i] != of {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// plainMarkdown escapes text so that Markdown shows it as it is.
func plainMarkdown(s string) string {
	var b strings.Builder
	for _, r := range Clean(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|~!&$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// escapeActive keeps the Markdown of a text and escapes its HTML and images, but nothing inside code. Its code blocks
// get new fences; other lines that look like a fence are escaped, so that it is known where code is.
func escapeActive(s string) string {
	lines := strings.Split(strings.Trim(Clean(s), "\n"), "\n")
	return strings.Join(escapeLines(lines, slices.ContainsFunc(lines, isTableRule), deepestQuotation), "\n")
}

// deepestQuotation is how deep quotations lie in one another: marks beyond that are text.
const deepestQuotation = 100

func escapeLines(lines []string, tables bool, quotations int) (out []string) {
	ends := fenceEnds{lines: lines}
	for i := 0; i < len(lines); i++ {
		if n := quotedLines(lines[i:]); n > 0 && quotations > 0 {
			out = append(out, escapeQuoted(lines[i:i+n], tables, quotations)...)
			i += n - 1
			continue
		}
		indent, fence, info := openingFence(lines[i])
		end := ends.find(i+1, indent, fence)
		if fence == "" || end < 0 {
			out = append(out, escapeLine(lines[i], tables))
			continue
		}
		code := lines[i+1 : end]
		bar := indent + strings.Repeat("`", max(3, longestRun(strings.Join(code, "\n"), '`')+1))
		out = append(append(append(out, bar+info), code...), bar)
		i = end
	}
	return out
}

// isTableRule reports whether a line can be the rule below the head of a table, whose cells end code.
func isTableRule(line string) bool {
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, " \t>|:-") == ""
}

// quotedLines returns how many lines from the first on are a quotation.
func quotedLines(lines []string) (n int) {
	for n < len(lines) && quoteMark(lines[n]) > 0 {
		n++
	}
	return n
}

// quoteMark returns the length of the mark of a quotation at the beginning of a line.
func quoteMark(line string) int {
	n := len(line) - len(strings.TrimLeft(line, " "))
	if n > 3 || n == len(line) || line[n] != '>' {
		return 0
	}
	if n++; n < len(line) && line[n] == ' ' {
		n++
	}
	return n
}

// escapeQuoted escapes the lines of a quotation, which are a text of their own.
func escapeQuoted(lines []string, tables bool, quotations int) []string {
	inner := make([]string, len(lines))
	for i, line := range lines {
		inner[i] = line[quoteMark(line):]
	}
	escaped := escapeLines(inner, tables, quotations-1)
	for i := range escaped {
		at := lines[min(i, len(lines)-1)]
		escaped[i] = at[:quoteMark(at)] + escaped[i]
	}
	return escaped
}

// openingFence reads a line that begins a block of code.
func openingFence(line string) (indent, fence, info string) {
	text := strings.TrimLeft(line, " ")
	for _, c := range "`~" {
		n := len(text) - len(strings.TrimLeft(text, string(c)))
		if n < 3 {
			continue
		}
		info = strings.TrimSpace(text[n:])
		if strings.IndexFunc(info, func(r rune) bool { return !isInfo(r) }) >= 0 {
			return "", "", ""
		}
		return line[:len(line)-len(text)], text[:n], info
	}
	return "", "", ""
}

// isInfo is what the name of a language is made of.
func isInfo(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-#._", r)
}

// fenceEnds finds the lines that end blocks of code. It remembers how far it looked for a fence without an end: a text
// may have any number of them.
type fenceEnds struct {
	lines  []string
	looked map[string]int // by indent and fence: no line before this one ends it
}

// find returns the line from an index on that ends a block of code, -1 if none does. A block at the first column goes
// on to the end of the text. One of a list is none where a line is less indented, which ends the list.
func (e *fenceEnds) find(from int, indent, fence string) int {
	if fence == "" {
		return -1
	}
	at, known := e.looked[indent+fence]
	if !known || from > at {
		for at = from; at < len(e.lines); at++ {
			line := strings.TrimRight(e.lines[at], " \t")
			if line != "" && !strings.HasPrefix(line, indent) {
				break
			}
			if line = strings.TrimPrefix(line, indent); strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == "" {
				return at
			}
		}
		if e.looked == nil {
			e.looked = map[string]int{}
		}
		e.looked[indent+fence] = at
	}
	if indent == "" {
		return len(e.lines)
	}
	return -1
}

// escapeLine escapes what begins HTML, an image or a fence outside of code, unless it is escaped already. A backtick
// that ends on no other one of the line is escaped, too: then no line ends the code of another one.
func escapeLine(line string, tables bool) string {
	var b strings.Builder
	escaped, started := false, false
	for i := 0; i < len(line); i++ {
		c, rest := line[i], line[i+1:]
		acts := c == '<' && rest != "" && (rest[0] == '/' || rest[0] == '!' || rest[0] == '?' ||
			rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z') ||
			c == '!' && strings.HasPrefix(rest, "[") ||
			!started && strings.HasPrefix(line[i:], "~~~")
		if c == '`' && !escaped {
			run := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			code := codeSpan(line[i:], run)
			switch {
			case code == "" || tables && strings.Contains(code, "|"):
				b.WriteString(strings.Repeat("\\`", run))
				code = line[i : i+run]
			default:
				b.WriteString(code)
			}
			i, started = i+len(code)-1, true
			continue
		}
		if acts && !escaped {
			b.WriteByte('\\')
		}
		if strings.IndexByte(" \t>*+-.)0123456789", c) < 0 { // what can stand before a fence: quotes, lists
			started = true
		}
		b.WriteByte(c)
		escaped = c == '\\' && !escaped
	}
	return b.String()
}

// codeSpan returns the code that a run of backticks begins, with its marks; "" where nothing ends it.
func codeSpan(text string, run int) string {
	for at := run; at < len(text); {
		begin := strings.IndexByte(text[at:], '`')
		if begin < 0 {
			return ""
		}
		begin += at
		at = begin + len(text[begin:]) - len(strings.TrimLeft(text[begin:], "`"))
		if at-begin == run {
			return text[:at]
		}
	}
	return ""
}

// speaker names the speaker: assistant · gpt-5.
func speaker(item *Item) string {
	who := item.Label
	if item.Author != "" {
		who += " " + item.Author
	}
	if item.Role == session.Assistant && item.Model != "" {
		who += " · " + item.Model
	}
	return OneLine(who, 200)
}

// finishText says how an incomplete reply ended, "" otherwise.
func finishText(item *Item) string {
	switch item.Finish {
	case session.FinishError, session.FinishAborted, session.FinishLength, session.FinishRefusal:
		return string(item.Finish)
	}
	return ""
}

// markerLine returns a marker's text.
func markerLine(item *Item) string {
	var texts []string
	for _, b := range item.Blocks {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == 0 || item.Label != string(session.KindMarker) {
		texts = append([]string{item.Label}, texts...)
	}
	return strings.Join(texts, " · ")
}
