package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// env is the environment of a command.
type env struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	now      func() time.Time
	dir      string // the working directory; its project is where @ looks
	startDir string // where relative paths begin and programs start; "": dir
	program  string // as sessiond was started
	system   string // as in runtime.GOOS; "": this one
	inTTY    bool   // a user can type
	outTTY   bool   // a user reads standard output
	errTTY   bool   // a user reads standard error
	width    int    // of the terminal, in columns; 0: not a terminal
	height   int    // of the terminal, in lines; 0: not a terminal
}

func hostEnv() *env {
	e := &env{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: withHome(runtime.GOOS, os.Environ()), now: time.Now,
		program: os.Args[0], system: runtime.GOOS,
	}
	e.dir, _ = os.Getwd() // "" names no session, and `@` says so
	e.inTTY = term.IsTerminal(int(os.Stdin.Fd()))
	e.outTTY = term.IsTerminal(int(os.Stdout.Fd()))
	e.errTTY = term.IsTerminal(int(os.Stderr.Fd()))
	if w, h, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		e.width, e.height = w, h
	}
	return e
}

// withHome names the home folder in an environment as all other systems do: on Windows it may have another name. What
// programs keep below it lies there on each system.
func withHome(system string, environ []string) []string {
	e := &env{environ: environ}
	if home := (folders.User{System: system, Getenv: e.getenv}).Home(); home != "" && e.getenv("HOME") != home {
		return append(slices.Clone(environ), "HOME="+home)
	}
	return environ
}

// input reads standard input to its end, or until ctx ends. Codes: TooLarge (above a limit of bytes, in whole MiB).
func (e *env) input(ctx context.Context, limit int64) ([]byte, error) {
	return await(ctx, func() ([]byte, error) {
		b, err := io.ReadAll(io.LimitReader(e.in, limit+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		if int64(len(b)) > limit {
			return nil, session.Errorf(session.TooLarge, "standard input has more than %d MiB", limit>>20)
		}
		return b, nil
	})
}

// await returns the result of work that cannot be stopped and may panic, or ctx's error. Abandoned work
// ends with the process.
func await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o.err = fmt.Errorf("panic: %v", r)
			}
			done <- o
		}()
		o.value, o.err = do()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (e *env) getenv(name string) string {
	value, _ := e.lookupEnv(name)
	return value
}

// lookupEnv returns a variable and whether it is set.
func (e *env) lookupEnv(name string) (value string, set bool) {
	for i := len(e.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.environ[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}
