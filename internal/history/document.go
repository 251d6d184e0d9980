package history

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Document reads the found file as one JSON object or array, as EachValue does.
func (in *Intake) Document(list string, visit func(name string, element bool, value jsontext.Value) error) error {
	return EachValue(in.file, in.Found.Size, list, visit)
}

// EachValue visits the values of a file of a size, one after the other: the members of an object with
// their names, but of the member list, which is an array, nothing and then each element; and the elements
// of an array.
// It ends with the first error of visit. What comes behind the object or array is not read. Codes: Invalid (the
// JSON is broken).
func EachValue(file io.ReaderAt, size int64, list string,
	visit func(name string, element bool, value jsontext.Value) error,
) error {
	mark := make([]byte, len("\ufeff"))
	n, _ := file.ReadAt(mark, 0)
	skip := int64(n - len(Unmarked(mark[:n])))
	d := jsontext.NewDecoder(io.NewSectionReader(file, skip, size-skip), jsontext.AllowInvalidUTF8(true))
	err := eachValue(d, list, visit)
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return session.Errorf(session.Invalid, "it ends in the middle")
	case errors.As(err, &syntax):
		return session.Errorf(session.Invalid, "%s at byte %d", syntax.Err, skip+syntax.ByteOffset)
	}
	return err
}

func eachValue(d *jsontext.Decoder, list string,
	visit func(name string, element bool, value jsontext.Value) error,
) error {
	kind := d.PeekKind()
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if kind == '[' {
		return eachElement(d, "", visit)
	}
	if kind != '{' {
		return session.Errorf(session.Invalid, "it is neither an object nor an array")
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if key != list {
			value, err := d.ReadValue()
			if err == nil {
				err = visit(key, false, jsontext.Value(value.Clone()))
			}
			if err != nil {
				return err
			}
			continue
		}
		if d.PeekKind() != '[' {
			_, err := d.ReadValue()
			if err == nil {
				err = session.Errorf(session.Invalid, "its member %s is no list", list)
			}
			return err
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		if err := visit(list, false, nil); err != nil {
			return err
		}
		if err := eachElement(d, list, visit); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// eachElement visits the rest of an array, to its end.
func eachElement(d *jsontext.Decoder, list string,
	visit func(name string, element bool, value jsontext.Value) error,
) error {
	for kind := d.PeekKind(); kind != ']' && kind != 0; kind = d.PeekKind() {
		value, err := d.ReadValue()
		if err == nil {
			err = visit(list, true, jsontext.Value(value.Clone()))
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}
