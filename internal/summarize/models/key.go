package models

import (
	"os"
	"strings"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// readKey returns the API key from the named file, which only its owner may read, else from the
// environment variable; "" without a key. Codes: Invalid.
func readKey(file, variable string, getenv func(string) string) (string, error) {
	if file == "" {
		return strings.TrimSpace(getenv(variable)), nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", session.Errorf(session.Invalid,
			"summarizer.api_key_file: %s cannot be read (%w): name an existing file, or set %s instead", file, err, variable)
	}
	if !info.Mode().IsRegular() {
		return "", session.Errorf(session.Invalid,
			"summarizer.api_key_file: %s is not a regular file: name a file that contains only the key", file)
	}
	if mode := info.Mode().Perm(); folders.OpenToOthers(mode, 0o077) != 0 {
		return "", session.Errorf(session.Invalid,
			"summarizer.api_key_file: others may read %s (its mode is %04o): run chmod 600 %s", file, mode, file)
	}
	if info.Size() > 4096 {
		return "", session.Errorf(session.Invalid,
			"summarizer.api_key_file: %s is too large to be a key: name a file that contains only the key", file)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", session.Errorf(session.Invalid, "summarizer.api_key_file: %s cannot be read (%w): check its owner", file,
			err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", session.Errorf(session.Invalid, "summarizer.api_key_file: %s must contain the key and nothing else", file)
	}
	return key, nil
}
