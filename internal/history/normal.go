package history

import (
	"slices"
	"strconv"
	"strings"
)

// normalBytes is up to which size an object is normalised in memory, in one pass. What is
// larger is written bit by bit, and gone over once for each level that it is nested in.
const normalBytes = 64 << 10

// normal writes what canonical does, into memory.
type normal struct {
	out     []byte
	aside   []byte // members in their order
	members []member
	depth   int
}

// member is where a member of an object stands in out.
type member struct {
	key      string
	from, to int
}

func (o Object) size() (bytes int) {
	for i := range o {
		bytes += len(o[i].Key) + len(o[i].Raw) + 8
	}
	return bytes
}

func (n *normal) object(o Object) {
	first := n.begin()
	for i := range o {
		from := len(n.out)
		n.key(o[i].Key)
		n.value(o[i].Raw, 0)
		n.end(o[i].Key, from)
	}
	n.sort(first)
}

// value writes the value that begins at at, and gives its end.
func (n *normal) value(raw []byte, at int) int {
	n.depth++
	defer func() { n.depth-- }()
	end := 0
	switch {
	case n.depth > maxFingerprintDepth:
		end = skipValue(raw, at)
		n.out = append(n.out, raw[at:end]...)
	case raw[at] == '{':
		end = n.fields(raw, at)
	case raw[at] == '[':
		end = n.elements(raw, at)
	case raw[at] == '"':
		var escaped bool
		end, escaped = endOfString(raw, at)
		n.text(raw[at+1:end-1], escaped)
	default:
		if end = skipValue(raw, at); raw[at] == 't' || raw[at] == 'f' || raw[at] == 'n' {
			n.out = append(n.out, raw[at:end]...)
		} else {
			n.out = appendNumber(n.out, raw[at:end])
		}
	}
	return end
}

func (n *normal) fields(raw []byte, at int) int {
	first := n.begin()
	at = skipSpace(raw, at+1)
	for raw[at] != '}' {
		end := skipString(raw, at)
		key, from := nameOf(raw[at:end]), len(n.out)
		n.key(key)
		at = n.value(raw, skipSpace(raw, skipSpace(raw, end)+1))
		n.end(key, from)
		if at = skipSpace(raw, at); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	n.sort(first)
	return at + 1
}

func (n *normal) elements(raw []byte, at int) int {
	n.out = append(n.out, '[')
	at = skipSpace(raw, at+1)
	for raw[at] != ']' {
		at = skipSpace(raw, n.value(raw, at))
		n.out = append(n.out, ',')
		if raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	n.out = append(n.out, ']')
	return at + 1
}

// text writes what stands between two quotes.
func (n *normal) text(inner []byte, escaped bool) {
	if escaped { // its length is known, and stands before it, once it is written
		const head = 24
		n.out = slices.Grow(n.out, head+len(inner))
		from := len(n.out) + head
		plain := n.out[from : from+len(inner)]
		size, _ := unescapeTo(plain, inner)
		inner = plain[:size]
	}
	n.length(len(inner))
	n.out = append(n.out, inner...)
}

func (n *normal) key(key string) {
	n.length(len(key))
	n.out = append(append(n.out, key...), ':')
}

func (n *normal) length(length int) {
	n.out = append(strconv.AppendInt(append(n.out, '"'), int64(length), 10), ':')
}

// begin begins an object, end ends a member of it, and sort the object, with its members in order.
func (n *normal) begin() (first int) {
	n.out = append(n.out, '{')
	return len(n.members)
}

func (n *normal) end(key string, from int) {
	n.out = append(n.out, ',')
	n.members = append(n.members, member{key, from, len(n.out)})
}

func (n *normal) sort(first int) {
	members := n.members[first:]
	n.members = n.members[:first]
	for i := 1; i < len(members); i++ {
		if members[i-1].key >= members[i].key {
			n.reorder(members)
			break
		}
	}
	n.out = append(n.out, '}')
}

func (n *normal) reorder(members []member) {
	begin := members[0].from
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	n.aside = n.aside[:0]
	for i, m := range members {
		if i+1 < len(members) && members[i+1].key == m.key {
			continue // of equal names the last one counts
		}
		n.aside = append(n.aside, n.out[m.from:m.to]...)
	}
	n.out = append(n.out[:begin], n.aside...)
}
