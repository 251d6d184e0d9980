package openclaw

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// lines are those of a transcript in a database.
type lines struct {
	text []byte
	rows []row
}

// row is a line of a database.
type row struct {
	at, size int64 // in the text
	made     int64 // milliseconds since 1970; 0: not known
	seq      int64 // its number
	lent     bool  // it is of the session's file: the database lacks it
}

func (l *lines) put(seq, made int64, raw []byte) {
	l.rows = append(l.rows, row{at: int64(len(l.text)), size: int64(len(raw)), made: made, seq: seq})
	l.text = append(l.text, raw...)
}

func (l *lines) bytes(at, size int64) []byte { return l.text[at : at+size] }

// survey is a transcript's entries and how they hang together.
type survey struct {
	pi.Entries
	rows  []row // of a database; nil for a file of lines
	whole bool  // it may have no header

	leaf   int32 // the head: where the conversation goes on
	cursor int32 // the entry that was written last
	reset  int32 // the latest reset
	front  int32 // the compaction or reset that a cut transcript begins with; -1: it is whole
}

func newSurvey(in *history.Intake, rows []row, bytes func(at, size int64) []byte) *survey {
	return &survey{Entries: pi.NewEntries(in, bytes), rows: rows, leaf: -1, cursor: -1, reset: -1, front: unseen}
}

// look reads a transcript. headless says that it may lack a header: its older part was cut off. It
// fails with Invalid if it is no transcript.
func look(in *history.Intake, rows []row, bytes func(at, size int64) []byte, headless bool) *survey {
	s := newSurvey(in, rows, bytes)
	if s.whole = headless; headless {
		s.Version = 3
	}
	for i, r := range rows { // of which each is whole
		if in.Err() == nil {
			s.read(history.FileLine{Number: i + 1, At: r.at, Bytes: bytes(r.at, r.size)}, r.made)
		}
	}
	if rows == nil {
		in.EachLine(func(l history.FileLine) { s.read(l, 0) })
	}
	if s.Header == nil && !headless && rows == nil {
		in.Fail(session.Errorf(session.Invalid, "no transcript: it holds no session header"))
	}
	s.finish()
	return s
}

// read reads one line. made is its time in a database, in milliseconds since 1970.
func (s *survey) read(l history.FileLine, made int64) {
	n, body := s.Node(l)
	n.Made = made
	o, _, ok := history.ParseLine(body)
	switch {
	case len(body) == 0:
		s.In.Skip(history.SkipBlank, 1)
	case ok && s.Header == nil && s.Len() == 0 && o.String("type") == lineSession:
		s.In.Fail(s.begin(o, l.Number))
	case s.Header == nil && !s.whole && s.rows == nil:
		why := ""
		if bytes.ContainsFunc(body, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == utf8.RuneError }) {
			why = " (compressed or encrypted by something else?)"
		}
		s.In.Fail(session.Errorf(session.Invalid, "no transcript: its first line is no session header%s", why))
	case ok:
		s.object(o, body, n)
	default:
		n.Parent = s.leaf
		s.AddBroken(n, body)
	}
}

// begin reads the header. Codes: Invalid.
func (s *survey) begin(o jsonx.Object, line int) error {
	if o.String("id") == "" {
		return session.Errorf(session.Invalid, "no transcript: its header names no session")
	}
	s.Version = 1
	if v := o.Get("version"); v != nil {
		number, err := strconv.Atoi(string(v))
		if err != nil || number < 1 {
			return session.Errorf(session.Invalid, "a transcript of version %s; versions 1 to 4 are known", history.Plain(v))
		}
		s.Version = number
	}
	if s.Version > 4 {
		s.In.Problem(line, "version "+strconv.Itoa(s.Version)+" is newer than what is known: read as version 4")
	}
	s.Header = o
	return nil
}

// object reads an entry.
func (s *survey) object(o jsonx.Object, raw []byte, n pi.Node) {
	kindOf := o.String("type")
	if kindOf == lineSession && s.Header != nil && o.String("id") == s.Header.String("id") {
		s.In.Skip(history.SkipDuplicate, 1)
		return
	}
	switch {
	case kindOf == lineCompaction:
		n.Kind = pi.Compaction
	case kindOf == lineReset:
		n.Kind = pi.Reset
	case !canonical(kindOf):
		n.Kind = pi.Unknown
	}
	n.ID, n.Link = o.String("id"), o.String("parentId")
	if !s.Name(&n, raw) {
		s.In.Skip(history.SkipDuplicate, 1)
		return
	}
	s.hang(n, o, kindOf)
	s.Notice(o, kindOf, n.Old)
}

// fresh counts the entries that no earlier reading took.
func (s *survey) fresh() (n int) {
	for i := range s.Nodes {
		if !s.Nodes[i].Old {
			n++
		}
	}
	return n
}
