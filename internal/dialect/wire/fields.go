package wire

import "sessiond/internal/session"

// Fields is an Object of an entry, and where it stands.
type Fields struct {
	Object
	Place
}

// Value gives a field.
func (o *Fields) Value(field string) Value { return Value{o.Get(field), o.Field(field)} }

// Inner reads a field that must be an object. It stays in this one. Codes: Invalid.
func (o *Fields) Inner(field string) (Fields, error) { return o.Value(field).Fields() }

// Take takes a field that must be a string. It stays in the object, and so in an extra, where
// the text is not all that it says. Codes: Invalid.
func (o *Fields) Take(field string) (string, error) {
	i := o.index(field)
	if i < 0 {
		return "", o.Field(field).Errorf(session.Invalid, "is missing")
	}
	raw := o.members[i].Value
	if KindOf(raw) != '"' {
		return "", o.Value(field).Not("a string")
	}
	text, exact := Text(raw)
	if exact {
		o.drop(i)
	} else {
		text, _ = o.Value(field).Text()
	}
	return text, nil
}

// TakeExact takes a field that is a string with something in it that a column can hold, and
// leaves any other.
func (o *Fields) TakeExact(field string) string {
	text, exact := TextOf(o.Get(field))
	if !exact || text == "" {
		return ""
	}
	o.Drop(field)
	return text
}

// Fits refuses an object with a field that is nested too deep for an extra column.
// Codes: TooLarge.
func (o *Fields) Fits() error {
	for _, f := range o.members {
		if isDeep(f.Value) {
			return o.Field(f.Key).Errorf(session.TooLarge, "is nested deeper than %d levels", MaxExtraDepth)
		}
	}
	return nil
}

// TakeLarge takes the fields that an extra should not hold, being deep or large: each becomes
// a part that keeps it. One whose name a part cannot keep is refused. Codes: TooLarge.
func (o *Fields) TakeLarge() ([]Member, error) {
	var large []Member
	for i := 0; i < len(o.members); {
		f := o.members[i]
		if !IsLarge(f.Value) {
			i++
			continue
		}
		if f.Odd() || f.Key == "" {
			return nil, o.Field(f.Key).Errorf(session.TooLarge, "is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, MaxExtraDepth)
		}
		large = append(large, f)
		o.drop(i)
	}
	return large, nil
}
