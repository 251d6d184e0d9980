package main

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// env is everything of the outside that a command sees.
type env struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	now      func() time.Time
	dir      string // the working directory
	inTTY    bool   // somebody can type
	outTTY   bool   // somebody reads standard output
	errTTY   bool   // somebody reads standard error
	width    int    // of the terminal, in columns; 0: not a terminal
}

func hostEnv() *env {
	e := &env{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), now: time.Now}
	e.dir, _ = os.Getwd() // "" names no session, and `@` says so
	e.inTTY = term.IsTerminal(int(os.Stdin.Fd()))
	e.outTTY = term.IsTerminal(int(os.Stdout.Fd()))
	e.errTTY = term.IsTerminal(int(os.Stderr.Fd()))
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		e.width = w
	}
	return e
}

func (e *env) getenv(name string) string {
	for i := len(e.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}
