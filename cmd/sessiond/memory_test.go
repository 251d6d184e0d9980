package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// The memory of an import grows little with the length of a transcript. Each import is a process of
// its own, asked for its peak. bench memory does it for every program, and larger.
func TestImportStaysSmall(t *testing.T) {
	t.Parallel()
	effort.OnlyLong(t, "it measures memory")
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc to ask for the peak")
	}
	dir := t.TempDir()
	short := peakOfImport(t, filepath.Join(dir, "short"), 25_000) // 20 MB
	long := peakOfImport(t, filepath.Join(dir, "long"), 75_000)
	t.Logf("peak %d MB of the short one, %d MB of the long one", short>>20, long>>20)
	// 300 bytes for each of 50,000 records are 15 MB; the rest is garbage not yet collected
	if more := long - short; more > 80<<20 {
		t.Errorf("a transcript of thrice the length needs %d MB more", more>>20)
	}
}

func peakOfImport(t *testing.T, dir string, messages int) (peak int64) {
	t.Helper()
	testkit.Check(t, os.MkdirAll(dir, 0o700))
	from := filepath.Join(dir, "2026-02-03T09-00-00-000Z_one.jsonl")
	f := testkit.Must(os.Create(from))(t)
	out := bufio.NewWriter(f)
	fmt.Fprintln(out, `{"type":"session","version":3,"id":"one","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/w"}`)
	for i := range messages {
		parent := "null"
		if i > 0 {
			parent = strconv.Quote(fmt.Sprintf("%08x", i-1))
		}
		var text strings.Builder
		for k := range 60 {
			fmt.Fprintf(&text, "word%d ", (i*7919+k*104729)%50021)
		}
		fmt.Fprintf(out, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-02-03T09:00:01.000Z","message":{"role":"user","content":%q}}`+"\n", i, parent, text.String())
	}
	testkit.Check(t, errors.Join(out.Flush(), f.Close()))
	peak, _ = peakOf(t, dir, "import", "pi", from)
	return peak
}

// A handover of a whole conversation needs no more memory for a long one: messages pass one at a time. It takes an
// import before it, whose time does not count.
func TestWholeHandoverStaysSmall(t *testing.T) {
	t.Parallel()
	effort.OnlyLong(t, "it measures memory")
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc to ask for the peak")
	}
	dir := t.TempDir()
	peaks := map[int]int64{}
	for _, messages := range []int{1_000, 100_000} {
		home := filepath.Join(dir, strconv.Itoa(messages))
		peakOfImport(t, home, messages)
		testkit.Check(t, os.Mkdir(filepath.Join(home, "bin"), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(home, "bin", "codex"), []byte("#!/bin/sh\n"), 0o700))
		peak, cpu := peakOf(t, home, "to", "codex", "one", "--here", "--whole")
		written := testkit.Must(filepath.Glob(filepath.Join(home, ".codex", "sessions", "*", "*", "*", "*.jsonl")))(t)
		if len(written) != 1 {
			t.Fatalf("%d files are written: %v", len(written), written)
		}
		t.Logf("%d messages: peak %d MB, %v of CPU, a file of %d MB", messages, peak>>20, cpu.Round(time.Millisecond),
			testkit.Must(os.Stat(written[0]))(t).Size()>>20)
		peaks[messages] = peak
	}
	if more := peaks[100_000] - peaks[1_000]; more > 64<<20 {
		t.Errorf("100,000 messages need %d MB more than 1,000", more>>20)
	}
}

// peakOf runs sessiond as a process of its own in a home, and returns the most memory and the processor time that it
// had.
func peakOf(t *testing.T, home string, args ...string) (peak int64, cpu time.Duration) {
	t.Helper()
	self := testkit.Must(os.Executable())(t)
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append(append([]string{"sessiond"}, args...), "--db", filepath.Join(home, "sessions.db"))
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + filepath.Join(home, "bin")}
	cmd.Stdout, cmd.Stderr = &said, &said
	testkit.Check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil || peak == 0 {
				t.Fatalf("%v: %s", err, said.String())
			}
			return peak, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		case <-tick.C:
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			_, rest, _ := strings.Cut(string(status), "VmHWM:")
			if fields := strings.Fields(rest); len(fields) > 0 {
				if kib, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
					peak = max(peak, kib<<10)
				}
			}
		}
	}
}
