package bench_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/dustin/go-humanize"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

var firstSize = flag.Int("first", 100, "MB of histories that the first start finds")

// BenchmarkFirst is the first start beside a year of histories of Claude Code and Codex. screen: from the start of the
// process to the screen that asks. picker: from Enter until yesterday's conversation is in the picker. all: from Enter
// until the import behind the picker has ended. estimate: the disk that the screen says, of the one that the data have
// then. The baseline is `sessiond version`.
func BenchmarkFirst(b *testing.B) {
	program, home := binary(b), b.TempDir()
	files := max(2, sized(*firstSize)*13/10) // of 0.76 MB
	now, write := time.Now(), newAuthor(11)
	yesterday := now.Add(-26 * time.Hour)
	for n := range files {
		p, folder := claudeProgram(), filepath.Join(home, ".claude", "projects", fmt.Sprintf("project-%d", n%40))
		if n%3 == 2 {
			p, folder = codexProgram(), filepath.Join(home, ".codex", "sessions", "2026", "01", fmt.Sprintf("%02d", n%28+1))
		}
		begun := yesterday.Add(-365 * 24 * time.Hour / time.Duration(files) * time.Duration(n))
		line := p.line
		p.line = func(n, i int, m *session.Message) object {
			made := line(n, i, m)
			made["timestamp"] = begun.Add(time.Duration(i) * time.Second).UTC().Format(stampFormat)
			return made
		}
		testkit.Check(b, os.MkdirAll(folder, 0o700))
		testkit.Check(b, p.writeTranscript(folder, n, func(i int) (session.Message, bool) {
			m := write.message(i, 8*usualWords)
			if i == 0 {
				m = textMessage(session.User, session.Person, fmt.Sprintf("Request %d of the year", n))
			}
			return m, i < 500
		}))
		testkit.Check(b, os.Chtimes(filepath.Join(folder, p.file(n)), begun, begun.Add(500*time.Second)))
	}
	var version, screen, picker, all []time.Duration
	var estimate float64
	for b.Loop() {
		data := b.TempDir()
		db := filepath.Join(data, "sessions.db")
		begun := time.Now()
		testkit.Check(b, run(command(program, db, "version")))
		version = append(version, time.Since(begun))
		cmd := command(program, db)
		// Without a service manager on the PATH no service is offered, which Enter would install.
		cmd.Env = append(cmd.Env, "HOME="+home, "PATH="+data)
		t := startTerminal(b, cmd)
		took, said := t.reads("Enter: go on")
		screen = append(screen, took)
		t.settle()
		begun = time.Now()
		picker = append(picker, t.press("\r", "Request 0 of the year"))
		for _, name := range []string{"first-import.log", ".first-import"} {
			for err := error(nil); err == nil; _, err = os.Stat(filepath.Join(data, name)) {
				if time.Sleep(20 * time.Millisecond); time.Since(begun) > time.Hour {
					b.Fatalf("the import behind the picker does not end: %s is there", name)
				}
			}
		}
		all = append(all, time.Since(begun))
		t.end()
		needs := regexp.MustCompile(`needs about ([0-9.]+ [kMG]?B)`).FindStringSubmatch(said)
		if needs == nil {
			b.Fatalf("no estimate on the screen: %q", said)
		}
		var disk int64
		for _, name := range []string{"sessions.db", "sessions.db-wal", "search.db", "search.db-wal"} {
			if info, err := os.Stat(filepath.Join(data, name)); err == nil {
				disk += info.Size()
			}
		}
		estimate = float64(testkit.Must(humanize.ParseBytes(needs[1]))(b)) / float64(disk)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(folderSize(b, home))/1e6, "MB")
	b.ReportMetric(median(screen).Seconds(), "screen-s")
	b.ReportMetric(median(picker).Seconds(), "picker-s")
	b.ReportMetric(median(all).Seconds(), "all-s")
	b.ReportMetric(estimate, "estimate")
	b.ReportMetric(median(screen).Seconds()/median(version).Seconds(), "screen×version")
}
