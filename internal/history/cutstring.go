package history

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// stringScan learns what kind of text stands in a JSON string.
type stringScan struct {
	classes class
	text    int64 // bytes of what it says
}

// class is a set of kinds of bytes.
type class uint8

const (
	classStd     class = 1 << iota // + and /
	classURL                       // - and _
	classPlain                     // anything else that stands for itself
	classEscape                    // an escape, as an encoder writes it
	classOther                     // one that it writes in another way, or what encoders do not agree on
	classControl                   // what may not stand there
	classHigh                      // of a rune of several bytes
)

// classes tells the class of a byte; letters and digits have none.
var classes = classesOfBytes()

func classesOfBytes() (of [256]class) {
	for c := range of {
		switch c := byte(c); {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case c == '+' || c == '/':
			of[c] = classStd
		case c == '-' || c == '_':
			of[c] = classURL
		case c < ' ':
			of[c] = classControl
		case c >= utf8.RuneSelf:
			of[c] = classHigh
		default:
			of[c] = classPlain
		}
	}
	return of
}

// hint tells how a token must look that stands for what was scanned.
func (s *stringScan) hint() string {
	switch {
	case s.classes&classOther != 0:
		return hintOther
	case s.classes&classEscape != 0:
		return hintEscaped
	case s.classes&classPlain != 0:
		return hintPlain
	case s.classes == classStd|classURL:
		return hintEither
	case s.classes == classURL:
		return hintURL
	case s.classes == classStd:
		return hintStd
	}
	return hintWord
}

// longestUnit is the size of the longest that stands for one character: two escapes.
const longestUnit = 12

// units goes over whole characters, from the first of raw until target bytes are done, or the
// next is not all there, or is none that may stand in a string: then used is less than target.
// If text is not nil, what they say is written at its end.
func (s *stringScan) units(raw []byte, target int, text *[]byte) (used int) {
	for used < target {
		rest := raw[used:]
		plain := bytes.IndexByte(rest[:target-used], '\\')
		if plain < 0 {
			plain = target - used
			for plain < len(rest) && !utf8.RuneStart(rest[plain]) { // to the end of the rune
				plain++
			}
		}
		if plain > 0 {
			n := s.plain(rest[:plain])
			if text != nil {
				*text = append(*text, rest[:n]...)
			}
			used += n
			if n < plain {
				return used
			}
			continue
		}
		r, n := s.escape(rest)
		if n == 0 {
			return used
		}
		s.text += int64(utf8.RuneLen(r))
		if text != nil {
			*text = utf8.AppendRune(*text, r)
		}
		used += n
	}
	return used
}

// plain goes over bytes that stand for themselves, up to one that may not stand there, or the
// beginning of a rune of which the rest is not there.
func (s *stringScan) plain(raw []byte) (used int) {
	var seen class
	for _, c := range raw {
		seen |= classes[c]
	}
	if seen&(classControl|classHigh) != 0 {
		raw = s.careful(raw)
	}
	if seen&classHigh != 0 {
		seen |= classPlain
	}
	s.classes |= seen &^ (classControl | classHigh)
	s.text += int64(len(raw))
	return len(raw)
}

// careful gives as much of raw as may stand in a string.
func (s *stringScan) careful(raw []byte) []byte {
	end := len(raw)
	for i, c := range raw {
		if c < ' ' {
			end = i
			break
		}
	}
	raw = raw[:end]
	if !utf8.Valid(raw) {
		end = 0
		for end < len(raw) {
			r, n := utf8.DecodeRune(raw[end:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			end += n
		}
		raw = raw[:end]
	}
	if bytes.Contains(raw, []byte("\u2028")) || bytes.Contains(raw, []byte("\u2029")) {
		s.classes |= classOther // some encoders escape them
	}
	return raw
}

// escape reads an escape, or two that are a pair. n is 0 for one that is not all there, is none,
// or stands for what no text can hold.
func (s *stringScan) escape(raw []byte) (r rune, n int) {
	if len(raw) < 2 {
		return 0, 0
	}
	switch raw[1] {
	case 'n', 'r', 't', '"', '\\':
		s.classes |= classEscape
		return rune(escaped(raw[1])), 2
	case 'b', 'f', '/':
		s.classes |= classOther
		return rune(escaped(raw[1])), 2
	case 'u':
	default:
		return 0, 0
	}
	if r = unicodeEscape(raw); r <= 0 {
		return 0, 0
	}
	n = 6
	if utf16.IsSurrogate(r) {
		if len(raw) < longestUnit {
			return 0, 0
		}
		if r = utf16.DecodeRune(r, unicodeEscape(raw[n:])); r == utf8.RuneError {
			return 0, 0
		}
		n = longestUnit
	}
	if r < ' ' && !bytes.ContainsRune([]byte("\b\f\n\r\t"), r) && bytes.Equal(raw[2:6], bytes.ToLower(raw[2:6])) {
		s.classes |= classEscape
	} else {
		s.classes |= classOther
	}
	return r, n
}

// unicodeEscape reads what begins with \u and four digits; -1 for anything else.
func unicodeEscape(raw []byte) rune {
	if checkEscape(raw, 1) != 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	return hex4(raw[2:])
}

// unescaping decodes the escapes of JSON's strings.
type unescaping struct {
	from io.Reader
	raw  []byte // read and not decoded
	text []byte // decoded and not given
	room []byte
	err  error
}

func (u *unescaping) Read(b []byte) (int, error) {
	for len(u.text) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		if u.room == nil {
			u.room, u.raw = make([]byte, 0, readSize), make([]byte, 0, readSize)
		}
		n, err := u.from.Read(u.raw[len(u.raw):cap(u.raw)])
		u.raw, u.err = u.raw[:len(u.raw)+n], err
		var s stringScan
		used := s.units(u.raw, len(u.raw), &u.room)
		u.text = u.room
		u.room = u.room[:0]
		u.raw = append(u.raw[:0], u.raw[used:]...)
		if used == 0 && len(u.raw) > longestUnit || errors.Is(err, io.EOF) && len(u.raw) > 0 {
			u.err = changed()
		}
	}
	n := copy(b, u.text)
	u.text = u.text[n:]
	return n, nil
}
