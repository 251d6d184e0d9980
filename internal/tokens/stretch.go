package tokens

import (
	"errors"
	"io"
	"unicode/utf8"
	"unsafe"
)

// longestStretch is how many bytes of a text are scanned at a time, at most, so that a text of
// any length is counted without holding it.
const longestStretch = 1 << 20

// stretchEnd gives where the first stretch of a text ends that is longer than one. It is a place
// that the scan passes without remembering anything, so that both sides count as they did
// together. Where there is none, in a mebibyte of letters or of signs, one piece becomes two.
// The bytes up to the one behind the longest stretch decide.
func stretchEnd(s string) int {
	for i := longestStretch; i > 0; i-- {
		if parted(s[i-1], s[i]) {
			return i
		}
	}
	for i := longestStretch; i > longestStretch-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return longestStretch
}

// parted tells whether a piece ends between two bytes, and the next one does not ask what was
// before it: behind a word or a number, but for the apostrophe of a contraction, and behind the
// last line break of white space.
func parted(last, next byte) bool {
	switch class(last) {
	case cLower, cUpper, cDigit:
		return isBorder(class(next)) && next != '\''
	case cBreak:
		return class(next) != cSpace && class(next) != cBreak
	}
	return false
}

// scanLong counts the pieces of a text of any length.
func (f *features) scanLong(s string) {
	for len(s) > longestStretch {
		end := stretchEnd(s)
		f.scan(s[:end])
		s = s[end:]
	}
	f.scan(s)
}

// Reader estimates the tokens of a text that is read, as Text does of one that is held.
func (c *Counter) Reader(r io.Reader) (int64, error) {
	var f features
	buf := make([]byte, longestStretch+1)
	have, empty := 0, true
	for {
		n, err := io.ReadFull(r, buf[have:])
		have += n
		empty = empty && n == 0
		text := unsafe.String(unsafe.SliceData(buf), have) // until buf changes
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if empty {
				return 0, nil
			}
			f.scan(text)
			return c.estimate(&f), nil
		case err != nil:
			return 0, err
		}
		end := stretchEnd(text)
		f.scan(text[:end])
		have = copy(buf, buf[end:])
	}
}
