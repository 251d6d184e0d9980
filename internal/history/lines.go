package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// FileLine is one line of a file.
type FileLine struct {
	Number  int    // from 1
	At, End int64  // offsets of its first byte, and behind its line feed
	Ended   bool   // by a line feed
	Bytes   []byte // without the line feed; nil if the line is over MaxLine
	Lines   int    // of the file, of a record with literal line feeds, which Bytes has escaped; 0: one
}

const readSize = 64 << 10

// Lines yields the lines of a file up to an offset.
func Lines(file io.ReaderAt, end int64) iter.Seq2[FileLine, error] { return linesFrom(file, 0, end, 1) }

// linesFrom is Lines from the line with a number on, which begins at an offset.
func linesFrom(file io.ReaderAt, from, end int64, first int) iter.Seq2[FileLine, error] {
	return func(yield func(FileLine, error) bool) {
		in := bufio.NewReaderSize(io.NewSectionReader(file, from, end-from), readSize)
		for number, at := first, from; ; number++ {
			l := FileLine{Number: number, At: at, End: at}
			err := l.read(in)
			if errors.Is(err, io.EOF) {
				if l.End == at {
					return
				}
				err = nil
			}
			if !yield(l, err) || err != nil {
				return
			}
			at = l.End
		}
	}
}

func (l *FileLine) read(in *bufio.Reader) error {
	for {
		chunk, err := in.ReadSlice('\n')
		if l.End += int64(len(chunk)); l.End-l.At > MaxLine+1 {
			l.Bytes = nil
		} else {
			l.Bytes = append(l.Bytes, chunk...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if l.Ended = err == nil; l.Ended {
				l.Bytes = bytes.TrimSuffix(l.Bytes, []byte{'\n'})
			}
			return err
		}
	}
}
