package history

import (
	"bytes"
	"io"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
)

// EachRecord yields the records of a file up to an offset: its JSON objects, and lines that hold none.
func EachRecord(file io.ReaderAt, end int64) iter.Seq2[FileLine, error] {
	return func(yield func(FileLine, error) bool) {
		var failed error
		lines := func(yield func(FileLine) bool) {
			for l, err := range Lines(file, end) {
				if failed = err; err != nil || !yield(l) {
					return
				}
			}
		}
		newLineSplitter(file, end).each(lines, func(l FileLine, kind pieceKind, open bool) bool {
			return kind != pieceRecord || open || len(trimmed(l.Bytes)) == 0 || yield(l, nil)
		})
		if failed != nil {
			yield(FileLine{}, failed)
		}
	}
}

// FirstRecord parses the first record of a text. ok is false if that is no JSON object, or not all of one.
func FirstRecord(text []byte) (o jsonx.Object, ok bool) {
	for l := range EachRecord(bytes.NewReader(text), int64(len(text))) {
		o, _, ok = ParseLine(l.Bytes)
		break
	}
	return o, ok
}

// lineSplitter yields the pieces of a file's lines.
type lineSplitter struct {
	file   io.ReaderAt
	end    int64
	budget int64 // bytes that it may still read ahead, for records over lines
	shapes []shape
}

// maxRereads is how many times the size of a file may be read ahead to find its records over lines.
const maxRereads = 4

func newLineSplitter(file io.ReaderAt, end int64) *lineSplitter {
	return &lineSplitter{file: file, end: end, budget: MaxLine + maxRereads*end}
}

// each yields the pieces of lines, each as a line. open says of a piece that the file ends within it.
func (s *lineSplitter) each(lines iter.Seq[FileLine], yield func(l FileLine, kind pieceKind, open bool) bool) {
	done := int64(0) // offset behind the newest piece, which may be of several lines
	for l := range lines {
		if l.At < done {
			continue
		}
		text := trimmed(l.Bytes)
		end, first := scanObject(text)
		if isWhole := len(text) > 0 && end == len(text); isWhole || len(text) == 0 {
			if isWhole {
				s.note(text, first)
			}
			if !yield(l, pieceRecord, !isWhole && !l.Ended) {
				return
			}
			continue
		}
		all, from := split(l.Bytes, l.Ended, s.isKnown), 0
		for i, p := range all {
			part, kind, open := l, p.kind, false
			part.At, part.Bytes, from = l.At+int64(from), l.Bytes[from:p.end], p.end
			if i < len(all)-1 {
				part.End, part.Ended = l.At+int64(p.end), true
			} else if kind != pieceNULs && !isOneObject(part.Bytes) {
				part, kind, open = s.join(part, kind)
			}
			if done = part.End; !yield(part, kind, open) {
				return
			}
		}
	}
}

// maxShapes bounds the shapes that are compared with each record.
const maxShapes = 64

// note remembers the shape of a record.
func (s *lineSplitter) note(record []byte, first names) {
	isIt := func(known shape) bool {
		for i, name := range first {
			if known[i] != string(record[name.from:name.to]) {
				return false
			}
		}
		return true
	}
	if len(s.shapes) < maxShapes && !slices.ContainsFunc(s.shapes, isIt) {
		s.shapes = append(s.shapes, first.of(record))
	}
}

// isKnown reports whether a record of a shape came before; before the first record any may come.
func (s *lineSplitter) isKnown(of shape) bool {
	return len(s.shapes) == 0 || slices.Contains(s.shapes, of)
}

// join returns the record that begins with the end of a line and goes on in the lines behind it, else the end of the
// line. open reports whether the file ends within it.
func (s *lineSplitter) join(l FileLine, kind pieceKind) (joined FileLine, of pieceKind, open bool) {
	if !l.Ended {
		return l, kind, true
	}
	if begin := trimmed(l.Bytes); len(begin) == 0 || begin[0] != '{' {
		return l, kind, false
	}
	next, stop := iter.Pull2(linesFrom(s.file, l.End, s.end, l.Number+1))
	defer stop()
	in := &joiner{splitter: s, next: next, last: l}
	in.write(Unmarked(l.Bytes))
	decoder := jsontext.NewDecoder(in, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	value, err := decoder.ReadValue()
	if err != nil {
		return l, kind, in.ended
	}
	if behind := in.written - decoder.InputOffset(); len(trimmed(in.line[int64(len(in.line))-behind:])) > 0 {
		return l, kind, false
	}
	l.Bytes, l.End, l.Ended, l.Lines = slices.Clone(value), in.last.End, in.last.Ended, in.last.Number-l.Number+1
	return l, pieceRecord, false
}

// joiner reads lines as one text, in which the control characters of strings are escaped.
type joiner struct {
	splitter *lineSplitter
	next     func() (FileLine, error, bool)
	last     FileLine
	ended    bool // the file did
	line     []byte
	unread   []byte // of line
	written  int64
	escaper  escaper
}

func (j *joiner) write(line []byte) {
	j.line = j.escaper.escape(j.line[:0], line)
	j.unread = j.line
	j.written += int64(len(j.line))
}

// Read implements io.Reader. It ends before a line that is a record of its own.
func (j *joiner) Read(p []byte) (n int, err error) {
	for len(j.unread) == 0 {
		l, err, more := j.next()
		if !more || err != nil {
			j.ended = err == nil
			return 0, io.EOF
		}
		j.splitter.budget -= l.End - l.At
		isRecord := len(l.Bytes) > 2 && l.Bytes[0] == '{' && isOneObject(l.Bytes) && isObject(l.Bytes)
		if isRecord || l.Bytes == nil || j.splitter.budget < 0 || j.written > MaxLine {
			return 0, io.EOF
		}
		j.last = l
		j.write(append([]byte{'\n'}, l.Bytes...))
	}
	n = copy(p, j.unread)
	j.unread = j.unread[n:]
	return n, nil
}

// escaper escapes the control characters in the strings of a JSON text that comes in pieces.
type escaper struct{ inString, escaped bool }

func (e *escaper) escape(to, text []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range text {
		switch {
		case e.inString && c == '\n':
			to = append(to, '\\', 'n')
		case e.inString && c < ' ':
			to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			to = append(to, c)
		}
		switch {
		case e.escaped:
			e.escaped = false
		case c == '\\':
			e.escaped = e.inString
		case c == '"':
			e.inString = !e.inString
		}
	}
	return to
}

// JoinLines returns a record as one line: Bytes of a FileLine that has Lines, from what its file holds.
func JoinLines(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 {
		return text
	}
	return new(escaper).escape(nil, text)
}
