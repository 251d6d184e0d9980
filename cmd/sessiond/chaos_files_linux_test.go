package main

import (
	"syscall"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/storetest"
)

// fileFaults are what hands do to the files of a running daemon.
func fileFaults() []fault {
	return []fault{
		{"stopped without a fault", stoppedCleanly},
	}
}

// stoppedCleanly is the row beside which the others are read.
func stoppedCleanly(t *testing.T, c *counts) {
	storetest.OnFile(t)
	for range effort.Runs(10) {
		d, a := startDaemon(t, t.TempDir()), newTally()
		stop := a.chatter(d, 4, 100)
		eventually(t, "append", func() bool { return a.n.Load() >= 100 })
		testkit.Check(t, d.cmd.Process.Signal(syscall.SIGTERM))
		_ = d.cmd.Wait()
		stop()
		a.mustHold(t, d.db())
		c.add("rounds", 1)
		c.add("acknowledged", int(a.n.Load()))
	}
}
