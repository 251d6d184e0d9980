package session

import (
	"bytes"
	"encoding/json"
)

// MarshalPlain is json.Marshal without HTML escaping: it keeps <, > and &, so that stored JSON is
// readable.
func MarshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
