package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// maxDepth limits the nesting of arrays and objects in a body. SQLite's JSON functions have the same
// limit, so they can read all stored JSON.
const maxDepth = 1000

// body is the JSON body of a request, embedded in its input. It keeps the raw bytes, because an
// Idempotency-Key compares them. It is decoded here and not by the framework, which would parse it
// three times and echo invalid values.
type body[T any] struct {
	RawBody []byte `contentType:"application/json"`

	value T
}

// read parses the body into value. Codes: Malformed, Invalid.
func (b *body[T]) read() error { return decodeBody(b.RawBody, &b.value) }

// raw returns the body's bytes.
func (b *body[T]) raw() []byte { return b.RawBody }

// schema describes the body for OpenAPI.
func (b *body[T]) schema(r huma.Registry) *huma.Schema {
	t := reflect.TypeFor[T]()
	return r.Schema(t, true, t.Name())
}

// withBody is an input that embeds a body.
type withBody interface {
	read() error
	raw() []byte
	schema(huma.Registry) *huma.Schema
}

// decodeBody decodes one JSON object into a struct. It rejects unknown fields, because ignoring a
// misspelled expect_head would be worse. An empty body is an empty object.
// Codes: Malformed, Invalid.
func decodeBody(raw []byte, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if at := invalidUTF8(raw); at >= 0 {
		return session.Errorf(session.Malformed, "the body is not UTF-8: byte %d does not begin a character", at)
	}
	if jsonx.Depth(raw) > maxDepth {
		return session.Errorf(session.Invalid, "the body nests deeper than the limit of %d levels", maxDepth)
	}
	if name := repeatedField(raw); name != "" {
		name = jsonx.Clip(name)
		return session.Errorf(session.Invalid, "the body has the field %q twice: send it once", name).At(name, "occurs twice")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return explain(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return session.Errorf(session.Malformed, "the body continues after its JSON value, at byte %d", dec.InputOffset())
	}
	return nil
}

// repeatedField returns the first field of a JSON object that occurs twice, "" for none. Case does
// not count, as it does not for the decoder.
func repeatedField(raw []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return ""
	}
	_, err := dec.ReadToken()
	seen := map[string]bool{}
	for err == nil && dec.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			return "" // the decoder says what is wrong
		}
		field := name.String()
		if seen[strings.ToLower(field)] {
			return field
		}
		seen[strings.ToLower(field)] = true
		err = dec.SkipValue()
	}
	return ""
}

// invalidUTF8 returns the index of the first byte that is not UTF-8, -1 if there is none.
func invalidUTF8(raw []byte) int {
	if !utf8.Valid(raw) {
		for i, r := range string(raw) {
			if r == utf8.RuneError && !bytes.HasPrefix(raw[i:], []byte("\ufffd")) {
				return i
			}
		}
	}
	return -1
}

// explain turns a decoder's error into one that names the place and does not echo the input.
func explain(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var known *session.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntax):
		return session.Errorf(session.Malformed, "the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return session.Errorf(session.Malformed, "the body is not valid JSON: it ends too early")
	case errors.As(err, &mismatch):
		return explainMismatch(mismatch)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = jsonx.Clip(strings.Trim(name, `"`))
		return session.Errorf(session.Invalid, "the body has the field %q, which this route does not know", name).At(name, "unknown field")
	}
	return session.Errorf(session.Malformed, "the body cannot be read: %w", err)
}

func explainMismatch(e *json.UnmarshalTypeError) error {
	if e.Field == "" && e.Type != nil && e.Type.Kind() == reflect.Struct {
		return session.Errorf(session.Malformed, "the body must be a JSON object, not %s", e.Value)
	}
	what := ""
	if e.Type == reflect.TypeFor[refusal]() {
		what = e.Value
	} else {
		given, _, _ := strings.Cut(e.Value, " ") // "number 1.5": without the number
		what = fmt.Sprintf("must be %s, not %s", wanted(e.Type), given)
	}
	return session.Errorf(session.Invalid, "%s %s", e.Field, what).At(e.Field, "%s", what)
}

func wanted(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// refusal marks an UnmarshalTypeError that was made by refuse.
type refusal struct{}

// refuse is the error that an UnmarshalJSON returns for an invalid value. The decoder adds the
// path of the field only to errors of this type.
func refuse(format string, args ...any) error {
	return &json.UnmarshalTypeError{Value: fmt.Sprintf(format, args...), Type: reflect.TypeFor[refusal]()}
}
