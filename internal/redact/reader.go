package redact

import (
	"errors"
	"io"
	"unsafe"

	"sessiond/internal/session"
)

// Reader masks a text while it is read, as Mask would the whole of it, and holds a piece at a
// time. A secret that lies across two pieces is seen whole: behind each place at which one could
// begin stands as much as a shape can ask for. Only of one longer than that nobody looks at the
// end before it is taken for one; it is masked to there all the same.
type Reader struct {
	// Masked is how many secrets were masked, of what was read so far.
	Masked int

	from           io.Reader
	window, margin int
	buf            []byte // the end of what is done, for looking back, and what is not done
	done           int    // of buf: given, or masked
	floor          int    // of buf: where the last secret ended, which no name of another one reaches into
	ended          bool   // all of from is in buf
	tail           func(byte) bool
	out            []byte // masked, and not given yet
	err            error
}

const (
	// readWindow is how much is read at once.
	readWindow = 256 << 10

	// lookAhead is more than any shape needs behind its beginning: a private key is sought in 16 KiB.
	lookAhead = 64 << 10

	// lookBack is more than the name before a value can be away from it.
	lookBack = 128
)

// NewReader makes a reader.
func NewReader(from io.Reader) *Reader { return newReader(from, readWindow, lookAhead) }

func newReader(from io.Reader, window, margin int) *Reader {
	return &Reader{from: from, window: window, margin: margin}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.ended && r.done == len(r.buf) {
			return 0, io.EOF
		}
		if r.err == nil {
			r.err = r.step()
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// step masks as much as can be known from a window more.
func (r *Reader) step() error {
	if err := r.fill(); err != nil {
		return err
	}
	r.out = r.out[:0]
	if r.goOn(); r.done == len(r.buf) {
		return nil
	}
	upto := len(r.buf)
	if !r.ended {
		upto -= r.margin
	}
	t := text{s: unsafe.String(unsafe.SliceData(r.buf), len(r.buf)), floor: r.floor, goesOn: !r.ended}
	for r.done < upto {
		start, end, kind := t.next(r.done, upto)
		if kind == "" {
			r.out = append(r.out, r.buf[r.done:upto]...)
			r.done = upto
			break
		}
		r.out = append(append(r.out, r.buf[r.done:start]...), markOf(kind)...)
		r.Masked++
		r.done, t.floor = end, end
		if end == len(r.buf) {
			r.tail = t.tail
		}
	}
	r.floor = t.floor
	return nil
}

// goOn drops the rest of a secret that began in an earlier window.
func (r *Reader) goOn() {
	if r.tail == nil {
		return
	}
	for r.done < len(r.buf) && r.tail(r.buf[r.done]) {
		r.done++
	}
	if r.floor = r.done; r.done < len(r.buf) {
		r.tail = nil
	}
}

// fill reads until there is a window beyond what must be left for the next one.
func (r *Reader) fill() error {
	keep := max(0, r.done-lookBack)
	n := copy(r.buf, r.buf[keep:])
	r.buf, r.done, r.floor = r.buf[:n], r.done-keep, max(0, r.floor-keep)
	if size := lookBack + r.margin + r.window; cap(r.buf) < size {
		r.buf = append(make([]byte, 0, size), r.buf...)
	}
	read, err := io.ReadFull(r.from, r.buf[n:cap(r.buf)])
	r.buf = r.buf[:n+read]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.ended = true
		return nil
	}
	return err
}

// Content gives a content masked. What is masked in it counts once, when it is first read to its end.
func (m *Masker) Content(c session.Content) session.Content {
	if m == nil {
		return c
	}
	return &maskedContent{from: c, by: m}
}

type maskedContent struct {
	from    session.Content
	by      *Masker
	counted bool
}

// Open implements session.Content.
func (c *maskedContent) Open() (io.Reader, error) {
	from, err := c.from.Open()
	if err != nil {
		return nil, err
	}
	return &countingReader{NewReader(from), c}, nil
}

type countingReader struct {
	*Reader
	of *maskedContent
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) && !r.of.counted {
		r.of.counted = true
		r.of.by.Masked += r.Masked
	}
	return n, err
}
