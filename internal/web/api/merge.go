package api

import (
	"encoding/json"
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
func checkObject(raw json.RawMessage) error {
	parsed, err := jsonx.ParseObject("it", raw)
	if err != nil {
		return refuse("cannot be used: %s", err.Error())
	}
	for _, m := range parsed.Members() {
		if strings.ContainsRune(m.Key, utf8.RuneError) {
			return refuse("has a field name that is not valid text")
		}
		if jsonx.KindOf(m.Value) == '{' {
			if err := checkObject(json.RawMessage(m.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// merge applies a JSON merge patch (RFC 7396) to an object. Both are checked JSON. Values outside the
// patch keep their bytes.
func merge(target, patch session.JSON) session.JSON {
	if jsonx.KindOf(json.RawMessage(patch)) != '{' {
		return patch
	}
	if jsonx.KindOf(json.RawMessage(target)) != '{' {
		target = session.JSON(`{}`)
	}
	into, err := jsonx.ParseObject("target", json.RawMessage(target))
	if err != nil { // stored by hand with a duplicate name: keep only the patch
		into = jsonx.Object{}
	}
	changes, err := jsonx.ParseObject("patch", json.RawMessage(patch))
	if err != nil {
		return target
	}
	into.Change(changes.Members(), func(was, given jsontext.Value) jsontext.Value {
		if jsonx.IsNull(given) {
			return nil
		}
		return jsontext.Value(merge(session.JSON(was), session.JSON(given)))
	})
	return session.JSON(into.JSON())
}
