package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"

	"sessiond/internal/session"
)

// defaultPager ends by itself if everything fits on the screen, passes colours, and leaves the text there. Git's is the
// same.
const defaultPager = "less -FRX"

// pagerCommand returns the user's pager, "" for none: $SESSIOND_PAGER, else $PAGER, else less.
func (a *app) pagerCommand() string {
	if !a.outTTY || a.flags.noPager || a.flags.json || a.getenv("TERM") == "dumb" {
		return ""
	}
	for _, name := range []string{"SESSIOND_PAGER", "PAGER"} {
		if value, set := a.lookupEnv(name); set {
			if value == "cat" {
				return ""
			}
			return value
		}
	}
	if a.host().LookPath("less") == "" {
		return ""
	}
	return defaultPager
}

// paged runs print. On a terminal its output goes through the user's pager, if it is longer than the screen. Warnings
// go there, too, where a pager would draw over them.
func (a *app) paged(ctx context.Context, print func() error) error {
	command := a.pagerCommand()
	if command == "" {
		return print()
	}
	out, errs := a.out, a.err
	p := &pager{
		environ: a.environ, dir: cmp.Or(a.startDir, a.dir), command: command, screen: max(2, a.height) - 1, direct: out,
		errs: raw(errs),
	}
	a.out = &cleanWriter{to: p, color: true}
	if a.errTTY {
		a.err = a.out
	}
	err := print()
	a.out, a.err = out, errs
	return p.finish(ctx, err)
}

// pager holds back its input until that is longer than the screen; then it starts the command and passes everything on.
type pager struct {
	command string
	environ []string
	dir     string
	screen  int       // lines
	direct  io.Writer // for what fits on the screen
	errs    io.Writer // of the command
	held    bytes.Buffer
	lines   int
	cmd     *exec.Cmd // nil: not started
	to      io.WriteCloser
}

func (p *pager) Write(b []byte) (int, error) {
	if p.to != nil {
		return p.to.Write(b)
	}
	p.held.Write(b)
	if p.lines += bytes.Count(b, []byte("\n")); p.lines <= p.screen {
		return len(b), nil
	}
	if err := p.start(); err != nil {
		return 0, err
	}
	_, err := p.to.Write(p.held.Bytes())
	return len(b), err
}

func (p *pager) start() error {
	cmd := exec.Command("sh", "-c", p.command) //nolint:gosec // the user's own
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = raw(p.direct), p.errs, p.environ, p.dir
	if (&env{environ: p.environ}).getenv("LESS") == "" {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "LESS=FRX")
	}
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	p.cmd, p.to = cmd, to
	return cmd.Start()
}

// finish waits until the user quits the pager, and writes what no pager was needed for.
func (p *pager) finish(ctx context.Context, err error) error {
	if p.cmd == nil {
		_, failed := p.direct.Write(p.held.Bytes())
		return errors.Join(err, failed)
	}
	if errors.Is(err, syscall.EPIPE) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // the user quit the pager, or interrupted it
	}
	failed := errors.Join(p.to.Close(), p.cmd.Wait())
	var exit *exec.ExitError
	switch {
	case !errors.As(failed, &exit):
	case exit.ExitCode() < 126:
		failed = nil // its own affair
	default: // as the shell says
		failed = session.Errorf(session.Invalid,
			"the pager %q cannot run: set SESSIOND_PAGER or PAGER to another one, or use --no-pager", p.command)
	}
	return errors.Join(err, failed)
}
