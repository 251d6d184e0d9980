package history

import "encoding/binary"

// protoField is one field of a message of Protocol Buffers.
type protoField struct {
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

// Proto is a message of Protocol Buffers, whose fields have numbers alone.
type Proto []protoField

// ParseProto parses a message. ok is false for bytes that are none. Fields of a fixed size are skipped: no reader needs
// them.
func ParseProto(text []byte) (all Proto, ok bool) {
	for len(text) > 0 {
		tag, n := binary.Uvarint(text)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
			return nil, false
		}
		text = text[n:]
		f := protoField{number: int(tag >> 3)}
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

// All returns the bytes of every field with a number.
func (m Proto) All(number int) (found [][]byte) {
	for _, f := range m {
		if f.number == number && f.bytes != nil {
			found = append(found, f.bytes)
		}
	}
	return found
}

// Bytes returns the bytes of a field, nil if there is none.
func (m Proto) Bytes(number int) []byte {
	if found := m.All(number); len(found) > 0 {
		return found[len(found)-1]
	}
	return nil
}

// Text returns the text of a field.
func (m Proto) Text(number int) string { return string(m.Bytes(number)) }

// Inner returns the message in a field, none if the field holds no message.
func (m Proto) Inner(number int) Proto {
	inner, _ := ParseProto(m.Bytes(number))
	return inner
}

// Number returns the number in a field, 0 if there is none.
func (m Proto) Number(number int) (value uint64) {
	for _, f := range m {
		if f.number == number && f.bytes == nil {
			value = f.value
		}
	}
	return value
}

// Packed returns the numbers that a field holds one after the other.
func (m Proto) Packed(number int) (values []uint64) {
	text := m.Bytes(number)
	for len(text) > 0 {
		value, n := binary.Uvarint(text)
		if n <= 0 {
			return values
		}
		values, text = append(values, value), text[n:]
	}
	return values
}
