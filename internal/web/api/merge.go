package api

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// object is a JSON object, byte for byte. Its names must be valid text: a name with a NUL or half
// of a surrogate pair could not be queried.
type object session.JSON

// UnmarshalJSON implements json.Unmarshaler; a null is no object.
func (o *object) UnmarshalJSON(raw []byte) error {
	if jsonx.IsNull(raw) {
		*o = nil
		return nil
	}
	if err := checkObject(raw); err != nil {
		return err
	}
	*o = append(object(nil), raw...)
	return nil
}

// settings is an object of the context manager's settings.
type settings object

// UnmarshalJSON implements json.Unmarshaler.
func (s *settings) UnmarshalJSON(raw []byte) error { return (*object)(s).UnmarshalJSON(raw) }

// Schema implements huma.SchemaProvider.
func (settings) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[contextmgr.Settings](), true, "Settings")
}

// Schema implements huma.SchemaProvider.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// checkObject rejects other values than objects, and invalid or duplicate names.
func checkObject(raw jsontext.Value) error {
	parsed, err := jsonx.ParseObject("it", raw)
	if err != nil {
		return refuse("cannot be used: %s", err.Error())
	}
	for _, m := range parsed {
		if strings.ContainsRune(m.Key, utf8.RuneError) {
			return refuse("has a field name that is not valid text")
		}
		if jsonx.KindOf(m.Value) == '{' {
			if err := checkObject(jsontext.Value(m.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}
