package openclaw

import (
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history"
)

// Bounds of what is unpacked: OpenClaw's own are 64 MiB for an archive and 4 MiB for an event.
const (
	maxEvent   = 4 << 20
	maxArchive = 64 << 20
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

// unpack unpacks an archive. Codes: Invalid (damaged, too large).
func unpack(in io.Reader) (*spool, error) {
	file, size, err := history.Unpack(in, maxArchive)
	return &spool{file, size}, err
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
