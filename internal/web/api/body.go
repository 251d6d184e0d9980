package api

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

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

// decodeBody decodes one JSON object into a struct, in one pass. It rejects unknown fields, because ignoring a
// misspelled expect_head would be worse, and a field that occurs twice, at any depth. As in earlier versions the case
// of the route's own names does not count. An empty body is an empty object.
// Codes: Malformed, Invalid.
func decodeBody(raw []byte, into any) error {
	return decode(raw, into, jsontext.AllowDuplicateNames(false))
}

func decode(raw []byte, into any, options ...json.Options) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if at := invalidUTF8(raw); at >= 0 {
		return session.Errorf(session.Malformed, "the body is not UTF-8: byte %d does not begin a character", at)
	}
	if jsonx.DeeperThan(raw, maxDepth) {
		return session.Errorf(session.Invalid, "the body nests deeper than the limit of %d levels", maxDepth)
	}
	// Halves of surrogate pairs pass: fields that cannot hold them refuse them, messages keep them.
	options = append(options, jsontext.AllowInvalidUTF8(true), json.RejectUnknownMembers(true),
		json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), options...)
	if err := json.UnmarshalDecode(dec, into, options...); err != nil {
		return explain(cmp.Or(brokenJSON(raw), err))
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return session.Errorf(session.Malformed, "the body continues after its JSON value, at byte %d", dec.InputOffset())
	}
	return nil
}

// brokenJSON returns what is wrong with the syntax of a refused body: that comes before a wrong field.
func brokenJSON(raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return dec.SkipValue()
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
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	var known *session.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return session.Errorf(session.Malformed, "the body is not valid JSON: it ends too early")
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		name := jsonx.Path(syntax.JSONPointer)
		return session.Errorf(session.Invalid, "the body has the field %q twice: send it once", name).At(name, "occurs twice")
	case errors.As(err, &syntax):
		return session.Errorf(session.Malformed, "the body is not valid JSON: %s at byte %d", syntax.Err, syntax.ByteOffset)
	case errors.As(err, &semantic):
		return explainMismatch(semantic)
	}
	return session.Errorf(session.Malformed, "the body cannot be read: %w", err)
}

func explainMismatch(e *json.SemanticError) error {
	path, what := jsonx.Path(e.JSONPointer), ""
	var refused *refusal
	switch {
	case errors.Is(e, json.ErrUnknownName):
		return session.Errorf(session.Invalid, "the body has the field %q, which this route does not know", path).
			At(path, "unknown field")
	case errors.As(e, &refused):
		what = refused.what
	case path == "" && e.GoType != nil && e.GoType.Kind() == reflect.Struct:
		return session.Errorf(session.Malformed, "the body must be a JSON object, not %s", kindName(e.JSONKind))
	default:
		what = fmt.Sprintf("must be %s, not %s", wanted(e.GoType), kindName(e.JSONKind))
	}
	return session.Errorf(session.Invalid, "%s %s", path, what).At(path, "%s", what)
}

// kindName returns the name of a kind of JSON values.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "bool"
	}
	return "null"
}

func wanted(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
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

// refusal is the error of an UnmarshalJSON for an invalid value. The decoder adds the path of the field.
type refusal struct{ what string }

func (r *refusal) Error() string { return r.what }

// refuse returns a refusal.
func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }
