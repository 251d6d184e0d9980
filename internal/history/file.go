package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/session"
)

// Open opens a file for reading, links followed. What is no file is refused before it is
// opened: opening a named pipe blocks until another process writes. The info is of the
// file that was opened. Codes: Invalid.
func Open(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, session.Errorf(session.Invalid, "it is no file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// Opened is a file whose text can be read at any place.
type Opened struct {
	*os.File
	Size       int64 // of the text, bytes
	Stored     int64 // of the file, bytes
	ModifiedAt time.Time
}

// OpenText opens a file like Open. A file whose name ends in .zst is unpacked into one that has no
// name, so that memory does not grow with it. Codes: Invalid (it is no file, or compressed and damaged).
func OpenText(path string) (*Opened, error) {
	file, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	t := &Opened{File: file, Size: info.Size(), Stored: info.Size(), ModifiedAt: info.ModTime()}
	if filepath.Ext(path) != ".zst" || t.Size == 0 {
		return t, nil
	}
	defer file.Close()
	t.File, t.Size, err = unpack(file, t.Stored)
	return t, err
}

// openText opens a found file: one of its shelf, the held one, else the one at its path. Codes: OpenText's.
func (f *Found) openText() (*Opened, error) {
	if f.shelf != nil {
		return f.shelf.open(f.Path)
	}
	if f.Held == nil {
		return OpenText(f.Path)
	}
	info, err := f.Held.Stat()
	if err != nil {
		return nil, err
	}
	return &Opened{File: f.Held, Size: info.Size(), Stored: info.Size(), ModifiedAt: info.ModTime()}, nil
}

// OpenBeside is OpenText of what lies beside the found thing.
func (in *Intake) OpenBeside(path string) (*Opened, error) {
	if in.Found.shelf != nil {
		return in.Found.shelf.open(path)
	}
	return OpenText(path)
}

// ReadFileBeside is ReadFile of what lies beside the found thing.
func (in *Intake) ReadFileBeside(path string) ([]byte, error) {
	if in.Found.shelf == nil {
		return ReadFile(path)
	}
	file, err := in.Found.shelf.open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	return io.ReadAll(file)
}

// IsBeside reports whether there is a file beside the found thing.
func (in *Intake) IsBeside(path string) bool {
	if in.Found.shelf != nil {
		return in.Found.shelf.exists(path)
	}
	_, err := os.Stat(path)
	return err == nil
}

// FilesUnder lists the files in a folder beside the found thing, and in those below it, as far as they can be listed.
func (in *Intake) FilesUnder(folder string) (files []string) {
	if in.Found.shelf != nil {
		return in.Found.shelf.under(folder)
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// Bounds of what is unpacked, in bytes.
const (
	maxUnpacked  = 64 << 30
	freeUnpacked = 64 << 20 // whatever its packed size is
	maxRatio     = 200      // of the unpacked size to the packed one, above freeUnpacked
	maxWindow    = 64 << 20 // of memory that a compressed file may ask for
	packedHead   = 64 << 10 // that must begin as a transcript does
)

// Unzstd reads a zstd stream, which the caller closes.
func Unzstd(in io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderLowmem(true))
}

// unpack unpacks a zstd stream into a file that has no name, and returns its size. It looks at the beginning before it
// writes anything. Codes: Invalid (damaged, too large, no transcript).
func unpack(in io.Reader, packed int64) (*os.File, int64, error) {
	decoder, err := Unzstd(in)
	if err != nil {
		return nil, 0, err
	}
	defer decoder.Close()
	text := bufio.NewReaderSize(decoder, packedHead)
	head, err := text.Peek(packedHead)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, 0, session.Errorf(session.Invalid, "compressed, and damaged: %w", err)
	case !beginsTranscript(head):
		return nil, 0, session.Errorf(session.Invalid, "compressed, and no transcript: its first line is no JSON object")
	}
	most := min(maxUnpacked, max(freeUnpacked, packed*maxRatio))
	file, err := TempFile()
	if err != nil {
		return nil, 0, err
	}
	size, err := io.Copy(file, io.LimitReader(text, most+1))
	switch {
	case err != nil:
		err = session.Errorf(session.Invalid, "compressed, and damaged: %w", err)
	case size > most && most < maxUnpacked:
		err = session.Errorf(session.Invalid,
			"compressed, and over %d MiB, which is more than %d times its size: no transcript; "+
				"if it is one, unpack it and import the result", most>>20, maxRatio)
	case size > most:
		err = session.Errorf(session.Invalid, "compressed, and larger than %d GiB", maxUnpacked>>30)
	default:
		return file, size, nil
	}
	return nil, 0, errors.Join(err, file.Close())
}

// beginsTranscript reports whether a text begins with a line that is a JSON object, or may become one.
func beginsTranscript(head []byte) bool {
	head = bytes.TrimLeft(Unmarked(head), " \t\r\n")
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	if whole {
		_, ok := FirstRecord(line)
		return ok
	}
	return len(line) > 0 && line[0] == '{'
}

// tempNames is how the names of temporary files and folders begin.
const tempNames = "sessiond-import-"

// TempFile makes a file that has no name and is gone when it is closed.
func TempFile() (*os.File, error) {
	file, err := os.CreateTemp("", tempNames) // 0600
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// leftOver is the age from which a temporary folder, which lives as long as a database is copied, is of a
// process that was killed.
const leftOver = time.Hour

// RemoveLeftovers removes the private copies of processes that were killed. Young ones, and what
// this user may not remove, stay.
func RemoveLeftovers() {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), tempNames+"*")) // the pattern is a good one
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && time.Since(info.ModTime()) > leftOver {
			_ = os.RemoveAll(folder)
		}
	}
}

// Head returns the first bytes of a file, fewer where it has not so many or they cannot be read.
func Head(path string, size int) ([]byte, error) {
	file, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, size)
	n, _ := io.ReadFull(file, head)
	return head[:n], nil
}

// ReadFile reads a whole file as Open opens it.
func ReadFile(path string) ([]byte, error) {
	file, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead) // so that its end is seen without growing
	_, err = text.ReadFrom(file)
	return text.Bytes(), err
}
