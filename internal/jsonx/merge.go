package jsonx

import (
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Rest returns what encoded lacks of original: the object that Merge puts into encoded to make
// it original again. ok is false where there is none.
func Rest(original, encoded *Object) (rest Object, ok bool) {
	for _, m := range *original {
		i := encoded.index(m.Key)
		switch {
		case m.Odd():
			rest = append(rest, m)
		case i >= 0 && KindOf(m.Value) == '{' && KindOf((*encoded)[i].Value) == '{':
			inner, err := ParseObject("", m.Value)
			of, errOf := ParseObject("", (*encoded)[i].Value)
			if err != nil || errOf != nil {
				return rest, false
			}
			missing, ok := Rest(&inner, &of)
			if !ok {
				return rest, false
			}
			if len(missing) > 0 {
				rest = append(rest, Member{Key: m.Key, Value: missing.Value()})
			}
		case i < 0 || !Equal(m.Value, (*encoded)[i].Value):
			rest = append(rest, m)
		}
	}
	for _, m := range *encoded {
		if !original.Has(m.Key) {
			return rest, false
		}
	}
	return rest, true
}

// Merge puts the fields of another object in, and those of objects in it into those of the
// same name.
func (o *Object) Merge(rest *Object) {
	o.Change(*rest, func(was, given jsontext.Value) jsontext.Value {
		into, err := ParseObject("", was)
		if err != nil || KindOf(given) != '{' {
			return given
		}
		if inner, err := ParseObject("", given); err == nil {
			into.Merge(&inner)
		}
		return into.Value()
	})
}

// Patch applies a JSON merge patch (RFC 7396) to an object. Both are checked JSON. Values outside the
// patch keep their bytes.
func Patch(target, patch session.JSON) session.JSON {
	if KindOf(patch) != '{' {
		return patch
	}
	if KindOf(target) != '{' {
		target = session.JSON(`{}`)
	}
	into, err := ParseObject("target", target)
	if err != nil { // stored by hand with a duplicate name: keep only the patch
		into = nil
	}
	changes, err := ParseObject("patch", patch)
	if err != nil {
		return target
	}
	into.Change(changes, func(was, given jsontext.Value) jsontext.Value {
		if IsNull(given) {
			return nil
		}
		return jsontext.Value(Patch(session.JSON(was), session.JSON(given)))
	})
	return session.JSON(into.Value())
}
