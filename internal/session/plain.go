package session

import (
	"bytes"
	"encoding/json"
)

// MarshalPlain is json.Marshal without HTML escaping: <, > and & stand as they are, so
// that stored JSON reads as it was written.
func MarshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
