package bench_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

var (
	idleTime  = flag.Duration("idle", time.Minute, "how long the idle daemon is watched")
	idleFiles = flag.Int("files", 20_000, "files beside the idle daemon that it follows")
)

// filesPerFolder is how many transcripts are in each folder of a project.
const filesPerFolder = 100

// BenchmarkIdle reports what a daemon costs while nothing happens: the share of one processor; what it reads by system
// calls, and what of that comes from the disk; its resident memory, and the highest since its start. The baseline is a
// daemon without a history. Beside the others are many transcripts that it follows. To one the system gives no watches
// (of inotify), as where other programs have them all: it looks by itself. With -keep the large database is that
// folder's.
func BenchmarkIdle(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("it reads /proc")
	}
	sessiond, files := binary(b), sized(*idleFiles)
	b.Run("nothing to follow", func(b *testing.B) {
		idle(b, serve(b, sessiond, filepath.Join(b.TempDir(), "sessions.db")))
	})
	home := b.TempDir()
	db, write := filepath.Join(home, "sessions.db"), newAuthor(9)
	for n := range files {
		folder := filepath.Join(home, ".claude", "projects", fmt.Sprintf("project-%d", n/filesPerFolder))
		testkit.Check(b, os.MkdirAll(folder, 0o700))
		testkit.Check(b, claudeProgram().writeTranscript(folder, n, write.conversation(4)))
	}
	testkit.Check(b, run(command(sessiond, db, "import", "claude-code", "--yes")))
	b.Run(fmt.Sprintf("%d files, watched", files), func(b *testing.B) { idle(b, serve(b, sessiond, db)) })
	b.Run(fmt.Sprintf("%d files, watches refused", files), func(b *testing.B) {
		idle(b, serve(b, withoutWatches(b, sessiond), db))
	})
	b.Run(fmt.Sprintf("%d messages", sized(*historySize)), func(b *testing.B) {
		h := openSessions(b, sized(*historySize))
		d := serve(b, sessiond, h.path)
		c := d.dial(b)
		for _, path := range []string{"/v1/sessions?limit=50", "/v1/search?q=" + knownWord} { // as a page that was opened
			testkit.Must(c.send(request(b, "GET", path, nil)))(b)
		}
		idle(b, d)
	})
}

// withoutWatches returns a program that runs sessiond in a user namespace that has one watch of inotify.
func withoutWatches(b *testing.B, sessiond string) string {
	b.Helper()
	script := filepath.Join(b.TempDir(), "sessiond")
	testkit.Check(b, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\n"+
		"exec unshare --user --map-root-user "+
		"sh -c 'echo 1 >/proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"' %q \"$@\"\n",
		sessiond), 0o700))
	if out, err := exec.Command(script, "version").CombinedOutput(); err != nil {
		b.Skipf("no limit of watches can be set here: %v: %s", err, out)
	}
	return script
}

// idle waits until the daemon has caught up, then watches it for a while.
func idle(b *testing.B, d *daemon) {
	b.Helper()
	const pause, quiet = 2 * time.Second, 10 * time.Millisecond
	for before, calm := d.cpu(), 0; calm < 5; {
		time.Sleep(pause)
		now := d.cpu()
		if calm++; now-before > quiet {
			calm = 0
		}
		before = now
	}
	lasting := time.Duration(sized(int(*idleTime)))
	for b.Loop() {
		cpu, read, fromDisk := d.cpu(), d.counter("io", "rchar:"), d.counter("io", "read_bytes:")
		time.Sleep(lasting)
		b.ReportMetric(100*float64(d.cpu()-cpu)/float64(lasting), "cpu-%")
		b.ReportMetric(float64(d.counter("io", "rchar:")-read)/1e3, "read-kB")
		b.ReportMetric(float64(d.counter("io", "read_bytes:")-fromDisk)/1e3, "disk-kB")
	}
	b.ReportMetric(float64(d.counter("status", "VmRSS:"))*1.024/1e3, "MB")
	b.ReportMetric(float64(d.counter("status", "VmHWM:"))*1.024/1e3, "peak-MB")
	b.ReportMetric(0, "ns/op")
}

// counter returns a number that the kernel keeps of the daemon: a line of a file in /proc.
func (d *daemon) counter(file, name string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", d.pid, file))
	_, rest, _ := strings.Cut(string(text), name)
	rest, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	n, _ := strconv.ParseInt(strings.TrimSuffix(rest, " kB"), 10, 64)
	return n
}
