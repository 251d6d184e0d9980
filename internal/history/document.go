package history

import (
	"bytes"
	"io"

	"sessiond/internal/session"
)

// Document goes over a file that is one JSON value, an object or an array, member by member, and
// holds none of them: an export may be larger than memory should be. It follows the structure
// only. Whether a value is valid is asked of who reads it.
//
// Errors have the code Invalid where the structure is broken, Busy where the file became shorter.
type Document struct {
	in   window
	open []byte // what was entered and not left: '{' or '['
	more bool   // a member was given of the innermost
}

// Span is a stretch of a file.
type Span struct{ At, Size int64 }

// NewDocument reads a file of a size from its beginning.
func NewDocument(file io.ReaderAt, size int64) *Document {
	d := &Document{in: window{file: file, end: size}}
	d.in.skip(len(d.in.bytes()) - len(Unmarked(d.in.bytes())))
	return d
}

// longestName is the size of the longest name that is told, and less.
const longestName = 128 << 10

// Enter goes into the object or array that comes next and tells which by its first byte. Members
// gives its members then, and leaves it behind the last one.
func (d *Document) Enter() (kind byte, err error) {
	c, err := d.peek()
	if err != nil {
		return 0, err
	}
	if c != '{' && c != '[' {
		return 0, d.broken("neither an object nor an array")
	}
	d.in.skip(1)
	d.open, d.more = append(d.open, c), false
	return c, nil
}

// next goes to the next member: of an object its name is told, and its value comes next.
func (d *Document) next() (name string, ok bool, err error) {
	kind, end := d.open[len(d.open)-1], byte(']')
	if kind == '{' {
		end = '}'
	}
	c, err := d.peek()
	if err != nil {
		return "", false, err
	}
	if c == end {
		d.in.skip(1)
		d.open, d.more = d.open[:len(d.open)-1], true
		return "", false, nil
	}
	if d.more {
		if c != ',' {
			return "", false, d.broken("no comma")
		}
		d.in.skip(1)
	}
	d.more = true
	if kind == '[' {
		return "", true, nil
	}
	name, err = d.name()
	return name, err == nil, err
}

func (d *Document) name() (string, error) {
	c, err := d.peek()
	if err != nil {
		return "", err
	}
	if c != '"' {
		return "", d.broken("no name")
	}
	var raw []byte
	err = d.str(func(b []byte) {
		if len(raw) < longestName {
			raw = append(raw, b...)
		}
	})
	if err != nil {
		return "", err
	}
	name := ""
	if Valid(raw) { // else it is none that anybody looks for
		name = nameOf(raw)
	}
	if c, err = d.peek(); err != nil {
		return "", err
	}
	if c != ':' {
		return "", d.broken("no colon")
	}
	d.in.skip(1)
	return name, nil
}

// Members yields the members of what was entered; yield may take the value.
func (d *Document) Members(yield func(name string) error) error {
	for {
		name, ok, err := d.next()
		if err != nil || !ok {
			return err
		}
		before := d.in.next
		if err := yield(name); err != nil {
			return err
		}
		if d.in.next == before {
			if _, err := d.Value(); err != nil {
				return err
			}
		}
	}
}

// Value goes over the value that comes next and tells where it stands.
func (d *Document) Value() (Span, error) {
	c, err := d.peek()
	if err != nil {
		return Span{}, err
	}
	at := d.in.next
	switch c {
	case '"':
		err = d.str(nil)
	case '{', '[':
		err = d.nested()
	case '}', ']', ',', ':':
		err = d.broken("no value")
	default:
		err = d.scalar()
	}
	return Span{at, d.in.next - at}, err
}

// nested goes over an object or an array.
func (d *Document) nested() error {
	for depth := 0; ; {
		b, err := d.bytes()
		if err != nil {
			return err
		}
		n := 0
		for ; n < len(b) && b[n] != '"'; n++ {
			switch b[n] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					d.in.skip(n + 1)
					return nil
				}
			}
		}
		d.in.skip(n)
		if n < len(b) {
			if err := d.str(nil); err != nil {
				return err
			}
		}
	}
}

// str goes over a string, of which the quote is next. What it is written as is given to see.
func (d *Document) str(see func([]byte)) error {
	escaped := false
	for quote := 1; ; quote = 0 {
		b, err := d.bytes()
		if err != nil {
			return err
		}
		n, end := stringEnd(b[quote:], &escaped)
		n += quote
		if see != nil {
			see(b[:n])
		}
		d.in.skip(n)
		if end {
			return nil
		}
	}
}

func (d *Document) scalar() error {
	for {
		b, err := d.bytes()
		if err != nil {
			if len(d.open) == 0 && d.in.err == nil {
				return nil
			}
			return err
		}
		n := bytes.IndexAny(b, ",:]} \t\r\n")
		if n >= 0 {
			d.in.skip(n)
			return nil
		}
		d.in.skip(len(b))
	}
}

// peek gives the next byte that is no white space.
func (d *Document) peek() (byte, error) {
	for {
		b, err := d.bytes()
		if err != nil {
			return 0, err
		}
		n := space(b, 0)
		d.in.skip(n)
		if n < len(b) {
			return b[n], nil
		}
	}
}

// bytes gives some of what comes next.
func (d *Document) bytes() ([]byte, error) {
	b := d.in.bytes()
	switch {
	case len(b) > 0:
		return b, nil
	case d.in.err != nil:
		return nil, d.in.err
	}
	return nil, session.Errorf(session.Invalid, "it ends in the middle")
}

func (d *Document) broken(why string) error {
	return session.Errorf(session.Invalid, "%s at byte %d", why, d.in.next)
}
