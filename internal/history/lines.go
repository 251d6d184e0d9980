package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"sessiond/internal/session"
)

// Lines reads a file of lines of any length, without a limit on one.
type Lines struct {
	file   io.ReaderAt
	in     *bufio.Reader
	buffer []byte
	offset int64
	end    int64

	cuts  *Cuts
	begin int64 // of the line that Next gave last
	size  int64 // of it, in the file
	short bool  // it is shortened
}

const (
	readSize   = 64 << 10
	keepBuffer = 1 << 20 // a line's buffer above this is not kept for the next line
)

// NewLines reads the bytes of in from offset up to end.
func NewLines(in io.ReaderAt, offset, end int64) *Lines {
	section := io.NewSectionReader(in, offset, end-offset)
	return &Lines{file: in, in: bufio.NewReaderSize(section, readSize), offset: offset, end: end}
}

// Cut gives very long lines shortened, as cuts has it: then Size and Write tell what stands in
// the file.
func (l *Lines) Cut(cuts *Cuts) *Lines {
	l.cuts = cuts
	return l
}

// Next gives the next line without its line feed, the offset of its first byte, and whether
// the line feed was there. The bytes are good until the next call. At the end err is io.EOF.
func (l *Lines) Next() (line []byte, at int64, ended bool, err error) {
	l.short = false
	line, at, ended, err = l.next()
	if !l.short {
		l.begin, l.size = at, int64(len(line))
	}
	return line, at, ended, err
}

// Size gives the size of the line that Next gave last as it stands in the file, in bytes.
func (l *Lines) Size() int { return int(l.size) }

// Write writes the line that Next gave last, which is line, as it stands in the file. Codes:
// Busy (it has changed).
func (l *Lines) Write(w io.Writer, line []byte) error {
	if !l.short {
		_, err := w.Write(line)
		return err
	}
	n, err := io.Copy(w, io.NewSectionReader(l.file, l.begin, l.size))
	if err == nil && n != l.size {
		err = changed()
	}
	return err
}

func (l *Lines) next() (line []byte, at int64, ended bool, err error) {
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
		if need := len(l.buffer) + len(chunk); need > cap(l.buffer) {
			rest, err := l.toLineFeed()
			if err != nil {
				return nil, at, false, err
			}
			if l.cuts != nil && need+rest > l.cuts.rule.Limits.Line {
				if line, ended, err := l.cut(at, int64(need+rest)); line != nil || err != nil {
					return line, at, ended, err
				}
			}
			l.buffer = append(make([]byte, 0, need+rest), l.buffer...)
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

// cut gives a line of a size, with its line feed if it has one, shortened; nil: it must be read
// whole.
func (l *Lines) cut(at, size int64) (line []byte, ended bool, err error) {
	var last [1]byte
	if err := ReadAgain(l.file, last[:], at+size-1); err != nil {
		return nil, false, err
	}
	if ended = last[0] == '\n'; ended {
		size--
	}
	if l.cuts.rule.Skip && size > MaxLine {
		line = []byte{}
	} else {
		line, err = l.cuts.shorten(at, size)
	}
	if line == nil || err != nil {
		return nil, false, err
	}
	l.short, l.begin, l.size = true, at, size
	l.offset = at + size
	if ended {
		l.offset++
	}
	l.buffer = nil
	l.in.Reset(io.NewSectionReader(l.file, l.offset, l.end-l.offset))
	return line, ended, nil
}

// toLineFeed counts the bytes up to the next line feed, so that a long line gets a buffer of
// its size at once: growing one copies it, and holds both copies.
func (l *Lines) toLineFeed() (int, error) {
	window := make([]byte, readSize)
	for at := l.offset; at < l.end; at += readSize {
		n, err := l.file.ReadAt(window[:min(readSize, l.end-at)], at)
		if i := bytes.IndexByte(window[:n], '\n'); i >= 0 {
			return int(at-l.offset) + i + 1, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	return int(l.end - l.offset), nil
}

// Offset is the place after the line that Next gave last.
func (l *Lines) Offset() int64 { return l.offset }

// ReadAgain fills line with what stands at an offset of a file that was read before. Codes:
// Busy (the file has become shorter since).
func ReadAgain(file io.ReaderAt, line []byte, at int64) error {
	n, err := file.ReadAt(line, at)
	switch {
	case n == len(line):
		return nil
	case errors.Is(err, io.EOF):
		return session.Errorf(session.Busy, "the file became shorter while it was read: import again")
	}
	return err
}
