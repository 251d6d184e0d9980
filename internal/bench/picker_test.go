package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// messagesPerSession is the mean length of the many conversations that openSessions writes.
const messagesPerSession = 10

// openSessions returns a database of many short conversations of several programs in 200 projects, one in five a
// sub-agent. With -keep it is made once, in that folder.
func openSessions(tb testing.TB, messages int) *history {
	tb.Helper()
	ctx, dir := tb.Context(), *keptFolder
	if dir == "" {
		dir = tb.TempDir()
	}
	h := &history{path: filepath.Join(dir, "sessions.db")}
	_, err := os.Stat(h.path)
	h.store = testkit.Must(store.Open(ctx, h.path, options()))(tb)
	tb.Cleanup(func() { testkit.Check(tb, h.store.Close()) })
	if err != nil {
		fillSessions(tb, h, messages/messagesPerSession)
	}
	h.openIndex(tb, filepath.Join(dir, "search.db"))
	return h
}

// fillSessions writes sessions whose last message lies within the two years before 2026-11-20.
func fillSessions(tb testing.TB, h *history, n int) {
	tb.Helper()
	ctx := tb.Context()
	newest := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	every := 2 * 365 * 24 * time.Hour / time.Duration(n)
	sources := []session.Source{session.SourceClaudeCode, session.SourceCodex, session.SourcePi, session.SourceOpencode}
	write := func(author *author, i int, parent session.ID) (session.ID, error) {
		at := newest.Add(-every * time.Duration(n-i))
		created := session.At(at)
		in := store.NewSession{
			Title: author.sentence(3 + i%9), TitleSource: "source", Source: sources[i%len(sources)], SourceID: uuid(i),
			CreatedAt: &created,
			Model:     "gpt-4o", Provider: "openai", Directory: fmt.Sprintf("/home/me/project-%d", i*7%200),
		}
		if i%5 == 4 && parent != "" {
			in.ParentID, in.ParentKind, in.Kind = parent, session.ParentChild, "subagent"
		}
		made, err := h.store.CreateSession(ctx, in)
		if err != nil {
			return "", err
		}
		msgs := author.messages(5+author.rng.IntN(messagesPerSession+1), usualWords)
		for k := range msgs {
			msgs[k].CreatedAt = session.At(at.Add(time.Duration(k) * time.Second))
		}
		_, err = h.store.Append(ctx, store.Append{Session: made.ID, Messages: msgs})
		if in.ParentID != "" {
			return parent, err
		}
		return made.ID, err
	}
	const writers = 16 // commits are grouped
	var all sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		all.Go(func() {
			author, parent := newAuthor(uint64(w+1)), session.ID("")
			for i := w; i < n && errs[w] == nil; i += writers {
				parent, errs[w] = write(author, i, parent)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		testkit.Check(tb, err)
	}
}

// BenchmarkPicker starts `sessiond` on a terminal of 140×40 and types. first: from the start of the process to the
// first row of the list; the baseline is `sessiond version`. key: from a key to the screen that has it. move: the same
// for an arrow. search: from the last letter of a word to the sessions that were found.
func BenchmarkPicker(b *testing.B) {
	h, program := openSessions(b, sized(*historySize)), binary(b)
	var version, first, key, move, found []time.Duration
	for b.Loop() {
		begun := time.Now()
		testkit.Check(b, run(command(program, h.path, "version")))
		version = append(version, time.Since(begun))
		t := startTerminal(b, command(program, h.path))
		first = append(first, t.waits("project-"))
		t.settle()
		for _, letter := range knownWord {
			key = append(key, t.press(string(letter), string(letter)))
			t.settle()
		}
		t.press("\x15", "Type to search") // clears the line
		t.settle()
		for range 5 {
			move = append(move, t.press("\x1b[B", "❯"))
			t.settle()
		}
		found = append(found, t.press("\x1b[200~"+knownWord+"\x1b[201~", " found")) // as pasted
		t.end()
	}
	b.ReportMetric(0, "ns/op")
	for _, m := range []struct {
		name  string
		times []time.Duration
	}{{"first", first}, {"key", key}, {"move", move}, {"search", found}} {
		b.ReportMetric(median(m.times).Seconds()*1e3, m.name+"-ms")
		b.ReportMetric(percentile(m.times, 95).Seconds()*1e3, m.name+"-p95-ms")
	}
	b.ReportMetric(median(first).Seconds()/median(version).Seconds(), "first×version")
}

// terminal is a sessiond on a pseudo terminal.
type terminal struct {
	testing.TB
	cmd    *exec.Cmd
	file   *os.File
	output chan []byte
}

func startTerminal(tb testing.TB, cmd *exec.Cmd) *terminal {
	tb.Helper()
	t := &terminal{TB: tb, cmd: cmd, output: make(chan []byte, 1000)}
	t.cmd.Env = append(t.cmd.Env, "TERM=xterm-256color")
	t.file = testkit.Must(pty.StartWithSize(t.cmd, &pty.Winsize{Rows: 40, Cols: 140}))(tb)
	go func() {
		defer close(t.output)
		for {
			piece := make([]byte, 64<<10)
			n, err := t.file.Read(piece)
			if err != nil {
				return
			}
			t.output <- piece[:n]
		}
	}()
	return t
}

// waits returns how long it takes until the output has a text.
func (t *terminal) waits(text string) time.Duration {
	t.Helper()
	took, _ := t.reads(text)
	return took
}

// reads is waits, and returns the output, too.
func (t *terminal) reads(text string) (took time.Duration, said string) {
	t.Helper()
	begun := time.Now()
	for !strings.Contains(said, text) {
		select {
		case piece, more := <-t.output:
			if said += string(piece); !more {
				t.Fatalf("sessiond ended; it wrote %q", said)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no %q on the screen; the end of the output is %q", text, said[max(0, len(said)-2000):])
		}
	}
	return time.Since(begun), said
}

func (t *terminal) press(key, text string) time.Duration {
	t.Helper()
	testkit.Must(t.file.WriteString(key))(t)
	return t.waits(text)
}

// settle reads until nothing is drawn for a while.
func (t *terminal) settle() {
	for {
		select {
		case _, more := <-t.output:
			if !more {
				t.Fatal("sessiond ended")
			}
		case <-time.After(150 * time.Millisecond):
			return
		}
	}
}

func (t *terminal) end() {
	testkit.Must(t.file.WriteString("\x03"))(t)
	for range t.output { //nolint:revive // until the process ends
	}
	testkit.Check(t, t.cmd.Wait())
	testkit.Check(t, t.file.Close())
}
