package digest

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Frame is the part of a summary that no model writes: standing rules, what the model left out, the index.
type Frame struct {
	req   *session.SummaryRequest
	span  *span
	old   outline
	limit int64 // tokens of a summary
	count func(string) int64

	rules, spanRules string
}

// NewFrame returns the frame of the summaries that a request asks for, of limit tokens each.
func NewFrame(req *session.SummaryRequest, limit int64, count func(string) int64) *Frame {
	f := &Frame{req: req, span: scanRequest(req), old: parseOutline(req.Previous), limit: limit, count: count}
	if len(req.Spans) > 0 {
		f.old = mergeRunning(req.Spans, req.Previous, limit, count)
	}
	f.spanRules, f.rules = f.rulesSection(&outline{}), f.rulesSection(&f.old)
	return f
}

// Room returns the tokens of a model's text.
func (f *Frame) Room() int64 { return f.limit - int64(float64(f.limit)*indexShare) - f.count(f.rules) }

// Around returns the running summary with a model's text, and its index.
func (f *Frame) Around(text string) (whole string, index []string) {
	return f.around(text, f.rules, &f.old, true)
}

// AroundSpan returns the summary of the span with a model's text.
func (f *Frame) AroundSpan(text string) string {
	whole, _ := f.around(text, f.spanRules, &outline{}, false)
	return whole
}

// rulesSection returns the section of the standing rules of the span, and of the summary before it; "" without one.
func (f *Frame) rulesSection(old *outline) string {
	c := composer{span: f.span, count: f.count, has: map[string]bool{}, limit: f.limit}
	c.addRules(old)
	return c.out.render()
}

// around adds the frame to a model's text within the limit.
func (f *Frame) around(text, rules string, old *outline, withFiles bool) (whole string, index []string) {
	count := f.count
	if rules != "" {
		text = rules + "\n\n" + text
	}
	forIndex := float64(f.limit) * indexShare
	room := f.limit - count(text)
	least := min(int64(forIndex*statedOfTheRest), room)
	most := min(max(room-int64(forIndex), least), int64(statedShare*float64(f.limit)))
	if stated := f.span.alsoStated(old.lines[stated], text, most, count); stated != "" {
		text += "\n\n" + stated
	}
	var files []string
	room = min(int64(forIndex), f.limit-count(text)-count("\n\n"+IndexHeading+"\n- "))
	if withFiles {
		files = fileLines(f.req.ReadFiles, f.req.ModifiedFiles, room/2, count)
		for _, l := range files {
			room -= count(l) + 2
		}
	}
	index = f.span.index(old.index, text, files, room, count)
	for {
		section := indexSection(files, index)
		whole := text
		if section != "" {
			whole += "\n\n" + section
		}
		if section == "" || count(whole) <= f.limit {
			return whole, index
		}
		if len(index) > 0 {
			index = index[:len(index)-1]
		} else {
			files = files[:len(files)-1]
		}
	}
}

// Fit returns a summary within limit tokens, without its least lines.
func Fit(summary string, limit int64, count func(string) int64) string {
	o := parseOutline(summary)
	return o.fit(limit, count)
}

// Merge joins the summaries of consecutive spans, oldest first, within limit tokens, without what a Frame adds.
func Merge(spans []string, limit int64, count func(string) int64) string {
	o := merge(spans)
	o.index, o.lines[rules], o.lines[stated] = nil, nil, nil
	return o.fit(limit, count)
}

// IsEmpty reports whether a summary has no line.
func IsEmpty(summary string) bool {
	o := parseOutline(summary)
	return o.empty()
}

// HasHeading reports whether a text has a heading of a summary.
func HasHeading(text string) bool {
	for l := range strings.Lines(text) {
		if title, ok := parseHeading(strings.TrimSpace(l)); ok {
			if _, known := sectionOf(title); known {
				return true
			}
		}
	}
	return false
}

// WithoutSections returns a summary without the sections of some headings, however they are written. A joined summary
// may have several of one.
func WithoutSections(summary string, headings ...string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(summary) {
		text := strings.TrimSpace(line)
		switch {
		case slices.ContainsFunc(headings, func(h string) bool { return sameHeading(h, text) }):
			in = true
		case strings.HasPrefix(text, "#") || text == "---":
			in = false
		}
		if !in {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

func sameHeading(a, b string) bool {
	one, isOne := parseHeading(a)
	other, isOther := parseHeading(b)
	return isOne && isOther && one == other
}

// SpeakerName returns who said a message, as prompts call him; a member of a group with his name.
func SpeakerName(m *session.Message, group bool) string {
	by := speakerOf(m)
	if by == byPerson && group {
		return strings.TrimSpace(by.label() + " " + authorName(m))
	}
	return by.label()
}

// IsOfTool reports whether a tool said a message.
func IsOfTool(m *session.Message) bool { return speakerOf(m) == byTool }
