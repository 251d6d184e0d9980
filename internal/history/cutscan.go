package history

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"slices"
	"unicode/utf8"

	"sessiond/internal/session"
)

// shorten reads a line of a size with its long strings cut. It is nil where it must be read
// whole: nothing in it can be cut, or it is none that is taken apart.
func (c *Cuts) shorten(at, size int64) ([]byte, error) {
	s := cutScanner{Cuts: c, in: window{file: c.file, next: at, end: at + size}, most: int(size / 2)}
	line, err := s.line()
	switch {
	case errors.Is(err, errUncut):
		return nil, nil
	case err != nil:
		return nil, err
	}
	o := trim(line)
	if len(s.found) == 0 || len(o) == 0 || o[0] != '{' || !utf8.Valid(line) || !Valid(line) || DeeperThan(line, MaxDepth) ||
		bytes.Count(line, marker) != len(s.found) || c.rule.Whole != nil && c.rule.Whole(o) {
		return nil, nil
	}
	for i := range s.found {
		found := &s.found[i]
		c.at[cutID(found.sum[:])] = *found
	}
	return line, nil
}

// errUncut says that a line must be read whole.
var errUncut = errors.New("not to be cut")

// cutScanner reads one line. It follows its structure only as far as it must to tell which
// field a string is of: whether the line is valid shows afterwards.
type cutScanner struct {
	*Cuts
	in    window
	short []byte
	most  int     // bytes above which a line is not worth it
	open  []frame // objects and lists, the innermost last
	name  bool    // the next string is a field's name
	found []cut
}

type frame struct {
	object bool
	field  string // of the value at hand
}

// longestField is the size of the longest name of a field that may be cut, and more.
const longestField = 64

func (s *cutScanner) line() ([]byte, error) {
	for {
		b := s.in.bytes()
		if len(b) == 0 {
			if s.in.next < s.in.end && s.in.err == nil {
				return nil, errUncut
			}
			return s.short, s.in.err
		}
		n := 0
		for n < len(b) && b[n] != '"' {
			if err := s.structure(b[n]); err != nil {
				return nil, err
			}
			n++
		}
		s.short = append(s.short, b[:n]...)
		s.in.skip(n)
		if len(s.short) > s.most {
			return nil, errUncut
		}
		if n < len(b) {
			if err := s.str(); err != nil {
				return nil, err
			}
		}
	}
}

// structure follows a byte that stands in no string.
func (s *cutScanner) structure(c byte) error {
	switch c {
	case '{':
		s.open, s.name = append(s.open, frame{object: true}), true
	case '[':
		s.open = append(s.open, frame{field: s.field()})
	case '}', ']':
		if len(s.open) == 0 {
			return errUncut
		}
		s.open, s.name = s.open[:len(s.open)-1], false
	case ',':
		s.name = len(s.open) > 0 && s.open[len(s.open)-1].object
	case ':':
		s.name = false
	}
	if len(s.open) > MaxDepth {
		return errUncut
	}
	return nil
}

func (s *cutScanner) field() string {
	if len(s.open) == 0 {
		return ""
	}
	return s.open[len(s.open)-1].field
}

// str takes a string, of which the quote is next.
func (s *cutScanner) str() error {
	begin := len(s.short)
	from, may := s.in.next+1, !s.name && slices.Contains(s.rule.Fields, s.field())
	long := false
	s.short = append(s.short, '"')
	s.in.skip(1)
	for escaped := false; ; {
		b := s.in.bytes()
		if len(b) == 0 { // it has no end
			return orUncut(s.in.err)
		}
		n, end := stringEnd(b, &escaped)
		if !long {
			s.short = append(s.short, b[:n]...)
			if long = may && len(s.short)-begin > s.rule.Limits.String; long {
				s.short = s.short[:begin+1]
			} else if len(s.short) > s.most {
				return errUncut
			}
		}
		s.in.skip(n)
		if end {
			break
		}
	}
	if long {
		return s.cut(from, s.in.next-1)
	}
	if s.name && len(s.open) > 0 {
		s.open[len(s.open)-1].field = ""
		if name := s.short[begin+1 : len(s.short)-1]; len(name) < longestField {
			s.open[len(s.open)-1].field = string(name)
		}
	}
	return nil
}

func orUncut(err error) error {
	if err == nil {
		return errUncut
	}
	return err
}

// stringEnd gives the bytes up to the quote that ends a string, and that. escaped tells
// whether the byte before b was a backslash that counts.
func stringEnd(b []byte, escaped *bool) (n int, end bool) {
	if *escaped {
		n, *escaped = 1, false
	}
	quote := n - 1 // looked for once for each quote, however many escapes stand before it
	for n < len(b) {
		if quote < n {
			if quote = bytes.IndexByte(b[n:], '"'); quote < 0 {
				quote = len(b)
			} else {
				quote += n
			}
		}
		slash := bytes.IndexByte(b[n:quote], '\\')
		switch {
		case slash >= 0:
			n += slash + 2
		case quote < len(b):
			return quote + 1, true
		default:
			n = quote
		}
	}
	if n > len(b) { // the last byte is the backslash
		*escaped = true
	}
	return len(b), false
}

