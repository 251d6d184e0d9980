package codex

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history"
)

// rollout is a file that can be read at any place.
type rollout struct {
	*os.File
	size     int64 // of what it says, in bytes
	stored   int64 // of the file itself
	modified time.Time
}

// maxExpanded is the size above which a compressed rollout is not believed.
const maxExpanded = 64 << 30

// open opens a rollout. A compressed one is unpacked into a file that has no name, so that
// memory does not grow with it.
func open(path string) (*rollout, error) {
	file, info, err := history.Open(path)
	if err != nil {
		return nil, err
	}
	r := &rollout{File: file, size: info.Size(), stored: info.Size(), modified: info.ModTime()}
	if !strings.HasSuffix(path, ".zst") || r.size == 0 {
		return r, nil
	}
	defer file.Close()
	r.File, r.size, err = expand(file)
	return r, err
}

func expand(from io.Reader) (*os.File, int64, error) {
	unpack, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, 0, err
	}
	defer unpack.Close()
	file, err := history.TempFile()
	if err != nil {
		return nil, 0, err
	}
	size, err := io.Copy(file, io.LimitReader(unpack, maxExpanded))
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, size, nil
}

func (r *rollout) close() { r.File.Close() } // it was only read
