package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Document reads a file that is one JSON value, an object or an array, member by member, so that
// no more than one of them is held: an export may be larger than memory should be.
//
// Errors have the code Invalid where the JSON is broken.
type Document struct {
	in   *jsontext.Decoder
	skip int64 // bytes of a byte order mark
	kind []byte
}

// NewDocument reads a file of a size from its beginning.
func NewDocument(file io.ReaderAt, size int64) *Document {
	mark := make([]byte, len("\ufeff"))
	n, _ := file.ReadAt(mark, 0)
	d := &Document{skip: int64(n - len(Unmarked(mark[:n])))}
	in := io.NewSectionReader(file, d.skip, size-d.skip)
	d.in = jsontext.NewDecoder(in, jsontext.AllowInvalidUTF8(true))
	return d
}

// Document reads the found file as one JSON value.
func (in *Intake) Document() *Document { return NewDocument(in.file, in.Found.Size) }

// Enter goes into the object or array that comes next and tells which by its first byte. Members
// gives its members then, and leaves it behind the last one.
func (d *Document) Enter() (kind byte, err error) {
	switch d.in.PeekKind() {
	case '{', '[':
	case 0:
		_, err := d.in.ReadToken()
		return 0, d.broken(err)
	default:
		return 0, session.Errorf(session.Invalid, "neither an object nor an array at byte %d", d.offset())
	}
	token, err := d.in.ReadToken()
	if err != nil {
		return 0, d.broken(err)
	}
	d.kind = append(d.kind, byte(token.Kind()))
	return byte(token.Kind()), nil
}

// Members yields the members of what was entered; yield may read the value, or enter it.
func (d *Document) Members(yield func(name string) error) error {
	kind := d.kind[len(d.kind)-1]
	d.kind = d.kind[:len(d.kind)-1]
	for {
		switch d.in.PeekKind() {
		case '}', ']':
			_, err := d.in.ReadToken()
			return d.broken(err)
		case 0:
			_, err := d.in.ReadToken()
			return d.broken(err)
		}
		name := ""
		if kind == '{' {
			token, err := d.in.ReadToken()
			if err != nil {
				return d.broken(err)
			}
			name = token.String()
		}
		before := d.in.InputOffset()
		if err := yield(name); err != nil {
			return err
		}
		if d.in.InputOffset() == before {
			if err := d.in.SkipValue(); err != nil {
				return d.broken(err)
			}
		}
	}
}

// Value reads the value that comes next.
func (d *Document) Value() (json.RawMessage, error) {
	value, err := d.in.ReadValue()
	if err != nil {
		return nil, d.broken(err)
	}
	return json.RawMessage(value.Clone()), nil
}

func (d *Document) offset() int64 { return d.skip + d.in.InputOffset() }

func (d *Document) broken(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return session.Errorf(session.Invalid, "it ends in the middle")
	case errors.As(err, &syntax):
		return session.Errorf(session.Invalid, "%s at byte %d", syntax.Err, d.skip+syntax.ByteOffset)
	}
	return fmt.Errorf("read it: %w", err)
}
