// Command sessiond keeps the conversations of every AI agent on a host: `sessiond serve` is
// the daemon, the other commands read and change the same file beside it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	code := run(ctx, os.Args[1:], hostEnv())
	stop()
	os.Exit(code)
}
