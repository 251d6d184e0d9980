package pi

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Line is what one line of a transcript of versions 1 to 3 says wherever it stands. OpenClaw
// writes pi's lines, but hangs them together by rules of its own: where an entry stands, what
// a compaction hides and what a label marks is the caller's to say.
type Line struct {
	Type    string          // message, compaction, …
	Fields  history.Object  // the line
	Message session.Message // without a parent and an external id
	Rest    history.Object  // the fields of the line that Message does not hold
	Calls   []history.Call  // without external ids
	Raw     bool            // its type or role is not known: kept as it is

	said   history.Object // its message
	remark note
}

// ParseLine reads a line that is one JSON object, nested no deeper than can be taken apart.
// before is the time of the line before, for one that has none. why says what is wrong with
// the line, "" if nothing is; then Verbatim keeps it.
func ParseLine(raw []byte, before session.Time) (l *Line, why string) {
	t, exact, ok := history.ParseTalk(raw)
	if !ok {
		return nil, "not a JSON object"
	}
	if history.DeeperThan(raw, maxDepth) {
		return nil, "nested too deep"
	}
	d := decoder{survey: &survey{version: 3}, last: before}
	o := t.Object
	rest := take(o)
	rest.message, rest.blocks = t.Message, t.Blocks
	e := entry{}
	m := &e.message.Message
	*m = session.Message{Kind: session.KindMarker, Origin: session.Program, Display: true, CreatedAt: d.time(&rest)}
	l = &Line{Type: o.String("type"), Fields: o, said: t.Message}
	switch l.Type {
	case lineCompaction: // its usage alone; what it hides depends on its place
		e.bill(rest.Get("usage"), session.PurposeSummary, "", "")
	case lineLabel:
	default:
		d.content(-1, &rest, &e, &l.remark)
	}
	if !exact {
		l.remark.bytes = raw
	}
	l.Message, l.Rest, l.Calls, l.Raw = *m, rest.Object, e.calls, e.raw
	return l, ""
}

// Extra writes {"line": Rest, …} with a note on what became of the line, and its hash.
func (l *Line) Extra(text, hash string) session.JSON {
	l.remark.text, l.remark.hash = text, hash
	return extraOf(l.Rest, l.remark)
}

// Verbatim keeps a line that cannot be taken apart as text, out of the context.
func Verbatim(raw []byte, why string, at session.Time) session.Message {
	d := decoder{survey: &survey{}, last: at}
	return d.verbatim(-1, raw, why).message.Message
}

// Fingerprint tells what a line says, whatever id and parent it has and whichever of the
// versions 1 to 3 wrote it.
func Fingerprint(line history.Object) string { return fingerprint(line, 3) }

// Fingerprint is that of the line.
func (l *Line) Fingerprint() string { return fingerprint(l.Fields, 3) }

// FirstLine returns the beginning of the first text that is not blank, to stand for a title.
func FirstLine(parts []session.Part) string { return firstLine(parts) }

// Content turns a message's content, a text or a list of blocks, into parts.
func Content(raw []byte) []session.Part {
	parts, _ := contentOf(raw)
	return parts
}

// Details reads which files a compaction says were read and modified; nil when it does not.
func Details(raw []byte) session.JSON { return detailsOf(raw, nil) }

// Time reads a line's ISO time, or a number of milliseconds since 1970.
func Time(raw []byte) (session.Time, bool) {
	text, _ := history.Text(raw)
	if at, ok := parseTime(text); ok {
		return at, true
	}
	return unixMilli(raw)
}

// Parse reads a line that is one JSON object. Bytes that are no UTF-8 are replaced.
func Parse(raw []byte) (history.Object, bool) { return parse(raw) }
