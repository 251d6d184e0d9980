package openclaw

import (
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Bounds of what is unpacked: OpenClaw's own are 64 MiB for an archive and 4 MiB for an event.
const (
	maxWindow   = 64 << 20 // bytes of memory that a compressed file may ask for
	maxUnpacked = 4 << 30  // bytes of a compressed transcript
	maxEvent    = 4 << 20
	maxArchive  = 64 << 20
)

// spool is a temporary file without a name, for what must be read twice.
type spool struct {
	*os.File
	size int64
}

func newSpool() (*spool, error) {
	file, err := history.TempFile()
	if err != nil {
		return nil, err
	}
	return &spool{File: file}, nil
}

// put appends bytes and gives the place of the first.
func (s *spool) put(raw []byte) (at int64, err error) {
	at = s.size
	n, err := s.WriteAt(raw, at)
	s.size += int64(n)
	return at, err
}

// unpack writes what a zstd stream holds into a spool. Codes: Invalid (damaged, too large).
func unpack(in io.Reader) (*spool, error) { return unpackTo(in, maxUnpacked) }

// unpackTo is unpack of at most so many bytes.
func unpackTo(in io.Reader, most int64) (*spool, error) {
	decoder, err := unzstd(in)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	s, err := newSpool()
	if err != nil {
		return nil, err
	}
	s.size, err = io.Copy(s.File, io.LimitReader(decoder, most+1))
	switch {
	case err != nil:
		err = session.Errorf(session.Invalid, "compressed, and damaged: %w", err)
	case s.size > most:
		err = session.Errorf(session.Invalid, "compressed, and larger than %d MiB", most>>20)
	default:
		return s, nil
	}
	return nil, errors.Join(err, s.Close())
}

func unzstd(in io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
}

// unpackBytes returns what one zstd frame holds, at most most bytes.
func unpackBytes(raw []byte, most uint64) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(raw, nil)
}
