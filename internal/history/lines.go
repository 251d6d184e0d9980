package history

import (
	"bufio"
	"errors"
	"io"
)

// Lines reads a file of lines of any length, without a limit on one.
type Lines struct {
	in     *bufio.Reader
	buffer []byte
	offset int64
}

// keepBuffer is the size above which a line's buffer is not kept for the next line.
const keepBuffer = 1 << 20

// NewLines reads the bytes of in from offset up to end.
func NewLines(in io.ReaderAt, offset, end int64) *Lines {
	section := io.NewSectionReader(in, offset, end-offset)
	return &Lines{in: bufio.NewReaderSize(section, 64<<10), offset: offset}
}

// Next gives the next line without its line feed, the offset of its first byte, and whether
// the line feed was there. The bytes are good until the next call. At the end err is io.EOF.
func (l *Lines) Next() (line []byte, at int64, ended bool, err error) {
	if cap(l.buffer) > keepBuffer {
		l.buffer = nil
	}
	l.buffer = l.buffer[:0]
	at = l.offset
	for {
		chunk, err := l.in.ReadSlice('\n')
		l.offset += int64(len(chunk))
		if err == nil && len(l.buffer) == 0 {
			return chunk[:len(chunk)-1], at, true, nil
		}
		l.buffer = append(l.buffer, chunk...)
		switch {
		case err == nil:
			return l.buffer[:len(l.buffer)-1], at, true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buffer) > 0:
			return l.buffer, at, false, nil
		default:
			return nil, at, false, err
		}
	}
}

// Offset is the place after the line that Next gave last.
func (l *Lines) Offset() int64 { return l.offset }
