package history

import (
	"bytes"
	"io"
	"os"

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

// OpenFound opens a found file, and returns found with the size and time of the file that was opened.
// Codes: Invalid (it is no file, or empty).
func OpenFound(found Found) (*os.File, Found, error) {
	file, info, err := Open(found.Path)
	if err != nil {
		return nil, found, err
	}
	if info.Size() == 0 {
		file.Close()
		return nil, found, session.Errorf(session.Invalid, "the file is empty")
	}
	found.Size, found.ModifiedAt = info.Size(), info.ModTime()
	return file, found, nil
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
