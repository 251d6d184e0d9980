package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IsRunning reports whether the program of a source runs on this host. known is false where that cannot be told.
func IsRunning(source Source) (running, known bool) {
	if r, ok := source.(Runner); ok {
		return r.Running()
	}
	return false, false
}

// isRunning reports whether a process has one of some names within the path of its program, as
// /usr/bin/codex or node /usr/lib/node_modules/@google/gemini-cli/index.js. known is false where no /proc
// lists processes.
func isRunning(names []string) (running, known bool) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is a good one
	if len(names) == 0 || len(lines) == 0 {
		return false, false
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err == nil && namesCommand(string(line), names) { // else it has ended
			return true, true
		}
	}
	return false, true
}

// namesCommand reports whether a command line, of arguments that end with NUL, runs one of some programs: itself,
// or as the script of an interpreter, which is the first argument that is no option.
func namesCommand(line string, names []string) bool {
	args := strings.Split(line, "\x00")
	if slices.Contains(names, filepath.Base(args[0])) {
		return true
	}
	script := slices.IndexFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	return script >= 0 && slices.ContainsFunc(strings.Split(args[1+script], "/"), func(piece string) bool {
		return slices.Contains(names, piece)
	})
}