// cut writes a string whose content stands from from to to with a token in its middle.
func (s *cutScanner) cut(from, to int64) error {
	keep := int64(s.rule.Limits.Keep)
	first := make([]byte, min(base64Head, keep))
	if err := ReadAgain(s.file, first, from); err != nil {
		return err
	}
	keep += (base64Begin(first) - keep) & 3 // so that groups of base64 stay whole
	c, hint, err := s.examine(from, from+keep, to-keep, to)
	if err != nil {
		return err
	}
	if err := s.copy(from, c.offset); err != nil {
		return err
	}
	c.usual = hint == hintEscaped
	s.short = tokenOf(s.short, &c, hint)
	s.found = append(s.found, c)
	return s.copy(c.offset+c.size, to+1)
}

// base64Head is within which the bytes of a data: URL begin.
const base64Head = 256

// base64Begin gives the place in a string where base64 begins, if it is any.
func base64Begin(head []byte) int64 {
	if bytes.HasPrefix(head, []byte("data:")) {
		return int64(bytes.IndexByte(head, ',') + 1)
	}
	return 0
}

// examine goes over a whole string, and gives the cut from the first character at or behind
// before to the first at or behind behind.
func (s *cutScanner) examine(from, before, behind, to int64) (cut, string, error) {
	var head, middle, tail stringScan
	var begins, ends []byte
	in := window{file: s.file, next: from, end: to}
	if err := in.units(&head, before, &begins, nil); err != nil {
		return cut{}, "", err
	}
	sum := sha256.New()
	c := cut{offset: in.next}
	search := search{texts: s.rule.Stay}
	search.Write(begins)
	if err := in.search(&middle, c.offset+(behind-c.offset+3)&^3, sum, &search); err != nil {
		return cut{}, "", err
	}
	c.size, c.text = in.next-c.offset, middle.text
	sum.Sum(c.sum[:0])
	if err := in.units(&tail, to, &ends, nil); err != nil {
		return cut{}, "", err
	}
	if search.Write(ends); search.found {
		return cut{}, "", errUncut
	}
	visible, left := min(mostVisible, s.rule.Limits.Keep/8), min(session.BlobThreshold, s.rule.Limits.Keep/8)
	if c.size < 2*int64(tokenSize) || len(begins)+len(ends) <= left || len(bytes.TrimSpace(begins)) < visible || len(bytes.TrimSpace(ends)) < visible || !bytes.ContainsFunc(ends, isWord) {
		return cut{}, "", errUncut
	}
	return c, middle.hint(), nil
}

// isWord tells whether what looks for a word at the end of a text stops at c.
func isWord(c rune) bool { return c < utf8.RuneSelf && classes[c] == 0 }

// search looks for texts in what is written to it.
type search struct {
	texts []string
	end   []byte // of what was written
	found bool
}

func (s *search) Write(text []byte) {
	for _, one := range s.texts {
		joint := append(s.end[:len(s.end):len(s.end)], text[:min(len(text), len(one))]...)
		s.found = s.found || bytes.Contains(text, []byte(one)) || bytes.Contains(joint, []byte(one))
	}
	const most = 64 // bytes of a text
	s.end = append(s.end, text[max(0, len(text)-most):]...)
	s.end = s.end[max(0, len(s.end)-most):]
}

// mostVisible is how much of a text is looked at, behind white space, for what it is and for a
// title.
const mostVisible = 1 << 10

// copy puts a stretch of the file into the line.
func (s *cutScanner) copy(from, to int64) error {
	begin := len(s.short)
	s.short = slices.Grow(s.short, int(to-from))[:begin+int(to-from)]
	return ReadAgain(s.file, s.short[begin:], from)
}

// window reads a file through a buffer.
type window struct {
	file      io.ReaderAt
	buffer    []byte
	rest      []byte // of the buffer, from next on
	next, end int64
	err       error
}

// bytes gives some of what comes next; none at the end and after an error.
func (w *window) bytes() []byte {
	if len(w.rest) == 0 {
		w.fill()
	}
	return w.rest
}

// fill reads on behind what is in the buffer.
func (w *window) fill() {
	if w.buffer == nil {
		w.buffer = make([]byte, min(readSize, w.end-w.next))
	}
	kept := copy(w.buffer, w.rest)
	n := int(min(int64(len(w.buffer)-kept), w.end-w.next-int64(kept)))
	w.rest = w.buffer[:kept]
	if n <= 0 || w.err != nil {
		return
	}
	got, err := w.file.ReadAt(w.buffer[kept:kept+n], w.next+int64(kept))
	w.rest = w.buffer[:kept+got]
	if got < n {
		if w.err = err; err == nil || errors.Is(err, io.EOF) {
			w.err = changed()
		}
	}
}

func (w *window) skip(n int) { w.rest, w.next = w.rest[n:], w.next+int64(n) }

// search goes over whole characters until the place target is reached, and sums and searches them.
func (w *window) search(s *stringScan, target int64, sum hash.Hash, search *search) error {
	if len(search.texts) == 0 {
		return w.units(s, target, nil, sum)
	}
	var text []byte
	for w.next < target {
		if len(w.rest) < longestUnit {
			w.fill()
		}
		text = text[:0]
		if err := w.units(s, min(target, w.next+int64(max(1, len(w.rest)))), &text, sum); err != nil {
			return err
		}
		search.Write(text)
	}
	return nil
}

// units goes over whole characters until the place target is reached.
func (w *window) units(s *stringScan, target int64, text *[]byte, sum hash.Hash) error {
	for w.next < target {
		if len(w.rest) < longestUnit {
			w.fill()
		}
		used := s.units(w.rest, int(min(int64(len(w.rest)), target-w.next)), text)
		if used == 0 {
			return orUncut(w.err)
		}
		if sum != nil {
			sum.Write(w.rest[:used])
		}
		w.skip(used)
	}
	return nil
}
