package summarize

import (
	"strings"

	"sessiond/internal/redact"
)

// section is one part of a summary, in the order in which they stand.
type section int

const (
	goal section = iota
	constraints
	done
	inProgress
	blocked
	decisions
	next
	critical
	sectionCount
)

// heading gives the line that a section begins with.
func (s section) heading() string {
	return [...]string{
		goal:        "## Goal",
		constraints: "## Constraints & preferences",
		done:        "### Done",
		inProgress:  "### In progress",
		blocked:     "### Blocked",
		decisions:   "## Key decisions",
		next:        "## Next steps",
		critical:    "## Critical context",
	}[s]
}

const (
	progressHeading = "## Progress"
	indexHeading    = "## Index"
	indexSeparator  = " · "
)

// trimOrder is the order in which sections give up their oldest lines when a summary is too
// long: what is done can be looked up, what a person asked for cannot be guessed.
var trimOrder = [...]section{done, inProgress, next, critical, blocked, decisions, constraints, goal}

// line is one point of a summary.
type line struct {
	text   string
	old    bool  // from the summary before
	tokens int64 // with its bullet
	order  int   // by time, within what is new
}

// outline is a summary as data: the lines of its sections and its index.
type outline struct {
	lines [sectionCount][]line
	files []string // lines of the index that name files: made anew each time, never read
	index []string
}

// parseOutline reads a summary that render or a model wrote. Lines under headings that it
// does not know go to the critical context, so that nothing is lost.
func parseOutline(text string) outline {
	var o outline
	text, _ = redact.Mask(text)
	in, inIndex := critical, false
	for raw := range strings.SplitSeq(text, "\n") {
		raw = strings.TrimSpace(raw)
		if raw == "" {
			continue
		}
		if title, ok := title(raw); ok {
			s, known := sectionOf(title)
			inIndex = title == "index"
			switch {
			case known:
				in = s
			case title == "progress":
				in = inProgress
			default:
				in = critical
			}
			continue
		}
		if inIndex {
			if strings.HasPrefix(raw, "- "+modifiedLabel) || strings.HasPrefix(raw, "- "+readLabel) {
				continue
			}
			for entry := range strings.SplitSeq(strings.TrimPrefix(raw, "- "), indexSeparator) {
				if entry = strings.TrimSpace(entry); entry != "" {
					o.index = append(o.index, entry)
				}
			}
			continue
		}
		if body := trimMarkup(raw); body != "" {
			o.lines[in] = append(o.lines[in], line{text: body, old: true})
		}
	}
	return o
}

// title gives the name in a heading line, in small letters.
func title(raw string) (string, bool) {
	if !strings.HasPrefix(raw, "#") {
		return "", false
	}
	name := strings.TrimLeft(raw, "#")
	if !strings.HasPrefix(name, " ") {
		return "", false
	}
	return strings.ToLower(strings.Trim(name, " :*")), true
}

func sectionOf(title string) (section, bool) {
	for s := range sectionCount {
		if strings.ToLower(strings.TrimLeft(s.heading(), "# ")) == title {
			return s, true
		}
	}
	return 0, false
}

// render writes the outline as Markdown. Each line stands behind a bullet, so that no text
// taken from a conversation can pass for a heading.
func (o *outline) render() string {
	var b strings.Builder
	progress := false
	for s := range sectionCount {
		if len(o.lines[s]) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		if s >= done && s <= blocked && !progress {
			progress = true
			b.WriteString(progressHeading + "\n")
		}
		b.WriteString(s.heading() + "\n")
		for _, l := range o.lines[s] {
			b.WriteString("- " + l.text + "\n")
		}
	}
	if index := indexSection(o.files, o.index); index != "" {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(index + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// indexSection writes files and entries of an index as the last section of a summary; "" for
// an empty one.
func indexSection(files, entries []string) string {
	if len(files)+len(entries) == 0 {
		return ""
	}
	lines := append([]string{indexHeading}, files...)
	if len(entries) > 0 {
		lines = append(lines, strings.Join(entries, indexSeparator))
	}
	return strings.Join(lines, "\n- ")
}

// dropOldest takes one line out of the outline, by trimOrder, and gives it back.
func (o *outline) dropOldest(onlyOld bool) (line, bool) {
	for _, s := range trimOrder {
		for i, l := range o.lines[s] {
			if !onlyOld || l.old {
				if i == 0 { // nothing to move, however long the answer of a model is
					o.lines[s] = o.lines[s][1:]
					return l, true
				}
				o.lines[s] = append(o.lines[s][:i:i], o.lines[s][i+1:]...)
				return l, true
			}
		}
	}
	return line{}, false
}

// fit shortens the outline until it is within max: lines go by trimOrder, then entries of the
// index, the least telling first. It counts the whole only when the lines that went should
// have been enough, since a model may answer with megabytes.
func (o *outline) fit(max int64, count func(string) int64) string {
	text := o.render()
	for n := count(text); n > max; n = count(text) {
		for over := n - max; over > 0; {
			last, ok := o.dropOldest(false)
			switch {
			case ok && o.empty() && len(o.index)+len(o.files) == 0:
				return cutTokens(last.text, max, count)
			case ok:
				over -= count("- " + last.text + "\n")
			case len(o.index) > 0:
				end := len(o.index) - 1
				over -= count(o.index[end] + indexSeparator)
				o.index = o.index[:end]
			case len(o.files) > 0:
				end := len(o.files) - 1
				over -= count(o.files[end] + "\n- ")
				o.files = o.files[:end]
			default:
				return ""
			}
		}
		text = o.render()
	}
	return text
}

func (o *outline) empty() bool {
	for s := range o.lines {
		if len(o.lines[s]) > 0 {
			return false
		}
	}
	return true
}

// cutTokens shortens s until it is within max tokens.
func cutTokens(s string, max int64, count func(string) int64) string {
	for count(s) > max && s != "" {
		s = cutRunes(s, len(s)*3/4)
	}
	return s
}
