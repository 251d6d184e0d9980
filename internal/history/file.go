package history

import (
	"bytes"
	"os"

	"sessiond/internal/session"
)

// Open opens a file for reading, links followed. What is no file is refused before it is
// opened: a named pipe would wait for somebody to write into it, for ever. Codes: Invalid.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, session.Errorf(session.Invalid, "it is no file")
	}
	return os.Open(path)
}

// ReadFile reads a whole file as Open opens it.
func ReadFile(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead) // so that its end is seen without growing
	_, err = text.ReadFrom(file)
	return text.Bytes(), err
}
