package digest

import (
	"slices"
	"strings"

	"sessiond/internal/redact"
)

// section is a section of a summary, in its order.
type section int

const (
	goal section = iota
	rules
	constraints
	alsoSaid
	done
	inProgress
	blocked
	decisions
	next
	critical
	stated
	sectionCount
)

// heading returns the heading of a section.
func (s section) heading() string {
	return [...]string{
		goal:        "## Goal",
		rules:       RulesHeading,
		constraints: "## Constraints & preferences",
		alsoSaid:    "## Said by the person",
		done:        "### Done",
		inProgress:  "### In progress",
		blocked:     "### Blocked",
		decisions:   "## Key decisions",
		next:        "## Next steps",
		critical:    "## Critical context",
		stated:      StatedHeading,
	}[s]
}

// Headings of a summary.
const (
	progressHeading = "## Progress"
	IndexHeading    = "## Index"
	RulesHeading    = "## Standing rules"
	StatedHeading   = "## Also stated"
	indexSeparator  = " · "
)

// trimOrder is the order in which sections lose their oldest lines when a summary is too long. Done
// work can be looked up; a person's wishes cannot be guessed, and rules stay until the person takes them back.
var trimOrder = [...]section{
	done, inProgress, next, critical, stated, blocked, decisions, alsoSaid, constraints, goal,
	rules,
}

// line is one point of a summary.
type line struct {
	text   string
	old    bool  // from the previous summary
	tokens int64 // with its bullet
	order  int   // by time; negative for old lines
}

// outline is a summary as data: the lines of its sections and its index.
type outline struct {
	lines [sectionCount][]line
	files []string // lines of the index that name files; never parsed
	index []string
}

// parseOutline parses a summary by render or by a model. Lines under unknown headings go to the
// critical context.
func parseOutline(text string) outline {
	var o outline
	text, _ = redact.Mask(text)
	in, inIndex, split := critical, false, false
	for raw := range strings.SplitSeq(text, "\n") {
		raw = strings.TrimSpace(raw)
		if trimMarkup(raw) == "" { // also a line between two summaries
			split = split || raw == "---" && len(o.lines[goal]) > 0
			continue
		}
		if title, ok := parseHeading(raw); ok {
			if in, _ = sectionOf(title); in == goal && split { // what the newest turn began with is not the goal of all
				in = alsoSaid
			}
			inIndex = title == "index"
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

// parseHeading returns the title of a heading line in lower case.
func parseHeading(line string) (title string, ok bool) {
	title = strings.TrimLeft(line, "#")
	if len(title) == len(line) || !strings.HasPrefix(title, " ") {
		return "", false
	}
	return strings.ToLower(strings.Trim(title, " :*")), true
}

// sectionOf returns the section of a title; the critical context for an unknown one.
func sectionOf(title string) (s section, known bool) {
	for s := range sectionCount {
		if strings.ToLower(strings.TrimLeft(s.heading(), "# ")) == title {
			return s, true
		}
	}
	if title == "progress" {
		return inProgress, true
	}
	return critical, false
}

// render writes the outline as Markdown. Each line begins with a bullet, so that no text of a
// conversation can pass for a heading.
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

// indexSection returns the last section of a summary with the files and entries of its index; ""
// for an empty index.
func indexSection(files, entries []string) string {
	if len(files)+len(entries) == 0 {
		return ""
	}
	lines := append([]string{IndexHeading}, files...)
	if len(entries) > 0 {
		lines = append(lines, strings.Join(entries, indexSeparator))
	}
	return strings.Join(lines, "\n- ")
}

// dropOldest removes one line, by trimOrder, and returns it.
func (o *outline) dropOldest(onlyOld bool) (line, bool) {
	for _, s := range trimOrder {
		for i, l := range o.lines[s] {
			if onlyOld && !l.old {
				continue
			}
			if i == 0 { // moves nothing: a model's answer may have very many lines
				o.lines[s] = o.lines[s][1:]
			} else {
				o.lines[s] = slices.Concat(o.lines[s][:i], o.lines[s][i+1:])
			}
			return l, true
		}
	}
	return line{}, false
}

// fit renders the outline within max tokens. It drops lines by trimOrder, then entries of the index
// from the end. It counts the whole text only when the dropped lines should be enough, because a
// model may answer with megabytes.
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

// cutTokens cuts s to at most max tokens.
func cutTokens(s string, max int64, count func(string) int64) string {
	for count(s) > max && s != "" {
		s = CutText(s, len(s)*3/4)
	}
	return s
}
