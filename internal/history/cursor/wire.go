package cursor

import "encoding/binary"

// field is one field of a message of Protocol Buffers.
type field struct {
	number int
	value  uint64 // of a number
	bytes  []byte // of a text, bytes or a message
}

// Kinds of fields in the wire form.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// fields parses a message. ok is false for bytes that are none; those of kinds that Cursor does not use are skipped.
func fields(text []byte) (all []field, ok bool) {
	for len(text) > 0 {
		tag, n := binary.Uvarint(text)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
			return nil, false
		}
		text = text[n:]
		f := field{number: int(tag >> 3)}
		size := 0
		switch tag & 7 {
		case wireVarint:
			if f.value, size = binary.Uvarint(text); size <= 0 {
				return nil, false
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			length, n := binary.Uvarint(text)
			if n <= 0 || length > uint64(len(text)-n) {
				return nil, false
			}
			f.bytes, size = text[n:n+int(length)], n+int(length)
		default:
			return nil, false
		}
		if size > len(text) {
			return nil, false
		}
		text = text[size:]
		all = append(all, f)
	}
	return all, true
}

// message is a parsed message.
type message []field

func parse(text []byte) message {
	all, _ := fields(text)
	return all
}

// all returns the bytes of every field with a number.
func (m message) all(number int) (found [][]byte) {
	for _, f := range m {
		if f.number == number && f.bytes != nil {
			found = append(found, f.bytes)
		}
	}
	return found
}

// bytes returns the bytes of a field, nil if there is none.
func (m message) bytes(number int) []byte {
	if found := m.all(number); len(found) > 0 {
		return found[len(found)-1]
	}
	return nil
}

func (m message) text(number int) string { return string(m.bytes(number)) }

func (m message) number(number int) (value uint64) {
	for _, f := range m {
		if f.number == number && f.bytes == nil {
			value = f.value
		}
	}
	return value
}
