package dialecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// EqualJSON reports whether two texts are the same JSON value, more sharply than encoding/json
// does: 1.0 is not 1, and half a surrogate pair is not U+FFFD.
func EqualJSON(a, b []byte) bool {
	x, errX := sharp(a)
	y, errY := sharp(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// sharp decodes with numbers as they are written and escapes of half pairs made visible.
func sharp(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(markHalves(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// markHalves writes an escape of half a pair as text, since decoding would blur it.
func markHalves(raw []byte) []byte {
	// What stands behind a backslash: a whole pair, half of one, anything else.
	escapes := regexp.MustCompile(`(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[^u]`)
	return escapes.ReplaceAllFunc(raw, func(e []byte) []byte {
		if len(e) != 6 {
			return e
		}
		n, _ := strconv.ParseUint(string(e[2:]), 16, 32)
		return fmt.Appendf(nil, "⟦half %04x⟧", n)
	})
}

// Array writes elements as one JSON array, for comparing and printing.
func Array(elements []json.RawMessage) []byte {
	parts := make([]string, len(elements))
	for i, e := range elements {
		parts[i] = string(e)
	}
	return []byte("[" + strings.Join(parts, ",\n ") + "]")
}
