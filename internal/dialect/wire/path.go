package wire

import (
	"fmt"
	"strconv"

	"sessiond/internal/session"
)

// Errorf makes an error about the value at a path of the input.
func Errorf(code session.Code, path, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return session.Errorf(code, "%s %s", path, what).At(path, "%s", what)
}

// Join returns the path of a field.
func Join(path, field string) string { return path + "." + Clip(field) }

// Index returns the path of an element.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Clip keeps a name from the input short enough for an error.
func Clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i > most {
			return s[:i] + "…"
		}
	}
	return s
}
