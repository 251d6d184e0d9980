package history

import (
	"bytes"
	"os"

	"sessiond/internal/session"
)

// Open opens a file for reading, links followed. What is no file is refused before it is
// opened: a named pipe would wait for somebody to write into it, for ever. The info is of the
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
