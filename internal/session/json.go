package session

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// JSON is an unchanged JSON value. Its zero value means none: NULL in the database, and left out on the
// wire.
type JSON json.RawMessage

// JSONOf marshals v without HTML escaping. It panics if v cannot be marshalled, so v must consist of
// plain values.
func JSONOf(v any) JSON {
	b, err := MarshalPlain(v)
	if err != nil {
		panic(fmt.Sprintf("session.JSONOf(%T): %v", v, err))
	}
	return b
}

// Value implements driver.Valuer.
func (j JSON) Value() (driver.Value, error) {
	if len(j) == 0 {
		return nil, nil
	}
	return string(j), nil
}

// Scan implements sql.Scanner.
func (j *JSON) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*j = nil
	case string:
		*j = JSON(v)
	case []byte:
		*j = append(JSON(nil), v...)
	default:
		return fmt.Errorf("a JSON column contains %T", src)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON implements json.Unmarshaler; a null is the zero value.
func (j *JSON) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*j = nil
		return nil
	}
	*j = append((*j)[:0:0], b...)
	return nil
}
