package jsonx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint returns 32 hexadecimal digits that are equal for objects that mean the same:
// order of members, white space, escapes and the spelling of numbers do not count, and
// members of the outermost object that drop names are left out.
func Fingerprint(o Object, drop ...string) string {
	o = o.Without(drop...)
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	var p printer
	p.members(func(yield func(key string, value func())) {
		for _, f := range o {
			yield(strings.ReplaceAll(f.Key, "\x00", "\uFFFD"), func() { // as Text reads a name
				d.Reset(bytes.NewBuffer(f.Value), lenient, jsontext.AllowDuplicateNames(true))
				p.value(d, 1)
			})
		}
	})
	sum := sha256.Sum256(p.out)
	return hex.EncodeToString(sum[:16])
}

// maxFingerprintDepth bounds the nesting that is normalised; what lies deeper counts as it
// is spelled.
const maxFingerprintDepth = 64

// printer writes JSON in a form of its own that leaves nothing to choose. Stored names are made of
// it, so that it must stay as it is.
type printer struct{ out []byte }

// value writes the decoder's next value.
func (p *printer) value(d *jsontext.Decoder, depth int) {
	kind := d.PeekKind()
	if depth > maxFingerprintDepth {
		raw, _ := d.ReadValue()
		p.out = append(p.out, raw...)
		return
	}
	switch kind {
	case '{':
		_, _ = d.ReadToken()
		p.members(func(yield func(key string, value func())) {
			for d.PeekKind() == '"' {
				name, _ := d.ReadValue()
				key, _ := Text(name)
				yield(key, func() { p.value(d, depth+1) })
			}
		})
		_, _ = d.ReadToken()
	case '[':
		_, _ = d.ReadToken()
		p.out = append(p.out, '[')
		for k := d.PeekKind(); k != ']' && k != 0; k = d.PeekKind() {
			p.value(d, depth+1)
			p.out = append(p.out, ',')
		}
		_, _ = d.ReadToken()
		p.out = append(p.out, ']')
	case '"':
		raw, _ := d.ReadValue()
		text, _ := Text(raw)
		p.text(text)
	case '0':
		raw, _ := d.ReadValue()
		p.out = appendNumber(p.out, raw)
	default:
		raw, _ := d.ReadValue()
		p.out = append(p.out, raw...)
	}
}

// members writes an object, by the order of its names. Of equal names the last one counts.
func (p *printer) members(each func(yield func(key string, value func()))) {
	type member struct {
		key      string
		from, to int
	}
	var all []member
	p.out = append(p.out, '{')
	begin := len(p.out)
	each(func(key string, value func()) {
		from := len(p.out)
		p.text(key)
		p.out = append(p.out, ':')
		value()
		p.out = append(p.out, ',')
		all = append(all, member{key, from, len(p.out)})
	})
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.key, b.key) })
	var sorted []byte
	for i, m := range all {
		if i+1 == len(all) || all[i+1].key != m.key {
			sorted = append(sorted, p.out[m.from:m.to]...)
		}
	}
	p.out = append(p.out[:begin], sorted...)
	p.out = append(p.out, '}')
}

// text is written with its length, so that no content can look like structure.
func (p *printer) text(s string) {
	p.out = strconv.AppendInt(append(p.out, '"'), int64(len(s)), 10)
	p.out = append(append(p.out, ':'), s...)
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
