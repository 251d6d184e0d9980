package wire

import (
	"encoding/json"
	"slices"
	"strconv"

	"sessiond/internal/session"
)

// Extra writes an extra column field by field; nothing is written for what is empty. It is
// done by hand, as it stands in the way of every turn.
type Extra struct{ b []byte }

// JSON is what was written, nil if that is nothing.
func (e *Extra) JSON() session.JSON {
	if len(e.b) == 0 {
		return nil
	}
	return append(e.b, '}')
}

// Text writes a string.
func (e *Extra) Text(key, text string) {
	if text != "" {
		e.key(key, len(text)+len(`""`))
		e.b = AppendText(e.b, text)
	}
}

// Flag writes a true.
func (e *Extra) Flag(key string, on bool) {
	if on {
		e.Raw(key, json.RawMessage("true"))
	}
}

// Number writes a number, also a zero.
func (e *Extra) Number(key string, n int) {
	const digits = 20
	e.key(key, digits)
	e.b = strconv.AppendInt(e.b, int64(n), 10)
}

// Raw writes a JSON value.
func (e *Extra) Raw(key string, value json.RawMessage) {
	if len(value) > 0 {
		e.key(key, len(value))
		e.b = append(e.b, value...)
	}
}

// Object writes an object with something in it.
func (e *Extra) Object(key string, o *Object) {
	if o.Len() > 0 {
		e.Whole(key, o)
	}
}

// Whole writes an object, also an empty one, but not nil.
func (e *Extra) Whole(key string, o *Object) {
	if o != nil {
		e.key(key, o.size())
		e.b = o.Append(e.b)
	}
}

// Media writes what Media says beside the bytes.
func (e *Extra) Media(m *Media) {
	e.Text("media_type", m.MediaType)
	e.Text("url", m.URL)
	e.Text("file_id", m.FileID)
	e.Text("name", m.Name)
	e.Text("detail", m.Detail)
}

// key begins a field, or the extra, with place for a value of that size.
func (e *Extra) key(key string, size int) {
	const usual = 96
	size += len(key) + len(`{"":}`)
	if len(e.b) == 0 {
		e.b = append(make([]byte, 0, max(size, usual)), '{')
	} else {
		e.b = append(slices.Grow(e.b, size), ',')
	}
	e.b = append(append(append(e.b, '"'), key...), `":`...)
}

// Stored reads a JSON object that nobody checked since it was stored. Codes: Invalid, Malformed, TooLarge.
func Stored[T ~[]byte](path string, raw T) (Object, error) {
	if err := Check(path, json.RawMessage(raw)); err != nil {
		return Object{}, err
	}
	return ParseObject(path, json.RawMessage(raw))
}

// StoredOf gives the extra of a part to read, if it has one. Codes: Internal.
func StoredOf(p *session.Part, read func(*Object) error) error {
	if len(p.Extra) == 0 {
		return nil
	}
	o, err := Stored("extra", p.Extra)
	if err == nil {
		err = read(&o)
	}
	if err != nil {
		return session.Errorf(session.Internal, "extra of part %d of message %d: %w", p.Idx, p.MessageID, err)
	}
	return nil
}

// Read takes a field of an extra if it is one of Media's.
func (m *Media) Read(f *Member) bool {
	var text *string
	switch f.Key {
	case "media_type":
		text = &m.MediaType
	case "url":
		text = &m.URL
	case "file_id":
		text = &m.FileID
	case "name":
		text = &m.Name
	case "detail":
		text = &m.Detail
	default:
		return false
	}
	*text, _ = TextOf(f.Value)
	return true
}
