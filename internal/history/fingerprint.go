package history

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Fingerprint gives 32 hexadecimal digits that are equal for objects that mean the same:
// order of members, white space, escapes and the spelling of numbers do not count, and
// members of the outermost object that drop names are left out.
func Fingerprint(o Object, drop ...string) string {
	sum := sha256.New()
	w := canonical{Writer: bufio.NewWriter(sum)}
	w.object(o.Without(drop...))
	w.Flush() // a hash takes everything
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// maxFingerprintDepth bounds the nesting that is normalised; what lies deeper counts as it
// is spelled, so that a hostile file costs no more than its size.
const maxFingerprintDepth = 64

type canonical struct {
	*bufio.Writer
	depth int
}

func (w *canonical) object(o Object) {
	last := map[string]json.RawMessage{}
	for _, f := range o {
		last[f.Key] = f.Raw
	}
	keys := make([]string, 0, len(last))
	for key := range last {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	w.WriteByte('{')
	for _, key := range keys {
		w.text(key)
		w.WriteByte(':')
		w.value(last[key])
		w.WriteByte(',')
	}
	w.WriteByte('}')
}

func (w *canonical) value(raw []byte) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxFingerprintDepth {
		w.Write(raw)
		return
	}
	switch raw[0] {
	case '{':
		o, _ := Fields(raw)
		w.object(o)
	case '[':
		elements, _ := Elements(raw)
		w.WriteByte('[')
		for _, e := range elements {
			w.value(e)
			w.WriteByte(',')
		}
		w.WriteByte(']')
	case '"':
		text, _ := Text(raw)
		w.text(text)
	case 't', 'f', 'n':
		w.Write(raw)
	default:
		number, err := strconv.ParseFloat(string(raw), 64)
		if err != nil { // out of range: as it is spelled
			w.WriteString(strings.ToLower(string(raw)))
			return
		}
		w.WriteString(strconv.FormatFloat(number, 'g', -1, 64))
	}
}

// text is written with its length, so that no content can look like structure.
func (w *canonical) text(s string) {
	w.WriteByte('"')
	w.WriteString(strconv.Itoa(len(s)))
	w.WriteByte(':')
	w.WriteString(s)
}
