package picker

import (
	"bytes"
	"fmt"
	"strings"

	"sessiond/internal/folders"
	"sessiond/internal/search"
	"sessiond/internal/transcript"
)

const (
	passageLines = 3
	factLines    = 3
	promptsFrom  = 14 // rows from which prompts are listed, too
)

// previewLines draw the selected session: its title and facts, then the passages that were found or its prompts, then
// the end of the conversation.
func (m *Model) previewLines(width, rows int) []string {
	row, any := m.selected()
	if !any || rows <= 0 {
		return nil
	}
	shown := Preview{Row: row}
	if m.preview.ID == row.ID {
		shown = m.preview
	}
	width = min(width, widestText)
	lines := []string{bold.Styled(m.method.Truncate(titleOf(shown.Row), width, "…"))}
	facts := m.wrap(strings.Join(m.facts(&shown), " · "), width)
	if len(facts) > factLines {
		facts = append(facts[:factLines-1], facts[factLines-1]+" …")
	}
	for _, text := range facts {
		lines = append(lines, faint.Styled(strings.ReplaceAll(text, unbroken, " ")))
	}
	switch {
	case len(row.Passages) > 0:
		lines = append(append(lines, m.passageLines(row.Passages, width)...),
			faint.Styled("── the end of the conversation ──"))
	case rows >= promptsFrom:
		lines = append(lines, m.promptLines(&shown, width, rows/3)...)
	}
	return append(lines, m.lastLines(&shown, width, rows-len(lines))...)
}

// unbroken is a space at which no line ends.
const unbroken = "\u00a0"

func (m *Model) facts(p *Preview) (facts []string) {
	add := func(on bool, fact string) {
		if on {
			facts = append(facts, strings.ReplaceAll(plain(fact), " ", unbroken))
		}
	}
	add(true, string(p.ID))
	add(p.ArchivedAt != nil, "archived")
	add(true, string(p.Source))
	add(true, transcript.Ago(p.ActiveAt.Time, m.Now()))
	add(true, transcript.Counted(p.SaidCount, "message"))
	share, cost := transcript.ContextShare(p.Context), transcript.Costs(&p.Session, &p.Measure)
	add(share != "", "context "+share)
	add(cost != "", cost)
	add(p.Model != "", p.Model)
	add(p.Project != "", folders.Tilde(m.Home, p.Project))
	add(p.GitBranch != "", p.GitBranch)
	return facts
}

// passageLines are the places of a search, with the words that were found.
func (m *Model) passageLines(found []search.Hit, width int) []string {
	var lines []string
	for i := range found {
		h := &found[i]
		lines = append(lines, faint.Styled(fmt.Sprintf("%d %s", h.Seq, plain(string(h.Role)))))
		marked := false
		for n, text := range m.wrap(marksIn(h), width-2) {
			if n == passageLines {
				break
			}
			var line string
			line, marked = paintMarks(text, marked)
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// Marks begin and end with these while a text is wrapped. They are for private use, and removed from stored text.
const (
	markBegins = '\ue000'
	markEnds   = '\ue001'
)

// marksIn returns a passage in one line, with its marks.
func marksIn(h *search.Hit) string {
	unmarked := strings.NewReplacer(string(markBegins), "", string(markEnds), "")
	var b strings.Builder
	for piece, matched := range h.Pieces() {
		if piece = unmarked.Replace(steady(transcript.Clean(piece))); matched {
			piece = string(markBegins) + piece + string(markEnds)
		}
		b.WriteString(piece)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// paintMarks replaces the marks of a line by colours. marked says that a mark began on a line above.
func paintMarks(line string, marked bool) (painted string, still bool) {
	var b strings.Builder
	for line != "" {
		ends := strings.IndexAny(line, string(markBegins)+string(markEnds))
		piece := line
		if ends >= 0 {
			piece = line[:ends]
		}
		if marked && piece != "" {
			piece = accent.Styled(piece)
		}
		b.WriteString(piece)
		if ends < 0 {
			break
		}
		marked = strings.HasPrefix(line[ends:], string(markBegins))
		line = line[ends+len(string(markBegins)):]
	}
	return b.String(), marked
}

// promptLines list the newest prompts.
func (m *Model) promptLines(p *Preview, width, most int) []string {
	prompts := p.Prompts[max(0, len(p.Prompts)-most):]
	if len(prompts) < 2 {
		return nil // the end of the conversation shows it
	}
	lines := []string{""}
	for i := range prompts {
		lines = append(lines, faint.Styled("› ")+transcript.OneLine(plain(transcript.PromptLine(&prompts[i], 4*width)),
			width-2))
	}
	return append(lines, "")
}

// lastLines are the end of the conversation, as `sessiond show` prints it.
func (m *Model) lastLines(p *Preview, width, rows int) []string {
	if len(p.Last) == 0 || rows < 2 {
		return nil
	}
	var b bytes.Buffer
	out := transcript.NewTerminal(&b, transcript.TerminalOptions{Width: width, Color: true, Zone: m.Now().Location()})
	stream := transcript.NewStream(p.Session, nil, out.Item)
	for i := range p.Last {
		if p.Last[i].ParentID != nil { // rows of the program may stand between it and the one before
			stream.GoesOn(&p.Last[i])
		}
		_ = stream.Message(&p.Last[i]) // a buffer accepts everything
	}
	_ = stream.Close()
	_ = out.Close()
	lines := strings.Split(strings.TrimRight(steady(b.String()), "\n"), "\n")
	m.scroll = min(max(0, m.scroll), max(0, len(lines)-rows))
	end := len(lines) - m.scroll
	return lines[max(0, end-rows):end]
}
