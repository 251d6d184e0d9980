package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	sums "hash"
	"io"

	"sessiond/internal/session"
)

// sounding stands before bytes that lie elsewhere while a message is measured. It learns from
// what is read first what prepare must know of them, so that they need not be read once more.
type sounding struct {
	from  session.Content
	first io.Reader // nil: nobody has read yet
	sum   sums.Hash
	text  session.TextCheck
	size  int64
	err   error // of the first reading; io.EOF at its end
}

// soundOut puts soundings in the place of what lies elsewhere, by the indexes of parts.
func soundOut(m *session.Message) map[int]*sounding {
	var all map[int]*sounding
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Blob != nil && p.Blob.From != nil {
			own := *p.Blob // the caller may use its own again elsewhere
			s := &sounding{from: own.From, sum: sha256.New()}
			own.From, p.Blob = s, &own
			if all == nil {
				all = map[int]*sounding{}
			}
			all[i] = s
		}
	}
	return all
}

// Open implements session.Content.
func (s *sounding) Open() (io.Reader, error) {
	if s.first != nil || s.err != nil {
		return s.from.Open()
	}
	s.first, s.err = s.from.Open()
	return firstReading{s}, s.err
}

type firstReading struct{ *sounding }

func (s firstReading) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.first.Read(p)
	_, _ = s.sum.Write(p[:n]) // neither of the two fails
	_, _ = s.text.Write(p[:n])
	s.size, s.err = s.size+int64(n), err
	return n, err
}

// end reads what was not read yet, and puts into b where it lies and what is known of it. storable
// tells whether it can be a text. What is too large is not read to its end.
func (s *sounding) end(b *session.Blob) (storable bool, err error) {
	if s.first == nil && s.err == nil {
		_, _ = s.Open() // its error stays
	}
	if s.err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(firstReading{s}, max(0, MaxTextBytes+1-s.size))) // as above
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return false, s.err
	}
	b.From, b.SHA256, b.Size = s.from, hex.EncodeToString(s.sum.Sum(nil)), s.size
	return s.text.Storable(), nil
}
