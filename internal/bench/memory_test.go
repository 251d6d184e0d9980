package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// BenchmarkMemory reports the peak of resident memory of commands that import a session, and export
// it: one of a single message, which is the baseline, one with a record of almost 64 MiB, and a long one.
func BenchmarkMemory(b *testing.B) {
	sessiond := binary(b)
	record := strings.Repeat("one line of a very long output, with an end\n", sized(62<<20)/44)
	sessions := []struct {
		name string
		next func(*author, int) (session.Message, bool)
	}{
		{"1 message", func(a *author, i int) (session.Message, bool) { return a.message(0, usualWords), i < 1 }},
		{"a record of 64 MiB", func(a *author, i int) (session.Message, bool) {
			if i == 1 {
				return textMessage(session.Assistant, session.Model, record), true
			}
			return a.message(0, usualWords), i < 3
		}},
		{"a transcript of many MB", func(a *author, i int) (session.Message, bool) {
			return a.message(i, 10*usualWords), i < sized(*transcriptSize)*500
		}},
	}
	for _, p := range []program{piProgram(), claudeProgram(), codexProgram()} {
		for _, s := range sessions {
			dir := b.TempDir()
			write := newAuthor(5)
			testkit.Check(b, p.writeTranscript(dir, 0, func(i int) (session.Message, bool) { return s.next(write, i) }))
			db := filepath.Join(b.TempDir(), "sessions.db")
			b.Run("import "+p.source+", "+s.name, func(b *testing.B) {
				for b.Loop() {
					testkit.Check(b, os.RemoveAll(filepath.Dir(db)))
					testkit.Check(b, os.Mkdir(filepath.Dir(db), 0o700))
					reportPeak(b, folderSize(b, dir), command(sessiond, db, "import", p.source, dir))
				}
			})
			if p.source != "pi" {
				continue
			}
			for _, format := range []string{"jsonl", "md", "html", "openai"} {
				b.Run("export "+format+", "+s.name, func(b *testing.B) {
					for b.Loop() {
						reportPeak(b, folderSize(b, dir), command(sessiond, db, "export", theSession(b, sessiond, db), "--format", format,
							"-o", filepath.Join(dir, "out"), "--force"))
					}
				})
			}
			testkit.Check(b, os.RemoveAll(dir))
		}
	}
}

// theSession returns the id of the only session.
func theSession(tb testing.TB, sessiond, db string) string {
	tb.Helper()
	var list struct{ Data []struct{ ID string } }
	out := testkit.Must(command(sessiond, db, "ls", "--json").Output())(tb)
	testkit.Check(tb, json.Unmarshal(out, &list))
	if len(list.Data) != 1 {
		tb.Fatalf("%d sessions: %s", len(list.Data), out)
	}
	return list.Data[0].ID
}

// reportPeak runs a command and reports its peak and the CPU time.
func reportPeak(b *testing.B, size int64, cmd *exec.Cmd) {
	b.Helper()
	peak, cpu := peakOf(b, cmd)
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(peak, "peak-MB")
	b.ReportMetric(cpu, "cpu-s")
}

// peakOf runs a command and returns its peak of memory, in MB, and its CPU time, in seconds. What the kernel says of a
// child that ended is at least what its parent had when it began; so the child is asked while it runs.
func peakOf(b *testing.B, cmd *exec.Cmd) (megabytes, cpu float64) {
	b.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	testkit.Check(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	peak := 0
	for {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatalf("%v: %v: %s", cmd.Args[1:], err, &said)
			}
			return float64(peak) / 1e3, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		case <-tick.C:
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
				kib, _ := strconv.Atoi(strings.Fields(rest)[0])
				peak = max(peak, kib*1024/1000)
			}
		}
	}
}
