package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Fingerprint gives 32 hexadecimal digits that are equal for objects that mean the same:
// order of members, white space, escapes and the spelling of numbers do not count, and
// members of the outermost object that drop names are left out.
func Fingerprint(o Object, drop ...string) string { return new(Prints).Of(nil, o, drop...) }

// Fingerprint is that of the object as it stands in the file.
func (c *Cuts) Fingerprint(o Object, drop ...string) string { return new(Prints).Of(c, o, drop...) }

// Prints makes many fingerprints, in the same memory. The zero value works.
type Prints struct{ normal }

// Of gives the Fingerprint of an object as it stands in the file of the cuts.
func (p *Prints) Of(c *Cuts, o Object, drop ...string) string {
	o = o.Without(drop...)
	var sum [sha256.Size]byte
	if size := o.size(); size <= normalBytes && !c.within(size) {
		p.out = slices.Grow(p.out[:0], size+size/4)
		p.object(o)
		sum = sha256.Sum256(p.out)
	} else {
		hash := sha256.New()
		w := canonical{Writer: bufio.NewWriterSize(hash, 1<<10), cuts: c}
		w.object(o)
		w.Flush() // a hash takes everything
		hash.Sum(sum[:0])
	}
	return hex.EncodeToString(sum[:16])
}

// maxFingerprintDepth bounds the nesting that is normalised; what lies deeper counts as it
// is spelled, so that a hostile file costs no more than its size.
const maxFingerprintDepth = 64

// canonical writes what is too large for a normal.
type canonical struct {
	*bufio.Writer
	depth int
	cuts  *Cuts
}

func (w *canonical) object(o Object) {
	sorted := o
	byKey := func(a, b Field) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(o, byKey) {
		sorted = slices.Clone(o)
		slices.SortStableFunc(sorted, byKey)
	}
	w.WriteByte('{')
	for i, f := range sorted {
		if i+1 < len(sorted) && sorted[i+1].Key == f.Key {
			continue // of equal names the last one counts
		}
		w.text(f.Key)
		w.WriteByte(':')
		w.value(f.Raw)
		w.WriteByte(',')
	}
	w.WriteByte('}')
}

func (w *canonical) value(raw []byte) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxFingerprintDepth {
		w.cuts.Write(w, raw)
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
		inner := raw[1 : len(raw)-1]
		if bytes.IndexByte(inner, '\\') >= 0 {
			text, _ := Text(raw)
			w.text(text)
			return
		}
		if w.cuts != nil {
			w.begin(w.cuts.Size(inner))
			w.cuts.Write(w, inner)
			return
		}
		w.begin(len(inner))
		w.Write(inner)
	case 't', 'f', 'n':
		w.Write(raw)
	default:
		w.Write(appendNumber(w.AvailableBuffer(), raw))
	}
}

// appendNumber writes a number as any spelling of it is written.
func appendNumber(b, raw []byte) []byte {
	if len(raw) < 16 && !bytes.ContainsAny(raw, ".eE-") { // a whole number, as JSON writes it
		return append(b, raw...)
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil { // out of range: as it is spelled
		return append(b, bytes.ToLower(raw)...)
	}
	return strconv.AppendFloat(b, number, 'g', -1, 64)
}

// text is written with its length, so that no content can look like structure.
func (w *canonical) text(s string) {
	if w.cuts != nil {
		w.begin(w.cuts.Size([]byte(s)))
		w.cuts.Write(w, []byte(s))
		return
	}
	w.begin(len(s))
	w.WriteString(s)
}

func (w *canonical) begin(length int) {
	w.WriteByte('"')
	w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(length), 10))
	w.WriteByte(':')
}
