package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// minToken is the minimum length of a token in the file, in characters.
const minToken = 16

// EnsureToken reads the token of a file. If the file is missing, it creates it with mode 0600, in a
// folder of mode 0700. Two concurrent processes get the same token. Codes: Invalid (others can read
// the file, or it has no token).
func EnsureToken(path string) (token string, made bool, err error) {
	token, err = ReadToken(path)
	if err == nil || session.CodeOf(err) != session.NotFound {
		return token, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", false, session.Errorf(session.Forbidden,
			"the folder %s cannot be made, and the token with it: make its place writable, or name a database file "+
				"elsewhere with --db: %w", filepath.Dir(path), err)
	}
	made, err = place(path, session.NewToken())
	if err != nil {
		return "", false, err
	}
	token, err = ReadToken(path)
	return token, made, err
}

// place writes a file whole or not at all. It does not replace an existing file.
func place(path, token string) (bool, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".token-*") // 0600
	if err != nil {
		return false, fmt.Errorf("write the token: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.WriteString(token + "\n")
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return false, fmt.Errorf("write the token: %w", err)
	}
	err = os.Link(temp.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write the token: %w", err)
	}
	return true, nil
}

// ReadToken reads the token of a file. Codes: NotFound (no file), Invalid (others can read the file, or
// it has no token).
func ReadToken(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", session.Errorf(session.NotFound, "the token file %s does not exist: `sessiond serve` creates it", path)
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if folders.OpenToOthers(info.Mode(), 0o077) != 0 {
		return "", session.Errorf(session.Invalid, "others can read the token file %s (mode %04o): run `chmod 600 %s`", path,
			info.Mode().Perm(), path)
	}
	buf := make([]byte, 4096)
	n, err := f.Read(buf)
	token := strings.TrimSpace(string(buf[:n]))
	if err != nil && n == 0 || len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", session.Errorf(session.Invalid,
			"%s has no token (one line of at least %d characters): remove the file, and `sessiond serve` creates a new one",
			path, minToken)
	}
	return token, nil
}
