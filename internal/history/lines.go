package history

import (
	"bufio"
	"errors"
	"io"
)

// Lines reads a file of lines.
type Lines struct {
	in     *bufio.Reader
	buffer []byte
	offset int64
	large  bool
	size   int64
}

const (
	readSize   = 64 << 10
	keepBuffer = 1 << 20 // a line's buffer above this is not kept for the next line
)

// NewLines reads the bytes of in from offset up to end.
func NewLines(in io.ReaderAt, offset, end int64) *Lines {
	return &Lines{in: bufio.NewReaderSize(io.NewSectionReader(in, offset, end-offset), readSize), offset: offset}
}

// Next returns the next line without its line feed, the offset of its first byte, and whether
// the line feed was there. The bytes are good until the next call. Of a line over MaxLine the
// rest is passed over: TooLarge tells. At the end err is io.EOF.
func (l *Lines) Next() (line []byte, at int64, ended bool, err error) {
	if cap(l.buffer) > keepBuffer {
		l.buffer = nil
	}
	l.buffer, l.large, l.size = l.buffer[:0], false, 0
	at = l.offset
	for {
		chunk, err := l.in.ReadSlice('\n')
		l.offset += int64(len(chunk))
		l.size += int64(len(chunk))
		if err == nil && l.size == int64(len(chunk)) {
			l.size--
			return chunk[:len(chunk)-1], at, true, nil
		}
		if l.large = l.size > MaxLine+1; !l.large {
			l.buffer = append(l.buffer, chunk...)
		}
		switch {
		case err == nil:
			l.size--
			if l.large {
				return nil, at, true, nil
			}
			return l.buffer[:len(l.buffer)-1], at, true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && l.size > 0:
			if l.large {
				return nil, at, false, nil
			}
			return l.buffer, at, false, nil
		default:
			return nil, at, false, err
		}
	}
}

// TooLarge reports whether the line that Next gave last is over MaxLine: its bytes were not read.
func (l *Lines) TooLarge() bool { return l.large }

// Size returns the size of the line that Next gave last, in bytes.
func (l *Lines) Size() int { return int(l.size) }

// Offset is the place after the line that Next gave last.
func (l *Lines) Offset() int64 { return l.offset }
