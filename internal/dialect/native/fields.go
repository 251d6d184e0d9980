package native

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// fields reads the fields of one object and keeps the first error.
type fields struct {
	wire.Fields
	err error
}

func (f *fields) fail(code session.Code, field, format string, args ...any) {
	if f.err == nil {
		f.err = f.Field(field).Errorf(code, format, args...)
	}
}

// text reads a short text, "" where there is none.
func (f *fields) text(field string) string {
	text, exact := f.string(field)
	if !exact {
		f.fail(session.Invalid, field, "holds a NUL or half a surrogate pair, which no text can")
	}
	return text
}

// long reads the text of a part. What UTF-8 cannot hold is kept raw in extra.raw.
func (f *fields) long(field, column string, p *session.Part) string {
	text, exact := f.string(field)
	if exact || f.err != nil {
		return text
	}
	extra := f.extra(p)
	raw, err := wire.ParseObject("raw", orEmpty(extra.Get("raw")))
	if err != nil {
		f.fail(session.Invalid, "extra.raw", "must be an object")
		return text
	}
	raw.Set(column, f.Get(field))
	extra.Set("raw", raw.JSON())
	p.Extra = session.JSON(extra.JSON())
	f.Field(field).Warn("holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw in extra")
	return text
}

func (f *fields) extra(p *session.Part) wire.Object {
	extra, err := wire.ParseObject(f.Field("extra").String(), orEmpty(json.RawMessage(p.Extra)))
	if err != nil && f.err == nil {
		f.err = err
	}
	return extra
}

func (f *fields) string(field string) (text string, exact bool) {
	raw := f.Get(field)
	switch wire.KindOf(raw) {
	case 'n':
		return "", true
	case '"':
		return wire.Text(raw)
	}
	f.fail(session.Invalid, field, "must be a string, not %s", wire.Describe(raw))
	return "", true
}

// word reads one of a few words.
func (f *fields) word(field, otherwise string, words ...string) string {
	if wire.IsNull(f.Get(field)) {
		if otherwise == "" && !slices.Contains(words, "") {
			f.fail(session.Invalid, field, "is missing: it is one of %s", list(words))
		}
		return otherwise
	}
	word := f.text(field)
	if !slices.Contains(words, word) {
		f.fail(session.Invalid, field, "is %q: it must be one of %s", wire.Clip(word), list(words))
	}
	return word
}

func list(words []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", ")
}

func (f *fields) flag(field string, otherwise bool) bool {
	switch raw := f.Get(field); wire.KindOf(raw) {
	case 't':
		return true
	case 'f':
		return false
	case 'n':
	default:
		f.fail(session.Invalid, field, "must be true or false, not %s", wire.Describe(raw))
	}
	return otherwise
}

// into reads a field with encoding/json: a time, a number, a boolean that may be absent.
func (f *fields) into(field string, target any) {
	raw := f.Get(field)
	if wire.IsNull(raw) {
		return
	}
	if err := json.Unmarshal(raw, target); err != nil {
		var known *session.Error
		if errors.As(err, &known) {
			f.fail(known.Code, field, "is wrong: %s", known.Message)
			return
		}
		f.fail(session.Invalid, field, "cannot be %s", wire.Clip(string(raw)))
	}
}

func (f *fields) objectOf(field string) session.JSON {
	raw := f.Get(field)
	switch {
	case wire.IsNull(raw):
		return nil
	case wire.KindOf(raw) != '{':
		f.fail(session.Invalid, field, "must be an object, not %s", wire.Describe(raw))
	case wire.Depth(raw) > wire.MaxExtraDepth:
		f.fail(session.TooLarge, field, "is nested deeper than %d levels", wire.MaxExtraDepth)
	}
	return slices.Clone(session.JSON(raw))
}

// bytes reads data and media_type. The type stands in extra too, since one blob may lie in
// parts that call it differently.
func (f *fields) bytes(p *session.Part) {
	text, mediaType := f.text("data"), f.text("media_type")
	switch {
	case f.err != nil:
		return
	case text == "" && mediaType != "":
		f.fail(session.Invalid, "media_type", "stands without data")
		return
	case text == "":
		if !wire.IsNull(f.Get("blob")) && p.Text == "" {
			f.fail(session.Invalid, "blob", "names bytes that are not here: give them as data")
		}
		return
	case !p.Kind.HasBytes():
		f.fail(session.Invalid, "data", "stands in a part of kind %s: only image, audio, file and data have bytes", p.Kind)
		return
	case !strings.Contains(mediaType, "/"):
		f.fail(session.Invalid, "media_type", "must say what the bytes are, like image/png")
		return
	}
	data, ok := wire.Base64(text)
	if !ok {
		f.fail(session.Invalid, "data", "is no base64 (standard alphabet, padded, no line breaks)")
		return
	}
	extra := f.extra(p)
	extra.SetText("media_type", mediaType)
	p.Extra = session.JSON(extra.JSON())
	wire.Attach(p, wire.Blob(mediaType, data))
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}
